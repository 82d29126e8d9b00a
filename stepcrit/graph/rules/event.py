"""E4: a queue waits for a recorded event of another queue, as the sync records of the trace say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from msgspec import Struct

from stepcrit.graph.claims import Claims
from stepcrit.graph.scene import Queue, Scene, calls
from stepcrit.link.api import CallRole
from stepcrit.model.arguments import whole, words
from stepcrit.model.arrays import NONE
from stepcrit.model.events import EventKind
from stepcrit.model.graph import EdgeKind, Evidence, Note

NEAR_WAIT_NS = 50_000
"""How long before its waiter an activity may have ended and still be taken for what a wait call meant."""


class SyncRecord(Struct, frozen=True):
    """One cuda_sync record, with the call that it belongs to.

    Attributes:
        kind: "Stream Wait Event", "Stream Sync", "Event Sync", "Context Sync".
        call: the runtime call of the same correlation, or -1.
        correlation: of that call.
        device, stream: where it applies; stream -1 when unknown.
        source_stream: `wait_on_stream`, -1 when unknown.
        record_correlation: the event's record call, -1 when unknown.
    """

    kind: str
    call: int
    correlation: int
    device: int
    stream: int
    source_stream: int
    record_correlation: int


def sync_records(scene: Scene) -> Iterator[SyncRecord]:
    """The trace's sync records in time order."""
    events = scene.events
    for row in np.flatnonzero(events.is_kind(EventKind.SYNC)).tolist():
        args = events.args.get(row, {})
        correlation = int(events.correlation[row])
        yield SyncRecord(
            words(args, "cuda_sync_kind") or events.name_of(row),
            scene.call_of.get(correlation, NONE),
            correlation,
            whole(args, "device", events.lane_of(row).device),
            _stream(args, "stream"),
            _stream(args, "wait_on_stream"),
            whole(args, "wait_on_cuda_event_record_corr_id") or NONE,
        )


def event_waits(scene: Scene, claims: Claims) -> None:
    """The work recorded by the event -> the first activity issued to the waiting queue after the wait.

    A record issued after the wait (a defect of older profilers) is rejected and counted.
    """
    for record in sync_records(scene):
        if record.kind != "Stream Wait Event" or record.call < 0:
            continue
        if record.record_correlation >= record.correlation:
            claims.notes[Note.LATE_RECORD] += 1
            continue
        src, evidence = recorded_work(scene, record)
        queue = _queue_of(scene, record.device, record.stream)
        dst = queue.first_issued_after(int(scene.events.start_ns[record.call])) if queue else NONE
        if src >= 0 and dst >= 0 and src != dst:
            claims.device.add(src, dst, EdgeKind.EVENT, evidence)


def recorded_work(scene: Scene, record: SyncRecord) -> tuple[int, Evidence]:
    """The last activity that the event stands for, on any thread; -1 when it names nothing pending.

    With the record call known the answer is exact; without it, everything issued to the source queue
    before the wait itself is taken (never too early) and the evidence is only the calls' order.
    """
    at, evidence = _record_instant(scene, record)
    queue = _queue_of(scene, record.device, record.source_stream)
    if queue is None:
        queue = _queue_issued_to(scene, record.device, at)
    return (queue.last_issued_before(at) if queue else NONE), evidence


def inferred_event_waits(scene: Scene, claims: Claims) -> None:
    """Without sync records: a wait call, and work of another queue that ended just before what waited.

    The call says that the next activity its thread issues waits for something recorded earlier, not for
    what. Of every other queue, the latest work issued before the call that had ended by then could be
    meant, if it ended shortly before. Of several, the work issued last is taken: an event is recorded
    right before it is waited for, and what ended last may have done so by chance. Evidence: timing.
    (Calls that record events are often left out of traces, so they are not asked for.)
    """
    events = scene.events
    if scene.rules.strict or events.is_kind(EventKind.SYNC).any():
        return
    for call in calls(scene, CallRole.STREAM_WAIT):
        issuer = scene.issuers.get(int(events.lane[call]))
        dst = issuer.first_after(int(events.end_ns[call])) if issuer else NONE
        src = _likely_meant(scene, dst, int(events.start_ns[call])) if dst >= 0 else NONE
        if src >= 0:
            claims.notes[Note.INFERRED_WAIT] += 1
            claims.device.add(src, dst, EdgeKind.EVENT, Evidence.TIMING)


def _likely_meant(scene: Scene, dst: int, before_call: int) -> int:
    """The work of another queue of the device that a wait call in front of `dst` most likely means, or -1."""
    events = scene.events
    start, found = int(events.start_ns[dst]), NONE
    for queue in scene.queues_of(events.lane_of(dst).device):
        src = _done_before(scene, queue, start, before_call) if queue.lane != events.lane[dst] else NONE
        if src < 0 or events.end_ns[src] < start - NEAR_WAIT_NS:
            continue
        if found < 0 or scene.issue_ns[src] > scene.issue_ns[found]:
            found = src
    return found


def _done_before(scene: Scene, queue: Queue, at_ns: int, before_call: int) -> int:
    """The latest activity of a queue that had ended by an instant and was issued before a call."""
    ended = queue.last_to_end_by(at_ns)
    if ended < 0 or scene.issue_ns[ended] < before_call:
        return ended
    issued = queue.last_issued_before(before_call)
    return issued if issued >= 0 and scene.events.end_ns[issued] <= at_ns else NONE


def _record_instant(scene: Scene, record: SyncRecord) -> tuple[int, Evidence]:
    """When the event was recorded, in host time."""
    events = scene.events
    if record.record_correlation >= 0:
        call = scene.call_of.get(record.record_correlation, NONE)
        if call >= 0:
            return int(events.start_ns[call]), Evidence.SYNC
        earlier = scene.device[events.correlation[scene.device] < record.record_correlation]
        known = scene.issue_ns[earlier[scene.links.launch[earlier] >= 0]]
        return (int(known.max()) + 1 if known.size else 0), Evidence.SYNC
    return int(events.start_ns[record.call]), Evidence.ORDER


def _queue_of(scene: Scene, device: int, stream: int) -> Queue | None:
    if stream < 0:
        return None
    found = [q for q in scene.queues_of(device) if scene.events.lanes[q.lane].stream == stream]
    return found[0] if found else None


def _queue_issued_to(scene: Scene, device: int, at_ns: int) -> Queue | None:
    """The queue to which the device's last activity before an instant was issued."""
    last = [(q.last_issued_before(at_ns), q) for q in scene.queues_of(device)]
    known = [(int(scene.issue_ns[row]), q.lane, q) for row, q in last if row >= 0]
    return max(known, key=lambda item: item[:2])[2] if known else None


def _stream(args: Mapping[str, Any], key: str) -> int:
    """A stream number; -1 and its unsigned spelling both mean unknown."""
    value = whole(args, key)
    return NONE if value in (NONE, 2**32 - 1) else value
