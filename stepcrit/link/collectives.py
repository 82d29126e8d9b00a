"""Collectives and their metadata: from the kernel's own arguments, else from the record around its launch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec import Struct

from stepcrit.model.arguments import LARGEST, whole, words
from stepcrit.model.arrays import NONE
from stepcrit.model.classes import WorkClass
from stepcrit.model.events import DEVICE_KINDS, EventTable
from stepcrit.model.links import Links
from stepcrit.model.once import once

DTYPE_BYTES = {
    "Byte": 1, "Char": 1, "Bool": 1, "Half": 2, "BFloat16": 2, "Short": 2, "Float": 4, "Int": 4,
    "Double": 8, "Long": 8, "ComplexFloat": 8, "ComplexDouble": 16, "UInt16": 2, "UInt32": 4, "UInt64": 8,
}  # fmt: skip
"""Bytes per element by ScalarType name; every Float8_* is one byte."""


class Collective(Struct, frozen=True):
    """One communication activity on the device.

    Attributes:
        row: the device row.
        name: the operation ("allreduce"), or "" when neither metadata nor a record names it.
        group: process group name, "" when unknown.
        group_size: members, -1 when unknown.
        in_bytes, out_bytes: bytes of this rank, -1 when unknown.
        dtype: element type, "" when unknown.
        source: "kernel", "record" or "" (known by its kernel name only).
    """

    row: int
    name: str
    group: str
    group_size: int
    in_bytes: int
    out_bytes: int
    dtype: str
    source: str


@once
def link_collectives(events: EventTable, links: Links) -> tuple[Collective, ...]:
    """Every communication activity of the trace, in table order."""
    rows = np.flatnonzero(links.is_class(WorkClass.COMM) & events.is_kind(*DEVICE_KINDS))
    return tuple(_collective(events, links, row) for row in rows.tolist())


def _collective(events: EventTable, links: Links, row: int) -> Collective:
    args, source = events.args.get(row, {}), "kernel"
    if "Collective name" not in args:
        args, source = _record_around(events, links, row), "record"
    if "Collective name" not in args:
        return Collective(row, "", "", NONE, NONE, NONE, "", "")
    dtype = words(args, "dtype")
    group = words(args, "Process Group Name") or words(args, "Process Group ID")
    return Collective(
        row,
        words(args, "Collective name"),
        group,
        whole(args, "Group size"),
        _bytes(args, "In msg nelems", dtype),
        _bytes(args, "Out msg nelems", dtype),
        dtype,
        source,
    )


def _record_around(events: EventTable, links: Links, row: int) -> Mapping[str, Any]:
    """The arguments of the nearest record_param_comms around the launch."""
    at = int(links.launch[row])
    while at >= 0:
        args = events.args.get(at, {})
        if "Collective name" in args:
            return args
        at = int(links.parent[at])
    return {}


def _bytes(args: Mapping[str, Any], key: str, dtype: str) -> int:
    count, size = whole(args, key), 1 if dtype.startswith("Float8") else DTYPE_BYTES.get(dtype, NONE)
    return count * size if count >= 0 and size > 0 and count * size < LARGEST else NONE
