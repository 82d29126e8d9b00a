"""Room.

Question: how much longer may these activities take before the step does?
Method:   the same time added to each of them, in every step where the run is steady; the boundary is convex
          in that time, so a tangent from beyond meets the last free ns after a few replays.
Needs:    a step on its schedule graph, and a selector that matches something.
Keeps:    with `free_ns` more each the boundary stays where it was, with one ns more it does not.
"""

from __future__ import annotations

from dataclasses import dataclass

from stepcrit.graph.change import Applied, Change, Options, Scope, apply_changes
from stepcrit.graph.replay import POLICIES, Replayer, Variant, replayer
from stepcrit.graph.schedule import GapPolicy
from stepcrit.graph.select import Selection
from stepcrit.graph.selector import Selector
from stepcrit.graph.stepgraph import StepGraph

FARTHEST_NS = 10**12
"""A thousand seconds more each: what the boundary does not feel then, it never does."""


@dataclass(frozen=True, slots=True)
class Slope:
    """Room under one gap policy.

    Attributes:
        free_ns: what each activity may take more; None when the boundary needs none of them.
        cost: by how much the step grows for each ns that every activity takes beyond that; 0 with no limit.
    """

    free_ns: int | None
    cost: float


@dataclass(frozen=True, slots=True, eq=False)
class Room:
    """The answer for one selector.

    Attributes:
        selector: what was asked about.
        selection: what it matched.
        period_ns, period_count: as for a what-if.
        least, most: room with every gap kept, and with gaps that go with what they followed.
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
    least, most = (case.slope(policy) for policy in POLICIES)
    selection = case.applied(0).selections[0]
    return Room(selector, selection, replay.period_ns, replay.period_count, least, most)


class _Case:
    """One selector, lengthened."""

    def __init__(
        self, view: StepGraph, replay: Replayer, selector: Selector, options: Options | None
    ) -> None:
        self.view, self.replay, self.selector, self.options = view, replay, selector, options
        self.scope = Scope(None if replay.period_count else replay.changeable)

    def applied(self, more_ns: int) -> Applied:
        """Everything selected, so much longer each."""
        change = Change(self.selector, "add", amount_ns=more_ns)
        return apply_changes(self.view, [change], self.options, self.scope)

    def later(self, more_ns: int, policy: GapPolicy) -> int:
        """How much later the last boundary comes, in ns."""
        ends = self.replay.earlier(Variant(self.applied(more_ns).dur_ns))
        return -ends.last[POLICIES.index(policy)]

    def slope(self, policy: GapPolicy) -> Slope:
        """Newton's method on a convex, piecewise linear function of whole ns: exact after as many steps as bends."""
        at, late = FARTHEST_NS, self.later(FARTHEST_NS, policy)
        if late <= 0:
            return Slope(None, 0.0)
        steepness = 0
        while late > 0:
            steepness = late - self.later(at - 1, policy)
            at = max(0, at - -(-late // max(steepness, 1)))
            late = self.later(at, policy) if at else 0
        steps = self.replay.closing_index + 1 if self.replay.period_count else 1
        return Slope(at, steepness / steps)
