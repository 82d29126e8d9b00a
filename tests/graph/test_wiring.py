"""Queue order left out of a step: what each activity still follows."""

from __future__ import annotations

import numpy as np

from stepcrit.graph.assemble import assemble
from stepcrit.graph.engines import replayed
from stepcrit.graph.schedule import lags, observe
from stepcrit.graph.wiring import as_recorded, without_queue_order
from stepcrit.model.graph import EdgeKind, Evidence, Graph
from tests.properties.schedules import Link, Node, Schedule, columns


def graph_of(nodes: tuple[Node, ...], pairs: tuple[tuple[int, int], ...]) -> Graph:
    links = tuple(Link(u, v, EdgeKind.STREAM, Evidence.ORDER) for u, v in pairs)
    graph, number = assemble(*columns(Schedule(0, nodes, links, (0,), (), "join")), t0_ns=0, notes={})
    assert number.tolist() == list(range(len(nodes)))  # the cases are told in order
    return graph


def freed(graph: Graph, since: int) -> list[int]:
    delays = lags(graph, observe(graph), "join")
    found: list[int] = replayed(without_queue_order(graph, graph.start_ns >= since, since))(
        graph.dur_ns, delays
    ).tolist()
    return found


def test_activity_that_nothing_holds_starts_with_the_step() -> None:
    graph = graph_of((Node(0, 0, 5), Node(1, 10, 10), Node(1, 20, 10)), ((1, 2),))
    assert freed(graph, 10) == [5, 20, 20]


def test_activity_follows_what_ran_before_the_step_however_far_back_its_queue_goes() -> None:
    graph = graph_of((Node(0, 0, 12), Node(0, 12, 5), Node(0, 20, 10)), ((0, 1), (1, 2)))
    assert freed(graph, 12) == [12, 17, 22]


def test_of_two_that_ran_before_the_step_the_later_end_counts() -> None:
    """The last one follows both of the earlier ones, through one that starts with the step and by itself."""
    graph = graph_of((Node(0, 0, 4), Node(0, 0, 9), Node(0, 12, 5), Node(0, 17, 1)), ((0, 2), (1, 3), (2, 3)))
    assert freed(graph, 12)[3] == 10
    mirrored = graph_of(
        (Node(0, 0, 4), Node(0, 0, 9), Node(0, 12, 5), Node(0, 17, 1)), ((1, 2), (0, 3), (2, 3))
    )
    assert freed(mirrored, 12)[3] == 10


def test_recorded_wiring_translates_nothing() -> None:
    graph = graph_of((Node(0, 0, 5), Node(0, 7, 3)), ((0, 1),))
    delays = lags(graph, observe(graph), "join")
    dur, same = as_recorded(graph).prepare(np.array([6, 3]), delays)
    assert dur.tolist() == [6, 3]
    assert same.edge_ns.tolist() == delays.edge_ns.tolist() == [2]
    assert same.origin_ns.tolist() == delays.origin_ns.tolist()
