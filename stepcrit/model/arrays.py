"""The array types every table is made of."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

IntArray: TypeAlias = NDArray[np.signedinteger[Any]]
"""Whole numbers of 32 bits each where those are enough, else of 64. Who adds to them or multiplies widens them first."""
Int64Array: TypeAlias = NDArray[np.int64]
Int32Array: TypeAlias = NDArray[np.int32]
Int8Array: TypeAlias = NDArray[np.int8]
BoolArray: TypeAlias = NDArray[np.bool_]

NONE = -1
"""The value of an id, a correlation or a byte count that the trace does not give."""


def freeze(*arrays: NDArray[np.generic]) -> None:
    """Make `arrays` read-only: a frozen Struct does not freeze what its arrays hold."""
    for array in arrays:
        array.flags.writeable = False


def median_of(values: NDArray[np.generic]) -> float:
    """The middle value, or the mean of the middle two: `numpy.median`, which loads masked arrays for it."""
    low, high = (len(values) - 1) // 2, len(values) // 2
    middle = np.partition(values, (low, high))[[low, high]].astype(np.float64)
    return float(middle.mean())


def percentile_of(values: Int64Array, percent: int) -> float:
    """What so many percent of the values do not exceed, between two of them in proportion: `numpy.percentile`."""
    at = (len(values) - 1) * (percent / 100)
    low, high = math.floor(at), math.ceil(at)
    below, above = np.partition(values, (low, high))[[low, high]].tolist()
    part = at - low
    # The nearer of the two is started from, as numpy does: the last bit depends on it.
    return float(below + (above - below) * part if part < 0.5 else above - (above - below) * (1 - part))


def distinct(codes: IntArray) -> Int64Array:
    """The codes that occur, ascending; codes count from 0, as indices into a table do."""
    occurs = np.zeros(int(codes.max(initial=-1)) + 1, np.bool_)
    occurs[codes] = True
    return np.flatnonzero(occurs)


def order_of(codes: Int32Array) -> Int64Array:
    """Indexes in the order of codes that count from 0; of equal codes in their own order."""
    if (codes[1:] >= codes[:-1]).all():
        return np.arange(len(codes))
    is_short = codes.max() < 2**16  # numpy has a radix sort for these
    return np.argsort(codes.astype(np.uint16) if is_short else codes, kind="stable")


def among(values: IntArray, wanted: IntArray) -> BoolArray:
    """Which values occur in `wanted`: `numpy.isin`, which hashes where they spread widely, and takes 40 times as long."""
    if not wanted.size:
        return np.zeros(len(values), np.bool_)
    ordered = np.sort(wanted)
    place = np.searchsorted(ordered, values)
    found: BoolArray = ordered[np.minimum(place, len(ordered) - 1)] == values
    return found


def middle_of(values: Iterable[float]) -> float:
    """The middle value, or half of the sum of the middle two: `statistics.median`, whose module takes 5 ms to load."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
