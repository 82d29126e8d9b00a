"""Loose nodes and edges become one graph whatever their order; a contradiction is counted or refused."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepcrit.errors import UnusableInputError
from stepcrit.graph.assemble import assemble
from stepcrit.graph.drag import drag, slack
from stepcrit.graph.path import critical_path
from stepcrit.model.graph import EdgeKind, Evidence, Graph
from tests.properties.schedules import PROPERTY, Built, Link, Node, Schedule, columns, schedules, shuffled

BROKEN = "cycle broken at its worst edge"
EVIDENCE = st.sampled_from(list(Evidence))
SIZES = st.integers(1, 5)


@PROPERTY
@given(schedules(), st.data())
def test_order_of_nodes_and_edges_changes_no_number(schedule: Schedule, data: st.DataObject) -> None:
    place = data.draw(st.permutations(range(len(schedule.nodes))))
    links = data.draw(st.permutations(schedule.links))
    one = Built(schedule)
    other = Built(shuffled(Schedule(**{**_fields(schedule), "links": tuple(links)}), place))
    assert _edges(one, range(len(place))) == _edges(other, np.argsort(place).tolist())
    assert _numbers(one) == [_numbers(other)[place[v]] for v in range(len(place))]
    assert _count(one) == _count(other)


@PROPERTY
@given(schedules())
def test_columns_survive_numbering(schedule: Schedule) -> None:
    built = Built(schedule)
    graph = built.graph
    found = zip(built.own(graph.lane), built.own(graph.start_ns), built.own(graph.dur_ns), strict=True)
    assert [Node(*row) for row in found] == list(schedule.nodes)
    assert built.own(graph.row) == list(range(len(schedule.nodes)))
    assert graph.notes == {}
    _check_sorted(graph)


@PROPERTY
@given(schedules())
def test_numbers_follow_start_then_end_then_place_where_edges_allow(schedule: Schedule) -> None:
    built = Built(schedule)
    order = sorted(
        range(len(schedule.nodes)), key=lambda v: (schedule.nodes[v].start, schedule.nodes[v].end, v)
    )
    rank = {v: i for i, v in enumerate(order)}
    if all(rank[link.src] < rank[link.dst] for link in schedule.links):
        assert [built.own_number[i] for i in range(len(order))] == order


@PROPERTY
@given(st.permutations(range(7)), st.data())
def test_zero_lengths_of_one_instant_are_numbered_along_their_edges(
    order: list[int], data: st.DataObject
) -> None:
    """Nodes 0..6 are instants at time 5 whose edges run in any direction; 7 and 8 lie around them, 9..11 beside."""
    forward = [(order[i], order[j]) for j in range(7) for i in range(j)]
    chosen = data.draw(st.lists(st.sampled_from(forward), unique=True, max_size=12))
    ends = [*chosen, *((7, v) for v in range(7)), *((v, 8) for v in range(7))]
    ends += [(9, 10), (10, 11)]
    beside = (Node(9, 0, 2), Node(9, 2, 6), Node(9, 8, 1))
    nodes = (*(Node(v, 5, 0) for v in range(7)), Node(7, 0, 5), Node(8, 5, 3), *beside)
    schedule = _schedule(nodes, [Link(u, v, EdgeKind.SYNC, Evidence.SYNC) for u, v in ends])
    built = Built(schedule)
    _check_sorted(built.graph)
    assert set(built.own_edges(built.graph.evidence)) == set(ends)
    assert built.graph.notes == {}


@PROPERTY
@given(
    st.lists(EVIDENCE, min_size=1, max_size=5),
    st.permutations(range(7)),
    st.integers(0, 6),
    st.integers(0, 6),
)
def test_cycle_loses_one_edge_of_its_worst_evidence_and_counts_it(
    ring: list[Evidence], place: list[int], before: int, after: int
) -> None:
    """A ring of instants, with good edges into it and out of it that must all stay."""
    size = len(ring)
    links = _ring(range(size), ring)
    worst_outside = [
        Link(5, before % size, EdgeKind.EVENT, Evidence.ASSUMED),
        Link(after % size, 6, EdgeKind.EVENT, Evidence.ASSUMED),
    ]
    nodes = (*(Node(v, 5, 0) for v in range(5)), Node(5, 0, 5), Node(6, 5, 2))
    schedule = shuffled(_schedule(nodes, [*worst_outside, *links]), place)
    given_nodes, given_edges = columns(schedule)
    notes = {"dropped before": 3}
    graph, number = assemble(given_nodes, given_edges, t0_ns=0, notes=notes)
    back = np.argsort(number)
    left = set(zip(back[graph.src].tolist(), back[graph.dst].tolist(), strict=True))
    lost = [link for link in schedule.links if (link.src, link.dst) not in left]
    assert [link.evidence for link in lost] == [max(ring)]
    assert {lost[0].src, lost[0].dst} <= set(place[:size])
    assert graph.notes == {"dropped before": 3, BROKEN: 1}
    assert notes == {"dropped before": 3}
    _check_sorted(graph)


@PROPERTY
@given(SIZES, SIZES, st.permutations(range(10)), st.booleans())
def test_two_separate_cycles_are_the_inputs_fault(one: int, two: int, place: list[int], joined: bool) -> None:  # noqa: FBT001
    links = [*_ring(range(one), [Evidence.ORDER] * one), *_ring(range(5, 5 + two), [Evidence.ORDER] * two)]
    links += [Link(0, 5, EdgeKind.EVENT, Evidence.ASSUMED)] if joined else []
    schedule = shuffled(_schedule(tuple(Node(v, 5, 0) for v in range(10)), links), place)
    with pytest.raises(UnusableInputError, match="in more than one place"):
        Built(schedule)


@PROPERTY
@given(st.integers(2, 5), st.permutations(range(6)))
def test_two_cycles_through_one_worst_edge_lose_that_edge_only(size: int, place: list[int]) -> None:
    """0 -> 1 is common to both ways back from 1 to 0, and of the worst evidence."""
    back = [*range(1, size + 1), 0]
    links = [Link(0, 1, EdgeKind.EVENT, Evidence.TIMING)]
    links += [Link(u, v, EdgeKind.EVENT, Evidence.ORDER) for u, v in {*pairwise(back), (1, 0)}]
    schedule = shuffled(_schedule(tuple(Node(v, 5, 0) for v in range(6)), links), place)
    built = Built(schedule)
    assert built.graph.notes == {BROKEN: 1}
    assert set(built.own_edges(built.graph.src)) == {(e.src, e.dst) for e in schedule.links[1:]}


@PROPERTY
@given(st.lists(st.tuples(st.sampled_from(list(EdgeKind)), EVIDENCE), min_size=1, max_size=6))
def test_repeated_edge_keeps_its_best_evidence_then_its_smaller_kind(
    reasons: list[tuple[EdgeKind, Evidence]],
) -> None:
    schedule = _schedule((Node(0, 0, 2), Node(1, 3, 1)), [Link(0, 1, *reason) for reason in reasons])
    graph = Built(schedule).graph
    evidence, kind = min((evidence, kind) for kind, evidence in reasons)
    assert (graph.evidence.tolist(), graph.edge_kind.tolist()) == ([evidence], [kind])


def test_graph_without_nodes_or_edges_is_a_graph() -> None:
    graph, number = assemble(*columns(_schedule((), [])), t0_ns=0, notes={})
    assert (len(graph), len(number), graph.dst_ptr.tolist()) == (0, 0, [0])


def test_every_column_is_read_only() -> None:
    graph = Built(
        _schedule((Node(0, 0, 2), Node(0, 2, 1)), [Link(0, 1, EdgeKind.STREAM, Evidence.ORDER)])
    ).graph
    held = (getattr(graph, name) for name in Graph.__struct_fields__)
    assert not any(column.flags.writeable for column in held if isinstance(column, np.ndarray))


def _schedule(nodes: tuple[Node, ...], links: list[Link]) -> Schedule:
    return Schedule(0, nodes, tuple(links), (len(nodes) - 1,), (), "join")


def _fields(schedule: Schedule) -> dict[str, object]:
    return {name: getattr(schedule, name) for name in Schedule.__dataclass_fields__}


def _ring(nodes: range, evidence: list[Evidence]) -> list[Link]:
    """Each node before the next, and the last before the first."""
    following = [*nodes[1:], nodes[0]]
    return [Link(u, v, EdgeKind.SYNC, e) for u, v, e in zip(nodes, following, evidence, strict=True)]


def _numbers(built: Built) -> list[tuple[int, ...]]:
    """Gap, slack and drag of every activity, by the test's place."""
    room = slack(built.graph, built.lags, built.boundary)
    drags = drag(built.graph, built.lags, built.arrivals.gap_ns, built.boundary)
    found = (
        built.arrivals.gap_ns,
        room.total_ns,
        room.free_ns,
        drags.drag_ns,
        drags.gap_drag_ns,
        drags.avoid_ns,
    )
    return list(zip(*(built.own(values) for values in found), strict=True))


def _count(built: Built) -> tuple[int, int]:
    path = critical_path(built.graph, built.arrivals, built.sinks)
    return path.path_count, int(path.end_ns[-1]) if len(path) else built.finish


def _edges(built: Built, names: range | list[int]) -> dict[tuple[int, int], tuple[int, int]]:
    kinds, evidence = built.own_edges(built.graph.edge_kind), built.own_edges(built.graph.evidence)
    return {(names[u], names[v]): (kind, evidence[u, v]) for (u, v), kind in kinds.items()}


def _check_sorted(graph: Graph) -> None:
    """Edges ascend, sorted by (dst, src) without repeats; dst_ptr delimits them; no start precedes another's."""
    assert (np.diff(graph.start_ns) >= 0).all()
    pairs = list(zip(graph.dst.tolist(), graph.src.tolist(), strict=True))
    assert all(src < dst for dst, src in pairs)
    assert pairs == sorted(set(pairs))
    assert graph.dst_ptr.tolist() == [sum(dst < v for dst, _ in pairs) for v in range(len(graph) + 1)]
