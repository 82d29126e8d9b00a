"""The operator of a call: the one around it on its thread, else the one whose id it carries, if the times agree.

Profilers have written a thread's calls and its operators under two numbers (one of them cut to 32 bits), and
two clocks may put a call just outside the operator that made it.
"""

from __future__ import annotations

import numpy as np

from stepcrit.link.places import processes
from stepcrit.model.arrays import NONE, Int32Array, Int64Array, among
from stepcrit.model.events import EventKind, EventTable

OUTSIDE_NS = 1_000
"""So far outside its operator a call may lie: what clocks of one machine disagree by."""


def adopted_calls(events: EventTable, op: Int32Array) -> tuple[Int64Array, Int64Array]:
    """Calls without an operator around them, and the operators that they name.

    Args:
        events: the table.
        op: the operator around each host row, -1 where there is none.

    Returns:
        Rows of calls, and for each the latest operator of its process that has its external id and was
        running when the call began.
    """
    number = events.external_id
    calls, ops = (np.flatnonzero(events.is_kind(kind)) for kind in (EventKind.RUNTIME, EventKind.CPU_OP))
    calls = calls[(op[calls] < 0) & (number[calls] >= 0)]
    ops = ops[among(number[ops], number[calls])]
    calls = calls[among(number[calls], number[ops])]
    # Rows come by their start.
    ops, calls = (rows[np.argsort(number[rows], kind="stable")] for rows in (ops, calls))
    found = _running(events, ops, calls)
    return calls[found >= 0], found[found >= 0]


def _running(events: EventTable, ops: Int64Array, calls: Int64Array) -> Int64Array:
    """For each call the latest operator of its id and process that was running when it began, -1 where none.

    Both come by (id, start), so that what has ended for one call has ended for every later one of its id.
    """
    found = np.full(len(calls), NONE, np.int64)
    pid = processes(events)
    columns = (ops, events.external_id[ops], events.start_ns[ops], events.end_ns[ops], pid[events.lane[ops]])
    waiting = list(zip(*(column.tolist() for column in columns), strict=True))[::-1]
    asked = (events.external_id[calls], events.start_ns[calls], pid[events.lane[calls]])
    running: dict[int, list[tuple[int, int]]] = {}  # by process: (end, row), by start
    now = NONE
    for place, (number, at, process) in enumerate(zip(*(column.tolist() for column in asked), strict=True)):
        if number != now:
            running, now = {}, number
            while waiting[-1][1] < number:
                waiting.pop()
        while waiting and waiting[-1][1] == number and waiting[-1][2] - OUTSIDE_NS <= at:
            row, _, _, end, owner = waiting.pop()
            running.setdefault(owner, []).append((end, row))
        mine = running.get(process, [])
        while mine and mine[-1][0] + OUTSIDE_NS < at:
            mine.pop()
        found[place] = mine[-1][1] if mine else NONE
    return found
