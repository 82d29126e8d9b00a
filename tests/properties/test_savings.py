"""Invariants 5 and 6: what shortening saves, at least, at most, and along a common fraction."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from stepcrit.graph.drag import drag
from stepcrit.graph.schedule import Lags, forward, without
from tests.properties.oracle import Oracle
from tests.properties.schedules import PROPERTY, Built, Schedule, per_node, schedules

TENTHS = 10


@PROPERTY
@given(schedules(), per_node(st.integers(0, 6)), per_node(st.sampled_from((False, False, True))))
def test_saving_is_at_most_what_each_critical_path_loses(
    schedule: Schedule, cuts: list[int], gone: list[bool]
) -> None:
    built, oracle = Built(schedule), Oracle(schedule)
    removed = {v for v in range(oracle.count) if gone[v]}
    dur = [0 if v in removed else max(0, d - cuts[v]) for v, d in enumerate(schedule.durations)]
    saving = _saving(built, dur, without(built.graph, built.lags, built.mask(removed)))
    assert 0 <= saving <= min(oracle.removed_from(chain, dur, removed) for chain in oracle.critical)


@PROPERTY
@given(schedules(), per_node(st.integers(0, 6)))
def test_no_more_is_saved_than_shortening_one_by_one_could(schedule: Schedule, cuts: list[int]) -> None:
    """A single activity saves its drag at most, and exactly its drag when it goes altogether."""
    built = Built(schedule)
    found = built.own(drag(built.graph, built.lags, built.arrivals.gap_ns, built.boundary).drag_ns)
    for v, ns in enumerate(found):
        dur = schedule.durations
        cut = min(cuts[v], dur[v])
        dur[v] -= cut
        assert _saving(built, dur, built.lags) == min(cut, ns)


@PROPERTY
@given(schedules(unit=TENTHS), per_node(st.booleans()))
def test_saving_grows_and_flattens_along_a_common_fraction(schedule: Schedule, group: list[bool]) -> None:
    built = Built(schedule)
    curve = []
    for tenth in range(TENTHS + 1):
        dur = [d - d * tenth // TENTHS if group[v] else d for v, d in enumerate(schedule.durations)]
        curve.append(_saving(built, dur, built.lags))
    slopes = [b - a for a, b in pairwise(curve)]
    assert curve[0] == 0
    assert all(slope >= 0 for slope in slopes)
    assert all(later <= sooner for sooner, later in pairwise(slopes))


@PROPERTY
@given(schedules(unit=TENTHS), per_node(st.booleans()))
def test_first_slope_is_the_least_share_over_critical_paths(schedule: Schedule, group: list[bool]) -> None:
    """B.8: the initial slope of the saving is the least time that the group has on any critical path."""
    fine = 10**4  # so small a fraction that no other path takes over
    coarse = Schedule(
        schedule.t0 * fine,
        tuple(type(n)(n.lane, n.start * fine, n.dur * fine) for n in schedule.nodes),
        schedule.links,
        schedule.sinks,
        tuple((kind, ns * fine) for kind, ns in schedule.floors),
        schedule.policy,
    )
    built, oracle = Built(coarse), Oracle(schedule)
    dur = [d - d // fine if group[v] else d for v, d in enumerate(coarse.durations)]
    share = min(sum(oracle.nodes[v].dur for v in chain if group[v]) for chain in oracle.critical)
    assert _saving(built, dur, built.lags) == share


@PROPERTY
@given(schedules(), per_node(st.integers(0, 6)), per_node(st.integers(0, 6)))
def test_shortening_more_never_saves_less(schedule: Schedule, first: list[int], more: list[int]) -> None:
    built = Built(schedule)
    some = [max(0, d - first[v]) for v, d in enumerate(schedule.durations)]
    all_of_it = [max(0, d - more[v]) for v, d in enumerate(some)]
    assert _saving(built, all_of_it, built.lags) >= _saving(built, some, built.lags)


def _saving(built: Built, dur: list[int], delays: Lags) -> int:
    """How much earlier the boundary falls."""
    at = built.at(dur)
    ends = forward(built.graph, at, delays) + at
    return built.finish - max(int(ends[s]) for s in built.sinks)
