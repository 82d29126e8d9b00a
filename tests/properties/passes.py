"""Random graphs for the passes over them: any lanes, any edges, any durations and delays, replayable or not."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import numpy as np

from stepcrit.graph.schedule import FAR, Lags
from stepcrit.model.arrays import Int64Array
from stepcrit.model.graph import Graph


@dataclass(frozen=True, slots=True)
class Shape:
    """What a random graph is like.

    Attributes:
        lanes: how many lanes there are.
        chained: share of nodes that wait for the node before on their lane.
        crossing: how many edges from anywhere each node has at most.
        unwaited: share of edges that nothing waits over (`schedule.unwaited`), each node's first one apart.
        longest: durations and delays go up to this, in ns; delays may be as much below 0.
    """

    lanes: int
    chained: float
    crossing: int
    unwaited: float = 0.0
    longest: int = 9


SHAPES = {
    "one lane in a row": Shape(1, 1.0, 0),
    "one lane, loose": Shape(1, 0.5, 2),
    "thread and queue": Shape(2, 1.0, 1),
    "few waits": Shape(3, 0.97, 0),
    "many lanes": Shape(20, 0.8, 2),
    "no lane in order": Shape(4, 0.0, 3),
    "everything waits for everything": Shape(3, 1.0, 12),
    "nothing waits": Shape(5, 0.0, 0),
    "some waits gone": Shape(3, 0.9, 2, unwaited=0.3),
    "long times": Shape(3, 0.9, 2, longest=2**40),
    "all lengths 0": Shape(2, 0.9, 2, longest=0),
}


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """A graph, durations, and delays."""

    graph: Graph
    dur_ns: Int64Array
    delays: Lags


def drawn(shape: Shape, count: int, seed: int) -> Drawn:
    """A graph of so many nodes."""
    rng = Random(seed)
    lane = [rng.randrange(shape.lanes) for _ in range(count)]
    pairs: set[tuple[int, int]] = set()
    last: dict[int, int] = {}
    for v in range(count):
        if lane[v] in last and rng.random() < shape.chained:
            pairs.add((last[lane[v]], v))
        last[lane[v]] = v
        if v:
            pairs.update((rng.randrange(v), v) for _ in range(rng.randint(0, shape.crossing)))
    edges = sorted(pairs, key=lambda pair: (pair[1], pair[0]))
    src, dst = (np.array([pair[i] for pair in edges], np.int64) for i in (0, 1))
    dur = np.array([rng.randint(0, shape.longest) for _ in range(count)], np.int64)
    # something always is waited for: the first edge of each node stays
    gone = [
        rng.random() < shape.unwaited and i > 0 and edges[i - 1][1] == v for i, (_, v) in enumerate(edges)
    ]
    lags = [-int(FAR) if unwaited else rng.randint(-shape.longest, shape.longest) for unwaited in gone]
    edge_ns = np.array(lags, np.int64)
    origin = np.array([rng.randint(0, shape.longest) for _ in range(count)], np.int64)
    return Drawn(graph_of(lane, src, dst), dur, Lags(edge_ns, origin))


def graph_of(lane: list[int], src: Int64Array, dst: Int64Array) -> Graph:
    """A graph of these edges, sorted by (dst, src); its times are not what passes look at."""
    n, none = len(lane), np.zeros(len(lane), np.int64)
    kinds = np.zeros(len(src), np.int8)
    ptr = np.searchsorted(dst, np.arange(n + 1)).astype(np.int64)
    return Graph(
        np.array(lane, np.int32), none, none, none.astype(np.int8), none, none.astype(np.int32),
        src, dst, kinds, kinds, ptr, 5, {},
    )  # fmt: skip
