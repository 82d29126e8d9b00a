"""Two samples of periods.

Question: did the step get longer or shorter, by how much, and how sure is that of so few steps?
Method:   ratio of medians with a percentile bootstrap, Hodges-Lehmann shift, Mann-Whitney's U and A12, and a
          practical threshold that decides (methods M.3); blocks are resampled where steps depend on the one before.
Needs:    periods of steady steps on both sides, in time order.
Keeps:    the shift of (b, a) is minus that of (a, b); the same samples and seed give the same interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from enum import StrEnum
from itertools import pairwise
from random import Random
from statistics import median
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from stepcrit.errors import InternalError
from stepcrit.intervals import ascending

SEED = 12345
RESAMPLES = 10_000
FEWEST_RESAMPLES = 1_000
MOST_DRAWS = 4_000_000
"""Resampled values altogether: with more steps there are fewer resamples, but no fewer than FEWEST_RESAMPLES."""

FEWEST_STEPS = 5
"""Fewer steady steps on a side give no verdict."""

EXACT_UP_TO = 10
"""Samples up to this size have the exact distribution of U; larger ones the normal one, corrected for ties."""

DEPENDENT = 0.3
"""Autocorrelation from one step to the next above which blocks of steps are resampled."""

MOST_PAIRS = 4_000_000
MOST_NEEDED = 10_000

BIMODAL_TIMES = 2
BIMODAL_SHARE = 0.02
"""Two groups of periods: the gap between them is twice the range within each, and 2 % of the median."""

SLOPE_POINTS = 1_000
DRIFT_SHARE = 0.002
"""A slope of more than 0.2 % of the median per step is told."""


class Call(StrEnum):
    """What the interval says at the threshold."""

    REGRESSION = "regression"
    IMPROVEMENT = "improvement"
    NO_CHANGE = "no change"
    INCONCLUSIVE = "inconclusive"
    TOO_FEW = "too few steps"


class Modes(Struct, frozen=True):
    """Two groups of periods with a wide gap between them.

    Attributes:
        gap_ns: the gap.
        low_ns, high_ns: median of each group.
        low_count, high_count: periods in each.
    """

    gap_ns: float
    low_ns: float
    high_ns: float
    low_count: int
    high_count: int


class Sample(Struct, frozen=True):
    """One side.

    Attributes:
        values_ns: the periods, in time order.
        median_ns: their median.
        lag1: autocorrelation of each period with the one before it, 0 where nothing varies.
        block: how many periods in a row are resampled together; 1: each by itself.
        modes: two groups, where there are two.
        drift_share: Theil-Sen slope per step over the median; None below FEWEST_STEPS periods.
    """

    values_ns: tuple[float, ...]
    median_ns: float
    lag1: float
    block: int
    modes: Modes | None
    drift_share: float | None

    @property
    def drifts(self) -> bool:
        """Whether the slope is worth telling."""
        return self.drift_share is not None and abs(self.drift_share) > DRIFT_SHARE


class Shift(Struct, frozen=True):
    """What became of the periods, from base to new.

    Attributes:
        base, new: the samples.
        ratio: of the medians, new over base; None where base is 0.
        low, high: its interval of 95 %; None where it has no ratio.
        shift_ns: Hodges-Lehmann: the median of all differences between a new and a base period.
        u: pairs in which the new period is longer, and half of those in which both are equal.
        a12: their share of all pairs: 0.5 where neither side is longer.
        p: two-sided, of a U at least so far from half.
        is_exact: whether p is from the exact distribution.
        seed, resamples: of the bootstrap.
    """

    base: Sample
    new: Sample
    ratio: float | None
    low: float | None
    high: float | None
    shift_ns: float
    u: float
    a12: float
    p: float
    is_exact: bool
    seed: int
    resamples: int


class Verdict(Struct, frozen=True):
    """The call, and what it rests on.

    Attributes:
        call: the call.
        threshold: the practical threshold, a share of the base.
        needed: about how many steps a side would decide; None where that is not known, or no such number helps.
    """

    call: Call
    threshold: float
    needed: int | None = None


def compare(base_ns: Sequence[float], new_ns: Sequence[float], *, seed: int = SEED) -> Shift:
    """Compare two samples, each of at least one value.

    Raises:
        InternalError: one is empty (a bug).
    """
    if not base_ns or not new_ns:
        raise InternalError("a comparison of an empty sample")
    base, new = sample_of(base_ns), sample_of(new_ns)
    pairs = len(base_ns) * len(new_ns)
    u = greater_pairs(base_ns, new_ns)
    p, is_exact = p_value(base_ns, new_ns, u)
    count = max(FEWEST_RESAMPLES, min(RESAMPLES, MOST_DRAWS // (len(base_ns) + len(new_ns))))
    low, high = _interval(base, new, Random(seed), count)  # noqa: S311 - no secret
    ratio = new.median_ns / base.median_ns if base.median_ns else None
    return Shift(
        base, new, ratio, low, high, hodges_lehmann(base_ns, new_ns), u, u / pairs, p, is_exact, seed, count
    )


def verdict(shift: Shift, threshold: float, *, fewest: int = FEWEST_STEPS) -> Verdict:
    """Say what the interval means against a practical threshold.

    Args:
        shift: the comparison.
        threshold: what counts as a change, as a share: 0.01.
        fewest: with fewer values on a side there is no verdict.
    """
    count = min(len(shift.base.values_ns), len(shift.new.values_ns))
    if count < fewest:
        return Verdict(Call.TOO_FEW, threshold, fewest)
    low, high, ratio = shift.low, shift.high, shift.ratio
    if low is None or high is None or ratio is None or shift.base.modes or shift.new.modes:
        return Verdict(Call.INCONCLUSIVE, threshold)
    if low > 1 + threshold:
        return Verdict(Call.REGRESSION, threshold)
    if high < 1 - threshold:
        return Verdict(Call.IMPROVEMENT, threshold)
    if 1 - threshold <= low and high <= 1 + threshold:
        return Verdict(Call.NO_CHANGE, threshold)
    return Verdict(Call.INCONCLUSIVE, threshold, _needed(count, (low, ratio, high), threshold))


def _needed(count: int, interval: tuple[float, float, float], threshold: float) -> int | None:
    """About how many steps make the interval narrow enough: its width shrinks with their root."""
    low, ratio, high = interval
    room = abs(abs(ratio - 1) - threshold)
    half = max(high - ratio, ratio - low)
    if half >= room * math.sqrt(MOST_NEEDED / count):
        return None
    return max(count + 1, math.ceil(count * (half / room) ** 2))


def sample_of(values_ns: Sequence[float]) -> Sample:
    """Describe one side."""
    lag1 = autocorrelation(values_ns)
    block = math.ceil(round(len(values_ns) ** (1 / 3), 9)) if lag1 > DEPENDENT else 1
    return Sample(tuple(values_ns), float(median(values_ns)), lag1, block, modes(values_ns), drift(values_ns))


# --- the bootstrap -----------------------------------------------------------------------------


def _interval(base: Sample, new: Sample, random: Random, count: int) -> tuple[float | None, float | None]:
    """The middle 95 % of the ratios of medians of resampled sides, base first."""
    draw_base, draw_new = _drawer(base, random), _drawer(new, random)
    ratios = []
    for _ in range(count):
        below, above = draw_base(), draw_new()
        if not below:
            return None, None
        ratios.append(above / below)
    ratios.sort()
    return ratios[count * 25 // 1000], ratios[count * 975 // 1000 - 1]


def _drawer(sample: Sample, random: Random) -> Callable[[], float]:
    """What draws the median of a resampled side."""
    values, n, block = sample.values_ns, len(sample.values_ns), sample.block
    draw = random.randrange
    if block == 1:
        return lambda: _median([values[draw(n)] for _ in range(n)])
    starts = n - block + 1

    def by_blocks() -> float:
        drawn: list[float] = []
        while len(drawn) < n:
            at = draw(starts)
            drawn += values[at : at + block]
        return _median(drawn[:n])

    return by_blocks


def _median(values: list[float]) -> float:
    """statistics.median, without its checks."""
    values.sort()
    half = len(values) // 2
    return values[half] if len(values) % 2 else (values[half - 1] + values[half]) / 2


# --- ranks -------------------------------------------------------------------------------------


def greater_pairs(base: Sequence[float], new: Sequence[float]) -> float:
    """Mann-Whitney's U of the new side: pairs in which it is greater, ties counting half."""
    ordered = np.sort(np.array(base))
    below, upto = (np.searchsorted(ordered, np.array(new), side=side) for side in ("left", "right"))
    return float((below + upto).sum()) / 2


