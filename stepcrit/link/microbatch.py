"""Microbatches of an update: backward passes between two optimizer steps (methods A.4)."""

from __future__ import annotations

import numpy as np

from stepcrit.link.backward import backward_passes
from stepcrit.model.arrays import Int64Array
from stepcrit.model.events import EventTable


def microbatches(events: EventTable, optimizer: Int64Array) -> tuple[int, ...]:
    """Backward passes per update, in the order of the updates' ends; the first may be cut by the capture."""
    if not optimizer.size:
        return ()
    return count_between(backward_starts(events), np.sort(events.end_ns[optimizer]))


def count_between(roots: Int64Array, ends: Int64Array) -> tuple[int, ...]:
    """How many `roots` fall before each of `ends`, counted from the one before.

    >>> import numpy as np
    >>> count_between(np.array([10, 30, 50, 70, 110, 130, 150, 170]), np.array([90, 190]))
    (4, 4)
    """
    return tuple(int(c) for c in np.diff(np.searchsorted(roots, ends, side="left"), prepend=0))


def backward_starts(events: EventTable) -> Int64Array:
    """When each backward pass begins, in time order; passes side by side on several threads count once."""
    starts, reach = [], np.iinfo(np.int64).min
    for one in sorted(backward_passes(events), key=lambda p: (p.start_ns, p.end_ns)):
        if one.start_ns >= reach:
            starts.append(one.start_ns)
        reach = max(reach, one.end_ns)
    return np.array(starts, np.int64)
