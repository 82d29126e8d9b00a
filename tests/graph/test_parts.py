"""An overlapped activity that takes another time keeps its tail; numbers by hand, times in µs."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from stepcrit.graph.change import parse_change
from stepcrit.graph.parts import keep_tails
from stepcrit.graph.replay import Saving
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.session import Options, Trace
from tests.asking import analyze
from tests.builders import event, trace


def overlapped() -> StepGraph:
    """`second` begins 5 before `first` ends."""
    # host  op 0..8 { L 1..3, L 4..6 }
    # s7    first 10..30;  second 25..40
    return Trace(
        trace(
            [
                event("cpu_op", "op", (0, 8)),
                event("cuda_runtime", "cudaLaunchKernelExC", (1, 3), correlation=1),
                event("cuda_runtime", "cudaLaunchKernelExC", (4, 6), correlation=2),
                event("kernel", "first", (10, 30), (0, 7), correlation=1, stream=7),
                event("kernel", "second", (25, 40), (0, 7), correlation=2, stream=7),
            ]
        ),
        Options(),
    ).view()


@pytest.mark.parametrize(
    ("left", "saved"),
    [
        (Fraction(1, 2), 10),  # first 10..20, second 15..30
        (Fraction(1, 4), 15),  # first 10..15: all of it overlapped, second 10..25
        (Fraction(0), 15),  # nothing left to overlap: second begins where first would have
        (Fraction(3, 2), -10),  # first 10..40, second 35..50
    ],
)
def test_successor_begins_as_long_before_the_end_as_it_did(left: Fraction, saved: int) -> None:
    answer = analyze(overlapped(), [parse_change("shrink", f"first={float(left)}")])
    assert answer.saving == Saving(1000 * saved, 1000 * saved)


def test_time_of_an_activity_is_divided_among_its_parts_and_none_is_lost() -> None:
    graph = overlapped().built.graph
    first = np.flatnonzero(graph.part > 0)
    for total in (0, 1_000, 4_999, 5_000, 5_001, 20_000, 90_000):
        for head in (0, total // 3, total):
            dur = graph.dur_ns.copy()
            dur[first] = (head, total - head)
            after = keep_tails(graph, dur)
            assert after[first].tolist() == [max(0, total - 5_000), min(total, 5_000)]
            assert (np.delete(after, first) == np.delete(dur, first)).all()
