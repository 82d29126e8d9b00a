"""Loose nodes and edges become a Graph: topological numbering, and cycles named instead of guessed away."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np
from msgspec import Struct

from stepcrit.errors import UnusableInputError
from stepcrit.model.arrays import Int8Array, Int32Array, Int64Array, IntArray, freeze
from stepcrit.model.graph import Graph, Note


class Nodes(Struct, frozen=True, eq=False):
    """Node columns in any order (see model.graph.Graph)."""

    lane: Int32Array
    start_ns: Int64Array
    dur_ns: Int64Array
    kind: Int8Array
    row: Int64Array
    part: Int32Array

    def __len__(self) -> int:
        return len(self.start_ns)


class Edges(Struct, frozen=True, eq=False):
    """Edge columns in any order, ends as indices into `Nodes`."""

    src: Int64Array
    dst: Int64Array
    kind: Int8Array
    evidence: Int8Array


def columns_of(rows: Sequence[tuple[int, ...]], width: int) -> tuple[Int64Array, ...]:
    """Rows of so many whole numbers as columns."""
    table = np.fromiter(chain.from_iterable(rows), np.int64, len(rows) * width).reshape(-1, width)
    return tuple(np.ascontiguousarray(column) for column in table.T)


def edges_of(
    ends: tuple[IntArray, IntArray],
    kind: int | Int64Array,
    evidence: int | Int64Array,
    *,
    shift: tuple[int, int] = (0, 0),
) -> Edges:
    """Edges between what was found; none where an end is NONE.

    Args:
        ends: sources and targets.
        kind: of each edge, or of all.
        evidence: the same.
        shift: what to add to each source and each target.
    """
    src, dst = ends
    found = (src >= 0) & (dst >= 0)
    kinds, evidences = (np.broadcast_to(np.asarray(c, np.int8), src.shape)[found] for c in (kind, evidence))
    wide = (src[found].astype(np.int64), dst[found].astype(np.int64))
    return Edges(wide[0] + shift[0], wide[1] + shift[1], kinds, evidences)


def joined(*some: Edges) -> Edges:
    """All edges of several tables."""
    return Edges(
        np.concatenate([e.src for e in some]),
        np.concatenate([e.dst for e in some]),
        np.concatenate([e.kind for e in some]),
        np.concatenate([e.evidence for e in some]),
    )


def assemble(nodes: Nodes, edges: Edges, *, t0_ns: int, notes: Mapping[str, int]) -> tuple[Graph, Int64Array]:
    """Number the nodes topologically and sort the edges.

    Returns:
        The graph, and for each old node index its new number.

    Raises:
        UnusableInputError: the edges form more than one cycle.
    """
    counted = dict(notes)
    edges = _without_repeats(edges)
    order = _by_time(nodes, edges)
    if order is None:
        order, edges = _by_search(nodes, edges, counted)
    number = np.empty(len(nodes), np.int64)
    number[order] = np.arange(len(nodes))
    src, dst = number[edges.src], number[edges.dst]
    sort = np.lexsort((src, dst))
    src, dst = src[sort], dst[sort]
    graph = Graph(
        nodes.lane[order],
        nodes.start_ns[order],
        nodes.dur_ns[order],
        nodes.kind[order],
        nodes.row[order],
        nodes.part[order],
        src,
        dst,
        edges.kind[sort],
        edges.evidence[sort],
        np.searchsorted(dst, np.arange(len(nodes) + 1)),
        t0_ns,
        counted,
    )
    columns = (getattr(graph, name) for name in Graph.__struct_fields__)
    freeze(*(column for column in columns if isinstance(column, np.ndarray)))
    return graph, number


def _without_repeats(edges: Edges) -> Edges:
    """One edge for each (src, dst): the one with the best evidence, for two reasons to wait are one wait."""
    sort = np.lexsort((edges.kind, edges.evidence, edges.src, edges.dst))
    src, dst = edges.src[sort], edges.dst[sort]
    first = np.ones(len(src), np.bool_)
    first[1:] = (src[1:] != src[:-1]) | (dst[1:] != dst[:-1])
    keep = sort[first]
    return Edges(edges.src[keep], edges.dst[keep], edges.kind[keep], edges.evidence[keep])


def _by_time(nodes: Nodes, edges: Edges) -> Int64Array | None:
    """The order by (start, end, index), if it is topological: only zero-length nodes can spoil it."""
    order = np.lexsort((np.arange(len(nodes)), nodes.start_ns + nodes.dur_ns, nodes.start_ns))
    number = np.empty(len(nodes), np.int64)
    number[order] = np.arange(len(nodes))
    forward = bool((number[edges.src] < number[edges.dst]).all())
    return order.astype(np.int64) if forward else None


def _by_search(nodes: Nodes, edges: Edges, notes: dict[str, int]) -> tuple[Int64Array, Edges]:
    """Kahn's algorithm, earliest node first; one cycle may lose its worst edge, a second is refused."""
    for attempt in range(2):
        order = _kahn(nodes, edges)
        if len(order) == len(nodes):
            return order, edges
        if attempt == 0:
            worst = _worst_cycle_edge(edges, done=order, count=len(nodes))
            keep = np.arange(len(edges.src)) != worst
            edges = Edges(edges.src[keep], edges.dst[keep], edges.kind[keep], edges.evidence[keep])
            notes[Note.CYCLE] = 1
    raise UnusableInputError(
        "what this trace records contradicts itself in more than one place: an activity would wait for itself",
        do="look for correlation ids that several calls share, or record again",
    )


def _kahn(nodes: Nodes, edges: Edges) -> Int64Array:
    """As many nodes as can be ordered, by (start, end, index) among those that are ready."""
    indegree = np.bincount(edges.dst, minlength=len(nodes)).tolist()
    by_src = np.argsort(edges.src, kind="stable")
    ptr = np.searchsorted(edges.src[by_src], np.arange(len(nodes) + 1)).tolist()
    targets = edges.dst[by_src].tolist()
    start, end = nodes.start_ns.tolist(), (nodes.start_ns + nodes.dur_ns).tolist()
    ready = [(start[v], end[v], v) for v in range(len(nodes)) if not indegree[v]]
    heapq.heapify(ready)
    order = []
    while ready:
        *_, u = heapq.heappop(ready)
        order.append(u)
        for v in targets[ptr[u] : ptr[u + 1]]:
            indegree[v] -= 1
            if not indegree[v]:
                heapq.heappush(ready, (start[v], end[v], v))
    return np.array(order, np.int64)


def _worst_cycle_edge(edges: Edges, *, done: Int64Array, count: int) -> int:
    """The edge of worst evidence on a cycle among the nodes that could not be ordered."""
    left = np.ones(count, np.bool_)
    left[done] = False
    inside = np.flatnonzero(left[edges.src] & left[edges.dst])
    entering = {int(edges.dst[e]): int(e) for e in inside[::-1]}
    node = int(edges.dst[inside[0]])
    walked: list[int] = []
    seen: dict[int, int] = {}
    # Every node that is left has a predecessor that is left, so walking backwards must come around.
    while node not in seen:
        seen[node] = len(walked)
        walked.append(entering[node])
        node = int(edges.src[entering[node]])
    cycle = walked[seen[node] :]
    return max(cycle, key=lambda e: (int(edges.evidence[e]), e))
