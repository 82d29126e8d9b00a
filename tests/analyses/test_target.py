"""The smallest change that reaches a length of the step; schedules and answers by hand, times in µs."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from stepcrit.analyses import target
from stepcrit.analyses.target import Part, Target
from stepcrit.graph.groups import By
from stepcrit.graph.search import least_share
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.session import Options, Trace, load
from tests.builders import Event, event, trace

SIMULATED = Path(__file__).parents[2] / "fixtures" / "simulated"


def branches(*kernels: tuple[str, int, int]) -> StepGraph:
    """Kernels (name, queue, length) that each start when the call that launches all of them returns.

    host  op 0..20 { la 2..4, lb 2..4, ... }: here one call a kernel, one after another, 1 each from 2 on
    """
    chrome: list[Event] = [event("cpu_op", "op", (0, 10 + len(kernels)))]
    ready = 2 + len(kernels)
    free: dict[int, int] = {}
    for i, (name, queue, length) in enumerate(kernels):
        chrome.append(event("cuda_runtime", f"launch {name}", (2 + i, 3 + i), correlation=i))
        at = free.get(queue, ready)
        free[queue] = at + length
        chrome.append(event("kernel", name, (at, at + length), (0, queue), correlation=i, stream=queue))
    return Trace(trace(chrome), Options()).view()


def ways(view: StepGraph, target_us: int, by: By = "kernel") -> Target:
    return target.analyze(view, by, target_us * 1000)


def test_names_that_are_enough_alone_come_with_the_share_that_must_go() -> None:
    """Host 4, then `a` 60 and `b` 30 in a row: the step takes 94. For 79, 15 must go: of a a quarter, of b half."""
    found = ways(branches(("a", 7, 60), ("b", 7, 30)), 79)
    assert (found.period_ns, found.period_count) == (94_000, 0)
    assert [way.parts for way in found.alone] == [
        (Part("a", "device", Fraction(1, 4)),),
        (Part("b", "device", Fraction(1, 2)),),
    ]
    assert all(way.saving.low_ns == 15_000 for way in found.alone)
    assert (found.together, found.most, found.left) == (None, None, ())


def test_where_no_name_is_enough_the_best_go_whole_and_of_the_last_no_more_than_needed() -> None:
    """For 19 of 94, 75 must go: all of `a`, and half of `b`. Savings are replayed together, never added."""
    found = ways(branches(("a", 7, 60), ("b", 7, 30)), 19)
    assert found.alone == ()
    assert found.together is not None
    assert found.together.parts == (Part("a", "device", Fraction(1)), Part("b", "device", Fraction(1, 2)))
    assert found.together.saving.low_ns == 75_000


def test_branches_that_save_nothing_alone_are_found_together_only_behind_one_that_does() -> None:
    """Queues of 40 and 36 (golden case G04's kind): alone `a` saves 4; with `b` 40, less its launches."""
    view = branches(("a", 7, 40), ("b", 20, 36))
    assert view.step.elapsed_ns == 44_000
    assert ways(view, 40).alone[0].parts == (Part("a", "device", Fraction(1, 10)),)
    both = ways(view, 24).together
    assert both is not None
    # b must end by 24: 20 of its 36, so 4/9 must go, in thousandths 445.
    assert both.parts == (Part("a", "device", Fraction(1)), Part("b", "device", Fraction(445, 1000)))
    assert both.saving.low_ns == 36 * 445 + 4_000


def test_equal_branches_that_save_nothing_alone_are_taken_together() -> None:
    """Golden case G05's kind: two queues of 40, so 0 and 0 alone, and together 40."""
    view = branches(("a", 7, 40), ("b", 20, 40))
    found = ways(view, 24)
    assert found.alone == ()
    assert found.together is not None
    assert {part.name for part in found.together.parts} == {"a", "b"}
    assert found.together.saving.low_ns >= 20_000


def test_name_that_the_others_do_without_is_no_part_of_the_set() -> None:
    """`a` 10 is taken first, as it saves most; then `b` and `c` of 30 each in two queues: with them it is not needed.

    host 5; queue 7: a 10, b 30; queue 20: c 30. The step takes 45; for 15 all of b and c must go, not a.
    """
    found = ways(branches(("a", 7, 10), ("b", 7, 30), ("c", 20, 30)), 16)
    assert found.together is not None
    assert "(host)" not in {part.name for part in found.together.parts}
    taken = {part.name: part.taken_share for part in found.together.parts}
    without = [name for name in taken if len(taken) > 1]
    for name in without:  # each of them is needed
        rest = {k: v for k, v in taken.items() if k != name}
        assert 45_000 - _saved(rest) > 16_000


def _saved(taken: dict[str, Fraction]) -> int:
    """By hand: host 5, then both queues."""
    left = {
        name: length * (1 - taken.get(name, Fraction(0)))
        for name, length in (("a", 10), ("b", 30), ("c", 30))
    }
    return int(1000 * (45 - (5 + max(left["a"] + left["b"], left["c"]))))


def test_out_of_reach_is_told_with_what_is_left() -> None:
    """All three names gone, nothing of the step is left but gaps: there are none. A target below 0 is out of reach."""
    found = ways(branches(("a", 7, 60)), -1)
    assert (found.alone, found.together) == ((), None)
    assert found.most is not None
    assert {part.name for part in found.most.parts} == {"a", "(host)"}
    # One µs of the call that lets `a` go may lie behind the submission: then it stays.
    assert found.period_ns - found.most.saving.high_ns == 0
    assert found.period_ns - found.most.saving.low_ns == 1_000


def test_target_that_is_met_asks_for_nothing() -> None:
    found = ways(branches(("a", 7, 60)), 64)
    assert (found.together, found.most) == (None, None)


@pytest.mark.parametrize(
    ("needed", "share"), [(0, Fraction(0)), (1, Fraction(1, 1000)), (500, Fraction(1, 2)), (1000, Fraction(1)), (1001, None)]
)  # fmt: skip
def test_least_share_is_the_first_thousandth_that_is_enough(needed: int, share: Fraction | None) -> None:
    assert least_share(lambda x: int(1000 * x), needed) == share


def test_steady_run_reaches_the_target_in_the_mean_of_its_periods() -> None:
    """The way that is told, asked as a what-if of its own, gives the step that was wanted."""
    view = load(SIMULATED / "host_bound.json.gz").view()
    wanted = 700_000
    found = ways(view, wanted // 1000, "op")
    way = found.alone[0] if found.alone else found.together
    assert found.period_count > 0
    assert way is not None
    assert found.period_ns - way.saving.low_ns <= wanted < found.period_ns
