"""The operator of a call: the one around it on its thread, else the one whose id it carries, if the times agree.

Profilers have written a thread's calls and its operators under two numbers (one of them cut to 32 bits), and
two clocks may put a call just outside the operator that made it.
"""

from __future__ import annotations

import numpy as np

from stepcrit.model.arrays import NONE, Int64Array
from stepcrit.model.events import EventKind, EventTable

OUTSIDE_NS = 1_000
"""So far outside its operator a call may lie: what clocks of one machine disagree by."""


def adopted_calls(events: EventTable, op: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Calls without an operator around them, and the operators that they name.

    Args:
        events: the table.
        op: the operator around each host row, -1 where there is none.

    Returns:
        Rows of calls, and for each the latest operator of its process that has its external id and was
        running when the call began.
    """
    ops = np.flatnonzero((events.kind == EventKind.CPU_OP) & (events.external_id >= 0))
    ops = ops[np.lexsort((events.start_ns[ops], events.external_id[ops]))]
    ids = events.external_id[ops]
    calls = np.flatnonzero((events.kind == EventKind.RUNTIME) & (op < 0) & (events.external_id >= 0))
    calls = calls[np.isin(events.external_id[calls], ids)]
    low, high = (np.searchsorted(ids, events.external_id[calls], side=side) for side in ("left", "right"))
    processes = [lane.pid for lane in events.lanes]
    found = np.full(len(calls), NONE, np.int64)
    for place, call in enumerate(calls.tolist()):
        named = ops[low[place] : high[place]]
        at = int(events.start_ns[call])
        fits = (events.start_ns[named] - OUTSIDE_NS <= at) & (at <= events.end_ns[named] + OUTSIDE_NS)
        mine = processes[events.lane[call]]
        near = [row for row in named[fits].tolist() if processes[events.lane[row]] == mine]
        found[place] = near[-1] if near else NONE
    return calls[found >= 0], found[found >= 0]
