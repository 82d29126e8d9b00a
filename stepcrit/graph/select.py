"""Which time a selector means: entries (node, event row, ns) on the schedule graph.

An operator's name means the device activities launched anywhere inside it, and where one of its calls
launches none, that call's host time with everything nested in it. Entries are a set: nested matches
count once. A kernel's name means its activities, a runtime call's name the call itself and never what it
launches. A class means all that bears it; a stream, a module or a line means what it says, on the device
where it has anything there, else on the host.
"""

from __future__ import annotations

import fnmatch
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from stepcrit.errors import UsageError, quoted
from stepcrit.graph.near import could_be
from stepcrit.graph.segments import gap_class_of_nodes
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.link.nesting import inherit
from stepcrit.link.source import frame_label
from stepcrit.model.arrays import NONE, BoolArray, Int64Array
from stepcrit.model.classes import WorkClass
from stepcrit.model.events import DEVICE_KINDS, HOST_KINDS, EventKind

Side = Literal["auto", "device", "host", "both"]
PREFIXES = ("re", "class", "module", "stream", "step", "line")
PATTERN_SECONDS = 2.0
"""A user's regular expression may look at all names for this long."""


@dataclass(frozen=True, slots=True)
class Selector:
    """What the user typed: `kind` is "name" or one of PREFIXES."""

    kind: str
    pattern: str

    def __str__(self) -> str:
        return self.pattern if self.kind == "name" else f"{self.kind}:{self.pattern}"


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """Selected time; one entry per stretch of a node that belongs to one event.

    Attributes:
        node: node of the graph.
        row: event row that the time belongs to, -1 for untracked time.
        length_ns: how much of the node, as observed.
        entry: the stretch itself, an index into the view's stretches; ascending, each once.
        activity: what the entry is a part of: entries of one activity (a kernel, an operator's call with
            what is nested in it, a piece of untracked time) have the same number.
        device_count, host_count: distinct device activities and host ranges.
        gap_nodes: nodes whose gap is selected (classes of gaps only).
        total_ns: sum of the entries (and gaps).
        on_path_ns: part of them on the view's critical path.
    """

    node: Int64Array
    row: Int64Array
    length_ns: Int64Array
    entry: Int64Array
    activity: Int64Array
    device_count: int
    host_count: int
    gap_nodes: BoolArray
    total_ns: int
    on_path_ns: int


def parse_selector(text: str) -> Selector:
    """A selector from its text: an exact name or glob, or `prefix:pattern`.

    >>> parse_selector("class:gemm"), parse_selector("aten::mm")
    (Selector(kind='class', pattern='gemm'), Selector(kind='name', pattern='aten::mm'))
    """
    prefix, colon, rest = text.partition(":")
    if colon and prefix in PREFIXES and not rest.startswith(":"):
        return Selector(prefix, rest)
    return Selector("name", text)


@dataclass(frozen=True, slots=True, eq=False)
class _Marked:
    """Rows that a selector marks: device activities, and host ranges whose time counts.

    `whole` says which host row each host row is a part of, where that is not itself.
    """

    device: BoolArray
    host: BoolArray
    untracked: bool = False
    gaps: frozenset[int] = frozenset()
    whole: Int64Array | None = None


def select(view: StepGraph, selector: Selector, *, side: Side = "auto", self_only: bool = False) -> Selection:
    """Resolve a selector on one step's view.

    Args:
        view: the step; entries are over the whole capture.
        selector: what to look for.
        side: "auto" as the module says; "device", "host" or "both" to choose.
        self_only: of an operator, only what it launches and runs itself, not what is nested in it.

    Raises:
        UsageError: nothing matches; the error offers near names.
    """
    marked = _mark(view, selector, self_only=self_only, side=side)
    return _selection(view, marked, selector)


def _mark(view: StepGraph, selector: Selector, *, self_only: bool, side: Side) -> _Marked:
    if selector.kind in ("name", "re"):
        return _by_name(view, _name_test(view, selector), self_only=self_only, side=side)
    marks: dict[str, Callable[[StepGraph, str], _Marked]] = {
        "class": _by_class,
        "module": _by_module,
        "stream": _by_stream,
        "step": _by_step,
        "line": _by_line,
    }
    marked = marks[selector.kind](view, selector.pattern)
    return marked if selector.kind == "class" and side == "auto" else _one_side(marked, side)


def _one_side(marked: _Marked, side: Side) -> _Marked:
    """Device where there is any, else host; or as the user chose."""
    none = np.zeros(len(marked.device), np.bool_)
    on_device = side == "device" or (side == "auto" and bool(marked.device.any()))
    if side == "both":
        return marked
    if on_device:
        return _Marked(marked.device, none, untracked=False, gaps=marked.gaps)
    return _Marked(none, marked.host, marked.untracked, marked.gaps)


