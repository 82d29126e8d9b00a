"""E5, E6: host calls that wait for the device. The blocked stretch is no work: what it waited for covers it."""

from __future__ import annotations

import numpy as np

from stepcrit.graph.claims import Claims, WaitClaim
from stepcrit.graph.rules.event import SyncRecord, recorded_work, sync_records
from stepcrit.graph.scene import Scene, calls
from stepcrit.link.api import CallRole
from stepcrit.link.copies import ends_of
from stepcrit.model.arrays import NONE, Int64Array
from stepcrit.model.events import EventKind
from stepcrit.model.graph import EdgeKind, Evidence, Note

FREE_RETURN_NS = 30_000
"""A memory-freeing call counts as a device sync only if it returns this soon after the device drained."""

TO_HOST = (("Device", "Pageable"), ("Device", "Host"))
"""Copies whose call returns with them: not to pinned memory, and ROCm does not say which host memory it is."""


def copy_waits(scene: Scene, claims: Claims) -> None:
    """E6: a copy call that outlives its own copy waited for it, if copies of its kind block.

    Blocking by specification: synchronous copy calls, and copies to pageable host memory. Blocking by
    behaviour: any copy whose queue was still busy when the call began, and whose call outlived it. A copy
    *from* pageable memory returns when the data is staged, so its call ends with or before the copy; but
    it begins to stage only when the queue's earlier work has ended: that work is what it waited for.
    """
    events, launch = scene.events, scene.links.launch
    copies = scene.device[events.kind[scene.device] == EventKind.MEMCPY]
    points, before = np.full((2, len(events)), NONE, np.int64)
    points[claims.launch["row"]] = claims.launch["at_ns"]
    _fill_busy_until(before, scene, claims)
    for row in copies[launch[copies] >= 0].tolist():
        call, at = int(launch[row]), int(points[row])
        start, call_end, end = int(events.start_ns[call]), int(events.end_ns[call]), int(events.end_ns[row])
        queued = at == start < int(events.start_ns[row]) <= call_end
        if start < end <= call_end and at >= 0 and (_blocks(scene, call, row) or queued):
            claims.wait.append(WaitClaim(row, call, max(at, start), end, EdgeKind.SYNC, Evidence.ID))
        elif queued and before[row] >= 0 and ends_of(events.name_of(row))[0] == "Pageable":
            src = int(before[row])
            until = int(events.end_ns[src])
            if start < until <= call_end:
                claims.wait.append(WaitClaim(src, call, start, until, EdgeKind.SYNC, Evidence.ORDER))


def _fill_busy_until(before: Int64Array, scene: Scene, claims: Claims) -> None:
    """For each device activity, the known predecessor that ends last; of several, the one claimed first."""
    src, dst = claims.device["src"], claims.device["dst"]
    order = np.lexsort((-np.arange(len(src)), scene.events.end_ns[src]))
    before[dst[order]] = src[order]


def sync_waits(scene: Scene, claims: Claims) -> None:
    """E5: synchronize calls, by their sync record where there is one, else by what they can have waited for."""
    by_call = {record.call: record for record in sync_records(scene) if record.call >= 0}
    roles = (CallRole.SYNC_DEVICE, CallRole.SYNC_STREAM, CallRole.SYNC_EVENT)
    for call in calls(scene, *roles):
        record = by_call.get(call)
        src, evidence = _awaited_by_record(scene, record) if record else _awaited_by_role(scene, call)
        _claim(scene, claims, src, call, evidence)
        if src >= 0 and _waits_for_device(scene, call, record):
            _claim_other_queues(scene, claims, src)
    if not scene.rules.strict:
        for call in calls(scene, CallRole.FREE):
            src = _last_issued(scene, int(scene.events.start_ns[call]))
            if src >= 0 and 0 <= scene.events.end_ns[call] - scene.events.end_ns[src] <= FREE_RETURN_NS:
                _claim(scene, claims, src, call, Evidence.TIMING)


def _waits_for_device(scene: Scene, call: int, record: SyncRecord | None) -> bool:
    """Whether a call waits for every queue of a device."""
    return record.kind == "Context Sync" if record else scene.roles[call] == CallRole.SYNC_DEVICE


def _claim_other_queues(scene: Scene, claims: Claims, latest: int) -> None:
    """A device sync waits for the other queues too: they would hold it were the latest one shorter."""
    events, wait = scene.events, claims.wait[-1] if claims.wait else None
    if wait is None or wait.src != latest:
        return
    start = int(events.start_ns[wait.call])
    for queue in scene.queues_of(events.lane_of(latest).device):
        row = queue.last_to_end_of(start)
        if row not in (NONE, latest) and start < events.end_ns[row] <= wait.until_ns:
            claims.wait.append(
                WaitClaim(row, wait.call, wait.from_ns, wait.until_ns, wait.kind, wait.evidence)
            )


