"""Bars: cells that add up."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepcrit.report.bars import apportion

PARTS = st.lists(st.integers(min_value=0, max_value=10**15), min_size=1, max_size=40)
WIDTH = st.integers(min_value=1, max_value=200)


@given(PARTS, WIDTH)
def test_cells_sum_to_the_width(parts: list[int], width: int) -> None:
    assert sum(apportion(parts, width)) == (width if sum(parts) else 0)


@given(PARTS, WIDTH)
def test_nothing_is_drawn_for_nothing_and_no_cell_is_negative(parts: list[int], width: int) -> None:
    assert all(n >= 0 and (part or not n) for part, n in zip(parts, apportion(parts, width), strict=True))


@given(PARTS, st.integers(min_value=80, max_value=200))
def test_half_a_cell_is_drawn(parts: list[int], width: int) -> None:
    for part, n in zip(parts, apportion(parts, width), strict=True):
        assert n or 2 * part * width < sum(parts) or not part


@given(PARTS, st.integers(min_value=80, max_value=200))
def test_a_larger_part_is_not_drawn_shorter(parts: list[int], width: int) -> None:
    drawn = sorted(zip(parts, apportion(parts, width), strict=True))
    assert all(b[1] >= a[1] - 1 for a, b in pairwise(drawn))


@pytest.mark.parametrize(
    ("parts", "width", "cells"),
    [
        ([1, 1, 1], 10, [4, 3, 3]),
        ([1, 1], 1, [1, 0]),
        ([1] * 5, 3, [1, 1, 1, 0, 0]),
        ([985, 5, 5, 5], 100, [97, 1, 1, 1]),
        ([0, 7], 3, [0, 3]),
        ([], 3, []),
    ],
)
def test_by_hand(parts: list[int], width: int, cells: list[int]) -> None:
    assert apportion(parts, width) == cells
