"""The critical path of one step: the golden windows, what couples steps, and partitions that are exact."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stepcrit.analyses import critical
from stepcrit.graph.path import PieceKind
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.model.classes import WorkClass
from stepcrit.model.events import Side
from stepcrit.session import Options, Trace, load
from tests.builders import Event, event, trace

ROOT = Path(__file__).parents[2]
PARTS = json.loads((ROOT / "tests" / "golden" / "parts.json").read_text(encoding="utf-8"))
GOLDEN = [case for case in PARTS["steps"] if case["id"] in ("A06", "A07")]
FILES = sorted((ROOT / "fixtures").glob("*/*.json.gz"))


def pipeline(given: dict[str, int], count: int = 4) -> Trace:
    """Steps of one host stretch c and one kernel g, which starts `launch_gap` after c or when g before it ends."""
    # host  |c0      |c1      |c2      |c3      |
    # s7             [g0              ][g1 ...
    chrome: list[Event] = []
    free = 0
    for i in range(count):
        span = (given["cpu"] * i, given["cpu"] * (i + 1))
        start = max(span[1] + given["launch_gap"], free)
        free = start + given["gpu"]
        chrome += [
            event("user_annotation", f"ProfilerStep#{i}", span, (1, 1)),
            event("cuda_runtime", f"c{i}", span, (1, 1), correlation=i + 1),
            event("kernel", f"g{i}", (start, free), (0, 7), correlation=i + 1, stream=7),
        ]
    return Trace(trace(chrome), Options())


def us_path(view: StepGraph) -> list[list[object]]:
    """The clipped path in µs, as the golden cases write it."""
    path = view.path
    columns = zip(
        path.kind.tolist(), path.node.tolist(), path.start_ns.tolist(), path.end_ns.tolist(), strict=True
    )
    return [
        [("gap:" if kind == PieceKind.GAP else "") + view.node_name(node), start // 1000, end // 1000]
        for kind, node, start, end in columns
    ]


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case["id"])
def test_window_paths_are_the_golden_ones(case: dict[str, Any]) -> None:
    made, expect = pipeline(case["given"]), case["expect"]
    assert [step.end_ns // 1000 for step in made.steps] == expect["boundaries"]
    assert [ns // 1000 for ns in made.steps.periods()] == expect["periods"]
    assert [us_path(made.view(i)) for i in (1, 2, 3)] == expect["window_paths"]
    assert [us_path(made.view(i))[0][0] for i in (1, 2, 3)] == expect["coupled_through"]


@pytest.mark.parametrize(
    ("case", "coupling"), list(zip(GOLDEN, (WorkClass.KERNEL, WorkClass.LAUNCH), strict=True))
)
def test_coupling_is_what_the_window_opens_in(case: dict[str, Any], coupling: WorkClass) -> None:
    assert critical.analyze(pipeline(case["given"]).view(2)).coupling == coupling


def test_stretch_that_the_opening_cuts_is_entered_through_the_opening_or_its_own_edge() -> None:
    found = critical.analyze(pipeline(GOLDEN[1]["given"]).view(2))
    assert found.by_class_ns == {
        WorkClass.LAUNCH: 18_000,
        WorkClass.KERNEL: 10_000,
        WorkClass.LAUNCH_LATENCY: 2_000,
    }
    assert found.by_group_ns == {"compute": 10_000, "comm": 0, "copy": 0, "host": 18_000, "gap": 2_000}
    assert (found.ties, found.path_count, found.path_count_capped) == (0, 1, False)


def test_path_rows_say_what_the_segments_say() -> None:
    view = pipeline(GOLDEN[1]["given"]).view(2)
    rows = critical.path_rows(view)
    assert [(row["name"], row["class"], row["length_ns"], row["kind"]) for row in rows] == [
        ("c2", "launch", 18_000, "activity"), ("g2", "launch latency", 2_000, "gap"), ("g2", "other kernel", 10_000, "activity"),
    ]  # fmt: skip
    assert [row["lane"] for row in rows] == ["thread 1", "device 0 stream 7", "device 0 stream 7"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_step_is_divided_exactly(path: Path) -> None:
    made = load(path)
    for step in made.steps:
        if not step.elapsed_ns:
            continue
        view = made.view(step.label)
        found = critical.analyze(view)
        for parts in (found.by_class_ns, found.by_group_ns, found.by_evidence_ns):
            assert sum(parts.values()) == found.elapsed_ns == step.elapsed_ns
        segments = found.segments
        assert (segments.start_ns[1:] == segments.end_ns[:-1]).all()
        assert (int(segments.start_ns[0]), int(segments.end_ns[-1])) == (step.start_ns, step.end_ns)
        assert list(found.by_class_ns.values()) == sorted(found.by_class_ns.values(), reverse=True)
        assert sum(int(str(row["length_ns"])) for row in critical.path_rows(view)) == step.elapsed_ns


@pytest.mark.parametrize(("case", "side"), list(zip(GOLDEN, (Side.DEVICE, Side.HOST), strict=True)))
def test_the_side_that_the_window_is_entered_from_carries_the_pace(case: dict[str, Any], side: Side) -> None:
    made = pipeline(case["given"])
    assert [critical.analyze(made.view(i)).paced_by for i in range(4)] == [None, side, side, side]


def test_a_host_that_waits_for_the_device_in_every_step_does_not_carry_the_pace() -> None:
    """The window opens as the awaited kernel ends, in no host work."""
    # host  [launch 2][wait    21]idle 22[launch ...
    # s7       [k 3      20]
    chrome: list[Event] = []
    for i in range(4):
        at = 25 * i
        chrome += [
            event("user_annotation", f"ProfilerStep#{i}", (at, at + 24), (1, 1)),
            event("cuda_runtime", "cudaLaunchKernel", (at, at + 2), (1, 1), correlation=i + 1),
            event("kernel", "k", (at + 3, at + 20), (0, 7), correlation=i + 1, stream=7),
            event("cuda_runtime", "cudaDeviceSynchronize", (at + 4, at + 21), (1, 1)),
        ]
    view = Trace(trace(chrome), Options()).view(2)
    assert us_path(view)[0] == ["cudaDeviceSynchronize", 45, 46]  # its return, after the kernel's end
    assert critical.analyze(view).paced_by == Side.DEVICE


@pytest.mark.parametrize(("trips", "capped"), [(19, False), (20, True)])
def test_a_million_paths_are_counted_no_further(trips: int, *, capped: bool) -> None:
    """In each trip the host waits for two queues that end at once: twice as many paths. 2**19 < 10**6 < 2**20."""
    # host  |la 1|lb 1|sync ...9|      12 a trip
    # s7         [a .........10]
    # s20             [b ....10]
    chrome = [event("cpu_op", "op", (0, 12 * trips), (1, 1))]
    for i in range(trips):
        at = 12 * i
        chrome += [
            event("cuda_runtime", "la", (at, at + 1), (1, 1), correlation=3 * i + 1),
            event("cuda_runtime", "lb", (at + 1, at + 2), (1, 1), correlation=3 * i + 2),
            event("cuda_runtime", "cudaDeviceSynchronize", (at + 2, at + 11), (1, 1), correlation=3 * i + 3),
            event("kernel", "a", (at + 1, at + 10), (0, 7), correlation=3 * i + 1, stream=7),
            event("kernel", "b", (at + 2, at + 10), (0, 20), correlation=3 * i + 2, stream=20),
        ]
    found = critical.analyze(Trace(trace(chrome), Options()).view())
    assert (found.path_count_capped, found.path_count) == (capped, 10**6 if capped else 2**19)


@pytest.mark.parametrize(("gap", "work"), [(50, WorkClass.STREAM_GAP), (51, WorkClass.UNEXPLAINED)])
def test_a_gap_beyond_five_times_the_usual_is_unexplained(gap: int, work: WorkClass) -> None:
    """Six kernels of one queue, launched ahead; five gaps of 10, which is usual, and one that is longer."""
    chrome, end = [event("cpu_op", "op", (0, 20), (1, 1))], 30
    for i, before in enumerate((0, 10, 10, 10, 10, 10, gap)):
        start, end = end + before, end + before + 5
        chrome += [
            event("cuda_runtime", "l", (2 * i, 2 * i + 1), (1, 1), correlation=i + 1),
            event("kernel", f"k{i}", (start, end), (0, 7), correlation=i + 1, stream=7),
        ]
    view = Trace(trace(chrome), Options()).view()
    last = critical.path_rows(view)[-2]
    assert (last["name"], last["kind"], last["length_ns"]) == ("k6", "gap", 1000 * gap)
    assert last["class"] == work.label
