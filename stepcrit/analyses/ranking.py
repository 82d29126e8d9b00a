"""Ranked operators, kernels, classes, modules, collectives and lines.

Question: which names would, made faster, make the step faster, and by how much?
Method:   self times only (methods E): each host instant to the innermost open event, each device activity
          to one name; time on the path; savings by replaying the whole capture for the names that can save
          most (methods C.3, C.5).
Needs:    a step on its schedule graph; modules, collectives and lines only where they were recorded.
Keeps:    the path column sums to elapsed time, the device column to the summed device time in the window,
          the host column to the host's tracked time in the window, all in ns. Inclusive times are never shown.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from msgspec import Struct

from stepcrit.graph.groups import By, Groups, group
from stepcrit.graph.replay import Saving, replayer
from stepcrit.graph.schedule import FAR
from stepcrit.graph.search import Candidates, Found, best, beyond_ns, candidates
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.model.arrays import Int32Array, Int64Array, IntArray
from stepcrit.model.events import DEVICE_KINDS, HOST_KINDS
from stepcrit.model.graph import NodeKind
from stepcrit.timings import timed

ROUNDING_NS = 1_000
"""Durations are cut in whole ns each: less than this is no bend of a saving curve."""

_BySide = tuple[Int64Array, Int64Array]
"""By group: of device nodes, and of host nodes."""


class Gains(Struct, frozen=True):
    """What the period saves if a name takes a share less of its time.

    Attributes:
        quarter, half, free: a quarter less, half, all of it.
        takes_over: the name whose time on the path grows most when this one's is gone, if asked; "" where
            none grows: the path is the same but for it.
    """

    quarter: Saving
    half: Saving
    free: Saving
    takes_over: str | None

    @property
    def levels_off_by(self) -> Fraction | None:
        """The share taken away by which each further share saves less; None where that never is.

        Known from a quarter, half and all: the saving is concave in the share (methods 0.6, invariant 6), but
        for rounding and what a launch call may do after it has submitted.
        """
        if _bends(self.quarter.low_ns, self.half.low_ns):
            return Fraction(1, 2)
        return Fraction(1) if _bends(self.half.low_ns, self.free.low_ns) else None


class Ranked(Struct, frozen=True):
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
        gains: what the period saves by it; None when not replayed.
        side: "device" or "host": whose durations `gains` shorten; "gap" for rows without either.
    """

    name: str
    calls: int
    self_cpu_ns: int
    device_ns: int
    critical_ns: int
    slack_min_ns: int | None
    drag_max_ns: int | None
    gains: Gains | None
    side: str

    @property
    def half(self) -> Saving | None:
        """What the period saves if it took half its time."""
        return self.gains.half if self.gains else None

    @property
    def free(self) -> Saving | None:
        """What the period saves if it took no time."""
        return self.gains.free if self.gains else None


class Ranking(Struct, frozen=True):
    """All names by one grouping; rows by saving, then time on the path, then name.

    Attributes:
        by: the grouping.
        rows: every name with any time in the window, and any other that is told for what other steps have of it.
        self_cpu_ns, device_ns, critical_ns: column totals: tracked host time, summed device time, elapsed.
        replayed: how many names were replayed to be told; no other saves more than the least of them, where
            `beyond_ns` is None.
        looked_at: how many were replayed to find them.
        beyond_ns: where too many might save as much to replay them all, the most that any other saves.
        period_count: over how many steady periods savings are a mean; 0: the step changed alone.
    """

    by: str
    rows: tuple[Ranked, ...]
    self_cpu_ns: int
    device_ns: int
    critical_ns: int
    replayed: int
    looked_at: int
    beyond_ns: int | None
    period_count: int


