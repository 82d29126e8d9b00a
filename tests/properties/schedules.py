"""Random schedules, and what the product makes of them.

A schedule is grown activity by activity: each starts when its queue and the predecessors that were
drawn for it have ended, plus a gap that is mostly zero. So ties, zero lengths and joins with an idle
predecessor are common, and no edge ever contradicts the times.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from stepcrit.graph.assemble import Edges, Nodes, assemble
from stepcrit.graph.schedule import GapPolicy, lags, observe
from stepcrit.model.arrays import Int64Array
from stepcrit.model.graph import EdgeKind, Evidence

PROPERTY = settings(
    max_examples=250,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],  # a busy CI machine is no bug
)
MAX_NODES = 8


@dataclass(frozen=True, slots=True)
class Node:
    """One activity."""

    lane: int
    start: int
    dur: int

    @property
    def end(self) -> int:
        """Observed end."""
        return self.start + self.dur


@dataclass(frozen=True, slots=True)
class Link:
    """One dependency; the same pair may be linked twice, for two reasons."""

    src: int
    dst: int
    kind: EdgeKind
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Schedule:
    """All that a test knows before the product sees it; activities by their place in `nodes`."""

    t0: int
    nodes: tuple[Node, ...]
    links: tuple[Link, ...]
    sinks: tuple[int, ...]
    floors: tuple[tuple[EdgeKind, int], ...]
    policy: GapPolicy

    @property
    def durations(self) -> list[int]:
        """Observed durations."""
        return [node.dur for node in self.nodes]


class Built:
    """The product's graph of a schedule; `at` and `own` translate between its numbers and the test's."""

    def __init__(self, schedule: Schedule) -> None:
        nodes, edges = columns(schedule)
        self.schedule = schedule
        self.graph, self.number = assemble(nodes, edges, t0_ns=schedule.t0, notes={})
        self.arrivals = observe(self.graph, dict(schedule.floors))
        self.lags = lags(self.graph, self.arrivals, schedule.policy)
        self.sinks = [int(self.number[v]) for v in schedule.sinks]
        self.finish = max(int(self.graph.end_ns[v]) for v in self.sinks)
        self.boundary = dict.fromkeys(self.sinks, self.finish)
        self.own_number = np.argsort(self.number)

    def at(self, values: list[int]) -> Int64Array:
        """Values per activity, in the product's order."""
        return np.array(values, np.int64)[self.own_number]

    def mask(self, chosen: set[int]) -> np.typing.NDArray[np.bool_]:
        """The product's mask of some activities."""
        return np.array([v in chosen for v in self.own_number.tolist()], np.bool_)

    def own(self, values: np.typing.NDArray[Any]) -> list[int]:
        """Values per product node, in the test's order."""
        return [int(value) for value in values[self.number]]

    def own_edges(self, values: np.typing.NDArray[Any]) -> dict[tuple[int, int], int]:
        """Values per product edge, by the test's pairs."""
        src, dst = self.own_number[self.graph.src].tolist(), self.own_number[self.graph.dst].tolist()
        return {(u, v): int(value) for u, v, value in zip(src, dst, values, strict=True)}


def columns(schedule: Schedule) -> tuple[Nodes, Edges]:
    """A schedule as loose columns."""
    nodes, links = schedule.nodes, schedule.links
    count = len(nodes)
    return (
        Nodes(
            np.array([n.lane for n in nodes], np.int32),
            np.array([n.start for n in nodes], np.int64),
            np.array([n.dur for n in nodes], np.int64),
            np.zeros(count, np.int8),
            np.arange(count, dtype=np.int64),
            np.zeros(count, np.int32),
        ),
        Edges(
            np.array([e.src for e in links], np.int64),
            np.array([e.dst for e in links], np.int64),
            np.array([e.kind for e in links], np.int8),
            np.array([e.evidence for e in links], np.int8),
        ),
    )


_KINDS = st.sampled_from(list(EdgeKind))
_EVIDENCE = st.sampled_from(list(Evidence))
_GAPS = st.sampled_from((0, 0, 0, 1, 2, 5))
_FLOORS = st.dictionaries(_KINDS, st.integers(0, 4), max_size=5)


@st.composite
def schedules(draw: st.DrawFn, max_nodes: int = MAX_NODES, unit: int = 1) -> Schedule:
    """Up to three queues of activities whose durations are multiples of `unit`."""
    reasons = st.lists(st.tuples(st.integers(0, max_nodes - 1), _KINDS, _EVIDENCE), max_size=3)
    activity = st.tuples(st.integers(0, 2), st.integers(0, 6), _GAPS, reasons)
    drawn = draw(st.lists(activity, min_size=1, max_size=max_nodes))
    t0 = draw(st.sampled_from((0, -7, 1000)))
    nodes: list[Node] = []
    links: list[Link] = []
    last: dict[int, int] = {}
    for v, (lane, dur, gap, why) in enumerate(drawn):
        mine = [Link(u % v, v, kind, evidence) for u, kind, evidence in why if v]
        if lane in last:
            mine.append(Link(last[lane], v, EdgeKind.STREAM, Evidence.ORDER))
        start = max([t0, *(nodes[link.src].end for link in mine)]) + gap
        nodes.append(Node(lane, start, dur * unit))
        links += mine
        last[lane] = v
    sinks = draw(st.sets(st.integers(0, len(nodes) - 1), min_size=1, max_size=3))
    floors = tuple(draw(_FLOORS).items())
    schedule = Schedule(
        t0, tuple(nodes), tuple(links), tuple(sinks), floors, draw(st.sampled_from(("join", "edge")))
    )
    return shuffled(schedule, draw(st.permutations(range(len(nodes)))))


def shuffled(schedule: Schedule, place: list[int]) -> Schedule:
    """The same schedule with activity v at place[v]."""
    nodes = list(schedule.nodes)
    for v, node in enumerate(schedule.nodes):
        nodes[place[v]] = node
    return replace(
        schedule,
        nodes=tuple(nodes),
        links=tuple(replace(e, src=place[e.src], dst=place[e.dst]) for e in schedule.links),
        sinks=tuple(place[v] for v in schedule.sinks),
    )


def per_node(values: st.SearchStrategy[Any], max_nodes: int = MAX_NODES) -> st.SearchStrategy[list[Any]]:
    """One value for each activity a schedule could have; tests take as many as there are."""
    return st.lists(values, min_size=max_nodes, max_size=max_nodes)
