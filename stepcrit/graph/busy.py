"""How long each queue and thread is busy with a step, and so how short the step can be at the least.

If each of them does one thing at a time, in whatever order, and the step's work stays in the step, then
the step takes at least the busy time of every one. Waiting is not work: a blocked thread is not busy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stepcrit.graph.replay import Replayer
from stepcrit.model.arrays import BoolArray, Int64Array
from stepcrit.model.graph import Graph


@dataclass(frozen=True, slots=True)
class Busy:
    """One queue or thread: `lane` as the graph numbers it, and its work within the step in ns."""

    lane: int
    busy_ns: int


def busy_lanes(graph: Graph, dur_ns: Int64Array, counted: BoolArray) -> tuple[Busy, ...]:
    """Busy time of the counted nodes by lane, the busiest first.

    Of an activity that the next one of its queue overlaps only the part before counts: there the queue
    was seen to do two things at once.
    """
    nodes = np.flatnonzero(counted & (graph.part <= 1))
    total = np.zeros(int(graph.lane.max(initial=-1)) + 1, np.int64)
    np.add.at(total, graph.lane[nodes], dur_ns[nodes])
    lanes = np.unique(graph.lane[nodes]).tolist()
    return tuple(sorted((Busy(i, int(total[i])) for i in lanes), key=lambda one: (-one.busy_ns, one.lane)))


def busy_in_step(alone: Replayer, dur_ns: Int64Array) -> tuple[Busy, ...]:
    """Busy time of every queue and thread with what the step's boundary requires, after a change.

    Args:
        alone: from `step_alone`.
        dur_ns: new durations per node; of work that begins before the window, what lies in it counts.

    Returns:
        The busiest first; the step takes at least its `busy_ns`. None when the step has no work.
    """
    view = alone.view
    graph = view.built.graph
    counted = alone.changeable & view.required
    dur = alone.inside(dur_ns)
    for node in view.cut:
        dur[node] -= view.step.start_ns - graph.start_ns[node]
    return busy_lanes(graph, np.maximum(dur, 0), counted)
