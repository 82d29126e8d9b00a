"""P304 to P306: the device's clock against causality (methods O.2).

Nothing starts before the call that launched it begins, and a call that waits returns after what it waited
for has ended. Both bound the offset d that device times lack: at least (call start - activity start) over
all launches, at most (return - awaited end) over all waits that are certain to cover the work. Where 0 lies
outside, the clocks disagree; where the bounds are consistent, one constant sets the device right.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepcrit.intervals import ascending
from stepcrit.link.faroff import FAR_NS, MINORITY
from stepcrit.link.places import beside, devices
from stepcrit.link.retable import with_times
from stepcrit.link.returns import NEVER, Certain, certain_launches
from stepcrit.model.arrays import BoolArray, Int64Array, freeze
from stepcrit.model.events import HOST_KINDS, EventKind, EventTable
from stepcrit.model.oddity import Done, Oddity
from stepcrit.model.trace import RawTrace

TOLERANCE_NS = 1_000
"""Closer contradictions are rounding: building the graph clamps them (G203, G208)."""

LATE_NS = 5_000
"""Ends are stamped less exactly than starts: up to 2.4 us late beside a successor or a return on ROCm."""

EARLY_NS = 1_000_000
"""A row this early is no matter of clock jitter."""

FEW = 0.001
"""A clock off by a constant shows at every launch that finds its queue idle: once per synchronize at least.
Fewer early starts than this share are wrong rows, or wrong links."""

FEW_UNBOUNDED = 0.10
"""The same where no wait bounds the offset from above: then nothing else speaks for a constant."""


class Bounds(Struct, frozen=True):
    """What causality says of one device's clock.

    Attributes:
        low_ns, high_ns: d lies between them; high_ns is None where no wait is certain to cover any work.
        early_count: launches whose activity starts earlier than the tolerance allows.
        count: launches looked at.
        order: file position of the activity that sets the lower bound.
    """

    low_ns: int
    high_ns: int | None
    early_count: int
    count: int
    order: int

    @property
    def offset_ns(self) -> int | None:
        """What to add to device times: the bound nearest to 0, 0 where they agree, None where nothing fits."""
        late = self.high_ns is not None and self.high_ns < -LATE_NS
        early = self.low_ns > TOLERANCE_NS
        if self.high_ns is not None and self.low_ns > self.high_ns and (late or early):
            return None
        if early:
            share = FEW_UNBOUNDED if self.high_ns is None else FEW
            return self.low_ns if self.early_count >= share * self.count else None
        if late:
            return self.high_ns
        # Even the fastest launch took an hour: the device's clock is another one (Windows, time zones).
        return self.low_ns if self.low_ns < -FAR_NS else 0


def put_disordered_rows_aside(trace: RawTrace) -> tuple[RawTrace, tuple[Oddity, ...]]:
    """P304: rows whose time no shift of the clock explains.

    They start before their launch *and* before rows of their queue that were launched earlier, or after a
    call returned that waited for them. A clock that is off moves all rows alike and leaves their order.
    """
    events, launched = trace.events, certain_launches(trace)
    rows = launched.rows
    early = events.start_ns[launched.call] - events.start_ns[rows]
    late = events.start_ns[rows] - launched.until_ns
    if not ((early > EARLY_NS) | (late > EARLY_NS)).any():
        return trace, ()
    order = np.lexsort((events.start_ns[launched.call], events.lane[rows]))
    rows, early, late = rows[order], early[order], late[order]
    wrong = (early > EARLY_NS) & _overtakes(events, rows)
    if not clock_is_late(events, launched):
        wrong |= late > EARLY_NS
    bad = rows[wrong]
    if not bad.size or len(bad) > max(1, MINORITY * len(rows)):
        return trace, ()
    keep = np.ones(len(events), np.bool_)
    keep[bad] = False
    off = np.maximum(early, late)[wrong]
    worst = int(np.argmax(off))
    found = Oddity(
        "P304", len(bad), len(rows), Done.PUT_ASIDE, events.name_of(bad[worst]), int(events.order[bad[worst]]),
        {"off_ns": int(off[worst])},
    )  # fmt: skip
    return with_times(trace, events.start_ns, events.end_ns, keep), (found,)


def clock_is_late(events: EventTable, launched: Certain) -> bool:
    """Whether even the fastest launch takes a millisecond: the device's clock may then be late by that."""
    taken = events.start_ns[launched.rows] - events.start_ns[launched.call]
    return bool(taken.min(initial=NEVER) > EARLY_NS)


