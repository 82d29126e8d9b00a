"""Every form of a pass over the graph gives what its definition, the loop over nodes, gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepcrit.graph import runs
from stepcrit.graph.runs import runs_of, starts_by_runs
from stepcrit.graph.schedule import forward, forward_by_node
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
    assert len(found.bounds) - 1 == 2


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
