"""E7: one host thread hands over to another and waits: the backward pass on the autograd thread.

While the autograd thread runs, the thread that called backward() has nothing open, or one range
without anything new inside it. That stretch is waiting, not work: the call ends it by handing over,
and the last thing the autograd thread does hands back. The autograd thread's own idle time between
two passes is waiting too.
"""

from __future__ import annotations

import numpy as np

from stepcrit.graph.claims import Claims, HandoverClaim
from stepcrit.graph.scene import Scene
from stepcrit.link.backward import Pass, backward_passes
from stepcrit.model.events import EventKind, EventTable
from stepcrit.model.links import Pieces


def autograd_handover(scene: Scene, claims: Claims) -> None:
    """Caller -> first backward operator, last work of the pass -> caller, for each pass on a thread of its own."""
    idle_since: dict[int, int] = {}
    autograd = {one.lane for one in backward_passes(scene.events) if one.lane != one.main_lane}
    for one in backward_passes(scene.events):
        if one.lane == one.main_lane:
            continue  # the caller runs its own backward: program order says it all
        caller = _waiting_caller(scene.links.pieces, _callers(scene.events, one, autograd), one)
        if caller is None:
            claims.notes["backward pass whose calling thread does not wait: no hand-over"] += 1
        else:
            lane, idle, resume = caller
            since = idle_since.get(one.lane, one.start_ns)
            claims.handover.append(HandoverClaim(lane, idle, one.lane, since, one.start_ns))
            claims.handover.append(HandoverClaim(one.lane, one.end_ns, lane, idle, resume))
        idle_since[one.lane] = one.end_ns


def _callers(events: EventTable, one: Pass, autograd: set[int]) -> list[int]:
    """Threads of the same process that run operators and are no autograd threads, busiest first."""
    count = np.bincount(events.lane[events.kind == EventKind.CPU_OP], minlength=len(events.lanes))
    order = np.argsort(-count, kind="stable").tolist()
    pid = events.lanes[one.lane].pid
    return [lane for lane in order if count[lane] and lane not in autograd and events.lanes[lane].pid == pid]


def _waiting_caller(pieces: Pieces, callers: list[int], one: Pass) -> tuple[int, int, int] | None:
    """The first thread with one piece around the whole pass: its lane, and that piece's start and end."""
    for lane in callers:
        low, high = int(pieces.lane_ptr[lane]), int(pieces.lane_ptr[lane + 1])
        i = int(np.searchsorted(pieces.start_ns[low:high], one.start_ns, side="right")) - 1 + low
        if i >= low and pieces.start_ns[i] <= one.start_ns and one.end_ns <= pieces.end_ns[i]:
            return lane, int(pieces.start_ns[i]), int(pieces.end_ns[i])
    return None
