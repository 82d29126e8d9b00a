"""What one family of predictions came to."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

RESOLUTION = 0.0005
"""Answers are shown with three digits: half of the last one is 0.05 % of the number at the finest."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One prediction and what really happened, in ns.

    Attributes:
        name: which job and change.
        low_ns, high_ns: the predicted period, from optimistic to conservative.
        truth_ns: the period after the change was really made.
        noise_share: half the spread of the measured truth over it; 0 where it is exact.
    """

    name: str
    low_ns: int
    high_ns: int
    truth_ns: int
    noise_share: float = 0.0

    @property
    def inside(self) -> bool:
        """Whether the truth lies in the interval, as far as an answer tells."""
        return self.error <= RESOLUTION

    @property
    def error(self) -> float:
        """How far the truth lies outside the interval, as a share of the truth; 0 inside."""
        off = max(self.low_ns - self.truth_ns, self.truth_ns - self.high_ns, 0)
        return off / self.truth_ns

    @property
    def middle_error(self) -> float:
        """How far the truth lies from the middle of the interval, as a share of the truth."""
        return abs((self.low_ns + self.high_ns) / 2 - self.truth_ns) / self.truth_ns


@dataclass(frozen=True, slots=True)
class Row:
    """A family's line of the table.

    Attributes:
        part: "simulated", "recorded" or "corpus".
        family: scenario, kind of pair, or trace.
        cases: how many predictions.
        inside_share: share of truths inside the predicted interval, to RESOLUTION; None where one number
            was predicted for a measurement with noise.
        median_error, worst_error: |predicted - truth| / truth, of the middle of the interval.
        note: the measurement's own noise, or why nothing could be predicted.
    """

    part: str
    family: str
    cases: int
    inside_share: float | None
    median_error: float | None
    worst_error: float | None
    note: str = ""


def row_of(part: str, family: str, outcomes: Sequence[Outcome], note: str = "") -> Row:
    """Sum up the predictions of one family."""
    errors = [outcome.middle_error for outcome in outcomes]
    inside = sum(outcome.inside for outcome in outcomes) / len(outcomes)
    return Row(part, family, len(outcomes), inside, statistics.median(errors), max(errors), note)
