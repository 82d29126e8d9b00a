"""How long a loop would wait for its batches if the loader's workers took another time to produce them.

A trace shows when the loop asked for a batch and when it got it, never the production itself. Write T for
what the loop does between two fetches, w for the waits in them, and p = T + w for the mean period. When
production takes f times as long and nothing else changes, every completion is a longest chain of
productions and loop work, so the mean period p(f) is convex in f, with p(1) = p and p(0) = T. Hence,
however many workers there are and however far they may run ahead:

    f <= 1:   max(f p, T) <= p(f) <= T + f w          f >= 1:   T + f w <= p(f) <= f p

Where the loop waited in every fetch, no worker was ever idle: deliveries are the pace of production, they
come at f times their distances, and p(f) = max(f p, T) exactly. The first fetch stays as it was, for the
production of its batch began before the recording. Nothing is known where one fetch alone was
recorded, and nothing of this is meant for a loader without workers, whose fetches are its own work.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from stepcrit.errors import UsageError
from stepcrit.graph.schedule import GapPolicy, forward
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.model.arrays import Int64Array

WITH_WORKERS = "_MultiProcessingDataLoaderIter.__next__"
"""Part of the range around a fetch from worker processes; a loader without workers has another name."""

READY_NS = 2_000_000
"""A fetch that takes no longer may have found its batch ready: recorded ones took 0.7 to 1.1 ms for that."""


@dataclass(frozen=True, slots=True, eq=False)
class Waits:
    """The waits after a change, one entry per fetch of the capture, in ns.

    Attributes:
        row: event row of the fetch.
        observed_ns: how long it took.
        least_ns, most_ns: how long it would take, from optimistic to conservative.
        production_seen: whether the loop waited in every fetch, so that least and most differ only in what
            a fetch of a ready batch costs, and in the gap policy.
    """

    row: Int64Array
    observed_ns: Int64Array
    least_ns: Int64Array
    most_ns: Int64Array
    production_seen: bool


def fetches(view: StepGraph) -> Int64Array:
    """Event rows of the fetches from loader workers, in time order.

    Raises:
        UsageError: there are none, or only one, they are on several threads, or the graph has no host.
    """
    events = view.trace.events
    named = np.array([WITH_WORKERS in name for name in events.names], np.bool_)
    rows = np.flatnonzero(named[events.name]) if len(events) else np.empty(0, np.int64)
    # The same range is written twice where the loader calls itself: the outer one is the fetch.
    outer = [row for row in rows.tolist() if not _inside_one(view, row, named)]
    if len(outer) < 2:
        raise UsageError(
            f"{len(outer)} fetches from loader workers in this trace: how long they take over a batch is not known",
            do="record two steps or more of a loop over a DataLoader with num_workers > 0",
        )
    if len(set(events.lane[outer].tolist())) > 1:
        raise UsageError("batches are fetched on several threads: whose waits belong together is not known")
    if not len(view.built.threads.lane):
        raise UsageError(
            "the host is left out of this graph, and waits for data with it", do="leave out --device-only"
        )
    return np.array(sorted(outer, key=lambda row: int(events.start_ns[row])), np.int64)


def waits_after(view: StepGraph, factor: Fraction, ready_ns: int = READY_NS) -> Waits:
    """The waits if producing a batch took `factor` times as long; 1 gives back the observed ones.

    Args:
        view: any step; the waits are those of the whole capture.
        factor: what is left of the time of production, 0 or more.
        ready_ns: what a fetch may take though its batch is ready.

    Raises:
        UsageError: see `fetches`.
    """
    loop = _Loop(view, fetches(view))
    took = loop.took_ns
    seen = bool((took[1:] > ready_ns).all())
    own_cost = np.minimum(took, ready_ns)
    scaled = own_cost + _times(took - own_cost, factor)
    scaled[0] = took[0]
    nothing = np.zeros_like(took)
    if factor <= 1:
        least = loop.paced(factor, nothing, "edge")
        most = loop.paced(factor, own_cost, "join") if seen else scaled
    else:
        least = loop.paced(factor, nothing, "edge") if seen else scaled
        most = loop.paced(factor, own_cost, "join")
    return Waits(loop.rows, took, least, np.maximum(most, least), seen)


def durations(view: StepGraph, row: Int64Array, wait_ns: Int64Array) -> Int64Array:
    """Durations of the graph's nodes, in ns, when the fetches `row` take `wait_ns`."""
    return _Loop(view, row).durations(wait_ns)


