"""Before anything is counted or ranked: rows that cannot be true are set right or put aside, and told.

Each check has its physical reason where it is written. A sound trace passes through unchanged, as the same
object. What a check changes, it counts; the findings stay with the trace (`RawTrace.oddities`).
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from stepcrit.link.clock import put_disordered_rows_aside, set_clocks
from stepcrit.link.counters import forget_absurd_bytes, forget_absurd_totals
from stepcrit.link.durations import cut_far_ends, cut_impossible, cut_past_returns
from stepcrit.link.faroff import put_far_rows_aside
from stepcrit.link.outlived import cut_outlived
from stepcrit.link.pyframes import cut_lost_returns
from stepcrit.model.oddity import Oddity
from stepcrit.model.trace import RawTrace

PER_DEVICE = ("P305", "P306")
"""Codes that tell of one device each."""

CHECKS: tuple[Callable[[RawTrace], tuple[RawTrace, tuple[Oddity, ...]]], ...] = (
    put_far_rows_aside,  # first: a row days away would spoil every extent below
    cut_far_ends,
    cut_outlived,
    cut_past_returns,  # before clocks: an end too late would pass for a wait too early
    cut_impossible,  # last of the ends: overlaps are told of what is left
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
    return replace(trace, oddities=_one_a_code(found)) if found else trace


def _one_a_code(found: list[Oddity]) -> tuple[Oddity, ...]:
    """What several checks say under one code is one thing: their counts, and the worst case of all."""
    by_key: dict[tuple[str, str], Oddity] = {}
    for odd in found:
        key = (odd.code, odd.example if odd.code in PER_DEVICE else "")
        known = by_key.get(key, replace(odd, count=0))
        worst = max(known, odd, key=_extent)
        by_key[key] = replace(
            worst, count=known.count + odd.count, of_count=max(known.of_count, odd.of_count)
        )
    return tuple(sorted(by_key.values(), key=lambda odd: odd.code))


def _extent(odd: Oddity) -> int:
    """How far off the worst case is, in ns."""
    return max((abs(value) for value in odd.ns.values() if value is not None), default=0)
