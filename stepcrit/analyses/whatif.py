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

import numpy as np

from stepcrit.graph.change import Applied, Change, apply_changes, put
from stepcrit.graph.marks import Side
from stepcrit.graph.path import PieceKind, critical_path
from stepcrit.graph.replay import POLICIES, Replayer, Saving, Variant, replayer
from stepcrit.graph.schedule import Arrivals, Lags, forward
from stepcrit.graph.segments import gap_class, opened
from stepcrit.graph.select import together
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.model.arrays import NONE, Int64Array
from stepcrit.model.classes import WorkClass
from stepcrit.model.graph import NodeKind

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
    half, free = _taken(view, replay, changes, options, (Fraction(1, 2), Fraction(1)))
    settled = replay.settles(half, free)
    saving, without, removed = (
        replay.saving(*variant, settled=settled)
        for variant in (_variant(view, applied), free, _variant(view, gone))
    )
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
    points = _taken(view, replay, changes, options, CURVE)
    settled = replay.settles(points[len(points) // 2], points[-1])
    savings = [replay.saving(*point, settled=settled) for point in points]
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
    only = None if replay.period_count else replay.changeable
    launches = options.with_launch
    return [_variant(view, put(view, [one], [everything], with_launch=launches, only=only)) for one in less]


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
    everywhere = apply_changes(
        view, changes, side=options.side, self_only=options.self_only, with_launch=options.with_launch
    )
    if replay.period_count:
        return everywhere
    return put(view, changes, everywhere.selections, with_launch=options.with_launch, only=replay.changeable)


def _variant(view: StepGraph, applied: Applied) -> Variant:
    return applied.dur_ns, {policy: applied.delays(view, policy) for policy in POLICIES}


def _after(view: StepGraph, replay: Replayer, applied: Applied) -> dict[WorkClass, int]:
    """The new critical path by class: what takes over."""
    graph = view.built.graph
    delays = replay.limited(applied.delays(view, "join"), "join")
    start = forward(graph, applied.dur_ns, delays)
    moved = replace(graph, start_ns=start, dur_ns=applied.dur_ns)
    arrivals = _arrivals(view, start, moved.end_ns, delays)
    path = critical_path(moved, arrivals, list(view.sinks), since_ns=_opening(view, replay, moved.end_ns))
    parts = _host_parts(view, applied)
    found: Counter[WorkClass] = Counter()
    columns = (path.kind, path.node, path.edge, path.start_ns, path.end_ns)
    for kind, node, edge, begin, end in zip(*(column.tolist() for column in columns), strict=True):
        if kind != PieceKind.NODE:
            bound = int(graph.edge_kind[edge]) if edge >= 0 else NONE
            gap, is_lag = int(arrivals.gap_ns[node]), kind == PieceKind.LAG
            found[WorkClass(gap_class(bound, gap, view.usual_gaps, is_lag=is_lag))] += end - begin
        elif graph.kind[node] >= NodeKind.KERNEL:
            found[WorkClass(int(view.links.work[graph.row[node]]))] += end - begin
        elif moved.dur_ns[node] == graph.dur_ns[node]:
            back = int(graph.start_ns[node] - start[node])
            for a, b, work, _ in opened(view.links, graph, node, (begin + back, end + back)):
                found[WorkClass(work)] += b - a
        else:
            found.update(_apportioned(parts.get(node, {}), end - begin))
    return {work: n for work, n in sorted(found.items(), key=lambda item: (-item[1], item[0])) if n}


def _host_parts(view: StepGraph, applied: Applied) -> dict[int, dict[WorkClass, int]]:
    """What each host node consists of after the changes, by class."""
    every, (node, row, grown) = view.stretches, applied.changed
    host = ~every.on_device
    node = np.concatenate((every.node[host], node))
    row = np.concatenate((every.row[host], row))
    length = np.concatenate((every.length_ns[host], grown))
    work = np.where(row >= 0, view.links.work[row], WorkClass.UNTRACKED)
    work = np.where(view.built.graph.kind[node] == NodeKind.SYNC, WorkClass.SYNC, work)
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
    # Where what bound before still does, a usual delay that just fits is no reason to call it a tie.
    still = binds & view.built.arrivals.binds
    kept = np.bincount(graph.dst[still], minlength=len(graph)) > 0
    binds = np.where(kept[graph.dst], still, binds)
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
