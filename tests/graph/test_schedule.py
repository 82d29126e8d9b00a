"""What the drawn schedules do not reach: results that nobody may change, and times of a lifetime."""

from __future__ import annotations

import pytest

from stepcrit.graph.schedule import FAR, lags, latest_finish
from stepcrit.model.graph import EdgeKind, Evidence
from tests.properties.schedules import Built, Link, Node, Schedule


def chain() -> Built:
    """Two activities on one lane, 0..3 and 5..9."""
    # lane 0:  a 0...3    b 5....9     the gap of 2 between them is b's
    link = Link(0, 1, EdgeKind.THREAD, Evidence.ORDER)
    return Built(Schedule(0, (Node(0, 0, 3), Node(0, 5, 4)), (link,), (1,), (), "join"))


@pytest.mark.parametrize("column", ["phi_ns", "gap_ns", "binds"])
def test_arrivals_are_read_only(column: str) -> None:
    with pytest.raises(ValueError, match="read-only"):
        getattr(chain().arrivals, column)[0] = 0


def test_time_of_eighty_years_is_one_and_not_never() -> None:
    """B ends 80 years late; a may end 6 before that: 4 for b, 2 for the gap. Without a sink nothing must end."""
    built = chain()
    years = 80 * 365 * 86_400 * 10**9
    late = latest_finish(built.graph, built.graph.dur_ns, built.lags, {1: 9 + years})
    assert late.tolist() == [3 + years, 9 + years]
    late = latest_finish(built.graph, built.graph.dur_ns, built.lags, {0: 3 + years})
    assert late.tolist() == [3 + years, FAR]


def test_without_a_sink_nothing_must_end() -> None:
    alone = Built(Schedule(0, (Node(0, 0, 3),), (), (0,), (), "join"))
    assert latest_finish(alone.graph, alone.graph.dur_ns, alone.lags, {}).tolist() == [FAR]


@pytest.mark.parametrize("kind", EdgeKind)
@pytest.mark.parametrize(
    ("usual", "delay"),
    [
        (2, 3),  # its floor and the gap, which is more than usual
        (6, 6),  # what is usual, its floor being part of it
        (9, 9),  # as much as from the end of b to the start of c
        (20, 9),  # and no more
    ],
)
def test_edge_that_takes_over_brings_what_is_usual_as_far_as_there_was_room(
    kind: EdgeKind, usual: int, delay: int
) -> None:
    # lane 0:  a 0..........10   c 12...15     a binds c, which has a gap of 2
    # lane 1:  b 0...3                         the edge from b has a floor of 1
    nodes = (Node(0, 0, 10), Node(1, 0, 3), Node(0, 12, 3))
    other = EdgeKind.STREAM if kind == EdgeKind.THREAD else EdgeKind.THREAD
    links = (Link(0, 2, other, Evidence.ORDER), Link(1, 2, kind, Evidence.ORDER))
    built = Built(Schedule(0, nodes, links, (2,), ((kind, 1),), "join"))
    found = lags(built.graph, built.arrivals, "join", {kind: usual})
    assert built.own_edges(found.edge_ns) == {(0, 2): 2, (1, 2): delay}
    alone = lags(built.graph, built.arrivals, "edge", {kind: usual})
    assert built.own_edges(alone.edge_ns) == {(0, 2): 2, (1, 2): 1}
