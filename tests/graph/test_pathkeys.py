"""Keys are what two traces of one job have in common, and every row has one."""

from __future__ import annotations

import pytest

from stepcrit.graph.pathkeys import PathKey, keyed
from stepcrit.session import Options, Trace
from tests.builders import event, trace

HOST, QUEUE = (1, 1), (0, 7)
MM = {"Input Dims": [[8, 16], [16, 4]], "Input type": ["float", "float"]}
COLLECTIVE = {"Collective name": "allreduce", "dtype": "Float", "In msg nelems": 100, "Group size": 8}


@pytest.fixture
def made() -> Trace:
    rows = [
        event("user_annotation", "ProfilerStep#12", (0, 100), HOST),
        event("cpu_op", "aten::mm", (10, 30), HOST, **MM),
        event("cuda_runtime", "cudaLaunchKernel", (15, 20), HOST, correlation=1),
        event("cuda_runtime", "cudaLaunchKernel", (40, 45), HOST, correlation=2),
        event("cuda_runtime", "cudaLaunchKernel", (50, 55), HOST, correlation=3),
        event("kernel", "gemm_a", (30, 50), QUEUE, correlation=1, stream=7),
        event("kernel", "alone", (60, 70), QUEUE, correlation=2, stream=7),
        event("kernel", "nccl", (70, 80), QUEUE, correlation=3, stream=7, **COLLECTIVE),
        event("kernel", "alone", (85, 90), QUEUE, stream=7),
    ]
    return Trace(trace(rows), Options())


def test_each_row_has_the_key_that_another_trace_would_give_it(made: Trace) -> None:
    found = keyed(made.raw, made.links)
    events = made.raw.events
    keys = {
        (events.name_of(row), int(events.start_ns[row])): found.keys[found.groups.of_row[row]]
        for row in range(len(events))
    }
    mm = ("aten::mm", "[[8,16],[16,4]]", '["float","float"]')
    call = PathKey("host", "cudaLaunchKernel")
    assert keys == {
        ("ProfilerStep#12", 0): PathKey("host", "ProfilerStep#"),
        ("aten::mm", 10_000): PathKey("host", *mm),
        ("cudaLaunchKernel", 15_000): call,
        ("cudaLaunchKernel", 40_000): call,
        ("cudaLaunchKernel", 50_000): call,
        ("gemm_a", 30_000): PathKey("device", *mm),
        ("alone", 60_000): PathKey("device", "alone"),
        ("nccl", 70_000): PathKey("comm", "allreduce", "400"),
        ("alone", 85_000): PathKey("device", "alone"),
    }


def test_labels_are_one_a_key_and_gaps_and_untracked_time_have_theirs(made: Trace) -> None:
    found = keyed(made.raw, made.links)
    assert len(found.keys) == len(set(found.keys)) == len(found.groups.labels)
    assert found.keys[found.groups.untracked] == PathKey("host", "untracked")
    assert {found.keys[i].kind for i in found.groups.gap_of_class.values()} == {"gap"}
