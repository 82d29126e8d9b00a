"""Nesting against an oracle that looks at one instant at a time; ranges cross at will."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stepcrit.link.nesting import Nesting, inherit, nest, owner_at
from stepcrit.model.arrays import NONE
from stepcrit.model.events import HOST_KINDS, EventTable
from tests.builders import table
from tests.properties.schedules import PROPERTY

THREADS = 3
LATEST = 24
_CATS = st.sampled_from(("cpu_op", "cpu_op", "user_annotation", "cuda_runtime", "python_function"))
_RANGE = st.tuples(st.integers(0, THREADS - 1), st.integers(0, 14), st.integers(0, 10), _CATS)
TABLES = st.lists(_RANGE, max_size=12).map(
    lambda rows: table(
        [
            {"name": f"r{i}", "cat": cat, "ts": start, "dur": dur, "pid": 1, "tid": tid}
            for i, (tid, start, dur, cat) in enumerate(rows)
        ],
        scale=1,
    )
)


class Truth:
    """Who takes part on which lane, and who is open when, by scanning every row."""

    def __init__(self, events: EventTable, lanes: list[int]) -> None:
        self.start, self.end = events.start_ns.tolist(), events.end_ns.tolist()
        taking_part = np.flatnonzero(events.is_kind(*HOST_KINDS)).tolist()
        self.rows = {lane: [r for r in taking_part if lanes[r] == lane] for lane in sorted(set(lanes))}

    def open_at(self, lane: int, at: int, before: int = 10**9) -> int:
        """The open range that started last; of equal starts the later row, which is the inner one."""
        open_ = [r for r in self.rows.get(lane, ()) if self.start[r] <= at < self.end[r] and r < before]
        return max(open_, key=lambda r: (self.start[r], r), default=NONE)


def nested(events: EventTable) -> Nesting:
    """The host ranges of a table, nested on its own lanes."""
    return nest(events, np.flatnonzero(events.is_kind(*HOST_KINDS)))


@PROPERTY
@given(TABLES)
def test_every_instant_belongs_to_the_open_range_that_started_last(events: EventTable) -> None:
    truth, pieces = Truth(events, events.lane.tolist()), nested(events).pieces
    for lane in range(len(events.lanes)):
        mine = range(int(pieces.lane_ptr[lane]), int(pieces.lane_ptr[lane + 1]))
        for i in mine:
            instants = range(int(pieces.start_ns[i]), int(pieces.end_ns[i]))
            assert {truth.open_at(lane, t) for t in instants} == {int(pieces.owner[i])}


@PROPERTY
@given(TABLES)
def test_pieces_touch_and_cover_each_lane_from_first_start_to_last_end(events: EventTable) -> None:
    truth, pieces = Truth(events, events.lane.tolist()), nested(events).pieces
    for lane in range(len(events.lanes)):
        low, high = int(pieces.lane_ptr[lane]), int(pieces.lane_ptr[lane + 1])
        spans = list(zip(pieces.start_ns[low:high].tolist(), pieces.end_ns[low:high].tolist(), strict=True))
        rows = truth.rows.get(lane, [])
        whole = (min(truth.start[r] for r in rows), max(truth.end[r] for r in rows)) if rows else (0, 0)
        assert all(a < b for a, b in spans)
        assert all(left[1] == right[0] for left, right in pairwise(spans))
        assert ((spans[0][0], spans[-1][1]) if spans else (whole[1], whole[1])) == whole
    assert pieces.lane_ptr[-1] == len(pieces)


@PROPERTY
@given(TABLES)
def test_parent_is_the_open_range_that_started_last_before_the_row(events: EventTable) -> None:
    truth, found = Truth(events, events.lane.tolist()), nested(events)
    parent = [NONE] * len(events)
    for lane, rows in truth.rows.items():
        for r in rows:
            parent[r] = truth.open_at(lane, truth.start[r], before=r)
    assert found.parent.tolist() == parent
    assert found.depth.tolist() == [len(_ancestors(parent, r)) for r in range(len(parent))]
    crossing = [r for r, p in enumerate(parent) if p >= 0 and truth.end[r] > truth.end[p]]
    assert found.crossing_count == len(crossing)


@PROPERTY
@given(TABLES, st.lists(st.integers(0, THREADS - 1), min_size=12, max_size=12))
def test_lanes_of_the_callers_own_separate_what_they_are_told_to(
    events: EventTable, lanes: list[int]
) -> None:
    lanes = [lane % max(1, len(events.lanes)) for lane in lanes[: len(events)]]
    truth = Truth(events, lanes)
    rows = np.flatnonzero(events.is_kind(*HOST_KINDS))
    found = nest(events, rows, np.array(lanes, np.int32))
    for lane, mine in truth.rows.items():
        assert found.parent[mine].tolist() == [truth.open_at(lane, truth.start[r], before=r) for r in mine]
        at = np.arange(LATEST + 2)
        assert owner_at(found.pieces, lane, at).tolist() == [truth.open_at(lane, t) for t in at]


@PROPERTY
@given(TABLES, st.permutations(range(-2, LATEST + 3)))
def test_owner_of_any_instant_is_whoever_is_open_then(events: EventTable, at: list[int]) -> None:
    truth, pieces = Truth(events, events.lane.tolist()), nested(events).pieces
    for lane in range(len(events.lanes)):
        found = owner_at(pieces, lane, np.array(at, np.int64))
        assert found.tolist() == [truth.open_at(lane, t) for t in at]


@PROPERTY
@given(TABLES, st.lists(st.integers(-1, 3), min_size=12, max_size=12))
def test_inherited_value_is_the_nearest_ancestors(events: EventTable, drawn: list[int]) -> None:
    found, own = nested(events), drawn[: len(events)]
    parent = found.parent.tolist()
    given_ = np.array(own, np.int64)
    expected = [
        next((own[a] for a in (r, *_ancestors(parent, r)) if own[a] >= 0), -1) for r in range(len(own))
    ]
    assert inherit(given_, found.parent).tolist() == expected
    assert given_.tolist() == own


def test_ranges_that_cross_give_each_instant_to_the_later() -> None:
    found = nested(_ranges(("a", 0, 6), ("b", 2, 10), ("c", 7, 8)))
    pieces = found.pieces
    spans = zip(pieces.start_ns.tolist(), pieces.end_ns.tolist(), pieces.owner.tolist(), strict=True)
    assert list(spans) == [(0, 2, 0), (2, 7, 1), (7, 8, 2), (8, 10, 1)]
    assert (found.parent.tolist(), found.depth.tolist()) == ([NONE, 0, 1], [0, 1, 2])
    assert found.crossing_count == 1


def test_range_that_ends_where_the_next_starts_is_not_its_parent() -> None:
    found = nested(_ranges(("a", 0, 5), ("b", 5, 9), ("point", 9, 9)))
    assert found.parent.tolist() == [NONE, NONE, NONE]


def test_table_without_host_ranges_has_no_pieces() -> None:
    found = nested(table([{"name": "k", "cat": "kernel", "ts": 0, "dur": 5, "pid": 0, "tid": 7}]))
    assert (len(found.pieces), found.crossing_count, found.parent.tolist()) == (0, 0, [NONE])


def _ranges(*ranges: tuple[str, int, int]) -> EventTable:
    events: list[dict[str, Any]] = [
        {"name": name, "cat": "cpu_op", "ts": a, "dur": b - a, "pid": 1, "tid": 1} for name, a, b in ranges
    ]
    return table(events, scale=1)


def _ancestors(parent: list[int], row: int) -> list[int]:
    """Parent, its parent, and so on, nearest first."""
    found: list[int] = []
    while (row := parent[row]) >= 0:
        found.append(row)
    return found


def test_a_range_seen_through_owns_no_time_and_outlives_what_it_crosses() -> None:
    """An operator [0, 40], a mark [10, 60] and a call [50, 55] in it: 40 to 50 and 55 to 60 are nobody's."""
    events = table(
        [
            {"cat": "cpu_op", "name": "op", "ts": 0, "dur": 40, "pid": 1, "tid": 1},
            {"cat": "user_annotation", "name": "ProfilerStep#1", "ts": 10, "dur": 50, "pid": 1, "tid": 1},
            {"cat": "cuda_runtime", "name": "call", "ts": 50, "dur": 5, "pid": 1, "tid": 1},
        ]
    )
    mark = np.array([name == "ProfilerStep#1" for name in events.names])[events.name]
    found = nest(events, np.arange(3), see_through=mark)
    p = found.pieces
    assert list(zip(p.start_ns // 1000, p.end_ns // 1000, p.owner, strict=True)) == [
        (0, 40, 0),
        (40, 50, -1),
        (50, 55, 2),
        (55, 60, -1),
    ]
    assert (found.parent == -1).all()
    assert found.crossing_count == 0
