"""Backward passes: maximal runs of operators that the autograd engine evaluates, on any thread.

Two passes are separated by what the main thread does between them: a forward. The main thread is the
one with the most operators outside backward; backward itself may run there (CPU) or on threads of its
own (one per device).
"""

from __future__ import annotations

import re

import numpy as np
from msgspec import Struct

from stepcrit.model.arrays import NONE, BoolArray, Int64Array, distinct
from stepcrit.model.events import HOST_KINDS, EventKind, EventTable
from stepcrit.model.once import once

_BACKWARD = re.compile(r"^autograd::engine::evaluate_function|^torch::autograd::|Backward\d*$")
# The second and third are all that traces before the engine's own range (PyTorch < 1.9) have.


def is_backward(name: str) -> bool:
    """Whether an operator is evaluated by the autograd engine.

    >>> is_backward("autograd::engine::evaluate_function: MmBackward0"), is_backward("CudnnBatchNormBackward")
    (True, True)
    """
    return bool(_BACKWARD.search(name))


class Pass(Struct, frozen=True):
    """One backward pass on one thread, in ns.

    Attributes:
        lane: the thread it runs on.
        main_lane: the thread that called backward, as far as can be told; may be the same.
        start_ns: its first operator.
        end_ns: the end of the last thing its thread does before the next pass: what follows the last
            operator (copying reduced gradients back, say) still keeps the caller waiting.
    """

    lane: int
    main_lane: int
    start_ns: int
    end_ns: int


@once
def backward_passes(events: EventTable) -> tuple[Pass, ...]:
    """Every backward pass, by thread and time."""
    rows = np.flatnonzero(events.is_kind(EventKind.CPU_OP))
    named = np.zeros(len(events.names), np.bool_)
    named[[i for i in distinct(events.name[rows]).tolist() if is_backward(events.names[i])]] = True
    if not named.any():
        return ()
    backward = np.zeros(len(events), np.bool_)
    backward[rows] = named[events.name[rows]]
    ops = events.is_kind(EventKind.CPU_OP, EventKind.ANNOTATION)
    forward = ops & ~backward & ~_inside(events, backward)
    passes: list[Pass] = []
    for lane in distinct(events.lane[backward]).tolist():
        main = _main_lane(events, forward, lane)
        separators = np.sort(events.start_ns[forward & (events.lane == main)])
        passes += _passes_of(events, np.flatnonzero(backward & (events.lane == lane)), main, separators)
    return tuple(passes)


def _inside(events: EventTable, backward: BoolArray) -> BoolArray:
    """Rows that start inside a backward operator of their own thread."""
    inside = np.zeros(len(events), np.bool_)
    for lane in distinct(events.lane[backward]).tolist():
        mine = np.flatnonzero(backward & (events.lane == lane))
        rows = np.flatnonzero(events.lane == lane)
        reach = np.maximum.accumulate(events.end_ns[mine])
        i = np.searchsorted(events.start_ns[mine], events.start_ns[rows], side="right") - 1
        inside[rows] = (i >= 0) & (events.start_ns[rows] < reach[np.maximum(i, 0)])
    return inside


def _main_lane(events: EventTable, forward: BoolArray, lane: int) -> int:
    """The thread of the same process with the most work outside backward, -1 when there is none."""
    pid = events.lanes[lane].pid
    same = np.array([one.pid == pid for one in events.lanes], np.bool_)
    lanes = events.lane[forward & same[events.lane]]
    return int(np.bincount(lanes).argmax()) if lanes.size else NONE


def _passes_of(events: EventTable, rows: Int64Array, main: int, separators: Int64Array) -> list[Pass]:
    """One thread's backward operators, cut where the main thread started something in between."""
    start, end = events.start_ns[rows], np.maximum.accumulate(events.end_ns[rows])
    between = np.searchsorted(separators, start[1:], "left") > np.searchsorted(separators, end[:-1], "left")
    first = start[np.concatenate(([True], between))].tolist()
    lane = int(events.lane[rows[0]])
    if lane == main:
        last = end[np.concatenate((np.flatnonzero(between), [len(rows) - 1]))].tolist()
    else:
        mine = np.flatnonzero((events.lane == lane) & events.is_kind(*HOST_KINDS))
        reach = np.maximum.accumulate(events.end_ns[mine])
        following = [*first[1:], np.iinfo(np.int64).max]
        last = reach[np.searchsorted(events.start_ns[mine], following) - 1].tolist()
    return [Pass(lane, main, a, b) for a, b in zip(first, last, strict=True)]
