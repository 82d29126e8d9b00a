"""Sweeps that look at each row once find what looking at every pair finds."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from stepcrit.link.nesting import inherit
from stepcrit.link.operators import OUTSIDE_NS, adopted_calls
from stepcrit.link.outlived import earliest_around
from stepcrit.model.events import EventKind
from tests.builders import event, table
from tests.properties.schedules import PROPERTY

spans = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12)), min_size=1, max_size=25)
"""(start, length), in µs."""


@PROPERTY
@given(spans, st.data())
def test_the_earliest_end_around_a_row_is_that_of_all_rows_open_at_its_start(
    ranges: list[tuple[int, int]], data: st.DataObject
) -> None:
    events = table([event("cpu_op", f"op{i}", (a, a + n)) for i, (a, n) in enumerate(ranges)])
    rows = np.arange(len(events))
    asked = np.array(sorted(data.draw(st.sets(st.sampled_from(rows.tolist())))), np.int64)
    start, end = events.start_ns.tolist(), events.end_ns.tolist()
    expected = [min([end[j] for j in range(i) if end[j] > start[i]], default=-1) for i in asked.tolist()]
    assert earliest_around(events, rows, asked).tolist() == expected


ids = st.lists(
    st.tuples(st.integers(0, 20), st.integers(0, 6), st.integers(1, 2), st.integers(1, 2)), max_size=20
)
"""(start, length, external id, process)."""


@PROPERTY
@given(ids, ids)
def test_a_call_adopts_the_latest_operator_of_its_id_and_process_that_was_running(
    ops: list[tuple[int, int, int, int]], calls: list[tuple[int, int, int, int]]
) -> None:
    chrome = [
        event("cpu_op", "op", (a, a + n), (process, 1), **{"External id": number})
        for a, n, number, process in ops
    ] + [
        event("cuda_runtime", "call", (a, a + n), (process, 2), **{"External id": number})
        for a, n, number, process in calls
    ]
    if not chrome:
        return
    events = table(chrome)
    numbers = np.array([e["args"]["External id"] for e in chrome], np.int64)
    events = replace(events, external_id=numbers[events.order])
    op_rows = np.flatnonzero(events.kind == EventKind.CPU_OP).tolist()
    expected = {}
    for call in np.flatnonzero(events.kind == EventKind.RUNTIME).tolist():
        at = int(events.start_ns[call])
        fits = [
            row
            for row in op_rows
            if events.external_id[row] == events.external_id[call]
            and events.lane_of(row).pid == events.lane_of(call).pid
            and events.start_ns[row] - OUTSIDE_NS <= at <= events.end_ns[row] + OUTSIDE_NS
        ]
        if fits:
            expected[call] = max(fits)
    found = adopted_calls(events, np.full(len(events), -1, np.int32))
    assert dict(zip(found[0].tolist(), found[1].tolist(), strict=True)) == expected


@PROPERTY
@given(st.lists(st.tuples(st.integers(-1, 30), st.booleans()), max_size=30))
def test_each_row_inherits_from_its_nearest_ancestor_that_has_a_value(rows: list[tuple[int, bool]]) -> None:
    parent = np.array([min(p, i - 1) for i, (p, _) in enumerate(rows)], np.int32)
    own = np.array([i if has else -1 for i, (_, has) in enumerate(rows)], np.int64)

    def nearest(row: int) -> int:
        while row >= 0 and own[row] < 0:
            row = int(parent[row])
        return row

    assert inherit(own, parent).tolist() == [nearest(i) for i in range(len(rows))]
