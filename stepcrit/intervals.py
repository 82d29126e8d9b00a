"""Algebra of half-open integer intervals [start, end): union, intersection, difference, length.

A *set* is a pair of equally long int64 arrays (starts, ends), sorted and disjoint; `union` makes
one from any intervals. Touching intervals do not overlap. Every operation is O(n log n) or better.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Ints = NDArray[np.int64]


class Intervals(Struct, frozen=True, eq=False):
    """A sorted set of disjoint, non-empty half-open intervals, in ns."""

    start: Ints
    end: Ints

    def __len__(self) -> int:
        return len(self.start)

    @property
    def length(self) -> int:
        """Total length, in ns."""
        return int((self.end - self.start).sum())

    def covered_by(self, at: Ints) -> Ints:
        """How much of the set lies before each instant, in ns.

        >>> import numpy as np
        >>> union(np.array([0, 10]), np.array([4, 12])).covered_by(np.array([-1, 3, 4, 9, 11, 20])).tolist()
        [0, 3, 4, 4, 5, 6]
        """
        before = np.concatenate(([0], np.cumsum(self.end - self.start)))
        i = np.searchsorted(self.start, at, side="right")
        ends = np.concatenate(([np.iinfo(np.int64).min // 2], self.end))
        covered: Ints = before[i] - np.maximum(ends[i] - at, 0)
        return covered

    def pairs(self) -> list[tuple[int, int]]:
        """The intervals as plain pairs, for people and tests."""
        return list(zip(self.start.tolist(), self.end.tolist(), strict=True))


def union(start: Ints, end: Ints) -> Intervals:
    """The set covered by any of the intervals; empty ones cover nothing.

    >>> import numpy as np
    >>> union(np.array([5, 0, 3]), np.array([7, 4, 5])).pairs()
    [(0, 7)]
    """
    keep = end > start
    start, end = start[keep], end[keep]
    if not start.size:
        return Intervals(np.empty(0, np.int64), np.empty(0, np.int64))
    order = np.argsort(start, kind="stable")
    start, end = start[order], end[order]
    reach = np.maximum.accumulate(end)
    opens = np.concatenate(([True], start[1:] > reach[:-1]))
    closes = np.concatenate((opens[1:], [True]))
    return Intervals(start[opens], reach[closes])


def intersect(a: Intervals, b: Intervals) -> Intervals:
    """What lies in both sets."""
    bounds = ascending(np.concatenate((a.start, a.end, b.start, b.end)))
    left, right = bounds[:-1], bounds[1:]
    both = covers(a, left) & covers(b, left)
    return union(left[both], right[both])


def subtract(a: Intervals, b: Intervals) -> Intervals:
    """What lies in `a` and not in `b`."""
    bounds = ascending(np.concatenate((a.start, a.end, b.start, b.end)))
    left, right = bounds[:-1], bounds[1:]
    rest = covers(a, left) & ~covers(b, left)
    return union(left[rest], right[rest])


def clip(a: Intervals, start: int, end: int) -> Intervals:
    """The part of `a` inside the window [start, end)."""
    return union(np.maximum(a.start, start), np.minimum(a.end, end))


def complement(a: Intervals, start: int, end: int) -> Intervals:
    """The part of the window [start, end) that `a` leaves free."""
    return subtract(union(np.array([start]), np.array([end])), a)


def covers(a: Intervals, at: Ints) -> NDArray[np.bool_]:
    """Whether each instant of `at` lies inside `a`."""
    if not len(a):
        return np.zeros(len(at), np.bool_)
    i = np.searchsorted(a.start, at, side="right") - 1  # -1 before the first: that end is not asked for
    inside: NDArray[np.bool_] = (i >= 0) & (at < a.end[i])
    return inside


Number = TypeVar("Number", bound=np.generic)


def ascending(values: NDArray[Number]) -> NDArray[Number]:
    """The values that occur, each once: `numpy.unique`, which loads masked arrays for it and hashes."""
    ordered = np.sort(values)
    first = np.ones(len(ordered), np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    return ordered[first]
