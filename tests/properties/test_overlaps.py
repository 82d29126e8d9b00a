"""Threads cut into nodes and into pieces: how the two overlap, by its definition and as it is compiled."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepcrit.graph.threads import Spans, overlaps_plainly
from stepcrit.kernels import _absent
from tests.properties.schedules import PROPERTY

compiled = pytest.mark.skipif(bool(_absent()), reason="there are no compiled kernels here")

lengths = st.lists(st.integers(1, 9), max_size=30)
cuts = st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=30)
"""How far the next cut is, and whether the thread is free until then; at one instant, a marker."""


def tiles_of(start: int, each: list[int]) -> Spans:
    bounds = start + np.cumsum([0, *each])
    return bounds[:-1].astype(np.int64), bounds[1:].astype(np.int64)


def spans_of(start: int, each: list[tuple[int, bool]]) -> Spans:
    bounds = start + np.cumsum([0, *(n for n, _ in each)])
    free = np.array([is_free for _, is_free in each], np.bool_)
    return bounds[:-1][free].astype(np.int64), bounds[1:][free].astype(np.int64)


def by_hand(spans: Spans, tiles: Spans) -> list[tuple[int, int, int]]:
    """Every span with every tile."""
    (start, end), (tile_start, tile_end) = ((column.tolist() for column in some) for some in (spans, tiles))
    every = [(i, j) for i in range(len(start)) for j in range(len(tile_start))]
    both = [(i, j, min(end[i], tile_end[j]) - max(start[i], tile_start[j])) for i, j in every]
    return [(i, j, length) for i, j, length in both if length > 0]


@PROPERTY
@given(st.integers(-5, 5), lengths, cuts)
def test_overlaps_are_those_of_every_span_with_every_tile(
    start: int, each: list[int], cut: list[tuple[int, bool]]
) -> None:
    spans, tiles = spans_of(start, cut), tiles_of(0, each)
    found = overlaps_plainly(spans, tiles)
    assert list(zip(*(column.tolist() for column in found), strict=True)) == by_hand(spans, tiles)


@compiled
@PROPERTY
@given(st.integers(-5, 5), lengths, cuts)
def test_compiled_overlaps_are_the_same(start: int, each: list[int], cut: list[tuple[int, bool]]) -> None:
    from stepcrit.kernels import _schedule  # noqa: PLC0415 - where it is built

    spans, tiles = spans_of(start, cut), tiles_of(0, each)
    found = np.empty((3, len(spans[0]) + len(tiles[0])), np.int64)
    count = _schedule.overlaps(*spans, *tiles, *found)
    expected = overlaps_plainly(spans, tiles)
    assert found[:, :count].tolist() == [column.tolist() for column in expected]


@compiled
def test_more_overlaps_than_there_is_room_for_are_refused() -> None:
    from stepcrit.kernels import _schedule  # noqa: PLC0415 - where it is built

    spans, tiles = (np.array([0]), np.array([9])), (np.array([0, 3, 6]), np.array([3, 6, 9]))
    found = np.empty((3, 2), np.int64)
    with pytest.raises(IndexError, match="an overlap out of range"):
        _schedule.overlaps(*spans, *tiles, *found)
