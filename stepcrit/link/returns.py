"""When each device activity had certainly ended, by what calls say that waited for it."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from stepcrit.intervals import ascending
from stepcrit.link.api import CallRole, call_roles
from stepcrit.link.launches import link_launches
from stepcrit.link.places import devices, processes
from stepcrit.model.arrays import BoolArray, Int32Array, Int64Array, IntArray, among, freeze
from stepcrit.model.events import HOST_KINDS, EventKind, EventTable
from stepcrit.model.once import once
from stepcrit.model.trace import RawTrace

NEVER = 2**62
"""Nothing says by when an activity had ended."""

COARSE_NS = 500_000
"""System timers of Windows tick every 0.5 to 15.6 ms, and old profilers stamped calls with them."""


class Certain(Struct, frozen=True, eq=False):
    """Device rows whose launch is certain, ascending.

    Attributes:
        rows: the rows.
        call: the launch call of each.
        until_ns: the earliest return of a call that is certain to have waited for it, else NEVER.
    """

    rows: Int64Array
    call: Int32Array
    until_ns: Int64Array

    def __len__(self) -> int:
        return len(self.rows)


@once
def certain_launches(trace: RawTrace) -> Certain:
    """What is certain of launches: where two calls share a correlation, a wrong link proves nothing."""
    events = trace.events
    launch = link_launches(events, trace.flows)
    rows = np.flatnonzero(launch >= 0)
    calls = np.flatnonzero(events.is_kind(EventKind.RUNTIME))
    calls = calls[events.correlation[calls] >= 0]
    if calls.size:
        rows = rows[~among(events.correlation[rows], _repeated(events, calls))]
    found = Certain(rows, launch[rows], ended_by(events, rows, launch[rows]))
    freeze(found.rows, found.call, found.until_ns)
    return found


def _repeated(events: EventTable, calls: Int64Array) -> IntArray:
    """Correlations of more than one call (a driver call inside the runtime call of its id is the same call)."""
    calls = calls[np.argsort(events.correlation[calls], kind="stable")]  # rows come by their start
    before, after = calls[:-1], calls[1:]
    same = events.correlation[after] == events.correlation[before]
    apart = (events.lane[after] != events.lane[before]) | (events.end_ns[after] > events.end_ns[before])
    return ascending(events.correlation[after[same & apart]])


def ended_by(events: EventTable, rows: Int64Array, call: IntArray) -> Int64Array:
    """For each launched row the earliest return of a call that is certain to have waited for it, else NEVER.

    A synchronize of the device covers all that its process had launched when it began, if the process uses
    one device: which device of several is in no trace. A copy to pageable host memory returns with the data.
    """
    until = np.full(len(rows), NEVER, np.int64)
    pid, roles = processes(events), call_roles(events)
    owner, device = pid[events.lane[call]], devices(events)[events.lane[rows]]
    syncs = np.flatnonzero(roles == int(CallRole.SYNC_DEVICE))
    of_sync = pid[events.lane[syncs]]
    for process in ascending(of_sync).tolist():
        mine = owner == process
        if len(ascending(device[mine])) == 1:
            until[mine] = _first_return(events, syncs[of_sync == process], events.end_ns[call[mine]])
    copies = _copies_to_host(events, rows, call, roles[call] == int(CallRole.COPY_BLOCKING))
    until[copies] = np.minimum(until[copies], events.end_ns[call[copies]])
    known = until < NEVER
    if known.any():
        until[known] += _coarse_tick(events)
    return until


def _coarse_tick(events: EventTable) -> int:
    """The tick of a coarse host clock, 0 for a fine one: what is stamped within a tick came up to a tick later."""
    host = events.is_kind(*HOST_KINDS)
    between = np.diff(events.start_ns[host])  # ascending, like the table
    if ((between > 0) & (between < COARSE_NS)).any():
        return 0  # as nearly every trace shows at once
    stamps = np.sort(np.concatenate((events.start_ns[host], events.end_ns[host])))
    between = np.diff(stamps)
    tick = int(between[between > 0].min(initial=NEVER))
    return tick if COARSE_NS <= tick < NEVER else 0


def _first_return(events: EventTable, calls: Int64Array, issued_ns: Int64Array) -> Int64Array:
    """The earliest return of those calls that began no earlier than each instant."""
    returned = np.append(events.end_ns[calls], np.int64(NEVER))
    earliest = np.minimum.accumulate(returned[::-1])[::-1]
    result: Int64Array = earliest[np.searchsorted(events.start_ns[calls], issued_ns, side="left")]
    return result


def _copies_to_host(events: EventTable, rows: Int64Array, call: IntArray, blocking: BoolArray) -> BoolArray:
    """Copies whose call returns when the data is on the host, by specification."""
    to_host, pageable, pinned, copies = (
        np.array([word in name for name in events.names], np.bool_)
        for word in ("DtoH", "Pageable", "Pinned", "Memcpy")
    )
    name = events.name[rows]
    waits = pageable[name] | (blocking & ~pinned[name])
    # A copy that is a node of a graph has the graph's launch for its call, which waits for nothing.
    return events.is_kind(EventKind.MEMCPY)[rows] & to_host[name] & waits & copies[events.name[call]]