def _claim(scene: Scene, claims: Claims, src: int, call: int, evidence: Evidence) -> None:
    """A wait, if the awaited work ended inside the call; work that ended before it delayed nothing."""
    if src < 0 or (evidence == Evidence.TIMING and scene.rules.strict):
        return
    start, end = int(scene.events.start_ns[call]), int(scene.events.end_ns[call])
    until = int(scene.events.end_ns[src])
    if until <= start:
        return
    # What begins only when the call has returned was not awaited, however short it is.
    begun = int(scene.events.start_ns[src]) < end or until <= end
    if until > end + scene.rules.tolerance_ns or not begun:
        claims.notes[Note.WAIT_TOO_LATE] += 1
        return
    if until > end:
        claims.notes[Note.WAIT_JUST_LATE] += 1
    claims.wait.append(WaitClaim(src, call, start, min(until, end), EdgeKind.SYNC, evidence))


def _blocks(scene: Scene, call: int, row: int) -> bool:
    """Whether this copy's call returns only after the copy, by specification."""
    to_host = ends_of(scene.events.name_of(row)) in TO_HOST
    return scene.roles[call] == CallRole.COPY_BLOCKING or to_host


def _awaited_by_record(scene: Scene, record: SyncRecord) -> tuple[int, Evidence]:
    """What a sync record says was awaited."""
    at = int(scene.events.start_ns[record.call])
    if record.kind == "Event Sync":
        if record.record_correlation < 0 and record.source_stream < 0:
            return _awaited_by_role(scene, record.call)
        return recorded_work(scene, record)
    queues = scene.queues_of(record.device)
    if record.kind == "Stream Sync" and record.stream >= 0:
        queues = [q for q in queues if scene.events.lanes[q.lane].stream == record.stream]
    rows = [row for q in queues if (row := q.last_to_end_of(at)) >= 0]
    return max(rows, key=lambda r: int(scene.events.end_ns[r]), default=NONE), Evidence.SYNC


def _awaited_by_role(scene: Scene, call: int) -> tuple[int, Evidence]:
    """Without a record: what ended last inside the call, of what the call can have waited for.

    A device sync waits for all queues of one device, the one that drained during the call. A stream
    sync waits for one queue: the one that ran empty closest before the return. Which queue it was is
    certain (order) only if one queue had work pending, or if the thread had just issued to it.
    """
    events = scene.events
    start, end = int(events.start_ns[call]), int(events.end_ns[call])
    limit = end + scene.rules.tolerance_ns
    if scene.roles[call] == CallRole.SYNC_EVENT:
        return _last_end_inside(scene, start, limit), Evidence.TIMING
    if scene.roles[call] == CallRole.SYNC_DEVICE:
        devices = {events.lanes[lane].device for lane in scene.queues}
        drained = [_last_of_device(scene, device, start) for device in devices]
        fits = [row for row in drained if row >= 0 and start < events.end_ns[row] <= limit]
        return max(fits, key=lambda r: int(events.end_ns[r]), default=NONE), Evidence.ORDER
    pending = [
        row
        for q in scene.queues.values()
        if (row := q.last_to_end_of(start)) >= 0 and events.end_ns[row] > start
    ]
    fits = [row for row in pending if events.end_ns[row] <= limit]
    if not fits:
        return NONE, Evidence.ORDER
    row = max(fits, key=lambda r: int(events.end_ns[r]))
    certain = len(pending) == 1 or events.lane[row] == _lane_last_issued_by(scene, call)
    return row, Evidence.ORDER if certain else Evidence.TIMING


def _last_of_device(scene: Scene, device: int, at_ns: int) -> int:
    rows = [row for q in scene.queues_of(device) if (row := q.last_to_end_of(at_ns)) >= 0]
    return max(rows, key=lambda r: int(scene.events.end_ns[r]), default=NONE)


def _last_issued(scene: Scene, at_ns: int) -> int:
    rows = [row for q in scene.queues.values() if (row := q.last_to_end_of(at_ns)) >= 0]
    return max(rows, key=lambda r: int(scene.events.end_ns[r]), default=NONE)


def _last_end_inside(scene: Scene, start: int, limit: int) -> int:
    """The latest end within a call, over all queues."""
    rows = [row for q in scene.queues.values() if (row := q.last_to_end_by(limit)) >= 0]
    inside = [row for row in rows if scene.events.end_ns[row] > start]
    return max(inside, key=lambda r: int(scene.events.end_ns[r]), default=NONE)


def _lane_last_issued_by(scene: Scene, call: int) -> int:
    """The queue of the last activity that the calling thread issued before the call."""
    issuer = scene.issuers.get(int(scene.events.lane[call]))
    row = issuer.last_before(int(scene.events.start_ns[call])) if issuer else NONE
    return int(scene.events.lane[row]) if row >= 0 else NONE
