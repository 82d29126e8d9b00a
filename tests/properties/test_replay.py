"""Invariants 1 and 7: the observed schedule comes back, and the forward pass is the longest chain."""

from __future__ import annotations

from collections.abc import Callable

import networkx as nx
import numpy as np
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from stepcrit.errors import InternalError
from stepcrit.graph.schedule import Lags, check_replay, forward, latest_finish, without
from tests.properties.oracle import Oracle, replay
from tests.properties.schedules import PROPERTY, Built, Schedule, per_node, schedules

RARE: dict[str, Callable[[Schedule, Oracle], bool]] = {
    "several critical paths": lambda _, o: len(set(o.critical)) > 1,
    "a join whose gap the other predecessor does not carry": lambda s, o: (
        s.policy == "edge" and any(o.gap[v] and not binds for (_, v), binds in o.binds.items())
    ),
    "a lag and a gap at once": lambda _, o: any(o.phi[p] and o.gap[p[1]] for p in o.edges),
    "a zero-length activity at the boundary": lambda s, o: any(
        s.nodes[v].dur == 0 and s.nodes[v].end == o.finish for v in s.sinks
    ),
    "an activity that no sink needs": lambda _, o: {v for c in o.chains for v in c} != set(range(o.count)),
    "an origin that waits": lambda _, o: any(o.origin),
    "a pair linked twice": lambda s, o: len(o.edges) < len(s.links),
}


@pytest.mark.parametrize("shape", RARE)
def test_strategy_reaches_the_rare_shapes(shape: str) -> None:
    search = settings(PROPERTY, max_examples=1000, phases=[Phase.generate])
    find(schedules(), lambda s: RARE[shape](s, Oracle(s)), settings=search)


@PROPERTY
@given(schedules())
def test_unchanged_durations_give_back_every_observed_start(schedule: Schedule) -> None:
    built = Built(schedule)
    starts = forward(built.graph, built.graph.dur_ns, built.lags)
    assert built.own(starts) == [node.start for node in schedule.nodes]
    check_replay(built.graph, built.lags)


@PROPERTY
@given(schedules())
def test_arrivals_gaps_and_lags_are_those_of_the_definition(schedule: Schedule) -> None:
    built, oracle = Built(schedule), Oracle(schedule)
    assert built.own_edges(built.arrivals.phi_ns) == oracle.phi
    assert built.own(built.arrivals.gap_ns) == oracle.gap
    assert built.own_edges(built.arrivals.binds) == oracle.binds
    assert built.own_edges(built.lags.edge_ns) == oracle.lag
    assert built.own(built.lags.origin_ns) == oracle.origin


@PROPERTY
@given(schedules(), st.integers(0), st.sampled_from((-1, 1)))
def test_check_refuses_any_delay_that_moves_a_start(schedule: Schedule, pick: int, by: int) -> None:
    built = Built(schedule)
    edge_ns, origin_ns = built.lags.edge_ns.copy(), built.lags.origin_ns.copy()
    v = pick % len(schedule.nodes)
    into = np.flatnonzero(built.graph.dst == v)
    edge_ns[into] += by
    origin_ns[v] += 0 if into.size else by
    with pytest.raises(InternalError, match=f"{by} ns off at node {v} "):
        check_replay(built.graph, Lags(edge_ns, origin_ns))


@PROPERTY
@given(schedules(), per_node(st.integers(0, 12)))
def test_replay_is_the_longest_chain_under_any_durations(schedule: Schedule, drawn: list[int]) -> None:
    built, oracle = Built(schedule), Oracle(schedule)
    dur = drawn[: oracle.count]
    starts = built.own(forward(built.graph, built.at(dur), built.lags))
    for v, start in enumerate(starts):
        assert start + dur[v] == schedule.t0 + max(oracle.length(c, dur) for c in oracle.chains_to(v))


