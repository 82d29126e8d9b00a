"""The event table: one row per event with a duration, as numpy columns in integer nanoseconds.

Rows are sorted by (start_ns, -end_ns), rows of the same times as ingest.order says; a row number is the event's id everywhere else.
What an event *is* depends on its category alone, never on its pid or name (Kineto writes
python frames on pid 0 and device work on pid 0 alike).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any

from msgspec import Struct

from stepcrit.model.arrays import BoolArray, Int8Array, Int32Array, Int64Array, IntArray


class EventKind(IntEnum):
    """What a row stands for, decided by its trace category."""

    CPU_OP = 0  # an operator on a host thread
    ANNOTATION = 1  # record_function, ProfilerStep, Optimizer.step: a host range
    RUNTIME = 2  # a runtime or driver API call (CUDA, HIP, SYCL, MTIA, NPU)
    KERNEL = 3  # device work
    MEMCPY = 4
    MEMSET = 5
    SYNC = 6  # a cuda_sync record: host time on a device row
    GPU_ANNOTATION = 7  # the hull of an annotation on a device row; not work
    PYTHON = 8  # a Python frame (with_stack)
    OVERHEAD = 9  # the profiler's own cost
    PROFILER = 10  # bookkeeping spans of the profiler
    OTHER = 11  # an unknown category: kept and counted, never busy time


DEVICE_KINDS = (EventKind.KERNEL, EventKind.MEMCPY, EventKind.MEMSET)
"""Work that occupies a device queue."""

HOST_KINDS = (EventKind.CPU_OP, EventKind.ANNOTATION, EventKind.RUNTIME)
"""Ranges that give a host thread its structure. Python frames do not: they cross the others."""


class Side(IntEnum):
    """Where a lane lives."""

    HOST = 0
    DEVICE = 1
    OTHER = 2


class Lane(Struct, frozen=True):
    """A host thread (pid, tid) or a device queue (device, stream).

    Attributes:
        side: host thread, device queue, or neither.
        pid: process of a host lane, or the device's process label, as the trace writes it.
        tid: thread or track label, as the trace writes it.
        device: device ordinal as the trace numbers it, -1 on the host or when it is no number.
        stream: stream number, -1 on the host or when unknown.
        label: the track's name from the trace's metadata, or "".
        device_name: what a device is called where its number is a merge tool's ("4 (RANK 2 - GPU)"), else "".
    """

    side: Side
    pid: str
    tid: str
    device: int = -1
    stream: int = -1
    label: str = ""
    device_name: str = ""

    @property
    def device_label(self) -> str:
        """The device's name or ordinal, or the process label where the trace gives no number."""
        return self.device_name or (str(self.device) if self.device >= 0 else self.pid)

    @property
    def words(self) -> str:
        """The lane for people: "stream 7", "thread 4100"."""
        if self.side == Side.DEVICE:
            return f"device {self.device_label} stream {self.stream if self.stream >= 0 else self.tid}"
        return f"thread {self.tid}"


class EventTable(Struct, frozen=True, eq=False, weakref=True):
    """Columns of equal length n, one row per event with a duration.

    They are read-only; one without any value may be a single -1 in memory, n times over. An IntArray has 32 bits
    a value where those are enough for all of the trace's, else 64: whoever adds or multiplies widens first.

    Attributes:
        kind: EventKind, int8.
        cat: index into `cats` (the category as written; "" when the event has none).
        name: index into `names`.
        start_ns, end_ns: ns since the trace's origin; end >= start.
        lane: index into `lanes`.
        correlation: launch <-> device id, -1 when absent or 0.
        external_id: op id, -1 when absent.
        nbytes: bytes moved by a copy or memset, -1 when absent.
        order: position in the file's traceEvents array (the event's address for a user).
        closed_by: position of the E that ended the row, which is a B then; -1 for others.
        stack: index into `stacks` ("Call stack" text), -1 when absent.
        module: index into `modules` ("Module Hierarchy" text), -1 when absent.
        shapes: index into `shape_lists` (an operator's "Input Dims" as JSON without blanks), -1 when absent or empty.
        dtypes: index into `dtype_lists` (its "Input type", likewise), -1 when absent or empty.
        args: decoded arguments of the few rows whose kind needs them: cuda_sync records,
            collectives (an argument "Collective name"), graph kernels. Row -> mapping.
    """

    kind: Int8Array
    cat: Int32Array
    name: Int32Array
    start_ns: Int64Array
    end_ns: Int64Array
    lane: Int32Array
    correlation: IntArray
    external_id: IntArray
    nbytes: IntArray
    order: IntArray
    closed_by: IntArray
    stack: Int32Array
    module: Int32Array
    shapes: Int32Array
    dtypes: Int32Array
    names: tuple[str, ...]
    cats: tuple[str, ...]
    lanes: tuple[Lane, ...]
    stacks: tuple[str, ...]
    modules: tuple[str, ...]
    shape_lists: tuple[str, ...]
    dtype_lists: tuple[str, ...]
    args: Mapping[int, Mapping[str, Any]]

    def __len__(self) -> int:
        return len(self.kind)

    def is_kind(self, *kinds: EventKind) -> BoolArray:
        """A mask of the rows of any of `kinds`."""
        found: BoolArray = self.kind == int(kinds[0])  # numpy takes an IntEnum for int64: ten times the work
        for kind in kinds[1:]:
            found |= self.kind == int(kind)
        return found

    def name_of(self, row: int) -> str:
        """The whole name of one row."""
        return self.names[int(self.name[row])]

    def lane_of(self, row: int) -> Lane:
        """The lane of one row."""
        return self.lanes[int(self.lane[row])]
