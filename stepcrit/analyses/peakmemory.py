"""Peak memory of a step.

Question: how much did the allocator hold at most, on each device, while the step ran?
Method:   the running total that allocator events carry, at its highest in the window (methods I).
Needs:    allocator events (profile_memory) with their totals.
Keeps:    a level that was reached before the window opens still counts at its opening.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from stepcrit.model.trace import MemoryTable

Device = tuple[int, int]
"""Device type (0: the host) and number, as the allocator calls it."""


def analyze(
    memory: MemoryTable, windows: Sequence[tuple[int, int]]
) -> Mapping[Device, tuple[int | None, ...]]:
    """The most that was allocated in each window, by device; None where nothing tells.

    Args:
        memory: the allocator's events.
        windows: (start, end) in ns.

    Returns:
        Devices that any total is known of.
    """
    known = memory.allocated >= 0
    found: dict[Device, tuple[int | None, ...]] = {}
    for kind, number in sorted(
        set(zip(memory.device_type[known].tolist(), memory.device[known].tolist(), strict=True))
    ):
        rows = np.flatnonzero(known & (memory.device_type == kind) & (memory.device == number))
        rows = rows[np.argsort(memory.ts_ns[rows], kind="stable")]
        at, total = memory.ts_ns[rows], memory.allocated[rows]
        peaks: list[int | None] = []
        for start, end in windows:
            first, last = (int(np.searchsorted(at, when, side="right")) for when in (start, end))
            held = total[max(first - 1, 0) : last]  # from the level at the opening on
            peaks.append(int(held.max()) if held.size else None)
        found[kind, number] = tuple(peaks)
    return found
