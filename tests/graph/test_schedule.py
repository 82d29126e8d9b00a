"""What the drawn schedules do not reach: results that nobody may change, and times of a lifetime."""

from __future__ import annotations

import pytest

from stepcrit.graph.schedule import FAR, latest_finish
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
