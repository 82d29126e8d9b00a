"""P301 on the host: an operator or call that goes on long after the one around it returned, cut to that return.

On one thread what was called returns before its caller does. Ranges do cross by rounding and by how they are
written, and asynchronous operators outlive their parent by a few milliseconds; so a row must also last many
times as long as others of its name do.
"""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np

from stepcrit.link.retable import with_times
from stepcrit.model.arrays import NONE, Int64Array, distinct
from stepcrit.model.events import EventKind, EventTable
from stepcrit.model.oddity import Done, Oddity
from stepcrit.model.trace import RawTrace

OUTLIVES_NS = 1_000_000
"""As P301 on the device. Of 60 real traces one has operators that outlive their parent by more (6 ms)."""

TIMES_USUAL = 10
"""And this many times the median of its name. Where no other has its name, it must outlive the range around it
by more than all else on its thread takes."""


def cut_outlived(trace: RawTrace) -> tuple[RawTrace, tuple[Oddity, ...]]:
    """End such rows with the earliest end of what was open around their start."""
    events = trace.events
    rows = np.flatnonzero(events.is_kind(EventKind.CPU_OP, EventKind.RUNTIME))
    long = _too_long(events, rows)
    until = events.end_ns[long]
    of_row, of_long = events.lane[rows], events.lane[long]
    for lane in distinct(of_long).tolist():
        asked = of_long == lane
        until[asked] = _bounds(events, rows[of_row == lane], long[asked], np.bincount(events.name[rows]))
    over = events.end_ns[long] - until
    if not over.any():
        return trace, ()
    end = events.end_ns.copy()
    end[long] = until
    worst = int(long[np.argmax(over)])
    found = Oddity(
        "P301", int((over > 0).sum()), len(rows), Done.SET_RIGHT, events.name_of(worst), int(events.order[worst]),
        {"written_ns": int(events.end_ns[worst] - events.start_ns[worst]), "taken_ns": int(end[worst] - events.start_ns[worst])},
    )  # fmt: skip
    return with_times(trace, events.start_ns, end), (found,)


def _too_long(events: EventTable, rows: Int64Array) -> Int64Array:
    """Of some rows those much longer than is usual for their name, or the only ones of it."""
    long = events.end_ns[rows] - events.start_ns[rows] > OUTLIVES_NS
    asked = np.zeros(len(events.names), np.bool_)
    asked[events.name[rows[long]]] = True
    rows = rows[asked[events.name[rows]]]  # what others usually take does not matter
    length, name = events.end_ns[rows] - events.start_ns[rows], events.name[rows]
    order = np.lexsort((length, name))
    _, first, count = np.unique(name[order], return_index=True, return_counts=True)
    usual = np.repeat(length[order][first + (count - 1) // 2], count)
    longer = np.zeros(len(rows), np.bool_)
    longer[order] = (length[order] >= TIMES_USUAL * usual) | np.repeat(count == 1, count)
    return rows[longer & (length > OUTLIVES_NS)]


def _bounds(events: EventTable, mine: Int64Array, asked: Int64Array, of_name: Int64Array) -> Int64Array:
    """When some rows of a thread must have returned: their own end, where nothing around ended much earlier.

    Args:
        events: the table.
        mine: the thread's rows.
        asked: of them, the rows in question.
        of_name: how many rows each name has.
    """
    end = events.end_ns[asked]
    bound = earliest_around(events, mine, asked)
    alone = of_name[events.name[asked]] == 1
    room = np.where(alone, np.maximum(OUTLIVES_NS, _extent_of_others(events, mine, asked)), OUTLIVES_NS)
    return np.where((bound >= 0) & (end - bound > room), bound, end)


def earliest_around(events: EventTable, mine: Int64Array, asked: Int64Array) -> Int64Array:
    """The earliest end of what was open when each of some rows started, -1 where nothing was.

    Args:
        events: the table.
        mine: rows of one thread, ascending.
        asked: some of them, ascending.
    """
    starts, found = events.start_ns[asked], np.full(len(asked), NONE, np.int64)
    # Only what is open when one of them starts can be around one.
    next_start = np.append(starts, np.iinfo(np.int64).max)[np.searchsorted(starts, events.start_ns[mine])]
    around = mine[next_start < events.end_ns[mine]]
    opened: list[int] = []
    rows, ends, nearest = around.tolist(), events.end_ns[around].tolist(), 0
    for i, (row, start) in enumerate(zip(asked.tolist(), starts.tolist(), strict=True)):
        while nearest < len(rows) and rows[nearest] < row:
            heappush(opened, ends[nearest])
            nearest += 1
        while opened and opened[0] <= start:
            heappop(opened)
        found[i] = opened[0] if opened else NONE
    return found


def _extent_of_others(events: EventTable, mine: Int64Array, asked: Int64Array) -> Int64Array:
    """From the first start to the last end of a thread's rows without each one; 0 where it is alone."""
    if len(mine) < 2:
        return np.zeros(len(asked), np.int64)
    latest, end = np.sort(np.partition(events.end_ns[mine], -2)[-2:]), events.end_ns[asked]
    first, second = events.start_ns[mine[:2]]  # rows come by their starts
    until = np.where(end == latest[1], latest[0], latest[1])
    since = np.where(asked == mine[0], second, first)
    extent: Int64Array = until - since
    return extent
