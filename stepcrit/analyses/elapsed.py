"""Elapsed time.

Question: how long does a step take, and which steps may stand for the others?
Method:   periods between equal boundaries; the steady window of methods A.3; the median, never the fastest.
Needs:    steps.
Keeps:    a period is the whole window of its step: the windows tile the time from first to last boundary.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from msgspec import Struct

from stepcrit.model.steps import Step, Steps

ENOUGH = 3
"""Fewer steady steps than this are no distribution."""


class Elapsed(Struct, frozen=True):
    """The distribution of step periods, in ns.

    Attributes:
        used: steady steps, outliers included.
        warm_up: steps before the steady window.
        set_aside: other steps that do not count (first, incomplete, empty).
        median_ns, low_ns, high_ns: over the used periods; None when none is used.
        spread_share: half the range over the median, 0..1; None below ENOUGH steps.
        is_distribution: whether enough steps were steady.
    """

    used: tuple[Step, ...]
    warm_up: tuple[Step, ...]
    set_aside: tuple[Step, ...]
    median_ns: float | None
    low_ns: int | None
    high_ns: int | None
    spread_share: float | None
    is_distribution: bool


def analyze(steps: Steps) -> Elapsed:
    """Summarise the periods of all steps."""
    used = tuple(s for s in steps if s.used and s.opens_at_boundary)
    warm_up = tuple(s for s in steps if s.why_not.startswith("warm-up"))
    rest = tuple(s for s in steps if not s.used and s not in warm_up)
    periods = [s.elapsed_ns for s in used]
    enough = len(used) >= ENOUGH and steps.steady is not None and steps.steady.first is not None
    middle = median(periods) if periods else None
    return Elapsed(
        used,
        warm_up,
        rest,
        middle,
        min(periods, default=None),
        max(periods, default=None),
        _spread(periods, middle) if enough else None,
        enough,
    )


def _spread(periods: Sequence[int], middle: float | None) -> float | None:
    """Half the range over the median."""
    return (max(periods) - min(periods)) / (2 * middle) if middle else None
