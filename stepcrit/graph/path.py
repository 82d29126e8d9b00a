"""The critical path: the walk back from the boundary over binding edges, in pieces without holes.

A piece is an activity, the normal lag of the edge that bound it, or the gap left over. Laid end to
end the pieces partition the window exactly, in integer nanoseconds; that is asserted, not hoped for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from stepcrit.errors import InternalError
from stepcrit.graph.schedule import Arrivals
from stepcrit.model.arrays import Int8Array, Int64Array
from stepcrit.model.graph import Graph

MANY_PATHS = 1_000_000
"""Counting critical paths stops here: their number grows like 2 to the number of ties."""


class PieceKind(IntEnum):
    """What a stretch of the path is."""

    NODE = 0
    LAG = 1  # the class floor of the binding edge
    GAP = 2  # what is left between the latest arrival and the start


@dataclass(frozen=True, slots=True, eq=False)
class Path:
    """Pieces in time order; column arrays of equal length.

    Attributes:
        kind: PieceKind.
        node: the activity, or for a lag or gap the activity that it delays.
        edge: the edge that bound `node`, -1 when nothing did (it waited for the origin).
        start_ns, end_ns: the piece, clipped to the window.
        ties: equally late alternatives that a rule passed over, at joins and among the sinks.
        path_count: number of distinct critical paths, MANY_PATHS meaning at least so many.
    """

    kind: Int8Array
    node: Int64Array
    edge: Int64Array
    start_ns: Int64Array
    end_ns: Int64Array
    ties: int
    path_count: int

    def __len__(self) -> int:
        return len(self.node)


def critical_path(
    graph: Graph, arrivals: Arrivals, sinks: Collection[int], *, since_ns: int | None = None
) -> Path:
    """Walk back from the latest of `sinks` to `since_ns` (by default to the graph's origin).

    Args:
        graph: the graph.
        arrivals: from `schedule.observe`.
        sinks: the activities that the boundary requires; the path ends with the latest of them.
        since_ns: where the window opens; pieces are clipped there.

    Raises:
        InternalError: the pieces do not partition the window (a bug).
    """
    since = graph.t0_ns if since_ns is None else since_ns
    end = graph.end_ns
    sink = max(sinks, key=lambda v: (int(end[v]), int(graph.dur_ns[v]), -v))
    latest = [v for v in sinks if end[v] == end[sink]]
    pieces, ties = _walk(graph, arrivals, sink, since)
    path = _clipped(pieces, since, ties + len(latest) - 1, _count_paths(graph, arrivals, latest, since))
    _check_partition(path, since, int(end[sink]))
    return path


def binding_edge(graph: Graph, arrivals: Arrivals, node: int) -> tuple[int, int]:
    """The edge that decided when `node` started, and how many others arrived at the same instant.

    Among several: better evidence, then the longer predecessor, then the smaller number.
    Returns -1 when nothing did.
    """
    low, high = int(graph.dst_ptr[node]), int(graph.dst_ptr[node + 1])
    binding = [e for e in range(low, high) if arrivals.binds[e]]
    if not binding:
        return -1, 0
    best = min(binding, key=lambda e: (graph.evidence[e], -graph.dur_ns[graph.src[e]], graph.src[e]))
    return best, len(binding) - 1


def chain(graph: Graph, arrivals: Arrivals, node: int, *, since_ns: int) -> Path:
    """The pieces that lead up to the end of one node, back to `since_ns`; paths are not counted."""
    pieces, ties = _walk(graph, arrivals, node, since_ns)
    return _clipped(pieces, since_ns, ties, 0)


def _walk(graph: Graph, arrivals: Arrivals, node: int, since: int) -> tuple[list[tuple[int, ...]], int]:
    """Pieces from last to first, not clipped yet, and the ties met."""
    pieces: list[tuple[int, ...]] = []
    ties = 0
    while True:
        start, gap = int(graph.start_ns[node]), int(arrivals.gap_ns[node])
        edge, others = binding_edge(graph, arrivals, node)
        pieces.append((PieceKind.NODE, node, edge, start, start + int(graph.dur_ns[node])))
        if start <= since:
            return pieces, ties
        ties += others
        pieces.append((PieceKind.GAP, node, edge, start - gap, start))
        if edge < 0:
            if graph.t0_ns > since:  # the window opens before anything in the graph
                pieces.append((PieceKind.GAP, node, edge, since, graph.t0_ns))
            return pieces, ties
        lag = int(arrivals.phi_ns[edge])
        pieces.append((PieceKind.LAG, node, edge, start - gap - lag, start - gap))
        node = int(graph.src[edge])


def _clipped(pieces: list[tuple[int, ...]], since: int, ties: int, path_count: int) -> Path:
    """Columns in time order, without what lies before the window and without empty lags and gaps."""
    rows = [
        (kind, node, edge, max(start, since), end)
        for kind, node, edge, start, end in reversed(pieces)
        if end > since and (end > start or kind == PieceKind.NODE)
    ]
    columns = np.array(rows, np.int64).reshape(-1, 5).T
    kind, node, edge, start, end = columns
    return Path(kind.astype(np.int8), node, edge, start, end, ties, path_count)


def _check_partition(path: Path, since: int, until: int) -> None:
    """The first promise: pieces touch, and cover the window."""
    if not len(path):
        whole = since >= until
    else:
        touching = (path.start_ns[1:] == path.end_ns[:-1]).all()
        whole = bool(touching) and path.start_ns[0] == since and path.end_ns[-1] == until
    if not whole:
        raise InternalError(f"the critical path does not partition its window [{since}, {until}]")


def _count_paths(graph: Graph, arrivals: Arrivals, targets: Iterable[int], since: int) -> int:
    """How many chains of binding edges lead from the window's opening to any of `targets`."""
    preds: dict[int, list[int]] = {}
    todo = list(targets)
    while todo:
        v = todo.pop()
        if v in preds:
            continue
        inside = int(graph.start_ns[v]) > since
        edges = range(int(graph.dst_ptr[v]), int(graph.dst_ptr[v + 1])) if inside else ()
        preds[v] = [int(graph.src[e]) for e in edges if arrivals.binds[e]]
        todo += preds[v]
    ways: dict[int, int] = {}
    for v in sorted(preds):
        ways[v] = min(MANY_PATHS, sum(ways[u] for u in preds[v])) if preds[v] else 1
    return min(MANY_PATHS, sum(ways[v] for v in targets))
