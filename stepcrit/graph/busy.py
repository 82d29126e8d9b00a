"""How long each queue and thread is busy with a step, and so how short the step can be at the least.

If each of them does one thing at a time, in whatever order, and the step's work stays in the step, then
the step takes at least the busy time of every one. Waiting is not work: a blocked thread is not busy.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from stepcrit.graph.replay import Replayer
from stepcrit.graph.schedule import FAR
from stepcrit.intervals import ascending
from stepcrit.model.arrays import BoolArray, Int64Array
from stepcrit.model.graph import Graph


class Busy(Struct, frozen=True):
    """One queue or thread: `lane` as the graph numbers it, and its work within the step in ns."""

    lane: int
    busy_ns: int


def busy_lanes(graph: Graph, dur_ns: Int64Array, counted: BoolArray) -> tuple[Busy, ...]:
    """Busy time of the counted nodes by lane, the busiest first.

    Of an activity that the next one of its queue was seen to overlap, no more counts than the time until
    that one began: from there on the queue did two things at once.
    """
    nodes = np.flatnonzero(counted & (graph.part <= 1))
    alone = np.minimum(dur_ns, _until_next(graph))
    total = np.zeros(int(graph.lane.max(initial=-1)) + 1, np.int64)
    np.add.at(total, graph.lane[nodes], alone[nodes])
    lanes = ascending(graph.lane[nodes]).tolist()
    return tuple(sorted((Busy(i, int(total[i])) for i in lanes), key=lambda one: (-one.busy_ns, one.lane)))


def _until_next(graph: Graph) -> Int64Array:
    """How long each node ran by itself where the next activity of its lane began before its end; else FAR."""
    first = np.flatnonzero(graph.part <= 1)
    first = first[np.lexsort((graph.start_ns[first], graph.lane[first]))]
    here, after = first[:-1], first[1:]
    overlaps = (graph.lane[here] == graph.lane[after]) & (graph.end_ns[here] > graph.start_ns[after])
    until = np.full(len(graph), FAR, np.int64)
    until[here[overlaps]] = (graph.start_ns[after] - graph.start_ns[here])[overlaps]
    return until


def busy_in_step(alone: Replayer, dur_ns: Int64Array, required: BoolArray | None = None) -> tuple[Busy, ...]:
    """Busy time of every queue and thread with what the step's boundary requires, after a change.

    Args:
        alone: from `step_alone`.
        required: what the boundary needs after the change; by default what it needed as recorded.
        dur_ns: new durations per node; of work that begins before the window, what lies in it counts.

    Returns:
        The busiest first; the step takes at least its `busy_ns`. None when the step has no work.
    """
    view = alone.view
    graph = view.built.graph
    counted = alone.changeable & (view.required if required is None else required)
    dur = alone.inside(dur_ns)
    for node in view.cut:
        dur[node] -= view.step.start_ns - graph.start_ns[node]
    return busy_lanes(graph, np.maximum(dur, 0), counted)
