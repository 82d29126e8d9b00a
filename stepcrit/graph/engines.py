"""Engines: what the machine is taken to do with the same work (methods C.4). Each makes finish times.

An engine takes durations and delays of the graph as recorded, and gives the finish of each of its
nodes. With nothing changed, `order` and `contended` give back every recorded end; `queued` does where the
record keeps within the queue's depth; `free` is a bound and gives ends that are no later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from stepcrit.errors import UnusableInputError, UsageError
from stepcrit.graph.backpressure import with_queue
from stepcrit.graph.contention import measure
from stepcrit.graph.fluid import rivals_of, simulate
from stepcrit.graph.models import Model
from stepcrit.graph.schedule import Lags, forward
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.graph.wiring import Wiring, as_recorded, without_queue_order
from stepcrit.model.arrays import Int64Array
from stepcrit.model.graph import Graph

Engine = Callable[[Int64Array, Lags], Int64Array]
"""(durations per node, delays) -> finish per node, in ns, all of the graph as recorded."""


def engine_of(view: StepGraph, models: Sequence[Model]) -> Engine:
    """The engine that models ask for together.

    "comm" changes durations (see `graph.transfer`) and "lanes" is a sum (see `graph.busy`): neither
    changes the engine.

    Raises:
        UsageError: models that do not go together, or a queue that cannot be (see `backpressure.with_queue`).
        UnusableInputError: the slowdown is to be measured, and this trace does not show it.
    """
    by_name = {model.name: model for model in models}
    if len(by_name) < len(models):
        raise UsageError("a model is named twice", do="name each model once")
    queue, contend = by_name.get("queue"), by_name.get("contend")
    if "free" in by_name:
        if queue or contend:
            raise UsageError("free is a bound by itself", do="leave out queue and contend, or free")
        return free(view)
    depth = queue.depth if queue else None
    if contend:
        return contended(view, contend.slowdown or _measured(view), depth=depth)
    return order(view.built.graph) if depth is None else queued(view, depth)


def _measured(view: StepGraph) -> Fraction:
    found = measure(view)
    if found.slowdown is None:
        raise UnusableInputError(
            f"slowdown by communication {found.why_not}",
            where=view.trace.meta.source,
            do="give it: contend:1.2",
        )
    return found.slowdown


def order(graph: Graph) -> Engine:
    """Program and queue order as recorded."""
    return lambda dur_ns, delays: forward(graph, dur_ns, delays) + dur_ns


def free(view: StepGraph) -> Engine:
    """Within the step, activities of one queue may run at once, at full speed; before it, as recorded.

    With `replay.step_alone` this bounds the step from below: any schedule that keeps the other
    dependencies and their delays, and starts the step's work no earlier than the step, takes at least as
    long. The gap policy that gives the shorter step gives the bound.
    """
    return replayed(without_queue_order(view.built.graph, view.starting, view.step.start_ns))


def queued(view: StepGraph, depth: int) -> Engine:
    """Recorded order, and launches that wait while `depth` operations of their queue are outstanding.

    Raises:
        UsageError: see `backpressure.with_queue`.
    """
    return replayed(with_queue(view, depth))


def contended(view: StepGraph, slowdown: Fraction, *, depth: int | None = None) -> Engine:
    """Recorded order; compute runs at 1/`slowdown` while communication is active on its device.

    Args:
        view: the step.
        slowdown: at least 1.
        depth: if given, with a launch queue as in `queued`.

    Raises:
        UsageError: see `backpressure.with_queue`.
    """
    graph = view.built.graph
    wiring = as_recorded(graph) if depth is None else with_queue(view, depth)
    rivals = rivals_of(view, slowdown)
    if not (rivals.compute >= 0).any():  # nobody to slow anybody: the plain pass says the same, faster
        return replayed(wiring)

    def engine(dur_ns: Int64Array, delays: Lags) -> Int64Array:
        dur, lags = wiring.prepare(dur_ns, delays)
        work = rivals.work_after(graph, dur_ns)
        return simulate(wiring.graph, dur, lags, rivals.renumbered(wiring.number, work))[wiring.number]

    return engine


def replayed(wiring: Wiring) -> Engine:
    """One forward pass over other edges."""

    def engine(dur_ns: Int64Array, delays: Lags) -> Int64Array:
        dur, lags = wiring.prepare(dur_ns, delays)
        finish: Int64Array = (forward(wiring.graph, dur, lags) + dur)[wiring.number]
        return finish

    return engine
