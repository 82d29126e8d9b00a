"""Activities in parts: what changes when an activity that its successor overlaps takes another time."""

from __future__ import annotations

import numpy as np

from stepcrit.model.arrays import Int64Array
from stepcrit.model.graph import Graph


def keep_tails(graph: Graph, dur_ns: Int64Array) -> Int64Array:
    """The same time per activity, with the change in its head: the overlapped tail keeps its length.

    A dependent launch lets the successor begin a fixed while before the end of its predecessor, however
    long that one takes; an activity shorter than its tail was begins together with its successor.

    Args:
        graph: the graph; activities in parts have `part` 1 and on.
        dur_ns: new durations, one per node.

    Returns:
        Durations per node; the sum over the parts of each activity is as given.
    """
    nodes = np.flatnonzero(graph.part > 0)
    changed = nodes[dur_ns[nodes] != graph.dur_ns[nodes]]
    if not changed.size:
        return dur_ns
    wanted = np.zeros(int(graph.row[nodes].max()) + 1, np.bool_)
    wanted[graph.row[changed]] = True
    nodes = nodes[wanted[graph.row[nodes]]]
    nodes = nodes[np.lexsort((graph.part[nodes], graph.row[nodes]))]
    after = dur_ns.copy()
    for parts in np.split(nodes, np.flatnonzero(np.diff(graph.row[nodes])) + 1):
        left = int(dur_ns[parts].sum())
        for node in parts[:0:-1].tolist():
            after[node] = min(int(graph.dur_ns[node]), left)
            left -= int(after[node])
        after[parts[0]] = left
    return after
