"""E7: one host thread hands over to another and waits: the backward pass on the autograd thread.

While the autograd thread runs, the thread that called backward() has nothing open, or one range
without anything new inside it. That stretch is waiting, not work: the call ends it by handing over,
and the last backward operator hands back. The autograd thread's own idle time between two backward
passes is waiting too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stepcrit.graph.claims import Claims, HandoverClaim
from stepcrit.graph.scene import Scene
from stepcrit.model.arrays import Int64Array
from stepcrit.model.events import HOST_KINDS, EventKind, EventTable
from stepcrit.model.links import Pieces

BACKWARD = "autograd::engine::evaluate_function"


@dataclass(frozen=True, slots=True)
class Run:
    """One backward pass on an autograd thread."""

    lane: int
    start_ns: int
    end_ns: int


def autograd_handover(scene: Scene, claims: Claims) -> None:
    """Caller -> first backward operator, last backward operator -> caller, for each backward pass."""
    events = scene.events
    backward = backward_rows(events)
    if not backward.size:
        return
    lanes = np.unique(events.lane[backward]).tolist()
    callers = _caller_lanes(events, lanes)
    for lane in lanes:
        own = [c for c in callers if events.lanes[c].pid == events.lanes[lane].pid and c != lane]
        previous_end = None
        for run in backward_runs(events, backward[events.lane[backward] == lane], own):
            caller = _waiting_caller(scene.links.pieces, own, run)
            if caller is None:
                claims.notes["backward pass whose calling thread does not wait: no hand-over"] += 1
            else:
                lane_of_caller, idle, resume = caller
                idle_since = run.start_ns if previous_end is None else previous_end
                claims.handover.append(HandoverClaim(lane_of_caller, idle, lane, idle_since, run.start_ns))
                claims.handover.append(HandoverClaim(lane, run.end_ns, lane_of_caller, idle, resume))
            previous_end = run.end_ns


def backward_rows(events: EventTable) -> Int64Array:
    """Backward operators that the autograd engine evaluates, in time order."""
    named = np.array([name.startswith(BACKWARD) for name in events.names], np.bool_)
    return np.flatnonzero((events.kind == EventKind.CPU_OP) & named[events.name])


def backward_runs(events: EventTable, rows: Int64Array, callers: list[int]) -> list[Run]:
    """Backward operators of one lane grouped into passes: a caller that starts anything new separates two.

    A pass lasts until the last thing its thread does before the next pass: what runs after the last
    operator (copying reduced gradients back, say) still keeps the caller waiting.
    """
    others = np.isin(events.lane, callers) & events.is_kind(EventKind.CPU_OP, EventKind.ANNOTATION)
    starts = np.sort(events.start_ns[others])
    start, end = events.start_ns[rows], np.maximum.accumulate(events.end_ns[rows])
    between = np.searchsorted(starts, start[1:], "left") > np.searchsorted(starts, end[:-1], "left")
    first = start[np.concatenate(([True], between))]
    lane = int(events.lane[rows[0]])
    mine = np.flatnonzero((events.lane == lane) & events.is_kind(*HOST_KINDS))
    reach = np.maximum.accumulate(events.end_ns[mine])
    until = np.searchsorted(events.start_ns[mine], [*first[1:].tolist(), np.iinfo(np.int64).max]) - 1
    return [Run(lane, a, b) for a, b in zip(first.tolist(), reach[until].tolist(), strict=True)]


def _caller_lanes(events: EventTable, autograd: list[int]) -> list[int]:
    """Threads that run operators and are not autograd threads, busiest first."""
    ops = events.lane[events.kind == EventKind.CPU_OP]
    count = np.bincount(ops, minlength=len(events.lanes))
    order = np.argsort(-count, kind="stable")
    return [int(lane) for lane in order if count[lane] and int(lane) not in autograd]


def _waiting_caller(pieces: Pieces, callers: list[int], run: Run) -> tuple[int, int, int] | None:
    """The first thread with one piece around the whole pass: its lane, and that piece's start and end."""
    for lane in callers:
        low, high = int(pieces.lane_ptr[lane]), int(pieces.lane_ptr[lane + 1])
        i = int(np.searchsorted(pieces.start_ns[low:high], run.start_ns, side="right")) - 1 + low
        if i >= low and pieces.start_ns[i] <= run.start_ns and run.end_ns <= pieces.end_ns[i]:
            return lane, int(pieces.start_ns[i]), int(pieces.end_ns[i])
    return None
