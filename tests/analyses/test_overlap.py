"""Device time and overlap: the golden coverage through both doors, and partitions that are exact."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepcrit.analyses import overlap
from stepcrit.analyses.overlap import DeviceTime, device_time
from stepcrit.intervals import union
from stepcrit.link.linker import link
from stepcrit.session import load
from tests.builders import trace

ROOT = Path(__file__).parents[2]
PARTS = json.loads((ROOT / "tests" / "golden" / "parts.json").read_text(encoding="utf-8"))
GOLDEN = [case for case in PARTS["intervals"] if "window" in case["given"]]
FILES = sorted((ROOT / "fixtures").glob("*/*.json.gz"))
CLASSES = {
    "compute": ("kernel", "k"),
    "comm": ("kernel", "ncclDevKernel_AllReduce"),
    "memcpy": ("gpu_memcpy", "Memcpy"),
}


def check(found: DeviceTime, expect: dict[str, int], scale: int) -> None:
    """The hand-worked numbers, and both partitions exact."""
    assert found.partition_ns == {
        "compute": expect["compute"] * scale,
        "comm alone": expect["exposed_comm"] * scale,
        "copy alone": expect["exposed_memcpy"] * scale,
        "idle": expect["idle"] * scale,
    }
    assert (found.comm_ns, found.covered_ns) == (expect["comm_total"] * scale, expect["comm_covered"] * scale)
    assert found.not_covered_ns == expect["exposed_comm"] * scale
    assert found.summed_ns == expect["sum_of_durations"] * scale
    assert (found.window_ns, found.idle_ns) == (expect["window"] * scale, expect["idle"] * scale)
    assert sum(found.partition_ns.values()) == sum(found.symmetric_ns.values()) == found.window_ns


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case["id"])
def test_device_time_divides_golden_intervals(case: dict[str, Any]) -> None:
    given = case["given"]
    pairs = {"compute": given["compute"], "comm": given["comm"], "copy": given["memcpy"]}
    sets = {
        kind: union(np.array([a for a, _ in spans], np.int64), np.array([b for _, b in spans], np.int64))
        for kind, spans in pairs.items()
    }
    summed = sum(b - a for spans in pairs.values() for a, b in spans)
    check(device_time("0", sets, tuple(given["window"]), summed), case["expect"], 1)


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case["id"])
def test_analysis_divides_the_same_activities_of_a_trace(case: dict[str, Any]) -> None:
    given = case["given"]
    chrome = [
        {
            "cat": CLASSES[kind][0],
            "name": CLASSES[kind][1],
            "ts": a,
            "dur": b - a,
            "pid": 0,
            "tid": i,
            "args": {"stream": i},
        }
        for kind in CLASSES
        for i, (a, b) in enumerate(given[kind])
    ]
    raw = trace(chrome)
    start, end = given["window"]
    (found,) = overlap.analyze(raw.events, link(raw).work, (start * 1000, end * 1000))
    check(found, case["expect"], 1000)


def test_golden_file_holds_the_six_cases() -> None:
    assert [case["id"] for case in GOLDEN] == ["D01", "D02", "D03", "D04", "D05", "D06"]


def test_activities_are_clipped_to_the_window_and_others_left_out() -> None:
    chrome = [
        {"cat": "kernel", "name": "k", "ts": ts, "dur": 20, "pid": device, "tid": 7, "args": {"stream": 7}}
        for ts, device in ((0, 0), (90, 0), (200, 0), (40, 1), (10, 1))
    ]
    raw = trace(chrome)
    found = overlap.analyze(raw.events, link(raw).work, (10_000, 100_000))
    assert [(one.device, one.busy_ns, one.summed_ns) for one in found] == [
        ("1", 40_000, 40_000),
        ("0", 20_000, 20_000),
    ]


def test_window_without_device_work_has_no_device() -> None:
    raw = trace([{"cat": "cpu_op", "name": "op", "ts": 0, "dur": 9, "pid": 1, "tid": 1}])
    assert overlap.analyze(raw.events, link(raw).work, (0, 9_000)) == ()


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_partitions_cover_every_window_exactly(path: Path) -> None:
    made = load(path)
    for step in made.steps:
        for one in overlap.analyze(made.raw.events, made.links.work, (step.start_ns, step.end_ns)):
            assert (
                sum(one.partition_ns.values())
                == sum(one.symmetric_ns.values())
                == one.window_ns
                == step.elapsed_ns
            )
            assert one.covered_ns + one.not_covered_ns == one.comm_ns
            assert one.busy_ns <= one.summed_ns
            assert min(*one.partition_ns.values(), *one.symmetric_ns.values()) >= 0
