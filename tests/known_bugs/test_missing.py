"""What a trace lacks: rows of the device, marks of steps, names, the list of events itself."""

from __future__ import annotations

from typing import Any

import pytest

from tests.answers.drawn import op
from tests.builders import Event
from tests.known_bugs.conftest import Ask
from tests.known_bugs.written import loop, trace

A100 = [{"id": 0, "name": "NVIDIA A100"}]


def without(events: list[Event], *cats: str) -> list[Event]:
    """Events of other categories."""
    return [event for event in events if event["cat"] not in cats]


NO_KERNELS = without(loop(5), "kernel")


def test_b070_a_trace_with_launches_and_no_device_rows_is_not_an_idle_device(ask: Ask) -> None:
    """`check` does not exist yet: what it will refuse is here null, with its reason."""
    answer = ask(NO_KERNELS)
    assert (answer.code, answer.data["boundary"], answer.data["elapsed_ns"]) == (0, "host", 100_000)
    for path in ("device_busy_ns", "overlap", "idle_by_cause_ns", "exposed_comm"):
        assert answer.data[path] is None
        assert answer.unknown[path] == "not recorded: the trace has launches but no device activity"


def test_b072_doctor_names_another_profiler_as_a_cause(ask: Ask) -> None:
    check = ask(NO_KERNELS, "doctor").check("E101")
    assert check["state"] == "missing"
    assert "no device activities" in check["seen"]
    assert "no other profiler is attached" in check["fix"]
    assert "permissions" in check["fix"]


def test_b073_of_many_ranks_only_the_one_without_device_rows_says_so(ask: Ask) -> None:
    """One file is one rank, and each has its own answer."""
    states = []
    for rank in range(8):
        job = {"rank": rank, "world_size": 8, "backend": "nccl"}
        answer = ask(NO_KERNELS if rank == 5 else loop(5), "doctor", distributedInfo=job)
        assert answer.code == 0
        states.append(answer.check("E101")["state"])
    assert states == ["ok"] * 5 + ["missing"] + ["ok"] * 2


def test_b075_a_listed_device_without_kernels_has_no_idle_share(ask: Ask) -> None:
    answer = ask(NO_KERNELS, deviceProperties=A100)
    assert answer.data["overlap"] is None
    lines = ask(NO_KERNELS, "analyze", "--format", "text", deviceProperties=A100).out.splitlines()
    assert not [line for line in lines if "idle" in line and "%" in line]
    assert ask(NO_KERNELS, "doctor", deviceProperties=A100).check("E101")["state"] == "missing"
    # without calls it is not even known whether the job uses the device
    operators = without(NO_KERNELS, "cuda_runtime")
    assert ask(operators, "doctor", deviceProperties=A100).check("E101")["state"] == "warn"


UNMARKED = without(loop(5), "user_annotation")


def test_b078_a_trace_without_step_marks_is_one_window_and_says_so(ask: Ask) -> None:
    answer = ask(UNMARKED)
    assert (answer.code, answer.data["steps_marked_by"], len(answer.data["steps"])) == (0, "capture", 1)
    # from the first operator at 10 to the end of the last product at 490
    assert answer.data["elapsed_ns"] == 480_000
    assert ask(UNMARKED, "doctor").check("E105")["state"] == "missing"
    assert "one window" in ask(UNMARKED, "analyze", "--format", "text").out


def test_b080_a_recording_without_calls_of_step_has_a_critical_path(ask: Ask) -> None:
    answer = ask(UNMARKED, "critical")
    assert answer.code == 0
    path = trace(UNMARKED).graph().critical_path()
    assert sum(path.by_class().values()) == path.elapsed_ns == 480_000


def test_b081_a_name_that_no_row_has_is_an_empty_set(ask: Ask) -> None:
    answer = ask(loop(3))
    assert answer.code == 0
    assert "memset" not in answer.data["critical_path"]["by_class_ns"]
    for name in ("cudaMemsetAsync", "class:memset"):
        asked = ask(loop(3), "whatif", "--shrink", f"{name}=0.5")
        assert (asked.code, "Traceback" in asked.err) == (2, False)
        assert asked.err.startswith("error SC200")


@pytest.mark.parametrize(
    "content", [b"{}", b'{"traceEvents": null}', b'{"traceEvents": []}', b"[]", b'{"traceEvents": 3}']
)
def test_b083_what_holds_no_event_is_no_trace(ask: Ask, content: bytes) -> None:
    answer = ask(content)
    assert answer.code == 3
    assert answer.err.startswith("error SC30")
    assert "Traceback" not in answer.err
    assert "trace" in answer.err.splitlines()[0]


def test_b085_memory_is_known_by_its_rows_and_not_by_the_header(ask: Ask) -> None:
    check = ask(loop(3), "doctor", profile_memory=1).check("E110")
    assert (check["state"], check["seen_numbers"]) == ("missing", [0])
    row: dict[str, Any] = {
        **op("[memory]", 5, 5), "ph": "i", "cat": "cpu_instant_event", "args": {"Bytes": 512, "Total Allocated": 512}
    }  # fmt: skip
    assert ask([*loop(3), row], "doctor").check("E110")["state"] == "ok"
