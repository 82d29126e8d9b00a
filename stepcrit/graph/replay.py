"""What a change would make of the steps: durations changed everywhere, the whole capture replayed.

The saving is a period before minus the same period after, under both gap policies: an interval
[conservative, optimistic]. A change is applied to every step, because one step changed alone would
gain what the host's head start hides (methods C.3).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stepcrit.graph.schedule import Lags, forward
from stepcrit.graph.stepgraph import StepGraph, sinks_of
from stepcrit.model.arrays import Int64Array

DROP_FIRST_FROM = 3
"""With at least so many steady periods the first is left out of the mean."""


@dataclass(frozen=True, slots=True)
class Saving:
    """What a change saves of the representative period, in ns, by gap policy."""

    join_ns: int
    edge_ns: int

    @property
    def low_ns(self) -> int:
        """The conservative end of the interval."""
        return min(self.join_ns, self.edge_ns)

    @property
    def high_ns(self) -> int:
        """The optimistic end of the interval."""
        return max(self.join_ns, self.edge_ns)


@dataclass(frozen=True, slots=True, eq=False)
class Replayer:
    """Replays changes and reads the saving off the steps that count.

    Attributes:
        view: the step that the answer is about.
        delays: fixed delays by policy.
        ends: for each step that is measured, its sinks; the one before the first is the reference.
    """

    view: StepGraph
    delays: dict[str, Lags]
    ends: tuple[list[int], ...]

    def saving(self, dur_ns: Int64Array) -> Saving:
        """The mean saving per measured step of new durations, in ns."""
        return Saving(*(self._saved(dur_ns, self.delays[policy]) for policy in ("join", "edge")))

    def _saved(self, dur_ns: Int64Array, delays: Lags) -> int:
        graph = self.view.built.graph
        finish = forward(graph, dur_ns, delays) + dur_ns
        before = self._span(graph.end_ns, self.view.step.start_ns)
        after = self._span(finish, graph.t0_ns + self._opening_shift(finish))
        return (before - after) // max(len(self.ends) - 1, 1)

    def _span(self, finish: Int64Array, opening: int) -> int:
        """From the first measured boundary (or the window's opening) to the last."""
        last = int(finish[self.ends[-1]].max())
        return last - (int(finish[self.ends[0]].max()) if len(self.ends) > 1 else opening)

    def _opening_shift(self, finish: Int64Array) -> int:
        """Where a first step's window opens after the change: with the work that ran up to it."""
        view = self.view
        before = (
            view.built.host_node_ending(view.step.lane, view.step.start_ns) if view.step.lane >= 0 else -1
        )
        start = int(finish[before]) if before >= 0 else view.step.start_ns
        return start - view.built.graph.t0_ns


def replayer(view: StepGraph) -> Replayer:
    """A replayer for one step: its own period, or the mean over the steady steps when it stands for them."""
    delays = {"join": view.delays("join"), "edge": view.delays("edge")}
    return Replayer(view, delays, tuple(_measured(view)))


def _measured(view: StepGraph) -> list[list[int]]:
    """Sinks of the boundaries between which the saving is measured, in time order."""
    steps = view.steps.all
    index = view.step.index
    if view.step.used and index == view.steps.representative:
        steady = [s.index for s in steps if s.used and s.opens_at_boundary]
        # A run of steady steps without holes, so that the span between two boundaries is their sum.
        if len(steady) >= 2 and steady[-1] - steady[0] == len(steady) - 1:
            # The first replayed period still gains from the head start it was recorded with (methods C.3).
            first = steady[0] if len(steady) >= DROP_FIRST_FROM else steady[0] - 1
            chosen = range(first, steady[-1] + 1)
            return [sinks_of(view.trace, view.links, view.steps, steps[i], view.built) for i in chosen]
    if not view.step.opens_at_boundary:
        return [list(view.sinks)]
    before = sinks_of(view.trace, view.links, view.steps, steps[index - 1], view.built)
    return [before, list(view.sinks)]


def scaled(view: StepGraph, part_ns: Int64Array, numerator: int, denominator: int) -> Int64Array:
    """Durations with `numerator/denominator` of `part_ns` taken off each node (rounded down)."""
    shorter: Int64Array = view.built.graph.dur_ns - part_ns * numerator // denominator
    return np.maximum(shorter, 0)
