"""A launch queue of a given depth: launch n of a queue returns when operation n - depth has ended (E9).

An operation is what one call launches into one queue, so a graph launch is one. The recorded graph has
such waits only where they show beyond doubt; here the depth is the user's word, so every launch waits.
A call in which the awaited operation ended, and that lasted longer than launches that found room, was
waiting until then: that stretch is no work of the host, and goes away when the operation ends sooner.

What waits is the *return* of the call, which may lie inside a node of the thread. The edge then arrives
before the node's start by as much as the node has left to do after the return: its end is exact.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

import numpy as np
from msgspec import Struct

from stepcrit.errors import InternalError, UsageError
from stepcrit.graph.assemble import Edges, Nodes, assemble
from stepcrit.graph.build import TraceGraph
from stepcrit.graph.scene import BEFORE_CAPTURE
from stepcrit.graph.schedule import Lags
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.graph.wiring import Wiring
from stepcrit.model.arrays import NONE, Int64Array, median_of
from stepcrit.model.events import DEVICE_KINDS
from stepcrit.model.graph import EdgeKind, Evidence, Graph, Note


class Return(Struct, frozen=True):
    """A launch call that may return only when an earlier operation of its queue has ended.

    Attributes:
        src: the node whose end is awaited.
        dst: the node of the thread in which the call returns, or before which it does.
        rest_ns: what the node has left to do after the return, without what it waits later on.
        blocked_ns: how long the call was seen waiting within the node.
        latency_ns: how long after the awaited end it returned, where it was seen waiting.
    """

    src: int
    dst: int
    rest_ns: int
    blocked_ns: int
    latency_ns: int


class _Launch(Struct, frozen=True):
    """A call and the operation it must wait for, NONE where there is none; nodes and event rows."""

    call: int
    awaited: int


class QueueWiring(Wiring, frozen=True, eq=False):
    """The recorded edges, and one for each return."""

    returns: tuple[Return, ...]
    edge_at: Int64Array  # per return, its edge in `graph`

    def prepare(self, dur_ns: Int64Array, delays: Lags) -> tuple[Int64Array, Lags]:
        """See `Wiring`; a node that was seen waiting is shorter by that, and its edge brings the wait back."""
        dur, lags = super().prepare(dur_ns, delays)
        blocked: dict[int, int] = defaultdict(int)
        for one in self.returns:
            blocked[one.dst] += one.blocked_ns
        for edge, one in zip(self.edge_at.tolist(), self.returns, strict=True):
            v = int(self.number[one.dst])
            old, new = int(self.graph.dur_ns[v]), int(dur_ns[one.dst])
            work = old - blocked[one.dst]
            dur[v] = left = _resized(work, old, new)
            rest = one.rest_ns * left // work if work else 0
            lags.edge_ns[edge] = one.latency_ns + rest - left
        return dur, lags


def _resized(work: int, old: int, new: int) -> int:
    """A node's work when the node, waiting included, goes from `old` to `new`.

    Less is taken off work and waiting alike; more is all work.
    """
    return work + new - old if new >= old else work * new // old


def with_queue(view: StepGraph, depth: int) -> QueueWiring:
    """The recorded graph with a launch queue of `depth` operations before every device queue.

    Raises:
        UsageError: the depth is no positive number, or so small that the recorded program would wait for
            itself.
    """
    if depth < 1:
        raise UsageError(f"a queue takes at least 1 operation, not {depth}", do="for example queue:1024")
    graph = view.built.graph
    returns = tuple(returns_of(view, depth))
    src = np.concatenate((graph.src, [r.src for r in returns])).astype(np.int64)
    dst = np.concatenate((graph.dst, [r.dst for r in returns])).astype(np.int64)
    wired, number = _assembled(graph, Edges(src, dst, *_columns(graph, len(returns))), depth)
    sort = np.lexsort((number[src], number[dst]))  # as `assemble` sorts; no pair comes twice
    place = np.empty_like(sort)
    place[sort] = np.arange(len(sort))
    edge_of = np.where(sort < len(graph.src), sort, NONE)
    none = np.zeros(len(graph), np.int64)
    return QueueWiring(wired, number, edge_of, none, returns, place[len(graph.src) :])


def _columns(graph: Graph, added: int) -> tuple[np.typing.NDArray[np.int8], np.typing.NDArray[np.int8]]:
    """Kind and evidence of the recorded edges and of so many added ones."""
    return (
        np.concatenate((graph.edge_kind, np.full(added, EdgeKind.BACKPRESSURE, np.int8))),
        np.concatenate((graph.evidence, np.full(added, Evidence.ASSUMED, np.int8))),
    )


def _assembled(graph: Graph, edges: Edges, depth: int) -> tuple[Graph, Int64Array]:
    nodes = Nodes(graph.lane, graph.start_ns, graph.dur_ns, graph.kind, graph.row, graph.part)
    try:
        wired, number = assemble(nodes, edges, t0_ns=graph.t0_ns, notes={})
    except InternalError:
        wired = None
    if wired is None or Note.CYCLE in wired.notes:
        raise UsageError(
            f"with a queue of {depth} the recorded program would wait for itself",
            do="give a larger depth: what was recorded had more outstanding",
        )
    return wired, number


def returns_of(view: StepGraph, depth: int) -> Iterator[Return]:
    """Every launch call that a queue of `depth` lets wait, except where the recorded graph says the same."""
    graph = view.built.graph
    known = set(zip(graph.src.tolist(), graph.dst.tolist(), strict=True))
    roots = np.diff(graph.dst_ptr) == 0
    launches = [one for operations in _operations(view) for one in _waiting(operations, depth)]
    usual = _usual_ns(view, launches)
    by_node: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    events = view.trace.events
    for one in launches:
        dst = _returning(view.built, int(events.lane[one.call]), int(events.end_ns[one.call]))
        # A thread's first node waits for the origin alone, which an edge would replace.
        if one.awaited >= 0 <= dst and not roots[dst] and (one.awaited, dst) not in known:
            by_node[dst][one.call].append(one.awaited)
    for dst, waits in by_node.items():
        later = 0
        for call in sorted(waits, key=lambda row: (-int(events.end_ns[row]), row)):
            rest = min(int(graph.end_ns[dst] - events.end_ns[call]), int(graph.dur_ns[dst])) - later
            # A call that launches into several queues waits once, for the last of them.
            last = max(waits[call], key=lambda node: (int(graph.end_ns[node]), node))
            seen = _seen_waiting(view, _Launch(call, last), dst, usual)
            for node in waits[call]:
                yield Return(node, dst, rest, *(seen if node == last else (0, 0)))
            later += seen[0]


def _operations(view: StepGraph) -> Iterator[list[tuple[int, int]]]:
    """For each device queue, its operations as (call, node that ends last), in the order of their launches."""
    events, launch, built = view.trace.events, view.links.launch, view.built
    rows = np.flatnonzero(events.is_kind(*DEVICE_KINDS))
    rows = rows[built.last_node[rows] >= 0] if len(built.last_node) > rows.max(initial=-1) else rows[:0]
    issue = np.where(launch[rows] >= 0, events.start_ns[np.maximum(launch[rows], 0)], BEFORE_CAPTURE)
    rows = rows[np.lexsort((events.end_ns[rows], launch[rows], issue, events.lane[rows]))]
    lanes = events.lane[rows]
    for group in np.split(rows, np.flatnonzero(np.diff(lanes)) + 1):
        found: list[tuple[int, int]] = []
        for row in group.tolist():
            call, node = int(launch[row]), int(built.last_node[row])
            if call >= 0 and found and found[-1][0] == call:
                found.pop()  # rows of one call come by their ends: the last stays
            found.append((call, node))
        yield found


def _waiting(operations: list[tuple[int, int]], depth: int) -> Iterable[_Launch]:
    for n, (call, _) in enumerate(operations):
        if call >= 0:
            yield _Launch(call, operations[n - depth][1] if n >= depth else NONE)


def _returning(built: TraceGraph, lane: int, at_ns: int) -> int:
    """The first node of a thread that ends at or after an instant: there, or before it, a call returns."""
    threads = built.threads
    low, high = int(threads.ptr[lane]), int(threads.ptr[lane + 1])
    i = int(np.searchsorted(threads.end_ns[low:high], at_ns, side="left")) + low
    return int(built.number[i]) if i < high else NONE


def _usual_ns(view: StepGraph, launches: list[_Launch]) -> dict[int, int]:
    """By name of the call, how long a launch takes that finds room: the median; the least where none did."""
    events, end = view.trace.events, view.built.graph.end_ns
    free: dict[int, list[int]] = defaultdict(list)
    every: dict[int, list[int]] = defaultdict(list)
    for one in launches:
        name, start = int(events.name[one.call]), int(events.start_ns[one.call])
        length = int(events.end_ns[one.call]) - start
        every[name].append(length)
        if one.awaited < 0 or end[one.awaited] <= start:
            free[name].append(length)
    return {
        name: int(median_of(np.array(free[name], np.int64))) if name in free else min(lengths)
        for name, lengths in every.items()
    }


def _seen_waiting(view: StepGraph, one: _Launch, dst: int, usual: dict[int, int]) -> tuple[int, int]:
    """How long within a node a call was seen waiting, and how long after the awaited end it returned."""
    events, graph = view.trace.events, view.built.graph
    until, end = int(graph.end_ns[one.awaited]), int(events.end_ns[one.call])
    begun = int(events.start_ns[one.call]) + usual[int(events.name[one.call])]
    since = max(begun, int(graph.start_ns[dst]))
    return (until - since, end - until) if since < until <= end else (0, 0)
