"""One budget against numbers that are put in by hand: what fails, what passes, what nobody can know."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, cast

import pytest

from stepcrit.answers.judge import Relation, Rule, judged, worst
from stepcrit.answers.metric import UnknownMetricError
from stepcrit.answers.metrics import metric
from stepcrit.answers.sampled import Sampled, Scatter
from stepcrit.model.checked import Effect, Outcome, Place
from stepcrit.model.config import Level, Manner
from stepcrit.model.reading import Reading

PLACE = Place("stepcrit.toml", 3)


@dataclass
class Side:
    """A trace that says what it is told to."""

    number: int | float | None
    sigma: float | None = 0.0
    count: int = 5
    is_same: bool = True
    seen: list[bool] = field(default_factory=list)

    def value(self, _: object, *, highest: bool = True) -> Reading:
        self.seen.append(highest)
        return Reading(self.number, "" if self.number is not None else "not there")

    def repeats(self, _: object) -> bool:
        return self.is_same

    def scatter(self, _: object) -> Scatter:
        return Scatter(self.sigma, self.count)


def outcome(rule: Rule, now: Side, base: Side | None = None, **relation: Any) -> tuple[Outcome, Effect]:
    row = judged(rule, cast("Sampled", now), cast("Sampled | None", base), Relation(**relation))
    assert row is not None
    return row.outcome, row.effect


FAIL, PASS = (Outcome.FAIL, Effect.FAILS), (Outcome.PASS, Effect.NONE)
OPEN, BETTER = (Outcome.INCONCLUSIVE, Effect.OPEN), (Outcome.IMPROVED, Effect.NONE)
LAUNCHES, TIME, OVERLAP = metric("kernel_launches"), metric("step_time"), metric("overlap")


@pytest.mark.parametrize(
    ("now", "base", "expected"), [(10, 10, PASS), (11, 10, FAIL), (9, 10, BETTER), (1, 0, FAIL), (0, 0, PASS)]
)
def test_a_count_that_repeats_is_exact(now: int, base: int, expected: tuple[Outcome, Effect]) -> None:
    assert outcome(Rule(LAUNCHES, grow=0), Side(now), Side(base)) == expected


@pytest.mark.parametrize("side", ["now", "base"])
def test_a_count_that_varies_on_either_side_is_a_time(side: str) -> None:
    now, base = Side(12, 1.0, is_same=side != "now"), Side(10, 0.5, is_same=side != "base")
    assert outcome(Rule(LAUNCHES, grow=0), now, base) == OPEN  # 2 is within 3 x 1.0
    now.number = 14
    assert outcome(Rule(LAUNCHES, grow=0), now, base) == FAIL


@pytest.mark.parametrize(
    ("now", "sigma", "expected"),
    [
        (105, 0, PASS), (106, 0, FAIL), (110, 3.3, FAIL), (110, 3.4, OPEN), (105, 50, PASS), (100, 0, PASS),
        (95, 0, PASS), (94, 0, BETTER), (90, 3.3, BETTER), (90, 3.4, PASS),
    ],
)  # fmt: skip
def test_a_time_passes_its_limit_and_its_noise_before_it_fails(
    now: int, sigma: float, expected: tuple[Outcome, Effect]
) -> None:
    rule = Rule(TIME, grow=0.05)
    assert outcome(rule, Side(now, sigma), Side(100, 0.0)) == expected
    assert outcome(rule, Side(now, 0.0), Side(100, sigma)) == expected  # the side that scatters more counts


@pytest.mark.parametrize(("now", "expected"), [(110, PASS), (111, FAIL), (106, PASS)])
def test_both_limits_have_to_be_passed(now: int, expected: tuple[Outcome, Effect]) -> None:
    assert outcome(Rule(TIME, grow=0.05, grow_abs=10), Side(now), Side(100)) == expected
    assert outcome(Rule(TIME, grow=0.1, grow_abs=5), Side(now), Side(100)) == expected


@pytest.mark.parametrize(
    ("grow", "base", "now"), [(0.29, 100, 129), (0.07, 100, 107), (0.1, 30, 33), (0.003, 1000, 1003)]
)
def test_a_limit_is_the_decimal_that_was_written(grow: float, base: int, now: int) -> None:
    assert outcome(Rule(TIME, grow=grow), Side(now), Side(base)) == PASS
    assert outcome(Rule(TIME, grow=grow), Side(now + 1), Side(base)) == FAIL


@pytest.mark.parametrize(("now", "expected"), [(130, OPEN), (131, FAIL), (105, PASS)])
def test_without_steps_enough_noise_is_a_tenth(now: int, expected: tuple[Outcome, Effect]) -> None:
    assert outcome(Rule(TIME, grow=0.05), Side(now, None, 2), Side(100, None, 1)) == expected
    assert outcome(Rule(TIME, grow=0.05), Side(now, None, 2), Side(100, 0.0, 5))[0] != Outcome.INCONCLUSIVE


def test_more_of_some_things_is_better() -> None:
    rule = Rule(OVERLAP, grow=0.05)
    assert outcome(rule, Side(0.5), Side(0.8)) == FAIL
    assert outcome(rule, Side(0.9), Side(0.8)) == BETTER
    assert outcome(rule, Side(0.77), Side(0.8)) == PASS


@pytest.mark.parametrize(
    ("limits", "now", "expected"),
    [({"max": 10}, 10, PASS), ({"max": 10}, 11, FAIL), ({"min": 10}, 10, PASS), ({"min": 10}, 9, FAIL), ({"min": 5, "max": 10}, 11, FAIL)],
)  # fmt: skip
def test_limits_are_exact_whatever_the_noise(
    limits: dict[str, int], now: int, expected: tuple[Outcome, Effect]
) -> None:
    assert outcome(Rule(TIME, **limits), Side(now, 1e9)) == expected  # type: ignore[arg-type]
    warned = outcome(Rule(TIME, level=Level.WARN, **limits), Side(now))  # type: ignore[arg-type]
    assert warned == ((Outcome.WARN, Effect.NONE) if expected == FAIL else PASS)


def test_a_limit_that_is_broken_counts_though_nothing_can_be_compared() -> None:
    rule = Rule(TIME, max=10, grow=0.05)
    assert outcome(rule, Side(11), Side(1), same_setting=False) == FAIL
    assert outcome(rule, Side(10), Side(1), same_setting=False) == OPEN


def test_the_least_of_several_steps_counts_for_a_least() -> None:
    for rule, highest in ((Rule(TIME, min=1), False), (Rule(TIME, max=1), True)):
        side = Side(1)
        outcome(rule, side)
        assert set(side.seen) == {highest}


def test_what_is_not_known_neither_passes_nor_fails() -> None:
    rule = Rule(TIME, max=10, place=PLACE)
    assert outcome(rule, Side(None)) == (Outcome.UNKNOWN, Effect.OPEN)
    assert outcome(Rule(TIME, max=10, place=PLACE, level=Level.WARN), Side(None)) == (
        Outcome.UNKNOWN,
        Effect.NONE,
    )
    assert outcome(Rule(TIME, grow=0, place=PLACE), Side(1), Side(None)) == OPEN
    assert outcome(Rule(TIME, grow=0), Side(None), Side(1)) == (Outcome.UNKNOWN, Effect.OPEN)


def test_a_preset_says_nothing_of_what_neither_side_knows() -> None:
    assert (
        judged(Rule(TIME, grow=0), cast("Sampled", Side(None)), cast("Sampled", Side(None)), Relation())
        is None
    )
    assert judged(Rule(TIME, grow=0), cast("Sampled", Side(1)), None, Relation()) is None


@pytest.mark.parametrize("manner", Manner)
def test_what_cannot_be_compared(manner: Manner) -> None:
    other = {Manner.ERROR: OPEN, Manner.WARN: FAIL, Manner.SKIP: PASS}[manner]
    assert outcome(Rule(TIME, grow=0), Side(9), Side(1), same_setting=False, manner=manner) == other
    assert outcome(Rule(TIME, grow=0), Side(9), Side(1), same_work=False, manner=manner) == other
    assert outcome(Rule(LAUNCHES, grow=0), Side(9), Side(1), same_setting=False, manner=manner) == other
    assert outcome(Rule(LAUNCHES, grow=0), Side(9), Side(1), same_work=False, manner=manner) == FAIL


def test_the_same_bytes_need_no_rule() -> None:
    assert outcome(Rule(TIME, grow=0), Side(2, None, 1), Side(1, None, 1), same_bytes=True) == PASS


def test_the_preset_s_absolute_limit_is_a_share_of_the_step() -> None:
    rule = Rule(metric("gpu_busy"), grow=0.05, of_step=Fraction(1, 100))
    assert outcome(rule, Side(1_010), Side(1_000)) == PASS
    assert outcome(rule, Side(1_060), Side(1_000)) == FAIL


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([], PASS), ([PASS, FAIL, OPEN], FAIL), ([PASS, OPEN], OPEN), ([(Outcome.WARN, Effect.NONE), PASS], (Outcome.WARN, Effect.NONE)),
        ([(Outcome.NEW, Effect.NONE), BETTER], BETTER), ([(Outcome.UNKNOWN, Effect.OPEN), (Outcome.INCONCLUSIVE, Effect.NONE)], (Outcome.UNKNOWN, Effect.OPEN)),
    ],
)  # fmt: skip
def test_the_gravest_effect_comes_before_the_worst_outcome(
    found: list[tuple[Outcome, Effect]], expected: tuple[Outcome, Effect]
) -> None:
    assert worst([(effect, outcome) for outcome, effect in found]) == expected[::-1]


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "a..b",
        "steps[",
        "]",
        "step_time{",
        "step_time{}",
        "step_time.",
        "critical{class}",
        "operators[x",
        "\n",
    ],
)
def test_what_is_no_name_of_a_metric(name: str) -> None:
    with pytest.raises(UnknownMetricError):
        metric(name)


def test_under_two_limits_no_step_of_several_may_break_either() -> None:
    class Several(Side):
        def value(self, _: object, *, highest: bool = True) -> Reading:
            return Reading(900 if highest else 500)

    assert outcome(Rule(TIME, max=800, min=400), Several(0)) == FAIL
    assert outcome(Rule(TIME, max=1000, min=600), Several(0)) == FAIL
    assert outcome(Rule(TIME, max=1000, min=400), Several(0)) == PASS


def test_growth_is_judged_at_the_worst_of_several_steps_whatever_limits_there_are() -> None:
    class Spread(Side):
        def value(self, _: object, *, highest: bool = True) -> Reading:
            return Reading(self.number if highest == (self.count == 5) else 100)

    assert outcome(Rule(TIME, min=50, grow=0.05), Spread(150), Side(100)) == FAIL  # its highest grew
    assert outcome(Rule(OVERLAP, grow=0.05), Spread(50, count=6), Side(100)) == FAIL  # its lowest fell


def _why(rule: Rule, now: Side, base: Side) -> str:
    row = judged(rule, cast("Sampled", now), cast("Sampled", base), Relation())
    assert row is not None
    assert row.why is not None
    return " ".join(row.why.template.format(*(value.raw for value in row.why.values)).split())


def test_noise_about_nothing_is_told_in_the_metric_s_own_unit() -> None:
    assert (
        _why(Rule(TIME, grow=0.05), Side(5000, 1000.0), Side(0)) == "+5.00 µs (from 0); noise ±1.00 µs (n=5)"
    )


def test_one_step_does_not_tell_that_a_count_repeats() -> None:
    assert "every steady step" in _why(Rule(LAUNCHES, grow=0), Side(11, count=2), Side(10, count=2))
    told = _why(Rule(LAUNCHES, grow=0), Side(11, count=1), Side(10))
    assert told == "+1, of one step: whether it repeats is not known"
