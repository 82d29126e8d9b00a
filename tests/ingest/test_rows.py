"""Events become rows, flows and allocator events, and nothing that lies about its type stops that."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from stepcrit.model.events import EventKind, Lane, Side
from stepcrit.model.trace import RawTrace

Read = Callable[..., RawTrace]


def _op(ts: Any = 10, dur: Any = 5, **fields: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": "cpu_op", "name": "op", "pid": 100, "tid": 101, "ts": ts, "dur": dur, **fields}


def _kernel(ts: Any = 20, dur: Any = 5, tid: Any = 7, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": tid, "ts": ts, "dur": dur, "args": args}


def _mark(phase: str, ts: Any, name: str = "m", tid: Any = 1, **fields: Any) -> dict[str, Any]:
    return {"ph": phase, "cat": "user_annotation", "name": name, "pid": 1, "tid": tid, "ts": ts, **fields}


# --- order, origin, freezing ---------------------------------------------------------------


def test_rows_are_sorted_by_start_then_longest_then_file_order(read: Read) -> None:
    trace = read([_op(5, 1), _op(2, 3), _op(2, 9), _op(2, 3), _op(1, 0)])
    assert trace.events.order.tolist() == [4, 2, 1, 3, 0]
    assert trace.events.start_ns.tolist() == [0, 1000, 1000, 1000, 4000]


def test_order_counts_every_element_of_the_list(read: Read) -> None:
    trace = read([7, {"ph": "M"}, None, _op(3), "x", _op(4)])
    assert trace.events.order.tolist() == [3, 5]
    assert trace.meta.event_count == 6
    assert trace.meta.dropped == {"not a JSON object": 3}


def test_the_origin_is_the_base_and_the_earliest_row(read: Read) -> None:
    base = 217 * 7_889_238_000_000_000
    trace = read([_op("4884379014449.020", "0.5"), _kernel(4884379014450)], baseTimeNanoseconds=base)
    assert trace.meta.origin_ns == base + 4_884_379_014_449_020
    assert trace.meta.base_ns == base
    assert trace.events.start_ns.tolist() == [0, 980]


def test_marks_metadata_and_the_profilers_span_do_not_widen_the_window(read: Read) -> None:
    span = {
        "ph": "X",
        "cat": "Trace",
        "name": "PyTorch Profiler (0)",
        "pid": "Spans",
        "tid": "P",
        "ts": 1,
        "dur": 99,
    }
    marks = [
        {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "ts": 0, "args": {"name": "python"}},
        {"ph": "i", "name": "Record Window End", "pid": "", "tid": "", "ts": 2, "s": "g"},
    ]
    trace = read([span, *marks, _op(10)])
    assert trace.meta.origin_ns == 10_000
    assert trace.meta.span_ns == (-9_000, 90_000)
    assert trace.events.kind.tolist() == [EventKind.PROFILER, EventKind.CPU_OP]
    assert trace.meta.phases == {"M": 1, "X": 2, "i": 1}


def test_a_trace_without_a_span_or_base_says_so(read: Read) -> None:
    meta = read([_op(10)]).meta
    assert (meta.span_ns, meta.base_ns, meta.origin_ns) == ((-1, -1), -1, 10_000)


def test_every_array_is_read_only(read: Read) -> None:
    memory = {"ph": "i", "name": "[memory]", "ts": 1, "args": {"Bytes": 1}}
    trace = read([_op(), _kernel(correlation=1), {"ph": "s", "cat": "ac2g", "id": 1, "ts": 1}, memory])
    for table in (trace.events, trace.flows, trace.memory):
        arrays = [getattr(table, name) for name in table.__slots__]
        found = [array for array in arrays if isinstance(array, np.ndarray)]
        assert found
        assert not any(array.flags.writeable for array in found)


def test_columns_have_the_types_of_the_model(read: Read) -> None:
    events = read([_op(), _kernel()]).events
    types = {
        name: getattr(events, name).dtype.name for name in ("kind", "cat", "name", "lane", "stack", "order")
    }
    assert types == {
        "kind": "int8",
        "cat": "int32",
        "name": "int32",
        "lane": "int32",
        "stack": "int32",
        "order": "int32",
    }


@pytest.mark.parametrize(
    ("ids", "width"),
    [
        ([1, 2**31 - 1], "int32"),
        ([1, 2**31], "int64"),
        ([5, 2**63 - 1], "int64"),
        ([1, 1 - 2**31], "int32"),
        ([1, -(2**31)], "int64"),
        ([2**31, 2**31], "int64"),
    ],
)
def test_ids_have_32_bits_where_those_are_enough_for_all(read: Read, ids: list[int], width: str) -> None:
    found = read([_op(at, 1, args={"External id": number}) for at, number in enumerate(ids, 1)]).events
    assert (found.external_id.dtype.name, found.external_id.tolist()) == (width, ids)


def test_bytes_of_a_copy_may_be_more_than_32_bits(read: Read) -> None:
    copies = [
        {**_kernel(1, 9_000_000, bytes=2**31), "cat": "gpu_memcpy"},
        {**_kernel(2, bytes=7), "cat": "gpu_memcpy"},
    ]
    assert read(copies).events.nbytes.tolist() == [2**31, 7]


# --- durations -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dur", "ns", "reason"),
    [
        (-4, 0, "negative duration clipped to 0"),
        ("-0.001", 0, "negative duration clipped to 0"),
        ("2305843009213693.952", 2**61, None),
        ("2305843009213693.953", 2**61, "duration over 73 years cut"),
        (1e20, 2**61, "duration over 73 years cut"),
        (0, 0, None),
        ("1.5", 1500, None),
    ],
)
def test_odd_durations_are_bounded_and_counted(read: Read, dur: Any, ns: int, reason: str | None) -> None:
    trace = read([_op(10, dur)])
    assert trace.events.end_ns.tolist() == [ns]
    assert trace.meta.dropped == ({reason: 1} if reason else {})


def test_a_missing_duration_is_zero(read: Read) -> None:
    event = _op()
    del event["dur"]
    trace = read([event])
    assert (trace.events.end_ns.tolist(), trace.meta.dropped) == ([0], {})


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"ts": None}, "time is missing or no number"),
        ({"ts": "noon"}, "time is missing or no number"),
        ({"ts": [1]}, "time is missing or no number"),
        ({"ts": 1e300}, "time is out of range"),
        ({"ts": -1e300}, "time is out of range"),
        ({"dur": "long"}, "duration is no number"),
        ({"name": ["a"]}, "fields of an unusable type"),
        ({"pid": {}}, "fields of an unusable type"),
        ({"ph": 1}, "fields of an unusable type"),
    ],
)
def test_a_row_that_cannot_be_placed_is_counted(read: Read, fields: dict[str, Any], reason: str) -> None:
    trace = read([_op(1), _op(**fields), _op(2)])
    assert trace.events.order.tolist() == [0, 2]
    assert trace.meta.dropped == {reason: 1}
    assert trace.meta.event_count == 3


def test_a_row_without_a_time_is_counted(read: Read) -> None:
    event = _op()
    del event["ts"]
    assert read([event, _op()]).meta.dropped == {"time is missing or no number": 1}


def test_a_device_row_whose_start_the_device_did_not_know_is_left_out(read: Read) -> None:
    trace = read([_op(4884379014449), _kernel(0, 0), _kernel(4884379014460)])
    assert trace.events.order.tolist() == [0, 2]
    assert trace.meta.dropped == {"device row without a start time": 1}


@pytest.mark.parametrize(("others", "kept"), [(3_599_999_999, 2), ("3599999999.999", 2), (3_600_000_000, 1)])
def test_a_device_start_of_zero_is_one_that_is_not_known_an_hour_before_all_others(
    read: Read, others: Any, kept: int
) -> None:
    assert len(read([_op(others), _kernel(0, 0)]).events) == kept


def test_the_last_time_of_the_range_is_read_and_the_next_is_not(read: Read) -> None:
    trace = read([_op("4611686018427387.904", 0), _op("4611686018427387.905", 0)])
    assert trace.meta.origin_ns == 2**62
    assert trace.meta.dropped == {"time is out of range": 1}
    trace = read([_op("-1152921504606846.976", 0), _op("-1152921504606846.977", 0)])
    assert trace.meta.origin_ns == -(2**60)
    assert trace.meta.dropped == {"time is out of range": 1}


def test_a_trace_may_start_at_time_zero(read: Read) -> None:
    assert len(read([_kernel(0), _op(0)]).events) == 2


@pytest.mark.parametrize(("ts", "resolution"), [(10, 1000), (10.0, 1000), ("10.001", 1)])
def test_the_resolution_is_what_the_times_show(read: Read, ts: Any, resolution: int) -> None:
    assert read([_op(ts), _op(20)]).meta.resolution_ns == resolution


# --- B and E -------------------------------------------------------------------------------


def test_an_end_closes_the_innermost_begin_of_its_track(read: Read) -> None:
    trace = read([
        _mark("B", 1, "outer"), _mark("B", 1, "other", tid=2), _mark("B", 2, "inner", args={"correlation": 4}),
        _mark("E", 5), _mark("E", 9), _mark("E", 20, tid=2),
    ])  # fmt: skip
    rows = trace.events
    assert [rows.name_of(row) for row in range(3)] == ["other", "outer", "inner"]
    assert rows.start_ns.tolist() == [0, 0, 1000]
    assert rows.end_ns.tolist() == [19000, 8000, 4000]
    assert rows.correlation.tolist() == [-1, -1, 4]
    assert trace.meta.dropped == {}


def test_begins_and_ends_need_not_be_sorted(read: Read) -> None:
    trace = read([_mark("E", 9), _mark("B", 5, "b"), _mark("E", 4), _mark("B", 1, "a")])
    assert trace.events.end_ns.tolist() == [3000, 8000]


def test_at_one_time_file_order_decides(read: Read) -> None:
    trace = read(
        [
            _mark("B", 1, "a"),
            _mark("E", 5),
            _mark("B", 5, "b"),
            _mark("E", 5),
            _mark("B", 5, "c"),
            _mark("E", 6),
        ]
    )
    assert trace.events.end_ns.tolist() == [4000, 5000, 4000]
    assert [trace.events.name_of(row) for row in range(3)] == ["a", "c", "b"]


def test_a_begin_without_end_lasts_to_the_last_time_seen(read: Read) -> None:
    trace = read([_mark("B", 1), _op(10, 32)])
    assert trace.events.end_ns.tolist() == [41000, 41000]
    assert trace.meta.dropped == {"B without E, ended with the trace": 1}


def test_an_end_without_begin_is_counted(read: Read) -> None:
    trace = read([_mark("E", 1), _op(10), _mark("E", None)])
    assert len(trace.events) == 1
    assert trace.meta.dropped == {"E without B": 1, "time is missing or no number": 1}


# --- arguments -----------------------------------------------------------------------------


def test_ids_are_read_in_every_spelling(read: Read) -> None:
    trace = read([
        _op(1, args={"External id": 3}),
        _op(2, args={"external id": 4}),
        _kernel(3, correlation=5, **{"External id": 3}),
        _op(4, cat="enqueue", args={"correlation_id": 6}),
        _kernel(5, correlation="7"),
        _op(6),
    ])  # fmt: skip
    rows = trace.events
    assert rows.external_id.tolist() == [3, 4, 3, -1, -1, -1]
    assert rows.correlation.tolist() == [-1, -1, 5, 6, 7, -1]


@pytest.mark.parametrize("lie", [[1], {"a": 1}, 1.5, True, "abc", 2**80, None])
def test_an_argument_of_a_wrong_type_is_absent(read: Read, lie: Any) -> None:
    trace = read(
        [_kernel(1, correlation=1), _kernel(2, correlation=lie, stream=3), _kernel(3, correlation=2)]
    )
    assert trace.events.correlation.tolist() == [1, -1, 2]
    assert trace.events.lane_of(1).stream == 3


def test_an_argument_of_a_wrong_type_is_counted(read: Read) -> None:
    dropped = read([_op(), _op(args={"Call stack": 5, "correlation": []})]).meta.dropped
    assert sum(dropped.values()) == 2
    assert any('"Call stack"' in reason for reason in dropped)


@pytest.mark.parametrize(
    ("args", "number", "lost"),
    [
        ('"External id":7,"stream":1e999', 7, "stream"),
        ('"External id":1e999', -1, "External id"),
        ('"stream":-1e400,"External id":7,"stream":3', 7, ""),
        ('"External id":1e999,"External id":7', 7, ""),
        ('"External id":7,"unasked":1e999', 7, ""),
    ],
)
def test_a_number_that_no_float_holds_loses_no_other_argument(
    read_text: Read, args: str, number: int, lost: str
) -> None:
    event = (
        '{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":%d,"dur":5,"args":{"cuda_sync_kind":1,%s}}'
    )
    rows = [
        event % (1, args),
        event % (9, '"External id":5'),
        (event % (10, args)).replace("cpu_op", "cuda_sync"),
    ]
    trace = read_text(f'{{"schemaVersion":1,"traceEvents":[{",".join(rows)}]}}')
    assert trace.events.external_id.tolist() == [number, 5, number]
    assert trace.meta.dropped == ({f'argument "{lost}" is unusable, taken as absent': 2} if lost else {})
    assert trace.events.args[2]["cuda_sync_kind"] == 1


@pytest.mark.parametrize(
    "name", ["correlation", "correlation_id", "External id", "external id", "Sequence number"]
)
def test_an_id_that_is_text_but_no_number_is_counted_under_its_name(read: Read, name: str) -> None:
    meta = read([_op(), _op(args={name: "abc"}), _op(args={name: "7"}), _op(args={name: "x"})]).meta
    assert meta.dropped == {f'argument "{name}" is unusable, taken as absent': 2}


@pytest.mark.parametrize("args", [None, 5, "text", [], [{"correlation": 1}]])
def test_arguments_that_are_no_object_are_absent(read: Read, args: Any) -> None:
    trace = read([_op(1, args={"correlation": 8}), _op(2, args=args)])
    assert trace.events.correlation.tolist() == [8, -1]
    assert sum(trace.meta.dropped.values()) == 1


@pytest.mark.parametrize(
    ("cat", "args", "nbytes"),
    [
        ("gpu_memcpy", {"bytes": 128}, 128),
        ("gpu_memcpy", {"bytes": "128"}, 128),
        ("gpu_memset", {"Bytes": 64}, 64),
        ("Memcpy", {"size": "32"}, 32),
        ("gpu_memcpy", {}, -1),
        ("cuda_runtime", {"bytes": "128"}, -1),
    ],
)
def test_bytes_belong_to_copies(read: Read, cat: str, args: dict[str, Any], nbytes: int) -> None:
    assert read([_op(cat=cat, args=args)]).events.nbytes.tolist() == [nbytes]


def test_stacks_and_modules_are_kept_once(read: Read) -> None:
    stacks = ["a.py(1): f;b.py(2): g", "", "c.py(3): h", "a.py(1): f;b.py(2): g"]
    events = read(
        [_op(n, args={"Call stack": s, "Module Hierarchy": f"m{n}"}) for n, s in enumerate(stacks)]
    ).events
    assert [events.stacks[code] if code >= 0 else None for code in events.stack] == [
        s or None for s in stacks
    ]
    assert len(events.stacks) == 2
    assert events.modules == ("m0", "m1", "m2", "m3")
    assert events.module.tolist() == [0, 1, 2, 3]


def test_names_that_are_no_text_become_text(read: Read) -> None:
    events = read([_op(1, name=7), _op(2, name="7"), _op(3, name=None), _op(4, name="")]).events
    assert (events.names, events.name.tolist()) == (("", "7"), [1, 1, 0, 0])


def test_all_arguments_of_syncs_collectives_and_graph_kernels_are_kept(read: Read) -> None:
    sync = {"cuda_sync_kind": "Event Sync", "stream": 4294967295, "wait_on_stream": 7, "new": [1]}
    collective = {"Collective name": "allreduce", "Process Group Ranks": "[0, 1]", "Comms Id": 2**63 + 5}
    trace = read([
        _kernel(9, **{"graph id": 3, "graph node id": 1}),
        _kernel(8, **{"graph id": 0}),
        _kernel(7, **collective),
        _op(6, cat="cuda_sync", args=sync),
        _op(5, args={"Input Dims": [[2]]}),
    ])  # fmt: skip
    assert dict(trace.events.args) == {1: sync, 2: collective, 4: {"graph id": 3, "graph node id": 1}}


# --- lanes ---------------------------------------------------------------------------------


def test_a_host_lane_is_a_thread_and_a_device_lane_a_stream(read: Read) -> None:
    labels = [
        {"ph": "M", "name": "thread_name", "pid": 100, "tid": 101, "args": {"name": "thread 101 (python)"}},
        {"ph": "M", "name": "thread_name", "pid": 0, "tid": 7, "args": {"name": "old"}},
        {"ph": "M", "name": "thread_name", "pid": 0, "tid": 7, "args": {"name": "stream 7 "}},
    ]
    events = read([*labels, _op(1), _op(2, cat="cuda_runtime"), _kernel(3, stream=7, device=0)]).events
    assert events.lanes == (
        Lane(Side.HOST, "100", "101", label="thread 101 (python)"),
        Lane(Side.DEVICE, "0", "7", device=0, stream=7, label="stream 7"),
    )
    assert events.lane.tolist() == [0, 0, 1]


def test_one_track_may_hold_a_thread_and_a_stream(read: Read) -> None:
    frame = {"ph": "X", "cat": "python_function", "name": "f", "pid": 0, "tid": 0, "ts": 1, "dur": 1}
    events = read([frame, _kernel(2, tid=0, stream=0)]).events
    assert [lane.side for lane in events.lanes] == [Side.HOST, Side.DEVICE]


@pytest.mark.parametrize(
    ("tid", "args", "stream"),
    [
        (7, {}, 7),
        ("stream 7", {}, 7),
        ("stream 7 ", {}, 7),
        ("7", {}, 7),
        (3910, {"stream": 112}, 112),
        (1000007, {"stream": "7"}, 7),
        (7, {"stream": -1}, 7),
        (7, {"stream": 4294967295}, 7),
        (4294967295, {"stream": 4294967295}, -1),
        (-1, {}, -1),
        (15514734831341844875, {}, -1),
        ("compute", {}, -1),
    ],
)
def test_the_stream_is_the_argument_else_the_track(
    read: Read, tid: Any, args: dict[str, Any], stream: int
) -> None:
    lane = read([_kernel(1, tid=tid, **args)]).events.lane_of(0)
    assert (lane.stream, lane.tid) == (stream, str(tid))


@pytest.mark.parametrize(
    ("queues", "stream"),
    [
        ({"sycl queue": 3}, 3),
        ({"l0 queue": 4}, 4),
        ({"sycl queue": 3, "l0 queue": 4}, 3),
        ({"stream": 5, "sycl queue": 3, "l0 queue": 4}, 5),
        ({"sycl queue": 0, "l0 queue": 4}, 0),
    ],
)
def test_a_queue_of_xpu_is_a_stream(read: Read, queues: dict[str, int], stream: int) -> None:
    assert read([_kernel(tid="q", **queues)]).events.lane_of(0).stream == stream


@pytest.mark.parametrize(("pid", "device"), [("123456789", 123456789), ("1234567890", 3)])
def test_a_number_of_ten_digits_is_a_process_and_no_device(read: Read, pid: str, device: int) -> None:
    (lane,) = read([{**_kernel(device=3), "pid": pid}]).events.lanes
    assert lane.device == device


def test_rows_of_one_stream_share_a_lane_whatever_their_track(read: Read) -> None:
    events = read(
        [_kernel(1, tid=5, stream=7), _kernel(2, tid=6, stream=7), _kernel(3, tid=5, stream=8)]
    ).events
    assert events.lane.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("pid", "args", "device"), [(3, {"device": 0}, 3), ("rank 0", {"device": 2}, 2), ("x", {}, -1)]
)
def test_the_device_is_the_pid_when_that_is_a_number(
    read: Read, pid: Any, args: dict[str, Any], device: int
) -> None:
    assert read([_kernel(1, **args) | {"pid": pid}]).events.lane_of(0).device == device


@pytest.mark.parametrize(
    ("rows", "names", "labels"),
    [
        ([(0, 0), (1, 1)], {0: "python"}, ["0", "1"]),  # pids that are ordinals
        ([(3, None)], {}, ["3"]),
        ([(2, 2), (200000004, 4)], {2: "RANK 0", 200000004: "RANK 2"}, ["2 (RANK 0)", "4 (RANK 2)"]),
        ([(7, 0)], {}, ["0 (process 7)"]),
        ([(7, 0), (8, 0)], {7: "python", 8: "python"}, ["0 (process 7)", "0 (process 8)"]),
        ([("rank 0", 0), ("rank 1", 0)], {}, ["0 (process rank 0)", "0 (process rank 1)"]),
        ([(7, 0), (7, 1)], {}, ["7"]),  # rows that do not agree tell no ordinal
    ],
)
def test_a_merge_tools_process_number_is_not_shown_as_an_ordinal(
    read: Read, rows: list[tuple[Any, Any]], names: dict[int, str], labels: list[str]
) -> None:
    told = [
        {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}}
        for pid, name in names.items()
    ]
    work = [_kernel(20 * i, stream=7, device=device) | {"pid": pid} for i, (pid, device) in enumerate(rows)]
    assert [lane.device_label for lane in read([*told, *work]).events.lanes] == labels


def test_tracks_written_alike_are_one(read: Read) -> None:
    assert len(read([_op(1, tid=5), _op(2, tid="5")]).events.lanes) == 1


def test_notes_on_the_device_do_not_share_the_lane_of_work(read: Read) -> None:
    events = read(
        [_kernel(1), _kernel(2) | {"cat": "gpu_user_annotation"}, _kernel(3) | {"cat": "cuda_sync"}]
    ).events
    assert [events.lane_of(row).side for row in range(3)] == [Side.DEVICE, Side.OTHER, Side.OTHER]


# --- flows and memory ----------------------------------------------------------------------


def _flow(phase: str, cat: str, **fields: Any) -> dict[str, Any]:
    return {"ph": phase, "cat": cat, "name": cat, "id": 1, "pid": 100, "tid": 101, "ts": 12, **fields}


def test_flows_touch_the_lanes_they_are_drawn_on(read: Read) -> None:
    trace = read([
        _op(10), _kernel(20, stream=7),
        _flow("s", "ac2g"), _flow("f", "ac2g", pid=0, tid=7, ts=20, bp="e"),
        _flow("f", "async_gpu", pid=5, tid=5), _flow("t", "ac2g"),
    ])  # fmt: skip
    flows = trace.flows
    assert flows.is_start.tolist() == [1, 0, 0]
    assert [trace.events.cats[cat] for cat in flows.cat] == ["ac2g", "ac2g", "async_gpu"]
    assert flows.ts_ns.tolist() == [2000, 10000, 2000]
    assert flows.lane.tolist() == [0, 1, -1]
    assert trace.meta.phases["t"] == 1


def test_on_a_track_of_both_kinds_flows_end_on_the_device_unless_they_tie_host_ops(read: Read) -> None:
    trace = read([
        _op(1, pid=0, tid=0), _kernel(2, tid=0, stream=0),
        *[_flow(phase, cat, pid=0, tid=0) for phase in "sf" for cat in ("ac2g", "fwdbwd")],
    ])  # fmt: skip
    sides = [trace.events.lanes[lane].side for lane in trace.flows.lane]
    assert sides == [Side.HOST, Side.HOST, Side.DEVICE, Side.HOST]


def test_flow_ids_keep_their_identity(read: Read) -> None:
    ids = [5, "5", 2**53 + 1, 2**64 - 1, "7318349394477056001", "0x1f", "0x20", "0x1f", None]
    found = read([_op(), *[_flow("s", "ac2g", id=value) for value in ids]]).flows.id.tolist()
    assert found[:3] == [5, 5, 2**53 + 1]
    assert found[3:5] == [-1, 7318349394477056001]
    assert found[5] == found[7]
    assert len(set(found[5:])) == 3


def test_flow_ids_that_are_text_are_never_a_number_that_another_flow_has(read: Read) -> None:
    flows = read([_op(), *(_flow("s", "ac2g", id=id_) for id_ in (-1, "x", -2, "y", "x"))]).flows
    found = flows.id.tolist()
    assert found[1] == found[4]
    assert len(set(found)) == 4


def test_memory_events_are_read_in_old_and_new_form(read: Read) -> None:
    new = {
        "Bytes": -512,
        "Device Type": 1,
        "Device Id": 0,
        "Total Allocated": 1024,
        "Total Reserved": 4096,
        "Addr": 1,
    }
    old = {"Bytes": 64, "Device Type": 0, "Device Id": -1}
    instant = {"ph": "i", "name": "[memory]", "pid": 1, "tid": 1, "s": "t"}
    memory = read([
        _op(10), {**instant, "cat": "cpu_instant_event", "ts": 12, "args": new}, {**instant, "ts": 9, "args": old},
        {**instant, "ts": 13, "args": {}}, {**instant, "ts": 14, "name": "[OutOfMemory]", "args": {}},
    ])  # fmt: skip
    assert memory.meta.dropped == {"memory event without its bytes": 1}
    table = memory.memory
    assert (table.ts_ns.tolist(), table.nbytes.tolist()) == ([2000, -1000], [-512, 64])
    assert (table.allocated.tolist(), table.reserved.tolist()) == ([1024, -1], [4096, -1])
    assert (table.device_type.tolist(), table.device.tolist()) == ([1, 0], [0, -1])


def test_other_phases_are_only_counted(read: Read) -> None:
    others = [{"ph": phase, "cat": "x", "name": "n", "ts": 1, "id": 1} for phase in "bneCtPNODRVvc"]
    trace = read([*others, _op()])
    assert len(trace.events) == 1
    assert sum(trace.meta.phases.values()) == trace.meta.event_count == len(others) + 1


def test_three_hundred_thousand_name_records_change_nothing(read_text: Read) -> None:
    record = {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "ts": 0, "args": {"name": "python"}}
    many = ",".join([json.dumps(record)] * 20_000)
    trace = read_text(f"[{many},{json.dumps(_op())}]")
    assert (len(trace.events), trace.meta.phases) == (1, {"M": 20_000, "X": 1})


def test_arguments_that_no_row_has_take_no_memory(read: Read) -> None:
    rows = read([_op(10, args={"External id": 7}), _op(2), _op(5)]).events
    assert rows.external_id.tolist() == [-1, -1, 7]
    for column in (rows.correlation, rows.nbytes, rows.stack, rows.module, rows.shapes, rows.dtypes):
        assert column.tolist() == [-1, -1, -1]
        assert column.strides == (0,)
        assert not column.flags.writeable
