"""E2: a device activity cannot start before its launch call has submitted it.

The *launch point* is the instant of the thread from which the activity was free to start (methods
B.4). It is the call's end when the activity starts later; the call's start when the queue was still
busy then (the call merely submitted); and the activity's own start when the queue was idle and the
activity started while the call was running: the time inside the call is host time.
"""

from __future__ import annotations

from stepcrit.graph.claims import Claims, LaunchClaim
from stepcrit.graph.scene import Scene
from stepcrit.model.graph import Note


def launch_points(scene: Scene, claims: Claims) -> None:
    """One launch claim per activity with a launch; needs the stream and event claims.

    A start before the call by no more than the tolerance is clamped to it; a longer one contradicts
    causality: the edge is dropped and counted, since the device clock is then in doubt.
    """
    events, launch = scene.events, scene.links.launch
    busy_until: dict[int, int] = {}
    ends = events.end_ns[[claim.src for claim in claims.device]].tolist() if claims.device else []
    for claim, end in zip(claims.device, ends, strict=True):
        if end > busy_until.get(claim.dst, -1):
            busy_until[claim.dst] = end
    device, tolerance = scene.device, scene.rules.tolerance_ns
    call = launch[device]
    columns = (
        device,
        call,
        events.start_ns[device],
        *(c[call] for c in (events.start_ns, events.end_ns, events.lane)),
    )
    for row, called, start, call_start, call_end, lane in zip(*(c.tolist() for c in columns), strict=True):
        if called < 0:
            claims.notes[Note.NO_LAUNCH] += 1
            continue
        if start < call_start - tolerance:
            claims.notes[Note.BEFORE_LAUNCH] += 1
            continue
        if start < call_start:
            claims.notes[Note.JUST_BEFORE_LAUNCH] += 1
        at = _launch_point(start, (call_start, call_end), busy_until.get(row, -1))
        claims.launch.append(LaunchClaim(row, lane, at))


def _launch_point(start: int, call: tuple[int, int], busy_until: int) -> int:
    """The instant from which an activity was free to start."""
    call_start, call_end = call
    if start >= call_end:
        return call_end
    if start >= call_start and busy_until > call_start:
        return call_start
    return start
