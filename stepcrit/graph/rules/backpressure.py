"""E9: a launch call that found the launch queue full returns only when an earlier submission retires.

A queue holds a fixed number of submissions that have not ended; CUDA's is about a thousand. Where one
filled up, the trace shows its depth: many calls return just when the submission that many places before
them has ended, none ever has more in front of it, and those calls are long. Then every launch of the
queue waits for the submission so many places before it, whether or not that delayed it this time. Where
the depth cannot be read off like this (event records take places too, and are not shown), a long call
at CUDA's depth still was blocked; below that depth a long call is host time, whatever it did.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from stepcrit.graph.claims import Claims, ReleaseClaim, WaitClaim
from stepcrit.graph.scene import Queue, Scene
from stepcrit.model.arrays import Int32Array, Int64Array, median_of
from stepcrit.model.graph import EdgeKind, Evidence

FULL_DEPTH = 900
"""Outstanding activities from which on a queue counts as full."""

LONG_CALL_NS = 50_000
"""At that depth, a launch call shorter than this was not blocked in any way that matters."""

RELEASE_NS = 100_000
"""A call that found the queue full returns this soon after an activity retired; later is not for that reason."""

LONG_TIMES, LONG_BY_NS = 3, 5_000
"""To show the queue's depth, a call takes this many times the usual time of a launch call, and so much more."""

PROMPT_NS = 10_000
"""And it returns this soon after the submission whose place it takes has ended, beside its usual time."""

ENOUGH_CALLS = 5
ENOUGH_SHARE = 0.9
"""So many long calls, and this share of all long ones at the depth, must have returned promptly."""


def back_pressure(scene: Scene, claims: Claims) -> None:
    """Launch calls wait for room: at the depth that a queue shows, or by their length at CUDA's depth."""
    waited = {claim.call for claim in claims.wait}
    for queue in scene.queues.values():
        taken = _submissions(scene, queue)
        depth = full_depth(taken)
        if depth:
            _claim_all(scene, claims, taken, depth, waited)
        else:
            _claim_long(scene, claims, queue, waited)


class Submissions(Struct, frozen=True, eq=False):
    """What one queue was given, one row a launch call, in order of issue.

    Attributes:
        call: the call's event row.
        last: the device activity with which the queue has run through everything up to this submission.
        start_ns, end_ns: the call.
        done_ns: when `last` ended.
    """

    call: Int32Array
    last: Int64Array
    start_ns: Int64Array
    end_ns: Int64Array
    done_ns: Int64Array

    def released_ns(self, depth: int) -> Int64Array:
        """When the submission `depth` places before each had ended; -1 where there is none."""
        if depth >= len(self.call):
            return np.full(len(self.call), -1, np.int64)
        return np.concatenate((np.full(depth, -1, np.int64), self.done_ns[:-depth]))


def _submissions(scene: Scene, queue: Queue) -> Submissions:
    events, launch = scene.events, scene.links.launch
    rows = queue.issued_rows[launch[queue.issued_rows] >= 0]
    call = launch[rows]
    first = np.flatnonzero(np.append(True, call[1:] != call[:-1])) if len(call) else np.empty(0, np.int64)
    ends = events.end_ns[rows]
    reach = np.maximum.accumulate(ends) if len(ends) else ends
    holder = np.maximum.accumulate(np.where(ends == reach, np.arange(len(rows)), 0)) if len(ends) else ends
    final = np.append(first[1:], len(rows)) - 1 if len(first) else first
    one = call[first]
    return Submissions(one, rows[holder[final]], events.start_ns[one], events.end_ns[one], reach[final])


def full_depth(taken: Submissions) -> int:
    """How many submissions the queue holds, if the trace shows that it filled up; else 0."""
    count = np.arange(len(taken.call))
    ahead = count - np.minimum(np.searchsorted(taken.done_ns, taken.end_ns, side="right"), count)
    depth = int(ahead.max(initial=0)) + 1
    released = taken.released_ns(depth)
    inside = _inside(taken, released)
    length, usual = taken.end_ns - taken.start_ns, _usual(taken, inside)
    long = inside & (ahead == depth - 1) & (length >= LONG_TIMES * usual) & (length - usual > LONG_BY_NS)
    prompt = long & (taken.end_ns - released <= usual + PROMPT_NS)
    shown = prompt.sum() >= ENOUGH_CALLS and prompt.sum() >= ENOUGH_SHARE * long.sum()
    return depth if shown else 0


def _inside(taken: Submissions, released_ns: Int64Array) -> np.typing.NDArray[np.bool_]:
    inside: np.typing.NDArray[np.bool_] = (taken.start_ns < released_ns) & (released_ns <= taken.end_ns)
    return inside


def _usual(taken: Submissions, blocked: np.typing.NDArray[np.bool_]) -> int:
    """What a launch call takes of itself: the median of those that were not blocked."""
    free = (taken.end_ns - taken.start_ns)[~blocked]
    return int(median_of(free)) if free.size else 0


def _claim_all(scene: Scene, claims: Claims, taken: Submissions, depth: int, waited: set[int]) -> None:
    """Every call returns after the submission `depth` places before its own; where inside it, it waited."""
    released = taken.released_ns(depth)
    inside = _inside(taken, released)
    usual = _usual(taken, inside)
    kind, order = EdgeKind.BACKPRESSURE, Evidence.ORDER
    columns = (taken.call, taken.start_ns, taken.end_ns, released, inside, scene.events.lane[taken.call])
    held = zip(taken.last.tolist(), *(column[depth:].tolist() for column in columns), strict=False)
    for src, call, start, end, until, is_inside, lane in held:
        if call in waited:
            continue
        if is_inside:
            # What the call did of itself before it had to wait is still its own.
            own = min(start + max(0, usual - (end - until)), until)
            claims.wait.append(WaitClaim(src, call, own, until, kind, order))
        else:
            claims.release.append(ReleaseClaim(src, lane, end, kind, order))
        waited.add(call)


def _claim_long(scene: Scene, claims: Claims, queue: Queue, waited: set[int]) -> None:
    """The last activity of the queue to end within a long launch call, at CUDA's depth, released the call."""
    events, launch = scene.events, scene.links.launch
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
