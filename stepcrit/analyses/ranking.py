"""Ranked operators, kernels, classes, modules and lines.

Question: which names would, made faster, make the step faster, and by how much?
Method:   self times only (methods E): each host instant to the innermost open event, each device activity
          to one name; time on the path; savings by replaying the whole capture (methods C.3, C.5).
Needs:    a step on its schedule graph; modules and lines only where they were recorded.
Keeps:    the path column sums to elapsed time, the device column to the summed device time in the window,
          the host column to the host's tracked time in the window, all in ns. Inclusive times are never shown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from stepcrit.errors import UsageError
from stepcrit.graph.replay import Replayer, Saving, replayer, scaled
from stepcrit.graph.schedule import FAR
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.graph.threads import Shares, shares
from stepcrit.link.source import frame_label, user_line
from stepcrit.model.arrays import NONE, BoolArray, Int64Array
from stepcrit.model.classes import WorkClass
from stepcrit.model.events import DEVICE_KINDS, HOST_KINDS
from stepcrit.model.graph import NodeKind

By = Literal["op", "kernel", "class", "module", "line"]
_BySide = tuple[Int64Array, Int64Array]
"""By key: of device nodes, and of host nodes."""

ORPHAN = "(launched outside the trace)"
UNATTRIBUTED = "(unattributed)"
UNTRACKED = "(untracked)"
HOST = "(host)"


@dataclass(frozen=True, slots=True)
class Ranked:
    """One name's times in the step's window, in ns.

    Attributes:
        name: the name, or a row in parentheses for what has none.
        calls: by op, host events of this name that start in the step's host window; otherwise device
            activities that start in the elapsed window.
        self_cpu_ns: host time as innermost open event in the step's host window, over all threads.
        device_ns: summed durations of its device activities, clipped to the window.
        critical_ns: time on the critical path.
        slack_min_ns: least slack of its nodes in the window; None when none is needed by the boundary.
        drag_max_ns: greatest drag of one of its activities (methods B.8); drags do not add up.
        half, free: what the period saves if it took half its time, or none; None when not replayed.
        side: "device" or "host": whose durations `half` and `free` shorten; "gap" for rows without either.
    """

    name: str
    calls: int
    self_cpu_ns: int
    device_ns: int
    critical_ns: int
    slack_min_ns: int | None
    drag_max_ns: int | None
    half: Saving | None
    free: Saving | None
    side: str


@dataclass(frozen=True, slots=True)
class Ranking:
    """All names by one grouping; rows by saving, then time on the path, then name.

    Attributes:
        by: the grouping.
        rows: every name with any time in the window.
        self_cpu_ns, device_ns, critical_ns: column totals: tracked host time, summed device time, elapsed.
        replayed: how many names were replayed; the others that are on the path have no saving.
        period_count: over how many steady periods savings are a mean; 0: the step changed alone.
    """

    by: str
    rows: tuple[Ranked, ...]
    self_cpu_ns: int
    device_ns: int
    critical_ns: int
    replayed: int
    period_count: int


@dataclass(frozen=True, slots=True, eq=False)
class _Keys:
    """Per event row, an index into `labels`; the last rows of `labels` are not from the trace."""

    labels: list[str]
    of_row: Int64Array
    untracked: int
    gap_of_class: dict[int, int]


def analyze(view: StepGraph, by: By, *, replays: int = 10) -> Ranking:
    """Rank names by what the step would gain.

    Args:
        view: the step.
        by: what a row stands for.
        replays: how many names to replay, in order of time on the path. Where this step alone is
            changed, a name off its path saves nothing, which needs no replay (methods 0.6, invariant 5).

    Raises:
        UsageError: the trace has no modules, or no lines.
    """
    keys = _keys(view, by)
    columns = _columns(view, keys, by)
    divided = shares(view.links.pieces, view.built.threads)
    table = _Table(view, keys, columns, divided, *_slack_and_drag(view, keys, divided))
    present = np.flatnonzero(columns.calls + columns.cpu + columns.device + columns.critical > 0)
    order = sorted(present.tolist(), key=lambda k: (-int(columns.critical[k]), keys.labels[k]))
    gaps = set(keys.gap_of_class.values())
    chosen = [k for k in order if columns.critical[k] > 0 and k not in gaps][:replays]
    replay = replayer(view)
    savings = {k: table.savings(k, replay) for k in chosen}
    # Off this step's path is off every path only where this step alone is changed (invariant 5).
    off_path = None if replay.period_count else (Saving(0, 0), Saving(0, 0))
    none = {k: off_path for k in order if not columns.critical[k] and k not in gaps}
    rows = [_row(table, k, savings.get(k, none.get(k)), is_gap=k in gaps) for k in order]
    rows.sort(key=lambda r: (-(r.free.low_ns if r.free else 0), -r.critical_ns, r.name))
    totals = (int(columns.cpu.sum()), int(columns.device.sum()), int(columns.critical.sum()))
    return Ranking(by, tuple(rows), *totals, len(savings), replay.period_count)


@dataclass(frozen=True, slots=True, eq=False)
class _Columns:
    """Sums by key."""

    calls: Int64Array
    cpu: Int64Array
    device: Int64Array
    critical: Int64Array
    critical_device: Int64Array


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """Sums by key, and the way from a key to nodes."""

    view: StepGraph
    keys: _Keys
    columns: _Columns
    shares: Shares
    least_slack: tuple[Int64Array, Int64Array]
    greatest_drag: tuple[Int64Array, Int64Array]

    def device_nodes(self, key: int) -> BoolArray:
        """Device nodes of a key, over the whole capture."""
        graph = self.view.built.graph
        nodes: BoolArray = (graph.kind >= NodeKind.KERNEL) & (self.keys.of_row[graph.row] == key)
        return nodes

    def host_part(self, key: int) -> Int64Array:
        """Each node's host time that the key owns, over the whole capture."""
        owner = self.shares.owner
        mine = (owner < 0) if key == self.keys.untracked else (owner >= 0) & (self.keys.of_row[owner] == key)
        part = np.zeros(len(self.view.built.graph), np.int64)
        np.add.at(part, self.view.built.number[self.shares.node[mine]], self.shares.length_ns[mine])
        return part

    def on_device(self, key: int) -> bool:
        """Whether the key's device activities carry more of the path than its host time does."""
        return (
            bool(self.columns.device[key])
            and 2 * self.columns.critical_device[key] >= self.columns.critical[key]
        )

    def savings(self, key: int, replay: Replayer) -> tuple[Saving, Saving]:
        """Half and free."""
        nodes = self.device_nodes(key)
        part = (
            np.where(nodes, self.view.built.graph.dur_ns, 0) if self.on_device(key) else self.host_part(key)
        )
        half, free = (scaled(self.view, part, 1, n) for n in (2, 1))
        settled = replay.settles((half,), (free,))
        return replay.saving(half, settled=settled), replay.saving(free, settled=settled)

    def slack_min(self, key: int) -> int | None:
        """The least slack of the key's nodes inside the window, on the side that its savings are about."""
        least = int((self.least_slack[0] if self.on_device(key) else self.least_slack[1])[key])
        return least if least < FAR else None

    def drag_max(self, key: int) -> int | None:
        """The greatest drag of one of the key's nodes, on the same side; None where slack is None."""
        if self.slack_min(key) is None:
            return None
        return int((self.greatest_drag[0] if self.on_device(key) else self.greatest_drag[1])[key])


