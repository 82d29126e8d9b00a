"""Two sides compared in the order of triage (methods M.1): how, on what and what they do; then how long; then where."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from stepcrit.analyses import balance, statistics
from stepcrit.analyses.balance import Balance
from stepcrit.analyses.fingerprint import Difference, Level, WorkChange, differences, work_changes
from stepcrit.analyses.judgement import Outcome, Predicted, judge
from stepcrit.analyses.statistics import Call, Shift, Verdict
from stepcrit.answers.hypothesis import Hypothesis, hypotheses
from stepcrit.answers.sides import ENOUGH_RUNS, Run, Side
from stepcrit.errors import UsageError, quoted
from stepcrit.graph.pathkeys import PathKey
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.model.classes import WorkClass
from stepcrit.model.section import Sentence


class Conclusion(StrEnum):
    """What a comparison comes to."""

    SAME = "same recording"
    REGRESSION = "regression"
    IMPROVEMENT = "improvement"
    NO_CHANGE = "no change"
    INCONCLUSIVE = "inconclusive"
    TOO_FEW = "too few steps"
    PARTIAL = "partial input"
    WORK = "different work"
    CONFIGURATION = "different configuration"
    CAPTURE = "recorded differently"


PASSES = frozenset({Conclusion.SAME, Conclusion.IMPROVEMENT, Conclusion.NO_CHANGE})
"""What `--fail` lets pass; a regression fails, and all else is neither."""

LEVELS = (
    (Level.CAPTURE, Conclusion.CAPTURE),
    (Level.CONFIGURATION, Conclusion.CONFIGURATION),
    (Level.WORK, Conclusion.WORK),
)
CALLS = {
    Call.REGRESSION: Conclusion.REGRESSION,
    Call.IMPROVEMENT: Conclusion.IMPROVEMENT,
    Call.NO_CHANGE: Conclusion.NO_CHANGE,
    Call.INCONCLUSIVE: Conclusion.INCONCLUSIVE,
    Call.TOO_FEW: Conclusion.TOO_FEW,
}


class Asked(Struct, frozen=True):
    """What is asked beside the comparison.

    Attributes:
        threshold: what counts as a change, as a share.
        predicted: a prediction to judge, or None.
    """

    threshold: float = 0.01
    predicted: Predicted | None = None


class Judged(Struct, frozen=True):
    """A prediction and what came of it.

    Attributes:
        predicted: the prediction.
        low_ns, high_ns: the saving that was observed, an interval of 95 %.
        outcome: None where it cannot be judged.
        why_not: why.
        is_of_base: whether it was made from the base.
    """

    predicted: Predicted
    low_ns: float
    high_ns: float
    outcome: Outcome | None
    why_not: str
    is_of_base: bool

    @property
    def apart_ns(self) -> float:
        """How far the two intervals miss each other; 0 where they meet."""
        return max(0.0, self.low_ns - self.predicted.high_ns, self.predicted.low_ns - self.high_ns)


class Compared(Struct, frozen=True, eq=False, dict=True):
    """Everything that is told of two sides; computed once, when asked for."""

    base: Side
    new: Side
    asked: Asked

    @cached_property
    def is_same(self) -> bool:
        """Whether both sides are the same files."""
        return self.base.digests == self.new.digests

    @cached_property
    def differences(self) -> tuple[Difference, ...]:
        """What differs between the sides, or between the runs of one; each once."""
        first = self.base.first.fingerprint
        between = [one for run in self.new.runs for one in differences(first, run.fingerprint)]
        within = [_among(one) for run in self.base.runs[1:] for one in differences(first, run.fingerprint)]
        found: dict[str, Difference] = {}
        for one in (*between, *within):
            known = found.get(one.code)
            if known is None or (one.is_known and not known.is_known):
                found[one.code] = one
        return tuple(sorted(found.values(), key=lambda one: one.level))

    @cached_property
    def work_changes(self) -> tuple[WorkChange, ...]:
        """Work that is not done equally often; of runs, by the first that differs from the first of the base."""
        first = self.base.first.fingerprint
        each = (work_changes(first, run.fingerprint) for run in (*self.new.runs, *self.base.runs[1:]))
        return next((changes for changes in each if changes), ())

    def differs(self, level: Level) -> bool:
        """Whether something at a level is known to differ."""
        return any(one.level == level and one.is_known for one in self.differences)

    @property
    def is_told(self) -> bool:
        """Whether no side leaves open what the other says of its configuration: that may be another one."""
        return not any(one.level == Level.CONFIGURATION and not one.is_known for one in self.differences)

    @property
    def passes(self) -> bool:
        """Whether `--fail` lets it pass."""
        return self.conclusion in PASSES and self.is_told

    @property
    def by_runs(self) -> bool:
        """Whether runs are compared, and not steps."""
        return min(len(self.base.runs), len(self.new.runs)) >= ENOUGH_RUNS

    @cached_property
    def shift(self) -> Shift:
        """The statistics of the periods."""
        if self.by_runs:
            return statistics.compare(self.base.run_medians_ns, self.new.run_medians_ns)
        return statistics.compare(self.base.periods_ns, self.new.periods_ns)

    @cached_property
    def verdict(self) -> Verdict:
        """What the periods alone say."""
        fewest = ENOUGH_RUNS if self.by_runs else statistics.FEWEST_STEPS
        return statistics.verdict(self.shift, self.asked.threshold, fewest=fewest)

    @property
    def has_interval(self) -> bool:
        """Whether there are enough periods for an interval to mean anything."""
        return self.verdict.call != Call.TOO_FEW and self.shift.low is not None

    @property
    def partial(self) -> tuple[str, ...]:
        """Names of inputs of which something is lost."""
        metas = [run.view.trace.meta for side in (self.base, self.new) for run in side.runs]
        return tuple(
            dict.fromkeys(m.source for m in metas if m.is_cut or any(d.harm.is_loss for d in m.damage))
        )

    @cached_property
    def conclusion(self) -> Conclusion:
        """What it comes to, the first that holds in the order of triage."""
        if self.is_same and not self.partial:
            return Conclusion.SAME
        for level, conclusion in LEVELS:
            if self.differs(level):
                return conclusion
        if self.partial:
            return Conclusion.PARTIAL
        if not (self.base.is_steady and self.new.is_steady):
            return Conclusion.TOO_FEW
        return CALLS[self.verdict.call]

    @cached_property
    def balance(self) -> Balance[PathKey]:
        """The difference by key."""
        return balance.analyze(self.base.spent, self.new.spent)

    @cached_property
    def by_class(self) -> Balance[WorkClass]:
        """The difference by class."""
        return balance.analyze(self.base.by_class, self.new.by_class)

    @cached_property
    def changed_work_ns(self) -> int | None:
        """How much longer the path is by operators that are not done equally often; None without any."""
        changed = {(c.key.name, c.key.shapes) for c in self.work_changes if c.key.kind in ("op", "device")}
        names = {name for name, _ in changed} if not self._has_shapes else set()
        parts = [
            d.path_ns
            for d in self.balance.deltas
            if (d.key.name, d.key.detail) in changed or d.key.name in names
        ]
        return sum(parts) if changed else None

    @property
    def _has_shapes(self) -> bool:
        return self.base.first.fingerprint.has_shapes and self.new.first.fingerprint.has_shapes

    @cached_property
    def hypotheses(self) -> tuple[Hypothesis, ...]:
        """What may have made the difference; none where no cause may be named."""
        told = {Conclusion.REGRESSION, Conclusion.IMPROVEMENT, Conclusion.NO_CHANGE, Conclusion.INCONCLUSIVE}
        if self.conclusion not in told:
            return ()
        return hypotheses(self.balance, self.base, self.new, self.asked.threshold)

    @cached_property
    def renamed(self) -> tuple[tuple[PathKey, tuple[str, ...], tuple[str, ...]], ...]:
        """Operators on both sides whose kernels are called otherwise: (operator, only in base, only in new)."""
        found = []
        for key in sorted(self.base.kernels.keys() & self.new.kernels.keys()):
            before, after = self.base.kernels[key], self.new.kernels[key]
            gone, come = (
                sorted(one.keys() - other.keys(), key=lambda kernel, one=one: (-one[kernel], kernel))  # type: ignore[misc]
                for one, other in ((before, after), (after, before))
            )
            if gone and come:
                found.append((key, tuple(gone), tuple(come)))
        return tuple(found)

    @cached_property
    def judged(self) -> Judged | None:
        """The prediction against what was observed; other work is what a change may well make."""
        predicted = self.asked.predicted
        if predicted is None:
            return None
        base = self.shift.base.median_ns
        low = base * (1 - (self.shift.high if self.shift.high is not None else 1))
        high = base * (1 - (self.shift.low if self.shift.low is not None else 1))
        why_not = self._why_unjudged(predicted)
        outcome = (
            None
            if why_not
            else judge((predicted.low_ns, predicted.high_ns), predicted.ceiling_ns, (low, high))
        )
        is_of_base = predicted.sha256 in self.base.digests
        return Judged(predicted, low, high, outcome, why_not, is_of_base)

    def _why_unjudged(self, predicted: Predicted) -> str:
        if self.differs(Level.CAPTURE) or self.differs(Level.CONFIGURATION):
            return "base and new are not recorded alike, or not on the same"
        ends = {str(side.first.view.steps.boundary) for side in (self.base, self.new)}
        if ends - {predicted.boundary or str(self.base.first.view.steps.boundary)}:
            return f"it is about steps that end at the {predicted.boundary or 'same'} boundary"
        if self.verdict.call == Call.TOO_FEW or not (self.base.is_steady and self.new.is_steady):
            return f"fewer than {statistics.FEWEST_STEPS} steady steps on a side"
        return "" if self.shift.ratio is not None else "the base takes no time"


def _among(one: Difference) -> Difference:
    """A difference between two runs of the base, in words of its own."""
    template = one.what.template.replace("{} in base, {} in new", "{} in one run of base, {} in another")
    return replace(one, what=Sentence(template, one.what.values))


def compared(
    base: Sequence[StepGraph | Run], new: Sequence[StepGraph | Run], asked: Asked | None = None
) -> Compared:
    """Set runs against runs; each is given by its representative step.

    Raises:
        UsageError: one recording stands for several runs: its steps would count as evidence more than once.
    """
    before, after = (
        Side(tuple(one if isinstance(one, Run) else Run(one) for one in several)) for several in (base, new)
    )
    for side in (before, after):
        for run in side.runs[1:]:
            if sum(digest == run.view.trace.meta.sha256 for digest in side.digests) > 1:
                raise UsageError(f"{quoted(run.name)} is on one side twice", do="one recording is one run")
    return Compared(before, after, asked or Asked())
