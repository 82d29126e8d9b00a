"""Launch calls whose device work is not in the trace: the profiler lost it, or never had it."""

from __future__ import annotations

import re

import numpy as np
from msgspec import Struct

from stepcrit.intervals import ascending
from stepcrit.link.places import processes
from stepcrit.model.arrays import BoolArray, Int32Array, Int64Array, among, distinct
from stepcrit.model.events import DEVICE_KINDS, EventKind, EventTable

_KERNEL = re.compile(r"^(cu|hip|musa)\w*Launch\w*Kernel")
_GRAPH = re.compile(r"^(cu|hip|musa)\w*GraphLaunch")
_BEGIN = re.compile(r"StreamBeginCapture")
_END = re.compile(r"StreamEndCapture")


class LaunchCalls(Struct, frozen=True, eq=False):
    """Calls that put work on a device, in time order.

    Attributes:
        rows: calls that launch a kernel or a graph, without those of a capture: these launch nothing.
        at_ns: their starts.
        lost: which of them own no device activity.
        graph: which of them launch a graph.
    """

    rows: Int64Array
    at_ns: Int64Array
    lost: BoolArray
    graph: BoolArray

    def between(self, start_ns: int, end_ns: int) -> tuple[int, int]:
        """How many calls begin in a window, and how many of them lost their work."""
        low, high = np.searchsorted(self.at_ns, (start_ns, end_ns), side="left")
        return int(high - low), int(self.lost[low:high].sum())


def launch_calls(events: EventTable, launch: Int32Array) -> LaunchCalls:
    """All launches by calls of CUDA and HIP, whose names say that they launch.

    Args:
        events: the table.
        launch: from `link_launches`.
    """
    calls = np.flatnonzero(events.is_kind(EventKind.RUNTIME))
    graph, kernel, begin, end = (_named(events, calls, which) for which in (_GRAPH, _KERNEL, _BEGIN, _END))
    captured = _captured(events, calls, (calls[begin], calls[end]))
    launching = (graph | kernel) & ~captured
    rows, graph = calls[launching], graph[launching]
    served = np.zeros(len(events), np.bool_)
    served[launch[launch >= 0]] = True
    own = events.correlation[events.is_kind(*DEVICE_KINDS)]
    # A driver call inside the runtime call of its id launched the same work.
    has = served[rows] | among(events.correlation[rows], own[own >= 0])
    return LaunchCalls(rows, events.start_ns[rows], ~has, graph)


def _named(events: EventTable, rows: Int64Array, pattern: re.Pattern[str]) -> BoolArray:
    """Which of some rows have a name that matches; asked once per distinct name."""
    named = np.zeros(len(events.names), np.bool_)
    named[[i for i in distinct(events.name[rows]).tolist() if pattern.search(events.names[i])]] = True
    return named[events.name[rows]]


def _captured(events: EventTable, rows: Int64Array, marks: tuple[Int64Array, Int64Array]) -> BoolArray:
    """Calls made while their process records a graph: they become nodes, and run when the graph is launched.

    A capture that began before the recording, or ends after it, reaches to the recording's edge.
    """
    begins, ends = marks
    inside = np.zeros(len(rows), np.bool_)
    process = processes(events)
    for each in ascending(process[events.lane[np.concatenate((begins, ends))]]).tolist():
        mine = process[events.lane[rows]] == each
        opened = events.start_ns[begins[process[events.lane[begins]] == each]]
        closed = np.sort(events.end_ns[ends[process[events.lane[ends]] == each]])
        at = events.start_ns[rows[mine]]
        depth = np.searchsorted(opened, at, side="right") - np.searchsorted(closed, at, side="right")
        started_open = max(
            0, int((np.arange(1, len(closed) + 1) - np.searchsorted(opened, closed)).max(initial=0))
        )
        inside[mine] = depth + started_open > 0
    return inside
