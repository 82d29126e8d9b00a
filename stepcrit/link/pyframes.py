"""P310: Python frames whose return was lost run to the end of the recording; cut to the frame around them.

A call returns before its caller does. A frame that goes on to the recording's end while a frame around it
ended earlier has lost its return event: until then its time, and the frames of later calls, would be its own.
"""

from __future__ import annotations

import numpy as np

from stepcrit.link.outlived import earliest_around
from stepcrit.link.retable import with_times
from stepcrit.model.arrays import distinct
from stepcrit.model.events import EventKind
from stepcrit.model.oddity import Done, Oddity
from stepcrit.model.trace import RawTrace

ROUNDING_NS = 1_000
"""Whole-microsecond clocks round: a frame may outlive the one around it by that much."""


def cut_lost_returns(trace: RawTrace) -> tuple[RawTrace, tuple[Oddity, ...]]:
    """End such frames with the earliest end of what was open around their start."""
    events = trace.events
    python = np.flatnonzero(events.is_kind(EventKind.PYTHON))
    if not python.size:
        return trace, ()
    ends = events.end_ns[python]
    last = int(ends.max())
    open_last = python[ends == last]
    until = np.full(len(open_last), last)
    of_row, of_open = events.lane[python], events.lane[open_last]
    for lane in distinct(of_open).tolist():
        asked = of_open == lane
        bound = earliest_around(events, python[of_row == lane], open_last[asked])
        until[asked] = np.where((bound >= 0) & (last - bound > ROUNDING_NS), bound, last)
    over = last - until
    if not over.any():
        return trace, ()
    end = events.end_ns.copy()
    end[open_last] = until
    worst = int(open_last[np.argmax(over)])
    found = Oddity(
        "P310", int((over > 0).sum()), len(python), Done.SET_RIGHT, events.name_of(worst), int(events.order[worst]),
        {"cut_ns": int(over.max())},
    )  # fmt: skip
    return with_times(trace, events.start_ns, end), (found,)