def _slack_and_drag(view: StepGraph, keys: _Keys, table: Shares) -> tuple[_BySide, _BySide]:
    """Least slack (FAR where the boundary needs none) and greatest drag by key, of nodes in the window."""
    graph, slack, drag = view.built.graph, view.slack.total_ns, view.drag.drag_ns
    least: _BySide = (np.full(len(keys.labels), FAR, np.int64), np.full(len(keys.labels), FAR, np.int64))
    greatest: _BySide = (np.zeros(len(keys.labels), np.int64), np.zeros(len(keys.labels), np.int64))
    needed = view.inside & (slack >= 0)
    on_device = np.flatnonzero(needed & (graph.kind >= NodeKind.KERNEL))
    node = view.built.number[table.node]
    mine = needed[node]
    owner = np.where(table.owner >= 0, keys.of_row[np.maximum(table.owner, 0)], keys.untracked)[mine]
    # A host node may hold more than its owner's time: no more than that time is the owner's drag.
    most = np.minimum(drag[node[mine]], table.length_ns[mine])
    own = keys.of_row[graph.row[on_device]]
    for side, (key, nodes, part) in enumerate(((own, on_device, drag[on_device]), (owner, node[mine], most))):
        np.minimum.at(least[side], key, slack[nodes])
        np.maximum.at(greatest[side], key, part)
    return least, greatest


def _row(table: _Table, key: int, saving: tuple[Saving, Saving] | None, *, is_gap: bool) -> Ranked:
    columns = table.columns
    critical = int(columns.critical[key])
    return Ranked(
        table.keys.labels[key],
        int(columns.calls[key]),
        int(columns.cpu[key]),
        int(columns.device[key]),
        critical,
        None if is_gap else table.slack_min(key),
        None if is_gap else table.drag_max(key),
        saving[0] if saving else None,
        saving[1] if saving else None,
        "gap" if is_gap else "device" if table.on_device(key) else "host",
    )


