"""Statistics of two samples, against brute force over every arrangement and against hand-worked numbers."""

from __future__ import annotations

import itertools
import math
from random import Random
from statistics import median

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepcrit.analyses.statistics import (
    MOST_PAIRS,
    Call,
    autocorrelation,
    compare,
    drift,
    greater_pairs,
    hodges_lehmann,
    modes,
    p_value,
    sample_of,
    verdict,
)
from stepcrit.errors import InternalError

few = st.lists(st.integers(1, 6), min_size=1, max_size=5)
periods = st.lists(st.integers(1, 10**12), min_size=1, max_size=12)


def _pairs(base: list[int], new: list[int]) -> float:
    return sum((n > b) + (n == b) / 2 for b in base for n in new)


def _by_enumeration(base: list[int], new: list[int]) -> float:
    """The share of all ways to call len(new) of the pooled values new that are at least so far from half."""
    pooled, half = [*base, *new], len(base) * len(new) / 2
    observed, far, ways = abs(_pairs(base, new) - half), 0, 0
    for chosen in itertools.combinations(range(len(pooled)), len(new)):
        others = [value for i, value in enumerate(pooled) if i not in chosen]
        far += abs(_pairs(others, [pooled[i] for i in chosen]) - half) >= observed
        ways += 1
    return far / ways


@given(few, few)
def test_the_exact_p_is_that_of_counting_every_arrangement_ties_and_all(
    base: list[int], new: list[int]
) -> None:
    u = greater_pairs(base, new)
    assert u == _pairs(base, new)
    p, is_exact = p_value(base, new, u)
    assert is_exact
    assert p == pytest.approx(_by_enumeration(base, new), rel=1e-12)


def test_larger_samples_have_the_normal_p_with_the_correction_for_ties() -> None:
    base, new = [1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6], [4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9]
    u = _pairs(base, new)  # 66 + 20 + 16 + 6 of 121
    assert u == 108
    ties = [2, 2, 2, 4, 4, 3, 2, 2, 1]  # of 1, 2, … 9
    assert sum(ties) == 22
    variance = 121 / 12 * (23 - sum(t**3 - t for t in ties) / (22 * 21))
    p, is_exact = p_value(base, new, u)
    assert not is_exact
    assert p == pytest.approx(math.erfc((abs(u - 60.5) - 0.5) / math.sqrt(2 * variance)), rel=1e-12)


def test_values_that_are_all_equal_prove_nothing() -> None:
    assert p_value([7] * 11, [7] * 12, 66.0) == (1.0, False)
    assert p_value([7, 7], [7, 7, 7], 3.0) == (1.0, True)


@given(periods, periods)
def test_the_shift_is_the_median_of_all_differences_and_turns_its_sign(
    base: list[int], new: list[int]
) -> None:
    expected = median(n - b for n in new for b in base)
    assert hodges_lehmann(base, new) == expected
    assert hodges_lehmann(new, base) == -expected


