"""The depth of a launch queue, read off a trace in which it filled up (golden case C01, drawn out); times in µs."""

from __future__ import annotations

import numpy as np
import pytest

from stepcrit.graph.change import parse_change
from stepcrit.graph.replay import Saving
from stepcrit.graph.rules.backpressure import Submissions, full_depth
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.model.graph import EdgeKind, NodeKind
from stepcrit.model.steps import Boundary
from stepcrit.session import Options, StepOptions, Trace
from tests.asking import analyze
from tests.builders import Event, event, trace


def submissions(*rows: tuple[int, int, int]) -> Submissions:
    """(call start, call end, work done), in µs."""
    start, end, done = (np.array(column, np.int64) * 1000 for column in zip(*rows, strict=True))
    return Submissions(np.arange(len(rows)), np.arange(len(rows)), start, end, done)


def calls(count: int, depth: int, *, kernel: int = 10, late: int = 0) -> list[tuple[int, int, int]]:
    """A queue of `depth`: each call takes 1, its kernel `kernel`; a blocked call returns `late` after release."""
    rows: list[tuple[int, int, int]] = []
    free, done = 0, 1
    for i in range(count):
        start, done = free, done + kernel if i else 1 + kernel
        released = rows[i - depth][2] + late if i >= depth else 0
        free = max(start + 1, released)
        rows.append((start, free, done))
    return rows


@pytest.mark.parametrize("depth", [2, 3, 7, 16])
def test_depth_is_read_off_the_calls_that_waited_for_a_place(depth: int) -> None:
    assert full_depth(submissions(*calls(depth + 8, depth))) == depth


def test_first_calls_of_the_golden_case_return_as_worked_out_by_hand() -> None:
    assert [end for _, end, _ in calls(5, 2)] == [1, 2, 11, 21, 31]


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        (calls(6, 2), "four calls that waited show nothing yet"),
        (calls(12, 2, kernel=6), "calls of 6 may be slow of themselves: no 5 more than the usual 1"),
        (
            calls(12, 2, kernel=40, late=12),
            "they return long after the place was free: something else held them",
        ),
        (calls(12, 99), "the queue never filled"),
    ],
)
def test_without_enough_long_and_prompt_calls_no_depth_is_claimed(
    rows: list[tuple[int, int, int]], why: str
) -> None:
    assert full_depth(submissions(*rows)) == 0, why


def test_long_calls_of_which_half_return_late_show_nothing() -> None:
    """Six of twelve return 11 after their place is free: something else holds calls at that depth too."""
    rows: list[tuple[int, int, int]] = []
    free, done = 0, 1
    for i in range(14):
        start, done = free, done + 40
        released = rows[i - 2][2] + 12 * (i % 2) if i >= 2 else 0
        free = max(start + 1, released)
        rows.append((start, free, done))
    assert full_depth(submissions(*rows)) == 0


def test_seven_waiting_calls_are_enough() -> None:
    """The other side of each limit above."""
    assert full_depth(submissions(*calls(7, 2))) == 2
    assert full_depth(submissions(*calls(12, 2, kernel=7))) == 2
    assert full_depth(submissions(*calls(12, 2, kernel=40, late=11))) == 2


def view_of(rows: list[tuple[int, int, int]], *, kernel: int = 10) -> StepGraph:
    """The calls inside one operator that goes on for 50 after the last of them; seen from the host's end."""
    last = rows[-1][1]
    chrome: list[Event] = [event("cpu_op", "op", (0, last + 50))]
    for i, (start, end, done) in enumerate(rows):
        chrome.append(event("cuda_runtime", "cudaLaunchKernel", (start, end), correlation=i))
        chrome.append(event("kernel", "k", (done - kernel, done), (0, 7), correlation=i, stream=7))
    chrome.append(event("user_annotation", "ProfilerStep#1", (0, last + 50)))
    return Trace(trace(chrome), Options(StepOptions(Boundary.HOST))).view()


def saving(view: StepGraph, operation: str, text: str) -> Saving:
    return analyze(view, [parse_change(operation, text)]).saving


def test_at_a_full_queue_shorter_kernels_free_the_host_and_shorter_calls_do_not() -> None:
    """Ten kernels of 10 with two places: the last call returns at 81; of 5, at 41; of 2, at 17 (C01)."""
    view = view_of(calls(10, 2))
    assert view.step.end_ns == 131_000
    assert saving(view, "shrink", "k=0.5") == Saving(40_000, 40_000)
    assert saving(view, "shrink", "k=0.2") == Saving(64_000, 64_000)
    # Calls of a half: the first kernel starts 0.5 sooner, and with it everything, if calls submit at their end.
    assert saving(view, "shrink", "cudaLaunchKernel=0.5") == Saving(0, 500)


def test_slow_kernels_come_to_block_calls_that_found_room() -> None:
    """Every launch waits for its place, though in this trace only the later ones had to.

    Kernels 0 to 4 take 1 and never fill the queue; 5 to 14 take 10 and do. Were all to take 10, the last
    call would return at 1 + 10 * 13 = 131 as ten kernels of 10 after five of 10 have it, not at 86.
    """
    rows: list[tuple[int, int, int]] = []
    free, done = 0, 0
    for i in range(15):
        start = free
        done = max(done, start + 1) + (1 if i < 5 else 10)
        free = max(start + 1, rows[i - 2][2] if i >= 2 else 0)
        rows.append((start, free, done))
    last = rows[-1][1]
    chrome: list[Event] = [event("cpu_op", "op", (0, last + 50))]
    for i, (start, end, done) in enumerate(rows):
        name = "short" if i < 5 else "long"
        span = (done - (1 if i < 5 else 10), done)
        chrome.append(event("cuda_runtime", "cudaLaunchKernel", (start, end), correlation=i))
        chrome.append(event("kernel", name, span, (0, 7), correlation=i, stream=7))
    chrome.append(event("user_annotation", "ProfilerStep#1", (0, last + 50)))
    view = Trace(trace(chrome), Options(StepOptions(Boundary.HOST))).view()
    edges = view.built.graph.edge_kind == EdgeKind.BACKPRESSURE
    waits = view.built.graph.kind[view.built.graph.dst[edges]] == NodeKind.SYNC
    assert (int(waits.sum()), int(edges.sum())) == (8, 13)
    answer = analyze(view, [parse_change("set", "short=10us")])
    assert answer.predicted_ns == (131_000 + 50_000, 131_000 + 50_000)
