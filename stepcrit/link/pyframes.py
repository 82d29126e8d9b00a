"""P310: Python frames whose return was lost run to the end of the recording; cut to the frame around them.

A call returns before its caller does. A frame that goes on to the recording's end while a frame around it
ended earlier has lost its return event: until then its time, and the frames of later calls, would be its own.
"""

from __future__ import annotations

import numpy as np

from stepcrit.link.retable import with_times
from stepcrit.model.arrays import Int64Array
from stepcrit.model.events import EventKind, EventTable
from stepcrit.model.oddity import Done, Oddity
from stepcrit.model.trace import RawTrace

ROUNDING_NS = 1_000
"""Whole-microsecond clocks round: a frame may outlive the one around it by that much."""


def cut_lost_returns(trace: RawTrace) -> tuple[RawTrace, tuple[Oddity, ...]]:
    """End such frames with the earliest end of what was open around their start."""
    events = trace.events
    python = np.flatnonzero(events.kind == EventKind.PYTHON)
    if not python.size:
        return trace, ()
    last = int(events.end_ns[python].max())
    end = events.end_ns.copy()
    for row in python[events.end_ns[python] == last].tolist():
        end[row] = _bound(events, python, row)
    over = events.end_ns - end
    if not over.any():
        return trace, ()
    worst = int(np.argmax(over))
    found = Oddity(
        "P310", int((over > 0).sum()), len(python), Done.SET_RIGHT, events.name_of(worst), int(events.order[worst]),
        {"cut_ns": int(over[worst])},
    )  # fmt: skip
    return with_times(trace, events.start_ns, end), (found,)


def _bound(events: EventTable, python: Int64Array, row: int) -> int:
    """When a frame must have returned: its own end, where every frame around it ends no earlier."""
    start, end = int(events.start_ns[row]), int(events.end_ns[row])
    before = python[: int(np.searchsorted(python, row))]
    around = before[(events.lane[before] == events.lane[row]) & (events.end_ns[before] > start)]
    bound = int(events.end_ns[around].min(initial=end))
    return bound if end - bound > ROUNDING_NS else end
