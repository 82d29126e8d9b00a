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
    last = int(events.end_ns[python].max())
    end = events.end_ns.copy()
    open_last = python[events.end_ns[python] == last]
    for lane in distinct(events.lane[open_last]).tolist():
        asked = open_last[events.lane[open_last] == lane]
        bound = earliest_around(events, python[events.lane[python] == lane], asked)
        end[asked] = np.where((bound >= 0) & (end[asked] - bound > ROUNDING_NS), bound, end[asked])
    over = events.end_ns - end
    if not over.any():
        return trace, ()
    worst = int(np.argmax(over))
    found = Oddity(
        "P310", int((over > 0).sum()), len(python), Done.SET_RIGHT, events.name_of(worst), int(events.order[worst]),
        {"cut_ns": int(over[worst])},
    )  # fmt: skip
    return with_times(trace, events.start_ns, end), (found,)
