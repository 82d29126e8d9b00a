"""The critical path in the smallest stretches with one cause each: class of work, owner, evidence.

Host nodes are opened into the pieces of their thread, so that each nanosecond belongs to the innermost
open event. A gap is named by the class of the edge that bound it; a residual far above what is usual
for its class is `unexplained`, since no gap is given a cause that the trace does not show.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from msgspec import Struct

from stepcrit.errors import InternalError
from stepcrit.graph.build import TraceGraph
from stepcrit.graph.path import Path, PieceKind
from stepcrit.intervals import ascending
from stepcrit.model.arrays import NONE, Int8Array, Int32Array, Int64Array, freeze, median_of
from stepcrit.model.classes import WorkClass
from stepcrit.model.graph import EdgeKind, Graph, NodeKind
from stepcrit.model.links import Links, Pieces

UNEXPLAINED_NS = 20_000
UNEXPLAINED_TIMES = 5
"""A residual gap is unexplained when it exceeds both: 20 µs, and five times the median of its class."""

ENOUGH_GAPS = 5
"""With fewer gaps of a class, what is usual is not known, and the 20 µs alone decide."""

GAP_CLASS = {
    EdgeKind.THREAD: WorkClass.SYNC_RETURN,
    EdgeKind.LAUNCH: WorkClass.LAUNCH_LATENCY,
    EdgeKind.STREAM: WorkClass.STREAM_GAP,
    EdgeKind.SPLIT: WorkClass.STREAM_GAP,
    EdgeKind.EVENT: WorkClass.EVENT_GAP,
    EdgeKind.SYNC: WorkClass.SYNC_RETURN,
    EdgeKind.HANDOVER: WorkClass.HANDOVER,
    EdgeKind.BACKPRESSURE: WorkClass.SYNC_RETURN,
    EdgeKind.PEER: WorkClass.EVENT_GAP,
}


class Segments(Struct, frozen=True, eq=False):
    """Stretches of the path in time order; they touch, and cover the window exactly.

    Attributes:
        start_ns, end_ns: the stretch.
        work: WorkClass.
        row: owning event, -1 for untracked time; of a gap, the activity that it delays.
        lane: lane of the node.
        node: node of the graph; of a gap, the node that it delays.
        evidence: evidence of the edge through which the path enters the node, -1 at the window's opening.
        edge_kind: kind of that edge, -1 there.
        is_gap: 1 for lags and gaps.
    """

    start_ns: Int64Array
    end_ns: Int64Array
    work: Int8Array
    row: Int64Array
    lane: Int32Array
    node: Int64Array
    evidence: Int8Array
    edge_kind: Int8Array
    is_gap: Int8Array

    def __len__(self) -> int:
        return len(self.start_ns)

    @property
    def length_ns(self) -> Int64Array:
        """Length of each stretch."""
        lengths: Int64Array = self.end_ns - self.start_ns
        return lengths


def segments_of(links: Links, built: TraceGraph, path: Path, usual: Mapping[int, float]) -> Segments:
    """Open a path into segments.

    Args:
        links: the trace's links.
        built: the graph.
        path: the path on it.
        usual: from `usual_gaps`.

    Raises:
        InternalError: the segments do not add up to the path (a bug).
    """
    rows: list[tuple[int, ...]] = []
    graph, node, edge = built.graph, path.node, path.edge
    entered = edge >= 0
    known = np.where(entered, edge, 0) if len(graph.src) else edge
    evidence = np.where(entered, graph.evidence[known], NONE) if len(graph.src) else edge
    kinds = np.where(entered, graph.edge_kind[known], NONE) if len(graph.src) else edge
    is_device, event = graph.kind[node] >= NodeKind.KERNEL, graph.row[node]
    work = np.where(is_device, links.work[event], NONE)
    columns = (path.kind, path.start_ns, path.end_ns, event, work, is_device, built.arrivals.gap_ns[node])
    about = zip(*(c.tolist() for c in (graph.lane[node], node, evidence, kinds)), strict=True)
    whole, lag = int(PieceKind.NODE), int(PieceKind.LAG)
    pieces = zip(*(column.tolist() for column in columns), strict=True)
    for (piece, start, end, row, of_device, on_device, gap), where in zip(pieces, about, strict=True):
        if piece != whole:
            rows.append((start, end, gap_class(where[3], gap, usual, is_lag=piece == lag), row, *where, 1))
        elif on_device:
            rows.append((start, end, of_device, row, *where, 0))
        else:
            rows += [(*one, *where, 0) for one in opened(links, graph, where[1], (start, end))]
    return _columns(rows, path)


def opened(links: Links, graph: Graph, node: int, span: tuple[int, int]) -> list[tuple[int, int, int, int]]:
    """(start, end, class, row) for each piece of a host node, inside a span of its observed time."""
    if graph.kind[node] == NodeKind.SYNC:
        return [(*span, WorkClass.SYNC, int(graph.row[node]))]
    pieces = pieces_within(links.pieces, int(graph.lane[node]), span)
    return [(a, b, int(links.work[row]) if row >= 0 else WorkClass.UNTRACKED, row) for a, b, row in pieces]


def pieces_within(pieces: Pieces, lane: int, span: tuple[int, int]) -> list[tuple[int, int, int]]:
    """(start, end, owner) of a thread's pieces, clipped to a span."""
    low, high = int(pieces.lane_ptr[lane]), int(pieces.lane_ptr[lane + 1])
    first = int(np.searchsorted(pieces.end_ns[low:high], span[0], side="right")) + low
    last = int(np.searchsorted(pieces.start_ns[low:high], span[1], side="left")) + low
    return [
        (max(int(pieces.start_ns[i]), span[0]), min(int(pieces.end_ns[i]), span[1]), int(pieces.owner[i]))
        for i in range(first, last)
    ]


