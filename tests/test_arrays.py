"""Small forms of numpy's functions give what numpy's give."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stepcrit.intervals import ascending
from stepcrit.model.arrays import distinct, median_of, percentile_of
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


def test_of_nothing_nothing_occurs() -> None:
    assert ascending(np.empty(0, np.int64)).tolist() == distinct(np.empty(0, np.int64)).tolist() == []
