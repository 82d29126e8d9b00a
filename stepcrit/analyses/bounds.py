"""Bounds.

Question: how short could this step be at the least, whatever the order of its work?
Method:   the busy time of the busiest queue or thread ("lanes"), and the step replayed without the order of
          its queues ("free"), both after a change (methods C.4, C.11).
Needs:    a step on its schedule graph.
Keeps:    if every queue and thread does one thing at a time and the step's work stays in it, no schedule is
          shorter than `busy_ns`; if what one queue holds may run at once, none is shorter than `free_ns`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stepcrit.graph.busy import busy_in_step
from stepcrit.graph.engines import free as without_order
from stepcrit.graph.input import loop_of
from stepcrit.graph.replay import step_alone
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.model.arrays import Int64Array


@dataclass(frozen=True, slots=True)
class Bounds:
    """Floors of the chosen step, changed alone; in ns.

    Attributes:
        elapsed_ns: the step as recorded.
        busy_ns: busy time of the busiest queue or thread, after the change; 0 without any work.
        busiest: that queue or thread in words, "" without any work.
        free_ns: the step without the order of its queues, if asked for.
    """

    elapsed_ns: int
    busy_ns: int
    busiest: str
    free_ns: int | None


def analyze(view: StepGraph, dur_ns: Int64Array | None = None, *, free: bool = False) -> Bounds:
    """Bound a step from below.

    Args:
        view: the step.
        dur_ns: durations after a change, one per node; by default as recorded.
        free: whether to replay without the order of queues as well.
    """
    dur = view.built.graph.dur_ns if dur_ns is None else dur_ns
    loop = loop_of(view)
    if loop:  # waiting for loader workers is no work of the thread
        dur = loop.durations(np.zeros_like(loop.took_ns), dur)
    busy = busy_in_step(step_alone(view), dur)
    at_once = None
    if free:
        at_once = view.step.elapsed_ns - step_alone(view, without_order(view)).saving(dur).high_ns
    lane = view.trace.events.lanes[busy[0].lane].words if busy else ""
    return Bounds(view.step.elapsed_ns, busy[0].busy_ns if busy else 0, lane, at_once)
