"""What if.

Question: if these activities took another time, how long would the step be, and what would carry it then?
Method:   durations changed, order kept, the whole capture replayed under both gap policies (methods C); by
          resource models, on another machine.
Needs:    a step on its schedule graph, and selectors that match something, or faster links.
Keeps:    nothing changed saves exactly 0; a saving never exceeds what removing the selection would save
          under the optimistic policy, where the step alone is changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepcrit.errors import UnusableInputError, UsageError
from stepcrit.graph.change import Applied, Change, Options, Scope, apply_changes, put
from stepcrit.graph.engines import engine_of
from stepcrit.graph.input import loop_of
from stepcrit.graph.models import Model
from stepcrit.graph.newpath import time_by_class
from stepcrit.graph.replay import POLICIES, Ends, Replayer, Saving, Variant, never_less, replayer
from stepcrit.graph.search import least_share
from stepcrit.graph.select import Selection, together
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.graph.transfer import Transfer, faster_links
from stepcrit.model.arrays import Int64Array
from stepcrit.model.classes import WorkClass

CURVE = tuple(Fraction(n, 10) for n in range(11))
"""Fractions of the selected time taken away, for the saving curve S(x)."""


class Question(Struct, frozen=True):
    """What is asked.

    Attributes:
        changes: in order.
        options: how their selectors are read; None for the defaults.
        models: what the machine is taken to do; the recorded order when empty.
    """

    changes: tuple[Change, ...]
    options: Options | None = None
    models: tuple[Model, ...] = ()

    @property
    def links(self) -> Model | None:
        """The change of the links, if one is asked for."""
        return next((model for model in self.models if model.name == "comm"), None)

    @property
    def is_ordered(self) -> bool:
        """Whether the recorded order is what replays."""
        return not any(model.name in ("queue", "contend") for model in self.models)


class WhatIf(Struct, frozen=True, eq=False):
    """The answer for one question, in ns per step.

    Attributes:
        question: what was asked.
        applied: what each change matched.
        period_ns: the step before: the mean of the measured periods, or the step's elapsed time.
        period_count: over how many steady periods; 0 when this step alone is changed.
        baseline: the saving with nothing changed, by gap policy: not 0 where a model contradicts the record.
        saving: by gap policy; negative when the step gets longer.
        ceiling: the saving if everything selected took no time at all, its gaps gone as well; where all
            changes shorten and the recorded order is replayed, `saving` is never above it.
        transfer: what faster links change, if they were asked for.
        asked: durations and delays after the changes.
        dur_ns: the durations that are replayed at the optimistic end, one per node.
        knee_share: the share of the selection taken away, in tenths, from which on more saves less than in
            proportion; None where it never does, or nothing is selected.
        after_by_class_ns: the critical path after the changes (conservative policy) by class, for the
            step of the view; sums to its new length. Empty where a model replays, which has no path.
    """

    question: Question
    applied: Applied
    period_ns: int
    period_count: int
    baseline: Saving
    saving: Saving
    ceiling: Saving
    transfer: Transfer | None
    asked: Variant
    dur_ns: Int64Array
    knee_share: Fraction | None
    after_by_class_ns: dict[WorkClass, int]

    @property
    def predicted_ns(self) -> tuple[int, int]:
        """The step after, from optimistic to conservative."""
        return self.period_ns - self.saving.high_ns, self.period_ns - self.saving.low_ns


def analyze(view: StepGraph, question: Question) -> WhatIf:
    """Replay a combination of changes.

    Raises:
        UsageError: a selector matches nothing, or models do not go together.
        UnusableInputError: a model needs what the trace does not show.
    """
    case = _Case(view, question)
    replay, applied = case.replay, case.applied(question.changes)
    if not case.is_ordered:
        _check_loader(view, applied)
    asked = case.variant(applied)
    most, free = case.at_most()
    half = case.taken((Fraction(1, 2),)) if question.changes else []
    settled = case.is_settled([*(replay.earlier(v) for v in half), free])
    saving = replay.read(replay.earlier(asked), settled=settled)
    ceiling = _larger(*(replay.read(ends, settled=settled) for ends in (most, free)))
    if case.is_ordered:
        ceiling = _larger(ceiling, Saving(0, 0))
    if case.is_ordered and all(_shortens(change) for change in question.changes) and case.shortens_links():
        saving = _larger(_smaller(saving, ceiling), Saving(0, 0))
    elif case.is_ordered and not case.transfer and all(_lengthens(change) for change in question.changes):
        saving = _smaller(saving, Saving(0, 0))  # steps differ, and so do the two ends of the run
    return WhatIf(
        question,
        applied,
        replay.period_ns,
        replay.period_count,
        case.baseline,
        saving,
        ceiling,
        case.transfer,
        asked,
        replay.scheduled(asked, "edge")[0],
        _knee(case) if question.changes else None,
        _after(replay, asked, applied) if case.is_ordered else {},
    )


def curve(view: StepGraph, question: Question) -> tuple[tuple[float, Saving], ...]:
    """S(x): the saving when a share x of everything selected is taken away, at CURVE's points."""
    case = _Case(view, question)
    points = [case.replay.earlier(variant) for variant in case.taken(CURVE)]
    settled = case.is_settled([points[len(points) // 2], points[-1]])
    read = [case.replay.read(point, settled=settled) for point in points]
    savings = never_less(read, case.baseline)
    return tuple((float(x), saving) for x, saving in zip(CURVE, savings, strict=True))


def _check_loader(view: StepGraph, applied: Applied) -> None:
    """On another machine the loop's waits are not followed: they stay as recorded."""
    loop = loop_of(view)
    if loop and any(np.isin(selection.row, loop.rows).any() for selection in applied.selections):
        raise UsageError(
            "a change of what loader workers take does not go with --model queue or contend",
            do="ask one without the other",
        )


def _knee(case: _Case) -> Fraction | None:
    """The first tenth x with S(x) < x S'(0) (methods C.5); the saving is concave, so halving finds it."""

    def saved(share: Fraction) -> int:
        join = case.replay.earlier_at_least(case.taken((share,))[0])
        return case.replay.at_least(join) - case.baseline.join_ns

    first = saved(CURVE[1])
    low, high = 1, len(CURVE)
    while high - low > 1:
        middle = (low + high) // 2
        whole = middle * first
        low, high = (low, middle) if saved(CURVE[middle]) < whole - whole // 100 else (middle, high)
    return CURVE[high] if first > 0 and high < len(CURVE) else None


def share_needed(view: StepGraph, question: Question, saving_ns: int) -> Fraction | None:
    """The least share of everything selected that must go to save so much, in thousandths; None: all is not enough."""
    case = _Case(view, question)

    def saved(share: Fraction) -> int:
        ends = case.replay.earlier(case.taken((share,))[0])
        return case.replay.read(ends, settled=case.is_settled([ends])).low_ns

    return least_share(saved, saving_ns)


class _Case:
    """A question on a step: its replayer, and the schedules that are replayed."""

    def __init__(self, view: StepGraph, question: Question) -> None:
        self.view, self.question = view, question
        self.options = question.options or Options()
        self.is_ordered = question.is_ordered
        self.replay = replayer(view, None if self.is_ordered else engine_of(view, question.models))
        self.scope = Scope(None if self.replay.period_count else self.replay.changeable, self.replay.loop)
        self.transfer = faster_links(view, question.links) if question.links else None
        if self.transfer and self.transfer.why_not:
            raise UnusableInputError(
                f"faster links change nothing here: {self.transfer.why_not}", where=view.trace.meta.source
            )
        self.baseline = Saving(0, 0) if self.is_ordered else self.replay.baseline()

    def applied(self, changes: Sequence[Change]) -> Applied:
        """Changes to every step, or to this step alone where it does not stand for the others."""
        return apply_changes(self.view, changes, self.options, self.scope)

    def variant(self, applied: Applied, links: Model | None = None) -> Variant:
        """Changes and faster links as one schedule."""
        delays = {policy: applied.delays(self.view, policy) for policy in POLICIES}
        links = links or self.question.links
        if links is None:
            return Variant(applied.dur_ns, delays, applied.production)
        found = faster_links(self.view, links, applied.dur_ns)
        return Variant(found.high_ns, delays, applied.production, found.low_ns)

    @cached_property
    def everything(self) -> Selection:
        """All that any change selects, each thing once."""
        return together(self.view, self.applied(self.question.changes).selections)

    def taken(self, shares: Sequence[Fraction]) -> list[Variant]:
        """The schedule with shares of everything selected taken away, each thing once."""
        first, launches = self.question.changes[0], self.options.with_launch
        less = (replace(first, operation="scale", factor=1 - share) for share in shares)
        put_on = (put(self.view, [one], [self.everything], self.scope, with_launch=launches) for one in less)
        return [self.variant(one) for one in put_on]

    def at_most(self) -> tuple[Ends, Ends]:
        """What comes of it at most: everything selected removed, and taking no time; transfers of no length."""
        links, changes = self.question.links, self.question.changes
        endless = replace(links, faster=FASTEST) if links else None
        gone = self.applied([replace(c, operation="remove") for c in changes])
        removed = self.replay.earlier(self.variant(gone, endless))
        return removed, self.replay.earlier(self.taken((Fraction(1),))[0]) if changes else removed

    def is_settled(self, shortened: Sequence[Ends]) -> bool:
        """Whether both ends of the run can be compared; a model with a baseline of its own has no such test."""
        return self.baseline != Saving(0, 0) or self.replay.settled(*shortened)

    def shortens_links(self) -> bool:
        """Whether links get no slower."""
        return self.question.links is None or self.question.links.faster >= 1


FASTEST = Fraction(10**6)
"""Links so many times as fast leave of a transfer nothing but its start-up."""


def _smaller(a: Saving, b: Saving) -> Saving:
    return Saving(min(a.join_ns, b.join_ns), min(a.edge_ns, b.edge_ns))


def _larger(a: Saving, b: Saving) -> Saving:
    return Saving(max(a.join_ns, b.join_ns), max(a.edge_ns, b.edge_ns))


def _shortens(change: Change) -> bool:
    """Whether a change can make nothing longer."""
    return change.operation == "remove" or (change.operation == "scale" and change.factor <= 1)


def _lengthens(change: Change) -> bool:
    """Whether a change can make nothing shorter."""
    return change.operation == "add" or (change.operation == "scale" and change.factor >= 1)


def _after(replay: Replayer, asked: Variant, applied: Applied) -> dict[WorkClass, int]:
    """The new critical path by class: what takes over."""
    found = time_by_class(replay, asked, applied.changed)
    return {
        WorkClass(work): n for work, n in sorted(found.items(), key=lambda item: (-item[1], item[0])) if n
    }
