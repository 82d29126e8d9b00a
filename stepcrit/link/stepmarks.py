"""Step marks: ranges that say where a step is, and do no work of their own.

`ProfilerStep#N` is open over everything a step does. Were it to own time, plain Python would be called
by its name; so nesting looks through it, and what only it covers is untracked.
"""

from __future__ import annotations

import re

import numpy as np

from stepcrit.link.patterns import found_by
from stepcrit.model.arrays import BoolArray
from stepcrit.model.events import EventKind, EventTable

PROFILER_STEP = re.compile(r"^ProfilerStep#?\s*\d+")


def step_marks(events: EventTable) -> BoolArray:
    """Rows that only mark a step."""
    return rows_named(events, PROFILER_STEP)


def rows_named(events: EventTable, pattern: str | re.Pattern[str]) -> BoolArray:
    """Host ranges whose name the pattern finds; asked once per distinct name.

    Args:
        events: of the whole trace.
        pattern: one of ours, compiled; or a user's, as typed.

    Raises:
        UsageError: a user's pattern cannot be read, or takes too long.
    """
    if isinstance(pattern, str):
        named = found_by(events.names, pattern)
    else:
        named = np.array([bool(pattern.search(name)) for name in events.names], np.bool_)
    rows: BoolArray = events.is_kind(EventKind.ANNOTATION, EventKind.CPU_OP)
    return rows & named[events.name] if len(events) else rows
