"""The forward operator of every backward one is already before it in the graph: E7's data edge adds nothing.

The trace's own `fwdbwd` arrows are the oracle; the graph is built without them.
"""

import os
from collections import defaultdict
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from stepcrit.model.graph import NodeKind
from stepcrit.session import Trace, load

CORPUS = Path(os.environ.get("STEPCRIT_CORPUS") or "/nonexistent")
pytestmark = pytest.mark.skipif(
    not (CORPUS / "catalog.tsv").exists(),
    reason="the shared corpus of real traces is not here: set STEPCRIT_CORPUS",
)

WITH_ARROWS = {
    "hta-a100-nccl-meta/nccl_data.json.gz": 543,
    "hta-mi250-ddp/mi250_minitoy_train_ROCm6_2_kineto.json.gz": 4,
    "hta-v100-ns/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz": 905,
    "tl-mi300x-norm/normalization_layer_test.json.gz": 51,
    "tl-mi300x-resnet-ddp-r0/resnet_act_checkpoint.json.gz": 213,
}


def arrows(trace: Trace) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """(lane, ns) of both ends of every arrow from a forward operator to its backward."""
    flows, cats = trace.raw.flows, trace.raw.events.cats
    found: dict[int, dict[int, tuple[int, int]]] = defaultdict(dict)
    columns = (flows.cat, flows.id, flows.is_start, flows.lane, flows.ts_ns)
    for cat, number, is_start, lane, ts in zip(*(column.tolist() for column in columns), strict=True):
        if cats[cat] in ("fwdbwd", "forward_backward"):
            found[number][is_start] = (lane, ts)
    return [(ends[1], ends[0]) for ends in found.values() if len(ends) == 2]


@pytest.mark.parametrize("name", WITH_ARROWS)
def test_every_backward_operator_is_after_its_forward_one(name: str) -> None:
    trace = load(CORPUS / name)
    graph = trace.view().built.graph
    edges = nx.DiGraph(zip(graph.src.tolist(), graph.dst.tolist(), strict=True))

    def node_at(lane: int, ts: int) -> int:
        """The host node of a thread that begins last before an instant."""
        nodes = np.flatnonzero((graph.kind < NodeKind.KERNEL) & (graph.lane == lane) & (graph.start_ns <= ts))
        return int(nodes[graph.start_ns[nodes].argmax()])

    after: dict[int, set[int]] = defaultdict(set)
    pairs = arrows(trace)
    for forward, backward in pairs:
        after[node_at(*forward)].add(node_at(*backward))
    assert len(pairs) == WITH_ARROWS[name]
    for forward, backwards in after.items():
        assert backwards <= nx.descendants(edges, forward)