@PROPERTY
@given(schedules(), per_node(st.booleans()))
def test_removal_takes_the_gap_and_lag_in_front_along(schedule: Schedule, gone: list[bool]) -> None:
    built, oracle = Built(schedule), Oracle(schedule)
    removed = {v for v in range(oracle.count) if gone[v]}
    dur = [0 if v in removed else d for v, d in enumerate(schedule.durations)]
    starts = built.own(
        forward(built.graph, built.at(dur), without(built.graph, built.lags, built.mask(removed)))
    )
    lag = {pair: 0 if pair[1] in removed else ns for pair, ns in oracle.lag.items()}
    origin = [0 if v in removed else ns for v, ns in enumerate(oracle.origin)]
    assert max(starts[v] + dur[v] for v in schedule.sinks) == oracle.finish_after(dur, lag, origin)


@PROPERTY
@given(schedules(), per_node(st.integers(0, 5)))
def test_longer_durations_never_start_anything_earlier(schedule: Schedule, extra: list[int]) -> None:
    built = Built(schedule)
    longer = built.graph.dur_ns + built.at(extra[: len(schedule.nodes)])
    assert (forward(built.graph, longer, built.lags) >= built.graph.start_ns).all()


@PROPERTY
@given(schedules(max_nodes=30), per_node(st.integers(0, 12), 30))
def test_large_schedules_replay_like_the_recursion(schedule: Schedule, drawn: list[int]) -> None:
    built, dur = Built(schedule), drawn[: len(schedule.nodes)]
    starts = built.own(forward(built.graph, built.at(dur), built.lags))
    assert starts == replay(schedule, Oracle(schedule), dur)


@PROPERTY
@given(schedules(), per_node(st.integers(0, 12)))
def test_finish_is_the_longest_path_that_networkx_finds(schedule: Schedule, drawn: list[int]) -> None:
    built = Built(schedule)
    dur = built.at(drawn[: len(schedule.nodes)])
    finish = forward(built.graph, dur, built.lags) + dur
    view = _expanded(built, dur.tolist())
    found = nx.dag_longest_path(view, weight="ns")
    assert found[0] == "origin"
    assert nx.path_weight(view, found, "ns") - 1 == max(finish[v] for v in built.sinks) - schedule.t0


@PROPERTY
@given(schedules())
def test_path_that_networkx_finds_is_a_critical_chain(schedule: Schedule) -> None:
    built, oracle = Built(schedule), Oracle(schedule)
    view = _expanded(built, built.graph.dur_ns.tolist())
    found = nx.dag_longest_path(view, weight="ns")
    chain = tuple(int(built.own_number[node[0]]) for node in found[1:-1] if node[1] == "start")
    assert chain in oracle.critical


@PROPERTY
@given(schedules(), st.lists(st.integers(0, 9), min_size=3, max_size=3))
def test_latest_finish_keeps_every_sink_at_its_own_time(schedule: Schedule, spare: list[int]) -> None:
    built, oracle = Built(schedule), Oracle(schedule)
    by = {v: schedule.nodes[v].end + more for v, more in zip(schedule.sinks, spare, strict=False)}
    late = built.own(
        latest_finish(
            built.graph,
            built.graph.dur_ns,
            built.lags,
            {int(built.number[v]): ns for v, ns in by.items()},
        )
    )
    for v in range(oracle.count):
        ways = [(s, chain) for s in by for chain in oracle.chains_between(v, s)]
        assert late[v] == min((by[s] - oracle.tail(chain) for s, chain in ways), default=2**62)


def _expanded(built: Built, dur: list[int]) -> nx.DiGraph:
    """Origin, two nodes per activity, and an end behind the sinks; only what the end needs."""
    graph, view = built.graph, nx.MultiDiGraph()
    for v, ns in enumerate(dur):
        view.add_edge((v, "start"), (v, "end"), ns=ns)
        if graph.dst_ptr[v] == graph.dst_ptr[v + 1]:
            view.add_edge("origin", (v, "start"), ns=int(built.lags.origin_ns[v]))
    for u, v, ns in zip(graph.src.tolist(), graph.dst.tolist(), built.lags.edge_ns.tolist(), strict=True):
        view.add_edge((u, "end"), (v, "start"), ns=ns)
    for v in built.sinks:
        view.add_edge((v, "end"), "end", ns=1)  # so that a path of no length at all is still found
    simple = nx.DiGraph()
    for a, b in set(view.edges()):
        simple.add_edge(a, b, ns=max(data["ns"] for data in view[a][b].values()))
    return simple.subgraph(nx.ancestors(simple, "end") | {"end"})
