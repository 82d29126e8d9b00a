"""The steady window: the golden runs, and the definition (methods A.3) in exact fractions."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepcrit.link.steady import steady_window
from tests.properties.schedules import PROPERTY

PARTS = json.loads((Path(__file__).parent.parent / "golden" / "parts.json").read_text(encoding="utf-8"))
GOLDEN = [case for case in PARTS["steps"] if "periods" in case]

_NEAR = st.integers(90, 112)
_CALM = st.integers(97, 103)
_WILD = st.integers(1, 900)
PERIODS = st.one_of(
    *(st.lists(st.one_of(near, near, near, _WILD), min_size=1, max_size=14) for near in (_CALM, _NEAR)),
    st.lists(_WILD, min_size=1, max_size=8),
)


def middle(values: list[Fraction]) -> Fraction:
    """The median, exactly."""
    ordered, half = sorted(values), len(values) // 2
    return ordered[half] if len(values) % 2 else (ordered[half - 1] + ordered[half]) / 2


def defined(periods: list[int]) -> dict[str, Any]:
    """A.3 word for word."""
    exact = [Fraction(p) for p in periods]
    later = exact[-((len(exact) + 1) // 2) :]
    m = middle(later)
    mad = middle([abs(p - m) for p in later])
    spread = 3 * Fraction("1.4826") * mad
    band = max(m / 10, spread)
    inside = [abs(p - m) <= band for p in exact]
    runs = [i for i in range(len(exact) - 2) if inside[i] and inside[i + 1] and inside[i + 2]]
    first = runs[0] if runs and spread <= m / 4 else None
    after = range(len(exact)) if first is None else range(first, len(exact))
    return {
        "first": first,
        "median": None if first is None else middle(exact[first:]),
        "reference": m,
        "mad": mad,
        "band": band,
        "outliers": () if first is None else tuple(i for i in after if not inside[i]),
    }


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case["id"])
def test_steady_window_is_the_hand_worked_one(case: dict[str, Any]) -> None:
    found, expect = steady_window(case["periods"]), case["expect"]
    assert found.first == expect["first_steady"]
    assert found.reference_ns == expect["reference_median"]
    assert found.mad_ns == expect["mad"]
    assert found.band_ns == pytest.approx(expect["band"], rel=1e-12)
    assert list(found.outliers) == expect["outliers_after"]
    assert found.median_ns == expect["steady_median"]


def test_golden_file_holds_the_three_runs() -> None:
    assert [case["id"] for case in GOLDEN] == ["A01", "A02", "A03"]


@PROPERTY
@given(PERIODS)
def test_window_is_that_of_the_definition(periods: list[int]) -> None:
    found, expect = steady_window(periods), defined(periods)
    assert (found.first, found.outliers) == (expect["first"], expect["outliers"])
    assert found.median_ns == expect["median"]
    assert (found.reference_ns, found.mad_ns) == (expect["reference"], expect["mad"])
    assert found.band_ns == pytest.approx(float(expect["band"]), rel=1e-12)


@PROPERTY
@given(PERIODS, st.integers(0, 30))
def test_another_unit_scales_every_length_and_moves_no_index(periods: list[int], power: int) -> None:
    """By powers of two, where floats scale exactly."""
    unit = 2**power
    one, other = steady_window(periods), steady_window([p * unit for p in periods])
    assert (other.first, other.outliers) == (one.first, one.outliers)
    assert (other.reference_ns, other.mad_ns, other.band_ns) == (
        one.reference_ns * unit,
        one.mad_ns * unit,
        one.band_ns * unit,
    )
    assert other.median_ns == (None if one.median_ns is None else one.median_ns * unit)


@PROPERTY
@given(PERIODS, st.data())
def test_reference_looks_at_the_later_half_only_in_any_order(periods: list[int], data: st.DataObject) -> None:
    half = len(periods) // 2
    early = data.draw(st.lists(_WILD, min_size=half, max_size=half))
    later = data.draw(st.permutations(periods[half:]))
    one, other = steady_window(periods), steady_window([*early, *later])
    assert (one.reference_ns, one.mad_ns, one.band_ns) == (other.reference_ns, other.mad_ns, other.band_ns)


@PROPERTY
@given(PERIODS)
def test_what_comes_before_the_window_is_never_three_good_periods(periods: list[int]) -> None:
    found = steady_window(periods)
    if found.first is None:
        assert (found.median_ns, found.outliers) == (None, ())
        return
    good = [abs(p - found.reference_ns) <= found.band_ns for p in periods]
    assert all(good[found.first : found.first + 3])
    assert not any(all(good[i : i + 3]) for i in range(found.first))
    assert found.outliers == tuple(i for i in range(found.first, len(periods)) if not good[i])


@PROPERTY
@given(st.integers(1, 10**12), st.integers(3, 12))
def test_equal_periods_are_steady_from_the_first(period: int, count: int) -> None:
    found = steady_window([period] * count)
    assert (found.first, found.median_ns, found.mad_ns, found.outliers) == (0, period, 0, ())


@pytest.mark.parametrize("edge", [90, 110])
def test_period_on_the_edge_of_the_band_is_inside(edge: int) -> None:
    found = steady_window([edge, 100, 100, edge, 100, 100, 100, 100])
    assert (found.first, found.band_ns, found.outliers) == (0, 10, ())


@pytest.mark.parametrize("count", [1, 2])
def test_fewer_than_three_periods_are_never_steady(count: int) -> None:
    assert steady_window([100] * count).first is None
