"""Device time and overlap.

Question: what does each device do during the step, and how much communication does computing cover?
Method:   interval algebra per device (methods D.1): union, intersection, difference; no sums of durations.
Needs:    device activities with their class, and a window.
Keeps:    compute + comm alone + copy alone + idle = window; the symmetric classes too; exactly, in ns.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from stepcrit.intervals import Intervals, clip, intersect, subtract, union
from stepcrit.model.arrays import Int8Array, Int64Array, distinct
from stepcrit.model.classes import WorkClass
from stepcrit.model.events import DEVICE_KINDS, EventTable

KINDS = ("compute", "comm", "copy")


class DeviceTime(Struct, frozen=True):
    """One device in one window, in ns.

    Attributes:
        device: the device's label in the trace.
        window_ns: length of the window.
        summed_ns: durations added up, clipped to the window (may exceed the window).
        busy_ns: union over all queues.
        partition_ns: compute, comm alone, copy alone, idle: compute first, then comm, then copy.
        symmetric_ns: every combination of what ran at once ("compute", "comm", "compute+comm", ...) and idle.
        comm_ns: union of communication.
        covered_ns: communication while something computes.
        not_covered_ns: communication while nothing computes.
    """

    device: str
    window_ns: int
    summed_ns: int
    busy_ns: int
    partition_ns: dict[str, int]
    symmetric_ns: dict[str, int]
    comm_ns: int
    covered_ns: int
    not_covered_ns: int

    @property
    def idle_ns(self) -> int:
        """Time in which no queue of the device ran anything."""
        return self.window_ns - self.busy_ns


def analyze(events: EventTable, work: Int8Array, window: tuple[int, int]) -> tuple[DeviceTime, ...]:
    """Divide the window of every device that did anything in it, busiest first."""
    inside = np.flatnonzero(events.is_kind(*DEVICE_KINDS))
    inside = inside[(events.end_ns[inside] > window[0]) & (events.start_ns[inside] < window[1])]
    labels = [lane.device_label for lane in events.lanes]
    times = []
    for label in sorted({labels[lane] for lane in distinct(events.lane[inside]).tolist()}):
        rows = inside[np.array([one == label for one in labels], np.bool_)[events.lane[inside]]]
        times.append(device_time(label, _sets(events, work, rows), window, _summed(events, rows, window)))
    return tuple(sorted(times, key=lambda t: (-t.busy_ns, t.device)))


def device_time(
    device: str, sets: dict[str, Intervals], window: tuple[int, int], summed_ns: int
) -> DeviceTime:
    """Divide one window among sets of compute, comm and copy intervals.

    Args:
        device: its label.
        sets: one Intervals for each of "compute", "comm" and "copy".
        window: (start, end) in ns.
        summed_ns: durations added up.
    """
    compute, comm, copy = (clip(sets[kind], *window) for kind in KINDS)
    busy = union(
        np.concatenate((compute.start, comm.start, copy.start)),
        np.concatenate((compute.end, comm.end, copy.end)),
    )
    both = union(np.concatenate((compute.start, comm.start)), np.concatenate((compute.end, comm.end)))
    length = window[1] - window[0]
    partition = {
        "compute": compute.length,
        "comm alone": subtract(comm, compute).length,
        "copy alone": subtract(copy, both).length,
        "idle": length - busy.length,
    }
    covered = intersect(comm, compute).length
    return DeviceTime(
        device,
        length,
        summed_ns,
        busy.length,
        partition,
        _symmetric((compute, comm, copy), length - busy.length),
        comm.length,
        covered,
        comm.length - covered,
    )


def _symmetric(sets: tuple[Intervals, Intervals, Intervals], idle_ns: int) -> dict[str, int]:
    """Time in which exactly each combination ran."""
    found: dict[str, int] = {}
    for mask in range(1, 8):
        chosen = [s for i, s in enumerate(sets) if mask >> i & 1]
        others = [s for i, s in enumerate(sets) if not mask >> i & 1]
        part = chosen[0]
        for other in chosen[1:]:
            part = intersect(part, other)
        for other in others:
            part = subtract(part, other)
        label = "+".join(kind for i, kind in enumerate(KINDS) if mask >> i & 1)
        found[label if "+" in label else f"{label} only"] = part.length
    return {**found, "idle": idle_ns}


def _sets(events: EventTable, work: Int8Array, rows: Int64Array) -> dict[str, Intervals]:
    """The device's intervals by kind of work."""
    of_row = work[rows]
    comm, copy = of_row == WorkClass.COMM, (of_row == WorkClass.MEMCPY) | (of_row == WorkClass.MEMSET)
    masks = {"compute": ~comm & ~copy, "comm": comm, "copy": copy}
    return {kind: union(events.start_ns[rows[m]], events.end_ns[rows[m]]) for kind, m in masks.items()}


def _summed(events: EventTable, rows: Int64Array, window: tuple[int, int]) -> int:
    start, end = np.maximum(events.start_ns[rows], window[0]), np.minimum(events.end_ns[rows], window[1])
    return int((end - start).sum())
