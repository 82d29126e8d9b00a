"""Which periods are steady: the median and spread of the later half decide (methods A.3)."""

from __future__ import annotations

from collections.abc import Sequence

from stepcrit.model.arrays import middle_of
from stepcrit.model.steps import Steady

MAD_TO_SIGMA = 1.4826  # for normal noise
BAND_SIGMAS = 3
BAND_SHARE = 0.10  # of the median, at least
MAX_SPREAD = 0.25  # of the median: beyond it nothing is steady
RUN = 3  # this many periods in a row must lie in the band


def steady_window(periods: Sequence[int]) -> Steady:
    """Find the steady window of a run of step periods.

    Args:
        periods: at least one, in time order, in any unit.

    >>> steady_window([900, 310, 102, 100, 101, 99, 100]).first
    2
    """
    later = sorted(periods[len(periods) // 2 :])
    middle = middle_of(later)
    mad = middle_of(abs(p - middle) for p in later)
    spread = BAND_SIGMAS * MAD_TO_SIGMA * mad
    band = max(BAND_SHARE * middle, spread)
    first = None if spread > MAX_SPREAD * middle else _first_run(periods, middle, band)
    steady = periods[first:] if first is not None else ()
    outliers = tuple(
        i for i, p in enumerate(periods) if first is not None and i >= first and abs(p - middle) > band
    )
    return Steady(first, middle_of(steady) if steady else None, middle, mad, band, outliers)


def _first_run(periods: Sequence[int], middle: float, band: float) -> int | None:
    """Index of the first of RUN periods in a row inside the band."""
    inside = [abs(p - middle) <= band for p in periods]
    return next((i for i in range(len(periods) - RUN + 1) if all(inside[i : i + RUN])), None)
