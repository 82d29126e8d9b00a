"""The neighbourhood of one operation.

Question: what did this operation wait for, which edge bound it, how sure is that, and who waits for it?
Method:   the edges in and out of its nodes, with arrivals and the room each leaves (methods B.6).
Needs:    a step on its schedule graph, and a name that occurs in it.
Keeps:    exactly the binding predecessors have room 0.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from stepcrit.errors import UsageError, quoted
from stepcrit.graph.selector import Selector, matching
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.link.patterns import near_names
from stepcrit.model.arrays import Int64Array
from stepcrit.model.events import DEVICE_KINDS
from stepcrit.model.graph import EdgeKind, Evidence


class Neighbour(Struct, frozen=True):
    """One edge at a node: the other end, why, how sure, and how much room it leaves in ns."""

    node: int
    kind: EdgeKind
    evidence: Evidence
    room_ns: int
    binds: bool


class Around(Struct, frozen=True):
    """One node of the operation with its edges; slack -1 when the boundary does not need it."""

    node: int
    gap_ns: int
    slack_ns: int
    drag_ns: int
    waits_for: tuple[Neighbour, ...]
    waited_by: tuple[Neighbour, ...]


def analyze(view: StepGraph, pattern: str, *, limit: int = 3) -> tuple[tuple[Around, ...], int]:
    """The neighbourhoods of the operation's most critical occurrences in the window, and how many there are.

    Args:
        view: the step.
        pattern: an exact name or a glob; of a kernel, an operator or a runtime call.
        limit: how many occurrences to show: least slack first, then largest drag.

    Raises:
        UsageError: nothing in the step has that name; the error offers near ones.
    """
    nodes = _nodes_named(view, pattern)
    slack, drag = view.slack.total_ns, view.drag.drag_ns
    order = sorted(nodes.tolist(), key=lambda v: (slack[v] < 0, int(slack[v]), -int(drag[v]), v))
    return tuple(_around(view, v) for v in order[:limit]), len(nodes)


def _nodes_named(view: StepGraph, pattern: str) -> Int64Array:
    """Nodes in the window that stand for the name: those it owns, and device work that it launched."""
    events, links, graph = view.trace.events, view.links, view.built.graph
    wanted = matching(events.names, Selector("name", pattern))
    inside = np.flatnonzero(view.inside & (graph.row >= 0))
    own = inside[wanted[events.name[graph.row[inside]]]]
    device = inside[np.isin(events.kind[graph.row[inside]], np.array(DEVICE_KINDS, np.int8))]
    ops = links.op[graph.row[device]]
    launched = device[(ops >= 0) & wanted[events.name[ops]]]
    nodes = np.union1d(own, launched)
    if nodes.size:
        return nodes
    if wanted.any():
        raise UsageError(
            f"{quoted(pattern)} is in this trace, but nothing of it runs in {view.step.label}",
            do="choose another --step",
        )
    near = ", ".join(near_names(pattern, events.names)) or "none"
    raise UsageError(f"nothing in this trace is called {quoted(pattern)}", do=f"near names: {near}")


def _around(view: StepGraph, node: int) -> Around:
    graph, arrivals = view.built.graph, view.built.arrivals
    incoming = range(int(graph.dst_ptr[node]), int(graph.dst_ptr[node + 1]))
    outgoing = np.flatnonzero(graph.src == node).tolist()
    ready = int(graph.start_ns[node] - arrivals.gap_ns[node])
    before = [_neighbour(view, e, int(graph.src[e]), ready - _arrival(view, e)) for e in incoming]
    after = [
        _neighbour(view, e, int(graph.dst[e]), _ready(view, int(graph.dst[e])) - _arrival(view, e))
        for e in outgoing
    ]
    return Around(
        node,
        int(arrivals.gap_ns[node]),
        int(view.slack.total_ns[node]),
        int(view.drag.drag_ns[node]),
        tuple(sorted(before, key=lambda n: (n.room_ns, n.node))),
        tuple(sorted(after, key=lambda n: (n.room_ns, n.node))),
    )


def _neighbour(view: StepGraph, edge: int, other: int, room: int) -> Neighbour:
    graph = view.built.graph
    kind, evidence = EdgeKind(int(graph.edge_kind[edge])), Evidence(int(graph.evidence[edge]))
    return Neighbour(other, kind, evidence, room, bool(view.built.arrivals.binds[edge]))


def _arrival(view: StepGraph, edge: int) -> int:
    """When the source of an edge let its target go."""
    graph = view.built.graph
    return int(graph.end_ns[graph.src[edge]] + view.built.arrivals.phi_ns[edge])


def _ready(view: StepGraph, node: int) -> int:
    return int(view.built.graph.start_ns[node] - view.built.arrivals.gap_ns[node])
