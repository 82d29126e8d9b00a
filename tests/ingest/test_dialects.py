"""Every writer's categories mean the same few things."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from stepcrit.ingest.dialect import CATEGORIES
from stepcrit.model.events import DEVICE_KINDS, EventKind, Side
from stepcrit.model.trace import RawTrace

Read = Callable[..., RawTrace]

HOST, DEVICE, OTHER = Side.HOST, Side.DEVICE, Side.OTHER

TABLE = [
    ("cpu_op", EventKind.CPU_OP, HOST),
    ("Operator", EventKind.CPU_OP, HOST),
    ("user_annotation", EventKind.ANNOTATION, HOST),
    ("collective_comm", EventKind.ANNOTATION, HOST),
    ("cuda_runtime", EventKind.RUNTIME, HOST),
    ("Runtime", EventKind.RUNTIME, HOST),
    ("cuda_driver", EventKind.RUNTIME, HOST),
    ("xpu_runtime", EventKind.RUNTIME, HOST),
    ("xpu_driver", EventKind.RUNTIME, HOST),
    ("mtia_runtime", EventKind.RUNTIME, HOST),
    ("privateuse1_runtime", EventKind.RUNTIME, HOST),
    ("privateuse1_driver", EventKind.RUNTIME, HOST),
    ("glow_runtime", EventKind.RUNTIME, HOST),
    ("hpu_op", EventKind.RUNTIME, HOST),
    ("enqueue", EventKind.RUNTIME, HOST),
    ("dequeue", EventKind.RUNTIME, HOST),
    ("kernel", EventKind.KERNEL, DEVICE),
    ("Kernel", EventKind.KERNEL, DEVICE),
    ("mtia_ccp_events", EventKind.KERNEL, DEVICE),
    ("gpu_memcpy", EventKind.MEMCPY, DEVICE),
    ("Memcpy", EventKind.MEMCPY, DEVICE),
    ("gpu_memset", EventKind.MEMSET, DEVICE),
    ("Memset", EventKind.MEMSET, DEVICE),
    ("cuda_sync", EventKind.SYNC, OTHER),
    ("gpu_user_annotation", EventKind.GPU_ANNOTATION, OTHER),
    ("gpu_user_Annotation", EventKind.GPU_ANNOTATION, OTHER),
    ("python_function", EventKind.PYTHON, HOST),
    ("overhead", EventKind.OVERHEAD, OTHER),
    ("Trace", EventKind.PROFILER, OTHER),
    ("cuda_event", EventKind.OTHER, DEVICE),
    ("graph_event_node", EventKind.OTHER, DEVICE),
    ("graph_host_node", EventKind.OTHER, DEVICE),
    ("cuda_profiler_range", EventKind.OTHER, OTHER),
    ("mtia_insight", EventKind.OTHER, OTHER),
    ("xpu_sync", EventKind.OTHER, OTHER),
]


def _row(**fields: Any) -> dict[str, Any]:
    return {"ph": "X", "name": "n", "pid": 0, "tid": 7, "ts": 10, "dur": 1, **fields}


@pytest.mark.parametrize(("cat", "kind", "side"), TABLE, ids=[case[0] for case in TABLE])
def test_a_category_has_one_meaning(read: Read, cat: str, kind: EventKind, side: Side) -> None:
    trace = read([_row(cat=cat)])
    assert trace.events.kind.tolist() == [kind]
    assert trace.events.lane_of(0).side == side
    assert trace.events.cats[trace.events.cat[0]] == cat
    assert trace.meta.unknown_cats == {}


def test_the_table_above_is_whole() -> None:
    assert {cat for cat, _, _ in TABLE} == CATEGORIES.keys()


def test_an_unknown_category_is_kept_counted_and_never_work(read: Read) -> None:
    trace = read([_row(cat="warp_drive"), _row(cat="warp_drive"), _row(), _row(cat="kernel")])
    assert trace.meta.unknown_cats == {"": 1, "warp_drive": 2}
    assert (~trace.events.is_kind(*DEVICE_KINDS)).sum() == 3
    assert {
        trace.events.lane_of(row).side for row in np.flatnonzero(~trace.events.is_kind(*DEVICE_KINDS))
    } == {OTHER}


@pytest.mark.parametrize(
    ("cat", "name", "kind"),
    [
        ("mtia_ccp_events", "event_wait", EventKind.OTHER),
        ("mtia_ccp_events", "event_record", EventKind.OTHER),
        ("mtia_ccp_events", "dma_request", EventKind.MEMCPY),
        ("mtia_ccp_events", "pe_exe", EventKind.KERNEL),
        ("mtia_runtime", "synchronize", EventKind.OTHER),
        ("mtia_runtime", "synchronizeStream", EventKind.RUNTIME),
        ("cpu_op", "event_wait", EventKind.CPU_OP),
        ("Operator", "ProfilerStep#3", EventKind.CPU_OP),
    ],
)
def test_mixed_categories_are_told_apart_by_name(read: Read, cat: str, name: str, kind: EventKind) -> None:
    trace = read([_row(cat=cat, name=name), _row(cat="cpu_op")])
    row = trace.events.order.tolist().index(0)
    assert trace.events.kind[row] == kind
    assert trace.meta.unknown_cats == {}


def test_the_autograd_exporter_before_kineto_is_read_by_its_tracks(read_text: Read) -> None:
    found = [
        {"name": "aten::mm", "ph": "X", "ts": 1.5, "dur": 4.0, "tid": 3, "pid": "CPU functions", "args": {}},
        {
            "name": "aten::mm",
            "ph": "s",
            "ts": 1.5,
            "tid": 3,
            "pid": "CPU functions",
            "id": 1,
            "cat": "cpu_to_cuda",
        },
        {"name": "gemm", "ph": "X", "ts": 3.0, "dur": 4.0, "tid": 0, "pid": "CUDA functions", "args": {}},
    ]
    trace = read_text(json.dumps(found))
    assert trace.events.kind.tolist() == [EventKind.CPU_OP, EventKind.KERNEL]
    assert [trace.events.lane_of(row).side for row in range(2)] == [HOST, DEVICE]
    assert "array form" in trace.meta.dialect


def test_an_array_without_categories_that_names_aten_ops_loads_as_unknown(read_text: Read) -> None:
    trace = read_text(json.dumps([_row(name="aten::mm", pid=1)]))
    assert trace.events.kind.tolist() == [EventKind.OTHER]
    assert trace.meta.unknown_cats == {"": 1}


def test_torch_npu_rows_are_read_by_their_process(read_text: Read) -> None:
    process = [
        {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}}
        for pid, name in [(9, "Python"), (10, "CANN"), (11, "Ascend Hardware"), (12, "Overlap Analysis")]
    ]
    rows = [
        _row(pid=9, tid=9, cat="cpu_op", name="aten::mm", ts="1704161511420306.491", dur="2.5"),
        _row(
            pid=9,
            tid=9,
            cat="enqueue",
            name="Enqueue@Mm",
            ts="1704161511420307.000",
            args={"correlation_id": 5},
        ),
        _row(pid=10, tid=9, name="Node@launch", ts="1704161511420308.000"),
        _row(pid=11, tid=2, name="MatMul", ts="1704161511420309.000", args={"Task Type": "AI_CORE"}),
        _row(pid=11, tid=2, name="MEMCPY_ASYNC", ts="1704161511420310.000"),
        _row(pid=11, tid=2, name="EVENT_WAIT", ts="1704161511420311.000"),
        _row(pid=12, tid=0, name="Computing", ts="1704161511420312.000"),
    ]
    flow = {
        "ph": "s",
        "id": "7318349394477056001",
        "pid": 9,
        "tid": 9,
        "ts": "1704161511420306.491",
        "cat": "async_npu",
    }
    trace = read_text(json.dumps([*process, *rows, flow]))
    kinds = [
        EventKind.CPU_OP,
        *[EventKind.RUNTIME] * 2,
        EventKind.KERNEL,
        EventKind.MEMCPY,
        *[EventKind.OTHER] * 2,
    ]
    assert trace.events.kind.tolist() == kinds
    assert trace.events.correlation.tolist() == [-1, 5, -1, -1, -1, -1, -1]
    assert trace.meta.origin_ns == 1704161511420306491
    assert (trace.events.end_ns[0], trace.events.start_ns[1]) == (2500, 509)
    assert trace.flows.id.tolist() == [7318349394477056001]
    assert trace.events.lane_of(3).stream == 2
    assert trace.meta.unknown_cats == {"": 1}


@pytest.mark.parametrize(
    ("events", "header", "words"),
    [
        ([_row(cat="Operator")], {}, ["capitalised categories (<= 2022-04)", "integer µs (< 2024-03)"]),
        (
            [
                _row(cat="cpu_op", args={"Trace iteration": 0}),
                {"ph": "s", "cat": "async_cpu_to_gpu", "ts": 1},
            ],
            {},
            [
                "flow async_cpu_to_gpu (<= 2022-10)",
                '"Trace iteration" (<= 2022-10)',
                "integer µs (< 2024-03)",
            ],
        ),
        (
            [_row(cat="cuda_driver", ts=1712170339414321.5, args={"Ev Idx": 1})],
            {},
            [
                '"Ev Idx" (>= 2022-11)',
                "cuda_driver (>= 2023-04)",
                "epoch µs with decimals (2024-03..2024-05)",
            ],
        ),
        (
            [_row(cat="cpu_op", ts=5.5, args={"Record function id": 0, "Comms Id": 1})],
            {"baseTimeNanoseconds": 1},
            [
                "baseTimeNanoseconds (>= 2024-05)",
                '"Record function id" (>= 2024-05)',
                '"Comms Id" (>= 2026-03)',
            ],
        ),
    ],
)
def test_words_date_the_writer_oldest_first(
    read: Read, events: list[Any], header: dict[str, Any], words: list[str]
) -> None:
    found = read(events, **header).meta.dialect
    assert [word for word in found if not word.startswith("no base")] == words


def test_a_unit_before_the_events_dates_to_2025(read_text: Read) -> None:
    late = {"traceEvents": [_row(cat="cpu_op")], "displayTimeUnit": "ms"}
    early = dict(reversed(late.items()))
    word = "displayTimeUnit before traceEvents (>= 2025-03)"
    assert word in read_text(json.dumps(early)).meta.dialect
    assert word not in read_text(json.dumps(late)).meta.dialect


def test_a_dated_word_inside_a_name_dates_nothing(read: Read) -> None:
    trace = read([_row(cat="cpu_op", name='say "Ev Idx"')])
    assert '"Ev Idx" (>= 2022-11)' not in trace.meta.dialect
