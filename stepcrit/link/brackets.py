"""Ranges that lie in each other as brackets do are nested without a loop over them.

Of such ranges those that are open at an instant hold one another, so counting them gives the depth, and the
range around one is the latest before it that is one less deep. Where two ranges cross, that fails at the first
range which ends after the one around it, and the loop has to say what they are.
"""

from __future__ import annotations

import numpy as np

from stepcrit.model.arrays import NONE, Int32Array, Int64Array, order_of

WORTH_IT = 256
"""Fewer ranges than this are done sooner by a loop."""


def sweep_brackets(
    times: tuple[Int64Array, Int64Array],
    rows: Int64Array,
    extent: tuple[int, int],
    around: tuple[Int32Array, Int32Array],
    room: tuple[Int64Array, Int64Array, Int32Array],
) -> tuple[int, int] | None:
    """What `nesting.sweep` does, with its arguments; None, and nothing written, where two ranges cross."""
    start, end = (column[rows] for column in times)
    order = np.argsort(end, kind="stable")
    ends = end[order]
    if not rows.size or extent[0] > start[0] or extent[1] < ends[-1]:
        return None
    depth = np.arange(len(rows)) - np.searchsorted(ends, start, side="right") + _empty_from_here(start, end)
    parent = _latest_less_deep(depth)
    inner = np.flatnonzero(depth)
    if (end[inner] > end[parent[inner]]).any():
        return None
    instants = np.sort(np.concatenate((extent, start, ends)), kind="stable")  # ascending columns: merged
    instants = instants[np.diff(instants, prepend=instants[0] - 1) > 0]
    last = np.searchsorted(start, instants[:-1], side="right") - 1
    # Where the latest to start has ended, that which is around it (if it is empty) or around the outermost that ended.
    outermost = order[np.minimum(np.searchsorted(ends, instants[:-1]), len(rows) - 1)]
    after = np.where(start[last] == instants[:-1], parent[last], parent[outermost])
    owner = np.where(end[last] > instants[:-1], last, after)
    owner[last < 0] = NONE
    count = len(owner)
    tile_start, tile_end, tile_owner = room
    tile_start[:count], tile_end[:count] = instants[:-1], instants[1:]
    tile_owner[:count] = np.where(owner >= 0, rows[owner], NONE)
    around[0][rows], around[1][rows] = np.where(parent >= 0, rows[parent], NONE), depth
    return count, 0


def _empty_from_here(start: Int64Array, end: Int64Array) -> Int64Array:
    """For each range, how many empty ones of its start are not before it: they have ended by then, and did not close."""
    empty = start == end
    at, before = start[empty], np.cumsum(empty) - empty
    count: Int64Array = np.searchsorted(at, start, side="right") - before
    return count


def _latest_less_deep(depth: Int64Array) -> Int64Array:
    """For each range the latest one before it that is one less deep, NONE at the top."""
    by_depth = order_of(depth.astype(np.int32))
    place = depth[by_depth] * len(depth) + by_depth  # ascends
    found = np.searchsorted(place, place - len(depth)) - 1
    parent = np.empty(len(depth), np.int64)
    parent[by_depth] = np.where(depth[by_depth] > 0, by_depth[found], NONE)
    return parent