def p_value(base: Sequence[float], new: Sequence[float], u: float) -> tuple[float, bool]:
    """Two-sided probability of a U at least so far from its middle, and whether it is exact."""
    if max(len(base), len(new)) <= EXACT_UP_TO:
        return _exact_p(base, new, u), True
    n, m = len(base), len(new)
    _, ties = np.unique(np.array([*base, *new]), return_counts=True)
    size, tied = n + m, float((ties.astype(float) ** 3 - ties).sum())
    variance = n * m / 12 * (size + 1 - tied / (size * (size - 1)))
    if variance <= 0:
        return 1.0, False
    away = max(abs(u - n * m / 2) - 0.5, 0.0)
    return math.erfc(away / math.sqrt(2 * variance)), False


def _exact_p(base: Sequence[float], new: Sequence[float], u: float) -> float:
    """Over all ways to call len(new) of the pooled values new, ties sharing their ranks."""
    pooled = np.sort(np.array([*base, *new]))
    # Twice the rank that ties share is a whole number.
    doubled = np.searchsorted(pooled, pooled, side="left") + np.searchsorted(pooled, pooled, side="right") + 1
    size, most = len(new), int(doubled.sum())
    ways = [[0] * (most + 1) for _ in range(size + 1)]
    ways[0][0] = 1
    for rank in doubled.tolist():
        for taken in range(size, 0, -1):
            fewer, row = ways[taken - 1], ways[taken]
            for total in range(most, rank - 1, -1):
                row[total] += fewer[total - rank]
    middle = len(base) * size  # of twice U
    least = size * (size + 1)  # twice the least sum of ranks
    away = abs(2 * u - middle)
    far = sum(n for total, n in enumerate(ways[size]) if n and abs(total - least - middle) >= away - 1e-9)
    return far / math.comb(len(pooled), size)


