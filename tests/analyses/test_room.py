"""How much longer a selection may take; by hand, and against adding one ns too many."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepcrit.analyses import room, whatif
from stepcrit.analyses.room import Slope
from stepcrit.analyses.whatif import Question
from stepcrit.errors import UsageError
from stepcrit.graph.change import Change
from stepcrit.graph.selector import Selector, parse_selector
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.session import Options, Trace, load
from tests.builders import event, trace

FIXTURES = Path(__file__).parents[2] / "fixtures"
FILES = sorted(FIXTURES.glob("simulated/*.json.gz"))


def diamond() -> StepGraph:
    """Two queues of which the longer one decides; `log` is needed by nothing. Times in µs."""
    # host  |op  la 2..4   lb 6..8   30|
    # s7        [a 5.............25]
    # s20                 [b 9..14][c 14..20]    b and c together may take 5 more
    # host 2                                       log 40..50
    return Trace(
        trace(
            [
                event("cpu_op", "op", (0, 30)),
                event("cuda_runtime", "la", (2, 4), correlation=1),
                event("cuda_runtime", "lb", (6, 7), correlation=2),
                event("cuda_runtime", "lc", (7, 8), correlation=3),
                event("kernel", "a", (5, 25), (0, 7), correlation=1, stream=7),
                event("kernel", "b", (9, 14), (0, 20), correlation=2, stream=20),
                event("kernel", "c", (14, 20), (0, 20), correlation=3, stream=20),
            ]
        ),
        Options(),
    ).view()


def slopes(view: StepGraph, words: str) -> tuple[Slope, Slope]:
    found = room.analyze(view, parse_selector(words))
    return found.least, found.most


@pytest.mark.parametrize(
    ("words", "free_us", "cost"),
    [
        ("a", 0, 1),  # on the path
        ("b", 5, 1),
        ("c", 5, 1),
        ("re:^[bc]$", 2.5, 2),  # the slack of 5 is shared
        ("re:^[abc]$", 0, 1),
    ],
)
def test_room_is_what_the_selection_as_a_whole_can_take(words: str, free_us: float, cost: int) -> None:
    assert slopes(diamond(), words) == (Slope(int(1000 * free_us), cost),) * 2


def test_what_the_boundary_does_not_need_may_take_any_time() -> None:
    chrome = [
        event("cpu_op", "op", (0, 5)),
        event("cuda_runtime", "l", (1, 2), correlation=1),
        event("kernel", "k", (3, 9), (0, 7), correlation=1, stream=7),
        event("cpu_op", "after", (5, 8)),
    ]
    view = Trace(trace(chrome), Options()).view()
    assert slopes(view, "after") == (Slope(None, 0.0), Slope(None, 0.0))


def test_gaps_have_no_room_to_ask_for() -> None:
    with pytest.raises(UsageError, match="gaps cannot be set or lengthened"):
        room.analyze(diamond(), parse_selector("class:gap"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
@pytest.mark.parametrize("words", ["class:compute", "class:host", "class:elementwise"])
def test_step_alone_takes_all_of_the_room_and_not_one_ns_more(path: Path, words: str) -> None:
    view = load(path).view(-1)
    found = room.analyze(view, parse_selector(words))
    assert found.period_count == 0
    costs = [
        _cost(view, words, slope.free_ns) for slope in (found.least, found.most) if slope.free_ns is not None
    ]
    beyond = [
        _cost(view, words, slope.free_ns + 1)
        for slope in (found.least, found.most)
        if slope.free_ns is not None
    ]
    assert all(min(cost) == 0 for cost in costs)
    assert all(max(cost) > 0 for cost in beyond)
    if costs:  # the smaller room is the conservative end, and what it leaves free costs nothing at either end
        assert max(costs[0]) == 0


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
@pytest.mark.parametrize("words", ["class:launch", "class:host", "class:compute"])
def test_steady_run_takes_the_room_without_a_thousandth_more_and_feels_a_little_beyond(
    path: Path, words: str
) -> None:
    view = load(path).view()
    try:
        found = room.analyze(view, parse_selector(words))
    except UsageError:
        return  # none of that class in this trace
    if not found.period_count or found.least.free_ns is None:
        return
    felt = found.period_ns // 1000
    assert max(_cost(view, words, found.least.free_ns)) <= felt
    assert (
        max(_cost(view, words, found.least.free_ns * 21 // 20 + felt + 10)) > felt or found.least.free_ns == 0
    )


def test_host_that_runs_ahead_has_room_and_the_device_has_none() -> None:
    """Device-bound steps (methods C.10): calls may take many µs more each, kernels not one."""
    view = load(FIXTURES / "simulated" / "device_bound.json.gz").view()
    host = room.analyze(view, parse_selector("class:launch")).least.free_ns
    assert host is not None
    assert host > 10_000
    assert room.analyze(view, parse_selector("class:gemm")).least.free_ns == 0


def _cost(view: StepGraph, words: str, more_ns: int) -> tuple[int, int]:
    """By how much the step grows when a what-if adds so much, at both ends of the answer."""
    saving = whatif.analyze(view, Question((Change(parse_selector(words), "add", amount_ns=more_ns),))).saving
    return -saving.join_ns, -saving.edge_ns


def test_room_of_one_kernel_is_its_slack() -> None:
    view = diamond()
    node = next(v for v in range(len(view.built.graph)) if view.node_name(v) == "b")
    assert room.analyze(view, Selector("name", "b")).least.free_ns == view.slack.total_ns[node]


def test_two_milliseconds_of_room_are_found() -> None:
    chrome = [
        event("cpu_op", "op", (0, 4)),
        event("cuda_runtime", "la", (0, 1), correlation=1),
        event("cuda_runtime", "lb", (1, 2), correlation=2),
        event("kernel", "a", (5, 3_005), (0, 7), correlation=1, stream=7),
        event("kernel", "b", (5, 1_005), (0, 20), correlation=2, stream=20),
    ]
    assert slopes(Trace(trace(chrome), Options()).view(), "b")[0].free_ns == 2_000_000


def test_of_work_that_the_window_cuts_only_the_part_inside_grows() -> None:
    """Step 2 opens at 90 (the end of k1). k2 50..130 lies in it by half: of each ns more, half is the step's.

    k2 and k3 (130..180) are followed by nothing; the boundary is k4's end, 200, on the other queue.
    So k2 may take 2 x 13.3 (its half and k3's own together have 20): a + a/2 = 20.
    """
    mark = [event("user_annotation", f"ProfilerStep#{i}", span) for i, span in enumerate(((0, 40), (41, 60)))]
    chrome = [
        *mark,
        event("cuda_runtime", "l1", (1, 2), correlation=1),
        event("cuda_runtime", "l2", (42, 43), correlation=2),
        event("cuda_runtime", "l3", (44, 45), correlation=3),
        event("cuda_runtime", "l4", (46, 47), correlation=4),
        event("kernel", "k1", (10, 90), (0, 7), correlation=1, stream=7),
        event("kernel", "k2", (50, 130), (0, 20), correlation=2, stream=20),
        event("kernel", "k3", (130, 180), (0, 20), correlation=3, stream=20),
        event("kernel", "k4", (90, 200), (0, 7), correlation=4, stream=7),
    ]
    view = Trace(trace(chrome), Options()).view("ProfilerStep#1")
    assert (view.step.start_ns, view.step.end_ns) == (90_000, 200_000)
    found = room.analyze(view, parse_selector("re:^k[23]$")).least
    assert found.free_ns is not None
    assert found.free_ns == pytest.approx(13_333, abs=2)
    assert found.cost == pytest.approx(1.5, abs=0.01)
