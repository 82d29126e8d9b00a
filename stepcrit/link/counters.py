"""P311, P312: numbers beside the times that nothing can have counted, taken as not recorded."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from stepcrit.model.arrays import NONE, freeze
from stepcrit.model.oddity import Done, Oddity
from stepcrit.model.trace import RawTrace

MAX_BYTES = 2**50
"""A pebibyte: a thousand times the memory of any machine that runs one process of PyTorch."""

MAX_BYTES_PER_NS = 32_000
"""32 TB/s: four times the fastest memory of a device on sale (8 TB/s, methods P), so no copy moved more."""


def forget_absurd_totals(trace: RawTrace) -> tuple[RawTrace, tuple[Oddity, ...]]:
    """Allocator totals below zero, or beyond any memory."""
    memory = trace.memory
    allocated, reserved = memory.allocated, memory.reserved
    absurd = (allocated < NONE) | (allocated > MAX_BYTES) | (reserved < NONE) | (reserved > MAX_BYTES)
    if not absurd.any():
        return trace, ()
    found = Oddity("P311", int(absurd.sum()), len(absurd), Done.PUT_ASIDE)
    totals = [np.where(absurd, NONE, column) for column in (allocated, reserved)]
    freeze(*totals)
    return replace(trace, memory=replace(memory, allocated=totals[0], reserved=totals[1])), (found,)


def forget_absurd_bytes(trace: RawTrace) -> tuple[RawTrace, tuple[Oddity, ...]]:
    """Bytes of a copy that are negative or that nothing could have moved in its time, one tick allowed."""
    events = trace.events
    given = np.flatnonzero(events.nbytes != NONE)
    moved, time = events.nbytes[given], events.end_ns[given] - events.start_ns[given]
    absurd = given[(moved < 0) | (moved // MAX_BYTES_PER_NS > time + trace.meta.resolution_ns)]
    if not absurd.size:
        return trace, ()
    worst = int(absurd[np.argmax(np.abs(events.nbytes[absurd]))])
    found = Oddity(
        "P312", len(absurd), len(given), Done.PUT_ASIDE, events.name_of(worst), int(events.order[worst])
    )  # fmt: skip
    nbytes = events.nbytes.copy()
    nbytes[absurd] = NONE
    freeze(nbytes)
    return replace(trace, events=replace(events, nbytes=nbytes)), (found,)
