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

import numpy as np

from stepcrit.graph.change import Applied, Change, apply_changes
from stepcrit.graph.path import PieceKind, critical_path
from stepcrit.graph.replay import POLICIES, Replayer, Saving, replayer
from stepcrit.graph.schedule import Arrivals, Lags, forward
from stepcrit.graph.segments import GAP_CLASS
from stepcrit.graph.select import Side
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.graph.threads import shares
from stepcrit.model.arrays import Int64Array
from stepcrit.model.classes import WorkClass
from stepcrit.model.graph import EdgeKind, NodeKind

CURVE = tuple(Fraction(n, 10) for n in range(11))
"""Fractions of the selected time taken away, for the saving curve S(x)."""


@dataclass(frozen=True, slots=True)
class Options:
    """How selectors are read: see `graph.select` and `graph.change`."""

    side: Side = "auto"
    self_only: bool = False
    with_launch: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class WhatIf:
    """The answer for one set of changes, in ns per step.

    Attributes:
        changes: what was asked, in order.
        applied: what each matched.
        period_ns: the step before: the mean of the measured periods, or the step's elapsed time.
        period_count: over how many steady periods; 0 when this step alone is changed.
        saving: by gap policy; negative when the step gets longer.
        ceiling: the saving if everything selected took no time at all.
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
    applied = _applied(view, changes, options)
    saving = _saving(view, replay, applied)
    gone = _saving(view, replay, _applied(view, [replace(c, operation="remove") for c in changes], options))
    if all(_shortens(change) for change in changes):
        saving = _at_least(saving, Saving(0, 0))
    return WhatIf(
        tuple(changes),
        applied,
        period_before(view, replay),
        replay.period_count,
        saving,
        _at_least(_at_least(gone, Saving(0, 0)), saving),
        _after(view, replay, applied),
    )


def curve(
    view: StepGraph, changes: Sequence[Change], options: Options | None = None
) -> tuple[tuple[float, Saving], ...]:
    """S(x): the saving when a share x of everything selected is taken away, at CURVE's points."""
    options = options or Options()
    replay = replayer(view)
    points = []
    selectors = dict.fromkeys(change.selector for change in changes)
    for x in CURVE:
        scaled = [Change(selector, "scale", factor=1 - x) for selector in selectors]
        saving = _saving(view, replay, _applied(view, scaled, options))
        points.append((float(x), _at_least(saving, Saving(0, 0))))
    return tuple(points)


def _shortens(change: Change) -> bool:
    """Whether a change can make nothing longer."""
    return change.operation == "remove" or (change.operation == "scale" and change.factor <= 1)


def _at_least(saving: Saving, least: Saving) -> Saving:
    """A saving that the two ends of an unsettled run cannot tell below what is certain."""
    return Saving(max(saving.join_ns, least.join_ns), max(saving.edge_ns, least.edge_ns))


def period_before(view: StepGraph, replay: Replayer) -> int:
    """The period that savings are measured against, in ns."""
    if not replay.period_count:
        return view.step.elapsed_ns
    end = view.built.graph.end_ns
    first, last = (int(end[replay.ends[i]].max()) for i in (0, -1))
    return (last - first) // replay.period_count


def _applied(view: StepGraph, changes: Sequence[Change], options: Options) -> Applied:
    return apply_changes(
        view, changes, side=options.side, self_only=options.self_only, with_launch=options.with_launch
    )


def _saving(view: StepGraph, replay: Replayer, applied: Applied) -> Saving:
    return replay.saving(applied.dur_ns, {policy: applied.delays(view, policy) for policy in POLICIES})


def _after(view: StepGraph, replay: Replayer, applied: Applied) -> dict[WorkClass, int]:
    """The new critical path by class: what takes over."""
    graph = view.built.graph
    delays = replay.limited(applied.delays(view, "join"), "join")
    dur = np.where(replay.changeable, applied.dur_ns, graph.dur_ns)
    start = forward(graph, dur, delays)
    moved = replace(graph, start_ns=start, dur_ns=dur)
    arrivals = _arrivals(view, start, start + dur, delays)
    path = critical_path(moved, arrivals, list(view.sinks), since_ns=_opening(view, replay, start + dur))
    parts = _host_parts(view, replay, applied)
    found: Counter[WorkClass] = Counter()
    columns = (path.kind, path.node, path.edge, path.end_ns - path.start_ns)
    for kind, node, edge, length in zip(*(column.tolist() for column in columns), strict=True):
        if kind != PieceKind.NODE:
            found[
                GAP_CLASS[EdgeKind(int(graph.edge_kind[edge]))] if edge >= 0 else WorkClass.BEFORE_FIRST
            ] += length
        elif graph.kind[node] >= NodeKind.KERNEL:
            found[WorkClass(int(view.links.work[graph.row[node]]))] += length
        else:
            found.update(_apportioned(parts.get(node, {}), length))
    return {work: n for work, n in sorted(found.items(), key=lambda item: (-item[1], item[0])) if n}


def _host_parts(view: StepGraph, replay: Replayer, applied: Applied) -> dict[int, dict[WorkClass, int]]:
    """What each host node consists of after the changes, by class."""
    table = shares(view.links.pieces, view.built.threads)
    node = np.concatenate((view.built.number[table.node], applied.changed[0]))
    row = np.concatenate((table.owner, applied.changed[1]))
    length = np.concatenate(
        (table.length_ns, np.where(replay.changeable[applied.changed[0]], applied.changed[2], 0))
    )
    work = np.where(row >= 0, view.links.work[row], WorkClass.UNTRACKED)
    parts: dict[int, dict[WorkClass, int]] = {}
    for n, w, ns in zip(node.tolist(), work.tolist(), length.tolist(), strict=True):
        inside = parts.setdefault(n, {})
        inside[WorkClass(w)] = inside.get(WorkClass(w), 0) + ns
    return parts


def _apportioned(parts: dict[WorkClass, int], length: int) -> dict[WorkClass, int]:
    """The parts of a node scaled to the stretch of it that lies in the window; they sum to it exactly."""
    whole = sum(parts.values())
    if whole <= 0:
        return {WorkClass.UNTRACKED: length}
    cut = {work: ns * length // whole for work, ns in parts.items()}
    cut[max(parts, key=lambda work: parts[work])] += length - sum(cut.values())
    return cut


def _arrivals(view: StepGraph, start: Int64Array, finish: Int64Array, delays: Lags) -> Arrivals:
    """Which edge binds each node now; what it carries of the gap is shown as gap again."""
    graph = view.built.graph
    gap = np.minimum(view.built.arrivals.gap_ns[graph.dst], delays.edge_ns)
    arrival = finish[graph.src] + delays.edge_ns
    binds = arrival == start[graph.dst]
    carried = np.zeros(len(graph), np.int64)
    np.maximum.at(carried, graph.dst[binds], gap[binds])
    roots = np.diff(graph.dst_ptr) == 0
    return Arrivals(delays.edge_ns - gap, np.where(roots, start - graph.t0_ns, carried), binds)


def _opening(view: StepGraph, replay: Replayer, finish: Int64Array) -> int:
    """When the step's window opens after the change: at the moved boundary of the step before."""
    if not replay.period_count:
        return view.step.start_ns
    before = view.previous_sinks
    return int(finish[before].max()) if before else view.step.start_ns
