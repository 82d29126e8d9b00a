"""Invariant 2: the critical path partitions its window, whole or cut, and is one of the longest chains."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stepcrit.errors import InternalError
from stepcrit.graph.path import MANY_PATHS, Path, PieceKind, binding_of, chain, critical_path
from stepcrit.graph.schedule import Arrivals
from stepcrit.model.graph import EdgeKind, Evidence
from tests.properties.oracle import Oracle
from tests.properties.schedules import PROPERTY, Built, Link, Node, Schedule, schedules

Piece = tuple[int, int, int, int]

# queue 0  [0 5..6]              floors make both arrive at 10: 0 by its floor of 4, 1 by its end
# queue 1        [1 6.....10]
# queue 2                    [2 10..13]
EQUALLY_LATE = Schedule(
    5,
    (Node(0, 5, 1), Node(1, 6, 4), Node(2, 10, 3)),
    tuple(Link(u, 2, EdgeKind.STREAM, Evidence.ORDER) for u in (0, 1)),
    (2,),
    ((EdgeKind.STREAM, 4),),
    "join",
)


@PROPERTY
@given(schedules())
def test_pieces_touch_and_cover_the_window(schedule: Schedule) -> None:
    built = Built(schedule)
    path = critical_path(built.graph, built.arrivals, built.sinks)
    edges = [(int(a), int(b)) for a, b in zip(path.start_ns, path.end_ns, strict=True)]
    assert all(a <= b for a, b in edges)
    assert all(left[1] == right[0] for left, right in pairwise(edges))
    assert not edges or (edges[0][0], edges[-1][1]) == (schedule.t0, built.finish)
    assert sum(b - a for a, b in edges) == built.finish - schedule.t0


@PROPERTY
@given(schedules())
@example(EQUALLY_LATE)
def test_path_is_the_walk_back_by_evidence_then_length_then_number(schedule: Schedule) -> None:
    built, oracle = Built(schedule), Oracle(schedule)
    path = critical_path(built.graph, built.arrivals, built.sinks)
    way = walk(built, oracle)
    assert _own_pieces(built, path) == pieces(oracle, way, schedule.t0)
    assert oracle.t0 + oracle.length(_to_origin(oracle, way)) == oracle.finish


@pytest.mark.parametrize(
    ("evidence", "durations", "chosen"),
    [
        ((Evidence.ORDER, Evidence.ORDER), (1, 4), 1),  # the longer
        ((Evidence.ID, Evidence.ORDER), (1, 4), 0),  # better evidence comes before length
        ((Evidence.ORDER, Evidence.ORDER), (4, 4), 0),  # the smaller number
    ],
)
def test_of_two_equally_late_the_better_known_then_the_longer_then_the_earlier_is_on_the_path(
    evidence: tuple[Evidence, Evidence], durations: tuple[int, int], chosen: int
) -> None:
    nodes = tuple(Node(i, start, dur) for i, (start, dur) in enumerate(zip((5, 6), durations, strict=True)))
    links = tuple(Link(u, 2, EdgeKind.STREAM, how) for u, how in enumerate(evidence))
    built = Built(replace(EQUALLY_LATE, nodes=(*nodes, EQUALLY_LATE.nodes[2]), links=links))
    path = critical_path(built.graph, built.arrivals, built.sinks)
    assert [built.own_number[v] for v in path.node[path.kind == PieceKind.NODE]] == [chosen, 2]


@PROPERTY
@given(schedules())
def test_every_piece_names_the_edge_that_bound_its_activity(schedule: Schedule) -> None:
    built, oracle = Built(schedule), Oracle(schedule)
    path, way = critical_path(built.graph, built.arrivals, built.sinks), walk(built, oracle)
    before: dict[int, int | None] = dict(zip(way[1:], way, strict=False))
    for node, edge in zip(path.node.tolist(), path.edge.tolist(), strict=True):
        found = None if edge < 0 else int(built.own_number[built.graph.src[edge]])
        own = int(built.own_number[node])
        if own != way[0]:
            assert (found, edge < 0 or built.graph.dst[edge]) == (before[own], node)
        else:
            assert found is None or oracle.binds[found, own]


@PROPERTY
@given(schedules())
def test_path_count_is_the_number_of_longest_chains(schedule: Schedule) -> None:
    built, oracle = Built(schedule), Oracle(schedule)
    path = critical_path(built.graph, built.arrivals, built.sinks)
    assert path.path_count == len({oracle.cut(c, schedule.t0) for c in oracle.critical})


@PROPERTY
@given(schedules())
def test_ties_are_the_alternatives_passed_over_on_the_way(schedule: Schedule) -> None:
    built, oracle = Built(schedule), Oracle(schedule)
    path = critical_path(built.graph, built.arrivals, built.sinks)
    assert path.ties == ties(oracle, walk(built, oracle), schedule.t0)


@PROPERTY
@given(schedules())
def test_path_cut_at_any_instant_is_the_tail_of_the_whole(schedule: Schedule) -> None:
    built, oracle = Built(schedule), Oracle(schedule)
    way = walk(built, oracle)
    whole = rows(critical_path(built.graph, built.arrivals, built.sinks))
    for since in range(schedule.t0, built.finish + 1):
        cut = critical_path(built.graph, built.arrivals, built.sinks, since_ns=since)
        tail = [(kind, node, edge, max(a, since), b) for kind, node, edge, a, b in whole if b > since]
        assert rows(cut) == tail
        assert sum(b - a for *_, a, b in tail) == built.finish - since
        assert cut.path_count == len({oracle.cut(c, since) for c in oracle.critical})
        assert cut.ties == ties(oracle, oracle.cut(way, since), since)


@PROPERTY
@given(schedules(), st.integers(0, 3))
def test_window_that_opens_after_the_boundary_is_empty(schedule: Schedule, late: int) -> None:
    built = Built(schedule)
    path = critical_path(built.graph, built.arrivals, built.sinks, since_ns=built.finish + late)
    assert len(path) == 0


@PROPERTY
@given(schedules(), st.integers(0))
def test_chain_to_any_activity_partitions_the_time_up_to_its_end(schedule: Schedule, pick: int) -> None:
    built, oracle = Built(schedule), Oracle(schedule)
    for v, node in enumerate(schedule.nodes):
        since = schedule.t0 + pick % (node.end - schedule.t0 + 1)
        found = chain(built.graph, built.arrivals, int(built.number[v]), since_ns=since)
        assert _own_pieces(built, found) == pieces(oracle, walk(built, oracle, v), since)
        assert sum((found.end_ns - found.start_ns).tolist()) == node.end - since


@PROPERTY
@given(schedules())
def test_binding_edge_counts_the_others_of_the_same_instant(schedule: Schedule) -> None:
    built, oracle = Built(schedule), Oracle(schedule)
    for v in range(oracle.count):
        binding, node = binding_of(built.graph, built.arrivals), int(built.number[v])
        edge, others = binding.edge[node], binding.others[node]
        binding = [u for u in oracle.preds[v] if oracle.binds[u, v]]
        assert (edge >= 0, others) == (bool(binding), max(0, len(binding) - 1))


@PROPERTY
@given(schedules())
def test_gap_that_reaches_too_far_back_is_refused(schedule: Schedule) -> None:
    """A gap longer than the wait overlaps the activity before it, so the pieces do not partition."""
    built = Built(schedule)
    found = built.arrivals
    wrong = Arrivals(found.phi_ns, found.gap_ns + 1, found.binds)
    way = walk(built, Oracle(schedule))
    if len(way) > 1 and schedule.nodes[way[-2]].end > schedule.t0:
        with pytest.raises(InternalError, match="does not partition its window"):
            critical_path(built.graph, wrong, built.sinks)


@pytest.mark.parametrize(("joins", "count"), [(3, 8), (19, 2**19), (20, MANY_PATHS), (25, MANY_PATHS)])
def test_path_count_stops_at_many(joins: int, count: int) -> None:
    built = _diamonds(joins)
    path = critical_path(built.graph, built.arrivals, [len(built.graph) - 1])
    assert (path.path_count, path.ties) == (count, joins)


def test_path_count_stops_at_many_over_all_sinks_together() -> None:
    """Two sinks of 2**19 paths each have more than a million together."""
    built = _diamonds(20)
    path = critical_path(built.graph, built.arrivals, [len(built.graph) - 3, len(built.graph) - 2])
    assert path.path_count == MANY_PATHS


def _diamonds(joins: int) -> Built:
    """A chain that forks and joins again and again, both branches equally long."""
    nodes, links = [Node(0, 0, 1)], []
    for i in range(joins):
        first = len(nodes)
        nodes += [Node(lane, 1 + 2 * i, 1) for lane in (0, 1)] + [Node(0, 2 + 2 * i, 1)]
        ends = [(first - 1, first), (first - 1, first + 1), (first, first + 2), (first + 1, first + 2)]
        links += [Link(u, v, EdgeKind.EVENT, Evidence.SYNC) for u, v in ends]
    return Built(Schedule(0, tuple(nodes), tuple(links), (len(nodes) - 1,), (), "join"))


def rows(path: Path) -> list[tuple[int, ...]]:
    """A path as plain tuples."""
    return list(
        zip(*(c.tolist() for c in (path.kind, path.node, path.edge, path.start_ns, path.end_ns)), strict=True)
    )


def walk(built: Built, oracle: Oracle, last: int | None = None) -> tuple[int, ...]:
    """What the tie rules choose back from `last`, until an activity that began with the window."""
    v = int(built.own_number[_last(built)]) if last is None else last
    way = [v]
    while oracle.nodes[v].start > oracle.t0 and oracle.preds[v]:
        binding = [u for u in oracle.preds[v] if oracle.binds[u, v]]
        v = min(binding, key=lambda u: (oracle.edges[u, way[0]][0], -oracle.nodes[u].dur, built.number[u]))
        way.insert(0, v)
    return tuple(way)


def pieces(oracle: Oracle, way: tuple[int, ...], since: int) -> list[Piece]:
    """Activities, lags and gaps of a way laid end to end."""
    found: list[Piece] = []
    at = oracle.t0
    for u, v in zip((None, *way), way, strict=False):
        if u is not None or oracle.nodes[v].start > oracle.t0:
            lag = oracle.phi[u, v] if u is not None else 0
            found.append((PieceKind.LAG, v, at, at + lag))
            found.append((PieceKind.GAP, v, at + lag, at + lag + oracle.gap[v]))
            at += lag + oracle.gap[v]
        found.append((PieceKind.NODE, v, at, at + oracle.nodes[v].dur))
        at += oracle.nodes[v].dur
    found = [(kind, v, max(a, since), b) for kind, v, a, b in found]
    return [p for p in found if p[3] > since and (p[3] > p[2] or p[0] == PieceKind.NODE)]


def _to_origin(oracle: Oracle, way: tuple[int, ...]) -> tuple[int, ...]:
    """A way that stopped at the origin, with any of the zero-length activities that lie before it there."""
    while oracle.preds[way[0]]:
        way = (next(u for u in oracle.preds[way[0]] if oracle.binds[u, way[0]]), *way)
    return way


def ties(oracle: Oracle, way: tuple[int, ...], since: int) -> int:
    """Alternatives at every join that the window holds, and among the sinks."""
    late = [v for v in way if oracle.nodes[v].start > since]
    joins = sum(max(0, sum(oracle.binds[u, v] for u in oracle.preds[v]) - 1) for v in late)
    return joins + sum(oracle.nodes[v].end == oracle.finish for v in oracle.sinks) - 1


def _last(built: Built) -> int:
    """The sink that ends last, the longest of those, the earliest numbered of those."""
    ends, dur = built.graph.end_ns, built.graph.dur_ns
    return min(built.sinks, key=lambda v: (-int(ends[v]), -int(dur[v]), v))


def _own_pieces(built: Built, path: Path) -> list[Piece]:
    owners = np.array(built.own_number)[path.node].tolist() if len(path) else []
    return list(zip(path.kind.tolist(), owners, path.start_ns.tolist(), path.end_ns.tolist(), strict=True))
