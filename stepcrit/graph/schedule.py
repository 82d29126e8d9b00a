"""The schedule's arithmetic: arrivals, gaps, replay forward, latest finish backward (methods B.6, B.8).

For node v with predecessors p: arrival = end(p) + the normal lag of the edge's class, ready = the
latest arrival, gap = start(v) - ready, and the predecessors that arrive at `ready` *bind* v.
Replaying with unchanged durations gives back every observed start, to the nanosecond.

A pass is defined by a plain loop over lists (a list element costs a third of an array element in CPython);
where the graph allows it, the forward pass goes by runs of nodes instead (`graph.runs`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
from msgspec import Struct

from stepcrit.errors import InternalError
from stepcrit.graph.runs import runs_of, starts_by_runs
from stepcrit.kernels import COMPILED, chosen
from stepcrit.model.arrays import BoolArray, Int64Array, freeze
from stepcrit.model.graph import EdgeKind, Graph

GapPolicy = Literal["join", "edge"]
"""join: the gap stays whoever binds next (conservative); edge: it goes with the binding edge (optimistic)."""

Usual = Mapping[int, int]
"""The delay that an edge of a class usually brings when it binds, by EdgeKind, in ns."""

Floors = Mapping[EdgeKind, int]
"""The normal delay of an edge class in ns, taken out of the gap."""

FAR = np.int64(2**62)
"""Later than any time: the latest finish of a node that no sink needs."""


class Arrivals(Struct, frozen=True, eq=False, weakref=True):
    """What decided every observed start.

    Attributes:
        phi_ns: per edge, the class lag that was really available: min(floor, start(dst) - end(src)).
        gap_ns: per node, the residual between the latest arrival and its start (>= 0).
        binds: per edge, whether it arrived last at its target.
    """

    phi_ns: Int64Array
    gap_ns: Int64Array
    binds: BoolArray


class Lags(Struct, frozen=True, eq=False):
    """Fixed delays for replay: per edge, and per node without predecessor (from the origin)."""

    edge_ns: Int64Array
    origin_ns: Int64Array


def observe(graph: Graph, floors: Floors | None = None) -> Arrivals:
    """Read arrivals, gaps and binding edges off the observed schedule."""
    end = graph.end_ns
    room = graph.start_ns[graph.dst] - end[graph.src]
    phi = np.minimum(_floor_of_edges(graph, floors or {}), room)
    arrival = end[graph.src] + phi
    ready = np.full(len(graph), graph.t0_ns, np.int64)
    has = np.flatnonzero(np.diff(graph.dst_ptr))
    if has.size:
        ready[has] = np.maximum.reduceat(arrival, graph.dst_ptr[has])
    arrivals = Arrivals(phi, graph.start_ns - ready, arrival == ready[graph.dst])
    freeze(arrivals.phi_ns, arrivals.gap_ns, arrivals.binds)
    return arrivals


def lags(graph: Graph, arrivals: Arrivals, policy: GapPolicy, usual: Usual | None = None) -> Lags:
    """The delays that replay uses: how much of the gap each edge carries depends on the policy.

    Args:
        graph: the graph.
        arrivals: from `observe`.
        policy: who keeps the gap.
        usual: what an edge that takes over brings at least under "join", as far as the schedule left room
            for it: a launch that comes to bind has its latency, though the queue that bound before had none.
    """
    gap = arrivals.gap_ns[graph.dst]
    carried = gap if policy == "join" else np.where(arrivals.binds, gap, 0)
    if policy == "join" and usual:
        table = np.zeros(max(EdgeKind) + 1, np.int64)
        for kind, ns in usual.items():
            table[kind] = ns
        room = graph.start_ns[graph.dst] - graph.end_ns[graph.src] - arrivals.phi_ns
        brought = np.minimum(table[graph.edge_kind] - arrivals.phi_ns, room)
        carried = np.where(arrivals.binds, carried, np.maximum(carried, brought))
    roots = np.diff(graph.dst_ptr) == 0
    return Lags(arrivals.phi_ns + carried, np.where(roots, arrivals.gap_ns, 0))


def without(graph: Graph, delays: Lags, nodes: BoolArray) -> Lags:
    """The same delays with the gap and lag in front of `nodes` gone (an activity removed with its gap)."""
    return Lags(
        np.where(nodes[graph.dst], 0, delays.edge_ns),
        np.where(nodes, 0, delays.origin_ns),
    )


def unwaited(delays: Lags, edges: BoolArray) -> Lags:
    """The same delays, but for `edges`, over which nothing waits any more; each target needs another edge."""
    return Lags(np.where(edges, -FAR, delays.edge_ns), delays.origin_ns)


def forward(graph: Graph, dur_ns: Int64Array, delays: Lags) -> Int64Array:
    """Earliest start of every node under the given durations and delays, in ns."""
    if chosen() == COMPILED:
        from stepcrit.kernels import _schedule  # noqa: PLC0415 - where it is built

        start = graph.t0_ns + delays.origin_ns
        _schedule.forward(graph.src, graph.dst_ptr, dur_ns, delays.edge_ns, start)
        return start
    runs = runs_of(graph)
    found = starts_by_runs(graph, runs, dur_ns, delays.edge_ns, delays.origin_ns) if runs else None
    return forward_by_node(graph, dur_ns, delays) if found is None else found


def forward_by_node(graph: Graph, dur_ns: Int64Array, delays: Lags) -> Int64Array:
    """The same, node by node: the definition."""
    src, lag = graph.src.tolist(), delays.edge_ns.tolist()
    ptr = graph.dst_ptr.tolist()
    start = (graph.t0_ns + delays.origin_ns).tolist()
    finish = [0] * len(graph)
    low = 0
    for v, dur in enumerate(dur_ns.tolist()):
        at, high = start[v], ptr[v + 1]
        if low < high:
            at = finish[src[low]] + lag[low]
            for e in range(low + 1, high):  # most nodes have one or two predecessors
                arrival = finish[src[e]] + lag[e]
                if arrival > at:  # noqa: PLR1730 - max() would cost as much as the rest of the loop
                    at = arrival
            start[v] = at
            low = high
        finish[v] = at + dur
    return np.array(start, np.int64)


def check_replay(graph: Graph, delays: Lags) -> None:
    """Assert that unchanged durations give back every observed start.

    Raises:
        InternalError: they do not; a dependency rule or the numbering is wrong.
    """
    off = forward(graph, graph.dur_ns, delays) - graph.start_ns
    if off.any():
        node = int(np.flatnonzero(off)[0])
        raise InternalError(
            f"replay of the unchanged schedule is {int(off[node])} ns off at node {node} of {len(graph)}"
        )


def latest_finish(graph: Graph, dur_ns: Int64Array, delays: Lags, sinks: Mapping[int, int]) -> Int64Array:
    """Latest finish of every node that keeps each sink at its given time; FAR where no sink is reached.

    Args:
        graph: the graph.
        dur_ns: durations, per node.
        delays: from `lags`.
        sinks: node -> the time it must have finished by, in ns.
    """
    # Nodes after the last sink cannot reach one: skipping them keeps a step's pass at the step's size.
    last = max(sinks, default=-1)
    late = np.full(len(graph), FAR, np.int64)
    late[list(sinks)] = list(sinks.values())
    if chosen() != COMPILED:
        return latest_by_node(graph, dur_ns, delays, (late, last))
    from stepcrit.kernels import _schedule  # noqa: PLC0415 - where it is built

    _schedule.latest(graph.src, graph.dst_ptr, dur_ns, delays.edge_ns, late, last, int(FAR))
    return late


def latest_by_node(
    graph: Graph, dur_ns: Int64Array, delays: Lags, sinks: tuple[Int64Array, int]
) -> Int64Array:
    """The same, node by node: the definition; of each sink's time, FAR elsewhere, and the last sink."""
    late, (src, lag) = sinks[0].tolist(), (graph.src.tolist(), delays.edge_ns.tolist())
    ptr, dur, far = graph.dst_ptr.tolist(), dur_ns.tolist(), int(FAR)
    for v in range(sinks[1], -1, -1):
        if late[v] == far:
            continue
        latest_start = late[v] - dur[v]
        for e in range(ptr[v], ptr[v + 1]):
            by = latest_start - lag[e]
            u = src[e]
            late[u] = min(late[u], by)
    return np.array(late, np.int64)


def _floor_of_edges(graph: Graph, floors: Floors) -> Int64Array:
    """The class lag of each edge."""
    table = np.zeros(max(EdgeKind) + 1, np.int64)
    for kind, ns in floors.items():
        table[kind] = ns
    return table[graph.edge_kind]
