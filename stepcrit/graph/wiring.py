"""The activities of a graph under other dependencies: some edges left out, others added.

Changes and delays are always told in terms of the graph as recorded; a wiring translates them, and
what comes out, so that every engine takes and gives the same columns.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepcrit.graph.schedule import Lags
from stepcrit.intervals import ascending
from stepcrit.model.arrays import NONE, BoolArray, Int64Array
from stepcrit.model.graph import EdgeKind, Evidence, Graph


class Wiring(Struct, frozen=True, eq=False):
    """A graph with other edges.

    Attributes:
        graph: the activities, perhaps numbered anew, under the other edges.
        number: per activity of the recorded graph, its number in `graph`.
        edge_of: per edge of `graph`, the recorded edge that it is, -1 for an added one (of delay 0).
        since_ns: per node of `graph`, the instant from which one that lost its last edge may start,
            after the recorded graph's origin; 0 for the others.
    """

    graph: Graph
    number: Int64Array
    edge_of: Int64Array
    since_ns: Int64Array

    def prepare(self, dur_ns: Int64Array, delays: Lags) -> tuple[Int64Array, Lags]:
        """Durations and delays of the recorded graph, in ns, as columns of this one."""
        own = np.empty_like(self.number)
        own[self.number] = np.arange(len(self.number))
        known = self.edge_of >= 0
        edge_ns = np.zeros(len(known), np.int64)
        edge_ns[known] = delays.edge_ns[self.edge_of[known]]
        return dur_ns[own], Lags(edge_ns, delays.origin_ns[own] + self.since_ns)


def as_recorded(graph: Graph) -> Wiring:
    """The recorded edges themselves."""
    count = len(graph)
    return Wiring(graph, np.arange(count), np.arange(len(graph.src)), np.zeros(count, np.int64))


def without_queue_order(graph: Graph, inside: BoolArray, since_ns: int) -> Wiring:
    """Without the order of queues among the nodes `inside`; each still follows what ran before these.

    An activity that nothing else holds may start at `since_ns`. The parts of one activity keep their order.
    A gap that came with the order goes with it: in another order another activity would have come first.
    """
    order = graph.edge_kind == EdgeKind.STREAM
    dropped = order & inside[graph.dst]
    before = _entered_from(graph, inside)
    late = ascending(graph.dst[dropped])
    entry = np.array([before.get(v, NONE) for v in late.tolist()], np.int64)
    added = entry >= 0
    src = np.concatenate((graph.src[~dropped], entry[added]))
    dst = np.concatenate((graph.dst[~dropped], late[added]))
    edge_of = np.concatenate((np.flatnonzero(~dropped), np.full(int(added.sum()), NONE, np.int64)))
    sort = np.lexsort((src, dst))
    src, dst, edge_of = src[sort], dst[sort], edge_of[sort]
    wired = replace(
        graph,
        src=src,
        dst=dst,
        edge_kind=np.where(edge_of >= 0, graph.edge_kind[edge_of], EdgeKind.STREAM).astype(np.int8),
        evidence=np.where(edge_of >= 0, graph.evidence[edge_of], Evidence.ORDER).astype(np.int8),
        dst_ptr=np.searchsorted(dst, np.arange(len(graph) + 1)),
    )
    bare = np.zeros(len(graph), np.bool_)
    bare[late] = np.diff(wired.dst_ptr)[late] == 0
    since = np.where(bare, max(since_ns - graph.t0_ns, 0), 0)
    return Wiring(wired, np.arange(len(graph)), edge_of, since)


def _entered_from(graph: Graph, inside: BoolArray) -> dict[int, int]:
    """For each node inside, of what came before these in its queue's order, the node that ended last."""
    end = graph.end_ns
    found: dict[int, int] = {}
    chain = np.flatnonzero(np.isin(graph.edge_kind, (EdgeKind.STREAM, EdgeKind.SPLIT)) & inside[graph.dst])
    for u, v in zip(graph.src[chain].tolist(), graph.dst[chain].tolist(), strict=True):
        before = found.get(u, NONE) if inside[u] else u
        if before >= 0 and (v not in found or end[before] > end[found[v]]):
            found[v] = before
    return found
