"""Before anything is counted or ranked: rows that cannot be true are set right or put aside, and told.

Each check has its physical reason where it is written. A sound trace passes through unchanged, as the same
object. What a check changes, it counts; the findings stay with the trace (`RawTrace.oddities`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from stepcrit.link.clock import put_disordered_rows_aside, set_clocks
from stepcrit.link.counters import forget_absurd_bytes, forget_absurd_totals
from stepcrit.link.durations import cut_far_ends, cut_impossible, cut_past_returns
from stepcrit.link.faroff import put_far_rows_aside
from stepcrit.link.pyframes import cut_lost_returns
from stepcrit.model.oddity import Oddity
from stepcrit.model.trace import RawTrace

CHECKS: tuple[Callable[[RawTrace], tuple[RawTrace, tuple[Oddity, ...]]], ...] = (
    put_far_rows_aside,  # first: a row days away would spoil every extent below
    cut_far_ends,
    cut_impossible,  # before clocks: an end too late would pass for a wait too early
    cut_past_returns,
    put_disordered_rows_aside,
    set_clocks,
    cut_lost_returns,
    forget_absurd_totals,
    forget_absurd_bytes,
)


def make_plausible(trace: RawTrace) -> RawTrace:
    """The trace without what cannot be true of it, and what that was."""
    found: list[Oddity] = []
    for check in CHECKS:
        trace, odd = check(trace)
        found += odd
    return replace(trace, oddities=tuple(sorted(found, key=lambda odd: odd.code))) if found else trace
