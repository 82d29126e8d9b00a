"""Numbers at the edge of their range, and times whose unit or form misleads."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from stepcrit.model.events import EventKind, Side
from tests.answers.drawn import call, op, work
from tests.builders import Event, event
from tests.known_bugs.conftest import Ask
from tests.known_bugs.written import loop, raw, row_of, spans, step, text, trace


def test_b045_threads_that_differ_beyond_32_bits_are_two() -> None:
    number = 139_627_874_611_776
    found = raw(
        [event("cpu_op", "a", (0, 10), (1, number)), event("cpu_op", "b", (5, 15), (1, number + 2**32))]
    )
    lanes = [found.events.lane_of(row) for row in range(2)]
    assert [lane.tid for lane in lanes] == [str(number), str(number + 2**32)]
    assert len(found.events.lanes) == 2


def test_b047_a_call_finds_its_operator_where_the_thread_has_two_numbers() -> None:
    """The External id joins them, if the times agree."""
    mm = event("cpu_op", "aten::mm", (0, 40), (1, 2863311530), **{"External id": 5})
    launch = event(
        "cuda_runtime", "cudaLaunchKernel", (10, 20), (1, -1431655766), correlation=9, **{"External id": 5}
    )
    found = trace([mm, launch, work("gemm_kernel", (30, 90), 9)])
    kernel = row_of(found.raw, "gemm_kernel")
    assert found.raw.events.name_of(int(found.links.op[kernel])) == "aten::mm"


def test_b048_an_operator_of_process_0_is_host_work(ask: Ask) -> None:
    events = [
        event("cpu_op", "aten::mm", (0, 40), (0, 0)),
        event("cuda_runtime", "cudaLaunchKernel", (10, 20), (0, 0), correlation=1),
        event("kernel", "gemm_kernel", (30, 90), (0, 0), correlation=1, stream=0),
    ]
    found = raw(events)
    assert [found.events.lane_of(row).side for row in range(3)] == [Side.HOST, Side.HOST, Side.DEVICE]
    assert ask(events).data["device_busy_ns"] == {"0": 60_000}


@pytest.mark.parametrize("none", [4294967295, -1])
def test_b050_a_sync_record_without_a_stream_makes_no_queue(ask: Ask, none: int) -> None:
    sync = event(
        "cuda_sync", "Context Sync", (295, 299), (0, none), stream=none, cuda_sync_kind="Context Sync"
    )
    found = raw([*loop(3), sync])
    assert [lane.stream for lane in found.events.lanes if lane.side == Side.DEVICE] == [7]
    unknown = [
        {**one, "args": {**one["args"], "stream": none}} if one["cat"] == "kernel" else one for one in loop(3)
    ]
    assert [lane.stream for lane in raw(unknown).events.lanes if lane.side == Side.DEVICE] == [
        7
    ]  # their track
    answer = ask([*loop(3), sync])
    assert answer.data["device_busy_ns"] == {"0": 40_000}
    assert "4294967295" not in answer.out
    assert ask([*loop(3), sync], "doctor").check("E103")["seen_numbers"] == [1, 1]


def test_b052_a_time_is_the_same_with_and_without_an_exponent() -> None:
    events = [op("a", 0, 10), op("b", 0, 10)]
    content = text(events).replace(b'"ts": 0', b'"ts": 1.6921085481321545e+15', 1)
    found = raw(content.replace(b'"ts": 0', b'"ts": 1692108548132154.5', 1))
    assert found.meta.origin_ns == 1_692_108_548_132_154_500
    assert found.events.start_ns.tolist() == [0, 0]


def test_b053_a_kernel_under_a_microsecond_keeps_its_200_nanoseconds() -> None:
    kernel: dict[str, Any] = {**work("k", (0, 1), 1), "ts": 100.7, "dur": 0.2}
    later: dict[str, Any] = {**work("l", (0, 1), 2), "ts": 100.95, "dur": 0.05}
    found = raw([kernel, later])
    assert spans(found, "k") == [(0, 200)]
    assert spans(found, "l") == [(250, 300)]
    assert found.meta.origin_ns == 100_700


@pytest.mark.parametrize("unit", ["ms", "ns", None])
def test_b055_the_unit_for_display_scales_nothing(ask: Ask, unit: str | None) -> None:
    header = {"displayTimeUnit": unit} if unit else {}
    assert ask(loop(3), **header).data["elapsed_ns"] == 100_000


def test_b056_the_order_of_the_top_level_keys_changes_no_number(ask: Ask) -> None:
    events = json.dumps([{"ph": "X", **one} for one in loop(3)])
    parts = {
        "schemaVersion": "1",
        "displayTimeUnit": '"ms"',
        "deviceProperties": '[{"id": 0, "name": "NVIDIA A100"}]',
        "baseTimeNanoseconds": "1000000000",
        "distributedInfo": '{"rank": 3, "world_size": 4}',
    }
    told = [f'"{key}": {value}' for key, value in parts.items()]
    shown = []
    for at in range(len(told) + 1):
        content = "{" + ", ".join([*told[:at], f'"traceEvents": {events}', *told[at:]]) + "}"
        data = ask(content.encode()).data
        assert (data["elapsed_ns"], data["trace"]["rank"], data["trace"]["devices"]) == (
            100_000,
            3,
            ["NVIDIA A100"],
        )
        assert raw(content.encode()).meta.origin_ns == 1_000_000_000
        shown.append({key: value for key, value in data.items() if key != "trace"})
    assert all(one == shown[0] for one in shown)


def copies(bandwidth: object) -> list[Event]:
    """Steps that copy a megabyte in 10 µs before the product: 100 GB/s, whatever the trace says."""
    found = []
    for number in range(3):
        at = 100 * number
        copy = work("Memcpy HtoD (Pinned -> Device)", (at + 35, at + 45), 100 + number)
        copy["args"].update({"bytes": 1_000_000, "memory bandwidth (GB/s)": bandwidth})
        found += [*step(number), call("cudaMemcpyAsync", (at + 11, at + 13), 100 + number), copy]
    return found


def test_b058_a_bandwidth_that_the_trace_derives_is_never_used(ask: Ask) -> None:
    right, wrong = ask(copies(100.0)), ask(copies(8.7e12))
    assert right.data["elapsed_ns"] == 100_000
    for one in (right, wrong):
        one.data["trace"].pop("json_bytes")
    assert wrong.data == right.data
    found = raw(copies(8.7e12)).events
    copied = found.kind == EventKind.MEMCPY
    assert found.nbytes[copied].tolist() == [1_000_000] * 3
    assert np.unique((found.end_ns - found.start_ns)[copied]).tolist() == [10_000]
