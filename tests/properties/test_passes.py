"""Every form of a pass over the graph gives what its definition, the loop over nodes, gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from stepcrit.graph import runs
from stepcrit.graph.drag import painted
from stepcrit.graph.runs import runs_of, starts_by_runs
from stepcrit.graph.schedule import FAR, Lags, forward, forward_by_node, latest_by_node, latest_finish
from stepcrit.kernels import _absent
from stepcrit.link.brackets import sweep_brackets
from stepcrit.link.nesting import inherit, inherit_plainly, sweep, sweep_plainly
from stepcrit.model.arrays import Int64Array
from tests.properties.passes import SHAPES, Drawn, Shape, drawn, graph_of
from tests.properties.schedules import PROPERTY

shapes = st.builds(
    Shape,
    st.integers(1, 6),
    st.floats(0, 1),
    st.integers(0, 4),
    st.sampled_from((0.0, 0.3)),
    st.integers(0, 9),
)
graphs = st.builds(drawn, shapes, st.integers(0, 60), st.integers(0))


@pytest.fixture(autouse=True)
def _plain_unless_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPCRIT_KERNELS", "plain")


def by_runs(case: Drawn) -> Int64Array | None:
    found = runs_of(case.graph)
    if found is None:
        return None
    return starts_by_runs(case.graph, found, case.dur_ns, case.delays.edge_ns, case.delays.origin_ns)


@pytest.fixture
def any_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of any length are worth it."""
    monkeypatch.setattr(runs, "WORTH_IT", 0)


@PROPERTY
@given(graphs)
def test_runs_start_every_node_when_the_loop_does(case: Drawn) -> None:
    usual, runs.WORTH_IT = runs.WORTH_IT, 0
    try:
        found = by_runs(case)
    finally:
        runs.WORTH_IT = usual
    expected = forward_by_node(case.graph, case.dur_ns, case.delays)
    # None: a wait that is gone lies inside of a run, and its length is no length
    assert found is None or found.tolist() == expected.tolist()


@pytest.mark.usefixtures("any_run")
@pytest.mark.parametrize("shape", [name for name in SHAPES if name != "some waits gone"])
def test_runs_hold_on_hostile_shapes(shape: str) -> None:
    case = drawn(SHAPES[shape], 400, 7)
    found = by_runs(case)
    assert found is not None
    assert found.tolist() == forward_by_node(case.graph, case.dur_ns, case.delays).tolist()


def test_a_thread_and_a_queue_that_do_not_wait_for_each_other_are_two_runs() -> None:
    # 2 000 launches: an even node on the thread, an odd one on the queue, which waits for its launch
    lane = [0, 1] * 2_000
    pairs = sorted(
        [(v - 2, v) for v in range(2, 4_000)] + [(v - 1, v) for v in range(1, 4_000, 2)],
        key=lambda p: p[::-1],
    )
    src, dst = (np.array([p[i] for p in pairs], np.int64) for i in (0, 1))
    found = runs_of(graph_of(lane, src, dst))
    assert found is not None
    assert len(found.each) == 2


def test_where_runs_are_short_the_loop_is_taken() -> None:
    case = drawn(SHAPES["no lane in order"], 400, 7)
    assert runs_of(case.graph) is None
    assert (
        forward(case.graph, case.dur_ns, case.delays).tolist()
        == forward_by_node(case.graph, case.dur_ns, case.delays).tolist()
    )


def test_lengths_that_might_overflow_are_left_to_the_loop() -> None:
    case = drawn(Shape(1, 1.0, 0, longest=2**58), 100, 3)
    assert by_runs(case) is None


compiled = pytest.mark.skipif(_absent() != "", reason="this installation has no compiled kernels")


@pytest.fixture
def with_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPCRIT_KERNELS", "compiled")


def all_alike(case: Drawn, sinks: dict[int, int]) -> None:
    """Each compiled pass gives what its definition gives."""
    graph, dur, delays = case.graph, case.dur_ns, case.delays
    assert forward(graph, dur, delays).tolist() == forward_by_node(graph, dur, delays).tolist()
    late = np.full(len(graph), FAR, np.int64)
    late[list(sinks)] = list(sinks.values())
    expected = latest_by_node(graph, dur, delays, (late, max(sinks, default=-1)))
    assert latest_finish(graph, dur, delays, sinks).tolist() == expected.tolist()


