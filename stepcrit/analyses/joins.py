"""Runner-up chains.

Question: where two chains meet on the path, how far behind is the next one, so how much does speeding
          up the first buy before the second takes over?
Method:   at every join, the binding predecessor and the next by arrival (methods B.8).
Needs:    a step on its schedule graph.
Keeps:    a margin is never negative; a tie has margin 0.
"""

from __future__ import annotations

import numpy as np
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
    path, graph, phi = view.path, view.built.graph, view.built.arrivals.phi_ns
    joined = (path.kind == PieceKind.NODE) & (path.edge >= 0)
    joined &= graph.start_ns[path.node] > view.step.start_ns
    node, binding = path.node[joined], path.edge[joined]
    count = graph.dst_ptr[node + 1] - graph.dst_ptr[node]
    which = np.repeat(np.arange(len(node)), count)
    edge = np.arange(len(which)) + np.repeat(graph.dst_ptr[node] - (np.cumsum(count) - count), count)
    other = edge != binding[which]
    which, edge = which[other], edge[other]
    arrival = graph.end_ns[graph.src] + phi
    order = np.lexsort((-edge, -graph.evidence[edge], arrival[edge], which))
    last = order[np.flatnonzero(np.diff(which[order], append=-1))]  # of each node the next to arrive
    node, binding, second = node[which[last]], binding[which[last]], edge[last]
    columns = (
        graph.start_ns[node],
        node,
        graph.src[binding],
        graph.src[second],
        arrival[binding] - arrival[second],
        *(graph.edge_kind[edges] for edges in (binding, second)),
        graph.evidence[second],
    )
    rows = zip(*(column.tolist() for column in columns), strict=True)
    joins = [
        Join(at, v, u, w, margin, EdgeKind(first), EdgeKind(then), Evidence(known))
        for at, v, u, w, margin, first, then, known in rows
    ]
    return tuple(sorted(joins, key=lambda j: (j.margin_ns, j.at_ns)))
