"""What if.

Question: if these activities took another time, how long would the step be, and what would carry it then?
Method:   durations changed, order kept, the whole capture replayed under both gap policies (methods C).
Needs:    a step on its schedule graph, and selectors that match something.
Keeps:    nothing changed saves exactly 0; a saving never exceeds what removing the selection would save
          under the optimistic policy, where the step alone is changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate

from stepcrit.graph.change import Applied, Change, Options, Scope, apply_changes, put
from stepcrit.graph.newpath import new_path
from stepcrit.graph.replay import POLICIES, Replayer, Saving, Variant, replayer
from stepcrit.graph.select import together
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.model.classes import WorkClass

CURVE = tuple(Fraction(n, 10) for n in range(11))
"""Fractions of the selected time taken away, for the saving curve S(x)."""


@dataclass(frozen=True, slots=True, eq=False)
class WhatIf:
    """The answer for one set of changes, in ns per step.

    Attributes:
        changes: what was asked, in order.
        applied: what each matched.
        period_ns: the step before: the mean of the measured periods, or the step's elapsed time.
        period_count: over how many steady periods; 0 when this step alone is changed.
        saving: by gap policy; negative when the step gets longer.
        ceiling: the saving if everything selected took no time at all, its gaps gone as well; where all
            changes shorten, `saving` is never above it.
        after_by_class_ns: the critical path after the changes (conservative policy) by class, for the
            step of the view; sums to its new length.
    """

    changes: tuple[Change, ...]
    applied: Applied
    period_ns: int
    period_count: int
    saving: Saving
    ceiling: Saving
    after_by_class_ns: dict[WorkClass, int]

    @property
    def predicted_ns(self) -> tuple[int, int]:
        """The step after, from optimistic to conservative."""
        return self.period_ns - self.saving.high_ns, self.period_ns - self.saving.low_ns


def analyze(view: StepGraph, changes: Sequence[Change], options: Options | None = None) -> WhatIf:
    """Replay a combination of changes.

    Raises:
        UsageError: a selector matches nothing.
    """
    options = options or Options()
    replay = replayer(view)
    applied = _applied(view, replay, changes, options)
    gone = _applied(view, replay, [replace(c, operation="remove") for c in changes], options)
    taken = _taken(view, replay, changes, options, (Fraction(1, 2), Fraction(1)))
    half, free = (replay.earlier(variant) for variant in taken)
    settled = replay.settled(half, free)
    ends = (*(replay.earlier(_variant(view, one)) for one in (applied, gone)), free)
    saving, removed, without = (replay.read(one, settled=settled) for one in ends)
    ceiling = _larger(without, removed)
    if all(_shortens(change) for change in changes):
        saving = _smaller(saving, ceiling)
    return WhatIf(
        tuple(changes),
        applied,
        period_before(view, replay),
        replay.period_count,
        saving,
        ceiling,
        _after(view, replay, applied),
    )


def curve(
    view: StepGraph, changes: Sequence[Change], options: Options | None = None
) -> tuple[tuple[float, Saving], ...]:
    """S(x): the saving when a share x of everything selected is taken away, at CURVE's points."""
    options = options or Options()
    replay = replayer(view)
    points = [replay.earlier(variant) for variant in _taken(view, replay, changes, options, CURVE)]
    settled = replay.settled(points[len(points) // 2], points[-1])
    savings = [replay.read(point, settled=settled) for point in points]
    # More saves no less; a point above a later one shows work that was queued up, which a long run uses up.
    capped = [*accumulate(reversed(savings), _smaller)][::-1]
    return tuple((float(x), saving) for x, saving in zip(CURVE, capped, strict=True))


def _smaller(a: Saving, b: Saving) -> Saving:
    return Saving(min(a.join_ns, b.join_ns), min(a.edge_ns, b.edge_ns))


def _larger(a: Saving, b: Saving) -> Saving:
    return Saving(max(a.join_ns, b.join_ns), max(a.edge_ns, b.edge_ns))


def _taken(
    view: StepGraph,
    replay: Replayer,
    changes: Sequence[Change],
    options: Options,
    shares: Sequence[Fraction],
) -> list[Variant]:
    """The schedule with shares of everything selected taken away, each thing once."""
    everything = together(view, _applied(view, replay, changes, options).selections)
    less = (replace(changes[0], operation="scale", factor=1 - share) for share in shares)
    scope, launches = _scope(replay), options.with_launch
    return [_variant(view, put(view, [one], [everything], scope, with_launch=launches)) for one in less]


def _shortens(change: Change) -> bool:
    """Whether a change can make nothing longer."""
    return change.operation == "remove" or (change.operation == "scale" and change.factor <= 1)


def period_before(view: StepGraph, replay: Replayer) -> int:
    """The period that savings are measured against, in ns."""
    if not replay.period_count:
        return view.step.elapsed_ns
    end = view.built.graph.end_ns
    first, last = (int(end[replay.ends[i]].max()) for i in (0, -1))
    return (last - first) // replay.period_count


def _applied(view: StepGraph, replay: Replayer, changes: Sequence[Change], options: Options) -> Applied:
    """Changes to every step, or to this step alone where it does not stand for the others."""
    return apply_changes(view, changes, options, _scope(replay))


def _scope(replay: Replayer) -> Scope:
    return Scope(None if replay.period_count else replay.changeable, replay.loop)


def _variant(view: StepGraph, applied: Applied) -> Variant:
    delays = {policy: applied.delays(view, policy) for policy in POLICIES}
    return Variant(applied.dur_ns, delays, applied.production)


def _after(view: StepGraph, replay: Replayer, applied: Applied) -> dict[WorkClass, int]:
    """The new critical path by class: what takes over."""
    found: Counter[WorkClass] = Counter()
    for stretch in new_path(replay, _variant(view, applied), applied.changed):
        found[WorkClass(stretch.work)] += stretch.length_ns
    return {work: n for work, n in sorted(found.items(), key=lambda item: (-item[1], item[0])) if n}