def _overtakes(events: EventTable, rows: Int64Array) -> BoolArray:
    """Of rows by (lane, launch), those that start long before one of their lane launched earlier."""
    start, lane = events.start_ns[rows], events.lane[rows]
    reach = np.full(len(rows), -NEVER)
    bounds = [0, *(np.flatnonzero(np.diff(lane)) + 1).tolist(), len(rows)]
    for low, high in pairwise(bounds):
        reach[low + 1 : high] = np.maximum.accumulate(start[low : high - 1])
    result: BoolArray = reach - start > EARLY_NS
    return result


def set_clocks(trace: RawTrace) -> tuple[RawTrace, tuple[Oddity, ...]]:
    """P305, P306: move devices whose clock causality refutes by one constant, where one fits."""
    events, launched = trace.events, certain_launches(trace)
    if not len(launched):
        return trace, ()
    device = devices(events)
    of_row = device[events.lane[launched.rows]]
    shift = np.zeros(len(events.lanes), np.int64)
    found = []
    for number in ascending(of_row).tolist():
        lanes, mine = device == number, of_row == number
        bounds = _bounds(events, Certain(launched.rows[mine], launched.call[mine], launched.until_ns[mine]))
        offset = bounds.offset_ns
        if offset == 0:
            continue
        label = events.lanes[int(np.argmax(lanes))].device_label
        found.append(_oddity(bounds, label))
        shift[lanes] = offset or 0
        shift[_companions(events, number, offset or 0)] = offset or 0
    return (_shifted(trace, shift) if shift.any() else trace), tuple(found)


def _companions(events: EventTable, number: int, offset_ns: int) -> BoolArray:
    """Lanes beside a device that share its clock: its annotations do; its sync records where it is hours away."""
    moved = np.zeros(len(events.lanes), np.bool_)
    moved[events.lane[events.is_kind(EventKind.GPU_ANNOTATION)]] = True
    moved[events.lane[events.is_kind(EventKind.SYNC)]] = False  # stamped by the host as a rule
    if abs(offset_ns) > FAR_NS:
        host = events.start_ns[events.is_kind(*HOST_KINDS)]
        away = np.maximum(
            host.min(initial=NEVER) - events.start_ns, events.start_ns - host.max(initial=-NEVER)
        )
        moved[events.lane[away > FAR_NS]] = True
    result: BoolArray = moved & (beside(events) == number)
    return result


def _oddity(bounds: Bounds, device: str) -> Oddity:
    """What is told of one device's clock."""
    offset = bounds.offset_ns
    return Oddity(
        "P306" if offset is None else "P305", bounds.early_count or bounds.count, bounds.count,
        Done.TOLD if offset is None else Done.SET_RIGHT, device, bounds.order,
        {"offset_ns": offset, "low_ns": bounds.low_ns, "high_ns": bounds.high_ns},
    )  # fmt: skip


def _shifted(trace: RawTrace, shift: Int64Array) -> RawTrace:
    """The trace with the rows and the arrows of some lanes moved."""
    by_row, arrows = shift[trace.events.lane], trace.flows.lane
    moved = trace.flows.ts_ns + np.where(arrows >= 0, shift[np.maximum(arrows, 0)], 0)
    freeze(moved)
    trace = replace(trace, flows=replace(trace.flows, ts_ns=moved))
    return with_times(trace, trace.events.start_ns + by_row, trace.events.end_ns + by_row)


def _bounds(events: EventTable, launched: Certain) -> Bounds:
    """The interval of one device's launched rows."""
    rows = launched.rows
    early = events.start_ns[launched.call] - events.start_ns[rows]
    worst = int(np.argmax(early))
    awaited = launched.until_ns < NEVER
    room = launched.until_ns[awaited] - events.end_ns[rows[awaited]]
    return Bounds(
        int(early[worst]),
        int(room.min()) if room.size else None,
        int((early > TOLERANCE_NS).sum()),
        len(rows),
        int(events.order[rows[worst]]),
    )
