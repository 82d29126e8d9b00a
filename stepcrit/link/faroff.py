"""P303: rows whose time lies far from everything else that was recorded, put aside.

A profiler records in one go, from start to stop. A row that lies an hour and a hundred recordings away from
the others of its clock carries a time that was never set (0), or was set by another clock; it must not
stretch the recording to days. Where *most* rows of a device lie elsewhere, its clock does: see `clock`.
"""

from __future__ import annotations

import numpy as np

from stepcrit.intervals import ascending
from stepcrit.link.places import beside, devices
from stepcrit.link.retable import with_times
from stepcrit.model.arrays import NONE, BoolArray, Int64Array
from stepcrit.model.events import DEVICE_KINDS, EventKind, EventTable
from stepcrit.model.oddity import Done, Oddity
from stepcrit.model.trace import RawTrace

FAR_NS = 3_600_000_000_000
"""An hour: sound recordings hold idle minutes (a server without requests), and no profiler buffers hours."""

FAR_SPANS = 100
"""And this many times the extent of the rest (reliability, 5.4)."""

MINORITY = 0.10
"""Above this share of a clock's rows, which of them are wrong is not known."""


def put_far_rows_aside(trace: RawTrace) -> tuple[RawTrace, tuple[Oddity, ...]]:
    """Leave out rows far from the body of their clock: the host's, or that of a device."""
    events = trace.events
    if are_close(events, events.start_ns):
        return trace, ()
    clock, lies_beside = devices(events)[events.lane], beside(events)[events.lane]
    far = np.zeros(len(events), np.bool_)
    away = np.zeros(len(events), np.int64)
    device = events.is_kind(*DEVICE_KINDS)
    for each in ascending(clock).tolist():
        rows = np.flatnonzero((clock == each) & (lies_beside < 0) & (~events.is_kind(EventKind.PROFILER)))
        _mark(events.start_ns, rows, far, away)
    _mark_untied_devices(events, clock, device & ~far, far, away)
    _mark_companions(events, clock, lies_beside, far, away)
    if not far.any():
        return trace, ()
    worst = int(np.argmax(away))
    found = Oddity(
        "P303", int(far.sum()), len(events), Done.PUT_ASIDE, events.name_of(worst), int(events.order[worst]),
        {"away_ns": int(away[worst])},
    )  # fmt: skip
    return with_times(trace, events.start_ns, events.end_ns, ~far), (found,)


def are_close(events: EventTable, times: Int64Array) -> bool:
    """Whether some times are within an hour of the first start, as in every sound recording: none can be far."""
    return not times.size or int(times.max()) - int(events.start_ns[0]) <= FAR_NS


def _mark(start: Int64Array, rows: Int64Array, far: BoolArray, away: Int64Array) -> None:
    """Cut the outer groups of rows off, while a gap parts a few of them from a body."""
    low, high = 0, len(rows)  # rows are in the order of their start
    room = max(1, int(MINORITY * len(rows)))
    while high - low > 2:
        times = start[rows[low:high]]
        gaps = np.diff(times)
        at = int(np.argmax(gaps)) + 1
        left, right = at, high - low - at
        body = (times[at:], times[:at])[left > right]
        if gaps[at - 1] <= _far(int(body[-1] - body[0])) or min(left, right) > room or left == right:
            return
        aside = rows[low : low + at] if left < right else rows[low + at : high]
        far[aside] = True
        away[aside] = np.maximum(body[0] - start[aside], start[aside] - body[-1])
        low, high = (low + at, high) if left < right else (low, low + at)
        room -= len(aside)


def _far(extent: int) -> int:
    """How far a row must lie from a body of this extent."""
    return max(FAR_NS, FAR_SPANS * extent)


def _mark_untied_devices(
    events: EventTable, clock: Int64Array, device: BoolArray, far: BoolArray, away: Int64Array
) -> None:
    """A whole device far from the host, with no call that launched any of it: nothing ties the two clocks."""
    start, host = events.start_ns, events.start_ns[(clock < 0) & ~far]
    if not host.size:
        return
    low, high = int(host.min()), int(host.max())
    calls = events.correlation[events.is_kind(EventKind.RUNTIME)]
    tied = (events.correlation >= 0) & np.isin(events.correlation, calls)
    for each in ascending(clock[device]).tolist():
        rows = np.flatnonzero(device & (clock == each))
        distance = np.maximum(low - start[rows], start[rows] - high)
        if distance.min() > _far(high - low) and not tied[rows].any():
            far[rows] = True
            away[rows] = distance


def _mark_companions(
    events: EventTable, clock: Int64Array, lies_beside: Int64Array, far: BoolArray, away: Int64Array
) -> None:
    """Annotations and sync records of a device: on its clock or on the host's, so far only from both."""
    start = events.start_ns
    for each in ascending(lies_beside[lies_beside >= 0]).tolist():
        rows = np.flatnonzero(lies_beside == each)
        distance = np.full(len(rows), np.iinfo(np.int64).max)
        for number in (NONE, each):
            body = start[(clock == number) & (lies_beside < 0) & ~far]
            if body.size:
                low, high = int(body.min()), int(body.max())
                gone = np.maximum(low - start[rows], start[rows] - high).clip(0)
                distance = np.minimum(distance, np.where(gone > _far(high - low), gone, 0))
        odd = (distance > 0) & (distance < np.iinfo(np.int64).max)
        far[rows[odd]] = True
        away[rows[odd]] = distance[odd]
