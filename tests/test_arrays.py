"""Small forms of library functions give what those give; what is remembered is what would be said again."""

from __future__ import annotations

import gc
from statistics import median
from weakref import ref

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stepcrit.intervals import ascending
from stepcrit.model.arrays import among, distinct, median_of, middle_of, order_of, percentile_of
from stepcrit.model.events import EventTable
from stepcrit.model.once import once
from tests.builders import table
from tests.properties.schedules import PROPERTY

numbers = st.lists(st.integers(-(2**40), 2**40) | st.integers(0, 3), min_size=1, max_size=40).map(
    lambda values: np.array(values, np.int64)
)


@PROPERTY
@given(numbers, st.sampled_from((0, 5, 50, 95, 100)))
def test_medians_and_percentiles_are_those_of_numpy(
    values: np.typing.NDArray[np.int64], percent: int
) -> None:
    assert median_of(values) == np.median(values)
    assert percentile_of(values, percent) == np.percentile(values, percent)


@PROPERTY
@given(numbers)
def test_what_occurs_comes_once_and_ascending(values: np.typing.NDArray[np.int64]) -> None:
    assert ascending(values).tolist() == sorted(set(values.tolist()))
    assert distinct(values % 50).tolist() == sorted(set((values % 50).tolist()))


@PROPERTY
@given(numbers, numbers)
def test_values_among_others_are_those_that_numpy_finds_in_them(
    values: np.typing.NDArray[np.int64], wanted: np.typing.NDArray[np.int64]
) -> None:
    assert among(values, wanted).tolist() == np.isin(values, wanted).tolist()
    assert not among(values, wanted[:0]).any()
    assert among(values[:0], wanted).tolist() == []


@PROPERTY
@given(st.lists(st.integers(0, 5) | st.integers(0, 2**20), max_size=40))
def test_codes_are_put_in_order_and_equal_ones_left_in_theirs(codes: list[int]) -> None:
    found = order_of(np.array(codes, np.int32))
    assert found.tolist() == sorted(range(len(codes)), key=codes.__getitem__)


@PROPERTY
@given(st.lists(st.integers(-5, 2**60), min_size=1))
def test_the_middle_is_the_median_and_a_whole_number_where_that_is_one(values: list[int]) -> None:
    assert repr(middle_of(values)) == repr(median(values))


def test_what_is_said_of_a_table_is_worked_out_once_and_goes_with_it() -> None:
    asked, tables = [], [table([]) for _ in range(3)]

    @once
    def said(first: EventTable, second: EventTable) -> list[int]:
        asked.append((tables.index(first), tables.index(second)))
        return [len(first)]

    first, second, third = tables
    assert said(first, second) is said(first, second) == [0]
    said(second, third)
    said(first, second)
    said(first, third)
    assert asked == [(0, 1), (1, 2), (0, 2)]
    gone = ref(first)
    tables.clear()
    del first
    gc.collect()
    assert gone() is None


def test_of_nothing_nothing_occurs() -> None:
    assert ascending(np.empty(0, np.int64)).tolist() == distinct(np.empty(0, np.int64)).tolist() == []
