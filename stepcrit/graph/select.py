"""Which time a selector means: entries (node, event row, ns) on the schedule graph.

An operator's name means the device activities launched anywhere inside it, and where one of its calls
launches none, that call's host time with everything nested in it. Entries are a set: nested matches
count once. A kernel's name means its activities; a class, a stream, a module or a line means what it
says, on the device where it has anything there, else on the host.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from stepcrit.errors import UsageError
from stepcrit.graph.segments import gap_class_of_nodes
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.graph.threads import Shares, shares
from stepcrit.link.nesting import inherit
from stepcrit.link.source import frame_label
from stepcrit.model.arrays import NONE, BoolArray, Int64Array
from stepcrit.model.classes import WorkClass
from stepcrit.model.events import DEVICE_KINDS, HOST_KINDS
from stepcrit.model.graph import NodeKind

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
        length_ns: how much of the node.
        device_count, host_count: distinct device activities and host ranges.
        gap_nodes: nodes whose gap is selected (classes of gaps only).
        total_ns: sum of the entries (and gaps).
        on_path_ns: part of them on the view's critical path.
    """

    node: Int64Array
    row: Int64Array
    length_ns: Int64Array
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
    """Rows that a selector marks: device activities, and host ranges whose time counts."""

    device: BoolArray
    host: BoolArray
    untracked: bool = False
    gaps: frozenset[int] = frozenset()


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
    return _one_side(marks[selector.kind](view, selector.pattern), side)


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

    try:
        compiled = regex.compile(pattern)
        return np.array([bool(compiled.search(name, timeout=PATTERN_SECONDS)) for name in names], np.bool_)
    except regex.error as error:
        raise UsageError(f"{pattern!r} is not a regular expression: {error}") from error
    except TimeoutError as error:
        raise UsageError(
            f"the pattern {pattern!r} takes too long", do="write it without nested repetition"
        ) from error


def _by_name(view: StepGraph, named: BoolArray, *, self_only: bool, side: Side) -> _Marked:
    """Kernels by their own name; operators by what they launch, and by their host time where they launch nothing."""
    events, links = view.trace.events, view.links
    is_device, is_host = events.is_kind(*DEVICE_KINDS), events.is_kind(*HOST_KINDS)
    mine = named[events.name] if len(events) else is_host
    op = is_host & mine
    around = _around(view, op)
    launch = links.launch
    inside = (launch >= 0) & (
        (links.op >= 0) & mine[links.op] if self_only else around[np.maximum(launch, 0)]
    )
    device = is_device & (mine | inside)
    if side == "device":
        return _Marked(device, np.zeros(len(events), np.bool_))
    if side == "auto":
        op = op & (_launched_inside(view) == 0)
    host = op if self_only else _around(view, op)
    if side == "host":
        return _Marked(np.zeros(len(events), np.bool_), host)
    return _Marked(device, host)


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
    graph, built = view.built.graph, view.built
    on_device = (graph.kind >= NodeKind.KERNEL) & marked.device[graph.row]
    nodes = np.flatnonzero(on_device)
    table = shares(view.links.pieces, built.threads)
    own = (table.owner >= 0) & marked.host[table.owner]
    mine = own | ((table.owner < 0) & marked.untracked)
    node = np.concatenate((nodes, built.number[table.node[mine]]))
    row = np.concatenate((graph.row[nodes], table.owner[mine]))
    length = np.concatenate((graph.dur_ns[nodes], table.length_ns[mine]))
    gap_nodes = _gap_nodes(view, marked.gaps)
    total = int(length.sum() + built.arrivals.gap_ns[gap_nodes].sum())
    if not node.size and not gap_nodes.any():
        near = ", ".join(near_names(selector.pattern, view.trace.events.names)) or "none"
        raise UsageError(f"nothing matches {str(selector)!r}", do=f"near names: {near}")
    device_count = len(np.unique(graph.row[nodes]))
    host_count = len(np.unique(table.owner[own]))
    on_path = _on_path(view, marked)
    return Selection(node, row, length, device_count, host_count, gap_nodes, total, on_path)


def launch_entries(view: StepGraph, selection: Selection) -> tuple[Int64Array, Int64Array, Int64Array]:
    """(node, row, ns) of the launch calls of the selected device activities."""
    events = view.trace.events
    rows = selection.row[selection.row >= 0]
    rows = rows[np.isin(events.kind[rows], np.array(DEVICE_KINDS, np.int8))]
    calls = np.zeros(len(events), np.bool_)
    launch = view.links.launch[rows]
    calls[launch[launch >= 0]] = True
    table: Shares = shares(view.links.pieces, view.built.threads)
    mine = (table.owner >= 0) & calls[table.owner]
    return view.built.number[table.node[mine]], table.owner[mine], table.length_ns[mine]


def _on_path(view: StepGraph, marked: _Marked) -> int:
    """How much of the marked time lies on the step's critical path."""
    segments = view.segments
    row = np.maximum(segments.row, 0)
    activity = segments.is_gap == 0
    owned = (
        (segments.row >= 0) & (marked.device[row] | marked.host[row])
        if len(marked.device)
        else segments.row >= 0
    )
    untracked = (segments.row < 0) & marked.untracked
    gaps = (segments.is_gap == 1) & np.isin(segments.work, np.array(sorted(marked.gaps), np.int8))
    return int(segments.length_ns[(activity & (owned | untracked)) | gaps].sum())


def _gap_nodes(view: StepGraph, gaps: frozenset[int]) -> BoolArray:
    """Nodes whose residual gap belongs to one of the given classes, over the whole graph."""
    classes = (
        gap_class_of_nodes(view.built, view.usual_gaps) if gaps else np.full(len(view.built.graph), NONE)
    )
    found: BoolArray = np.isin(classes, np.array(sorted(gaps), np.int64)) & (view.built.arrivals.gap_ns > 0)
    return found


def near_names(wanted: str, names: tuple[str, ...], count: int = 5) -> list[str]:
    """The closest names, for an error that helps."""
    import difflib  # noqa: PLC0415 - only an error needs it

    lower = {name.lower(): name for name in names}
    close = difflib.get_close_matches(wanted.lower(), lower, n=count, cutoff=0.4)
    inside = [name for key, name in lower.items() if wanted.lower() in key and key not in close]
    return [lower[key] for key in close][:count] + inside[: max(0, count - len(close))]
