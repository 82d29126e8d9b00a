"""Queue depth and launch-to-start: the golden series, and what they are made of; times in µs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepcrit.analyses import queueing
from stepcrit.analyses.queueing import depth_series
from stepcrit.session import Options, Trace, load
from tests.builders import Event, event, trace

ROOT = Path(__file__).parents[2]
PARTS = json.loads((ROOT / "tests" / "golden" / "parts.json").read_text(encoding="utf-8"))
GOLDEN = [case for case in PARTS["idle"] if "host" not in case["given"]]
FILES = sorted((ROOT / "fixtures" / "simulated").glob("*.json.gz"))


def made(device: list[list[int]]) -> Trace:
    """One operator around launch calls of 2 that end at each `[start, end, launch point]`."""
    chrome = [event("cpu_op", "op", (0, max(end for _, end, _ in device)), (1, 1))]
    for i, (start, end, at) in enumerate(device, 1):
        chrome.append(event("cuda_runtime", "cudaLaunchKernel", (at - 2, at), (1, 1), correlation=i))
        chrome.append(event("kernel", f"k{i}", (start, end), (0, 7), correlation=i, stream=7))
    return Trace(trace(chrome), Options())


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case["id"])
def test_depth_and_waits_are_the_golden_ones(case: dict[str, Any]) -> None:
    found = queueing.analyze(made(case["given"]).view())
    series = [[int(at) // 1000, int(depth)] for at, depth in zip(*found.series, strict=True)]
    assert series == case["expect"]["series"]
    waits = case["expect"]["launch_to_start"]
    assert found.launch_to_start_ns == 1000 * sorted(waits)[len(waits) // 2]
    assert (found.count, found.max_depth) == (len(waits), max(depth for _, depth in series))
    assert found.p95_ns == int(np.percentile([1000 * wait for wait in waits], 95))


def test_golden_file_holds_the_two_series() -> None:
    assert [case["id"] for case in GOLDEN] == ["F06", "F07"]


def test_start_at_its_launch_point_never_waits() -> None:
    at, depth = depth_series(np.array([5, 7]), np.array([5, 9]))
    assert (at.tolist(), depth.tolist()) == ([7, 9], [1, 0])


def test_floor_needs_twenty_launches_on_an_idle_queue() -> None:
    """Launch point 10i + 2, start w after it: 20 waits of 1..20 have their 5th percentile at 1.95."""
    device = [[100 * i + 3 + i, 100 * i + 40, 100 * i + 2] for i in range(20)]
    assert queueing.analyze(made(device).view()).floor_ns == 1_950
    assert queueing.analyze(made(device[:19]).view()).floor_ns is None


def test_a_window_holds_what_starts_from_its_opening_on() -> None:
    """Step 1 is 42..72: g1, launched at 20, starts as it opens; g2 starts as it ends, in step 2."""
    # host  |c0 ..10|c1 ..20|c2 ..30|
    # s7              [g0 12..42][g1 42..72][g2 72..102]
    chrome: list[Event] = []
    for i in range(3):
        span, start = (10 * i, 10 * i + 10), 12 + 30 * i
        chrome += [
            event("user_annotation", f"ProfilerStep#{i}", span, (1, 1)),
            event("cuda_runtime", f"c{i}", span, (1, 1), correlation=i + 1),
            event("kernel", f"g{i}", (start, start + 30), (0, 7), correlation=i + 1, stream=7),
        ]
    trace_ = Trace(trace(chrome), Options())
    found = [queueing.analyze(trace_.view(i)) for i in range(3)]
    assert [(q.count, q.launch_to_start_ns) for q in found] == [(1, 2_000), (1, 22_000), (1, 42_000)]


def test_step_without_launched_work_has_no_queue() -> None:
    chrome = [event("cpu_op", "op", (0, 20), (1, 1))]
    found = queueing.analyze(Trace(trace(chrome), Options()).view())
    assert (found.count, found.launch_to_start_ns, found.p95_ns, found.max_depth) == (0, None, None, 0)
    assert len(found.series[0]) == 0


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_launch_that_enters_the_queue_leaves_it(path: Path) -> None:
    trace_ = load(path)
    for step in trace_.steps:
        found = queueing.analyze(trace_.view(step.label))
        at, depth = found.series
        assert (np.diff(at) > 0).all()
        assert depth.min(initial=0) >= 0
        assert not len(depth) or depth[-1] == 0
        assert found.max_depth <= found.count
