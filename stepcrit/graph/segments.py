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
from stepcrit.model.arrays import (
    NONE,
    BoolArray,
    Int8Array,
    Int32Array,
    Int64Array,
    IntArray,
    distinct,
    freeze,
    median_of,
)
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
_GAP_TABLE = np.array([GAP_CLASS[kind] for kind in EdgeKind], np.int64)


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
        piece: the piece of the path that each is, or a part of.
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
    piece: Int64Array

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
        path: the path on it, or several chains one after the other.
        usual: from `usual_gaps`.

    Raises:
        InternalError: the segments do not add up to the path (a bug).
    """
    graph, node = built.graph, path.node
    evidence, kind = entered_by(graph, path.edge)
    is_gap = path.kind != PieceKind.NODE
    is_host = ~is_gap & (graph.kind[node] < NodeKind.KERNEL)
    work = links.work[graph.row[node]]
    gap_work = gap_classes(kind, built.arrivals.gap_ns[node], usual, is_lag=path.kind == PieceKind.LAG)
    host = np.flatnonzero(is_host)
    inner = opened(links, graph, node[host], (path.start_ns[host], path.end_ns[host]))
    whole = np.flatnonzero(~is_host)
    piece = np.concatenate((whole, host[inner.which]))
    order = np.argsort(piece, kind="stable")
    piece = piece[order]
    columns = (
        (path.start_ns, inner.start_ns),
        (path.end_ns, inner.end_ns),
        (np.where(is_gap, gap_work, work), inner.work),
        (graph.row[node], inner.row),
    )
    start, end, work, row = (np.concatenate((of_piece[whole], own))[order] for of_piece, own in columns)
    if int((end - start).sum()) != int((path.end_ns - path.start_ns).sum()):
        raise InternalError("the segments of the critical path do not add up to the path")
    node, flags = node[piece], is_gap[piece].astype(np.int8)
    lane = graph.lane[node].astype(np.int32)
    found = (start, end, work.astype(np.int8), row, lane, node, evidence[piece], kind[piece], flags, piece)
    freeze(*found)
    return Segments(*found)


def entered_by(graph: Graph, edge: Int64Array) -> tuple[Int8Array, Int8Array]:
    """Evidence and kind of edges, -1 where there is none."""
    if not len(graph.src):
        none = np.full(len(edge), NONE, np.int8)
        return none, none
    evidence, kind = (np.where(edge >= 0, of[edge], NONE) for of in (graph.evidence, graph.edge_kind))
    return evidence.astype(np.int8), kind.astype(np.int8)


class Opened(Struct, frozen=True, eq=False):
    """Parts of host nodes, in time order; `which` says of which of them."""

    which: Int64Array
    start_ns: Int64Array
    end_ns: Int64Array
    work: Int64Array
    row: Int64Array


def opened(links: Links, graph: Graph, node: Int64Array, span: tuple[Int64Array, Int64Array]) -> Opened:
    """Host nodes by owner.

    Args:
        links: the trace's links.
        graph: the graph.
        node: host nodes.
        span: of each, from when to when of its observed time.
    """
    start, end = span
    is_return = graph.kind[node] == NodeKind.SYNC
    tiled = np.flatnonzero(~is_return)
    tiles = pieces_within(links.pieces, graph.lane[node[tiled]], (start[tiled], end[tiled]))
    returns = np.flatnonzero(is_return)
    of_tiles = np.where(tiles.owner >= 0, links.work[tiles.owner], WorkClass.UNTRACKED)
    which = np.concatenate((returns, tiled[tiles.which]))
    order = np.argsort(which, kind="stable")
    columns = (
        which,
        np.concatenate((start[returns], tiles.start_ns)),
        np.concatenate((end[returns], tiles.end_ns)),
        np.concatenate((np.full(len(returns), WorkClass.SYNC), of_tiles)),
        np.concatenate((graph.row[node[returns]], tiles.owner.astype(np.int64))),
    )
    return Opened(*(column[order] for column in columns))


class Tiles(Struct, frozen=True, eq=False):
    """Pieces of threads, cut to spans; `which` says to which of them. Owner as in `Pieces`."""

    which: Int64Array
    start_ns: Int64Array
    end_ns: Int64Array
    owner: Int32Array


def pieces_within(pieces: Pieces, lane: IntArray, span: tuple[Int64Array, Int64Array]) -> Tiles:
    """The pieces of threads inside of spans of theirs, in time order within each span."""
    first, last = np.zeros((2, len(lane)), np.int64)
    for one in distinct(lane).tolist():
        low, high, mine = (
            int(pieces.lane_ptr[one]),
            int(pieces.lane_ptr[one + 1]),
            np.flatnonzero(lane == one),
        )
        first[mine] = np.searchsorted(pieces.end_ns[low:high], span[0][mine], side="right") + low
        last[mine] = np.searchsorted(pieces.start_ns[low:high], span[1][mine], side="left") + low
    count = np.maximum(last - first, 0)
    which = np.repeat(np.arange(len(lane)), count)
    at = np.arange(len(which)) + np.repeat(first - (np.cumsum(count) - count), count)
    start, end = (bound[which] for bound in span)
    return Tiles(
        which, np.maximum(pieces.start_ns[at], start), np.minimum(pieces.end_ns[at], end), pieces.owner[at]
    )


def gap_classes(
    edge_kind: Int8Array | Int64Array,
    gap_ns: Int64Array,
    usual: Mapping[int, float],
    *,
    is_lag: BoolArray,
) -> Int64Array:
    """The names of gaps (WorkClass).

    Args:
        edge_kind: of the edge that bound each node, -1 where nothing did.
        gap_ns: the residual in front of each node.
        usual: from `usual_gaps`.
        is_lag: whether it is the normal delay of the edge, no residual.
    """
    longest = np.full(len(_GAP_TABLE), UNEXPLAINED_NS, np.int64)
    for kind, ns in usual.items():
        longest[kind] = int(max(UNEXPLAINED_NS, UNEXPLAINED_TIMES * ns))
    long = ~is_lag & (gap_ns > longest[edge_kind])
    work = np.where(long, WorkClass.UNEXPLAINED, _GAP_TABLE[edge_kind])
    return np.where(edge_kind < 0, WorkClass.BEFORE_FIRST, work)


def gap_class_of_nodes(built: TraceGraph, usual: Mapping[int, float]) -> Int64Array:
    """The class of the gap in front of each node, by the edge that bound it (WorkClass)."""
    graph, arrivals = built.graph, built.arrivals
    binding = np.flatnonzero(arrivals.binds)
    best = binding[np.lexsort((graph.evidence[binding], graph.dst[binding]))][::-1]
    kind = np.full(len(graph), NONE, np.int64)
    kind[graph.dst[best]] = graph.edge_kind[best]  # backwards, so that the best evidence stays
    return gap_classes(kind, arrivals.gap_ns, usual, is_lag=np.zeros(len(graph), np.bool_))


def usual_gaps(built: TraceGraph) -> dict[int, float]:
    """Median residual gap by the kind of the edge that bound it; a few gaps tell nothing usual."""
    graph, arrivals = built.graph, built.arrivals
    edges = np.flatnonzero(arrivals.binds)
    gaps, kinds = arrivals.gap_ns[graph.dst[edges]], graph.edge_kind[edges]
    found = {int(kind): gaps[kinds == kind] for kind in ascending(kinds)}
    return {kind: median_of(some) for kind, some in found.items() if len(some) >= ENOUGH_GAPS}
