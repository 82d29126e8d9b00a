"""The order of rows is decided by what they say: the same events in any order are the same table."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from stepcrit.ingest import order as ordering
from stepcrit.model.trace import RawTrace

Read = Callable[..., RawTrace]


def _row(name: str, cat: str = "cpu_op", **args: Any) -> dict[str, Any]:
    place = {"pid": 1, "tid": 2}
    return {"ph": "X", "cat": cat, "name": name, **place, "ts": 10, "dur": 5, "args": args}


def _names(trace: RawTrace) -> list[str]:
    return [trace.events.name_of(row) for row in range(len(trace.events))]


CASES = {
    "operators as they are numbered": (
        [_row("aten::zeros", **{"External id": 7}), _row("aten::empty", **{"External id": 8})],
        ["aten::zeros", "aten::empty"],
    ),
    "annotations are numbered with operators": (
        [_row("z", "user_annotation", **{"External id": 9}), _row("a", **{"External id": 10})],
        ["z", "a"],
    ),
    "an operator holds the call of its own number": (
        [_row("z", **{"External id": 7}), _row("a", "cuda_runtime", **{"External id": 7, "correlation": 1})],
        ["z", "a"],
    ),
    "an operator holds a call without a number": (
        [_row("z", **{"External id": 7}), _row("a", "cuda_runtime", correlation=1)],
        ["z", "a"],
    ),
    "calls as they are numbered": (
        [_row("z", "cuda_runtime", correlation=1), _row("a", "cuda_runtime", correlation=2)],
        ["z", "a"],
    ),
    "frames as they are numbered": (
        [_row(name, "python_function", **{"Python id": at}) for at, name in enumerate("zmb")],
        ["z", "m", "b"],
    ),
    "without any number by name": ([_row("b"), _row("a"), _row("c")], ["a", "b", "c"]),
}


@pytest.mark.parametrize(("rows", "expected"), CASES.values(), ids=CASES.keys())
def test_of_rows_of_the_same_times_the_first_begun_comes_first(
    read: Read, rows: list[dict[str, Any]], expected: list[str]
) -> None:
    for order in itertools.permutations(rows):
        assert _names(read(list(order))) == expected


def test_words_are_numbered_alphabetically_wherever_they_stand(read: Read) -> None:
    rows = [
        {**_row("b", "kernel", **{"Call stack": "y"}), "ts": 1},
        {**_row("a", "cpu_op", **{"Call stack": "x"}), "ts": 2},
    ]
    for order in (rows, rows[::-1]):
        events = read(order).events
        assert (events.names, events.name.tolist()) == (("a", "b"), [1, 0])
        assert (events.stacks, events.stack.tolist()) == (("x", "y"), [1, 0])
        assert events.cats == ("", "cpu_op", "kernel")
        assert [lane.tid for lane in events.lanes] == ["2", "2"]


def test_of_several_names_of_a_thread_the_one_that_says_most_is_shown(read: Read) -> None:
    names = ["Thread 2", "thread 2 (python)", "thread 2 (pt_autograd_0)"]
    labels = [{"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "args": {"name": n}} for n in names]
    for order in itertools.permutations(labels):
        assert read([*order, _row("a")]).events.lanes[0].label == "thread 2 (pt_autograd_0)"


@pytest.mark.parametrize("seed", range(30))
def test_rows_stand_by_start_the_longest_first_then_by_kind_ids_words_and_place(seed: int) -> None:
    chance = np.random.default_rng(seed)
    count = int(chance.integers(0, 60))
    keys = (*ordering._IDS, *ordering._REST)
    rows = {name: chance.integers(-1, 3, count) for name in keys}
    rows |= {"start": chance.integers(0, 8, count), "order": np.arange(count)}
    rows |= {"end": rows["start"] + chance.integers(0, 4, count), "kind": chance.integers(0, 4, count)}
    level = ordering._level(rows["kind"]).tolist()

    def place(row: int) -> tuple[int, ...]:
        return (
            int(rows["start"][row]),
            -int(rows["end"][row]),
            level[row],
            *(int(rows[name][row]) for name in keys),
            row,
        )

    assert ordering.in_order(rows).tolist() == sorted(range(count), key=place)
