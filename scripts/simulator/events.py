"""The words Kineto uses: categories, call ids, arguments of each kind of event."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .journal import Span
from .program import Collective, DeviceOp, Launch, Open, Sync, WaitEvent

OPERATORS = ("cpu_op", "user_annotation")
FIRST_PID = 4_100
CALL_IDS = {
    "cudaLaunchKernel": 211,
    "cudaLaunchKernelExC": 430,
    "cuLaunchKernelEx": 652,
    "cudaMemcpyAsync": 41,
    "cudaEventRecord": 135,
    "cudaStreamWaitEvent": 147,
    "cudaStreamSynchronize": 131,
    "cudaDeviceSynchronize": 165,
    "cudaEventSynchronize": 137,
    "cudaGraphLaunch": 311,
}
SYNC_KINDS = {
    "cudaStreamWaitEvent": "Stream Wait Event",
    "cudaStreamSynchronize": "Stream Sync",
    "cudaDeviceSynchronize": "Context Sync",
    "cudaEventSynchronize": "Event Sync",
}
KERNEL_ARGUMENTS = {
    "registers per thread": 96,
    "shared memory": 49152,
    "blocks per SM": 0.5,
    "warps per SM": 4.0,
    "grid": [66, 1, 1],
    "block": [256, 1, 1],
    "est. achieved occupancy %": 0,
}
STREAM_SYNC_ROW = 1_000_000  # Kineto moves stream waits of the host to rows of their own


def category(span: Span) -> str:
    """Name the category; calls of the driver interface have their own."""
    return (
        "cuda_driver"
        if span.category == "cuda_runtime" and not span.name.startswith("cuda")
        else span.category
    )


def sequence(span: Span) -> int | None:
    """Return the autograd sequence number of an operator."""
    return span.action.sequence if isinstance(span.action, Open) else None


def has_flow(span: Span) -> bool:
    """Whether the span is one end of an ac2g flow."""
    return span.on_device or isinstance(span.action, Launch)


def arguments(span: Span, number: int) -> dict[str, Any]:
    """Return the args of an event, without its External id."""
    if isinstance(span.action, DeviceOp):
        return _device_arguments(span, span.action)
    if isinstance(span.action, Open):
        return _operator_arguments(span.action, number)
    return {"cbid": CALL_IDS[span.name], "correlation": span.correlation}


def sync_record(span: Span) -> dict[str, Any] | None:
    """Return the cuda_sync record of a waiting call: host time on a device row."""
    if not isinstance(span.action, Sync | WaitEvent):
        return None
    kind = SYNC_KINDS[span.name]
    stream = -1 if span.action.stream is None else span.action.stream
    args: dict[str, Any] = {"cuda_sync_kind": kind}
    if kind.endswith("Event") or kind == "Event Sync":
        args |= _awaited_record(span)
    args |= {"stream": stream, "correlation": span.correlation, "device": span.rank, "context": 1}
    row = {"Stream Wait Event": stream, "Stream Sync": STREAM_SYNC_ROW + stream}.get(kind, 1)
    times = {"ts": span.start_ns + 200, "dur": max(span.end_ns - span.start_ns - 400, 0)}
    return (
        {"ph": "X", "cat": "cuda_sync", "name": kind, "pid": span.rank, "tid": row} | times | {"args": args}
    )


def _awaited_record(span: Span) -> dict[str, int]:
    record = span.record
    stream = getattr(record.action, "stream", -1) if record else -1
    return {
        "wait_on_stream": stream,
        "wait_on_cuda_event_record_corr_id": record.correlation if record else -1,
        "wait_on_cuda_event_id": record.correlation % 64 if record else -1,
    }


def _operator_arguments(action: Open, number: int) -> dict[str, Any]:
    args: dict[str, Any] = {"Record function id": 0}
    if action.sequence is not None:
        args |= {"Sequence number": action.sequence, "Fwd thread id": int(action.backward)}
    if action.collective is not None:
        args |= _collective_arguments(action.collective) | {"Rank": -1}
    return args | {"Ev Idx": number - 1}


def _device_arguments(span: Span, op: DeviceOp) -> dict[str, Any]:
    place = {"device": span.rank, "context": 1, "stream": span.lane, "correlation": span.correlation}
    if op.category != "kernel":
        rate = op.bytes / max(span.end_ns - span.start_ns, 1)
        return place | {"bytes": op.bytes, "memory bandwidth (GB/s)": round(rate, 6)}
    collective = _collective_arguments(op.collective) if op.collective else {}
    return {"queued": 0} | place | KERNEL_ARGUMENTS | collective


def _collective_arguments(collective: Collective) -> dict[str, Any]:
    """Return what both the record of the call and its kernel say about a collective."""
    moves = collective.name != "wait"
    return {
        "Collective name": collective.name,
        "In msg nelems": collective.elements,
        "Out msg nelems": collective.elements,
        "Group size": collective.ranks,
        "dtype": "Float" if moves else "Byte",
        "In split size": "[]",
        "Out split size": "[]",
        "Process Group Name": "0",
        "Process Group Description": "default_pg",
        "Process Group Ranks": str(list(range(collective.ranks))) if moves else "[]",
        "Seq": collective.sequence,
    }


def lane_names(pid: int, tid: int, span: Span, start_ns: int) -> Iterator[dict[str, Any]]:
    """Yield the metadata events of one lane and its process."""
    label = f"GPU {pid}" if span.on_device else "CPU"
    lane = f"stream {tid} " if span.on_device else f"thread {tid} ({_thread_name(span)})"
    for name, key, value, row in (
        ("process_name", "name", "python", 0),
        ("process_labels", "labels", label, 0),
        ("process_sort_index", "sort_index", 5_000_000 + pid if span.on_device else pid, 0),
        ("thread_name", "name", lane, tid),
        ("thread_sort_index", "sort_index", tid, tid),
    ):
        yield {"name": name, "ph": "M", "ts": start_ns, "pid": pid, "tid": row, "args": {key: value}}


def _thread_name(span: Span) -> str:
    return "python" if span.lane == "main" else f"pt_autograd_{span.rank}"


def device_properties(number: int) -> dict[str, Any]:
    """Describe the invented device."""
    return {
        "id": number,
        "name": "Simulated GPU",
        "totalGlobalMem": 85_899_345_920,
        "computeMajor": 9,
        "computeMinor": 0,
        "maxThreadsPerBlock": 1024,
        "maxThreadsPerMultiprocessor": 2048,
        "regsPerBlock": 65536,
        "warpSize": 32,
        "sharedMemPerBlock": 49152,
        "numSms": 132,
        "regsPerMultiprocessor": 65536,
        "sharedMemPerBlockOptin": 232448,
        "sharedMemPerMultiprocessor": 233472,
    }


def distributed_info(rank: int, world: int) -> dict[str, Any]:
    """Describe the job as rank `rank` sees it."""
    group = {"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl", "pg_size": world}
    return {
        "backend": "nccl",
        "rank": rank,
        "world_size": world,
        "pg_count": 1,
        "pg_config": [group | {"ranks": list(range(world))}],
        "nccl_version": "2.27.3",
    }
