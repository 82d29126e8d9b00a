"""Structures that no analysis expected: an answer or a reason, never a traceback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.answers.drawn import call, op, work
from tests.builders import Event, event
from tests.known_bugs.conftest import Ask
from tests.known_bugs.written import loop, raw, text

VERBS = ("analyze", "critical", "doctor")


@pytest.mark.parametrize("verb", VERBS)
def test_b179_a_backward_root_on_another_thread_leaves_every_answer_possible(ask: Ask, verb: str) -> None:
    root = "autograd::engine::evaluate_function: DeepSpeedBackward"
    events = [
        event("cpu_op", "forward", (0, 30), (1, 1), **{"Sequence number": 4}),
        event("cpu_op", root, (40, 90), (1, 2), **{"Sequence number": 999, "Fwd thread id": 77}),
        event("cuda_runtime", "cudaLaunchKernel", (50, 60), (1, 2), correlation=1),
        work("k", (70, 120), 1),
    ]
    answer = ask(events, verb)
    assert (answer.code, answer.err) == (0, "")
    if verb == "analyze":
        rows = {row["name"]: row for row in answer.data["operators"]}
        assert (rows[root]["self_cpu_ns"], rows[root]["device_ns"]) == (40_000, 50_000)


def memory(at: float, size: int, total: int) -> Event:
    """An allocator's row."""
    arguments = {"Bytes": size, "Total Allocated": total, "Device Id": 0, "Device Type": 1}
    return {**op("[memory]", 0, 0), "ph": "i", "ts": at, "cat": "cpu_instant_event", "args": arguments}


def test_b181_two_memory_rows_of_one_time_are_both_kept_in_the_files_order(ask: Ask) -> None:
    events = [*loop(3), memory(50, 512, 512), memory(50, 256, 768), memory(50, -512, 256)]
    found = raw(events).memory
    assert found.nbytes.tolist() == [512, 256, -512]
    assert found.allocated.tolist() == [512, 768, 256]
    assert len(set(found.ts_ns.tolist())) == 1
    assert ask(events, "doctor").check("E110")["seen_numbers"] == [3]


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("at", [45, 50, 60, 90, 95])
def test_b182_a_kernel_without_length_anywhere_stops_nothing(ask: Ask, verb: str, at: int) -> None:
    """Before, at the start of, in, at the end of and after another one of its queue."""
    events = [op("aten::mm", 0, 40)]
    for n in range(3):
        base = 100 * n
        events += [
            op("aten::mm", base + 1, base + 39), call("cudaLaunchKernel", (base + 2, base + 4), 2 * n + 1),
            call("cudaLaunchKernel", (base + 6, base + 8), 2 * n + 2),
            work("k", (base + 50, base + 90), 2 * n + 1), work("empty", (base + at, base + at), 2 * n + 2),
        ]  # fmt: skip
    answer = ask(events, verb)
    assert answer.code == 0
    if verb == "analyze":
        assert answer.data["summed_ns"]["device"] == answer.data["device_busy_ns"]["0"] == 120_000


@pytest.mark.parametrize(
    "name", ["fit-training.1625.pt.trace.json", "-odd name!.json", "ünï.trace", "a.b.c.d.pt"]
)
def test_b184_any_name_will_do_and_what_is_skipped_is_listed(ask: Ask, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / name).write_bytes(text(loop(3)))
    (folder / "events.out.tfevents").write_bytes(b"\x18\x00\x00\x00\x00")
    (folder / "readme.md").write_text("a run")
    answer = ask(folder, "doctor")
    assert answer.code == 0
    assert answer.shown["inputs"][0]["name"] == name
    assert {one["name"] for one in answer.data["skipped"]} == {"events.out.tfevents", "readme.md"}
    assert all(one["why"] for one in answer.data["skipped"])


def test_b186_a_float_among_the_arguments_turns_no_id_into_a_float(ask: Ask) -> None:
    big = 2**53 + 1  # not a float64
    counter: dict[str, Any] = {
        "ph": "C",
        "name": "GPU power",
        "pid": 0,
        "tid": 0,
        "ts": 5,
        "args": {"watts": 97.5},
    }
    events = [
        op("aten::mm", 0, 40), call("cudaLaunchKernel", (10, 20), big), work("k", (50, 90), big),
        call("cudaLaunchKernel", (22, 24), big - 1), work("l", (95, 99), big - 1), counter,
    ]  # fmt: skip
    events[2]["args"].update({"est. achieved occupancy %": 37.5, "blocks per SM": 0.25})
    answer = ask(events)
    assert answer.code == 0
    assert sorted(raw(events).events.correlation.tolist()) == [-1, big - 1, big - 1, big, big]
    assert "." not in json.dumps([row["device_ns"] for row in answer.data["operators"]])
