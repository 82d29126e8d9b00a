"""Runner-up chains.

Question: where two chains meet on the path, how far behind is the next one, so how much does speeding
          up the first buy before the second takes over?
Method:   at every join, the binding predecessor and the next by arrival (methods B.8).
Needs:    a step on its schedule graph.
Keeps:    a margin is never negative; a tie has margin 0.
"""

from __future__ import annotations

from msgspec import Struct

from stepcrit.graph.path import PieceKind
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.model.graph import EdgeKind, Evidence


class Join(Struct, frozen=True):
    """A place on the path where more than one predecessor arrives.

    Attributes:
        at_ns: when the joined activity starts.
        node: the joined activity (a node).
        binding: the predecessor on the path (a node); runner_up: the next one to arrive (a node).
        margin_ns: how much later the binding one arrived.
        binding_kind, runner_up_kind: kinds of the two edges.
        runner_up_evidence: evidence of the runner-up's edge.
    """

    at_ns: int
    node: int
    binding: int
    runner_up: int
    margin_ns: int
    binding_kind: EdgeKind
    runner_up_kind: EdgeKind
    runner_up_evidence: Evidence


def analyze(view: StepGraph) -> tuple[Join, ...]:
    """Every join on the critical path, closest runner-up first."""
    path = view.path
    joins = []
    for kind, node, edge in zip(path.kind.tolist(), path.node.tolist(), path.edge.tolist(), strict=True):
        if kind == PieceKind.NODE and edge >= 0 and view.built.graph.start_ns[node] > view.step.start_ns:
            join = _join(view, node, edge)
            if join is not None:
                joins.append(join)
    return tuple(sorted(joins, key=lambda j: (j.margin_ns, j.at_ns)))


def _join(view: StepGraph, node: int, binding: int) -> Join | None:
    """The join at one node, if it has another predecessor."""
    graph, arrivals = view.built.graph, view.built.arrivals
    edges = [e for e in range(int(graph.dst_ptr[node]), int(graph.dst_ptr[node + 1])) if e != binding]
    if not edges:
        return None
    arrival = {e: int(graph.end_ns[graph.src[e]] + arrivals.phi_ns[e]) for e in (*edges, binding)}
    second = max(edges, key=lambda e: (arrival[e], -int(graph.evidence[e]), -e))
    return Join(
        int(graph.start_ns[node]),
        node,
        int(graph.src[binding]),
        int(graph.src[second]),
        arrival[binding] - arrival[second],
        EdgeKind(int(graph.edge_kind[binding])),
        EdgeKind(int(graph.edge_kind[second])),
        Evidence(int(graph.evidence[second])),
    )