def _inside_one(view: StepGraph, row: int, named: np.typing.NDArray[np.bool_]) -> bool:
    parent = int(view.links.parent[row])
    return parent >= 0 and bool(named[view.trace.events.name[parent]])


def _times(values: Int64Array, factor: Fraction) -> Int64Array:
    return np.array([round(factor * int(ns)) for ns in values], np.int64)


class _Loop:
    """The fetches of one thread on the schedule graph."""

    def __init__(self, view: StepGraph, rows: Int64Array) -> None:
        self.view = view
        self.rows = rows
        self.asked_ns: Int64Array = view.trace.events.start_ns[rows]
        self.got_ns: Int64Array = view.trace.events.end_ns[rows]
        self.took_ns: Int64Array = self.got_ns - self.asked_ns

    @cached_property
    def parts(self) -> list[list[tuple[int, int]]]:
        """Per fetch, (node, ns) of the host nodes that it covers, in time order; at least the one it lies in."""
        threads, number = self.view.built.threads, self.view.built.number
        lane = int(self.view.trace.events.lane[self.rows[0]])
        low, high = int(threads.ptr[lane]), int(threads.ptr[lane + 1])
        starts, ends = threads.start_ns[low:high], threads.end_ns[low:high]
        found = []
        for asked, got in zip(self.asked_ns.tolist(), self.got_ns.tolist(), strict=True):
            first = int(np.searchsorted(ends, asked, side="right")) + low
            last = int(np.searchsorted(starts, got, side="left")) + low
            covered = np.minimum(threads.end_ns[first:last], got) - np.maximum(
                threads.start_ns[first:last], asked
            )
            nodes = zip(number[first:last].tolist(), covered.tolist(), strict=True)
            own = [(node, ns) for node, ns in nodes if ns > 0]
            found.append(own or [(int(number[min(first, high - 1)]), 0)])
        return found

    def changes(self, wait_ns: Int64Array) -> list[list[tuple[int, int]]]:
        """Per fetch, (node, ns) by which nodes grow; the end of the fetch gives way first."""
        per_fetch = []
        for parts, grown in zip(self.parts, (wait_ns - self.took_ns).tolist(), strict=True):
            own, left = [], grown
            for node, covered in reversed(parts):
                step = max(left, -covered)
                own.append((node, step))
                left -= step
            per_fetch.append(own)
        return per_fetch

    def durations(self, wait_ns: Int64Array) -> Int64Array:
        """New durations of all nodes."""
        dur = self.view.built.graph.dur_ns.copy()
        for own in self.changes(wait_ns):
            for node, grown in own:
                dur[node] += grown
        return dur

    def paced(self, factor: Fraction, least_ns: Int64Array, policy: GapPolicy) -> Int64Array:
        """The waits when batches come at `factor` times their observed distances, and none is below its least.

        Other threads and the device may hold the loop up more, or less, once it waits less for data, so the
        graph is replayed until nothing moves. A fetch depends on earlier ones only: each pass settles one more.
        """
        first = int(self.got_ns[0])
        come = first + _times(self.got_ns - first, factor)
        delays, graph = self.view.delays(policy), self.view.built.graph
        waits = self._first_guess(come, least_ns)
        for _ in range(len(self.rows) + 1):
            start = forward(graph, self.durations(waits), delays)
            after = np.maximum(come - self._asked(start, waits), least_ns)
            if np.array_equal(after, waits):
                break
            waits = after
        return waits

    def _first_guess(self, come: Int64Array, least_ns: Int64Array) -> Int64Array:
        """As if the loop's own time between two fetches stayed what it was."""
        waits, got = [], int(self.asked_ns[0])
        before = [got, *self.got_ns[:-1].tolist()]
        columns = (self.asked_ns.tolist(), before, come.tolist(), least_ns.tolist())
        for asked, got_before, comes, least in zip(*columns, strict=True):
            now = got + asked - got_before
            waits.append(max(comes - now, least))
            got = now + waits[-1]
        return np.array(waits, np.int64)

    def _asked(self, start_ns: Int64Array, wait_ns: Int64Array) -> Int64Array:
        """When the loop asks for each batch in a replayed schedule."""
        graph, grown = self.view.built.graph, dict[int, int]()
        asked = []
        for parts, own, at in zip(self.parts, self.changes(wait_ns), self.asked_ns.tolist(), strict=True):
            node = parts[0][0]
            inside = max(at - int(graph.start_ns[node]), 0) + grown.get(node, 0)
            asked.append(int(start_ns[node]) + inside)
            for changed, ns in own:
                grown[changed] = grown.get(changed, 0) + ns
        return np.array(asked, np.int64)
