"""When within its call a launch is submitted: in no trace, and of matter once the call takes another time.

The launch point is where the call lets its activity go at the latest (methods B.4). A shorter call may
have submitted at its very end, and then the activity comes as much sooner; or before, and then the
activity comes as it did. Both are kept: the end of the answer that tells more, and the one that tells less.
How long before is bounded: from submission to start takes no longer than a normal delay.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from stepcrit.graph.schedule import GapPolicy
from stepcrit.model.arrays import Int64Array
from stepcrit.model.graph import EdgeKind, Graph
from stepcrit.model.links import Links

LONGEST_NS = 20_000
"""A longer delay is no normal delay of a launch (methods B.7): a call that took longer submitted after its begin."""

Grown = tuple[Int64Array, Int64Array, Int64Array]
"""(node, event row, ns) by which stretches of time grew, as three columns."""


class LaunchCalls(Struct, frozen=True, eq=False):
    """The launch edges of a graph, and for each its call's stretch right before the launch point.

    Attributes:
        edge: the launch edges.
        stretch: node and event row of the distinct stretches, as one ascending number.
        of_edge: index into `stretch` for each of the edges.
        wide: what `stretch` counts rows with.
    """

    edge: Int64Array
    stretch: Int64Array
    of_edge: Int64Array
    wide: int

    def longer_ns(self, grown: Grown) -> Int64Array:
        """By how much the call of each of the edges takes longer, in ns, when stretches have grown."""
        own = grown[0] * self.wide + grown[1]
        at = np.searchsorted(self.stretch, own)
        known = at < len(self.stretch)
        known[known] = self.stretch[at[known]] == own[known]
        more = np.zeros(len(self.stretch), np.int64)
        np.add.at(more, at[known], grown[2][known])
        return more[self.of_edge]

    def delays(self, longer_ns: Int64Array, edge_ns: Int64Array, policy: GapPolicy) -> Int64Array:
        """Delays per edge of the graph, in ns, when launch calls take another time.

        Args:
            longer_ns: from `longer_ns`.
            edge_ns: the delays before.
            policy: under "join" an activity does not start sooner for its own call being shorter; under
                "edge" it does, and does not start later for the call being longer.
        """
        changed = np.flatnonzero(longer_ns)
        if not changed.size:
            return edge_ns
        by = longer_ns[changed]
        kept = np.maximum(-by, 0) if policy == "join" else -np.maximum(by, 0)
        kept = np.clip(kept, -LONGEST_NS, LONGEST_NS)
        after, edge = edge_ns.copy(), self.edge[changed]
        after[edge] = np.maximum(after[edge] + kept, 0)
        return after


def launch_calls(graph: Graph, links: Links) -> LaunchCalls:
    """The launch edges of a graph with their calls."""
    wide = len(links.launch) + 1
    edge = np.flatnonzero(graph.edge_kind == EdgeKind.LAUNCH)
    call = links.launch[graph.row[graph.dst[edge]]]
    stretch, of_edge = np.unique(graph.src[edge] * wide + call, return_inverse=True)
    return LaunchCalls(edge, stretch, of_edge, wide)