def gap_class(edge_kind: int, gap: int, usual: Mapping[int, float], *, is_lag: bool) -> int:
    """The name of a gap (WorkClass).

    Args:
        edge_kind: of the edge that bound the node, -1 when nothing did.
        gap: the residual in front of the node, in ns.
        usual: from `usual_gaps`.
        is_lag: it is the normal delay of the edge, no residual.
    """
    if edge_kind < 0:
        return WorkClass.BEFORE_FIRST
    work = GAP_CLASS[EdgeKind(edge_kind)]
    if not is_lag and gap > max(UNEXPLAINED_NS, UNEXPLAINED_TIMES * usual.get(edge_kind, 0.0)):
        return WorkClass.UNEXPLAINED
    return work


def gap_class_of_nodes(built: TraceGraph, usual: Mapping[int, float]) -> Int64Array:
    """The class of the gap in front of each node, by the edge that bound it (WorkClass)."""
    graph, arrivals = built.graph, built.arrivals
    binding = np.flatnonzero(arrivals.binds)
    best = binding[np.lexsort((graph.evidence[binding], graph.dst[binding]))][::-1]
    kind = np.full(len(graph), NONE, np.int64)
    kind[graph.dst[best]] = graph.edge_kind[best]  # backwards, so that the best evidence stays
    gaps = arrivals.gap_ns.tolist()
    classes = [gap_class(k, gap, usual, is_lag=False) for k, gap in zip(kind.tolist(), gaps, strict=True)]
    return np.array(classes, np.int64)


def usual_gaps(built: TraceGraph) -> dict[int, float]:
    """Median residual gap by the kind of the edge that bound it; a few gaps tell nothing usual."""
    graph, arrivals = built.graph, built.arrivals
    edges = np.flatnonzero(arrivals.binds)
    gaps, kinds = arrivals.gap_ns[graph.dst[edges]], graph.edge_kind[edges]
    found = {int(kind): gaps[kinds == kind] for kind in ascending(kinds)}
    return {kind: median_of(some) for kind, some in found.items() if len(some) >= ENOUGH_GAPS}


def _columns(rows: list[tuple[int, ...]], path: Path) -> Segments:
    table = np.array(rows, np.int64).reshape(-1, 9).T
    start, end, work, row, lane, node, evidence, kind, is_gap = table
    if len(path) and int((end - start).sum()) != int(path.end_ns[-1] - path.start_ns[0]):
        raise InternalError("the segments of the critical path do not add up to the path")
    segments = Segments(
        start,
        end,
        work.astype(np.int8),
        row,
        lane.astype(np.int32),
        node,
        evidence.astype(np.int8),
        kind.astype(np.int8),
        is_gap.astype(np.int8),
    )
    freeze(*(getattr(segments, name) for name in Segments.__struct_fields__))
    return segments
