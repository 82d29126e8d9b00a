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

from fractions import Fraction
from functools import cached_property

import numpy as np

from stepcrit.graph.schedule import GapPolicy, Lags, forward
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.link.fetches import fetch_rows
from stepcrit.link.nesting import inherit
from stepcrit.model.arrays import NONE, BoolArray, Int64Array
from stepcrit.model.events import HOST_KINDS

READY_NS = 2_000_000
"""A fetch that takes no longer may have found its batch ready: recorded ones took 0.7 to 1.1 ms for that."""


def loop_of(view: StepGraph) -> Loop | None:
    """The loop that fetches from loader workers, if there is one whose fetches can be followed.

    None where one fetch alone was recorded, where several threads fetch (whose waits belong together is not
    known), and where the graph has no host.
    """
    events, rows = view.trace.events, fetch_rows(view.trace.events, view.links)
    one_thread = len(set(events.lane[rows].tolist())) == 1
    if len(rows) < 2 or not one_thread or not len(view.built.threads.lane):
        return None
    return Loop(view, rows)


def _times(values: Int64Array, factor: Fraction) -> Int64Array:
    return np.array([round(factor * int(ns)) for ns in values], np.int64)


class Loop:
    """The fetches of one thread on the schedule graph.

    Attributes:
        rows: event row of each fetch, in time order.
        took_ns: how long each took.
        production_seen: whether the loop waited in every fetch after the first.
    """

    def __init__(self, view: StepGraph, rows: Int64Array, ready_ns: int = READY_NS) -> None:
        self.view = view
        self.rows = rows
        self.ready_ns = ready_ns
        self.asked_ns: Int64Array = view.trace.events.start_ns[rows]
        self.got_ns: Int64Array = view.trace.events.end_ns[rows]
        self.took_ns: Int64Array = self.got_ns - self.asked_ns
        self.production_seen = bool((self.took_ns[1:] > ready_ns).all())

    @cached_property
    def covers(self) -> BoolArray:
        """Event rows that are, or lie in, a fetch."""
        links = self.view.links
        own = np.full(len(links.parent), NONE, np.int64)
        own[self.rows] = self.rows
        inside: BoolArray = inherit(own, links.parent) >= 0
        return inside & self.view.trace.events.is_kind(*HOST_KINDS)

    def timed(self, factor: Fraction, policy: GapPolicy, dur_ns: Int64Array, delays: Lags) -> Int64Array:
        """Durations of all nodes with the waits that come of other durations and another production.

        Where production does not change, batches that the loop always waited for keep coming as they came
        ("join"), or the waits stay as recorded ("edge"): a slow fetch need not be a wait.

        Args:
            factor: what is left of the time of production.
            policy: which end of the answer is asked for.
            dur_ns: new durations, one per node, with the waits as recorded.
            delays: the delays of the policy.
        """
        if factor == 1 and (policy == "edge" or np.array_equal(dur_ns, self.view.built.graph.dur_ns)):
            return dur_ns
        return self.durations(self.waits(factor, policy, dur_ns, delays), dur_ns)

    def waits(self, factor: Fraction, policy: GapPolicy, dur_ns: Int64Array, delays: Lags) -> Int64Array:
        """How long each fetch takes; see `timed`."""
        took, nothing = self.took_ns, np.zeros_like(self.took_ns)
        own_cost = np.minimum(took, self.ready_ns)
        # The end of the answer on which the pace is known to hold only if every fetch waited (see above).
        sure = policy == "join" if factor <= 1 else policy == "edge"
        if sure and not self.production_seen:
            scaled = own_cost + _times(took - own_cost, factor)
            scaled[0] = took[0]
            return scaled
        least = own_cost if policy == "join" else nothing
        return self._paced(factor, least, dur_ns, delays)

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

    def durations(self, wait_ns: Int64Array, dur_ns: Int64Array) -> Int64Array:
        """The same durations of all nodes, but for the fetches, which take `wait_ns`."""
        dur = dur_ns.copy()
        for own in self.changes(wait_ns):
            for node, grown in own:
                dur[node] = max(0, dur[node] + grown)
        return dur

    def _paced(self, factor: Fraction, least_ns: Int64Array, dur_ns: Int64Array, delays: Lags) -> Int64Array:
        """The waits when batches come at `factor` times their observed distances, and none is below its least.

        Other threads and the device may hold the loop up more, or less, once it waits less for data, so the
        graph is replayed until nothing moves. A fetch depends on earlier ones only: each pass settles one more.
        """
        first = int(self.got_ns[0])
        come = first + _times(self.got_ns - first, factor)
        graph = self.view.built.graph
        waits = self._first_guess(come, least_ns)
        for _ in range(len(self.rows) + 1):
            start = forward(graph, self.durations(waits, dur_ns), delays)
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