def _name_test(view: StepGraph, selector: Selector) -> BoolArray:
    """Which interned names match: exactly, or else as a glob, or as a regular expression in limited time."""
    names = view.trace.events.names
    if selector.kind == "re":
        return _regex_test(names, selector.pattern)
    exact = np.array([name == selector.pattern for name in names], np.bool_)
    if exact.any():
        return exact
    glob = re.compile(fnmatch.translate(selector.pattern))
    return np.array([bool(glob.match(name)) for name in names], np.bool_)


def _regex_test(names: tuple[str, ...], pattern: str) -> BoolArray:
    import regex  # noqa: PLC0415 - unlike re it can be given a time limit

    until = time.monotonic() + PATTERN_SECONDS
    try:
        compiled = regex.compile(pattern)
        found = [bool(compiled.search(name, timeout=_left(until))) for name in names]
    except (regex.error, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise UsageError(f"{quoted(pattern)} is not a regular expression: {why}") from error
    except TimeoutError as error:
        raise UsageError(
            f"the pattern {quoted(pattern)} takes too long", do="write it without nested repetition"
        ) from error
    return np.array(found, np.bool_)


def _left(until: float) -> float:
    """Seconds until then.

    Raises:
        TimeoutError: none are left.
    """
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _by_name(view: StepGraph, named: BoolArray, *, self_only: bool, side: Side) -> _Marked:
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


def _ranges(view: StepGraph, ranges: BoolArray, device: BoolArray, *, self_only: bool) -> _Marked:
    """Host ranges with what is nested in them, each an activity, or only they and the calls they own."""
    links, at = view.links, np.arange(len(ranges))
    around = _around(view, ranges)
    if self_only:
        whole = inherit(np.where(ranges, at, NONE), links.parent, links.depth)
        return _Marked(device, ranges | (around & _owned(view, ranges)), whole=whole)
    nested = (links.parent >= 0) & around[links.parent]
    whole = inherit(np.where(ranges & ~nested, at, NONE), links.parent, links.depth)
    return _Marked(device, around, whole=whole)


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
    inner = inherit(range_of, links.parent, links.depth)
    found: BoolArray = call & (((links.op >= 0) & ranges[links.op]) | ((inner >= 0) & ranges[inner]))
    return found


def _around(view: StepGraph, rows: BoolArray) -> BoolArray:
    """Host rows that are, or lie in, one of `rows`."""
    own = np.where(rows, np.arange(len(rows)), NONE)
    inside: BoolArray = inherit(own, view.links.parent, view.links.depth) >= 0
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


def _by_class(view: StepGraph, wanted: str) -> _Marked:
    """A class by its label; `optimizer` and `comm` include their host halves, `gap` all gaps, `compute` all kernels."""
    classes = [w for w in WorkClass if wanted in (w.label, w.label.partition(" (")[0], w.group)]
    if not classes:
        labels = sorted({w.label for w in WorkClass} | {w.group for w in WorkClass})
        raise UsageError(f"no class {wanted!r}", do=f"classes: {', '.join(labels)}")
    events = view.trace.events
    rows = np.isin(view.links.work, np.array([int(w) for w in classes], np.int8))
    gaps = frozenset(int(w) for w in classes if w.group == "gap")
    host = rows & events.is_kind(*HOST_KINDS)
    return _Marked(rows & events.is_kind(*DEVICE_KINDS), host, WorkClass.UNTRACKED in classes, gaps)


def _by_module(view: StepGraph, wanted: str) -> _Marked:
    names, links = view.links.module_names, view.links
    if not names:
        raise UsageError("no modules in this trace", do="record with with_stack=True, or use record_function")
    matching = np.array([fnmatch.fnmatchcase(name, wanted) for name in names], np.bool_)
    rows = (links.module >= 0) & matching[links.module]
    return _sides(view, rows)


def _by_line(view: StepGraph, wanted: str) -> _Marked:
    events, frame = view.trace.events, view.links.frame
    if (frame < 0).all():
        raise UsageError("no Python lines in this trace", do="record with with_stack=True")
    labels = [frame_label(name) for name in events.names]
    matching = np.array([wanted in label or fnmatch.fnmatchcase(label, wanted) for label in labels], np.bool_)
    return _sides(view, (frame >= 0) & matching[events.name[np.maximum(frame, 0)]])


def _by_stream(view: StepGraph, wanted: str) -> _Marked:
    events = view.trace.events
    mine = np.array([str(lane.stream) == wanted for lane in events.lanes], np.bool_)
    none = np.zeros(len(events), np.bool_)
    return _Marked(events.is_kind(*DEVICE_KINDS) & mine[events.lane] if len(events) else none, none)


def _by_step(view: StepGraph, wanted: str) -> _Marked:
    """Device activities launched in one step's host window."""
    events, launch = view.trace.events, view.links.launch
    steps = [
        s for s in view.steps if wanted in (s.label, s.label.partition("#")[2], s.label.rpartition(" ")[2])
    ]
    if not steps:
        raise UsageError(f"no step {wanted!r}", do=f"steps: {', '.join(s.label for s in view.steps)}")
    issued = events.start_ns[np.maximum(launch, 0)]
    rows = (launch >= 0) & (issued >= steps[0].host_start_ns) & (issued < steps[0].host_end_ns)
    start, end = steps[0].host_start_ns, steps[0].host_end_ns
    host = events.is_kind(*HOST_KINDS) & (events.start_ns >= start) & (events.end_ns <= end)
    return _Marked(rows, host)


def _sides(view: StepGraph, rows: BoolArray) -> _Marked:
    events = view.trace.events
    return _Marked(rows & events.is_kind(*DEVICE_KINDS), rows & events.is_kind(*HOST_KINDS))


def _selection(view: StepGraph, marked: _Marked, selector: Selector) -> Selection:
    """Marked rows as entries on nodes."""
    every = view.stretches
    rows = np.where(every.on_device, marked.device[every.row], marked.host[every.row])
    entry = np.flatnonzero(np.where(every.row >= 0, rows, marked.untracked))
    row = every.row[entry]
    gap_nodes = _gap_nodes(view, marked.gaps)
    if not entry.size and not gap_nodes.any():
        raise UsageError(f"nothing matches {quoted(str(selector))}", do=_instead(view, selector))
    activity = every.piece[entry]
    if marked.whole is not None:
        activity = np.where(every.on_device[entry] | (row < 0), activity, marked.whole[row])
    return _of(view, entry, activity, gap_nodes)


def within(view: StepGraph, selection: Selection, nodes: BoolArray) -> Selection:
    """The part of a selection that lies on some nodes; it may be nothing."""
    mine = nodes[selection.node]
    return _of(view, selection.entry[mine], selection.activity[mine], selection.gap_nodes & nodes)


def together(view: StepGraph, selections: Sequence[Selection], *more: Int64Array) -> Selection:
    """Selections as one, and more entries; what several mean counts once."""
    entry = np.unique(np.concatenate([*(s.entry for s in selections), *more]))
    gaps = np.logical_or.reduce([s.gap_nodes for s in selections])
    return _of(view, entry, view.stretches.piece[entry], gaps)


def _of(view: StepGraph, entry: Int64Array, activity: Int64Array, gap_nodes: BoolArray) -> Selection:
    """A selection of entries and gaps, counted and measured."""
    every = view.stretches
    node, row, length = every.node[entry], every.row[entry], every.length_ns[entry]
    on_device = every.on_device[entry]
    return Selection(
        node,
        row,
        length,
        entry,
        activity,
        len(np.unique(row[on_device])),
        len(np.unique(row[~on_device & (row >= 0)])),
        gap_nodes,
        int(length.sum() + view.built.arrivals.gap_ns[gap_nodes].sum()),
        _on_path(view, node, row, gap_nodes),
    )


def launch_entries(view: StepGraph, rows: Int64Array) -> Int64Array:
    """Entries of the calls that launch device activities of `rows`, and no others.

    One call may launch a whole graph: while any of it stays as it is, so does the call.
    """
    events, launch = view.trace.events, view.links.launch
    mine = np.zeros(len(events), np.bool_)
    mine[rows[rows >= 0]] = True
    launched = events.is_kind(*DEVICE_KINDS) & (launch >= 0)
    calls = np.zeros(len(events), np.bool_)
    calls[launch[launched & mine]] = True
    calls[launch[launched & ~mine]] = False
    every = view.stretches
    return np.flatnonzero(~every.on_device & (every.row >= 0) & calls[every.row])


def _on_path(view: StepGraph, node: Int64Array, row: Int64Array, gap_nodes: BoolArray) -> int:
    """How much of some entries' and gaps' time lies on the step's critical path."""
    path, wide = view.segments, len(view.trace.events) + 1
    mine = (path.is_gap == 0) & np.isin(path.node * wide + path.row + 1, node * wide + row + 1)
    # A gap's stretches hold the normal delay too, where floors are taken out; that is no part of it.
    gap = (path.is_gap == 1) & gap_nodes[path.node]
    waited = np.bincount(path.node[gap], weights=path.length_ns[gap], minlength=len(gap_nodes))
    return int(path.length_ns[mine].sum() + np.minimum(waited, view.built.arrivals.gap_ns).sum())


def _gap_nodes(view: StepGraph, gaps: frozenset[int]) -> BoolArray:
    """Nodes whose residual gap belongs to one of the given classes, over the whole graph."""
    if not gaps:
        return np.zeros(len(view.built.graph), np.bool_)
    classes = gap_class_of_nodes(view.built, view.usual_gaps)
    found: BoolArray = np.isin(classes, np.array(sorted(gaps), np.int64)) & (view.built.arrivals.gap_ns > 0)
    return found


def _instead(view: StepGraph, selector: Selector) -> str:
    """What could have been selected in this way, and the ways there are where the user meant an unknown one."""
    found = could_be(view, selector.kind, selector.pattern)
    unknown = selector.kind == "name" and _KIND.match(selector.pattern)
    return f"{found}; kinds: {', '.join(f'{p}:' for p in PREFIXES)}" if unknown else found


_KIND = re.compile(r"[A-Za-z_]+:(?!:)")
"""A name that looks as if it began with a kind of selector."""