@compiled
@PROPERTY
@given(graphs, st.data())
def test_compiled_passes_give_what_the_loops_give(case: Drawn, data: st.DataObject) -> None:
    nodes = st.integers(0, max(len(case.graph) - 1, 0))
    sinks = data.draw(st.dictionaries(nodes, st.integers(-9, 99), max_size=4)) if len(case.graph) else {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STEPCRIT_KERNELS", "compiled")
        all_alike(case, sinks)


@compiled
@pytest.mark.usefixtures("with_compiled")
@pytest.mark.parametrize("shape", SHAPES)
def test_compiled_passes_hold_on_hostile_shapes(shape: str) -> None:
    all_alike(drawn(SHAPES[shape], 400, 7), {399: 10**6, 200: 10**5})


@compiled
@pytest.mark.usefixtures("with_compiled")
def test_times_that_do_not_fit_are_an_error_in_both_forms() -> None:
    case = drawn(Shape(1, 1.0, 0, longest=2**62), 30, 3)
    with pytest.raises(OverflowError):
        forward_by_node(case.graph, case.dur_ns, case.delays)
    with pytest.raises(OverflowError):
        forward(case.graph, case.dur_ns, case.delays)


@compiled
@pytest.mark.usefixtures("with_compiled")
@pytest.mark.parametrize("src", [[-1], [1], [2], [2**40]])
def test_an_edge_from_nowhere_or_from_later_is_refused(src: list[int]) -> None:
    graph = graph_of([0, 0], np.array(src, np.int64), np.array([1], np.int64))
    none = np.zeros(2, np.int64)
    with pytest.raises(IndexError, match="an edge out of range"):
        forward(graph, none, Lags(np.zeros(1, np.int64), none))
    with pytest.raises(IndexError, match="an edge out of range"):
        latest_finish(graph, none, Lags(np.zeros(1, np.int64), none), {1: 5})


@compiled
@pytest.mark.usefixtures("with_compiled")
@pytest.mark.parametrize("ptr", [[0, 0, 2], [1, 1, 1], [0, 9, 1], [0, 1, 0], [0, -4, 1]])
def test_edges_that_do_not_lie_where_they_should_are_refused(ptr: list[int]) -> None:
    graph = graph_of([0, 0], np.array([0], np.int64), np.array([1], np.int64))
    none = np.zeros(2, np.int64)
    with pytest.raises(IndexError, match="an edge out of range"):
        forward(replace(graph, dst_ptr=np.array(ptr, np.int64)), none, Lags(np.zeros(1, np.int64), none))


@compiled
@pytest.mark.usefixtures("with_compiled")
def test_columns_of_another_length_or_type_are_refused() -> None:
    case = drawn(SHAPES["thread and queue"], 10, 1)
    with pytest.raises(ValueError, match="10 items of 8 bytes"):
        forward(case.graph, case.dur_ns.astype(np.int32).astype(np.int16), case.delays)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="items of 8 bytes"):
        forward(case.graph, case.dur_ns, Lags(case.delays.edge_ns[1:], case.delays.origin_ns))


intervals = st.lists(
    st.tuples(st.integers(-1, 20), st.integers(1, 21), st.integers(-5, 5)).filter(lambda i: i[0] < i[1]),
    max_size=12,
)


@compiled
@PROPERTY
@given(intervals)
def test_painting_gives_each_place_the_first_interval_around_it(
    drawn_ones: list[tuple[int, int, int]],
) -> None:
    ends = [(a, min(b, 20), v) for a, b, v in drawn_ones if a < min(b, 20)]
    columns = np.array(ends, np.int64).reshape(-1, 3).T
    left, right, value = (np.ascontiguousarray(column) for column in columns)
    expected = [next((v for a, b, v in ends if a < at < b), -99) for at in range(20)]
    for kernels in ("plain", "compiled"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("STEPCRIT_KERNELS", kernels)
            assert painted(20, (left, right, value), -99).tolist() == expected


ranges = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12)), max_size=40)
"""(start, length): nested, crossing, touching, equal, empty."""


