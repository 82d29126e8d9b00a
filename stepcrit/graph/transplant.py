"""Durations of some steps put on the nodes of others; edges, lags and gaps stay those of the step they are put on.

Device activities take the duration of their counterpart. A host thread is cut at other instants in every
step, so there time itself is carried over: the starts and ends of matched events tie the thread's own time
(the time it is not blocked) in one step to that in the other, and what lies between two ties is stretched evenly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from msgspec import Struct

from stepcrit.graph.counterparts import Counterparts
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.model.arrays import Int64Array

Ties = tuple[Int64Array, Int64Array]
"""Instants of a thread's own time in one step, ascending, and what they are in the other, in ns."""


def transplant(view: StepGraph, found: Sequence[Counterparts]) -> Int64Array:
    """Durations per node, with every matched step's replaced by its counterpart's; the others as observed.

    Args:
        view: any step of the capture.
        found: at most one for each step, in the order of the steps.
    """
    dur: Int64Array = view.built.graph.dur_ns.copy()
    clock = thread_clock(view)
    for one in found:
        _put_device(view, dur, one)
    for lane in sorted({lane for one in found for lane in one.threads}):
        ties = [t for one in found if lane in one.threads for t in _ties(view, clock, one, lane)]
        low, high = int(clock.ptr[lane]), int(clock.ptr[lane + 1])
        dur[view.built.number[low:high]] = _stretched(clock, lane, ties)
    return dur


def matched_time(view: StepGraph, clock: ThreadClock, found: Counterparts) -> tuple[int, int]:
    """How much of a step's time on threads and queues has a counterpart, and how much there is, in ns.

    A thread counts with its own time in the step's host window, a device activity by where it was launched.
    """
    events, step = view.trace.events, found.step
    window = np.array((step.host_start_ns, step.host_end_ns), np.int64)
    own = {
        lane: int(np.diff(clock.at(lane, window))[0]) for lane in np.flatnonzero(np.diff(clock.ptr)).tolist()
    }
    rows = found.device[0]  # all that the window launched: steps whose queues differ do not match
    device = int((events.end_ns[rows] - events.start_ns[rows]).sum())
    return device + sum(own[lane] for lane in found.threads), device + sum(own.values())


class ThreadClock(Struct, frozen=True, eq=False):
    """Each thread's own time: how long it has run, blocked stretches left out.

    Attributes:
        ptr: nodes of lane i are ptr[i]:ptr[i+1].
        start_ns, dur_ns: the thread nodes, as in `ThreadNodes`.
        before_ns: own time of the lane up to the node.
        is_sync: whether the node is the return of a blocking call.
    """

    ptr: Int64Array
    start_ns: Int64Array
    dur_ns: Int64Array
    before_ns: Int64Array
    is_sync: np.typing.NDArray[np.bool_]

    def at(self, lane: int, instants_ns: Int64Array) -> Int64Array:
        """Own time of a lane at some instants; 0 before its first node."""
        low, high = int(self.ptr[lane]), int(self.ptr[lane + 1])
        node = np.searchsorted(self.start_ns[low:high], instants_ns, side="right") - 1
        begun, node = node >= 0, np.maximum(node, 0) + low
        within = np.minimum(instants_ns - self.start_ns[node], self.dur_ns[node])
        found: Int64Array = np.where(begun, self.before_ns[node] + within, 0)
        return found


def thread_clock(view: StepGraph) -> ThreadClock:
    """The clock of every host thread."""
    threads = view.built.threads
    dur = threads.end_ns - threads.start_ns
    total = np.concatenate((np.zeros(1, np.int64), np.cumsum(dur)))
    first = np.repeat(total[threads.ptr[:-1]], np.diff(threads.ptr))
    return ThreadClock(threads.ptr, threads.start_ns, dur, total[:-1] - first, threads.is_sync)


