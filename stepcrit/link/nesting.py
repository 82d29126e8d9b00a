"""Nesting per thread, and threads cut into pieces with one owner each.

Real threads do not always nest: a runtime call may stick out of its operator by a rounding error, an
annotation may close after the range around it. So nothing here assumes proper nesting: the owner of
an instant is the open event that started last, and the pieces tile the thread whatever crosses.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TypeAlias

import numpy as np
from msgspec import Struct

from stepcrit.kernels import COMPILED, chosen
from stepcrit.link.brackets import WORTH_IT, sweep_brackets
from stepcrit.model.arrays import NONE, BoolArray, Int32Array, Int64Array, IntArray, order_of
from stepcrit.model.events import EventTable
from stepcrit.model.links import Pieces

_NEVER = 2**63
"""After any end."""

Room: TypeAlias = tuple[Int64Array, Int64Array, Int32Array]
"""Columns for starts, ends and owners of pieces."""


class Nesting(Struct, frozen=True, eq=False):
    """Parent and depth per row, pieces per lane, and how many ranges outlive their parent."""

    parent: Int32Array
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
    lanes = events.lane if lane is None else lane
    rows = rows[order_of(lanes[rows])]
    of_row = lanes[rows]
    bounds = [0, *(np.flatnonzero(of_row[1:] != of_row[:-1]) + 1).tolist(), len(rows)]
    solid = None if see_through is None or not see_through.any() else ~see_through
    parent, depth = np.full(len(events), NONE, np.int32), np.zeros(len(events), np.int32)
    tiles = _Tiles(2 * len(rows) + len(bounds), len(events.lanes))
    crossing = 0
    for low, high in pairwise(bounds) if rows.size else ():
        group = rows[low:high]
        extent = int(events.start_ns[group[0]]), int(events.end_ns[group].max())
        inside = group if solid is None else group[solid[group]]
        room = tiles.room(2 * len(inside) + 1)
        count, crossed = sweep((events.start_ns, events.end_ns), inside, extent, (parent, depth), room)
        tiles.take(count, int(of_row[low]))
        crossing += crossed
    return Nesting(parent, depth, tiles.pieces(), crossing)


class _Tiles:
    """Columns of pieces that are filled lane by lane."""

    def __init__(self, most: int, lane_count: int) -> None:
        self._bounds = np.empty((2, most), np.int64)
        self._owner = np.empty(most, np.int32)
        self._of_lane = np.zeros(lane_count, np.int64)
        self._count = 0

    def room(self, size: int) -> Room:
        """Where the next lane's pieces go."""
        mine = slice(self._count, self._count + size)
        return self._bounds[0, mine], self._bounds[1, mine], self._owner[mine]

    def take(self, count: int, lane: int) -> None:
        """So many of them were filled."""
        self._count += count
        self._of_lane[lane] = count

    def pieces(self) -> Pieces:
        """All that were filled, in (lane, start) order because lanes come one after another."""
        start, end = self._bounds[:, : self._count]
        lane_ptr = np.concatenate(([0], np.cumsum(self._of_lane)))
        return Pieces(start, end, self._owner[: self._count], lane_ptr)


def sweep(
    times: tuple[Int64Array, Int64Array],
    rows: Int64Array,
    extent: tuple[int, int],
    around: tuple[Int32Array, Int32Array],
    room: Room,
) -> tuple[int, int]:
    """Sweep one thread's ranges from one instant to another, with a stack.

    Args:
        times: starts and ends of all rows.
        rows: the thread's ranges, sorted by (start, -end).
        extent: the instants.
        around: columns of all rows; of `rows` they get the parent, NONE where there is none, and the depth.
        room: gets starts, ends and owners of pieces, NONE where nothing is open; twice as long as `rows`, and one.

    Returns:
        How many pieces there are, and how many ranges end after the one around them.
    """
    if chosen() != COMPILED:
        found = sweep_brackets(times, rows, extent, around, room) if len(rows) >= WORTH_IT else None
        return found or sweep_plainly(times, rows, extent, around, room)
    from stepcrit.kernels import _nesting  # noqa: PLC0415 - where it is built

    start, end, owner = room
    return _nesting.sweep(*times, rows, *extent, *around, start, end, owner)


def sweep_plainly(
    times: tuple[Int64Array, Int64Array],
    rows: Int64Array,
    extent: tuple[int, int],
    around: tuple[Int32Array, Int32Array],
    room: Room,
) -> tuple[int, int]:
    """The same in Python, range by range: the definition."""
    opened = [(_NEVER, NONE)]  # (end, row) by start; the bottom stays
    now, until = extent
    parents, depths, crossing = list[int](), list[int](), 0
    tile_start, tile_end, tile_owner = list[int](), list[int](), list[int]()
    starts, ends = ([*column[rows].tolist(), until] for column in times)
    for row, start, end in zip([*rows.tolist(), NONE], starts, ends, strict=True):
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
        parents.append(top)
        depths.append(len(opened) - 1)
        crossing += end > top_end
        opened.append((end, row))
    parent, depth = around
    parent[rows], depth[rows] = parents[:-1], depths[:-1]
    count = len(tile_owner)
    of_start, of_end, of_owner = room
    of_start[:count], of_end[:count], of_owner[:count] = tile_start, tile_end, tile_owner
    return count, crossing


def inherit(own: IntArray, parent: Int32Array) -> Int32Array:
    """Each row's own value, or else the nearest ancestor's; -1 where none has one.

    Args:
        own: values, rows or codes, below 0 where a row has none.
        parent: of each row, an earlier one, or -1.
    """
    return _inherited(own.astype(np.int32), parent)


def inherit_from(rows: Int64Array, values: IntArray, parent: Int32Array) -> Int32Array:
    """The same where only some rows have a value of their own."""
    own = np.full(len(parent), NONE, np.int32)
    own[rows] = values
    return _inherited(own, parent) if len(rows) else own


def _inherited(value: Int32Array, parent: Int32Array) -> Int32Array:
    """What rows inherit, in place of their own values where a compiled kernel does it."""
    if chosen() != COMPILED:
        return inherit_plainly(value, parent)
    from stepcrit.kernels import _nesting  # noqa: PLC0415 - where it is built

    _nesting.inherit(parent, value)
    return value


def inherit_plainly(own: Int32Array, parent: Int32Array) -> Int32Array:
    """The same without a compiled kernel.

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


def owner_at(pieces: Pieces, lane: int, at_ns: Int64Array) -> Int32Array:
    """The owner of each instant on one lane, -1 outside its pieces and where nothing is open."""
    low, high = int(pieces.lane_ptr[lane]), int(pieces.lane_ptr[lane + 1])
    owner = np.full(len(at_ns), NONE, np.int32)
    if low == high:
        return owner
    i = np.searchsorted(pieces.start_ns[low:high], at_ns, side="right") - 1 + low
    inside = (i >= low) & (at_ns < pieces.end_ns[np.maximum(i, low)])
    owner[inside] = pieces.owner[i[inside]]
    return owner
