"""Small training jobs as trace files: steps of given lengths, launches, waits and copies that can be counted by hand."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from typing import Any

HOST, QUEUE = (100, 1), (0, 7)
STEADY = (1000,) * 6


def _event(
    cat: str, name: str, span: tuple[float, float], place: tuple[int, int], **args: Any
) -> dict[str, Any]:
    return {
        "ph": "X", "cat": cat, "name": name, "ts": span[0], "dur": span[1] - span[0], "pid": place[0], "tid": place[1],
        "args": args,
    }  # fmt: skip


def job(
    lengths: Sequence[float] = STEADY,
    *,
    launches: int | Sequence[int] = 2,
    syncs: int = 0,
    copied: int = 0,
    device: str = "GPU A",
    options: Sequence[str] = (),
    extra_op: str = "",
    held: Sequence[tuple[int, int]] = (),
) -> bytes:
    """A trace, gzipped.

    Each step is one `aten::mm` that launches kernels, which end 10 us before the next step begins: the period of a
    step is its length in us. In front of them a copy of so many bytes to the device, behind them so many waits.
    In the last step allocators (type of device, bytes in all) tell what they hold.
    """
    rows, at, ids = [], 1000.0, iter(range(1, 100_000))
    for i, length in enumerate(lengths):
        count = launches if isinstance(launches, int) else launches[i]
        rows.append(_event("user_annotation", f"ProfilerStep#{i}", (at, at + length), HOST))
        if copied:
            mine = next(ids)
            rows.append(_event("cuda_runtime", "cudaMemcpyAsync", (at + 2, at + 4), HOST, correlation=mine))
            name = "Memcpy HtoD (Pinned -> Device)"
            rows.append(
                _event(
                    "gpu_memcpy",
                    name,
                    (at + 5, at + 8),
                    QUEUE,
                    correlation=mine,
                    bytes=copied,
                    stream=7,
                    device=0,
                )
            )
        rows.append(_event("cpu_op", "aten::mm", (at + 10, at + 50), HOST))
        each = (length - 110) / max(count, 1)
        for k in range(count):
            mine, start = next(ids), at + 100 + k * each
            call = (at + 11 + 30 * k / count, at + 11 + 30 * (k + 1) / count - 0.5)
            rows.append(_event("cuda_runtime", "cudaLaunchKernel", call, HOST, correlation=mine))
            kernel = (start, start + each)
            rows.append(_event("kernel", "gemm_kernel", kernel, QUEUE, correlation=mine, stream=7, device=0))
        if extra_op:
            rows.append(_event("cpu_op", extra_op, (at + 52, at + 54), HOST))
        waits = [(at + 60 + k, at + 60.5 + k) for k in range(syncs)]
        rows += [_event("cuda_runtime", "cudaStreamSynchronize", wait, HOST) for wait in waits]
        at += length
    memory = [
        {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "ts": at - 100 + i, "pid": HOST[0], "tid": HOST[1], "s": "t",
         "args": {"Device Type": kind, "Device Id": 0, "Bytes": 1, "Total Allocated": total, "Total Reserved": total}}
        for i, (kind, total) in enumerate(held)
    ]  # fmt: skip
    trace = {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": device}],
        **dict.fromkeys(options, 1),
        "traceEvents": [row | {"ts": round(row["ts"], 3), "dur": round(row["dur"], 3)} for row in rows]
        + memory,
    }
    return gzip.compress(json.dumps(trace).encode(), mtime=0)


def cpu_job(lengths: Sequence[float] = STEADY) -> bytes:
    """A trace without any device."""
    rows, at = [], 1000.0
    for i, length in enumerate(lengths):
        rows.append(_event("user_annotation", f"ProfilerStep#{i}", (at, at + length), HOST))
        rows.append(_event("cpu_op", "aten::mm", (at + 10, at + length - 10), HOST))
        at += length
    return gzip.compress(json.dumps({"schemaVersion": 1, "traceEvents": rows}).encode(), mtime=0)
