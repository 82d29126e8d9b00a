"""A prediction against what came of it.

Question: did a change save what was predicted?
Method:   two intervals and a ceiling (methods C.8): the saving that was predicted, the one that was observed, and
          what the whole selection could have saved.
Needs:    a prediction as it was written down, and periods from before and after the change.
Keeps:    more than the ceiling is never counted in favour of the model.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Outcome(StrEnum):
    """What became of a prediction."""

    CONSISTENT = "consistent"
    SMALLER = "smaller than predicted"
    LARGER = "larger than predicted"
    BEYOND = "beyond the model"


class Predicted(Struct, frozen=True):
    """A prediction as it was written down.

    Attributes:
        sha256: of the trace it was made from.
        source: that trace's name.
        period_ns: the period it was made for.
        low_ns, high_ns: the saving.
        ceiling_ns: what the selection could save at most.
        boundary: that steps end at.
        asked: the change in words.
    """

    sha256: str
    source: str
    period_ns: int
    low_ns: int
    high_ns: int
    ceiling_ns: int
    boundary: str
    asked: str


def judge(predicted: tuple[float, float], ceiling: float, observed: tuple[float, float]) -> Outcome:
    """Judge one saving interval by another.

    >>> judge((9, 13), 15, (10.2, 11.8)), judge((9, 13), 15, (18, 21))
    (<Outcome.CONSISTENT: 'consistent'>, <Outcome.BEYOND: 'beyond the model'>)
    """
    low, high = observed
    if low > max(ceiling, predicted[1]):
        return Outcome.BEYOND
    if high < predicted[0]:
        return Outcome.SMALLER
    if low > predicted[1]:
        return Outcome.LARGER
    return Outcome.CONSISTENT