def test_very_many_pairs_have_the_same_shift_without_listing_them(monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(3)
    for size in (20, 21):
        base, new = ([random.randrange(-50, 999) for _ in range(size)] for _ in range(2))
        expected = hodges_lehmann(base, new)
        assert size**2 < MOST_PAIRS
        monkeypatch.setattr("stepcrit.analyses.statistics.MOST_PAIRS", 1)
        assert hodges_lehmann(base, new) == expected == median(n - b for n in new for b in base)
        monkeypatch.undo()


@settings(max_examples=12)
@given(periods, periods, st.integers(0, 9))
def test_the_same_samples_and_seed_give_the_same_interval_around_possible_ratios(
    base: list[int], new: list[int], seed: int
) -> None:
    one, again = compare(base, new, seed=seed), compare(base, new, seed=seed)
    assert one == again
    assert one.low is not None
    assert one.high is not None
    assert min(new) / max(base) <= one.low <= one.high <= max(new) / min(base)


def test_periods_that_follow_each_other_are_resampled_in_blocks() -> None:
    slow = [100, 101, 102, 103, 104, 105, 106, 107, 108]
    assert (sample_of(slow).block, sample_of(slow).lag1 > 0.3) == (3, True)  # the cube root of 9, rounded up
    assert sample_of([100, 108, 101, 107, 102, 106, 103, 105, 104]).block == 1
    assert sample_of(list(range(8))).block == 2
    # Four in a row drawn together make the middle vary twice as much as each alone would.
    rising = list(range(100, 130))
    zigzag = [value for pair in zip(rising[:15], rising[:14:-1], strict=True) for value in pair]
    together, apart = compare(rising, rising), compare(zigzag, zigzag)
    assert (together.base.block, apart.base.block) == (4, 1)
    assert together.low is not None
    assert apart.low is not None
    assert 1 - together.low > 1.5 * (1 - apart.low)


def test_autocorrelation_by_hand() -> None:
    # away from 3: -2, -1, 0, 1, 2; products 2 + 0 + 0 + 2 over 10
    assert autocorrelation([1, 2, 3, 4, 5]) == pytest.approx(0.4)
    assert autocorrelation([5, 5]) == 0


@pytest.mark.parametrize(
    ("new", "call"),
    [
        ([103, 103, 103, 103, 103], Call.REGRESSION),
        ([97, 97, 97, 97, 97], Call.IMPROVEMENT),
        ([100.5, 99.5, 100, 100, 100.2], Call.NO_CHANGE),
        ([101, 101, 101, 101, 101], Call.NO_CHANGE),  # the threshold itself is no more than it
        ([101, 103, 99, 101.2, 100], Call.INCONCLUSIVE),
        ([200, 200, 200, 200], Call.TOO_FEW),
    ],
)
def test_the_interval_decides_at_the_threshold(new: list[float], call: Call) -> None:
    assert verdict(compare([100.0] * 6, new), 0.01).call == call


def test_so_many_steps_are_needed_as_make_the_interval_half_as_wide() -> None:
    shift = compare([100.0] * 8, [101, 103, 99, 101.2, 100, 104, 98, 102])
    said = verdict(shift, 0.01)
    assert shift.ratio is not None
    assert shift.low is not None
    assert shift.high is not None
    room, half = abs(abs(shift.ratio - 1) - 0.01), max(shift.high - shift.ratio, shift.ratio - shift.low)
    assert said.needed == math.ceil(8 * (half / room) ** 2)
    at_the_threshold = verdict(compare([100.0] * 6, [101, 103, 99, 101, 99, 103]), 0.01)
    assert (at_the_threshold.call, at_the_threshold.needed) == (Call.INCONCLUSIVE, None)


def test_two_kinds_of_steps_have_no_one_median_to_judge() -> None:
    mixed = [100, 140, 101, 141, 100, 140]
    found = modes(mixed)
    assert found is not None
    assert (found.low_ns, found.high_ns, found.gap_ns) == (100, 140, 39)
    assert (found.low_count, found.high_count) == (3, 3)
    assert verdict(compare([300] * 6, mixed), 0.01).call == Call.INCONCLUSIVE
    assert modes([100, 101, 102, 103, 140]) is None  # one slow step is an outlier
    assert modes([100, 110, 120, 135, 145, 155]) is None  # a spread, no groups


def test_a_drift_is_the_median_slope_over_the_median() -> None:
    assert drift([100, 101, 102, 103, 104]) == pytest.approx(1 / 102)
    assert drift([100, 101, 500, 103, 104]) == pytest.approx(1 / 103)  # one outlier does not turn it
    assert drift([100, 101, 102, 103]) is None
    long = [1000 + 3 * i for i in range(5000)]
    assert drift(long) == pytest.approx(3 / median(long))
    assert sample_of([100, 101, 102, 103, 104]).drifts
    assert not sample_of([100, 100, 101, 100, 100]).drifts


def test_a_base_of_nothing_has_no_ratio() -> None:
    shift = compare([0] * 5, [1] * 5)
    assert (shift.ratio, shift.low, shift.high) == (None, None, None)
    assert verdict(shift, 0.01).call == Call.INCONCLUSIVE


def test_an_empty_sample_is_a_bug() -> None:
    with pytest.raises(InternalError):
        compare([], [1])


def test_long_runs_are_resampled_less_often() -> None:
    assert compare([100] * 4000, [100] * 4000).resamples == 1000
    assert compare([100] * 400, [100] * 100).resamples == 8000