def swept(spans: list[tuple[int, int]], kernels: str) -> list[Any]:
    """All that a sweep over every second row finds, the columns as they are afterwards."""
    ordered = sorted(((a, a + n) for a, n in spans), key=lambda r: (r[0], -r[1]))
    start, end = (np.array([row[i] for row in ordered], np.int64) for i in (0, 1))
    extent = (min([a for a, _ in ordered], default=0) - 2, max([b for _, b in ordered], default=0) + 2)
    rows = np.arange(0, len(ordered), 2)
    around = np.full(len(ordered), -7, np.int32), np.full(len(ordered), -7, np.int32)
    most = 2 * len(rows) + 1
    room = np.full(most, -7), np.full(most, -7), np.full(most, -7, np.int32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STEPCRIT_KERNELS", kernels)
        counts = sweep((start, end), rows, extent, around, room)
    return [counts, *(column.tolist() for column in (*around, *room))]


@compiled
@PROPERTY
@given(ranges)
def test_compiled_nesting_gives_what_the_sweep_gives(spans: list[tuple[int, int]]) -> None:
    assert swept(spans, "compiled") == swept(spans, "plain")


@PROPERTY
@given(ranges, st.booleans(), st.integers(0, 2))
def test_ranges_that_do_not_cross_nest_as_brackets_do(
    spans: list[tuple[int, int]],
    whole: bool,  # noqa: FBT001 - drawn
    margin: int,
) -> None:
    ordered = sorted(((a, a + n) for a, n in spans), key=lambda r: (r[0], -r[1]))
    if whole:  # without those that cross one before
        kept: list[tuple[int, int]] = []
        for a, b in ordered:
            if all(c >= b or c <= a for _, c in kept):
                kept.append((a, b))
        ordered = kept
    start, end = (np.array([row[i] for row in ordered], np.int64) for i in (0, 1))
    extent = (
        min([a for a, _ in ordered], default=0) - margin,
        max([b for _, b in ordered], default=0) + margin,
    )
    rows, found = np.arange(len(ordered)), []
    for way in (sweep_brackets, sweep_plainly):
        around = np.full(len(ordered), -7, np.int32), np.full(len(ordered), -7, np.int32)
        most = 2 * len(rows) + 1
        room = np.full(most, -7), np.full(most, -7), np.full(most, -7, np.int32)
        found.append((way((start, end), rows, extent, around, room), *(c.tolist() for c in (*around, *room))))
    crossing = found[1][0][1]
    assert (found[0][0] is None) == (crossing > 0 or not ordered)
    assert (not whole) or crossing == 0
    if found[0][0]:
        assert found[0] == found[1]
    else:
        assert all(value == -7 for column in found[0][1:] for value in column)


@compiled
@PROPERTY
@given(st.lists(st.tuples(st.integers(-3, 30), st.integers(-2, 2)), max_size=40))
def test_compiled_inheriting_gives_what_the_plain_form_gives(drawn_rows: list[tuple[int, int]]) -> None:
    parent = np.array([min(p, i - 1) for i, (p, _) in enumerate(drawn_rows)], np.int32)
    own = np.array([value for _, value in drawn_rows], np.int32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STEPCRIT_KERNELS", "compiled")
        found = inherit(own, parent)
    assert found.tolist() == inherit_plainly(own, parent).tolist()


@compiled
@pytest.mark.parametrize("rows", [[0, 2], [-1], [2**40]])
def test_rows_that_there_are_not_are_refused(rows: list[int]) -> None:
    from stepcrit.kernels import _nesting  # noqa: PLC0415 - it is there

    start, end = np.zeros((2, 2), np.int64)
    parent, depth = np.zeros((2, 2), np.int32)
    most = 2 * len(rows) + 1
    room = np.zeros(most, np.int64), np.zeros(most, np.int64), np.zeros(most, np.int32)
    with pytest.raises(IndexError):
        _nesting.sweep(start, end, np.array(rows), 0, 9, parent, depth, *room)


@compiled
@pytest.mark.parametrize("parent", [1, 2, 2**31 - 1])
def test_a_parent_that_does_not_come_before_is_refused(parent: int) -> None:
    from stepcrit.kernels import _nesting  # noqa: PLC0415 - it is there

    with pytest.raises(IndexError):
        _nesting.inherit(np.array([-1, parent], np.int32), np.array([-1, -1], np.int32))
