"""Step marks: ranges that say where a step is, and do no work of their own.

`ProfilerStep#N` is open over everything a step does. Were it to own time, plain Python would be called
by its name; so nesting looks through it, and what only it covers is untracked.
"""

from __future__ import annotations

import re

import numpy as np

from stepcrit.link.patterns import found_by
from stepcrit.model.arrays import BoolArray, Int64Array, distinct, freeze
from stepcrit.model.events import EventKind, EventTable
from stepcrit.model.once import once

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
    rows, names = _ranges(events)
    named = np.zeros(len(events.names), np.bool_)
    if isinstance(pattern, str):
        named[:] = found_by(events.names, pattern)
    else:
        named[[i for i in names if pattern.search(events.names[i])]] = True
    found = np.zeros(len(events), np.bool_)
    if named.any():
        found[rows] = named[events.name[rows]]
    return found


@once
def _ranges(events: EventTable) -> tuple[Int64Array, tuple[int, ...]]:
    """Host ranges, and which names they have."""
    rows = np.flatnonzero(events.is_kind(EventKind.ANNOTATION, EventKind.CPU_OP))
    freeze(rows)
    return rows, tuple(distinct(events.name[rows]).tolist())
