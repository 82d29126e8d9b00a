"""A trace with other times or fewer rows: sorted again, in time since its new first row."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from stepcrit.model.arrays import BoolArray, Int8Array, Int64Array, freeze
from stepcrit.model.events import EventKind
from stepcrit.model.trace import RawTrace, TraceMeta

_COLUMNS = (
    "kind", "cat", "name", "lane", "correlation", "external_id", "nbytes", "order", "closed_by", "stack", "module",
    "shapes", "dtypes",
)  # fmt: skip


def with_times(
    trace: RawTrace, start: Int64Array, end: Int64Array, keep: BoolArray | None = None
) -> RawTrace:
    """The trace with these times, without the rows that are not kept.

    Everything that is told in time since the origin moves with the origin: what is left is the same
    trace that the file would be without the rows put aside.
    """
    events = trace.events
    rows = np.arange(len(events)) if keep is None else np.flatnonzero(keep)
    start, end = start[rows], end[rows]
    first = _first(events.kind[rows], start)
    by_time = np.lexsort((events.order[rows], -end, start))
    rows, start, end = rows[by_time], start[by_time] - first, end[by_time] - first
    columns = {name: getattr(events, name)[rows] for name in _COLUMNS}
    freeze(start, end, *columns.values())
    position = {row: i for i, row in enumerate(rows.tolist()) if row in events.args}
    args = {position[row]: events.args[row] for row in sorted(position, key=position.__getitem__)}
    events = replace(events, start_ns=start, end_ns=end, args=args, **columns)
    return _with_origin(replace(trace, events=events), first)


def _first(kind: Int8Array, start: Int64Array) -> int:
    """Time 0: the earliest row that is not the profiler's own, as in reading."""
    own = kind == EventKind.PROFILER
    times = start[~own] if not own.all() else start
    return int(times.min()) if times.size else 0


def _with_origin(trace: RawTrace, first: int) -> RawTrace:
    """Everything beside the rows in time since the new origin."""
    if not first:
        return trace
    flows = replace(trace.flows, ts_ns=trace.flows.ts_ns - first)
    memory = replace(trace.memory, ts_ns=trace.memory.ts_ns - first)
    freeze(flows.ts_ns, memory.ts_ns)
    return replace(trace, meta=_moved_meta(trace.meta, first), flows=flows, memory=memory)


def _moved_meta(meta: TraceMeta, first: int) -> TraceMeta:
    """The label, where it tells times. (-1, -1) says that no span was recorded."""
    low, high = meta.span_ns
    span = meta.span_ns if meta.span_ns == (-1, -1) else (low - first, high - first)
    return replace(meta, origin_ns=meta.origin_ns + first, span_ns=span)
