"""Why the device is idle.

Question: in the stretches in which no queue of the device runs, what was it that came late?
Method:   for each idle stretch, the earliest launched activity that ends it; what led up to its launch
          is read off the binding chain on the host (methods F).
Needs:    launches; without runtime events idle stretches are listed without a cause.
Keeps:    the causes of a stretch sum to its length; all stretches sum to the window's idle time, in ns.
"""

from __future__ import annotations

from collections import Counter
from typing import Literal

import numpy as np
from msgspec import Struct

from stepcrit.errors import InternalError, UsageError
from stepcrit.graph.launchpoint import launch_points
from stepcrit.graph.path import chains
from stepcrit.graph.segments import UNEXPLAINED_NS, UNEXPLAINED_TIMES, segments_of
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.intervals import Intervals, complement, union
from stepcrit.model.arrays import NONE, BoolArray, Int64Array
from stepcrit.model.classes import WorkClass
from stepcrit.model.events import DEVICE_KINDS, EventTable
from stepcrit.model.graph import EdgeKind, NodeKind

DEPENDENCY = "dependency"
DEVICE_SIDE = "not explained"
STREAM_GAP = "stream gap"
NOT_ASKED = "host left out"
LATENCY = "launch latency"
ORPHAN = "launched outside the trace"
TAIL = "tail"
OTHER_DEVICE = "another device"

CAUSES = (TAIL, NOT_ASKED, ORPHAN, DEPENDENCY, STREAM_GAP, DEVICE_SIDE, LATENCY, OTHER_DEVICE)
_TAIL, _NOT_ASKED, _ORPHAN, _DEPENDENCY, _STREAM_GAP, _DEVICE_SIDE, _LATENCY, _OTHER_DEVICE = range(8)
LATE = -1
"""No cause of its own: the launch came late, for causes of the host's."""

NO_HOST = -2


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


class IdleShares(Struct, frozen=True, eq=False):
    """Time of idle stretches by what it is put down to; any number of rows a stretch, also several of one cause.

    Attributes:
        stretch: which.
        cause: index into CAUSES, or after those a class of the host's work (WorkClass).
        owner: host row, -1 for untracked time, NO_HOST where the host does nothing in it.
        length_ns: how much.
    """

    stretch: Int64Array
    cause: Int64Array
    owner: Int64Array
    length_ns: Int64Array


class Idle(Struct, frozen=True, eq=False):
    """All idle stretches of one device in the window, in ns.

    Attributes:
        idle_ns: their total.
        by_cause_ns: cause -> time, largest first.
        by_owner_ns: name of the host event in whose time the device starved -> time, largest first.
        gaps: the stretches, in time order.
        ended_by: device row that ends each, -1 for the tail.
        shares: what they are put down to.
    """

    idle_ns: int
    by_cause_ns: dict[str, int]
    by_owner_ns: dict[str, int]
    gaps: Intervals
    ended_by: Int64Array
    shares: IdleShares

    @property
    def stretches(self) -> tuple[IdleStretch, ...]:
        """Each stretch, in time order."""
        bounds = zip(self.gaps.pairs(), self.ended_by.tolist(), strict=True)
        found = tuple(IdleStretch(*span, row, {}, {}) for span, row in bounds)
        shares = self.shares
        columns = (shares.stretch, shares.cause, shares.owner, shares.length_ns)
        for which, cause, owner, ns in zip(*(column.tolist() for column in columns), strict=True):
            one, word = found[which], _word(cause)
            one.cause_ns[word] = one.cause_ns.get(word, 0) + ns
            if owner != NO_HOST:
                one.owner_ns[owner] = one.owner_ns.get(owner, 0) + ns
        return found


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
    ended = _ended(view, gaps, rows)
    shares = _shares(view, gaps, ended)
    explained = np.zeros(len(gaps), np.int64)
    np.add.at(explained, shares.stretch, shares.length_ns)
    for i in np.flatnonzero(explained != gaps.end - gaps.start).tolist():
        length = gaps.end[i] - gaps.start[i]
        raise InternalError(f"the causes of an idle stretch sum to {explained[i]}, not {length} ns")
    return Idle(gaps.length, _by_cause(shares), _by_owner(events, shares), gaps, ended.row, shares)


class _Ended(Struct, frozen=True, eq=False):
    """What ends each idle stretch.

    Attributes:
        row: device row, NONE for the tail.
        cause: what all of the stretch is put down to (`CAUSES`), LATE where the host let the activity go too late.
        host_node: the node that it was launched from, NONE where none is known.
        at_ns: when that had let it go.
    """

    row: Int64Array
    cause: Int64Array
    host_node: Int64Array
    at_ns: Int64Array


