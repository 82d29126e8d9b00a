"""The launch point of a device activity, read back from the graph: when its thread had let it go."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from stepcrit.graph.build import TraceGraph
from stepcrit.model.arrays import NONE, Int64Array
from stepcrit.model.graph import EdgeKind


class LaunchPoints(Struct, frozen=True, eq=False):
    """Per node of the graph: the host node it was launched from (-1: none) and when that ended, in ns."""

    node: Int64Array
    at_ns: Int64Array


def launch_points(built: TraceGraph) -> LaunchPoints:
    """Read the launch edges off the graph."""
    graph = built.graph
    edges = np.flatnonzero(graph.edge_kind == EdgeKind.LAUNCH)
    node = np.full(len(graph), NONE, np.int64)
    at = np.full(len(graph), NONE, np.int64)
    node[graph.dst[edges]] = graph.src[edges]
    at[graph.dst[edges]] = graph.end_ns[graph.src[edges]]
    return LaunchPoints(node, at)
