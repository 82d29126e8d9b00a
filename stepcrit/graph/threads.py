"""Host threads cut into nodes: between two cuts one node, and none where the thread was blocked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from stepcrit.graph.claims import Claims
from stepcrit.intervals import ascending, covers, union
from stepcrit.kernels import COMPILED, chosen
from stepcrit.model.arrays import NONE, Int32Array, Int64Array
from stepcrit.model.events import EventTable
from stepcrit.model.links import Pieces


class Cuts(Struct):
    """Where one thread is cut, where it is blocked, and where it needs a node without length.

    Something hangs on `launches` and `anchors`, instants, from before.
    """

    launches: Int64Array = field(default_factory=lambda: np.empty(0, np.int64))
    at: set[int] = field(default_factory=set)
    blocked: list[tuple[int, int]] = field(default_factory=list)
    empty: set[int] = field(default_factory=set)
    anchors: set[int] = field(default_factory=set)
    sync: dict[int, int] = field(default_factory=dict)  # start of a sync node -> its call


class ThreadNodes(Struct, frozen=True, eq=False):
    """Nodes of all host threads by (lane, start, end).

    Attributes:
        lane, start_ns, end_ns: the nodes.
        row: the blocking call of a sync node, else the event that owns most of the node, or -1.
        is_sync: whether the node is the return of a blocking call.
        ptr: nodes of lane i are ptr[i]:ptr[i+1].
    """

    lane: Int64Array
    start_ns: Int64Array
    end_ns: Int64Array
    row: Int64Array
    is_sync: np.typing.NDArray[np.bool_]
    ptr: Int64Array

    def ending_by(self, lane: int, at_ns: int) -> int:
        """The last node of a thread that has ended by an instant, -1 when there is none."""
        low, high = int(self.ptr[lane]), int(self.ptr[lane + 1])
        # Nodes of a thread follow each other, so their ends ascend like their starts.
        i = int(np.searchsorted(self.end_ns[low:high], at_ns, side="right")) - 1
        return i + low if i >= 0 else NONE

    def all_ending_by(self, lane: Int64Array, at_ns: Int64Array) -> Int64Array:
        """The same for many instants at once."""
        found = np.full(len(lane), NONE, np.int64)
        for one in np.flatnonzero(np.bincount(lane)).tolist():
            low, high, mine = int(self.ptr[one]), int(self.ptr[one + 1]), np.flatnonzero(lane == one)
            place = np.searchsorted(self.end_ns[low:high], at_ns[mine], side="right") - 1
            found[mine] = np.where(place >= 0, place + low, NONE)
        return found

    def all_starting_from(self, lane: Int64Array, at_ns: Int64Array) -> Int64Array:
        """The first node of a thread that starts at or after each instant, -1 where there is none."""
        found = np.full(len(lane), NONE, np.int64)
        for one in np.flatnonzero(np.bincount(lane)).tolist():
            low, high, mine = int(self.ptr[one]), int(self.ptr[one + 1]), np.flatnonzero(lane == one)
            place = np.searchsorted(self.start_ns[low:high], at_ns[mine], side="left") + low
            found[mine] = np.where(place < high, place, NONE)
        return found


def collect_cuts(
    events: EventTable, claims: Claims, boundaries: Iterable[tuple[int, int]]
) -> dict[int, Cuts]:
    """Cuts per lane: launch points, waits, releases, hand-overs, and the instants that steps end at."""
    cuts: dict[int, Cuts] = defaultdict(Cuts)
    launched_by = claims.launch["lane"]
    order = np.argsort(launched_by, kind="stable")
    lanes, first = np.unique(launched_by[order], return_index=True)
    for lane_of, at_ns in zip(
        lanes.tolist(), np.split(claims.launch["at_ns"][order], first[1:]), strict=False
    ):
        cuts[lane_of].launches = at_ns
    for wait in claims.wait:
        end = int(events.end_ns[wait.call])
        lane = cuts[int(events.lane[wait.call])]
        lane.at.update((wait.from_ns, wait.until_ns, end))
        lane.blocked.append((wait.from_ns, wait.until_ns))
        lane.sync[wait.until_ns] = wait.call
        if end == wait.until_ns:
            lane.empty.add(end)
    for release in claims.release:
        cuts[release.lane].at.add(release.at_ns)
    for hand in claims.handover:
        cuts[hand.src_lane].at.add(hand.src_ns)
        cuts[hand.src_lane].anchors.add(hand.src_ns)
        cuts[hand.dst_lane].at.update((hand.idle_ns, hand.dst_ns))
        cuts[hand.dst_lane].blocked.append((hand.idle_ns, hand.dst_ns))
    for boundary_lane, at in boundaries:
        cuts[boundary_lane].at.add(at)
    return cuts


def cut_threads(pieces: Pieces, cuts: dict[int, Cuts], *, full: bool) -> ThreadNodes:
    """Nodes of every host thread.

    Args:
        pieces: the tiled threads.
        cuts: from `collect_cuts`.
        full: cut at every change of owner as well, so that each node has exactly one. Slack, drag and
            path are the same either way; the short form has several times fewer nodes.
    """
    columns: list[tuple[Int64Array, ...]] = []
    for lane in range(len(pieces.lane_ptr) - 1):
        low, high = int(pieces.lane_ptr[lane]), int(pieces.lane_ptr[lane + 1])
        if low < high:
            columns.append(_cut_lane(pieces, lane, cuts.get(lane, Cuts()), full=full))
    lane_of, start, end, row, sync = (
        np.concatenate([c[i] for c in columns]) if columns else np.empty(0, np.int64) for i in range(5)
    )
    ptr = np.searchsorted(lane_of, np.arange(len(pieces.lane_ptr))).astype(np.int64)
    return ThreadNodes(lane_of, start, end, row, sync.astype(np.bool_), ptr)


def no_pieces(like: Pieces) -> Pieces:
    """Threads without any piece: the host left out of the graph."""
    none = np.empty(0, np.int64)
    return Pieces(none, none, none.astype(np.int32), np.zeros_like(like.lane_ptr))


def _cut_lane(pieces: Pieces, lane: int, cuts: Cuts, *, full: bool) -> tuple[Int64Array, ...]:
    """Lane, start, end, row and is_sync of one thread's nodes."""
    low, high = int(pieces.lane_ptr[lane]), int(pieces.lane_ptr[lane + 1])
    first, last = int(pieces.start_ns[low]), int(pieces.end_ns[high - 1])
    others = np.array((first, last, *cuts.at), np.int64)
    bounds = ascending(np.concatenate((others, cuts.launches, pieces.start_ns[low : high if full else low])))
    at = bounds[(bounds >= first) & (bounds <= last)]
    start, end = at[:-1], at[1:]
    free = ~covers(union(*_columns(cuts.blocked)), start)
    # A launch from the very first instant of a thread needs something to hang on: an empty marker.
    needed = {first} if first in cuts.anchors or (cuts.launches == first).any() else set()
    empty = np.array(sorted(cuts.empty | needed), np.int64)
    start, end = np.concatenate((start[free], empty)), np.concatenate((end[free], empty))
    order = np.lexsort((end, start))
    start, end = start[order], end[order]
    row = _main_owner(pieces, (low, high), start, end)
    is_sync = _sync_rows(cuts, start, row)
    return np.full(len(start), lane, np.int64), start, end, row, is_sync


