"""Cross-step replay.

Question: how far off is the model itself, on this trace?
Method:   the durations of step k put on the graph of step j, and of the step before k on the step before j,
          so that the head start of the host is carried over too; replayed (gaps kept) and compared with k's period.
Needs:    two steady steps that run the same work, each after a step that does so as well.
Keeps:    a step's own durations on its own graph give its period back to the nanosecond.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np
from msgspec import Struct, field

from stepcrit.errors import UsageError
from stepcrit.graph.counterparts import Counterparts, Matcher, matcher
from stepcrit.graph.schedule import forward
from stepcrit.graph.stepgraph import StepGraph, sinks_of
from stepcrit.graph.transplant import matched_time, thread_clock, transplant
from stepcrit.intervals import ascending
from stepcrit.model.arrays import median_of
from stepcrit.model.steps import Step

REPLAYS = 2
"""At most so many replays of the capture: one for each distance between j and k."""

FARTHEST = 3
"""Steps so far apart are still compared, where nearer ones run other work (a log, an update every other step)."""


class Pair(Struct, frozen=True):
    """One step's durations on another's graph.

    Attributes:
        graph, durations: labels of the two steps.
        predicted_ns: the period that the replay gives.
        measured_ns: the period of the step that the durations are from.
    """

    graph: str
    durations: str
    predicted_ns: int
    measured_ns: int

    @property
    def error_share(self) -> float:
        """How far off the prediction is, as a share of what was measured."""
        return abs(self.predicted_ns - self.measured_ns) / self.measured_ns


class CrossStep(Struct, frozen=True):
    """How well steps of this trace predict each other.

    Attributes:
        pairs: what was compared.
        median_error_share, worst_error_share: over the pairs; None without any.
        matched_share: of the time of the steps whose graphs were used, on host threads and on the device, how
            much took its duration from the other step; None without pairs.
        crossing_count: dependencies from one thread or queue to another on the critical path of the view's
            step. Where there is none, the replay adds up the time of one thread or queue, and a small error
            says little about dependencies.
        why_not: why nothing could be compared, None where something was.
    """

    pairs: tuple[Pair, ...]
    median_error_share: float | None
    worst_error_share: float | None
    matched_share: float | None
    crossing_count: int
    why_not: str | None


def analyze(view: StepGraph, *, pairs: int = 6) -> CrossStep:
    """Predict steady steps by each other.

    Args:
        view: the step that the answer is about; pairs near it are taken first.
        pairs: at most so many pairs.
    """
    crossings = _crossings(view)
    used = sum(_counts(step) for step in view.steps)
    if used < 2:
        why = f"{used or 'no'} steady step{'s' * (used != 1)}; two are needed"
        return CrossStep((), None, None, None, crossings, why)
    search = _Search(view, matcher(view))
    replays = search.replays(pairs)
    if not replays:
        why = search.reasons[0] if search.reasons else "no two steady steps lie close enough together"
        return CrossStep((), None, None, None, crossings, why)
    found = [pair for trials in replays for pair in _replayed(view, trials)]
    clock = thread_clock(view)
    times = [matched_time(view, clock, trial.step) for trials in replays for trial in trials]
    matched, whole = (sum(column) for column in zip(*times, strict=True))
    errors = [pair.error_share for pair in found]
    median, worst = median_of(np.array(errors)), max(errors)
    return CrossStep(tuple(found), median, worst, matched / max(whole, 1), crossings, None)


def _counts(step: Step) -> bool:
    """Whether a step has a period that belongs to the steady sample."""
    return step.used and step.opens_at_boundary


def _crossings(view: StepGraph) -> int:
    """Edges of the step's critical path that lead from one lane to another."""
    graph = view.built.graph
    edges = ascending(view.path.edge[view.path.edge >= 0])
    return int((graph.lane[graph.src[edges]] != graph.lane[graph.dst[edges]]).sum())


class _Trial(Struct, frozen=True, eq=False):
    """One prediction to make: the counterparts of a step and of the step before it, and the sinks of both."""

    before: Counterparts
    step: Counterparts
    opening: list[int]
    closing: list[int]


class _Search(Struct, frozen=True, eq=False):
    """Which steps can be put on which.

    Attributes:
        view: the step that the answer is about.
        match: compares steps.
        sinks: what boundaries require, by step, as far as it was asked for.
        reasons: why steps could not be compared, in the order in which they were tried.
    """

    view: StepGraph
    match: Matcher
    sinks: dict[int, list[int]] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)

    def replays(self, pairs: int) -> list[list[_Trial]]:
        """Trials by distance, nearest distance first: a step takes the durations of a later or an earlier one."""
        found: list[list[_Trial]] = []
        for distance in (sign * far for far in range(1, FARTHEST + 1) for sign in (1, -1)):
            missing, left = pairs - sum(map(len, found)), REPLAYS - len(found)
            if missing > 0 and left:
                trials = list(islice(self.trials(distance), -(-missing // left)))
                found += [trials] if trials else []
        return found

    def trials(self, distance: int) -> Iterator[_Trial]:
        """Steps that can take the durations of the step `distance` later, nearest to the view's step first."""
        steps, here = self.view.steps, self.view.step.index
        known: dict[int, Counterparts | str] = {}
        later = [(a, a + distance) for a in range(1, len(steps)) if 0 < a + distance < len(steps)]
        for a, b in sorted(later, key=lambda pair: abs(pair[0] - here) + abs(pair[1] - here)):
            if not (_counts(steps[a]) and _counts(steps[b])):
                continue
            for i in (a, a - 1):
                known[i] = known.get(i) or self.match.match(steps[i], steps[i + distance])
            step, before = known[a], known[a - 1]
            if isinstance(step, str) or isinstance(before, str):
                self.reasons.append(step if isinstance(step, str) else str(before))
                continue
            try:
                yield _Trial(before, step, self.required(a - 1), self.required(a))
            except UsageError as error:
                self.reasons.append(str(error))

    def required(self, index: int) -> list[int]:
        """The nodes that a step's boundary requires.

        Raises:
            UsageError: the step has no work of its own before its boundary.
        """
        view = self.view
        if index not in self.sinks:
            self.sinks[index] = sinks_of(view.trace, view.links, view.steps, view.steps[index], view.built)
        return self.sinks[index]


def _replayed(view: StepGraph, trials: Sequence[_Trial]) -> list[Pair]:
    """One replay for all trials of one distance."""
    put = {found.step.index: found for trial in trials for found in (trial.before, trial.step)}
    dur = transplant(view, [put[i] for i in sorted(put)])
    finish = forward(view.built.graph, dur, view.delays("join")) + dur
    return [
        Pair(
            trial.step.step.label,
            trial.step.other.label,
            int(finish[trial.closing].max()) - int(finish[trial.opening].max()),
            trial.step.other.elapsed_ns,
        )
        for trial in trials
    ]
