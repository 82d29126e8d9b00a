"""Slack and drag: how much an activity may grow for free, and what removing it would save (methods B.8).

Total slack is shared along a chain; free slack delays nobody at all. Drag is what the step would gain
if this one activity took no time: zero off the critical path, and capped by what runs beside it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from msgspec import Struct

from stepcrit.graph.schedule import FAR, Lags, latest_finish
from stepcrit.kernels import COMPILED, chosen
from stepcrit.model.arrays import BoolArray, Int64Array
from stepcrit.model.graph import Graph

UNNEEDED = -1
"""The slack of an activity that the chosen boundary does not need."""


class Slack(Struct, frozen=True, eq=False):
    """Per node, in ns; UNNEEDED where no sink depends on the node.

    Attributes:
        total_ns: how much the node alone may grow before the boundary moves.
        free_ns: how much it may grow before any successor the boundary needs moves.
    """

    total_ns: Int64Array
    free_ns: Int64Array


def slack(graph: Graph, delays: Lags, sinks: Mapping[int, int]) -> Slack:
    """Slack of every node against the sinks' finishing times."""
    late = latest_finish(graph, graph.dur_ns, delays, sinks)
    needed = late < FAR
    end = graph.end_ns
    total = np.where(needed, late - end, UNNEEDED)
    room = np.full(len(graph), FAR, np.int64)
    for node, by in sinks.items():
        room[node] = by - end[node]
    live = needed[graph.dst]
    spare = graph.start_ns[graph.dst] - delays.edge_ns - end[graph.src]
    np.minimum.at(room, graph.src[live], spare[live])
    return Slack(total, np.where(needed, room, UNNEEDED))


class Drag(Struct, frozen=True, eq=False):
    """Per node, in ns: drag and gap drag, and the longest path that avoids the node altogether."""

    drag_ns: Int64Array
    gap_drag_ns: Int64Array
    avoid_ns: Int64Array


def drag(graph: Graph, delays: Lags, gap_ns: Int64Array, sinks: Mapping[int, int]) -> Drag:
    """Drag of every node in O((V+E) log E), by painting spanning edges.

    With nodes in topological order, a path that avoids n must jump over n's position by an edge
    (u, v) with u < n < v, and any path through such an edge avoids n. So the longest path that
    avoids n is the largest `finish(u) + lag + tail(v)` over the edges that span n. Virtual edges
    from the source to the roots and from the sinks to the end take part.

    Args:
        graph: the graph.
        delays: from `schedule.lags`.
        gap_ns: residual gap of each node (`Arrivals.gap_ns`), for gap drag.
        sinks: node -> its finishing time; the largest is the boundary.
    """
    boundary = max(sinks.values())
    late = latest_finish(graph, graph.dur_ns, delays, dict.fromkeys(sinks, boundary))
    needed = late < FAR
    # tail(v): longest way from the start of v to the end, so that start + tail = longest path through v.
    tail = boundary - (late - graph.dur_ns)
    through = np.where(needed, graph.start_ns + tail, 0)
    avoid = _avoid(graph, delays, tail, needed, sinks)
    on_path = needed & (through == boundary)
    saved = np.where(on_path, boundary - np.maximum(avoid, through - graph.dur_ns), 0)
    gap_saved = np.where(on_path, boundary - np.maximum(avoid, through - gap_ns), 0)
    return Drag(saved, gap_saved, avoid)


def _avoid(
    graph: Graph, delays: Lags, tail: Int64Array, needed: BoolArray, sinks: Mapping[int, int]
) -> Int64Array:
    """The finish of the longest path that avoids each node."""
    n = len(graph)
    live = needed[graph.dst]
    roots = np.flatnonzero((np.diff(graph.dst_ptr) == 0) & needed)
    ends = np.fromiter(sinks, np.int64, len(sinks))
    left = np.concatenate((graph.src[live], np.full(len(roots), -1), ends))
    right = np.concatenate((graph.dst[live], roots, np.full(len(ends), n)))
    value = np.concatenate(
        (
            (graph.end_ns[graph.src] + delays.edge_ns + tail[graph.dst])[live],
            graph.start_ns[roots] + tail[roots],
            graph.end_ns[ends],
        )
    )
    return _paint(n, left, right, value, graph.t0_ns)


def _paint(n: int, left: Int64Array, right: Int64Array, value: Int64Array, nothing: int) -> Int64Array:
    """For each position, the largest value of an open interval (left, right) around it."""
    wide = right - left > 1  # an edge between neighbours spans nobody
    left, right, value = left[wide], right[wide], value[wide]
    order = np.argsort(-value, kind="stable")
    return painted(n, (left[order], right[order], value[order]), nothing)


Intervals = tuple[Int64Array, Int64Array, Int64Array]
"""Left and right ends, which are not part of them, and values."""


def painted(n: int, intervals: Intervals, nothing: int) -> Int64Array:
    """For each position, the value of the first interval around it."""
    if chosen() != COMPILED:
        return painted_plainly(n, intervals, nothing)
    from stepcrit.kernels import _schedule  # noqa: PLC0415 - where it is built

    best = np.full(n, nothing, np.int64)
    _schedule.paint(*intervals, best)
    return best


def painted_plainly(n: int, intervals: Intervals, nothing: int) -> Int64Array:
    """The same in Python: the definition."""
    best = [nothing] * n
    following = list(range(n + 1))  # union-find: the next position not painted yet
    left, right, value = (column.tolist() for column in intervals)
    for a, b, worth in zip(left, right, value, strict=True):
        at = _find(following, a + 1)
        while at < b:
            best[at] = worth
            following[at] = at + 1
            at = _find(following, at + 1)
    return np.array(best, np.int64)


def _find(following: list[int], at: int) -> int:
    """The first unpainted position from `at` on, with path halving."""
    while following[at] != at:
        following[at] = following[following[at]]
        at = following[at]
    return at
