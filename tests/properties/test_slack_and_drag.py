"""Invariants 3, 4 and 8: slack and drag against every path written out, and against brute-force removal."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stepcrit.graph.drag import UNNEEDED, drag, slack
from stepcrit.graph.schedule import forward
from tests.properties.oracle import Oracle, replay
from tests.properties.schedules import PROPERTY, Built, Schedule, schedules


@PROPERTY
@given(schedules())
def test_total_slack_is_the_least_room_over_all_paths(schedule: Schedule) -> None:
    built, oracle = Built(schedule), Oracle(schedule)
    found = built.own(slack(built.graph, built.lags, built.boundary).total_ns)
    for v, ns in enumerate(found):
        through = [oracle.t0 + oracle.length(chain) for chain in oracle.chains if v in chain]
        assert ns == (oracle.finish - max(through) if through else UNNEEDED)


@PROPERTY
@given(schedules(), st.lists(st.integers(0, 9), min_size=3, max_size=3))
def test_slack_against_each_sinks_own_time_is_the_least_room(schedule: Schedule, spare: list[int]) -> None:
    built, oracle = Built(schedule), Oracle(schedule)
    by = {v: schedule.nodes[v].end + more for v, more in zip(schedule.sinks, spare, strict=False)}
    found = slack(built.graph, built.lags, {int(built.number[v]): ns for v, ns in by.items()})
    for v, ns in enumerate(built.own(found.total_ns)):
        rooms = [
            by[s] - oracle.tail(c) - oracle.nodes[v].end for s in by for c in oracle.chains_between(v, s)
        ]
        assert ns == min(rooms, default=UNNEEDED)
    assert built.own(found.free_ns) == _free(oracle, by)


@PROPERTY
@given(schedules())
def test_free_slack_is_the_room_before_the_next_needed_start(schedule: Schedule) -> None:
    built, oracle = Built(schedule), Oracle(schedule)
    found = slack(built.graph, built.lags, built.boundary)
    assert built.own(found.free_ns) == _free(oracle, dict.fromkeys(schedule.sinks, oracle.finish))


@PROPERTY
@given(schedules())
def test_growth_by_free_slack_moves_no_needed_start(schedule: Schedule) -> None:
    built, oracle = Built(schedule), Oracle(schedule)
    found = slack(built.graph, built.lags, built.boundary)
    needed = {v for chain in oracle.chains for v in chain}
    for v in needed:
        dur = schedule.durations
        dur[v] += int(found.free_ns[built.number[v]])
        starts = built.own(forward(built.graph, built.at(dur), built.lags))
        assert all(starts[w] == oracle.nodes[w].start for w in needed)


@PROPERTY
@given(schedules())
def test_growth_by_total_slack_is_free_and_one_more_costs_one(schedule: Schedule) -> None:
    built = Built(schedule)
    found = built.own(slack(built.graph, built.lags, built.boundary).total_ns)
    for v, ns in enumerate(found):
        room = 1000 if ns == UNNEEDED else ns
        assert {_finish(built, v, grown) for grown in range(min(room, 8) + 1)} == {built.finish}
        assert _finish(built, v, room) == built.finish
        assert _finish(built, v, room + 1) == built.finish + (ns != UNNEEDED)


@PROPERTY
@given(schedules())
def test_drag_stays_within_the_duration_and_is_zero_where_there_is_slack(schedule: Schedule) -> None:
    built = Built(schedule)
    room = slack(built.graph, built.lags, built.boundary).total_ns
    found = drag(built.graph, built.lags, built.arrivals.gap_ns, built.boundary)
    assert (found.drag_ns >= 0).all()
    assert (found.drag_ns <= built.graph.dur_ns).all()
    assert (found.gap_drag_ns >= 0).all()
    assert (found.gap_drag_ns <= built.arrivals.gap_ns).all()
    assert not found.drag_ns[room != 0].any()
    assert not found.gap_drag_ns[room != 0].any()


@PROPERTY
@given(schedules())
def test_drag_is_what_removing_each_activity_saves(schedule: Schedule) -> None:
    built, oracle = Built(schedule), Oracle(schedule)
    found = built.own(drag(built.graph, built.lags, built.arrivals.gap_ns, built.boundary).drag_ns)
    for v, ns in enumerate(found):
        dur = schedule.durations
        dur[v] = 0
        assert ns == oracle.finish - oracle.finish_after(dur)


@PROPERTY
@given(schedules())
def test_gap_drag_is_what_removing_each_gap_saves(schedule: Schedule) -> None:
    built, oracle = Built(schedule), Oracle(schedule)
    found = built.own(drag(built.graph, built.lags, built.arrivals.gap_ns, built.boundary).gap_drag_ns)
    for v, ns in enumerate(found):
        assert ns == oracle.finish - oracle.finish_after(None, *oracle.without_gap(v))


@PROPERTY
@given(schedules())
def test_avoidance_is_the_longest_path_around_each_activity(schedule: Schedule) -> None:
    built, oracle = Built(schedule), Oracle(schedule)
    found = built.own(drag(built.graph, built.lags, built.arrivals.gap_ns, built.boundary).avoid_ns)
    for v, ns in enumerate(found):
        around = [oracle.t0 + oracle.length(chain) for chain in oracle.chains if v not in chain]
        assert ns == max(around, default=schedule.t0)


@PROPERTY
@given(schedules())
def test_least_slack_of_what_runs_beside_it_caps_the_drag(schedule: Schedule) -> None:
    """On the path, drag is the smaller of the duration and the lead over every path around the activity."""
    built, oracle = Built(schedule), Oracle(schedule)
    found = built.own(drag(built.graph, built.lags, built.arrivals.gap_ns, built.boundary).drag_ns)
    for v in {v for chain in oracle.critical for v in chain}:
        around = [oracle.t0 + oracle.length(chain) for chain in oracle.chains if v not in chain]
        lead = oracle.finish - max(around, default=schedule.t0)
        assert found[v] == min(oracle.nodes[v].dur, lead)


@PROPERTY
@given(schedules())
def test_drag_needs_no_more_of_the_sinks_than_their_own_finishing_times(schedule: Schedule) -> None:
    """The last of them is the boundary; the others may finish whenever they like until then."""
    built = Built(schedule)
    own = {v: int(built.graph.end_ns[v]) for v in built.sinks}
    one = drag(built.graph, built.lags, built.arrivals.gap_ns, own)
    other = drag(built.graph, built.lags, built.arrivals.gap_ns, built.boundary)
    for name in ("drag_ns", "gap_drag_ns", "avoid_ns"):
        assert built.own(getattr(one, name)) == built.own(getattr(other, name))


@PROPERTY
@given(schedules(max_nodes=30))
def test_drag_in_large_schedules_is_what_removal_saves(schedule: Schedule) -> None:
    built, oracle = Built(schedule), Oracle(schedule)
    found = built.own(drag(built.graph, built.lags, built.arrivals.gap_ns, built.boundary).drag_ns)
    for v, ns in enumerate(found):
        dur = schedule.durations
        dur[v] = 0
        starts = replay(schedule, oracle, dur)
        assert ns == oracle.finish - max(starts[s] + dur[s] for s in schedule.sinks)


def _finish(built: Built, v: int, grown: int) -> int:
    """The boundary with one activity longer."""
    dur = built.schedule.durations
    dur[v] += grown
    at = built.at(dur)
    ends = forward(built.graph, at, built.lags) + at
    return max(int(ends[s]) for s in built.sinks)


def _free(oracle: Oracle, by: dict[int, int]) -> list[int]:
    """B.8: min over successors that a sink needs (start - lag) - end; for a sink its time - end."""
    needed = {v for chain in oracle.chains for v in chain}
    found = []
    for v in range(oracle.count):
        rooms = [oracle.nodes[w].start - oracle.lag[v, w] for u, w in oracle.edges if u == v and w in needed]
        rooms += [by[v]] if v in by else []
        found.append(min(rooms) - oracle.nodes[v].end if v in needed else UNNEEDED)
    return found
