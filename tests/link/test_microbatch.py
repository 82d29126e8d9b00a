"""Backward passes per update: the golden run, counting by hand, and traces built from known passes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepcrit.link.microbatch import backward_starts, count_between, microbatches
from tests.builders import table
from tests.properties.schedules import PROPERTY

PARTS = json.loads((Path(__file__).parent.parent / "golden" / "parts.json").read_text(encoding="utf-8"))
A05 = next(case for case in PARTS["steps"] if case["id"] == "A05")
NONE_AT_ALL = np.empty(0, np.int64)
TIMES = st.lists(st.integers(0, 40), max_size=12).map(sorted)
UPDATES = st.lists(st.lists(st.integers(1, 3), max_size=4), min_size=1, max_size=3)
"""For each update its passes, for each pass its number of backward operators."""


def test_golden_run_has_four_passes_per_update() -> None:
    roots, ends = (np.array(A05["given"][name]) for name in ("backward_roots", "optimizer_ends"))
    assert list(count_between(roots, ends)) == A05["expect"]["microbatches"]


@PROPERTY
@given(TIMES, TIMES)
def test_each_root_counts_for_the_first_end_after_it(roots: list[int], ends: list[int]) -> None:
    found = count_between(np.array(roots, np.int64), np.array(ends, np.int64))
    lows = [-1, *ends][: len(ends)]
    assert found == tuple(sum(a <= r < b for r in roots) for a, b in zip(lows, ends, strict=True))


@PROPERTY
@given(UPDATES, st.booleans(), st.integers(0, 2), st.integers(0, 3))
def test_passes_are_counted_on_either_thread(
    updates: list[list[int]],
    own_thread: bool,  # noqa: FBT001
    pause: int,
    inner: int,
) -> None:
    """Forwards on the main thread part the passes; what runs inside a backward operator does not."""
    events = table(_training(updates, tid=2 if own_thread else 1, pause=pause, inner=inner))
    optimizer = np.array([r for r in range(len(events)) if events.name_of(r).startswith("Optimizer.step")])
    assert microbatches(events, optimizer) == tuple(len(passes) for passes in updates)
    assert len(backward_starts(events)) == sum(len(passes) for passes in updates)


@PROPERTY
@given(UPDATES)
def test_backward_starts_are_the_first_operators_of_the_passes(updates: list[list[int]]) -> None:
    chrome = _training(updates, tid=2, pause=1, inner=1)
    first = [e["ts"] * 1000 for e in chrome if e["name"].endswith("Back0")]
    assert backward_starts(table(chrome)).tolist() == first


def test_trace_without_optimizer_has_no_counts() -> None:
    assert microbatches(table(_training([[1]], tid=2, pause=0, inner=0)), NONE_AT_ALL) == ()


def test_updates_count_in_the_order_of_their_ends() -> None:
    events = table(_training([[1, 2], [1], [3, 1, 1]], tid=2, pause=1, inner=0))
    optimizer = [r for r in range(len(events)) if events.name_of(r).startswith("Optimizer.step")]
    assert microbatches(events, np.array(optimizer[::-1])) == (2, 1, 3)


def test_pass_that_begins_inside_an_optimizer_range_counts_for_that_update() -> None:
    """A closure: the optimizer runs forward and backward within its own step."""
    chrome = [
        {
            "name": "Optimizer.step#LBFGS.step",
            "cat": "user_annotation",
            "ts": 0,
            "dur": 20,
            "pid": 1,
            "tid": 1,
        },
        {"name": "aten::linear", "cat": "cpu_op", "ts": 1, "dur": 2, "pid": 1, "tid": 1},
        {
            "name": "autograd::engine::evaluate_function: A",
            "cat": "cpu_op",
            "ts": 4,
            "dur": 2,
            "pid": 1,
            "tid": 2,
        },
        {"name": "aten::linear", "cat": "cpu_op", "ts": 7, "dur": 2, "pid": 1, "tid": 1},
        {
            "name": "autograd::engine::evaluate_function: A",
            "cat": "cpu_op",
            "ts": 10,
            "dur": 2,
            "pid": 1,
            "tid": 2,
        },
    ]
    assert microbatches(table(chrome), np.array([0])) == (2,)


@pytest.mark.parametrize("updates", [[[]], [[], []]])
def test_update_without_backward_counts_zero(updates: list[list[int]]) -> None:
    events = table(_training(updates, tid=2, pause=0, inner=0))
    optimizer = np.array([r for r in range(len(events)) if events.name_of(r).startswith("Optimizer.step")])
    assert microbatches(events, optimizer) == (0,) * len(updates)


def _training(updates: list[list[int]], *, tid: int, pause: int, inner: int) -> list[dict[str, Any]]:
    """Forward, then backward operators on thread `tid` with operators inside them; then the optimizer."""
    events: list[dict[str, Any]] = []
    at = 0

    def add(name: str, cat: str, thread: int, dur: int) -> None:
        events.append({"name": name, "cat": cat, "ts": at, "dur": dur, "pid": 1, "tid": thread})

    for passes in updates:
        for count in passes:
            add("aten::linear", "cpu_op", 1, 3)
            at += 3 + pause
            for i in range(count):
                add(f"autograd::engine::evaluate_function: Back{i}", "cpu_op", tid, 2 + inner)
                for _ in range(inner):
                    at += 1
                    add("aten::mul", "cpu_op", tid, 1)
                at += 2 + pause
        add("Optimizer.step#SGD.step", "user_annotation", 1, 4)
        at += 4 + pause
    return events


@pytest.mark.parametrize("tid", [2, 3], ids=["autograd thread", "third thread"])
def test_only_the_main_thread_parts_two_passes(tid: int) -> None:
    """A hook on the autograd thread, or a loader's thread, starts something in the middle of one pass."""

    def op(name: str, on: int, ts: int, dur: int) -> dict[str, Any]:
        return {"name": name, "cat": "cpu_op", "ts": ts, "dur": dur, "pid": 1, "tid": on}

    chrome = [
        op("aten::linear", 1, 0, 3),
        op("autograd::engine::evaluate_function: A", 2, 4, 2),
        op("aten::stack", tid, 7, 1),
        op("autograd::engine::evaluate_function: B", 2, 9, 2),
        op("Optimizer.step#SGD.step", 1, 12, 2),
    ]
    assert microbatches(table(chrome), np.array([4])) == (1,)
