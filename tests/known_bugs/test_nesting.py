"""Ranges of one thread that cross instead of nesting."""

from __future__ import annotations

import pytest

from tests.answers.drawn import call, note, op, work
from tests.builders import event
from tests.known_bugs.conftest import Ask
from tests.known_bugs.written import loop, row_of, step, trace


def test_b109_hundreds_of_crossing_ranges_are_one_line(ask: Ask) -> None:
    events = []
    for n in range(300):
        at = 100 * n
        events += [op(f"parent{n}", at, at + 40), op(f"child{n}", at + 10, at + 51)]  # 11 µs after its father
    shown = ask(events, "doctor", "--format", "text")
    assert shown.code == 0
    assert ask(events, "doctor").check("E112")["seen_numbers"] == [300, 600]
    (line,) = (line for line in shown.out.splitlines() if "end after the range around them" in line)
    assert "300" in line
    assert shown.err == ""


def test_b111_a_range_that_crosses_another_hangs_under_what_holds_it(ask: Ask) -> None:
    events = [
        note("root", 0, 200),
        op("dispatch_mode", 20, 90),  # begins before the annotation and ends after its start
        note("annotation", 50, 150),
        op("aten::mm", 100, 140),
        call("cudaLaunchKernel", (110, 120), 1),
        work("k", (130, 180), 1),
    ]
    found = trace(events)
    parent = {
        name: found.raw.events.name_of(int(found.links.parent[row_of(found.raw, name)]))
        for name in ("dispatch_mode", "annotation", "aten::mm", "cudaLaunchKernel")
    }
    # while both are open, what began last is the innermost; so the annotation begins inside the other
    assert parent == {
        "dispatch_mode": "root", "annotation": "dispatch_mode", "aten::mm": "annotation", "cudaLaunchKernel": "aten::mm",
    }  # fmt: skip
    assert found.links.crossing_count == 1
    # every instant has one owner: 200 µs of the thread, no more and no less
    pieces = found.links.pieces
    assert int((pieces.end_ns - pieces.start_ns).sum()) == 200_000
    assert ask(events).data["summed_ns"]["host_tracked"] == 200_000


@pytest.mark.parametrize("late", [0.4, -0.4])
def test_b114_steps_are_found_where_their_marks_cross_other_ranges(ask: Ask, late: float) -> None:
    events = loop(4)
    for one in events:
        if one["name"].startswith("ProfilerStep"):
            one["dur"] += late
    frames = [event("python_function", "train.py(3): step", (100 * n + 5, 100 * n + 99)) for n in range(4)]
    answer = ask([*events, *frames])
    assert [one["label"] for one in answer.data["steps"]] == [f"ProfilerStep#{n}" for n in range(4)]
    assert answer.data["elapsed_ns"] == 100_000
    assert ask([*events, *frames], "doctor").check("E112")["state"] == "ok"


def test_b114_a_step_mark_that_opens_before_the_one_before_ends_is_a_step_of_its_own() -> None:
    first, second = step(0), step(1)
    first[0]["dur"] = 100.6
    assert [one.label for one in trace([*first, *second]).steps] == ["ProfilerStep#0", "ProfilerStep#1"]


def test_b116_crossings_of_every_size_are_counted_and_lose_nothing(ask: Ask) -> None:
    """Half a microsecond, half a millisecond and 2 ms beyond the range around: none is put aside, so none has a limit."""
    events = []
    for n, beyond in enumerate((0.5, 500, 2000)):
        at = 10_000 * n
        events += [op(f"parent{n}", at, at + 40), op(f"child{n}", at + 10, at + 40)]
        events[-1]["dur"] += beyond
    check = ask(events, "doctor").check("E112")
    assert (check["state"], check["seen_numbers"]) == ("warn", [3, 6])
    rows = {row["name"]: row["self_cpu_ns"] for row in ask(events).data["operators"]}
    assert [rows[f"child{n}"] for n in range(3)] == [30_500, 530_000, 2_030_000]
    assert [rows[f"parent{n}"] for n in range(3)] == [10_000] * 3
