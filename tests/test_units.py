"""Numbers as words: three digits, whole numbers whole, and no value that rounds to a lie."""

from __future__ import annotations

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepcrit import units
from stepcrit.units import THIN, bytes_text, count_text, ns_text, share_text, three


def test_examples_in_docstrings_hold() -> None:
    assert doctest.testmod(units).failed == 0


@pytest.mark.parametrize(
    ("ns", "words"),
    [
        (0, "0"),
        (1, "1 ns"),
        (999, "999 ns"),
        (1_000, "1.00 µs"),
        (9_994, "9.99 µs"),
        (9_996, "10.0 µs"),
        (99_960, "100 µs"),
        (999_499, "999 µs"),
        (999_950, "1.00 ms"),
        (999_500_000, "1.00 s"),
        (412_600_000, "413 ms"),
        (41_000_000, "41.0 ms"),
        (90_061_000_000_000, "90 061 s"),
        (-1_500, "-1.50 µs"),
        (12.5, "12.5 ns"),
        (0.25, "0.25 ns"),
        (0.0001, "<0.01 ns"),
    ],
)
def test_a_duration_has_three_digits_in_its_unit(ns: float, words: str) -> None:
    assert ns_text(ns).replace(THIN, " ") == words


def test_a_signed_duration_shows_its_sign_and_zero_has_none() -> None:
    assert [ns_text(n, sign=True, plain=True) for n in (1_500, -1_500, 7, 0)] == [
        "+1.50 us",
        "-1.50 us",
        "+7 ns",
        "0",
    ]


@given(st.integers(min_value=1, max_value=10**18))
def test_a_duration_is_never_off_by_more_than_half_a_digit(ns: int) -> None:
    number, unit = ns_text(ns, plain=True).rsplit(" ", 1)
    shown = float(number.replace(" ", "")) * {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}[unit]
    assert abs(shown - ns) <= 0.00501 * ns
    assert unit == "s" or float(number) < 1000


@given(st.integers(min_value=0, max_value=10**15), st.integers(min_value=1, max_value=10**15))
def test_a_share_is_zero_or_whole_only_when_it_is(part: int, rest: int) -> None:
    words = share_text(part, part + rest, plain=True)
    assert (words == "0 %") == (part == 0)
    assert words not in ("100 %", "0.0 %", "100.0 %")


@pytest.mark.parametrize(
    ("part", "whole", "words"),
    [
        (0, 0, "-"),
        (3, 2, "150.0 %"),
        (-1, 4, "-25.0 %"),
        (-1, 10**6, ">-0.1 %"),
        (10**17, 10**17 + 1, ">99.9 %"),
        (1.0, 1, "100 %"),
    ],
)
def test_shares_at_the_edges(part: float, whole: float, words: str) -> None:
    assert share_text(part, whole, plain=True) == words


@pytest.mark.parametrize(
    ("n", "words"),
    [
        (0, "0 B"),
        (1023, "1 023 B"),
        (1024, "1.00 KiB"),
        (1024 * 1023, "1 023 KiB"),
        (2**30 - 1, "1.00 GiB"),
        (2**60, "1 024 PiB"),
    ],
)
def test_sizes_are_in_binary_units(n: int, words: str) -> None:
    assert bytes_text(n, plain=True) == words


def test_ascii_words_hold_ascii_only() -> None:
    words = [
        ns_text(1_234_567_890_123, plain=True),
        ns_text(1_500, plain=True),
        count_text(10**9, plain=True),
        bytes_text(10**9, plain=True),
    ]
    assert all(w.isascii() for w in words)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_the_policy_never_rounds_something_to_nothing(value: float) -> None:
    text = three(value)
    assert (text.strip("-") == "0.00") == (value == 0)
    assert "e" not in text
