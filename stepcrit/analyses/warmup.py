"""Warm-up.

Question: why were the first steps slower, as far as the trace shows?
Method:   methods A.3: host ranges, calls and overhead events that speak of warming up, as a union per kind
          inside each step's host window, less what the steady steps usually spend on the same.
Needs:    steps.
Keeps:    evidence is what lies in the step, not a proven cause; kinds may overlap each other, no kind
          overlaps itself; a slower step without evidence is called unexplained, never explained away.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
from msgspec import Struct

from stepcrit.intervals import Intervals, ascending, union
from stepcrit.link.api import CallRole, call_roles
from stepcrit.link.classify import INPUT
from stepcrit.model.arrays import BoolArray, Int64Array, median_of
from stepcrit.model.events import HOST_KINDS, EventKind, EventTable
from stepcrit.model.links import Links
from stepcrit.model.steps import Step, Steps
from stepcrit.model.trace import MemoryTable, RawTrace

COMPILING = "compiling"
AUTOTUNING = "autotuning"
LOADING = "loading device code"
ALLOCATING = "allocating memory"
BUFFERS = "profiler buffers"
WAITING = "waiting for input"

EVIDENCE: dict[str, re.Pattern[str]] = {
    COMPILING: re.compile(r"Torch-Compiled Region|TorchDynamo|compile_fx|compile_inner"),
    AUTOTUNING: re.compile(r"autotun", re.IGNORECASE),
    LOADING: re.compile(
        r"^(cuModuleLoad|cuLibraryLoad|hipModuleLoad)|^Lazy Function Loading|^Runtime Triggered Module Loading"
    ),
    BUFFERS: re.compile(r"^Activity Buffer Request"),
    WAITING: INPUT,
}
"""Names that speak of warming up, by kind of evidence; calls that allocate are known by what they do."""

LONGER = 2
"""A kind counts where it takes more than this many times what it usually takes: compiled code, batches and
allocations are part of steady steps too."""

WORTH = 0.01
"""...and at least this share of its step: a call of a microsecond says nothing of a second."""


class WarmUp(Struct, frozen=True):
    """One step that is not like the steady ones, and what in it speaks of warming up.

    Attributes:
        step: the step's label.
        elapsed_ns: boundary to boundary (from host start for a first step).
        extra_ns: that less the steady median; None when nothing is steady.
        causes: kind of evidence -> host time in the step's window beyond what is usual, longest first.
        grown_bytes: rise of the allocators' reserved memory beyond what is usual; None when not recorded.
        is_slower: whether it lies above the steady band.
        is_outlier: whether it comes after the steady window began.
    """

    step: str
    elapsed_ns: int
    extra_ns: int | None
    causes: Mapping[str, int]
    grown_bytes: int | None
    is_slower: bool
    is_outlier: bool

    @property
    def unexplained(self) -> bool:
        """Slower, cause not in the trace."""
        return self.is_slower and not self.causes and not self.grown_bytes


def analyze(trace: RawTrace, links: Links, steps: Steps) -> tuple[WarmUp, ...]:
    """Steps that do not count, come before the steady window or lie outside its band, in time order."""
    odd = [s for s in steps if not s.used or _is_outlier(s)]
    if not odd:
        return ()
    usual = np.array([s.used for s in steps], np.bool_)
    spent = {
        kind: _beyond(_inside(found, steps), usual) for kind, found in _evidence(trace.events, links).items()
    }
    grown = _growth(trace.memory, steps)
    more = None if grown is None else _beyond(grown, usual)
    return tuple(_warm_up(s, steps, spent, more) for s in odd)


def _warm_up(step: Step, steps: Steps, spent: dict[str, Int64Array], grown: Int64Array | None) -> WarmUp:
    """One step's evidence."""
    steady, i = steps.steady, step.index
    middle = None if steady is None else steady.median_ns
    least = max(1, WORTH * step.elapsed_ns)
    causes = {kind: int(times[i]) for kind, times in spent.items() if times[i] >= least}
    return WarmUp(
        step.label,
        step.elapsed_ns,
        None if middle is None else round(step.elapsed_ns - middle),
        dict(sorted(causes.items(), key=lambda cause: -cause[1])),
        None if grown is None else int(grown[i]),
        steady is not None and middle is not None and step.elapsed_ns > steady.reference_ns + steady.band_ns,
        _is_outlier(step),
    )


def _is_outlier(step: Step) -> bool:
    return step.why_not.startswith("outlier")


def _evidence(events: EventTable, links: Links) -> dict[str, Intervals]:
    """The host time of every kind of evidence; calls that own device work are work."""
    rows = events.is_kind(*HOST_KINDS, EventKind.PYTHON, EventKind.OVERHEAD)
    rows[links.launch[links.launch >= 0]] = False
    found, none = {}, np.empty(0, np.int64)
    of_kind: dict[str, BoolArray | None] = {ALLOCATING: call_roles(events) == CallRole.ALLOC}
    for kind, pattern in EVIDENCE.items():
        named = np.array([bool(pattern.search(name)) for name in events.names], np.bool_)
        of_kind[kind] = named[events.name] if named.any() else None
    for kind, those in of_kind.items():
        mine = np.flatnonzero(rows & those) if those is not None else none
        found[kind] = union(events.start_ns[mine], events.end_ns[mine])
    return found


def _inside(found: Intervals, steps: Steps) -> Int64Array:
    """How much of a set lies in each step's host window."""
    sums = np.concatenate(([0], np.cumsum(found.end - found.start)))

    def until(at: Int64Array) -> Int64Array:
        i = np.searchsorted(found.start, at, side="right")
        ends = np.concatenate(([0], found.end))
        over: Int64Array = sums[i] - np.where(i > 0, np.maximum(ends[i] - at, 0), 0)
        return over

    starts = np.array([s.host_start_ns for s in steps], np.int64)
    ends = np.array([s.host_end_ns for s in steps], np.int64)
    return until(ends) - until(starts)


def _beyond(amounts: Int64Array, usual: BoolArray) -> Int64Array:
    """What each step has beyond the median of the steps that count; 0 where it is no more than LONGER times that."""
    middle = median_of(amounts[usual]) if usual.any() else 0.0
    beyond: Int64Array = np.where(amounts > LONGER * middle, np.rint(amounts - middle), 0).astype(np.int64)
    return beyond


def _growth(memory: MemoryTable, steps: Steps) -> Int64Array | None:
    """By how much the reserved memory of all devices reaches a new height in each step's host window."""
    known = np.flatnonzero(memory.reserved >= 0)
    if not known.size:
        return None
    known = known[np.argsort(memory.ts_ns[known], kind="stable")]
    # two numbers of 32 bits as one
    device = (memory.device_type[known].astype(np.int64) << 32) + memory.device[known]
    grown = np.zeros(len(steps), np.int64)
    for one in ascending(device):
        rows = known[device == one]
        height, at = np.maximum.accumulate(memory.reserved[rows]), memory.ts_ns[rows]
        for i, step in enumerate(steps):
            low, high = np.searchsorted(at, (step.host_start_ns, step.host_end_ns), side="left")
            if high > low:
                grown[i] += height[high - 1] - height[max(low - 1, 0)]
    return grown
