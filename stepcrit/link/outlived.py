"""P301 on the host: an operator or call that goes on long after the one around it returned, cut to that return.

On one thread what was called returns before its caller does. Ranges do cross by rounding and by how they are
written, and asynchronous operators outlive their parent by a few milliseconds; so a row must also last many
times as long as others of its name do.
"""

from __future__ import annotations

import numpy as np

from stepcrit.link.retable import with_times
from stepcrit.model.arrays import BoolArray, Int64Array
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
    end = events.end_ns.copy()
    for row in rows[_too_long(events, rows)].tolist():
        end[row] = _bound(events, rows, row)
    over = events.end_ns - end
    if not over.any():
        return trace, ()
    worst = int(np.argmax(over))
    found = Oddity(
        "P301", int((over > 0).sum()), len(rows), Done.SET_RIGHT, events.name_of(worst), int(events.order[worst]),
        {"written_ns": int(events.end_ns[worst] - events.start_ns[worst]), "taken_ns": int(end[worst] - events.start_ns[worst])},
    )  # fmt: skip
    return with_times(trace, events.start_ns, end), (found,)


def _too_long(events: EventTable, rows: Int64Array) -> BoolArray:
    """Rows much longer than is usual for their name, or the only ones of it."""
    length, name = (events.end_ns - events.start_ns)[rows], events.name[rows]
    order = np.lexsort((length, name))
    _, first, count = np.unique(name[order], return_index=True, return_counts=True)
    usual = np.repeat(length[order][first + (count - 1) // 2], count)
    longer = np.zeros(len(rows), np.bool_)
    longer[order] = (length[order] >= TIMES_USUAL * usual) | np.repeat(count == 1, count)
    return longer & (length > OUTLIVES_NS)


def _bound(events: EventTable, rows: Int64Array, row: int) -> int:
    """When a row must have returned: its own end, where nothing around it ended much earlier."""
    start, end = int(events.start_ns[row]), int(events.end_ns[row])
    before = rows[: int(np.searchsorted(rows, row))]
    around = before[(events.lane[before] == events.lane[row]) & (events.end_ns[before] > start)]
    if not around.size:
        return end
    bound = int(events.end_ns[around].min())
    room = OUTLIVES_NS
    if (events.name[rows] == events.name[row]).sum() == 1:
        others = rows[(events.lane[rows] == events.lane[row]) & (rows != row)]
        room = max(room, int(events.end_ns[others].max() - events.start_ns[others].min()))
    return bound if end - bound > room else end
