"""E7: one host thread hands over to another and waits: the backward pass on the autograd thread.

While the autograd thread runs, the thread that called backward() has nothing open, or one range
without anything new inside it. Those stretches are waiting, not work: the call ends by handing over,
and what the autograd thread does hands back. In between, the engine lets the calling thread evaluate
the operators that belong to the CPU, so a pass can hold several such stretches. The autograd thread's
own idle time between two passes is waiting too.
"""

from __future__ import annotations

from stepcrit.graph.claims import Claims, HandoverClaim
from stepcrit.graph.scene import Scene
from stepcrit.link.backward import Pass, backward_passes, is_backward
from stepcrit.model.events import EventKind
from stepcrit.model.graph import Evidence, Note

Stretch = tuple[int, int]


def autograd_handover(scene: Scene, claims: Claims) -> None:
    """Caller -> first backward operator, work of the pass -> caller, for each pass on a thread of its own."""
    idle_since: dict[int, int] = {}
    for one in backward_passes(scene.events):
        if one.lane == one.main_lane or one.main_lane < 0:
            continue  # the caller runs its own backward: program order says it all
        since = idle_since.get(one.lane, one.start_ns)
        stretches = _waiting(scene, one)
        if stretches:
            claims.handover += _both_ways(one, since, stretches)
        else:
            claims.notes[Note.NO_HANDOVER] += 1
            if not scene.rules.strict:
                caller = (one.main_lane, one.start_ns)
                claims.handover.append(HandoverClaim(*caller, one.lane, since, one.start_ns, Evidence.TIMING))
        idle_since[one.lane] = one.end_ns


def _both_ways(one: Pass, since: int, stretches: list[Stretch]) -> list[HandoverClaim]:
    """To the autograd thread from where the caller began to wait, and back at the end of each stretch."""
    there = HandoverClaim(one.main_lane, stretches[0][0], one.lane, since, one.start_ns, Evidence.ORDER)
    back = [
        HandoverClaim(one.lane, min(resume, one.end_ns), one.main_lane, idle, resume, Evidence.ORDER)
        for idle, resume in stretches
    ]
    return [there, *back]


def _waiting(scene: Scene, one: Pass) -> list[Stretch]:
    """The stretches in which the caller waits for a pass; none when it does other work meanwhile."""
    pieces, lane = scene.links.pieces, one.main_lane
    low, high = int(pieces.lane_ptr[lane]), int(pieces.lane_ptr[lane + 1])
    start, end, owner = (column[low:high] for column in (pieces.start_ns, pieces.end_ns, pieces.owner))
    first = int(start.searchsorted(one.start_ns, side="right")) - 1
    if first < 0 or one.start_ns >= end[first]:
        return []
    stretches = []
    for i in range(first, int(start.searchsorted(one.end_ns, side="left"))):
        if owner[i] == owner[first]:
            stretches.append((int(start[i]), int(end[i])))
        elif not _is_backward(scene, int(owner[i])):
            return []
    return stretches


def _is_backward(scene: Scene, row: int) -> bool:
    """Whether a range is, or lies in, an operator that the autograd engine evaluates; plain calls pass too."""
    if row >= 0 and scene.events.kind[row] == EventKind.RUNTIME and scene.links.parent[row] < 0:
        return True
    while row >= 0:
        if is_backward(scene.events.name_of(row)):
            return True
        row = int(scene.links.parent[row])
    return False
