"""Times are read exactly from their text."""

from __future__ import annotations

from decimal import ROUND_DOWN, Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepcrit.ingest.times import MAX_NS, MIN_NS, column_ns, to_ns

CASES = [
    (b"0", 0, "zero"),
    (b"5", 5_000, "whole microseconds"),
    (b"812345678.120", 812_345_678_120, "Kineto's three decimals"),
    (b"5.5", 5_500, "one decimal is padded"),
    (b"5.05", 5_050, "two decimals are padded"),
    (b"5.005", 5_005, "three decimals"),
    (b"5.0059", 5_005, "more than three are truncated"),
    (b"0.960", 960, "less than a microsecond"),
    (b"1712170339414321.487", 1_712_170_339_414_321_487, "an epoch time that a float64 would round by 63 ns"),
    (b'"1704161511420306.491"', 1_704_161_511_420_306_491, "quoted, as torch-npu writes it"),
    (b'" 7 "', 7_000, "quoted with blanks"),
    (b"1.7e15", 1_700_000_000_000_000_000, "an exponent"),
    (b"12E-2", 120, "a negative exponent"),
    (b"-3.25", -3_250, "negative"),
    (b"-0.0005", 0, "truncation goes towards zero"),
]


@pytest.mark.parametrize(("text", "ns", "point"), CASES, ids=[case[2] for case in CASES])
def test_a_time_is_read_to_the_nanosecond(text: bytes, ns: int, point: str) -> None:
    assert to_ns(text) == ns, point
    values, usable = column_ns([text])
    assert (values.tolist(), usable.tolist()) == ([ns], [True]), point


@pytest.mark.parametrize("text", [b"null", b"true", b'""', b'"soon"', b"[1]", b"{}", b"", b"0x10", b'"1 2"'])
def test_what_is_no_number_is_none(text: bytes) -> None:
    assert to_ns(text) is None
    values, usable = column_ns([b"1", text])
    assert (values.tolist(), usable.tolist()) == ([1_000, 0], [True, False])


def test_a_column_of_mixed_spellings_reads_each_value_on_its_own() -> None:
    texts = [b"1", b"2.5", b'"3"', b"4e0", b"null", b"15", b"1.2345"]
    values, usable = column_ns(texts)
    assert values.tolist() == [1_000, 2_500, 3_000, 4_000, 0, 15_000, 1_234]
    assert usable.tolist() == [True] * 4 + [False] + [True] * 2


def test_one_time_out_of_range_does_not_spoil_the_others() -> None:
    values, usable = column_ns([b"1", b"9000000000000000000", b"-2"])
    assert (values.tolist(), usable.tolist()) == ([1_000, MAX_NS + 1, -2_000], [True] * 3)


def test_a_value_without_decimals_among_decimals_does_not_shift_the_others() -> None:
    values, _ = column_ns([b"150", b"1.2", b"3.4"])
    assert values.tolist() == [150_000, 1_200, 3_400]


def test_a_number_with_two_points_is_none_and_does_not_shift_the_others() -> None:
    values, usable = column_ns([b"15", b"1.2.3"])
    assert (values.tolist(), usable.tolist()) == ([15_000, 0], [True, False])


@pytest.mark.parametrize("text", [b"1e300", b"9999999999999999999", b"4611686018427388.5"])
def test_a_time_out_of_range_is_recognisable(text: bytes) -> None:
    values, _ = column_ns([text])
    assert values[0] == MAX_NS + 1
    values, _ = column_ns([b"-" + text])
    assert values[0] == MIN_NS - 1


def test_an_empty_column_is_empty() -> None:
    values, usable = column_ns([])
    assert len(values) == len(usable) == 0


def _exact(text: str) -> int:
    """The oracle."""
    return int((Decimal(text) * 1000).to_integral_value(ROUND_DOWN))


@given(st.decimals(min_value=-(10**12), max_value=10**15, allow_nan=False, allow_infinity=False, places=6))
def test_any_decimal_agrees_with_exact_arithmetic(value: Decimal) -> None:
    assert to_ns(f"{value:f}".encode()) == _exact(f"{value:f}")


@given(
    st.lists(st.tuples(st.integers(0, 10**15), st.text("0123456789", max_size=4)), min_size=1, max_size=20)
)
def test_any_column_agrees_with_exact_arithmetic(parts: list[tuple[int, str]]) -> None:
    texts = [f"{whole}.{part}" if part else str(whole) for whole, part in parts]
    values, usable = column_ns([text.encode() for text in texts])
    assert values.tolist() == [_exact(text) for text in texts]
    assert np.all(usable)
