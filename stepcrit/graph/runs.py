"""The forward pass without a loop over nodes: runs of nodes, each a running maximum (methods B.6).

Along a lane each start is the later of two: the start before plus what lies between, or the latest
arrival from elsewhere. With the lane's own lengths summed up and taken off, that is a running maximum,
which numpy does at once. A *run* is a stretch of one lane whose arrivals from elsewhere are all known
before it begins: a thread or queue from one place where it has to wait for another to the next. Runs are
found once for a graph; a replay then is a few array operations for each.

Where a graph falls into short runs, the loop over nodes is faster, and `runs_of` says so.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from msgspec import Struct

from stepcrit.model.arrays import NONE, Int64Array
from stepcrit.model.graph import Graph

WORTH_IT = 24
"""Mean nodes of a run from which on a few array operations take less time than a loop over them."""

NEVER = np.int64(-(2**62))
"""Before any time: the arrival from elsewhere where there is none."""

SAFE_NS = 2.0**60
"""Lengths that add up to less than this cannot overflow, whatever is taken off them."""


class Run(NamedTuple):
    """A stretch of a lane, by places.

    Attributes:
        own: its places.
        target: those of them that wait for other runs.
        edges: where the edges are by which they wait, and `src`, the places they come from.
        first: where in `edges` those of each target begin.
    """

    own: slice
    target: Int64Array
    edges: slice
    src: Int64Array
    first: Int64Array


class Runs(Struct, frozen=True, eq=False):
    """A graph's nodes, run after run, each run after all that it waits for.

    Attributes:
        order: node numbers; what follows counts places in it.
        inner: places that wait for the one before them in their run, and `along`, the edges between the two.
        edge: all other edges, by the place of their target; `src` and `dst`, the places at their ends.
        each: the runs.
    """

    order: Int64Array
    inner: Int64Array
    along: Int64Array
    edge: Int64Array
    src: Int64Array
    dst: Int64Array
    each: tuple[Run, ...]


_KNOWN: WeakKeyDictionary[Graph, Runs | None] = WeakKeyDictionary()


def runs_of(graph: Graph) -> Runs | None:
    """The runs of a graph, found once; None where the loop over nodes is faster."""
    if graph not in _KNOWN:
        _KNOWN[graph] = _found(graph)
    return _KNOWN[graph]


def starts_by_runs(
    graph: Graph, runs: Runs, dur_ns: Int64Array, lag_ns: Int64Array, origin_ns: Int64Array
) -> Int64Array | None:
    """What `schedule.forward` gives; None where lengths are so large that their sums might overflow.

    Args:
        graph: the graph.
        runs: of it.
        dur_ns: durations, per node.
        lag_ns: delays, per edge.
        origin_ns: delays of nodes without predecessor.
    """
    dur = dur_ns[runs.order]
    step = np.zeros(len(dur), np.int64)
    step[runs.inner] = lag_ns[runs.along] + dur[runs.inner - 1]
    if np.abs(step.astype(np.float64)).sum() > SAFE_NS:
        return None
    passed = np.cumsum(step)
    roots = (np.diff(graph.dst_ptr) == 0)[runs.order]
    # Less what has passed, starts along a run are a running maximum, and each other edge adds one number to them.
    start = np.where(roots, graph.t0_ns + origin_ns[runs.order], NEVER) - passed
    added = (passed + dur)[runs.src] + lag_ns[runs.edge] - passed[runs.dst]
    for own, target, edges, src, first in runs.each:
        if target.size:
            start[target] = np.maximum.reduceat(start[src] + added[edges], first)
        mine = start[own]
        np.maximum.accumulate(mine, out=mine)
    found = np.empty_like(start)
    found[runs.order] = start + passed
    return found


def _found(graph: Graph) -> Runs | None:
    """Runs by level, then lane: whatever a run waits for has a lower level, or is the same lane's."""
    by_lane = np.lexsort((np.arange(len(graph)), graph.lane))
    neighbours = graph.lane[by_lane[1:]] == graph.lane[by_lane[:-1]]
    before = np.full(len(graph), NONE, np.int64)
    before[by_lane[1:][neighbours]] = by_lane[:-1][neighbours]
    level = _levels(graph, before)
    order = np.lexsort((np.arange(len(graph)), graph.lane, level))
    linked = np.zeros(len(graph), np.bool_)
    linked[graph.dst[graph.src == before[graph.dst]]] = True
    first = ~linked[order]
    first[1:] |= (np.diff(level[order]) != 0) | (np.diff(graph.lane[order]) != 0)
    if first.sum() * WORTH_IT > len(graph):
        return None
    return _laid_out(graph, order, np.flatnonzero(first))


def _levels(graph: Graph, before: Int64Array) -> Int64Array:
    """How often the way to each node changes lanes at most, later nodes of a lane counting at least as much.

    Only edges from another lane are looked at: levels of a lane are kept as the places where they rise.
    """
    other = np.flatnonzero(graph.src != before[graph.dst])
    rises: dict[int, tuple[list[int], list[int]]] = {lane: ([-1], [0]) for lane in set(graph.lane.tolist())}
    src, dst = graph.src[other], graph.dst[other]
    columns = (src, graph.lane[src], dst, graph.lane[dst])
    for u, from_lane, v, to_lane in zip(*(column.tolist() for column in columns), strict=True):
        places, levels = rises[from_lane]
        level = levels[-1] if places[-1] <= u else levels[bisect_right(places, u) - 1]
        places, levels = rises[to_lane]
        if level >= levels[-1]:
            places.append(v)
            levels.append(level + 1)
    found = np.zeros(len(graph), np.int64)
    for lane, (places, levels) in rises.items():
        mine = np.flatnonzero(graph.lane == lane)
        found[mine] = np.array(levels, np.int64)[np.searchsorted(places, mine, side="right") - 1]
    return found


def _laid_out(graph: Graph, order: Int64Array, first: Int64Array) -> Runs:
    """Edges by the place of their target, those inside of runs apart."""
    place = np.empty(len(graph), np.int64)
    place[order] = np.arange(len(graph))
    src, dst = place[graph.src], place[graph.dst]
    run = np.zeros(len(graph), np.int64)
    run[first[1:]] = 1
    run = np.cumsum(run)
    inside = (src == dst - 1) & (run[src] == run[dst])
    along = np.flatnonzero(inside)
    inner = dst[along]
    edge = np.flatnonzero(~inside)
    edge = edge[np.argsort(dst[edge], kind="stable")]
    src, dst = src[edge], dst[edge]
    target, edge_from = np.unique(dst, return_index=True)
    starts = np.append(first, len(graph))
    bounds = (starts, np.searchsorted(target, starts), np.searchsorted(dst, starts))
    table = list(zip(*(column.tolist() for column in bounds), strict=True))
    each = tuple(
        Run(slice(a, b), target[t:u], slice(e, f), src[e:f], edge_from[t:u] - e)
        for (a, t, e), (b, u, f) in pairwise(table)
    )
    return Runs(order, inner, along, edge, src, dst, each)
