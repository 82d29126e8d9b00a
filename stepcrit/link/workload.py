"""How often each kind of work is done in a step: operators with their inputs, collectives, other device work.

What counts are the operators that do the work: those that launch it, and those within which no other runs but to
make or look at memory; and what the device does without an operator. Counts are ranges over the steps: what varies is no fixed number.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from stepcrit.intervals import ascending
from stepcrit.link.collectives import link_collectives
from stepcrit.link.microbatch import backward_starts
from stepcrit.link.products import product_flops
from stepcrit.model.arrays import BoolArray, Int64Array
from stepcrit.model.events import DEVICE_KINDS, EventKind, EventTable
from stepcrit.model.links import Links
from stepcrit.model.steps import Step
from stepcrit.model.trace import RawTrace

_BOOKKEEPING = frozenset(
    {
        "aten::alias", "aten::as_strided", "aten::chunk", "aten::contiguous", "aten::detach", "aten::detach_", "aten::diagonal", "aten::dim",
        "aten::empty", "aten::empty_like", "aten::empty_permuted", "aten::empty_strided", "aten::expand", "aten::expand_as",
        "aten::flatten", "aten::is_pinned", "aten::lift_fresh", "aten::movedim", "aten::narrow", "aten::new_empty",
        "aten::new_empty_strided", "aten::numpy_T", "aten::permute", "aten::record_stream", "aten::reshape",
        "aten::_reshape_alias", "aten::resize_", "aten::result_type", "aten::resolve_conj", "aten::resolve_neg", "aten::select", "aten::set_", "aten::size", "aten::stride",
        "aten::slice", "aten::split", "aten::split_with_sizes", "aten::squeeze", "aten::squeeze_", "aten::t", "aten::t_",
        "aten::to", "aten::transpose", "aten::transpose_", "aten::unbind", "aten::unflatten", "aten::unfold", "aten::unsqueeze",
        "aten::unsqueeze_", "aten::_unsafe_view", "aten::view", "aten::view_as", "aten::view_as_complex", "aten::view_as_real",
        "detach", "detach_", "torch::autograd::AccumulateGrad",
    }
)  # fmt: skip
"""Operators that themselves only make memory or look at it another way; versions and machines differ in how often."""

_WRAPPERS = re.compile(r"autograd::engine::|\w*Backward\d+$")
"""Ranges of the autograd engine around the operators of a backward pass."""

_SHORT_TYPES = {
    "long int": "long",
    "long long": "long",
    "short int": "short",
    "unsigned char": "byte",
    "signed char": "char",
}
"""Compilers spell the same element type differently."""


class WorkKey(Struct, frozen=True, order=True):
    """One kind of work.

    Attributes:
        kind: "op", "device" (launched by no operator), "collective" or "step".
        name: the operator, device activity or collective; or what is counted of a step.
        shapes: of the inputs, as the event table keeps them; of a copy or a collective its bytes; "" unknown.
        dtypes: of the inputs, likewise; of a collective its element type.
        group: process group of a collective, or "".
    """

    kind: str
    name: str
    shapes: str = ""
    dtypes: str = ""
    group: str = ""


class Times(Struct, frozen=True):
    """How often something is done in a step.

    Attributes:
        low, high: least and most over the steps.
        total: over all of them.
    """

    low: int
    high: int
    total: int

    def meets(self, other: Times) -> bool:
        """Whether both may be the same."""
        return self.low <= other.high and other.low <= self.high

    def plus(self, other: Times) -> Times:
        """Both together."""
        return Times(self.low + other.low, self.high + other.high, self.total + other.total)


NEVER = Times(0, 0, 0)


def work_of(trace: RawTrace, links: Links, steps: Sequence[Step]) -> dict[WorkKey, Times]:
    """How often each kind of work is done in a step, by key in order."""
    events = trace.events
    windows = _Windows(steps)
    found: dict[WorkKey, Times] = {}
    rows = np.flatnonzero(_working(trace, links))
    first, number = _alike(events.name[rows], events.shapes[rows], events.dtypes[rows])
    keys = [operator_key(events, row) for row in rows[first].tolist()]
    found |= windows.count(keys, number, events.start_ns[rows])
    found |= _device_work(trace, links, windows)
    found |= _collective_work(trace, links, windows)
    updates = np.array(
        sorted({int(events.end_ns[row]) for row in ascending(links.in_optimizer) if row >= 0}), np.int64
    )
    for name, at in (("backward passes", backward_starts(events)), ("updates", updates - 1)):
        found |= windows.count([WorkKey("step", name)], np.zeros(len(at), np.int64), at)
    return dict(sorted(found.items()))


def flops_of(work: Mapping[WorkKey, Times], steps: int) -> int | None:
    """Floating-point operations of matrix products in a step, on average; None without any of known shapes."""
    each = [
        (product_flops(key.name, key.shapes), times.total) for key, times in work.items() if key.kind == "op"
    ]
    known = [flops * total for flops, total in each if flops is not None]
    return round(Fraction(sum(known), steps)) if known else None


def _alike(*columns: NDArray[Any]) -> tuple[Int64Array, Int64Array]:
    """The first row of each combination of values, and the number of every row's combination."""
    number = np.zeros(len(columns[0]), np.int64)
    first = number[:1]
    for column in columns:
        values, each = np.unique(column, return_inverse=True)
        _, first, number = np.unique(
            number * max(len(values), 1) + each, return_index=True, return_inverse=True
        )
    return first, number.reshape(-1)


