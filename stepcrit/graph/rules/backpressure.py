"""E9: a launch call that found the launch queue full returns only when an earlier activity retires.

CUDA holds about a thousand outstanding operations per channel (the limit seen in public traces is
1023 activities; graphs count differently, so it can look a little smaller). A long launch call
below that depth is host time, whatever it did; at the limit it is device time.
"""

from __future__ import annotations

import numpy as np

from stepcrit.graph.claims import Claims, WaitClaim
from stepcrit.graph.scene import Queue, Scene
from stepcrit.model.arrays import Int64Array
from stepcrit.model.graph import EdgeKind, Evidence

FULL_DEPTH = 900
"""Outstanding activities from which on a queue counts as full."""

LONG_CALL_NS = 50_000
"""A launch call shorter than this was not blocked in any way that matters."""


RELEASE_NS = 100_000
"""A call that found the queue full returns this soon after an activity retired; later is not for that reason."""


def back_pressure(scene: Scene, claims: Claims) -> None:
    """The last activity of the queue to end within a long launch call, at full depth, released the call."""
    events, launch = scene.events, scene.links.launch
    waited = {claim.call for claim in claims.wait}
    for queue in scene.queues.values():
        depth = _depth_at_issue(scene, queue)
        for row in queue.issued_rows[depth >= FULL_DEPTH].tolist():
            call = int(launch[row])
            start, end = int(events.start_ns[call]), int(events.end_ns[call])
            if end - start < LONG_CALL_NS or call in waited:
                continue
            src = queue.last_to_end_by(end)
            until = int(events.end_ns[src]) if src >= 0 else -1
            if start < until and end - until <= RELEASE_NS and src != row:
                waited.add(call)
                claims.wait.append(WaitClaim(src, call, start, until, EdgeKind.BACKPRESSURE, Evidence.ORDER))


def _depth_at_issue(scene: Scene, queue: Queue) -> Int64Array:
    """How many of the queue's activities were launched and not yet ended when each was issued."""
    # Activities of one graph launch are issued together: only what was issued before it stands in its way.
    launched = np.searchsorted(queue.issued, queue.issued, side="left")
    ended = np.searchsorted(np.sort(scene.events.end_ns[queue.rows]), queue.issued, side="right")
    depth: Int64Array = np.where(scene.links.launch[queue.issued_rows] >= 0, launched - ended, 0)
    return depth
