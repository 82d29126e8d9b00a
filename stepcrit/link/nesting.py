"""Nesting per thread, and threads cut into pieces with one owner each.

Real threads do not always nest: a runtime call may stick out of its operator by a rounding error, an
annotation may close after the range around it. So nothing here assumes proper nesting: the owner of
an instant is the open event that started last, and the pieces tile the thread whatever crosses.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from stepcrit.model.arrays import NONE, BoolArray, Int32Array, Int64Array
from stepcrit.model.events import EventTable
from stepcrit.model.links import Pieces


@dataclass(frozen=True, slots=True, eq=False)
class Nesting:
    """Parent and depth per row, pieces per lane, and how many ranges outlive their parent."""

    parent: Int64Array
    depth: Int32Array
    pieces: Pieces
    crossing_count: int


@dataclass(slots=True)
class _Tiles:
    """Pieces under construction."""

    lane: list[int] = field(default_factory=list)
    start: list[int] = field(default_factory=list)
    end: list[int] = field(default_factory=list)
    owner: list[int] = field(default_factory=list)

    def add(self, lane: int, start: int, end: int, owner: int) -> None:
        if end > start:
            self.lane.append(lane)
            self.start.append(start)
            self.end.append(end)
            self.owner.append(owner)


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
    tiles = _Tiles()
    crossing = 0
    bounds = np.flatnonzero(np.diff(lanes[rows])) + 1
    for group in np.split(rows, bounds) if rows.size else ():
        extent = int(events.start_ns[group].min()), int(events.end_ns[group].max())
        inside = group[solid[group]]
        crossing += _nest_lane(events, inside, (int(lanes[group[0]]), *extent), (parent, depth, tiles))
    return Nesting(parent, depth, _pieces(tiles, len(events.lanes)), crossing)


def _nest_lane(
    events: EventTable,
    rows: Int64Array,
    extent: tuple[int, int, int],
    out: tuple[Int64Array, Int32Array, _Tiles],
) -> int:
    """Sweep one (lane, from, until) with a stack; returns how many ranges end after the one around them."""
    parent, depth, tiles = out
    opened: list[tuple[int, int]] = []  # (end, row), by start
    lane, now, until = extent
    crossing = 0
    starts, ends = events.start_ns[rows].tolist(), events.end_ns[rows].tolist()
    for row, start, end in zip(rows.tolist(), starts, ends, strict=True):
        now = _close(opened, start, now, (lane, tiles))
        if opened:
            top_end, top = opened[-1]
            parent[row], depth[row] = top, len(opened)
            crossing += end > top_end
            tiles.add(lane, now, start, top)
        else:
            tiles.add(lane, now, start, NONE)
        now = max(now, start)
        opened.append((end, row))
    now = _close(opened, until, now, (lane, tiles))
    tiles.add(lane, now, until, NONE)
    return crossing


def _close(opened: list[tuple[int, int]], until: int, now: int, out: tuple[int, _Tiles]) -> int:
    """Close what ended by `until`, latest started first; the time up to each end is its owner's."""
    lane, tiles = out
    while opened and opened[-1][0] <= until:
        end, row = opened.pop()
        tiles.add(lane, now, end, row)
        now = max(now, end)
    return now


def _pieces(tiles: _Tiles, lane_count: int) -> Pieces:
    """Columns, already in (lane, start) order because lanes are swept one after another."""
    lane = np.array(tiles.lane, np.int32)
    return Pieces(
        lane,
        np.array(tiles.start, np.int64),
        np.array(tiles.end, np.int64),
        np.array(tiles.owner, np.int64),
        np.searchsorted(lane, np.arange(lane_count + 1)).astype(np.int64),
    )


def inherit(own: Int64Array, parent: Int64Array, depth: Int32Array) -> Int64Array:
    """Each row's own value, or else the nearest ancestor's; -1 where none has one.

    Goes down level by level, so that the work is one numpy pass per nesting depth.
    """
    value = own.copy()
    for level in range(1, int(depth.max(initial=0)) + 1):
        rows = np.flatnonzero((depth == level) & (parent >= 0))
        empty = rows[value[rows] < 0]
        value[empty] = value[parent[empty]]
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
