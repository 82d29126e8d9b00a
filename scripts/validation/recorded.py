"""Real jobs recorded before and after a change that was really made: predicted from the one, measured in the other.

The truth is the median period of the job after the change, recorded the same way as before it: the profiler
makes every step longer, and a trace speaks of steps like its own. What was measured without the profiler is
noted beside it; there the predicted saving, in time, is taken off the period that was measured before.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from stepcrit.analyses.whatif import Question, analyze
from stepcrit.graph.change import parse_change
from stepcrit.session import load

from .row import Outcome, Row, row_of

RECORDED = Path(__file__).resolve().parents[2] / "fixtures" / "recorded"
PART = "recorded"


@dataclass(frozen=True, slots=True)
class Pair:
    """A job recorded before and after one change: NAME_before and NAME_after in the folder of recordings.

    Attributes:
        name: see above.
        kind: what was changed, in words; the family in the table.
        change: option and argument of `stepcrit whatif`.
    """

    name: str
    kind: str
    change: tuple[str, str]

    @property
    def before(self) -> Path:
        """The trace that is predicted from."""
        return RECORDED / f"{self.name}_before.json.gz"

    def measured(self, when: str) -> dict[str, Any]:
        """Median and quartiles, without the profiler and under "profiled" with it; `when` is before or after."""
        return dict(json.loads((RECORDED / f"{self.name}_{when}.measured.json").read_text(encoding="utf-8")))


PAIRS = (
    Pair("loader_halved", "slower loader halved", ("shrink", "class:input=0.5")),
    Pair("loader_hidden", "slower loader halved", ("shrink", "class:input=0.5")),
    Pair("op_halved", "operator made cheaper", ("shrink", "big_elementwise=0.5")),
    Pair("small_ops_halved", "half of many small operators", ("shrink", "augment=0.5")),
    Pair("copies_removed", "needless copies removed", ("remove", "redundant_copy")),
    Pair("python_halved", "host Python halved", ("shrink", "format_log=0.5")),
    Pair("wait_removed", "wait for another process removed", ("remove", "wait_for_logger")),
    Pair("barrier_removed", "barrier between ranks removed", ("remove", "meet")),
)


@dataclass(frozen=True, slots=True)
class Predicted:
    """The period of the steps in the trace, and what it would be after the change, in ns."""

    period_ns: int
    low_ns: int
    high_ns: int

    @property
    def saving_ns(self) -> float:
        """Of the middle of the interval."""
        return self.period_ns - (self.low_ns + self.high_ns) / 2


@dataclass(frozen=True, slots=True)
class Result:
    """A pair's prediction, and what was measured.

    Attributes:
        pair: the pair.
        predicted: from the trace before.
        outcome: against the profiled period after.
        plain_before_ns, plain_after_ns: medians without the profiler.
    """

    pair: Pair
    predicted: Predicted
    outcome: Outcome
    plain_before_ns: int
    plain_after_ns: int

    @property
    def plain_error(self) -> float:
        """Signed error without the profiler, when the predicted saving is taken over in time."""
        return (self.plain_before_ns - self.predicted.saving_ns) / self.plain_after_ns - 1

    @property
    def plain_share_error(self) -> float:
        """The same when it is taken over as a share of the step."""
        left = 1 - self.predicted.saving_ns / self.predicted.period_ns
        return self.plain_before_ns * left / self.plain_after_ns - 1


def predict(pair: Pair) -> Predicted:
    """The period after the change, from the trace before it alone."""
    answer = analyze(load(pair.before).view(), Question((parse_change(*pair.change),)))
    return Predicted(answer.period_ns, *answer.predicted_ns)


def result(pair: Pair) -> Result:
    """Predict and compare."""
    predicted, before, after = predict(pair), pair.measured("before"), pair.measured("after")
    truth = after["profiled"]
    noise = (truth["q3_ns"] - truth["q1_ns"]) / 2 / truth["median_ns"]
    outcome = Outcome(pair.name, predicted.low_ns, predicted.high_ns, truth["median_ns"], noise)
    return Result(pair, predicted, outcome, before["median_ns"], after["median_ns"])


def rows() -> list[Row]:
    """One row for each kind of change."""
    results = [result(pair) for pair in PAIRS]
    return [
        _row(kind, [r for r in results if r.pair.kind == kind])
        for kind in dict.fromkeys(p.kind for p in PAIRS)
    ]


def _row(kind: str, results: list[Result]) -> Row:
    noise = max(r.outcome.noise_share for r in results)
    plain = max((r.plain_error for r in results), key=abs)
    note = f"noise {noise:.1%}; without the profiler {plain:+.1%}"
    row = row_of(PART, kind, [r.outcome for r in results], note)
    interval = any(r.predicted.low_ns != r.predicted.high_ns for r in results)
    return row if interval else replace(row, inside_share=None)


def table() -> str:
    """All figures, as the README of the recordings shows them."""
    lines = [
        "| pair | before, ms | predicted, ms | measured, ms | noise | error | without the profiler, ms | saving taken over in time | as a share |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for r in map(result, PAIRS):
        low, high = r.predicted.low_ns / 1e6, r.predicted.high_ns / 1e6
        between = f"{low:.3f}" if low == high else f"{low:.3f} to {high:.3f}"
        error = (r.outcome.low_ns + r.outcome.high_ns) / 2 / r.outcome.truth_ns - 1
        lines.append(
            f"| {r.pair.name} | {r.predicted.period_ns / 1e6:.3f} | {between} | {r.outcome.truth_ns / 1e6:.3f} "
            f"| {r.outcome.noise_share:.1%} | {error:+.1%} | {r.plain_before_ns / 1e6:.3f} → {r.plain_after_ns / 1e6:.3f} "
            f"| {r.plain_error:+.1%} | {r.plain_share_error:+.1%} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
