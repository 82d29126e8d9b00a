"""The critical path: the walk back from the boundary over binding edges, in pieces without holes.

A piece is an activity, the normal lag of the edge that bound it, or the gap left over. Laid end to
end the pieces partition the window exactly, in integer nanoseconds; that is asserted, not hoped for.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Sequence
from enum import IntEnum
from weakref import WeakKeyDictionary

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepcrit.errors import InternalError
from stepcrit.graph.schedule import Arrivals
from stepcrit.model.arrays import NONE, Int8Array, Int64Array
from stepcrit.model.graph import Graph

MANY_PATHS = 1_000_000
"""Counting critical paths stops here: their number grows like 2 to the number of ties."""


class PieceKind(IntEnum):
    """What a stretch of the path is."""

    NODE = 0
    LAG = 1  # the class floor of the binding edge
    GAP = 2  # what is left between the latest arrival and the start


class Path(Struct, frozen=True, eq=False):
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
    latest = last_of(graph, sinks)
    sink = latest[0]
    path = replace(chain(graph, arrivals, sink, since_ns=since), path_count=1)
    ties = path.ties + len(latest) - 1
    if ties:
        path = replace(path, ties=ties, path_count=_count_paths(graph, arrivals, latest, since))
    _check_partition(path, since, int(graph.start_ns[sink] + graph.dur_ns[sink]))
    return path


def last_of(graph: Graph, nodes: Collection[int]) -> list[int]:
    """Those of some nodes that end last; first the one that a path is to end with: the longest, then the first."""
    some = np.fromiter(nodes, np.int64, len(nodes))
    end = graph.start_ns[some] + graph.dur_ns[some]
    some = some[end == end.max()]
    last: list[int] = some[np.lexsort((some, -graph.dur_ns[some]))].tolist()
    return last


class Binding(Struct, frozen=True, eq=False):
    """What decided when each node started; lists are what a walk asks for one node after the other.

    Among several edges: better evidence, then the longer predecessor, then the smaller number.

    Attributes:
        edge: per node, the edge, NONE where nothing did.
        others: per node, how many others arrived at the same instant.
        before: per node, the source of the edge, NONE where nothing did.
        start_ns: per node, its start.
    """

    edge: Int64Array
    others: Int64Array
    before: list[int]
    start_ns: list[int]


_KNOWN: WeakKeyDictionary[Arrivals, Binding] = WeakKeyDictionary()


def binding_of(graph: Graph, arrivals: Arrivals) -> Binding:
    """The binding edges of a schedule, found once."""
    if arrivals not in _KNOWN:
        _KNOWN[arrivals] = _binding(graph, arrivals)
    return _KNOWN[arrivals]


def _binding(graph: Graph, arrivals: Arrivals) -> Binding:
    binding = np.flatnonzero(arrivals.binds)
    src, dst = graph.src[binding], graph.dst[binding]
    best = binding[np.lexsort((src, -graph.dur_ns[src], graph.evidence[binding], dst))]
    edge = np.full(len(graph), NONE, np.int64)
    edge[graph.dst[best[::-1]]] = best[::-1]  # the first of each node is written last
    count = np.bincount(dst, minlength=len(graph))
    before = np.where(edge >= 0, graph.src[edge], NONE) if len(graph.src) else edge
    return Binding(edge, np.maximum(count - 1, 0), before.tolist(), graph.start_ns.tolist())


def chain(graph: Graph, arrivals: Arrivals, node: int, *, since_ns: int) -> Path:
    """The pieces that lead up to the end of one node, back to `since_ns`; paths are not counted."""
    return chains(graph, arrivals, [(node, since_ns)])[0]


def chains(graph: Graph, arrivals: Arrivals, ends: Sequence[tuple[int, int]]) -> tuple[Path, Int64Array]:
    """The pieces that lead up to the ends of several nodes, one chain after the other.

    Args:
        graph: the graph.
        arrivals: what binds.
        ends: of each chain, the node that it ends with, and the instant back to which it goes.

    Returns:
        All pieces, and of each the number of its chain; ties are those of all chains, paths are not counted.
    """
    binding = binding_of(graph, arrivals)
    walks = [_walk(binding, node, since) for node, since in ends]
    sizes = np.array([len(walked) for walked in walks], np.int64)
    node = np.fromiter(itertools.chain.from_iterable(map(reversed, walks)), np.int64, int(sizes.sum()))
    since = np.repeat(np.array([since for _, since in ends], np.int64), sizes)
    ties = int(binding.others[node[graph.start_ns[node] > since]].sum())
    path, of_node = _pieces(graph, arrivals, (node, since, np.cumsum(sizes) - sizes))
    return replace(path, ties=ties), np.repeat(np.arange(len(ends)), sizes)[of_node]


def _walk(binding: Binding, node: int, since: int) -> list[int]:
    """Nodes from last to first; the first begins before the window, or waited for the origin."""
    before, start = binding.before, binding.start_ns
    walked = [node]
    while start[node] > since and before[node] >= 0:
        node = before[node]
        walked.append(node)
    return walked


def _pieces(
    graph: Graph, arrivals: Arrivals, walked: tuple[Int64Array, Int64Array, Int64Array]
) -> tuple[Path, Int64Array]:
    """Each node with the lag and the gap in front of it, in time order, clipped to the window.

    Args:
        graph: the graph.
        arrivals: what binds.
        walked: nodes of one chain after the other, from first to last; when the window of each opens; and the
            places at which chains begin.

    Returns:
        The pieces, and the place among the nodes that each is of.
    """
    node, since, first = walked
    edge = binding_of(graph, arrivals).edge[node]
    start, unbound = graph.start_ns[node], edge < 0
    ready = start - arrivals.gap_ns[node]
    lag = np.where(unbound, 0, arrivals.phi_ns[edge]) if len(arrivals.phi_ns) else 0
    sent = ready - lag
    # A first node without an edge waited since the window opened, if that was before anything in the graph.
    waited = first[unbound[first] & (graph.t0_ns > since[first])]
    sent[waited] = since[waited]
    begins = np.stack((sent, ready, start), axis=1).ravel()
    ends = np.stack((ready, start, start + graph.dur_ns[node]), axis=1).ravel()
    kind = np.tile(np.array((PieceKind.LAG, PieceKind.GAP, PieceKind.NODE), np.int8), len(node))
    kind[3 * first[unbound[first]]] = PieceKind.GAP
    opens = np.repeat(since, 3)
    keep = (ends > opens) & ((ends > begins) | (kind == PieceKind.NODE))
    before = first[start[first] <= since[first]]
    keep[3 * before] = keep[3 * before + 1] = False  # what leads to a node that begins before the window
    kept = np.flatnonzero(keep)
    of_node = kept // 3
    clipped = np.maximum(begins, opens)[kept]
    return Path(kind[kept], node[of_node], edge[of_node], clipped, ends[kept], 0, 0), of_node


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
