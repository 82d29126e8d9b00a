"""The graph for users of networkx: a view of the edge table, and networkx's only door.

A MultiDiGraph, because two reasons to wait for the same activity are normal and a DiGraph would keep
one of them. Nothing in stepcrit computes on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepcrit.graph.stepgraph import StepGraph
from stepcrit.model.graph import EdgeKind, Evidence, NodeKind

if TYPE_CHECKING:  # importing networkx takes a quarter of a second: only who asks for it pays
    import networkx as nx


def to_networkx(view: StepGraph) -> nx.MultiDiGraph[int]:
    """The schedule graph of the whole capture.

    Returns:
        Nodes numbered in topological order with `name`, `kind`, `lane`, `start_ns`, `dur_ns`, `gap_ns`,
        `part`; edges with `kind`, `evidence`, `lag_ns` (under the conservative gap policy) and `binds`.
    """
    import networkx as nx  # noqa: PLC0415 - see above

    graph, arrivals, events = view.built.graph, view.built.arrivals, view.trace.events
    result: nx.MultiDiGraph[int] = nx.MultiDiGraph(t0_ns=graph.t0_ns)
    for v in range(len(graph)):
        result.add_node(
            v,
            name=view.node_name(v),
            kind=NodeKind(int(graph.kind[v])).name.lower(),
            lane=events.lanes[int(graph.lane[v])].words,
            start_ns=int(graph.start_ns[v]),
            dur_ns=int(graph.dur_ns[v]),
            gap_ns=int(arrivals.gap_ns[v]),
            part=int(graph.part[v]),
        )
    lag = view.delays("join").edge_ns
    for e in range(len(graph.src)):
        result.add_edge(
            int(graph.src[e]),
            int(graph.dst[e]),
            kind=EdgeKind(int(graph.edge_kind[e])).name.lower(),
            evidence=Evidence(int(graph.evidence[e])).name.lower(),
            lag_ns=int(lag[e]),
            binds=bool(arrivals.binds[e]),
        )
    return result