def _bends(some_ns: int, twice_ns: int) -> bool:
    """Whether twice as much taken away saves less than twice as much."""
    return twice_ns < 2 * some_ns - max(ROUNDING_NS, some_ns // 100)


@timed("ranking")
def analyze(view: StepGraph, by: By, *, replays: int = 10, detailed: bool = False) -> Ranking:
    """Rank names by what the step would gain.

    Args:
        view: the step.
        by: what a row stands for.
        replays: for how many names to tell what they save: those that save most. Where this step alone is
            changed, a name off its path saves nothing, which needs no replay (methods 0.6, invariant 5).
        detailed: also what takes over from each of them.

    Raises:
        UsageError: the trace has no modules, no collectives, or no lines.
    """
    groups, replay = group(view, by), replayer(view)
    among = candidates(replay, groups)
    table = _Table(among, _host_columns(view, groups), *_slack_and_drag(among))
    found = best(among, replays)
    told = sorted(found, key=lambda k: (-found[k].saving_ns, -int(among.critical_ns[k]), groups.labels[k]))
    told = told[:replays]
    gains = {key: _gains(among, key, found[key], detailed=detailed) for key in told}
    gaps = set(groups.gap_of_class.values())
    rows = [
        _row(table, key, gains.get(key) or _off_path(among, key), is_gap=key in gaps)
        for key in sorted({*np.flatnonzero(table.present).tolist(), *told})
    ]
    rows.sort(key=lambda r: (-(r.free.low_ns if r.free else 0), -r.critical_ns, r.name))
    cpu, device, critical = (int(c.sum()) for c in (table.columns.cpu, among.device_ns, among.critical_ns))
    beyond = beyond_ns(among, found)
    is_open = bool(told) and beyond > found[told[-1]].saving_ns
    counts = (len(told), len(found), beyond if is_open else None, replay.period_count)
    return Ranking(by, tuple(rows), cpu, device, critical, *counts)


def _off_path(among: Candidates, key: int) -> Gains | None:
    """Off this step's path is off every path only where this step alone is changed (invariant 5)."""
    if among.replay.period_count or among.critical_ns[key] or key in among.groups.gap_of_class.values():
        return None
    return Gains(Saving(0, 0), Saving(0, 0), Saving(0, 0), None)


def _gains(among: Candidates, key: int, found: Found, *, detailed: bool) -> Gains:
    """A quarter less, half, and all of it, read alike."""
    replay = among.replay
    quarter, half = (replay.earlier(among.variant({key: Fraction(1, n)})) for n in (4, 2))
    gone = replay.earlier(among.variant({key: Fraction(1)}), found.join)
    less, much, all_of_it = replay.shortened(quarter, half, gone)
    return Gains(less, much, all_of_it, _takes_over(among, key) if detailed else None)


def _takes_over(among: Candidates, key: int) -> str:
    """The group whose time on the path grows most when this one's is gone."""
    more = among.path_of({key: Fraction(1)}) - among.critical_ns
    more[key] = 0
    most = int(more.argmax())
    return among.groups.labels[most] if more[most] > ROUNDING_NS else ""


class _Columns(Struct, frozen=True, eq=False):
    """Sums by group, of the host."""

    calls: Int64Array
    cpu: Int64Array


class _Table(Struct, frozen=True, eq=False):
    """Sums by group, and what slack and drag their nodes have."""

    among: Candidates
    columns: _Columns
    least_slack: _BySide
    greatest_drag: _BySide

    @property
    def present(self) -> Int64Array:
        """More than 0 for groups with anything in the window."""
        among = self.among
        return self.columns.calls + self.columns.cpu + among.device_ns + among.critical_ns

    def slack_min(self, key: int) -> int | None:
        """The least slack of the group's nodes inside the window, on the side that its savings are about."""
        least = int(self.least_slack[not self.among.on_device(key)][key])
        return least if least < FAR else None

    def drag_max(self, key: int) -> int | None:
        """The greatest drag of one of the group's nodes, on the same side; None where slack is None."""
        if self.slack_min(key) is None:
            return None
        return int(self.greatest_drag[not self.among.on_device(key)][key])


def _slack_and_drag(among: Candidates) -> tuple[_BySide, _BySide]:
    """Least slack (FAR where the boundary needs none) and greatest drag by group, of nodes in the window."""
    view, groups, divided = among.replay.view, among.groups, among.divided
    graph, slack, drag = view.built.graph, view.slack.total_ns, view.drag.drag_ns
    size = len(groups.labels)
    least: _BySide = (np.full(size, FAR, np.int64), np.full(size, FAR, np.int64))
    greatest: _BySide = (np.zeros(size, np.int64), np.zeros(size, np.int64))
    needed = view.inside & (slack >= 0)
    on_device = np.flatnonzero(needed & (graph.kind >= NodeKind.KERNEL))
    node = among.host_node
    mine = needed[node]
    # A host node may hold more than its owner's time: no more than that time is the owner's drag.
    most = np.minimum(drag[node[mine]], divided.length_ns[mine])
    owner = among.host_key[mine]
    own = groups.of_row[graph.row[on_device]]
    sides: list[tuple[Int32Array, IntArray, Int64Array]]
    sides = [(own, on_device, drag[on_device]), (owner, node[mine], most)]
    for side, (key, nodes, part) in enumerate(sides):
        np.minimum.at(least[side], key, slack[nodes])
        np.maximum.at(greatest[side], key, part)
    return least, greatest


def _row(table: _Table, key: int, gains: Gains | None, *, is_gap: bool) -> Ranked:
    among = table.among
    return Ranked(
        among.groups.labels[key],
        int(table.columns.calls[key]),
        int(table.columns.cpu[key]),
        int(among.device_ns[key]),
        int(among.critical_ns[key]),
        None if is_gap else table.slack_min(key),
        None if is_gap else table.drag_max(key),
        gains,
        "gap" if is_gap else "device" if among.on_device(key) else "host",
    )


def _host_columns(view: StepGraph, groups: Groups) -> _Columns:
    """Calls and self CPU time by group, inside the window."""
    events, size = view.trace.events, len(groups.labels)
    calls, cpu = np.zeros(size, np.int64), np.zeros(size, np.int64)
    host = (view.step.host_start_ns, view.step.host_end_ns)
    window = (view.step.start_ns, view.step.end_ns)
    counted, span = (HOST_KINDS, host) if groups.by == "op" else (DEVICE_KINDS, window)
    low, high = np.searchsorted(events.start_ns, span, side="left")  # the rows of the table ascend by start
    begun = groups.of_row[low:high][events.is_kind(*counted)[low:high]]
    calls += np.bincount(begun, minlength=size)
    pieces = view.links.pieces
    length = np.minimum(pieces.end_ns, host[1]) - np.maximum(pieces.start_ns, host[0])
    tracked = np.flatnonzero((length > 0) & (pieces.owner >= 0))
    np.add.at(cpu, groups.of_row[pieces.owner[tracked]], length[tracked])
    return _Columns(calls, cpu)
