"""Keys under which the time of two traces can be set side by side: what it is, by names that both would write.

Device work goes by the operator that launched it and that operator's inputs, so that another kernel under an equal
operator is the same key; collectives by operation and bytes; host time by its own operator, call or range; gaps by class.
"""

from __future__ import annotations

import re

import numpy as np
from msgspec import Struct

from stepcrit.graph.groups import Groups
from stepcrit.link.collectives import link_collectives
from stepcrit.link.workload import operator_key
from stepcrit.model.arrays import NONE, Int64Array
from stepcrit.model.classes import WorkClass
from stepcrit.model.events import DEVICE_KINDS, EventKind, EventTable
from stepcrit.model.links import Links
from stepcrit.model.trace import RawTrace

UNTRACKED = "untracked"

_NUMBERED = re.compile(r"#\d+$")
"""ProfilerStep#12: the number is the step's, not the range's."""


class PathKey(Struct, frozen=True, order=True):
    """What a stretch of time is.

    Attributes:
        kind: "device", "comm", "host" or "gap".
        name: operator, kernel, collective, call, range, or class of gap.
        detail: shapes of the operator's inputs, or a collective's bytes; "" unknown.
        dtypes: types of the operator's inputs; "" unknown.
    """

    kind: str
    name: str
    detail: str = ""
    dtypes: str = ""


class Keyed(Struct, frozen=True, eq=False):
    """The keys of one trace.

    Attributes:
        keys: one for each label of `groups`.
        groups: which row is of which key, as replays take it.
    """

    keys: tuple[PathKey, ...]
    groups: Groups


def keyed(trace: RawTrace, links: Links) -> Keyed:
    """Give every row of a trace its key."""
    numbers: dict[PathKey, int] = {}
    of_row = np.zeros(len(trace.events), np.int32)
    for rows, source in _rows_alike(trace, links):
        key = _key(trace.events, links, source)
        of_row[rows] = numbers.setdefault(key, len(numbers))
    for collective in link_collectives(trace.events, links):
        name = collective.name or trace.events.name_of(collective.row)
        size = str(collective.in_bytes) if collective.in_bytes >= 0 else ""
        of_row[collective.row] = numbers.setdefault(PathKey("comm", name, size), len(numbers))
    untracked = numbers.setdefault(PathKey("host", UNTRACKED), len(numbers))
    gaps = {
        int(work): numbers.setdefault(PathKey("gap", work.label), len(numbers))
        for work in WorkClass
        if work.group == "gap"
    }
    labels = [key.name for key in numbers]
    return Keyed(tuple(numbers), Groups("op", labels, of_row, untracked, NONE, gaps))


def _rows_alike(trace: RawTrace, links: Links) -> list[tuple[Int64Array, int]]:
    """Rows that have one key, and the row of which it is read."""
    events = trace.events
    device = events.is_kind(*DEVICE_KINDS)
    named_by = np.where(device & (links.op >= 0), links.op, np.arange(len(events)))
    name, shapes, dtypes = (c[named_by].astype(np.int64) for c in (events.name, events.shapes, events.dtypes))
    size = max(len(events.shape_lists), len(events.dtype_lists)) + 1
    _, inputs = np.unique((shapes + 1) * size + dtypes + 1, return_inverse=True)
    packed = (name * max(len(events), 1) + inputs) * 2 + device
    order = np.argsort(packed, kind="stable")
    starts = np.flatnonzero(np.diff(packed[order], prepend=-1))
    return [(rows, int(rows[0])) for rows in np.split(order, starts[1:]) if rows.size]


def _key(events: EventTable, links: Links, row: int) -> PathKey:
    kind = EventKind(int(events.kind[row]))
    if kind in DEVICE_KINDS:
        op = int(links.op[row])
        if op < 0:
            return PathKey("device", events.name_of(row))
        work = operator_key(events, op)
        return PathKey("device", work.name, work.shapes, work.dtypes)
    if kind == EventKind.CPU_OP:
        work = operator_key(events, row)
        return PathKey("host", work.name, work.shapes, work.dtypes)
    return PathKey("host", _NUMBERED.sub("#", events.name_of(row)))
