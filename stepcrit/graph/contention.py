"""How much slower compute runs beside communication, measured on the trace's own kernels (methods C.4).

Activities of one kernel launched by one operator are compared: those that ran beside communication for
90 % of their time or more, against the median of those that did so for less than 10 %. The event table
keeps neither grid nor shapes, so one kernel name under one operator stands for "the same work"; the
quartiles of the ratios show how far that holds.
"""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction

import numpy as np
from msgspec import Struct

from stepcrit.graph.stepgraph import StepGraph
from stepcrit.intervals import ascending, union
from stepcrit.model.arrays import Int64Array
from stepcrit.model.classes import WorkClass
from stepcrit.model.events import DEVICE_KINDS

MIN_ACTIVITIES = 10
"""So many of either sort are needed, of kernels that have both."""

MIN_TICKS = 10
"""An activity shorter than so many steps of the trace's clock has no ratio worth the name."""

KEY = "kernel name and operator"
"""What two activities must share to be compared."""


class Slowdown(Struct, frozen=True):
    """What was found.

    Attributes:
        slowdown: c, at least 1; None when it is not measurable here.
        why_not: then, what is missing.
        beside_count: activities beside communication that could be compared.
        alone_count: what they were compared with.
        quartiles: of the ratios, lower and upper; (0, 0) without any.
        measured: the median ratio as measured, which may be less than 1; 0 without any.
    """

    slowdown: Fraction | None
    why_not: str
    beside_count: int
    alone_count: int
    quartiles: tuple[float, float]
    measured: float


def measure(view: StepGraph) -> Slowdown:
    """The slowdown of compute beside communication, over the whole capture."""
    rows, beside = _compute(view)
    duration = view.trace.events.end_ns[rows] - view.trace.events.start_ns[rows]
    op = view.links.op[rows]
    names = view.trace.events.name
    pairs = zip(names[rows].tolist(), names[np.maximum(op, 0)].tolist(), (op >= 0).tolist(), strict=True)
    groups: dict[tuple[int, int], tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for (name, by, known), ns, inside in zip(pairs, duration.tolist(), beside.tolist(), strict=True):
        group = groups[name, by if known else -1]
        if 10 * inside >= 9 * ns:
            group[1].append(ns)
        elif 10 * inside < ns:
            group[0].append(ns)
    return compare([group for group in groups.values() if group[0] and group[1]])


def compare(groups: list[tuple[list[int], list[int]]]) -> Slowdown:
    """The median ratio of groups of equal work as (durations alone, durations beside communication)."""
    alone, beside = (sum(len(group[i]) for group in groups) for i in (0, 1))
    ratios = [ns / float(np.median(group[0])) for group in groups for ns in group[1]]
    low, middle, high = np.percentile(ratios, (25, 50, 75)).tolist() if ratios else (0.0, 0.0, 0.0)
    if min(alone, beside) < MIN_ACTIVITIES:
        why = (
            f"not measurable here: of kernels seen both ways {beside} ran beside communication and {alone} "
            f"alone, {MIN_ACTIVITIES} of each are needed"
        )
        return Slowdown(None, why, beside, alone, (low, high), middle)
    found = max(Fraction(middle).limit_denominator(1000), Fraction(1))
    return Slowdown(found, "", beside, alone, (low, high), middle)


def _compute(view: StepGraph) -> tuple[Int64Array, Int64Array]:
    """Rows of compute activities long enough to compare, and how long each ran beside communication."""
    events, work = view.trace.events, view.links.work
    device = events.is_kind(*DEVICE_KINDS) & (events.end_ns > events.start_ns)
    compute, comm = device & (work < WorkClass.COMM), device & (work == WorkClass.COMM)
    label = np.array([lane.device_label for lane in events.lanes])[events.lane]
    beside = np.zeros(len(events), np.int64)
    for one in ascending(label[comm]).tolist():
        active = union(events.start_ns[comm & (label == one)], events.end_ns[comm & (label == one)])
        mine = compute & (label == one)
        beside[mine] = active.covered_by(events.end_ns[mine]) - active.covered_by(events.start_ns[mine])
    long = events.end_ns - events.start_ns >= MIN_TICKS * view.trace.meta.resolution_ns
    rows = np.flatnonzero(compute & long)
    return rows, beside[rows]
