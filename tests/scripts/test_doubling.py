"""Twice the events are about twice the work, on shapes that are hostile by construction.

Counted are executed lines of Python, with the plain kernels, through reading, linking, the graph and the
answer. What numpy does inside of one line is not seen here: `scripts/doubling.py` counts its instructions.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from functools import partial
from types import FrameType

import doubling
import pytest

from stepcrit.answers.analyze import answer
from stepcrit.graph import search
from stepcrit.report.write import render
from stepcrit.session import load

SIZES = (100, 200, 400)


def lines_of(work: Callable[[], object]) -> int:
    """How many lines and calls are executed."""
    count = 0

    def trace(_frame: FrameType, _event: str, _arg: object) -> object:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def growth(counts: list[int]) -> float:
    """How much more the second doubling adds than the first: what does not grow is left out."""
    return (counts[2] - counts[1]) / (counts[1] - counts[0])


def analyzed(shape: str, count: int) -> bytes:
    return render(answer(load(io.BytesIO(doubling.trace(shape, count))).view()), "json")


@pytest.mark.parametrize("shape", doubling.SHAPES)
def test_work_grows_with_the_events_whatever_their_shape(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPCRIT_KERNELS", "plain")
    monkeypatch.setattr(search, "MOST_LOOKED_AT", 20)  # scaled down like the number of names
    analyzed(shape, 20)  # what is loaded once
    counts = [lines_of(partial(analyzed, shape, n)) for n in SIZES]
    assert growth(counts) <= doubling.MOST, counts


def test_work_that_grows_faster_is_seen() -> None:
    def pairs(n: int) -> int:
        return sum(a < b for a in range(n) for b in range(n))

    def singles(n: int) -> int:
        return sum(a < n for a in range(n))

    pairs_grow, singles_grow = (growth([lines_of(partial(f, n)) for n in SIZES]) for f in (pairs, singles))
    assert pairs_grow > 3.5
    assert singles_grow == pytest.approx(2, abs=0.1)


def test_shapes_are_what_their_names_say() -> None:
    trace = load(io.BytesIO(doubling.trace("all nested", 30)))
    assert trace.links.depth.max() >= 29
    assert len(set(load(io.BytesIO(doubling.trace("all names distinct", 30))).raw.events.names)) >= 60
    instant = load(io.BytesIO(doubling.trace("all at one instant", 30))).raw.events
    assert set(instant.start_ns.tolist()) == {0}
