"""The stretches of time that a selector can take: device nodes, and host nodes divided among their owners."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from stepcrit.graph.build import TraceGraph
from stepcrit.graph.threads import shares
from stepcrit.model.arrays import Int64Array
from stepcrit.model.graph import NodeKind
from stepcrit.model.links import Links


class Stretches(Struct, frozen=True, eq=False):
    """Stretches of time, each on one node and of one owner; together they are all nodes.

    Attributes:
        node: node of the graph.
        row: event row that the time belongs to, -1 for untracked time.
        length_ns: how much of the node.
        piece: the row, or for untracked time a number below 0 that tells one piece of it from others.
        on_device: whether the node is device work.
    """

    node: Int64Array
    row: Int64Array
    length_ns: Int64Array
    piece: Int64Array
    on_device: np.typing.NDArray[np.bool_]


def stretches_of(links: Links, built: TraceGraph) -> Stretches:
    """All stretches of the whole capture."""
    graph, table = built.graph, shares(links.pieces, built.threads)
    device = np.flatnonzero(graph.kind >= NodeKind.KERNEL)
    rows = graph.row[device].astype(np.int64)
    host = np.where(table.owner >= 0, table.owner, -1 - table.piece)
    return Stretches(
        np.concatenate((device, built.number[table.node])),
        np.concatenate((rows, table.owner)),
        np.concatenate((graph.dur_ns[device], table.length_ns)),
        np.concatenate((rows, host)),
        np.arange(len(device) + len(host)) < len(device),
    )
