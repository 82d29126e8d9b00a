"""The simulator knows why everything started when it did; what stepcrit reads off its traces must agree.

The simulator shares no code with stepcrit, so this is an independent oracle for steps, bindings and waits.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepcrit.analyses import critical
from stepcrit.model.events import DEVICE_KINDS
from stepcrit.model.graph import EdgeKind, NodeKind
from stepcrit.model.steps import Boundary
from stepcrit.session import Options, StepOptions, Trace, load

FIXTURES = Path(__file__).parents[2] / "fixtures" / "simulated"
NAMES = sorted(path.name.removesuffix(".json.gz") for path in FIXTURES.glob("*.json.gz"))

CAUSES = {
    "launch": {EdgeKind.LAUNCH},
    "stream": {EdgeKind.STREAM},
    "pdl": {EdgeKind.STREAM},
    "graph": {
        EdgeKind.STREAM,
        EdgeKind.LAUNCH,
    },  # node order inside a graph is not in a trace: its queue stands in
    "event": {EdgeKind.EVENT},
}


def truth_of(name: str) -> dict[str, Any]:
    return dict(json.loads((FIXTURES / f"{name}.truth.json").read_text(encoding="utf-8")))


def trace_of(name: str, boundary: Boundary | None = Boundary.DEVICE) -> Trace:
    return load(FIXTURES / f"{name}.json.gz", Options(StepOptions(boundary)))


def row_of(trace: Trace, activity: int | str) -> int:
    return int(np.flatnonzero(trace.raw.events.order == int(activity))[0])


@pytest.mark.parametrize("name", NAMES)
def test_steps_end_when_they_really_ended(name: str) -> None:
    truth, trace = truth_of(name), trace_of(name)
    found = [(s.label, s.host_start_ns, s.host_end_ns, s.end_ns) for s in trace.steps]
    assert found == [
        (s["label"], s["host_start_ns"], s["host_end_ns"], s["device_end_ns"]) for s in truth["steps"]
    ]
    assert list(trace.steps.periods()) == truth["period_ns"]


@pytest.mark.parametrize("name", NAMES)
def test_what_bound_each_device_activity_is_what_really_bound_it(name: str) -> None:
    trace = trace_of(name)
    graph, arrivals = trace.built.graph, trace.built.arrivals
    for activity, cause in truth_of(name)["binding"].items():
        node = int(trace.built.first_node[row_of(trace, activity)])
        edges = range(int(graph.dst_ptr[node]), int(graph.dst_ptr[node + 1]))
        kinds = {EdgeKind(int(graph.edge_kind[e])) for e in edges if arrivals.binds[e]}
        # The queue's first activity may have its real predecessor before the capture: then nothing binds it.
        assert kinds & CAUSES[cause] or len(edges) == 0, (activity, cause, kinds)


@pytest.mark.parametrize("name", NAMES)
def test_every_host_wait_of_the_simulator_is_found_and_none_is_invented(name: str) -> None:
    """Synchronize and copy waits: the awaited activity and the waiting call, exactly."""
    trace = trace_of(name)
    graph = trace.built.graph
    truth = {(int(u), int(v)) for u, v, why in truth_of(name)["dependencies"] if why in ("sync", "copy")}
    real = {(row_of(trace, u), row_of(trace, v)) for u, v in truth}
    edges = np.flatnonzero(graph.edge_kind == EdgeKind.SYNC)
    found = {(int(graph.row[graph.src[e]]), int(graph.row[graph.dst[e]])) for e in edges}
    events = trace.raw.events
    device = set(np.flatnonzero(events.is_kind(*DEVICE_KINDS)).tolist())
    assert {u for u, _ in found} <= device
    # A wait for work that had already ended delays nothing, and is no edge.
    blocking = {(u, v) for u, v in real if events.end_ns[u] > events.start_ns[v]}
    assert found == blocking


@pytest.mark.parametrize("name", ["full_queue_1023", "full_queue_16"])
def test_full_launch_queue_blocks_the_calls_that_it_really_blocked(name: str) -> None:
    """However short the wait; the waits of other runs come from a queue that never filled."""
    trace = trace_of(name)
    events, graph = trace.raw.events, trace.built.graph
    queue = [(int(u), int(v)) for u, v, why in truth_of(name)["dependencies"] if why == "queue"]
    real = {(row_of(trace, u), row_of(trace, v)) for u, v in queue}
    edges = np.flatnonzero(graph.edge_kind == EdgeKind.BACKPRESSURE)
    waits = edges[graph.kind[graph.dst[edges]] == NodeKind.SYNC]
    found = {(int(graph.row[graph.src[e]]), int(graph.row[graph.dst[e]])) for e in waits}
    assert len(real) > 100
    # A call is blocked when the place it needs is taken as it submits; what happened before is no wait.
    assert {(u, v) for u, v in found if events.end_ns[u] > events.start_ns[v]} == found
    assert found == real
    others = edges[graph.kind[graph.dst[edges]] != NodeKind.SYNC]
    assert len(others) > 0  # the calls that found room depend on it too


@pytest.mark.parametrize("name", sorted({*NAMES} - {"full_queue_1023", "full_queue_16"}))
def test_queue_that_never_filled_blocks_no_call(name: str) -> None:
    graph = trace_of(name).built.graph
    assert not (graph.edge_kind == EdgeKind.BACKPRESSURE).any()


def test_update_boundary_is_the_end_of_the_optimizers_device_work() -> None:
    truth, trace = truth_of("grad_accumulation"), trace_of("grad_accumulation", None)
    assert trace.steps.boundary == Boundary.UPDATE
    assert set(trace.steps.microbatches) == {2}
    ends = [s["update_end_ns"] for s in truth["steps"] if s.get("update_end_ns")]
    assert [s.end_ns for s in trace.steps] == ends
    assert list(trace.steps.periods()) == truth["update_period_ns"]


@pytest.mark.parametrize(
    ("name", "leading"),
    [
        ("device_bound", "gemm"),
        ("host_bound", "host op"),
        ("dataloader_bound", "input"),
        ("graph_step", "gemm"),
        ("two_streams", "attention"),
        ("ddp_tail.rank0", "gemm"),
    ],
)
def test_the_class_with_most_of_the_path_is_the_one_the_scenario_was_built_for(
    name: str, leading: str
) -> None:
    path = critical.analyze(trace_of(name).view())
    assert next(iter(path.by_class_ns)).label == leading


def test_same_run_with_and_without_sync_records_gives_the_same_path() -> None:
    inferred, recorded = (
        critical.analyze(trace_of(n).view()) for n in ("two_streams", "two_streams_sync_records")
    )
    assert inferred.by_class_ns == recorded.by_class_ns
    assert "timing" not in recorded.by_evidence_ns
    evidence = Counter(inferred.by_evidence_ns)
    assert evidence["timing"] > 0