def _columns(pairs: list[tuple[int, int]]) -> tuple[Int64Array, Int64Array]:
    both = np.array(pairs, np.int64).reshape(-1, 2)
    return both[:, 0], both[:, 1]


def _sync_rows(cuts: Cuts, start: Int64Array, row: Int64Array) -> Int64Array:
    """Give sync nodes their call as owner; returns 1 for each sync node."""
    is_sync = np.zeros(len(start), np.int64)
    at, call = (np.fromiter(some, np.int64, len(cuts.sync)) for some in (cuts.sync, cuts.sync.values()))
    i = np.searchsorted(start, at, side="left")
    known = np.flatnonzero(i < len(start))
    known = known[start[i[known]] == at[known]]
    row[i[known]], is_sync[i[known]] = call[known], 1
    return is_sync


def _main_owner(pieces: Pieces, span: tuple[int, int], start: Int64Array, end: Int64Array) -> Int64Array:
    """The event that owns the longest single piece of each node, -1 for untracked time."""
    node, piece, length = _overlaps(pieces, span, start, end)
    row = np.full(len(start), NONE, np.int64)
    if node.size:
        first = np.diff(node, prepend=NONE) != 0
        longest = np.maximum.reduceat(length, np.flatnonzero(first))[np.cumsum(first) - 1]
        most = np.flatnonzero(length == longest)
        row[node[most]] = pieces.owner[piece[most]]  # of several, the last stays
    return row


