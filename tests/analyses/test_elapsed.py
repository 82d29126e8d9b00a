"""Elapsed time: which steps are used, and when they are a distribution; times in µs."""

from __future__ import annotations

from typing import Any

import pytest

from stepcrit.analyses import elapsed
from stepcrit.analyses.elapsed import Elapsed
from stepcrit.link.linker import link
from stepcrit.link.steps import find_steps
from tests.builders import trace


def measured(*periods: int) -> Elapsed:
    """Profiler steps on the host; the first opens the trace and has no period."""
    ends = [sum(periods[: i + 1]) for i in range(len(periods))]
    chrome: list[dict[str, Any]] = [
        {"cat": "user_annotation", "name": f"ProfilerStep#{i}", "ts": end - p, "dur": p, "pid": 1, "tid": 1}
        for i, (p, end) in enumerate(zip(periods, ends, strict=True))
    ]
    raw = trace(chrome)
    return elapsed.analyze(find_steps(raw.events, link(raw)))


def test_median_and_range_are_over_the_used_steps_with_outliers_in() -> None:
    found = measured(7, 900, 310, 102, 100, 101, 180, 99, 100)
    assert [step.index for step in found.used] == [3, 4, 5, 6, 7, 8]
    assert [step.index for step in found.warm_up] == [1, 2]
    assert [step.index for step in found.set_aside] == [0]
    assert (found.median_ns, found.low_ns, found.high_ns) == (100_500, 99_000, 180_000)
    assert found.spread_share == pytest.approx((180 - 99) / 2 / 100.5)
    assert found.is_distribution


def test_two_steady_steps_are_no_distribution_and_have_no_spread() -> None:
    found = measured(7, 100, 102)
    assert (found.median_ns, found.low_ns, found.high_ns) == (101_000, 100_000, 102_000)
    assert (found.spread_share, found.is_distribution) == (None, False)


def test_steps_that_never_settle_are_no_distribution() -> None:
    found = measured(7, 500, 300, 200, 150)
    assert (found.is_distribution, found.spread_share, len(found.used)) == (False, None, 4)


def test_single_window_has_no_period_at_all() -> None:
    found = measured(100)
    assert (found.used, found.median_ns, found.low_ns, found.high_ns) == ((), None, None, None)
    assert not found.is_distribution


def test_every_step_is_used_or_warm_up_or_set_aside() -> None:
    found = measured(7, 900, 310, 102, 100, 101, 180, 99, 100)
    assert len({step.index for step in (*found.used, *found.warm_up, *found.set_aside)}) == 9
