"""Nesting per thread, and threads cut into pieces with one owner each.

Real threads do not always nest: a runtime call may stick out of its operator by a rounding error, an
annotation may close after the range around it. So nothing here assumes proper nesting: the owner of
an instant is the open event that started last, and the pieces tile the thread whatever crosses.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepcrit.kernels import COMPILED, chosen
from stepcrit.model.arrays import NONE, BoolArray, Int32Array, Int64Array
from stepcrit.model.events import EventTable
from stepcrit.model.links import Pieces

_NEVER = 2**63
"""After any end."""


class Nesting(Struct, frozen=True, eq=False):
    """Parent and depth per row, pieces per lane, and how many ranges outlive their parent."""

    parent: Int64Array
    depth: Int32Array
    pieces: Pieces
    crossing_count: int


def nest(
    events: EventTable,
    rows: Int64Array,
    lane: Int32Array | None = None,
    *,
    see_through: BoolArray | None = None,
) -> Nesting:
    """Nest `rows` by containment on each lane.

    Args:
        events: the table; its order (start, -end, file order) puts every range before what it holds.
        rows: the rows that take part, ascending; others get no parent.
        lane: lane of each row, when it is not the table's own.
        see_through: rows that own no time and hold nothing, though a thread extends over them: time that
            only they cover is untracked.
    """
    solid = np.ones(len(events), np.bool_) if see_through is None else ~see_through
    lanes = events.lane if lane is None else lane
    rows = rows[np.argsort(lanes[rows], kind="stable")]
    parent = np.full(len(events), NONE, np.int64)
    depth = np.zeros(len(events), np.int32)
    swept: list[tuple[int, Sweep]] = []
    bounds = np.flatnonzero(np.diff(lanes[rows])) + 1
    for group in np.split(rows, bounds) if rows.size else ():
        extent = int(events.start_ns[group].min()), int(events.end_ns[group].max())
        inside = group[solid[group]]
        found = sweep(events.start_ns[inside], events.end_ns[inside], extent)
        parent[inside], depth[inside] = _at(inside, found.parent), found.depth
        swept.append((int(lanes[group[0]]), replace(found, owner=_at(inside, found.owner))))
    return Nesting(
        parent, depth, _pieces(swept, len(events.lanes)), sum(one.crossing_count for _, one in swept)
    )


class Sweep(Struct, frozen=True, eq=False):
    """What a sweep over one thread finds; ranges by their place.

    Attributes:
        parent: the range around each, NONE where there is none.
        depth: how many ranges are open around each.
        start_ns, end_ns, owner: the pieces; owner NONE where nothing is open.
        crossing_count: how many ranges end after the one around them.
    """

    parent: Int64Array
    depth: Int64Array
    start_ns: Int64Array
    end_ns: Int64Array
    owner: Int64Array
    crossing_count: int


def sweep(start_ns: Int64Array, end_ns: Int64Array, extent: tuple[int, int]) -> Sweep:
    """Sweep one thread's ranges, sorted by (start, -end), from one instant to another, with a stack."""
    if chosen() != COMPILED:
        return sweep_plainly(start_ns, end_ns, extent)
    from stepcrit.kernels import _nesting  # noqa: PLC0415 - where it is built

    n = len(start_ns)
    columns = [np.empty(size, np.int64) for size in (n, n, 2 * n + 1, 2 * n + 1, 2 * n + 1)]
    count, crossing = _nesting.sweep(start_ns, end_ns, *extent, *columns)
    parent, depth, start, end, owner = columns
    return Sweep(parent, depth, start[:count].copy(), end[:count].copy(), owner[:count].copy(), crossing)


def sweep_plainly(start_ns: Int64Array, end_ns: Int64Array, extent: tuple[int, int]) -> Sweep:
    """The same in Python: the definition."""
    opened = [(_NEVER, NONE)]  # (end, place) by start; the bottom stays
    now, until = extent
    parent, depth, crossing = [], [], 0
    tile_start, tile_end, tile_owner = list[int](), list[int](), list[int]()
    places = range(len(start_ns) + 1)
    starts, ends = [*start_ns.tolist(), until], [*end_ns.tolist(), until]
    for place, start, end in zip(places, starts, ends, strict=True):
        # Close what has ended, latest started first: the time up to each end is its owner's.
        while opened[-1][0] <= start:
            ended, owner = opened.pop()
            if ended > now:
                tile_start.append(now)
                tile_end.append(ended)
                tile_owner.append(owner)
                now = ended
        top_end, top = opened[-1]
        if start > now:
            tile_start.append(now)
            tile_end.append(start)
            tile_owner.append(top)
            now = start
        parent.append(top)
        depth.append(len(opened) - 1)
        crossing += end > top_end
        opened.append((end, place))
    return Sweep(
        np.array(parent[:-1], np.int64),
        np.array(depth[:-1], np.int64),
        np.array(tile_start, np.int64),
        np.array(tile_end, np.int64),
        np.array(tile_owner, np.int64),
        crossing,
    )


def _at(rows: Int64Array, places: Int64Array) -> Int64Array:
    """The rows at some places, NONE where there is no place."""
    if not rows.size:
        return places
    return np.where(places >= 0, rows[np.maximum(places, 0)], NONE)


def _pieces(swept: Sequence[tuple[int, Sweep]], lane_count: int) -> Pieces:
    """Columns, already in (lane, start) order because lanes are swept one after another."""
    none = np.empty(0, np.int64)
    lanes = [np.full(len(one.start_ns), lane, np.int32) for lane, one in swept]
    lane = np.concatenate([none.astype(np.int32), *lanes])
    return Pieces(
        lane,
        np.concatenate([none, *(one.start_ns for _, one in swept)]),
        np.concatenate([none, *(one.end_ns for _, one in swept)]),
        np.concatenate([none, *(one.owner for _, one in swept)]),
        np.searchsorted(lane, np.arange(lane_count + 1)).astype(np.int64),
    )


def inherit(own: Int64Array, parent: Int64Array) -> Int64Array:
    """Each row's own value, or else the nearest ancestor's; -1 where none has one.

    Each empty row looks at its parent, then at the parent's parent, then twice as far up each time, so that
    the work is a few passes, however deep rows are nested.
    """
    value, above = own.copy(), parent.copy()
    left = np.flatnonzero((value < 0) & (above >= 0))
    while left.size:
        nearest = above[left]
        value[left] = value[nearest]
        above[left] = above[nearest]
        left = left[(value[left] < 0) & (above[left] >= 0)]
    return value


def owner_at(pieces: Pieces, lane: int, at_ns: Int64Array) -> Int64Array:
    """The owner of each instant on one lane, -1 outside its pieces and where nothing is open."""
    low, high = int(pieces.lane_ptr[lane]), int(pieces.lane_ptr[lane + 1])
    owner = np.full(len(at_ns), NONE, np.int64)
    if low == high:
        return owner
    i = np.searchsorted(pieces.start_ns[low:high], at_ns, side="right") - 1 + low
    inside = (i >= low) & (at_ns < pieces.end_ns[np.maximum(i, low)])
    owner[inside] = pieces.owner[i[inside]]
    return owner
