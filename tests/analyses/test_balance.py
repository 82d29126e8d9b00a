"""Differences by key add up to the difference of the periods, whatever the steps are, and turn with the sides."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepcrit.analyses import balance
from stepcrit.analyses.balance import How, Spent, is_small
from stepcrit.errors import InternalError

STEP = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 10**9), max_size=6)
RUN = st.lists(STEP, min_size=1, max_size=5)
OWN = st.dictionaries(
    st.sampled_from("abcd"), st.tuples(st.integers(0, 10**9), st.integers(0, 40)), max_size=4
)
SIDE = st.builds(Spent, st.lists(RUN, min_size=1, max_size=4), OWN)


def _mean(side: Spent[str]) -> Fraction:
    steps = [step for run in side.path_ns for step in run]
    return Fraction(sum(sum(step.values()) for step in steps), len(steps))


@given(SIDE, SIDE)
def test_the_differences_add_up_exactly(base: Spent[str], new: Spent[str]) -> None:
    found = balance.analyze(base, new)
    assert (found.base_ns, found.new_ns) == (round(_mean(base)), round(_mean(new)))
    assert sum(d.base.path_ns for d in found.deltas) == found.base_ns
    assert sum(d.new.path_ns for d in found.deltas) == found.new_ns
    assert sum(d.path_ns for d in found.deltas) == found.delta_ns


@given(SIDE, SIDE)
def test_the_other_way_round_everything_turns_its_sign(base: Spent[str], new: Spent[str]) -> None:
    turned = {
        How.NEW: How.GONE, How.GONE: How.NEW, How.MORE: How.FEWER, How.FEWER: How.MORE, How.SLOWER: How.FASTER,
        How.FASTER: How.SLOWER, How.ONTO: How.OFF, How.OFF: How.ONTO, How.NONE: How.NONE,
    }  # fmt: skip
    there, back = balance.analyze(base, new), balance.analyze(new, base)
    assert there.delta_ns == -back.delta_ns
    mirrored = {
        d.key: (-d.path_ns, None if d.own_ns is None else -d.own_ns, turned[d.how], d.spread_ns)
        for d in back.deltas
    }
    assert {d.key: (d.path_ns, d.own_ns, d.how, d.spread_ns) for d in there.deltas} == mirrored
    assert [is_small(d, there) for d in there.deltas] == [is_small(d, back) for d in back.deltas]


@given(SIDE)
def test_a_side_does_not_differ_from_itself(side: Spent[str]) -> None:
    found = balance.analyze(side, side)
    assert {(d.path_ns, d.own_ns or 0, d.how) for d in found.deltas} <= {(0, 0, How.NONE)}
    assert found.delta_ns == 0


def test_the_golden_composition_differs_by_its_communication_alone() -> None:
    cases = json.loads((Path(__file__).parents[1] / "golden" / "regression.json").read_text(encoding="utf-8"))
    (case,) = [one for one in cases if one["id"] == "M03"]
    found = balance.analyze(Spent([[case["base"]]], {}), Spent([[case["new"]]], {}))
    assert found.delta_ns == case["expect"]["delta_T"]
    assert {d.key: d.path_ns for d in found.deltas} == case["expect"]["delta"]


def _how(base: tuple[int, int, int], new: tuple[int, int, int]) -> How:
    """Of one key with (path, own, calls) over two steps of each side."""
    sides = [
        Spent([[{"k": path // 2, "rest": 100}, {"k": path - path // 2, "rest": 100}]], {"k": (own, calls)})
        for path, own, calls in (base, new)
    ]
    return next(d.how for d in balance.analyze(*sides).deltas if d.key == "k")


@pytest.mark.parametrize(
    ("base", "new", "how"),
    [
        ((100, 100, 2), (160, 160, 2), How.SLOWER),
        ((160, 160, 2), (100, 130, 2), How.FASTER),
        ((100, 100, 2), (160, 160, 4), How.MORE),
        ((100, 100, 40), (160, 160, 41), How.SLOWER),  # one call in forty is no more calls
        ((0, 0, 0), (60, 60, 2), How.NEW),
        ((60, 60, 2), (0, 0, 0), How.GONE),
        ((0, 100, 2), (60, 100, 2), How.ONTO),
        ((60, 100, 2), (0, 120, 2), How.OFF),  # on the path it is less although it takes longer
        ((0, 100, 2), (60, 110, 2), How.ONTO),  # a sixth of it is its own
        ((50, 100, 2), (50, 100, 2), How.NONE),
    ],
)
def test_a_key_is_slower_more_often_called_or_only_moved(
    base: tuple[int, int, int], new: tuple[int, int, int], how: How
) -> None:
    assert _how(base, new) == how


def _spread(runs: Sequence[Sequence[int]]) -> float:
    side = Spent([[{"k": ns} for ns in run] for run in runs], {})
    return balance.analyze(side, side).deltas[0].spread_ns


def test_the_spread_is_that_of_runs_where_there_are_three_and_of_steps_where_not() -> None:
    assert _spread([[10, 20, 30, 40, 50]]) == 10  # quartiles 20 and 40
    assert _spread([[10, 90], [10, 90]]) == 40
    assert _spread([[0, 100], [10, 110], [20, 120]]) == 5  # means 50, 60, 70


def test_a_side_without_steps_is_a_bug() -> None:
    with pytest.raises(InternalError):
        balance.analyze(Spent([[]], {}), Spent([[{"k": 1}]], {}))


def test_what_is_too_small_to_tell_is_so_in_both_directions() -> None:
    """Own time off the path, 10 of periods of 100 and 10 000: half a percent of the longer one is 50."""
    short, long = Spent([[{"rest": 100}]], {"off": (10, 1)}), Spent([[{"rest": 10_000}]], {"off": (20, 1)})
    for pair in ((short, long), (long, short)):
        assert [d.key for d in balance.analyze(*pair).deltas] == ["rest"]
    longer = Spent([[{"rest": 10_000}]], {"off": (70, 1)})
    for pair in ((short, longer), (longer, short)):
        assert [d.key for d in balance.analyze(*pair).deltas] == ["rest", "off"]
