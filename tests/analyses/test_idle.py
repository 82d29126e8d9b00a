"""Why the device is idle: the golden stretches on equivalent traces, each cause by hand; times in µs."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from stepcrit.analyses import idle
from stepcrit.analyses.idle import IdleStretch
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.link.steps import StepOptions
from stepcrit.model.steps import Boundary
from stepcrit.session import Options, Trace, load
from tests.builders import Event, event, trace

ROOT = Path(__file__).parents[2]
PARTS = json.loads((ROOT / "tests" / "golden" / "parts.json").read_text(encoding="utf-8"))
GOLDEN = [case for case in PARTS["idle"] if "host" in case["given"]]
FILES = sorted((ROOT / "fixtures").glob("*/*.json.gz"))
LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"

# Ours -> the golden cases' word. The host's own words are finer: an operator, a call that launches and a
# plain call are all `host` there; a blocking call is one event here and its return the only `sync` time.
WORDS = {
    "host: host op": "host_host",
    "host: launch": "host_host",
    "host: input": "host_data",
    "host: sync": "host_sync",
    "host: untracked": "host_untracked",
    idle.LATENCY: "launch_latency",
    idle.DEVICE_SIDE: "device_side_unexplained",
    idle.STREAM_GAP: "device_side_unexplained",  # the golden cases name one cause for short and long ones
    idle.TAIL: "tail",
}


def equivalent(given: dict[str, Any]) -> list[Event]:
    """A golden case as a trace.

    Every `[start, end, launch point]` of the device becomes a kernel and a launch call without length that
    ends at the launch point, so that no host time changes its owner. A `sync` stretch becomes the blocking
    call of the activity that was launched at its start: a pageable copy, whose launch point is the call's
    start because the queue was busy. `data` becomes a DataLoader range, `host` an operator. The window is
    a profiler step, which owns no time.
    """
    waits = {start: end for start, end, label in given["host"] if label == "sync"}
    chrome = [event("user_annotation", "ProfilerStep#1", tuple(given["window"]), (1, 1))]
    for start, end, label in given["host"]:
        name, cat = {"host": ("op", "cpu_op"), "data": (LOADER, "user_annotation")}.get(label, ("", ""))
        chrome += [event(cat, name, (start, end), (1, 1))] if name else []
    for i, (start, end, at) in enumerate(given["device"], 1):
        blocking = at in waits
        call = "cudaMemcpyAsync" if blocking else "cudaLaunchKernel"
        chrome.append(event("cuda_runtime", call, (at, waits.get(at, at)), (1, 1), correlation=i))
        cat, name = ("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)") if blocking else ("kernel", f"k{i}")
        chrome.append(event(cat, name, (start, end), (0, 7), correlation=i, stream=7))
    return chrome


def view_of(chrome: list[Event], boundary: Boundary = Boundary.HOST) -> StepGraph:
    return Trace(trace(chrome), Options(StepOptions(boundary))).view()


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case["id"])
def test_causes_of_each_stretch_are_the_golden_ones(case: dict[str, Any]) -> None:
    found = idle.analyze(view_of(equivalent(case["given"])), "0")
    words = []
    for stretch in found.stretches:
        causes: Counter[str] = Counter()
        for cause, ns in stretch.cause_ns.items():
            causes[WORDS[cause]] += ns // 1000
        words.append({"gap": [stretch.start_ns // 1000, stretch.end_ns // 1000], **causes})
    assert words == case["expect"]
    assert found.idle_ns == 1000 * sum(b - a for a, b in (one["gap"] for one in case["expect"]))


def test_golden_file_holds_the_five_cases_with_a_host() -> None:
    assert [case["id"] for case in GOLDEN] == ["F01", "F02", "F03", "F04", "F05"]


def test_owners_are_the_events_in_whose_time_the_device_starved() -> None:
    found = idle.analyze(view_of(equivalent(GOLDEN[2]["given"])), "0")
    assert found.by_owner_ns == {LOADER: 65_000, "op": 7_000}
    assert found.by_cause_ns == {"host: input": 65_000, "host: host op": 7_000, "launch latency": 3_000}


# host  |op la rec wait lc           |     c was launched at 10, and waits for a by a recorded event
# s7        [a 5..20]
# s20                   [c 25.......60]
def waiting() -> list[Event]:
    args = {"device": 0, "stream": 20, "wait_on_stream": 7, "wait_on_cuda_event_record_corr_id": 2}
    return [
        event("user_annotation", "ProfilerStep#1", (0, 60), (1, 1)),
        event("cpu_op", "op", (0, 60), (1, 1)),
        event("cuda_runtime", "la", (2, 4), (1, 1), correlation=1),
        event("cuda_runtime", "cudaEventRecord", (5, 6), (1, 1), correlation=2),
        event("cuda_runtime", "cudaStreamWaitEvent", (7, 8), (1, 1), correlation=3),
        event("cuda_runtime", "lc", (9, 10), (1, 1), correlation=4),
        event(
            "cuda_sync",
            "Stream Wait Event",
            (7, 8),
            (0, 7),
            correlation=3,
            cuda_sync_kind="Stream Wait Event",
            **args,
        ),
        event("kernel", "a", (5, 20), (0, 7), correlation=1, stream=7),
        event("kernel", "c", (25, 60), (0, 20), correlation=4, stream=20),
    ]


def test_stretch_that_an_event_wait_ends_is_a_dependency() -> None:
    found = idle.analyze(view_of(waiting()), "0")
    assert [s.cause_ns for s in found.stretches][1] == {idle.DEPENDENCY: 5_000}


def test_one_queue_may_be_asked_about_alone() -> None:
    found = idle.analyze(view_of(waiting()), "0", stream=20)
    assert [(s.start_ns, s.end_ns) for s in found.stretches] == [(0, 25_000)]


def test_activity_without_a_launch_ends_a_stretch_without_a_host_cause() -> None:
    chrome = [
        event("user_annotation", "ProfilerStep#1", (0, 30), (1, 1)),
        event("cuda_runtime", "la", (1, 2), (1, 1), correlation=1),
        event("kernel", "a", (2, 5), (0, 7), correlation=1, stream=7),
        event("kernel", "lost", (12, 30), (0, 7), correlation=9, stream=7),
    ]
    last = idle.analyze(view_of(chrome), "0").stretches[-1]
    assert last == IdleStretch(5_000, 12_000, last.ended_by, {idle.ORPHAN: 7_000}, {})


def test_host_that_waited_for_another_device_says_so() -> None:
    """Device 0 is idle from 10 to 38; up to 30 its next launch waited, by way of the host, for device 1."""
    # host   |op lx 2..4|ly 4..6|sync 6..........31|op 31..35|lz 35..37|op
    # dev 0          [x 4..10]                                         [z 38..50]
    # dev 1                 [y 6...............30]
    chrome = [
        event("user_annotation", "ProfilerStep#1", (0, 60), (1, 1)),
        event("cpu_op", "op", (0, 60), (1, 1)),
        event("cuda_runtime", "cudaLaunchKernel", (2, 4), (1, 1), correlation=1),
        event("cuda_runtime", "cudaLaunchKernel", (4, 6), (1, 1), correlation=2),
        event("cuda_runtime", "cudaDeviceSynchronize", (6, 31), (1, 1), correlation=3),
        event("cuda_runtime", "cudaLaunchKernel", (35, 37), (1, 1), correlation=4),
        event("kernel", "x", (4, 10), (0, 7), correlation=1, stream=7),
        event("kernel", "y", (6, 30), (1, 7), correlation=2, stream=7),
        event("kernel", "z", (38, 50), (0, 7), correlation=4, stream=7),
    ]
    _, between, _ = idle.analyze(view_of(chrome), "0").stretches
    assert (between.start_ns, between.end_ns) == (10_000, 38_000)
    assert between.cause_ns == {
        "another device": 20_000,  # 10..30
        "host: sync": 1_000,
        "host: host op": 4_000,
        "host: launch": 2_000,
        "launch latency": 1_000,
    }


def test_device_that_did_nothing_is_one_tail() -> None:
    found = idle.analyze(view_of(equivalent(GOLDEN[1]["given"])), "5")
    assert found.by_cause_ns == {idle.TAIL: 60_000}


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_causes_sum_to_stretches_and_stretches_to_idle_time(path: Path) -> None:
    made = load(path)
    for step in made.steps:
        view = made.view(step.label)
        for device in {lane.device_label for lane in view.trace.events.lanes if lane.device >= 0}:
            found = idle.analyze(view, device)
            assert (
                sum(s.end_ns - s.start_ns for s in found.stretches)
                == found.idle_ns
                == sum(found.by_cause_ns.values())
            )
            assert all(sum(s.cause_ns.values()) == s.end_ns - s.start_ns for s in found.stretches)
            assert all(min(s.cause_ns.values()) > 0 for s in found.stretches)
            assert sum(found.by_owner_ns.values()) <= found.idle_ns
