"""Event rows that a selector marks, by its kind: names, classes, modules, lines, streams, steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepcrit.errors import UsageError, quoted
from stepcrit.graph.selector import Selector, matching
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.link.nesting import inherit
from stepcrit.link.patterns import named_like
from stepcrit.link.source import frame_label
from stepcrit.model.arrays import NONE, BoolArray, Int32Array, Int64Array
from stepcrit.model.classes import WorkClass
from stepcrit.model.events import DEVICE_KINDS, HOST_KINDS, EventKind

Side = Literal["auto", "device", "host", "both"]


class Marked(Struct, frozen=True, eq=False):
    """Rows that a selector marks: device activities, and host ranges whose time counts.

    `whole` says which host row each host row is a part of, where that is not itself; `returns`, of which
    blocking calls the return counts: it is the machine's latency, no work of the operator around the call.
    """

    device: BoolArray
    host: BoolArray
    untracked: bool = False
    gaps: frozenset[int] = frozenset()
    whole: Int32Array | None = None
    returns: BoolArray | None = None


def mark(view: StepGraph, selector: Selector, *, self_only: bool, side: Side) -> Marked:
    """The rows that a selector means on a side; there may be none.

    Raises:
        UsageError: there is nothing of the selector's kind in the trace, or it cannot be read.
    """
    if selector.kind in ("name", "re"):
        return _by_name(view, matching(view.trace.events.names, selector), self_only=self_only, side=side)
    marks: dict[str, Callable[[StepGraph, str], Marked]] = {
        "class": _by_class,
        "module": _by_module,
        "stream": _by_stream,
        "step": _by_step,
        "line": _by_line,
    }
    marked = marks[selector.kind](view, selector.pattern)
    return marked if selector.kind == "class" and side == "auto" else _one_side(marked, side)


def _one_side(marked: Marked, side: Side) -> Marked:
    """Device where there is any, else host; or as the user chose."""
    none = np.zeros(len(marked.device), np.bool_)
    on_device = side == "device" or (side == "auto" and bool(marked.device.any()))
    if side == "both":
        return marked
    if on_device:
        return Marked(marked.device, none, untracked=False, gaps=marked.gaps)
    return replace(marked, device=none)


def _by_name(view: StepGraph, named: BoolArray, *, self_only: bool, side: Side) -> Marked:
    """Kernels by their own name; operators by what they launch, and by their host time where they launch nothing."""
    events = view.trace.events
    none = np.zeros(len(events), np.bool_)
    mine = named[events.name] if len(events) else none
    op = mine & events.is_kind(EventKind.CPU_OP, EventKind.ANNOTATION)
    call = mine & events.is_kind(EventKind.RUNTIME)
    device = events.is_kind(*DEVICE_KINDS) & (mine | _launched(view, op, self_only=self_only))
    if side == "device":
        # A call has no other side: its time is meant, unless the name means device work as well.
        return _ranges(view, none if device.any() else call, device, self_only=self_only)
    if side == "auto":
        op = op & (_launched_inside(view) == 0)
    return _ranges(view, op | call, none if side == "host" else device, self_only=self_only)


def _ranges(view: StepGraph, ranges: BoolArray, device: BoolArray, *, self_only: bool) -> Marked:
    """Host ranges with what is nested in them, each an activity, or only they and the calls they own."""
    links, at = view.links, np.arange(len(ranges))
    around = _around(view, ranges)
    named = ranges & view.trace.events.is_kind(EventKind.RUNTIME)
    if self_only:
        whole = inherit(np.where(ranges, at, NONE), links.parent)
        return Marked(device, ranges | (around & _owned(view, ranges)), whole=whole, returns=named)
    nested = (links.parent >= 0) & around[links.parent]
    whole = inherit(np.where(ranges & ~nested, at, NONE), links.parent)
    return Marked(device, around, whole=whole, returns=named)


def _launched(view: StepGraph, op: BoolArray, *, self_only: bool) -> BoolArray:
    """What is launched inside operators, or by the calls that they own."""
    launch = view.links.launch
    by = _owned(view, op) if self_only else _around(view, op)
    found: BoolArray = (launch >= 0) & by[launch]
    return found


def _owned(view: StepGraph, ranges: BoolArray) -> BoolArray:
    """Runtime calls whose innermost operator, or range of any kind, is one of `ranges`."""
    events, links = view.trace.events, view.links
    call = events.is_kind(EventKind.RUNTIME)
    range_of = np.where(call | ~events.is_kind(*HOST_KINDS), NONE, np.arange(len(ranges)))
    inner = inherit(range_of, links.parent)
    found: BoolArray = call & (((links.op >= 0) & ranges[links.op]) | ((inner >= 0) & ranges[inner]))
    return found


def _around(view: StepGraph, rows: BoolArray) -> BoolArray:
    """Host rows that are, or lie in, one of `rows`."""
    own = np.where(rows, np.arange(len(rows)), NONE)
    inside: BoolArray = inherit(own, view.links.parent) >= 0
    return inside & view.trace.events.is_kind(*HOST_KINDS)


def _launched_inside(view: StepGraph) -> Int64Array:
    """How many device activities are launched inside each host row, nested ones included."""
    links = view.links
    counts = np.zeros(len(links.parent), np.int64)
    np.add.at(counts, links.launch[links.launch >= 0], 1)
    for level in range(int(links.depth.max(initial=0)), 0, -1):
        rows = np.flatnonzero((links.depth == level) & (links.parent >= 0))
        np.add.at(counts, links.parent[rows], counts[rows])
    return counts


def _by_class(view: StepGraph, wanted: str) -> Marked:
    """A class by its label; `optimizer` and `comm` include their host halves, `gap` all gaps, `compute` all kernels."""
    bare = wanted.removeprefix("(").removesuffix(")")  # as tables write what is no name of the trace
    classes = [w for w in WorkClass if bare in (w.label, w.label.partition(" (")[0], w.group)]
    if not classes:
        labels = sorted({w.label for w in WorkClass} | {w.group for w in WorkClass})
        raise UsageError(f"no class {quoted(wanted)}", do=f"classes: {', '.join(labels)}")
    events = view.trace.events
    rows = np.isin(view.links.work, np.array([int(w) for w in classes], np.int8))
    gaps = frozenset(int(w) for w in classes if w.group == "gap")
    return Marked(
        rows & events.is_kind(*DEVICE_KINDS),
        rows & events.is_kind(*HOST_KINDS),
        WorkClass.UNTRACKED in classes,
        gaps,
        # Whatever call it is that blocks, its return is of this class on the path.
        returns=np.full(len(events), WorkClass.SYNC in classes, np.bool_),
    )


def _by_module(view: StepGraph, wanted: str) -> Marked:
    names, links = view.links.module_names, view.links
    if not names:
        raise UsageError("no modules in this trace", do="record with with_stack=True, or use record_function")
    matching = named_like(names, wanted)
    rows = (links.module >= 0) & matching[links.module]
    return _sides(view, rows)


def _by_line(view: StepGraph, wanted: str) -> Marked:
    events, frame = view.trace.events, view.links.frame
    if (frame < 0).all():
        raise UsageError("no Python lines in this trace", do="record with with_stack=True")
    labels = [frame_label(name) for name in events.names]
    matching = np.array([wanted in label for label in labels], np.bool_) | named_like(labels, wanted)
    return _sides(view, (frame >= 0) & matching[events.name[np.maximum(frame, 0)]])


def _by_stream(view: StepGraph, wanted: str) -> Marked:
    events = view.trace.events
    mine = np.array([str(lane.stream) == wanted for lane in events.lanes], np.bool_)
    none = np.zeros(len(events), np.bool_)
    return Marked(events.is_kind(*DEVICE_KINDS) & mine[events.lane] if len(events) else none, none)


def _by_step(view: StepGraph, wanted: str) -> Marked:
    """Device activities launched in one step's host window."""
    events, launch = view.trace.events, view.links.launch
    steps = [
        s for s in view.steps if wanted in (s.label, s.label.partition("#")[2], s.label.rpartition(" ")[2])
    ]
    if not steps:
        raise UsageError(f"no step {quoted(wanted)}", do=f"steps: {', '.join(s.label for s in view.steps)}")
    issued = events.start_ns[np.maximum(launch, 0)]
    rows = (launch >= 0) & (issued >= steps[0].host_start_ns) & (issued < steps[0].host_end_ns)
    start, end = steps[0].host_start_ns, steps[0].host_end_ns
    host = events.is_kind(*HOST_KINDS) & (events.start_ns >= start) & (events.end_ns <= end)
    return Marked(rows, host)


def _sides(view: StepGraph, rows: BoolArray) -> Marked:
    events = view.trace.events
    host = rows & events.is_kind(*HOST_KINDS)
    return Marked(rows & events.is_kind(*DEVICE_KINDS), host, returns=host)
