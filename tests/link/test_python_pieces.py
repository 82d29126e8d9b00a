"""Threads tiled by the frames that are open in a window are, within it, what all frames make of them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stepcrit.graph.segments import pieces_within
from stepcrit.link.nesting import nest
from stepcrit.link.source import python_pieces
from stepcrit.model.arrays import Int64Array
from stepcrit.model.events import EventKind, EventTable
from stepcrit.model.links import Pieces
from tests.builders import event, table
from tests.properties.schedules import PROPERTY

CATS = st.sampled_from(("python_function", "python_function", "cpu_op"))
FRAMES = st.lists(st.tuples(CATS, st.integers(0, 20), st.integers(0, 12), st.integers(1, 2)), max_size=14)
"""(category, start, length, thread): nested, crossing, empty."""
SPANS = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 10)), min_size=1, max_size=3)


def owned(pieces: Pieces, lane: int, spans: list[tuple[int, int]]) -> dict[tuple[int, int], int]:
    """Time of each frame in each span, in ns."""
    start = np.array([1000 * at for at, _ in spans], np.int64)
    end = start + np.array([1000 * length for _, length in spans], np.int64)
    found = pieces_within(pieces, np.full(len(spans), lane), (start, end))
    time: dict[tuple[int, int], int] = {}
    lengths = (found.end_ns - found.start_ns).tolist()
    for which, row, ns in zip(found.which.tolist(), found.owner.tolist(), lengths, strict=True):
        if row >= 0 and ns:
            time[which, row] = time.get((which, row), 0) + ns
    return time


def frames_of(events: EventTable) -> Int64Array:
    return np.flatnonzero(events.is_kind(EventKind.PYTHON))


@PROPERTY
@given(FRAMES, SPANS)
def test_a_window_shows_what_the_whole_thread_shows(
    rows: list[tuple[str, int, int, int]], spans: list[tuple[int, int]]
) -> None:
    chrome = [event(cat, f"row{i}", (at, at + dur), (1, tid)) for i, (cat, at, dur, tid) in enumerate(rows)]
    events = table([event("cpu_op", "first", (0, 1), (1, 1)), *chrome])
    spans = sorted(spans)
    since, until = 1000 * spans[0][0], max(1000 * (at + length) for at, length in spans)
    window = python_pieces(events, since, until)
    assert (window is None) == (not frames_of(events).size)
    if window is not None:
        whole = nest(events, frames_of(events)).pieces
        for lane in range(len(events.lanes)):
            assert owned(window, lane, spans) == owned(whole, lane, spans)
