"""Which time a selector means: entries (node, event row, ns) on the schedule graph.

An operator's name means the device activities launched anywhere inside it, and where one of its calls
launches none, that call's host time with everything nested in it. Entries are a set: nested matches
count once. A kernel's name means its activities, a runtime call's name the call itself and never what it
launches. A class means all that bears it; a stream, a module or a line means what it says, on the device
where it has anything there, else on the host.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from stepcrit.errors import UsageError, quoted
from stepcrit.graph.marks import Marked, Side, mark
from stepcrit.graph.near import could_be
from stepcrit.graph.segments import gap_class_of_nodes
from stepcrit.graph.selector import PREFIXES, Selector
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.intervals import ascending
from stepcrit.model.arrays import BoolArray, Int64Array
from stepcrit.model.events import DEVICE_KINDS
from stepcrit.model.graph import NodeKind


class Selection(Struct, frozen=True, eq=False):
    """Selected time; one entry per stretch of a node that belongs to one event.

    Attributes:
        node: node of the graph.
        row: event row that the time belongs to, -1 for untracked time.
        length_ns: how much of the node, as observed.
        entry: the stretch itself, an index into the view's stretches; ascending, each once.
        activity: what the entry is a part of: entries of one activity (a kernel, an operator's call with
            what is nested in it, a piece of untracked time) have the same number.
        device_count, host_count: distinct device activities, and host ranges with what is nested in them.
        gap_nodes: nodes whose gap is selected (classes of gaps only).
        wait_nodes: returns of blocking calls that are selected: were the call gone, it would not wait.
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
    wait_nodes: BoolArray
    total_ns: int
    on_path_ns: int


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
    marked = mark(view, selector, self_only=self_only, side=side)
    return _selection(view, marked, selector)


def _selection(view: StepGraph, marked: Marked, selector: Selector) -> Selection:
    """Marked rows as entries on nodes."""
    every = view.stretches
    graph, waits = view.built.graph, view.built.graph.kind == NodeKind.SYNC
    returns = np.zeros_like(marked.host) if marked.returns is None else marked.returns
    host = np.where(waits[every.node], returns[every.row], marked.host[every.row])
    rows = np.where(every.on_device, marked.device[every.row], host)
    entry = np.flatnonzero(np.where(every.row >= 0, rows, marked.untracked))
    row = every.row[entry]
    gap_nodes = _gap_nodes(view, marked.gaps)
    waits &= (marked.host | returns)[graph.row]
    if not entry.size and not gap_nodes.any() and not waits.any():
        raise UsageError(f"nothing matches {quoted(str(selector))}", do=_instead(view, selector))
    activity = every.piece[entry]
    if marked.whole is not None:
        activity = np.where(every.on_device[entry] | (row < 0), activity, marked.whole[row])
    return _of(view, entry, activity, gap_nodes, waits)


def within(view: StepGraph, selection: Selection, nodes: BoolArray) -> Selection:
    """The part of a selection that lies on some nodes; it may be nothing."""
    mine = nodes[selection.node]
    gaps, waits = selection.gap_nodes & nodes, selection.wait_nodes & nodes
    return _of(view, selection.entry[mine], selection.activity[mine], gaps, waits)


def together(view: StepGraph, selections: Sequence[Selection], *more: Int64Array) -> Selection:
    """Selections as one, and more entries; what several mean counts once."""
    every = view.stretches
    entry, first = np.unique(np.concatenate([*(s.entry for s in selections), *more]), return_index=True)
    activity = np.concatenate([*(s.activity for s in selections), *(every.piece[one] for one in more)])[first]
    gaps, waits = (
        np.logical_or.reduce([getattr(s, name) for s in selections]) for name in ("gap_nodes", "wait_nodes")
    )
    return _of(view, entry, activity, gaps, waits)


def _of(
    view: StepGraph, entry: Int64Array, activity: Int64Array, gap_nodes: BoolArray, wait_nodes: BoolArray
) -> Selection:
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
        len(ascending(row[on_device])),
        len(ascending(activity[~on_device & (row >= 0)])),
        gap_nodes,
        wait_nodes,
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
    if selector.kind == "name" and selector.pattern in view.trace.events.names:
        return "it is in the trace, but has no time on this side: --side both, or without --self"
    found = could_be(view, selector.kind, selector.pattern)
    unknown = selector.kind == "name" and _KIND.match(selector.pattern)
    return f"{found}; kinds: {', '.join(f'{p}:' for p in PREFIXES)}" if unknown else found


_KIND = re.compile(r"[A-Za-z_]+:(?!:)")
"""A name that looks as if it began with a kind of selector."""
