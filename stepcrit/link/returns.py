"""When each device activity had certainly ended, by what calls say that waited for it."""

from __future__ import annotations

import numpy as np

from stepcrit.intervals import ascending
from stepcrit.link.api import CallRole, call_roles
from stepcrit.link.places import devices, processes
from stepcrit.model.arrays import BoolArray, Int64Array
from stepcrit.model.events import HOST_KINDS, EventKind, EventTable

NEVER = 2**62
"""Nothing says by when an activity had ended."""

COARSE_NS = 500_000
"""System timers of Windows tick every 0.5 to 15.6 ms, and old profilers stamped calls with them."""


def ended_by(events: EventTable, launch: Int64Array) -> Int64Array:
    """For each row the earliest return of a call that is certain to have waited for it, else NEVER.

    A synchronize of the device covers all that its process had launched when it began, if the process uses
    one device: which device of several is in no trace. A copy to pageable host memory returns with the data.
    """
    until = np.full(len(events), NEVER, np.int64)
    pid = processes(events)
    rows = np.flatnonzero(launch >= 0)
    owner = pid[events.lane[launch[rows]]]
    roles = call_roles(events)
    syncs = np.flatnonzero(roles == CallRole.SYNC_DEVICE)
    device = devices(events)[events.lane[rows]]
    for process in ascending(pid[events.lane[syncs]]).tolist():
        mine = rows[owner == process]
        if len(ascending(device[owner == process])) == 1:
            calls = syncs[pid[events.lane[syncs]] == process]
            until[mine] = _first_return(events, calls, events.end_ns[launch[mine]])
    copies = rows[_copies_to_host(events, launch, rows, roles == CallRole.COPY_BLOCKING)]
    until[copies] = np.minimum(until[copies], events.end_ns[launch[copies]])
    until[until < NEVER] += _coarse_tick(events)
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


def _copies_to_host(
    events: EventTable, launch: Int64Array, rows: Int64Array, blocking: BoolArray
) -> BoolArray:
    """Copies whose call returns when the data is on the host, by specification."""
    to_host = np.array(["DtoH" in name for name in events.names], np.bool_)
    pageable = np.array(["Pageable" in name for name in events.names], np.bool_)
    pinned = np.array(["Pinned" in name for name in events.names], np.bool_)
    name = events.name[rows]
    copies = np.array(["Memcpy" in word for word in events.names], np.bool_)[events.name[launch[rows]]]
    waits = pageable[name] | (blocking[launch[rows]] & ~pinned[name])
    # A copy that is a node of a graph has the graph's launch for its call, which waits for nothing.
    result: BoolArray = (events.kind[rows] == EventKind.MEMCPY) & to_host[name] & waits & copies
    return result
