"""Steps by their labels, and steps of which the recording lacks a part."""

from __future__ import annotations

import pytest

from tests.answers.drawn import call, work
from tests.builders import Event
from tests.known_bugs.conftest import Ask
from tests.known_bugs.written import step, trace


def test_b165_the_number_of_a_step_is_a_label_that_may_skip(ask: Ask) -> None:
    events = [*step(7), *step(9), *step(10)]
    found = trace(events).steps
    assert [(one.index, one.label) for one in found] == [
        (0, "ProfilerStep#7"), (1, "ProfilerStep#9"), (2, "ProfilerStep#10"),
    ]  # fmt: skip
    # a product ends at 790, 990 and 1090, from the first row at 700: the gap is in the period of the 9th
    assert [one.elapsed_ns for one in found] == [90_000, 200_000, 100_000]
    assert ask(events, "analyze", "--step", "9").data["elapsed_ns"] == 200_000
    refused = ask(events, "analyze", "--step", "8")
    assert refused.code == 2
    assert "ProfilerStep#10" in refused.err


def wide(number: int, kernels: int, launches: int = 5) -> list[Event]:
    """A step of which only the first so many launches have their kernel: each of 10 µs, every 14 µs."""
    events = [one for one in step(number) if one["cat"] in ("user_annotation", "cpu_op")]
    for n in range(launches):
        at, correlation = 100 * number + 10 + 5 * n, 10 * number + n + 1
        events += [call("cudaLaunchKernel", (at, at + 4), correlation)]
        if n < kernels:
            begin = 100 * number + 20 + 14 * n
            events += [work("k", (begin, begin + 10), correlation)]
    return events


def test_b167_steps_without_their_kernels_are_set_aside(ask: Ask) -> None:
    """Five steps, kernels in three."""
    events = [one for number in range(5) for one in wide(number, 5 if number < 3 else 0)]
    answer = ask(events)
    assert [one["used"] for one in answer.data["steps"]] == [False, True, True, False, False]
    assert all(one["why_not"] for one in answer.data["steps"][3:])
    assert answer.data["elapsed_ns"] == 100_000


def test_b168_work_belongs_to_the_step_that_launched_it_and_its_time_to_both(ask: Ask) -> None:
    """Launched in step 3, it runs from 410 to 440, while step 4 has begun on the host."""
    late = [call("cudaLaunchKernel", (391, 395), 50), work("late_kernel", (410, 440), 50)]
    events = [one for number in range(6) for one in step(number)] + late
    found = {one["label"]: one for one in ask(events).data["steps"]}
    counts = {label: one["device_activities"] for label, one in found.items()}
    assert counts == {f"ProfilerStep#{n}": 2 if n == 3 else 1 for n in range(6)}
    assert found["ProfilerStep#3"]["elapsed_ns"] == 440_000 - 290_000
    assert found["ProfilerStep#4"]["elapsed_ns"] == 490_000 - 440_000
    # by time: step 3 holds its own product and the late one, step 4 its own alone
    busy = [ask(events, "analyze", "--step", str(n)).data["device_busy_ns"]["0"] for n in (3, 4)]
    assert busy == [70_000, 40_000]


@pytest.mark.parametrize(
    "launches", [5, 2]
)  # the kernels were lost, or the recording stopped before their launch
def test_b170_a_last_step_with_60_percent_fewer_kernels_is_left_out_and_why_is_told(
    ask: Ask, launches: int
) -> None:
    events = [one for number in range(7) for one in wide(number, 5)] + wide(7, 2, launches)
    answer = ask(events)
    last = answer.data["steps"][-1]
    assert (last["label"], last["used"], last["is_period"]) == ("ProfilerStep#7", False, True)
    assert "device" in last["why_not"]
    assert answer.data["elapsed"]["low_ns"] == answer.data["elapsed"]["high_ns"] == 100_000
    assert answer.data["elapsed"]["set_aside"] == ["ProfilerStep#0", "ProfilerStep#7"]
    assert "2 steps set aside" in ask(events, "analyze", "--format", "text").out
