"""Room.

Question: how much longer may these activities take before the step does?
Method:   the same time added to each of them, in every step where the run is steady; replayed with ever more,
          and halved in on what is just not felt.
Needs:    a step on its schedule graph, and a selector that matches something.
Keeps:    of one step alone, with `free_ns` more each the boundary stays where it was, and with one ns more it
          does not; of a steady run the mean period grows by less than a thousandth.
"""

from __future__ import annotations

from msgspec import Struct

from stepcrit.graph.change import Applied, Change, Options, Scope, apply_changes
from stepcrit.graph.replay import POLICIES, Replayer, Saving, Variant, replayer
from stepcrit.graph.schedule import GapPolicy
from stepcrit.graph.select import Selection
from stepcrit.graph.selector import Selector
from stepcrit.graph.stepgraph import StepGraph

FARTHEST_NS = 10**11
"""A hundred seconds more each: what the boundary does not feel then, it never does."""

FELT_SHARE = 1000
"""A mean period that grows by less than one part in so many has not grown: steps differ by more."""

RESOLUTION = 100
"""Room of a steady run is told to one part in so many of itself."""


class Slope(Struct, frozen=True):
    """Room under one gap policy.

    Attributes:
        free_ns: what each activity may take more; None when the boundary needs none of them.
        cost: by how much the step grows for each ns that every activity takes beyond that; 0 with no limit.
    """

    free_ns: int | None
    cost: float


class Room(Struct, frozen=True, eq=False):
    """The answer for one selector.

    Attributes:
        selector: what was asked about.
        selection: what it matched.
        period_ns, period_count: as for a what-if.
        least, most: room with every gap kept, and with gaps that go with what they followed; the smaller
            one is `least`.
    """

    selector: Selector
    selection: Selection
    period_ns: int
    period_count: int
    least: Slope
    most: Slope


def analyze(view: StepGraph, selector: Selector, options: Options | None = None) -> Room:
    """Lengthen everything selected until the step feels it.

    Raises:
        UsageError: the selector matches nothing, or gaps alone.
    """
    replay = replayer(view)
    case = _Case(view, replay, selector, options)
    slopes = [case.slope(policy) for policy in POLICIES]
    slopes.sort(key=lambda one: FARTHEST_NS if one.free_ns is None else one.free_ns)
    selection = case.applied(0).selections[0]
    return Room(selector, selection, replay.period_ns, replay.period_count, slopes[0], slopes[1])


class _Case:
    """One selector, lengthened."""

    def __init__(
        self, view: StepGraph, replay: Replayer, selector: Selector, options: Options | None
    ) -> None:
        self.view, self.replay, self.selector, self.options = view, replay, selector, options
        self.scope = Scope(None if replay.period_count else replay.changeable)
        self.known: dict[int, Saving] = {}
        # A boundary is felt to the ns, a mean period only beyond what steps differ by.
        self.felt_ns = replay.period_ns // FELT_SHARE if replay.period_count else 0

    def applied(self, more_ns: int) -> Applied:
        """Everything selected, so much longer each."""
        change = Change(self.selector, "add", amount_ns=more_ns)
        return apply_changes(self.view, [change], self.options, self.scope)

    def later(self, more_ns: int, policy: GapPolicy) -> int:
        """By how much the step grows, in ns: as a what-if with that amount would tell."""
        if more_ns not in self.known:
            applied = self.applied(more_ns)
            delays = {p: applied.delays(self.view, p) for p in POLICIES}
            ends = self.replay.earlier(Variant(applied.dur_ns, delays))
            self.known[more_ns] = self.replay.read(ends, settled=True)
        saving = self.known[more_ns]
        return -(saving.join_ns if policy == "join" else saving.edge_ns)

    def slope(self, policy: GapPolicy) -> Slope:
        """Doubling to what is felt, then halving between that and what is not."""
        free, too_much = 0, 1
        while self.later(too_much, policy) <= self.felt_ns:
            free, too_much = too_much, 4 * too_much
            if too_much > FARTHEST_NS:
                return Slope(None, 0.0)
        finest = RESOLUTION if self.replay.period_count else FARTHEST_NS
        while too_much - free > max(1, free // finest):
            middle = (free + too_much) // 2
            if self.later(middle, policy) <= self.felt_ns:
                free = middle
            else:
                too_much = middle
        more = max(free, 1000)
        cost = (self.later(free + more, policy) - self.later(free, policy)) / more
        # What a mean period does not feel is no room where every ns counts.
        return Slope(0 if free * cost <= 2 * self.felt_ns and self.felt_ns else free, cost)