def operator_key(events: EventTable, row: int) -> WorkKey:
    """An operator with its inputs."""
    shape, dtype = int(events.shapes[row]), int(events.dtypes[row])
    return WorkKey(
        "op",
        events.name_of(row),
        events.shape_lists[shape] if shape >= 0 else "",
        _short(events.dtype_lists[dtype]) if dtype >= 0 else "",
    )


def _working(trace: RawTrace, links: Links) -> BoolArray:
    """Operators that launch device work, or within which no other does any."""
    events = trace.events
    idle_name = np.array(
        [name in _BOOKKEEPING or bool(_WRAPPERS.match(name)) for name in events.names], np.bool_
    )
    is_op = (events.kind == EventKind.CPU_OP) & ~idle_name[events.name]
    around = links.parent[is_op]
    while (between := (around >= 0) & ~is_op[np.maximum(around, 0)]).any():
        around[between] = links.parent[around[between]]
    working: BoolArray = is_op.copy()
    working[around[around >= 0]] = False
    launched = events.is_kind(*DEVICE_KINDS) & (links.op >= 0)
    working[links.op[launched]] = True
    return working


def _device_work(trace: RawTrace, links: Links, windows: _Windows) -> dict[WorkKey, Times]:
    """Device activities that no operator launched; collectives are counted by themselves."""
    events = trace.events
    rows = np.flatnonzero(events.is_kind(*DEVICE_KINDS) & (links.op < 0))
    known = {c.row for c in link_collectives(events, links) if c.name}
    rows = rows[~np.isin(rows, list(known))]
    first, number = _alike(events.name[rows], events.nbytes[rows])
    sizes = [str(size) if size >= 0 else "" for size in events.nbytes[rows[first]].tolist()]
    keys = [
        WorkKey("device", events.name_of(row), size)
        for row, size in zip(rows[first].tolist(), sizes, strict=True)
    ]
    return windows.count(keys, number, *_launched(trace, links, rows))


def _launched(trace: RawTrace, links: Links, rows: Int64Array) -> tuple[Int64Array, BoolArray]:
    """When each device row was launched, or started; and which is which."""
    launch = links.launch[rows]
    at = np.where(launch >= 0, trace.events.start_ns[np.maximum(launch, 0)], trace.events.start_ns[rows])
    return at, launch < 0


def _collective_work(trace: RawTrace, links: Links, windows: _Windows) -> dict[WorkKey, Times]:
    """Collectives by operation, bytes, element type and group."""
    named = [c for c in link_collectives(trace.events, links) if c.name]
    each = [
        WorkKey(
            "collective",
            c.name,
            str(c.in_bytes) if c.in_bytes >= 0 else "",
            c.dtype,
            f"{c.group} of {c.group_size}" if c.group_size >= 0 else c.group,
        )
        for c in named
    ]
    keys = sorted(set(each))
    place = {key: i for i, key in enumerate(keys)}
    rows = np.array([c.row for c in named], np.int64)
    return windows.count(
        keys, np.array([place[key] for key in each], np.int64), *_launched(trace, links, rows)
    )


class _Windows:
    """The windows of the counted steps: on the host, and for what has no launch by their boundaries."""

    def __init__(self, steps: Sequence[Step]) -> None:
        host = sorted((s.host_start_ns, s.host_end_ns) for s in steps)
        own = sorted((s.start_ns, s.end_ns) for s in steps)
        self._spans = [np.array(spans, np.int64).reshape(-1, 2).T for spans in (host, own)]
        self._size = len(steps)

    def count(
        self, keys: list[WorkKey], number: Int64Array, at_ns: Int64Array, by_boundary: BoolArray | None = None
    ) -> dict[WorkKey, Times]:
        """How often each key occurs in a step.

        Args:
            keys: the keys.
            number: index into `keys` of each occurrence.
            at_ns: when it is.
            by_boundary: which occurrences are on the device's time.
        """
        place = {key: i for i, key in enumerate(dict.fromkeys(keys))}  # several numbers may mean one key
        number = np.array([place[key] for key in keys], np.int64)[number] if keys else number
        keys = list(place)
        step = self._step(at_ns, 0)
        if by_boundary is not None:
            step = np.where(by_boundary, self._step(at_ns, 1), step)
        inside = step >= 0
        pairs, counts = np.unique(number[inside] * self._size + step[inside], return_counts=True)
        key = pairs // self._size
        size = len(keys)
        total = np.bincount(key, counts, size).astype(np.int64)
        high = np.zeros(size, np.int64)
        np.maximum.at(high, key, counts)
        low = np.full(size, np.iinfo(np.int64).max)
        np.minimum.at(low, key, counts)
        low = np.where(np.bincount(key, minlength=size) == self._size, low, 0)
        return {
            keys[i]: Times(int(low[i]), int(high[i]), int(total[i])) for i in np.flatnonzero(total).tolist()
        }

    def _step(self, at_ns: Int64Array, which: int) -> Int64Array:
        """Index of the step around each instant, -1 between steps."""
        start, end = self._spans[which]
        step = np.searchsorted(start, at_ns, side="right") - 1
        found: Int64Array = np.where((step >= 0) & (at_ns < end[np.maximum(step, 0)]), step, -1)
        return found


def _short(dtypes: str) -> str:
    """Element types in one spelling."""
    for long, short in _SHORT_TYPES.items():
        dtypes = dtypes.replace(f'"{long}"', f'"{short}"')
    return dtypes
