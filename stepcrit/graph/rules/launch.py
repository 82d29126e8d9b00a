"""E2: a device activity cannot start before its launch call has submitted it.

The *launch point* is the instant of the thread from which the activity was free to start (methods
B.4). It is the call's end when the activity starts later; the call's start when the queue was still
busy then (the call merely submitted); and the activity's own start when the queue was idle and the
activity started while the call was running: the time inside the call is host time.
"""

from __future__ import annotations

import numpy as np

from stepcrit.graph.claims import Claims
from stepcrit.graph.scene import Scene
from stepcrit.model.arrays import BoolArray
from stepcrit.model.graph import Note


def launch_points(scene: Scene, claims: Claims) -> None:
    """One launch claim per activity with a launch; needs the stream and event claims.

    A start before the call by no more than the tolerance is clamped to it; a longer one contradicts
    causality: the edge is dropped and counted, since the device clock is then in doubt.
    """
    events, tolerance = scene.events, scene.rules.tolerance_ns
    device, call = scene.device, scene.links.launch[scene.device]
    launched = call >= 0
    _note(claims, Note.NO_LAUNCH, ~launched)
    device, call = device[launched], call[launched]
    early = events.start_ns[call] - events.start_ns[device]
    _note(claims, Note.BEFORE_LAUNCH, early > tolerance)
    _note(claims, Note.JUST_BEFORE_LAUNCH, (early > 0) & (early <= tolerance))
    device, call = device[early <= tolerance], call[early <= tolerance]
    busy_until = np.full(len(events), -1, np.int64)
    np.maximum.at(busy_until, claims.device["dst"], events.end_ns[claims.device["src"]])
    start, from_ns, until_ns = events.start_ns[device], events.start_ns[call], events.end_ns[call]
    queued = (start >= from_ns) & (busy_until[device] > from_ns)
    at = np.where(start >= until_ns, until_ns, np.where(queued, from_ns, start))
    claims.launch.add(device, events.lane[call].astype(np.int64), at)


def _note(claims: Claims, note: Note, found: BoolArray) -> None:
    if found.any():
        claims.notes[note] += int(found.sum())
