"""Bounds.

Question: how short could this step be at the least, whatever the order of its work?
Method:   the busy time of the busiest queue or thread ("lanes"), and the step replayed without the order of
          its queues ("free"), both after a change (methods C.4, C.11).
Needs:    a step on its schedule graph.
Keeps:    if every queue and thread does one thing at a time and the step's work stays in it, no schedule is
          shorter than `busy_ns`; if what one queue holds may run at once, none is shorter than `free_ns`.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepcrit.graph.busy import busy_in_step
from stepcrit.graph.engines import free as without_order
from stepcrit.graph.input import loop_of
from stepcrit.graph.replay import Variant, step_alone
from stepcrit.graph.stepgraph import StepGraph


class Bounds(Struct, frozen=True):
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


def analyze(view: StepGraph, after: Variant | None = None, *, free: bool = False) -> Bounds:
    """Bound a step from below.

    Args:
        view: the step.
        after: a change; by default nothing changes.
        free: whether to replay without the order of queues as well.
    """
    after = _without_waits(view, after or Variant(view.built.graph.dur_ns))
    required = view.required_after(after.delays["edge"]) if after.delays else view.required
    busy = busy_in_step(step_alone(view), after.durations("edge"), required)
    at_once = None
    if free:
        alone = step_alone(view, without_order(view), required=required)
        at_once = view.step.elapsed_ns - alone.read(alone.earlier(after), settled=True).high_ns
    lane = view.trace.events.lanes[busy[0].lane].words if busy else ""
    return Bounds(view.step.elapsed_ns, busy[0].busy_ns if busy else 0, lane, at_once)


def _without_waits(view: StepGraph, after: Variant) -> Variant:
    """Waiting for loader workers is no work of the thread: a floor counts none of it."""
    loop = loop_of(view)
    if loop is None:
        return after
    none = np.zeros_like(loop.took_ns)
    least = loop.durations(none, after.durations("edge"))
    return replace(after, dur_ns=loop.durations(none, after.dur_ns), least_ns=least)