def hodges_lehmann(base: Sequence[float], new: Sequence[float]) -> float:
    """The median of all differences between a value of the new side and one of the base.

    Where there are very many pairs, values must be whole numbers: the median is then found by halving.
    """
    if len(base) * len(new) <= MOST_PAIRS:
        return float(np.median(np.subtract.outer(np.array(new), np.array(base))))
    a, b, pairs = np.sort(np.array(base)), np.sort(np.array(new)), len(base) * len(new)
    return (_kth(a, b, (pairs + 1) // 2) + _kth(a, b, pairs // 2 + 1)) / 2


def _kth(base: NDArray[Any], new: NDArray[Any], k: int) -> int:
    """The k-th smallest difference, from 1: the least one that so many are not above."""
    low, high = int(new[0] - base[-1]), int(new[-1] - base[0])
    while low < high:
        middle = (low + high) // 2
        if int(np.searchsorted(new, base + middle, side="right").sum()) >= k:
            high = middle
        else:
            low = middle + 1
    return low


# --- what one side looks like ------------------------------------------------------------------


def autocorrelation(values: Sequence[float]) -> float:
    """Of each value with the one before it; 0 where nothing varies.

    >>> autocorrelation([1, 1, 1]), round(autocorrelation([1, 2, 3, 4]), 3), autocorrelation([1, -1, 1, -1])
    (0.0, 0.25, -0.75)
    """
    away = np.array(values, np.float64) - float(np.mean(values))
    whole = float((away * away).sum())
    return float((away[1:] * away[:-1]).sum()) / whole if whole else 0.0


def modes(values: Sequence[float]) -> Modes | None:
    """Two groups on either side of the largest gap, if it is wide and each holds a quarter of the values.

    >>> modes([100, 140, 101, 141, 100]).low_count, modes([100, 101, 102, 103, 140])
    (3, None)
    """
    ordered = sorted(values)
    if len(ordered) < FEWEST_STEPS:
        return None
    gaps = [b - a for a, b in pairwise(ordered)]
    gap = max(gaps)
    at = gaps.index(gap) + 1
    low, high = ordered[:at], ordered[at:]
    ranges = max(low[-1] - low[0], high[-1] - high[0])
    wide = gap > BIMODAL_TIMES * ranges and gap > BIMODAL_SHARE * median(ordered)
    if not wide or 4 * min(len(low), len(high)) < len(ordered):
        return None
    return Modes(gap, float(median(low)), float(median(high)), len(low), len(high))


def drift(values: Sequence[float]) -> float | None:
    """Theil-Sen: the median slope between any two values, per step, over their median.

    >>> drift([100, 101, 102, 103, 104])
    0.00980392156862745
    """
    middle = median(values)
    if len(values) < FEWEST_STEPS or not middle:
        return None
    at = ascending(np.linspace(0, len(values) - 1, min(len(values), SLOPE_POINTS)).round().astype(np.int64))
    chosen = np.array(values, np.float64)[at]
    i, j = np.triu_indices(len(at), 1)
    return float(np.median((chosen[j] - chosen[i]) / (at[j] - at[i]))) / float(middle)
