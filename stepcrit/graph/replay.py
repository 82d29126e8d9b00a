"""What a change would make of the steps: durations changed, the whole capture replayed.

In steady state the change is applied to every step and the mean period is compared, since one step
changed alone would gain what the host's head start hides; the first replayed period still has that
head start and is left out (methods C.3). Without a steady state there is no mean to compare: then only
the chosen step is changed, and the saving is how much earlier its boundary comes.

Both gap policies are replayed: the saving is an interval [conservative, optimistic].

What replays is an *engine* (see `graph.engines`); by default the recorded order. A saving is always
measured against what was recorded, so an engine that contradicts the record has a saving of its own
with nothing changed: `Replayer.baseline`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property

import numpy as np
from msgspec import Struct

from stepcrit.graph.engines import Engine, order
from stepcrit.graph.input import Loop, loop_of
from stepcrit.graph.schedule import GapPolicy, Lags
from stepcrit.graph.stepgraph import StepGraph, sinks_of
from stepcrit.model.arrays import BoolArray, Int64Array
from stepcrit.model.steps import Step

POLICIES: tuple[GapPolicy, ...] = ("join", "edge")

DROP_FIRST_FROM = 3
"""With at least so many steady periods the first is left out of the mean."""


class Saving(Struct, frozen=True):
    """What a change saves of the step, in ns, by gap policy."""

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


class Ends(Struct, frozen=True):
    """How much earlier the boundaries that open and close what is measured come, in ns: (join, edge) each."""

    first: tuple[int, int]
    last: tuple[int, int]


class Variant(Struct, frozen=True, eq=False):
    """What a change makes of the schedule.

    Attributes:
        dur_ns: new durations, one per node.
        delays: new delays by policy, where they change too.
        least_ns: durations at the optimistic end, where those differ.
        production: what is left of the time that loader workers take over a batch.
    """

    dur_ns: Int64Array
    delays: Mapping[GapPolicy, Lags] | None = None
    production: Fraction = Fraction(1)
    least_ns: Int64Array | None = None

    def durations(self, policy: GapPolicy) -> Int64Array:
        """The durations of one end of the answer."""
        return self.dur_ns if policy == "join" or self.least_ns is None else self.least_ns


class Replayer(Struct, frozen=True, eq=False, dict=True):
    """Replays changes and reads the saving off the steps that count.

    Attributes:
        view: the step that the answer is about.
        delays: fixed delays by gap policy.
        ends: sinks of the boundaries that open and close what is measured; the closing one alone when
            only the chosen step is changed.
        period_count: over how many periods the saving is a mean; 0 when the chosen step is changed alone.
        closing_index: index of the step that the closing boundary belongs to.
        changeable: nodes to which a change applies.
        cut: of these, device work that begins before the window.
        engine: what makes finish times of durations and delays; the recorded order when None.
        loop: fetches from loader workers, whose waits depend on the rest of a steady run.
    """

    view: StepGraph
    delays: Mapping[GapPolicy, Lags]
    ends: tuple[Int64Array, ...]
    period_count: int
    closing_index: int
    changeable: BoolArray
    cut: tuple[int, ...] = ()
    engine: Engine | None = None
    loop: Loop | None = None

    @cached_property
    def period_ns(self) -> int:
        """The period that savings are measured against: the mean one, or the step's elapsed time."""
        if not self.period_count:
            return self.view.step.elapsed_ns
        return (self._observed_ns[1] - self._observed_ns[0]) // self.period_count

    @cached_property
    def _observed_ns(self) -> tuple[int, int]:
        """When the boundaries that open and close what is measured were recorded."""
        end = self.view.built.graph.end_ns
        first, last = (int(end[self.ends[i]].max()) for i in (0, -1))
        return first, last

    @cached_property
    def is_everywhere(self) -> bool:
        """Whether changes apply to all of the capture."""
        return not self.cut and bool(self.changeable.all())

    def baseline(self) -> Saving:
        """The saving with nothing changed: 0 where the engine replays the record, negative where it takes longer.

        What a change saves within a model is its `saving` less this.
        """
        return self.saving(self.view.built.graph.dur_ns)

    def saving(self, dur_ns: Int64Array) -> Saving:
        """The saving per step of new durations, where one variant stands alone; see `earlier` and `read`."""
        return self.read(self.earlier(Variant(dur_ns)), settled=True)

    def earlier(self, variant: Variant, join: tuple[int, int] | None = None) -> Ends:
        """How much earlier the boundaries come in a variant; of nodes that the window cuts, the part in it changes.

        Args:
            variant: the change.
            join: from `earlier_at_least`, where it was asked before.
        """
        join = join or self._moved(variant, "join")
        edge = self._moved(variant, "edge")
        return Ends((join[0], edge[0]), (join[1], edge[1]))

    def earlier_at_least(self, variant: Variant) -> tuple[int, int]:
        """How much earlier both boundaries come under the conservative policy alone, for half the work; in ns."""
        return self._moved(variant, "join")

    def at_least(self, join: tuple[int, int]) -> int:
        """The saving of a shortening under the conservative policy, from `earlier_at_least`; in ns."""
        return self.shortened(Ends((join[0], join[0]), (join[1], join[1])))[0].join_ns

    def read(self, ends: Ends, *, settled: bool) -> Saving:
        """The saving per step.

        Args:
            ends: from `earlier`.
            settled: whether the two ends of the measured run can be compared, see `settled`. If not, the
                gain of the last boundary over all steps is taken: rougher, but never less for more.
        """
        if not self.period_count:
            return Saving(*ends.last)
        if not settled:
            return Saving(*(last // (self.closing_index + 1) for last in ends.last))
        each = zip(ends.first, ends.last, strict=True)
        return Saving(*((last - first) // self.period_count for first, last in each))

    def settled(self, *shortened: Ends) -> bool:
        """Whether ever larger shortenings save ever more, and none less than 0, at both ends of the run.

        Where the replayed run does not settle, the ends tell nonsense: less for more, or a loss by
        shorter work. By a hundredth of the period they may, for steps differ: what the first boundary
        gains once need not be what the last one does.
        """
        if not self.period_count:
            return True
        return _grows([self.read(ends, settled=True) for ends in shortened], self.period_ns // 100)

    def shortened(self, *ends: Ends) -> list[Saving]:
        """The savings of ever larger shortenings: none is less than nothing, nor more than a larger one's.

        A saving above a larger shortening's shows work that was queued up, which a long run uses up.
        """
        settled = self.settled(*ends)
        return never_less([self.read(one, settled=settled) for one in ends])

    def limited(self, delays: Lags, policy: GapPolicy) -> Lags:
        """Delays with the observed ones in front of every node that a change does not reach."""
        old = self.delays[policy]
        if self.is_everywhere or delays is old:
            return delays
        reach, edges = self._reach
        return Lags(
            np.where(edges, delays.edge_ns, old.edge_ns), np.where(reach, delays.origin_ns, old.origin_ns)
        )

    @cached_property
    def _reach(self) -> tuple[BoolArray, BoolArray]:
        """Nodes that a change reaches as a whole, and the edges to them."""
        reach = self.changeable.copy()
        reach[list(self.cut)] = False
        return reach, reach[self.view.built.graph.dst]

    def inside(self, dur_ns: Int64Array) -> Int64Array:
        """New durations where the change reaches: of work that the window cuts, what lies in it."""
        if self.is_everywhere:
            return dur_ns
        graph = self.view.built.graph
        dur = np.where(self.changeable, dur_ns, graph.dur_ns)
        for node in self.cut:
            old, begun = int(graph.dur_ns[node]), int(self.view.step.start_ns - graph.start_ns[node])
            dur[node] = old + (int(dur_ns[node]) - old) * (old - begun) // old
        return dur

    def scheduled(self, variant: Variant, policy: GapPolicy) -> tuple[Int64Array, Lags]:
        """The durations and delays that a variant is replayed with under a policy."""
        delays = self.limited((variant.delays or self.delays)[policy], policy)
        dur = self.inside(variant.durations(policy))
        if self.loop:
            dur = self.loop.timed(variant.production, policy, dur, delays)
        return dur, delays

    def _moved(self, variant: Variant, policy: GapPolicy) -> tuple[int, int]:
        graph = self.view.built.graph
        dur_ns, delays = self.scheduled(variant, policy)
        engine = self.engine or order(graph)
        finish = engine(dur_ns, delays)
        first, last = (
            observed - int(finish[nodes].max())
            for observed, nodes in zip(self._observed_ns, (self.ends[0], self.ends[-1]), strict=True)
        )
        return first, last


def never_less(savings: Sequence[Saving], floor: Saving | None = None) -> list[Saving]:
    """Savings of ever larger shortenings, each cut to the later ones, and at least that of nothing changed (0)."""
    found: list[Saving] = []
    least = floor or Saving(0, 0)
    for one in reversed(savings):
        more = found[-1] if found else one
        join, edge = min(one.join_ns, more.join_ns), min(one.edge_ns, more.edge_ns)
        found.append(Saving(max(join, least.join_ns), max(edge, least.edge_ns)))
    return found[::-1]


def _grows(savings: list[Saving], slop_ns: int) -> bool:
    """Whether each saving is about at least the one before it, and the first 0, under both policies."""
    before = Saving(0, 0)
    for saving in savings:
        if min(saving.join_ns - before.join_ns, saving.edge_ns - before.edge_ns) < -slop_ns:
            return False
        before = saving
    return True


def replayer(view: StepGraph, engine: Engine | None = None) -> Replayer:
    """A replayer for one step: over the steady steps when it stands for them, else for it alone."""
    steady = _steady_boundaries(view)
    if not steady:
        return step_alone(view, engine)
    delays = {policy: view.delays(policy) for policy in POLICIES}
    everything = np.ones(len(view.built.graph), np.bool_)
    sinks = (sinks_of(view.trace, view.links, view.steps, s, view.built) for s in (steady[0], steady[-1]))
    ends = tuple(np.array(nodes, np.int64) for nodes in sinks)
    last, loop = steady[-1].index, None if engine else loop_of(view)
    return Replayer(view, delays, ends, len(steady) - 1, last, everything, engine=engine, loop=loop)


def step_alone(
    view: StepGraph, engine: Engine | None = None, *, required: BoolArray | None = None
) -> Replayer:
    """A replayer that changes the chosen step alone, whatever it stands for.

    Args:
        view: the step.
        engine: what replays; the recorded order when None.
        required: where an engine lets queues run in another order, and may end the boundary's sinks too
            early: all that must have ended as well (`StepGraph.required_after`).
    """
    delays = {policy: view.delays(policy) for policy in POLICIES}
    starting = view.starting.copy()
    starting[list(view.cut)] = True
    more = np.flatnonzero(starting & required).tolist() if required is not None else []
    ends = np.array(sorted({*view.sinks, *more}), np.int64)
    return Replayer(view, delays, (ends,), 0, 0, starting, view.cut, engine)


def _steady_boundaries(view: StepGraph) -> list[Step]:
    """Steps whose boundaries delimit the steady periods; none when the chosen step does not stand for them."""
    steps, steady = view.steps, view.steps.steady
    if (
        steady is None
        or steady.first is None
        or view.step.index != steps.representative
        or not view.step.used
    ):
        return []
    used = [s.index for s in steps if s.used and s.opens_at_boundary]
    # A run without holes, so that the span between two boundaries is the sum of its periods.
    if len(used) < 2 or used[-1] - used[0] != len(used) - 1:
        return []
    first = used[0] if len(used) >= DROP_FIRST_FROM else used[0] - 1
    return [steps[i] for i in range(first, used[-1] + 1)]
