"""A prediction is judged by where the observed saving lies, and never credited with more than its ceiling."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepcrit.analyses.judgement import Outcome, judge

CASES = json.loads((Path(__file__).parents[1] / "golden" / "regression.json").read_text(encoding="utf-8"))
(C06,) = [case for case in CASES if case["id"] == "C06"]


@pytest.mark.parametrize(("observed", "outcome"), C06["expect"].items())
def test_the_golden_observations_are_judged(observed: str, outcome: str) -> None:
    low, high = C06["given"]["predicted"]
    assert str(judge((low, high), C06["given"]["ceiling"], tuple(json.loads(observed)))) == outcome


def test_the_golden_case_has_all_four_outcomes() -> None:
    assert set(C06["expect"].values()) == set(Outcome)


@given(*[st.integers(-50, 50)] * 5)
def test_intervals_that_meet_are_consistent_unless_above_the_ceiling(
    a: int, b: int, c: int, d: int, ceiling: int
) -> None:
    predicted, observed = (min(a, b), max(a, b)), (min(c, d), max(c, d))
    meet = predicted[0] <= observed[1] and observed[0] <= predicted[1]
    assert (judge(predicted, ceiling, observed) == Outcome.CONSISTENT) == meet
    if not meet:
        below = observed[1] < predicted[0]
        beyond = not below and observed[0] > ceiling
        expected = Outcome.SMALLER if below else Outcome.BEYOND if beyond else Outcome.LARGER
        assert judge(predicted, ceiling, observed) == expected
