"""Microbatches of an update: backward passes between two optimizer steps (methods A.4)."""

from __future__ import annotations

import numpy as np

from stepcrit.model.arrays import Int64Array
from stepcrit.model.events import EventKind, EventTable

_BACKWARD = "autograd::engine::evaluate_function"


def microbatches(events: EventTable, optimizer: Int64Array) -> tuple[int, ...]:
    """Backward passes per update, for each update whose beginning is in the trace.

    A pass ends where anything that is not backward begins: on the autograd thread passes are separated
    by what the other threads start, on the calling thread by its own next operator.
    """
    if not optimizer.size:
        return ()
    starts = backward_starts(events)
    ends = np.sort(events.end_ns[optimizer])
    counts = np.diff(np.searchsorted(starts, ends, side="left"), prepend=0)
    return tuple(int(c) for c in counts)


def count_between(roots: Int64Array, ends: Int64Array) -> tuple[int, ...]:
    """How many `roots` fall before each of `ends`, counted from the one before.

    >>> import numpy as np
    >>> count_between(np.array([10, 30, 50, 70, 110, 130, 150, 170]), np.array([90, 190]))
    (4, 4)
    """
    return tuple(int(c) for c in np.diff(np.searchsorted(roots, ends, side="left"), prepend=0))


def backward_starts(events: EventTable) -> Int64Array:
    """When each backward pass begins, in time order."""
    named = np.array([name.startswith(_BACKWARD) for name in events.names], np.bool_)
    ops = events.is_kind(EventKind.CPU_OP, EventKind.ANNOTATION)
    backward = np.flatnonzero(ops & named[events.name])
    if not backward.size:
        return np.empty(0, np.int64)
    start, end = events.start_ns[backward], np.maximum.accumulate(events.end_ns[backward])
    inner = _inside(events, backward)
    others = np.sort(events.start_ns[ops & ~named[events.name] & ~inner])
    gaps = np.searchsorted(others, start[1:], "left") > np.searchsorted(others, end[:-1], "left")
    return start[np.concatenate(([True], gaps))]


def _inside(events: EventTable, backward: Int64Array) -> np.typing.NDArray[np.bool_]:
    """Rows on a backward lane that lie inside a backward operator."""
    inside = np.zeros(len(events), np.bool_)
    for lane in np.unique(events.lane[backward]).tolist():
        mine = backward[events.lane[backward] == lane]
        rows = np.flatnonzero(events.lane == lane)
        i = np.searchsorted(events.start_ns[mine], events.start_ns[rows], side="right") - 1
        reach = np.maximum.accumulate(events.end_ns[mine])
        inside[rows] = (i >= 0) & (events.start_ns[rows] < reach[np.maximum(i, 0)])
    return inside