def _overlaps(
    pieces: Pieces, span: tuple[int, int], start: Int64Array, end: Int64Array
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """(node, piece, length) of every overlap of a thread's nodes with its pieces, in time order."""
    low, high = span
    nodes, tiles = (start, end), (pieces.start_ns[low:high], pieces.end_ns[low:high])
    node, piece, length = overlaps(nodes, tiles)
    return node, piece + low, length


Spans = tuple[Int64Array, Int64Array]
"""Starts and ends, ascending; none begins before the one before it has ended."""


def overlaps(spans: Spans, tiles: Spans) -> tuple[Int64Array, Int64Array, Int64Array]:
    """(span, tile, length) of every overlap of spans with tiles, which touch, in time order."""
    if chosen() != COMPILED:
        return overlaps_plainly(spans, tiles)
    from stepcrit.kernels import _schedule  # noqa: PLC0415 - where it is built

    found = np.empty((3, len(spans[0]) + len(tiles[0])), np.int64)
    count = _schedule.overlaps(*spans, *tiles, *found)
    one, tile, length = found[:, :count]
    return one, tile, length


def overlaps_plainly(spans: Spans, tiles: Spans) -> tuple[Int64Array, Int64Array, Int64Array]:
    """The same in numpy: every overlap begins at a span's start, or at a tile's start inside a span."""
    (start, end), (tile_start, tile_end) = spans, tiles
    count = len(tile_start)
    one = np.concatenate((np.arange(len(start)), np.searchsorted(start, tile_start, side="right") - 1))
    tile = np.concatenate((np.searchsorted(tile_start, start, side="right") - 1, np.arange(count)))
    inside = (one >= 0) & (tile >= 0)
    bits = count.bit_length()
    both = np.sort((one[inside] << bits) | tile[inside], kind="stable")  # two ascending columns: merged
    both = both[np.diff(both, prepend=NONE) != 0]  # what starts together meets once
    one, tile = both >> bits, both & ((1 << bits) - 1)
    length = np.minimum(end[one], tile_end[tile]) - np.maximum(start[one], tile_start[tile])
    some = length > 0
    return one[some], tile[some], length[some]


class Shares(Struct, frozen=True, eq=False):
    """How each host node's time divides among the events that own it; one row per overlap."""

    node: Int32Array  # index into ThreadNodes
    owner: Int32Array  # event row, -1 untracked
    length_ns: Int64Array
    piece: Int32Array  # index into the pieces


_SHARE_TYPES = (np.int32, np.int32, np.int64, np.int32)


def shares(pieces: Pieces, threads: ThreadNodes) -> Shares:
    """Divide all host nodes among their owners; the return of a blocking call belongs to the call."""
    columns: list[tuple[NDArray[Any], ...]] = [tuple(np.empty(0, kind) for kind in _SHARE_TYPES)]
    for lane in range(len(threads.ptr) - 1):
        low, high = int(threads.ptr[lane]), int(threads.ptr[lane + 1])
        if low < high:
            span = (int(pieces.lane_ptr[lane]), int(pieces.lane_ptr[lane + 1]))
            node, piece, length = _overlaps(
                pieces, span, threads.start_ns[low:high], threads.end_ns[low:high]
            )
            owner = pieces.owner[piece]
            columns.append(((node + low).astype(np.int32), owner, length, piece.astype(np.int32)))
    every = Shares(*(np.concatenate(some) for some in zip(*columns, strict=True)))
    returns = np.flatnonzero(threads.is_sync[every.node])
    every.owner[returns] = threads.row[every.node[returns]]
    return every
