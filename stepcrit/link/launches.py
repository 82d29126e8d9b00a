"""Launch and device activity share a correlation id; any runtime call qualifies, no list of names.

One launch may own many activities (a graph), an activity may have no launch (it was enqueued before
the recording, or by a call that the profiler does not record), and a correlation may repeat (merged
files, wrapped counters): then the latest launch that starts before the activity owns it.
"""

from __future__ import annotations

import numpy as np

from stepcrit.model.arrays import NONE, Int32Array, Int64Array, IntArray, freeze
from stepcrit.model.events import DEVICE_KINDS, EventKind, EventTable
from stepcrit.model.once import once
from stepcrit.model.trace import FlowTable


@once
def link_launches(events: EventTable, flows: FlowTable) -> Int32Array:
    """For each row, the runtime call that launched it (-1: not device work, or an orphan)."""
    launch = _launches(events, flows)
    freeze(launch)
    return launch


def _launches(events: EventTable, flows: FlowTable) -> Int32Array:
    launch = np.full(len(events), NONE, np.int32)
    device = np.flatnonzero(events.is_kind(*DEVICE_KINDS))
    calls = np.flatnonzero(events.is_kind(EventKind.RUNTIME))
    correlation = events.correlation
    if device.size and (correlation[device] < 0).all():
        correlation = _correlation_from_flows(events, flows)
    device = device[correlation[device] >= 0]
    calls = _outer_calls(events, calls[correlation[calls] >= 0], correlation)
    if not calls.size:
        return launch
    keys = correlation[calls]  # `calls` is sorted by (correlation, start)
    low = np.searchsorted(keys, correlation[device], side="left")
    high = np.searchsorted(keys, correlation[device], side="right")
    one = high - low == 1
    launch[device[one]] = calls[low[one]]
    for i in np.flatnonzero(high - low > 1):
        launch[device[i]] = _latest_before(events, calls[low[i] : high[i]], device[i])
    return launch


def _outer_calls(events: EventTable, calls: Int64Array, correlation: IntArray) -> Int64Array:
    """Calls by (correlation, start), without a driver call inside the runtime call of the same id."""
    calls = calls[np.argsort(correlation[calls], kind="stable")]  # rows come by their start
    if calls.size < 2:
        return calls
    before, after = calls[:-1], calls[1:]
    inner = (
        (correlation[before] == correlation[after])
        & (events.lane[before] == events.lane[after])
        & (events.end_ns[after] <= events.end_ns[before])
    )
    return calls[np.concatenate(([True], ~inner))]


def _latest_before(events: EventTable, calls: Int64Array, device: int) -> int:
    """The latest of `calls` that starts no later than the device row, else the first."""
    started = calls[events.start_ns[calls] <= events.start_ns[device]]
    return int(started[-1] if started.size else calls[0])


def _correlation_from_flows(events: EventTable, flows: FlowTable) -> Int64Array:
    """Correlations read off launch arrows: both ends sit exactly at the start of their event."""
    correlation = events.correlation.astype(np.int64)
    starts = events.is_kind(EventKind.RUNTIME)
    ends = events.is_kind(*DEVICE_KINDS)
    for is_start, rows in ((1, np.flatnonzero(starts)), (0, np.flatnonzero(ends))):
        arrows = np.flatnonzero((flows.is_start == is_start) & (flows.lane >= 0))
        at: dict[tuple[int, int], int] = {}
        for lane, ts, flow in zip(
            flows.lane[arrows].tolist(), flows.ts_ns[arrows].tolist(), flows.id[arrows].tolist(), strict=True
        ):
            # Of several at one instant the latest issued, wherever they stand in the file.
            at[lane, ts] = max(flow, at.get((lane, ts), flow))
        for row in rows.tolist():
            flow = at.get((int(events.lane[row]), int(events.start_ns[row])), NONE)
            correlation[row] = flow
    return correlation
