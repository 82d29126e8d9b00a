"""Why the device is idle.

Question: in the stretches in which no queue of the device runs, what was it that came late?
Method:   for each idle stretch, the earliest launched activity that ends it; what led up to its launch
          is read off the binding chain on the host (methods F).
Needs:    launches; without runtime events idle stretches are listed without a cause.
Keeps:    the causes of a stretch sum to its length; all stretches sum to the window's idle time, in ns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np
from msgspec import Struct

from stepcrit.errors import InternalError, UsageError
from stepcrit.graph.launchpoint import LaunchPoints, launch_points
from stepcrit.graph.path import chain
from stepcrit.graph.segments import UNEXPLAINED_NS, UNEXPLAINED_TIMES, segments_of
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.intervals import complement, union
from stepcrit.model.arrays import NONE, BoolArray, Int64Array
from stepcrit.model.classes import WorkClass
from stepcrit.model.events import DEVICE_KINDS
from stepcrit.model.graph import EdgeKind, NodeKind

DEPENDENCY = "dependency"
DEVICE_SIDE = "not explained"
STREAM_GAP = "stream gap"
NOT_ASKED = "host left out"
LATENCY = "launch latency"
ORPHAN = "launched outside the trace"
TAIL = "tail"


class IdleStretch(Struct, frozen=True):
    """One stretch without device work.

    Attributes:
        start_ns, end_ns: the stretch.
        ended_by: device row that ends it, -1 for the tail.
        cause_ns: cause -> time, summing to the stretch.
        owner_ns: host row (-1 untracked) -> time, for the host part.
    """

    start_ns: int
    end_ns: int
    ended_by: int
    cause_ns: dict[str, int]
    owner_ns: dict[int, int]


class Idle(Struct, frozen=True):
    """All idle stretches of one device in the window, in ns.

    Attributes:
        idle_ns: their total.
        by_cause_ns: cause -> time, largest first.
        by_owner_ns: name of the host event in whose time the device starved -> time, largest first.
        stretches: each stretch, in time order.
    """

    idle_ns: int
    by_cause_ns: dict[str, int]
    by_owner_ns: dict[str, int]
    stretches: tuple[IdleStretch, ...]


def analyze(view: StepGraph, device: str, stream: int | None = None) -> Idle:
    """Explain the idle time of one device in the step's window, or of one of its queues.

    Args:
        view: the step.
        device: the device's label (`Lane.device_label`).
        stream: look at this queue alone; by default idle means that no queue runs.

    Raises:
        UsageError: the device has no such stream.
    """
    events = view.trace.events
    on_device = np.array(
        [lane.device_label == device and stream in (None, lane.stream) for lane in events.lanes], np.bool_
    )
    rows = np.flatnonzero(events.is_kind(*DEVICE_KINDS) & on_device[events.lane])
    window = (view.step.start_ns, view.step.end_ns)
    if stream is not None and not on_device.any():
        have = sorted({lane.stream for lane in events.lanes if lane.device_label == device})
        raise UsageError(
            f"device {device} has no stream {stream}", do=f"streams: {', '.join(map(str, have))}"
        )
    gaps = complement(union(events.start_ns[rows], events.end_ns[rows]), *window)
    facts = _facts(view, rows)
    starts = events.start_ns[rows]  # ascending, like the rows of the table
    bounds = zip(
        *(np.searchsorted(starts, gaps.end, side=side).tolist() for side in ("left", "right")), strict=True
    )
    stretches = tuple(
        _stretch(facts, gap, range(*span)) for gap, span in zip(gaps.pairs(), bounds, strict=True)
    )
    causes: Counter[str] = Counter()
    owners: Counter[str] = Counter()
    for stretch in stretches:
        causes.update(stretch.cause_ns)
        for row, ns in stretch.owner_ns.items():
            owners["untracked" if row < 0 else events.name_of(row)] += ns
    return Idle(gaps.length, _largest_first(causes), _largest_first(owners), stretches)


class _Facts(Struct, frozen=True, eq=False):
    """What all stretches of a device are explained by; lists by place among its activities, in order of start.

    Attributes:
        view: the step.
        points: launch points.
        rows: event rows.
        node: their first nodes, NONE where they have none.
        at_ns: when their threads had let them go, NONE where that is not known.
        by_event: whether a recorded event decided when they started.
    """

    view: StepGraph
    points: LaunchPoints
    rows: list[int]
    node: list[int]
    at_ns: list[int]
    by_event: list[bool]


def _facts(view: StepGraph, rows: Int64Array) -> _Facts:
    points = launch_points(view.built)
    node = view.built.first_node[rows]
    known = np.maximum(node, 0)
    at = np.where(node >= 0, points.at_ns[known], NONE)
    columns = (rows, node, at, _bound_by_event(view)[known])
    return _Facts(view, points, *(column.tolist() for column in columns))


def _stretch(facts: _Facts, gap: tuple[int, int], places: Iterable[int]) -> IdleStretch:
    """Explain one idle stretch [a, b] by the activities that start at its end."""
    view, (a, b) = facts.view, gap
    starting = [place for place in places if facts.node[place] >= 0]
    if not starting:
        return IdleStretch(a, b, NONE, {TAIL: b - a}, {})
    launched = [place for place in starting if facts.at_ns[place] >= 0]
    if not launched:
        rows = [facts.rows[place] for place in starting]
        known = (
            view.links.launch[rows] >= 0
        ).any()  # launches are there, but the graph was built without them
        return IdleStretch(a, b, rows[0], {NOT_ASKED if known else ORPHAN: b - a}, {})
    first = min(launched, key=facts.at_ns.__getitem__)
    row, launch = facts.rows[first], facts.at_ns[first]
    if launch <= a:
        cause = DEPENDENCY if facts.by_event[first] else _device_side(view, b - a)
        return IdleStretch(a, b, row, {cause: b - a}, {})
    return _late_launch(view, int(facts.points.node[facts.node[first]]), (a, launch, b), row)


def _device_side(view: StepGraph, length: int) -> str:
    """A delay between launched neighbours: normal for its kind, or not explained."""
    usual = view.usual_gaps.get(EdgeKind.STREAM, 0.0)
    return STREAM_GAP if length <= max(UNEXPLAINED_NS, UNEXPLAINED_TIMES * usual) else DEVICE_SIDE


def _late_launch(view: StepGraph, host_node: int, at: tuple[int, int, int], row: int) -> IdleStretch:
    """[a, launch] by what the host's binding chain did, [launch, b] as launch latency unless far too long."""
    a, launch, b = at
    way = chain(view.built.graph, view.built.arrivals, host_node, since_ns=a)
    segments = segments_of(view.links, view.built, way, view.usual_gaps)
    usual = view.usual_gaps.get(EdgeKind.LAUNCH, 0.0)
    latency = DEVICE_SIDE if b - launch > max(UNEXPLAINED_NS, UNEXPLAINED_TIMES * usual) else LATENCY
    causes: Counter[str] = Counter({latency: b - launch} if b > launch else {})
    owners: Counter[int] = Counter()
    columns = (segments.length_ns, segments.work, segments.row, segments.is_gap, segments.node)
    for ns, work, owner, is_gap, node in zip(*(c.tolist() for c in columns), strict=True):
        if not ns:
            continue
        if is_gap or view.built.graph.kind[node] >= NodeKind.KERNEL:
            causes[f"host: {WorkClass(work).label}" if is_gap else "another device"] += ns
        else:
            causes[f"host: {WorkClass(work).label}"] += ns
            owners[owner] += ns
    if causes.total() != b - a:
        raise InternalError(f"the causes of an idle stretch sum to {causes.total()}, not {b - a} ns")
    return IdleStretch(a, b, row, dict(causes), dict(owners))


def _bound_by_event(view: StepGraph) -> BoolArray:
    """The nodes whose start a recorded event decided."""
    graph = view.built.graph
    found = np.zeros(len(graph), np.bool_)
    found[graph.dst[view.built.arrivals.binds & (graph.edge_kind == EdgeKind.EVENT)]] = True
    return found


def _largest_first(counter: Counter[str]) -> dict[str, int]:
    return {k: v for k, v in sorted(counter.items(), key=lambda item: (-item[1], item[0])) if v}