def _put_device(view: StepGraph, dur: Int64Array, found: Counterparts) -> None:
    """Counterparts' durations on device nodes; parts take those of parts, or their share of the whole."""
    graph, built = view.built.graph, view.built
    (mine, theirs), events = found.device, view.trace.events
    first, last = built.first_node[mine], built.last_node[mine]
    whole = first == last
    dur[first[whole]] = events.end_ns[theirs[whole]] - events.start_ns[theirs[whole]]
    for row, other in zip(mine[~whole].tolist(), theirs[~whole].tolist(), strict=True):
        parts, again = _parts(view, row), _parts(view, other)
        if len(parts) == len(again):
            dur[parts] = graph.dur_ns[again]
        else:
            ends = np.cumsum(graph.dur_ns[parts])
            ends = ends * int(graph.dur_ns[again].sum()) // max(int(ends[-1]), 1)
            dur[parts] = np.diff(ends, prepend=0)


def _parts(view: StepGraph, row: int) -> Int64Array:
    """The nodes of one device activity, in order."""
    first, last = int(view.built.first_node[row]), int(view.built.last_node[row])
    graph = view.built.graph
    between = np.arange(first, last + 1)
    mine: Int64Array = between[(graph.row[between] == row) & (graph.lane[between] == graph.lane[first])]
    return mine


def _ties(view: StepGraph, clock: ThreadClock, found: Counterparts, lane: int) -> list[Ties]:
    """What ties a lane's time in a step to that in the other: the stretch before its window, and the window."""
    events, steps = view.trace.events, view.steps
    mine, theirs = found.threads[lane]
    sides = []
    for step, rows in ((found.step, mine), (found.other, theirs)):
        before = steps[step.index - 1].host_end_ns if step.index else step.host_start_ns
        window = (before, max(step.host_start_ns, before), step.host_end_ns)
        bounds = clock.at(lane, np.array(window, np.int64))
        inner = clock.at(lane, np.concatenate((events.start_ns[rows], events.end_ns[rows])))
        sides.append(np.concatenate((bounds, np.clip(inner, bounds[1], bounds[2]))))
    x, y = sides
    if not (found.step.index and found.other.index):  # before the first step there is nothing to carry over
        x, y = x[1:], y[1:]
    order = np.lexsort((y, x))
    return [(x[order], np.maximum.accumulate(y[order]))]


def _stretched(clock: ThreadClock, lane: int, ties: Sequence[Ties]) -> Int64Array:
    """New durations of a lane's nodes."""
    low, high = int(clock.ptr[lane]), int(clock.ptr[lane + 1])
    old, new = [np.zeros(1, np.int64)], [np.zeros(1, np.int64)]
    for x, y in ties:
        # Between two matched stretches time goes on as observed.
        base = int(new[-1][-1]) + int(x[0]) - int(old[-1][-1])
        old.append(x)
        new.append(y - y[0] + base)
    both = np.concatenate(old), np.concatenate(new)
    end = clock.before_ns[low:high] + clock.dur_ns[low:high]
    # Time that the other step alone has at one instant comes before that instant's cut: it is what the cut
    # waits for. Only what follows a blocking call's wait comes after it.
    awaited = np.append(clock.is_sync[low + 1 : high], np.False_)
    moved = np.where(awaited, _carried(both, end, "left"), _carried(both, end, "right"))
    return np.diff(moved, prepend=0)


def _carried(ties: Ties, at: Int64Array, side: Literal["left", "right"]) -> Int64Array:
    """Own time carried over; of several values at one instant the first ("left") or the last ("right")."""
    old, new = ties
    tie = np.searchsorted(old, at, side="right") - 1
    after = np.minimum(tie + 1, len(old) - 1)
    past, width, new_width = at - old[tie], old[after] - old[tie], new[after] - new[tie]
    # Exact where nothing is stretched; float64 holds the product to far below a nanosecond elsewhere.
    even = np.floor(past * (new_width / np.maximum(width, 1))).astype(np.int64)
    carried = new[tie] + np.where(width == new_width, past, even)
    if side == "left":
        first = np.minimum(np.searchsorted(old, at, side="left"), len(old) - 1)
        carried = np.where(old[first] == at, new[first], carried)
    return carried