def _columns(view: StepGraph, keys: _Keys, by: str) -> _Columns:
    """Calls, self CPU, device time and path time by key, inside the window."""
    events, window = view.trace.events, (view.step.start_ns, view.step.end_ns)
    size = len(keys.labels)
    calls, cpu, device, critical, critical_device = (np.zeros(size, np.int64) for _ in range(5))
    is_device = events.is_kind(*DEVICE_KINDS)
    inside = np.flatnonzero(is_device & (events.end_ns > window[0]) & (events.start_ns < window[1]))
    length = np.minimum(events.end_ns[inside], window[1]) - np.maximum(events.start_ns[inside], window[0])
    np.add.at(device, keys.of_row[inside], length)
    host = (view.step.host_start_ns, view.step.host_end_ns)
    counted, span = (events.is_kind(*HOST_KINDS), host) if by == "op" else (is_device, window)
    starting = np.flatnonzero(counted & (events.start_ns >= span[0]) & (events.start_ns < span[1]))
    np.add.at(calls, keys.of_row[starting], 1)
    pieces = view.links.pieces
    length = np.minimum(pieces.end_ns, host[1]) - np.maximum(pieces.start_ns, host[0])
    tracked = np.flatnonzero((length > 0) & (pieces.owner >= 0))
    np.add.at(cpu, keys.of_row[pieces.owner[tracked]], length[tracked])
    segments = view.segments
    key = _segment_keys(keys, view)
    np.add.at(critical, key, segments.length_ns)
    on_device = np.flatnonzero(is_device[np.maximum(segments.row, 0)] & (segments.row >= 0))
    np.add.at(critical_device, key[on_device], segments.length_ns[on_device])
    return _Columns(calls, cpu, device, critical, critical_device)


def _segment_keys(keys: _Keys, view: StepGraph) -> Int64Array:
    """The key of each stretch of the path."""
    segments = view.segments
    key = np.where(segments.row >= 0, keys.of_row[np.maximum(segments.row, 0)], keys.untracked)
    for i in np.flatnonzero(segments.is_gap).tolist():
        key[i] = keys.gap_of_class[int(segments.work[i])]
    return key.astype(np.int64)


def _keys(view: StepGraph, by: By) -> _Keys:
    """A label for every row, and for what is no row."""
    label_of: dict[By, Callable[[StepGraph], tuple[list[str], Int64Array]]] = {
        "op": _by_op,
        "kernel": _by_kernel,
        "class": _by_class,
        "module": _by_module,
        "line": _by_line,
    }
    labels, of_row = label_of[by](view)
    untracked = len(labels)
    labels.append(UNTRACKED)
    gaps = {}
    for work in WorkClass:
        if work.group == "gap":
            gaps[int(work)] = len(labels)
            labels.append(f"({work.label})")
    return _Keys(labels, of_row, untracked, gaps)


def _by_op(view: StepGraph) -> tuple[list[str], Int64Array]:
    """Device rows under the operator that launched them, host rows under their own name."""
    events, links = view.trace.events, view.links
    labels = [*events.names, ORPHAN, UNATTRIBUTED]
    orphan, unattributed = len(events.names), len(events.names) + 1
    key = events.name.astype(np.int64)
    device = events.is_kind(*DEVICE_KINDS)
    by_op = np.where(links.op >= 0, events.name[np.maximum(links.op, 0)], unattributed)
    by_op = np.where(links.launch >= 0, by_op, orphan)
    return labels, np.where(device, by_op, key)


def _by_kernel(view: StepGraph) -> tuple[list[str], Int64Array]:
    """Device rows under their own name; all host time in one row."""
    events = view.trace.events
    device = events.is_kind(*DEVICE_KINDS)
    return [*events.names, HOST], np.where(device, events.name, len(events.names)).astype(np.int64)


def _by_class(view: StepGraph) -> tuple[list[str], Int64Array]:
    """Rows under their class of work."""
    labels = ["" for _ in range(max(WorkClass) + 1)]
    for work in WorkClass:
        labels[work] = work.label
    return labels, view.links.work.astype(np.int64)


def _by_module(view: StepGraph) -> tuple[list[str], Int64Array]:
    """Rows under the module that was running."""
    links = view.links
    if not links.module_names:
        raise UsageError(
            "no modules in this trace: no nn.Module frames and no annotations of the user's own",
            do="record with with_stack=True, or put record_function(name) around the parts of the model",
        )
    none = len(links.module_names)
    key = np.where(links.module >= 0, links.module, none).astype(np.int64)
    return [*links.module_names, "(no module)"], key


def _by_line(view: StepGraph) -> tuple[list[str], Int64Array]:
    """Rows under the innermost line of the user's own code."""
    events, links = view.trace.events, view.links
    if (links.frame >= 0).any():
        used, back = np.unique(events.name[links.frame[links.frame >= 0]], return_inverse=True)
        key = np.full(len(events), len(used), np.int64)
        key[links.frame >= 0] = back
        return [*(frame_label(events.names[i]) for i in used.tolist()), "(no line)"], key
    if (events.stack >= 0).any() and view.trace.events.stacks:
        return _by_call_stack(view)
    raise UsageError("no Python lines in this trace", do="record with with_stack=True")


def _by_call_stack(view: StepGraph) -> tuple[list[str], Int64Array]:
    """Rows under the innermost frame of the user's own code in the operator's recorded call stack."""
    events, links = view.trace.events, view.links
    stack = np.where(links.op >= 0, events.stack[np.maximum(links.op, 0)], NONE)
    none = len(events.stacks)
    lines = [user_line(text) or "(no line)" for text in events.stacks]
    labels = sorted({*lines, "(no line)"})
    key = np.array([*(labels.index(line) for line in lines), labels.index("(no line)")], np.int64)
    return labels, key[np.where(stack >= 0, stack, none)]