def _ended(view: StepGraph, gaps: Intervals, rows: Int64Array) -> _Ended:
    """Explain stretches by the activity that starts at their end; of several, by the one that was let go first.

    Args:
        view: the step.
        gaps: the stretches.
        rows: the device's activities, ascending by start as the rows of the table do.
    """
    built, points = view.built, launch_points(view.built)
    low, high = (np.searchsorted(view.trace.events.start_ns[rows], gaps.end, side=s) for s in SIDES)
    which = np.repeat(np.arange(len(gaps)), high - low)
    row = rows[np.arange(len(which)) - np.searchsorted(which, which) + low[which]]
    starting = built.first_node[row] >= 0
    which, row = which[starting], row[starting]
    at = points.at_ns[built.first_node[row]]
    order = np.lexsort((at, at < 0, which))
    first = order[np.flatnonzero(np.diff(which[order], prepend=NONE))]
    ended, node = which[first], built.first_node[row[first]]
    found = _Ended(*(np.full(len(gaps), NONE, np.int64) for _ in _Ended.__struct_fields__))
    found.row[ended], found.host_node[ended], found.at_ns[ended] = row[first], points.node[node], at[first]
    launched = np.zeros(len(gaps), np.bool_)
    launched[which[view.links.launch[row] >= 0]] = True
    by_event = np.zeros(len(gaps), np.bool_)
    by_event[ended] = _bound_by_event(view)[node]
    found.cause[:] = np.select(
        (found.row < 0, (found.at_ns < 0) & launched, found.at_ns < 0, found.at_ns > gaps.start, by_event),
        # launches may be there, but the graph was built without them
        (_TAIL, _NOT_ASKED, _ORPHAN, LATE, _DEPENDENCY),
        np.where(gaps.end - gaps.start <= _longest(view, EdgeKind.STREAM), _STREAM_GAP, _DEVICE_SIDE),
    )
    return found


SIDES: tuple[Literal["left", "right"], ...] = ("left", "right")


def _longest(view: StepGraph, kind: EdgeKind) -> int:
    """The longest delay of a kind that is still explained, in ns."""
    return int(max(UNEXPLAINED_NS, UNEXPLAINED_TIMES * view.usual_gaps.get(kind, 0.0)))


def _shares(view: StepGraph, gaps: Intervals, ended: _Ended) -> IdleShares:
    """What stretches are put down to: where a launch came late, to what the host did until then."""
    late = np.flatnonzero(ended.cause == LATE)
    whole = np.flatnonzero(ended.cause != LATE)
    host = _host_shares(view, gaps, ended, late)
    wait = gaps.end[late] - ended.at_ns[late]
    latency = np.where(wait > _longest(view, EdgeKind.LAUNCH), _DEVICE_SIDE, _LATENCY)
    own = np.full(len(late) + len(whole), NO_HOST, np.int64)
    columns = (
        np.concatenate((host.stretch, late, whole)),
        np.concatenate((host.cause, latency, ended.cause[whole])),
        np.concatenate((host.owner, own)),
        np.concatenate((host.length_ns, wait, (gaps.end - gaps.start)[whole])),
    )
    some = columns[-1] != 0
    return IdleShares(*(column[some] for column in columns))


def _host_shares(view: StepGraph, gaps: Intervals, ended: _Ended, late: Int64Array) -> IdleShares:
    """From the start of stretches to the launch, by what the host's binding chain did."""
    built = view.built
    ends = list(zip(ended.host_node[late].tolist(), gaps.start[late].tolist(), strict=True))
    way, which = chains(built.graph, built.arrivals, ends)
    parts = segments_of(view.links, built, way, view.usual_gaps)
    is_gap = parts.is_gap != 0
    elsewhere = ~is_gap & (built.graph.kind[parts.node] >= NodeKind.KERNEL)
    return IdleShares(
        late[which[parts.piece]],
        np.where(elsewhere, _OTHER_DEVICE, len(CAUSES) + parts.work.astype(np.int64)),
        np.where(is_gap | elsewhere, NO_HOST, parts.row),
        parts.length_ns,
    )


def _by_cause(shares: IdleShares) -> dict[str, int]:
    total = np.zeros(len(CAUSES) + max(WorkClass) + 1, np.int64)
    np.add.at(total, shares.cause, shares.length_ns)
    return _largest_first(Counter({_word(i): int(total[i]) for i in np.flatnonzero(total).tolist()}))


def _by_owner(events: EventTable, shares: IdleShares) -> dict[str, int]:
    mine = shares.owner != NO_HOST
    owner, total = shares.owner[mine], np.zeros(len(events.names) + 1, np.int64)
    np.add.at(total, np.where(owner >= 0, events.name[owner], len(events.names)), shares.length_ns[mine])
    found: Counter[str] = Counter()
    for i in np.flatnonzero(total).tolist():
        found[events.names[i] if i < len(events.names) else "untracked"] += int(total[i])
    return _largest_first(found)


def _word(cause: int) -> str:
    return CAUSES[cause] if cause < len(CAUSES) else f"host: {WorkClass(cause - len(CAUSES)).label}"


def _bound_by_event(view: StepGraph) -> BoolArray:
    """The nodes whose start a recorded event decided."""
    graph = view.built.graph
    found = np.zeros(len(graph), np.bool_)
    found[graph.dst[view.built.arrivals.binds & (graph.edge_kind == EdgeKind.EVENT)]] = True
    return found


def _largest_first(counter: Counter[str]) -> dict[str, int]:
    return {k: v for k, v in sorted(counter.items(), key=lambda item: (-item[1], item[0])) if v}
