"""Sound traces to start from: windows of our fixtures, and a small job in the words of every writer."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any

Event = dict[str, Any]
Trace = dict[str, Any]

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
FILES = (
    "simulated/graph_step",
    "simulated/two_streams_sync_records",
    "simulated/grad_accumulation",
    "simulated/item_sync",
    "recorded/op_pair_after",
    "recorded/ddp_gloo_rank0",
)
WIDEST = 120
"""Events in a window of a fixture."""


def seed_trace(dice: Random) -> Trace:
    """A sound trace."""
    if dice.random() < 0.4:
        return window(dice)
    return dice.choice(DIALECTS)(job(dice))


def window(dice: Random) -> Trace:
    """Some events in a row of a fixture, with its header and its metadata."""
    whole = _fixture(dice.choice(FILES))
    events = whole["traceEvents"]
    start = dice.randrange(len(events))
    cut = events[start : start + dice.randint(1, WIDEST)]
    named = [event for event in events[:40] if event.get("ph") == "M"]
    return {**whole, "traceEvents": [dict(event) for event in (*named, *cut)]}


@lru_cache(maxsize=len(FILES))
def _fixture(name: str) -> Trace:
    made: Trace = json.loads(gzip.decompress((FIXTURES / f"{name}.json.gz").read_bytes()))
    return made


# --- a small job -------------------------------------------------------------------------------


def job(dice: Random) -> Trace:
    """Training steps of today's writer: operators, launches, kernels, copies, a collective, a wait, an update."""
    events: list[Event] = [
        _meta("process_name", 1, 0, "python"),
        _meta("thread_name", 1, 1, "thread 1 (python)"),
        _meta("process_name", 0, 0, "python"),
        _meta("thread_name", 0, 7, "stream 7"),
    ]
    at = 100
    for number in range(dice.randint(1, 4)):
        at = _step(dice, events, number, at)
    events.append(_row("Trace", "PyTorch Profiler (0)", (0, at + 50), ("Spans", "PyTorch Profiler")))
    return {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "NVIDIA H100", "totalGlobalMem": 1, "numSms": 132}],
        "distributedInfo": {
            "backend": "nccl", "rank": 0, "world_size": 2,
            "pg_config": [{"pg_name": "0", "pg_desc": "default_pg", "ranks": [0, 1]}],
        },
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": 1_700_000_000_000_000_000,
        "traceEvents": events,
        "traceName": "trace.json",
    }  # fmt: skip


def _step(dice: Random, events: list[Event], number: int, start: int) -> int:
    """One step from `start`; returns its end."""
    at = device = start + 2
    for index in range(dice.randint(1, 6)):
        correlation = number * 100 + index + 1
        host = dice.randint(3, 30)
        op = dice.choice(("aten::mm", "aten::add_", "aten::copy_", "autograd::engine::evaluate_function: X"))
        events.append(
            _row(
                "cpu_op",
                op,
                (at, at + host),
                (1, 1),
                **{"External id": correlation, "Sequence number": index},
            )
        )
        device = _launch(dice, events, correlation, (at + 1, max(at + 3, device)))
        at += host + dice.randint(0, 3)
    if dice.random() < 0.5:
        end = max(at + 1, device)
        events.append(
            _row("cuda_runtime", "cudaDeviceSynchronize", (at, end), (1, 1), correlation=number * 100 + 90)
        )
        events.append(
            _row(
                "cuda_sync",
                "Context Sync",
                (at, end),
                (0, -1),
                correlation=number * 100 + 90,
                stream=-1,
                device=0,
            )
        )
        at = end
    events.append(_row("user_annotation", "Optimizer.step#SGD.step", (at, at + 5), (1, 1)))
    events.append(_row("user_annotation", f"ProfilerStep#{number}", (start, at + 6), (1, 1)))
    events.append({"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": at,
                   "args": {"Total Reserved": 2048, "Total Allocated": 1024, "Bytes": 512, "Device Type": 1, "Device Id": 0}})  # fmt: skip
    return at + 8


def _launch(dice: Random, events: list[Event], correlation: int, when: tuple[int, int]) -> int:
    """A call and what it launches; returns when the device is done."""
    kind = dice.choice(("kernel", "kernel", "gpu_memcpy", "gpu_memset", "nccl"))
    cat = "kernel" if kind == "nccl" else kind
    names = {"kernel": "void gemm<float, 128>(int)", "nccl": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(int)",
             "gpu_memcpy": "Memcpy HtoD (Pageable -> Device)", "gpu_memset": "Memset (Device)"}  # fmt: skip
    calls = {"gpu_memcpy": "cudaMemcpyAsync", "gpu_memset": "cudaMemsetAsync"}
    stream = 20 if kind == "nccl" else 7
    args: dict[str, Any] = {"correlation": correlation, "stream": stream, "device": 0}
    if kind == "nccl":
        args |= {"Collective name": "allreduce", "In msg nelems": 64, "Out msg nelems": 64, "Group size": 2, "dtype": "Float",
                 "Process Group Name": "0", "Process Group Ranks": "[0, 1]"}  # fmt: skip
    if kind == "gpu_memcpy":
        args["bytes"] = 4096
    call, start = when
    end = start + dice.randint(1, 40)
    events.append(
        _row(
            "cuda_runtime",
            calls.get(kind, "cudaLaunchKernel"),
            (call, call + 2),
            (1, 1),
            correlation=correlation,
        )
    )
    events.append(
        {"ph": "s", "id": correlation, "pid": 1, "tid": 1, "ts": call, "cat": "ac2g", "name": "ac2g"}
    )
    events.append(_row(cat, names[kind], (start, end), (0, stream), **args))
    events.append(
        {
            "ph": "f",
            "id": correlation,
            "pid": 0,
            "tid": stream,
            "ts": start,
            "cat": "ac2g",
            "name": "ac2g",
            "bp": "e",
        }
    )
    return end


def _row(cat: str, name: str, span: tuple[int, int], place: tuple[Any, Any], **args: Any) -> Event:
    return {"ph": "X", "cat": cat, "name": name, "pid": place[0], "tid": place[1], "ts": span[0],
            "dur": span[1] - span[0], "args": args}  # fmt: skip


def _meta(name: str, pid: Any, tid: Any, value: str) -> Event:
    return {"ph": "M", "name": name, "pid": pid, "tid": tid, "ts": 0, "args": {"name": value}}


# --- the words of other writers ----------------------------------------------------------------


def _each(trace: Trace, change: Callable[[Event], Event], header: Mapping[str, Any] | None = None) -> Trace:
    events = [change(dict(event)) for event in trace["traceEvents"]]
    return {**(trace if header is None else header), "traceEvents": events}


def today(trace: Trace) -> Trace:
    """As `job` makes it."""
    return trace


def decimals(trace: Trace) -> Trace:
    """Times with three decimals since a base."""
    return _each(
        trace,
        lambda event: {
            **event,
            "ts": event["ts"] + 0.125,
            **({"dur": event["dur"] + 0.5} if "dur" in event else {}),
        },
    )


def epoch(trace: Trace) -> Trace:
    """Whole microseconds since 1970 and no base."""
    header = {"schemaVersion": 1, "deviceProperties": []}
    return _each(trace, lambda event: {**event, "ts": event["ts"] + 1_650_000_000_000_000}, header)


def capitalised(trace: Trace) -> Trace:
    """Categories as until April 2022, in a document of nothing but events."""
    old = {
        "cpu_op": "Operator",
        "cuda_runtime": "Runtime",
        "kernel": "Kernel",
        "gpu_memcpy": "Memcpy",
        "gpu_memset": "Memset",
    }
    return _each(
        trace, lambda event: {**event, "cat": old.get(event.get("cat", ""), event.get("cat", ""))}, {}
    )


def before_kineto(trace: Trace) -> Trace:
    """The autograd exporter: no categories, tracks with names."""

    def changed(event: Event) -> Event:
        place = "CUDA functions" if event.get("cat") == "kernel" else "CPU functions"
        return {**{key: value for key, value in event.items() if key != "cat"}, "pid": place, "args": {}}

    return _each(
        {"traceEvents": [event for event in trace["traceEvents"] if event["ph"] != "i"]}, changed, {}
    )


def begins_and_ends(trace: Trace) -> Trace:
    """Rows as a B and an E."""
    events: list[Event] = []
    for event in trace["traceEvents"]:
        if event["ph"] != "X":
            events.append(event)
            continue
        rest = {key: value for key, value in event.items() if key != "dur"}
        events += ({**rest, "ph": "B"}, {**rest, "ph": "E", "ts": event["ts"] + event["dur"]})
    return {**trace, "traceEvents": events}


def ascend(trace: Trace) -> Trace:
    """Device rows on a named process, ids as text."""

    def changed(event: Event) -> Event:
        if event.get("cat") not in ("kernel", "gpu_memcpy", "gpu_memset"):
            return {**event, "ts": str(event["ts"])}
        rest = {key: value for key, value in event.items() if key != "cat"}
        return {
            **rest,
            "pid": 77,
            "ts": str(event["ts"]),
            "args": {"correlation_id": event["args"]["correlation"]},
        }

    made = _each(trace, changed, {})
    made["traceEvents"].append(_meta("process_name", 77, 0, "Ascend Hardware"))
    return made


def other_runtimes(trace: Trace) -> Trace:
    """Intel's and Meta's categories, handles in hexadecimal."""
    other = {
        "cuda_runtime": "xpu_runtime",
        "gpu_user_annotation": "mtia_insight",
        "gpu_memset": "mtia_ccp_events",
    }
    return _each(
        trace,
        lambda event: {
            **event,
            "cat": other.get(event.get("cat", ""), event.get("cat", "")),
            "id": "0x1f",
            "attr": {},
        },
    )


DIALECTS: tuple[Callable[[Trace], Trace], ...] = (
    today, decimals, epoch, capitalised, before_kineto, begins_and_ends, ascend, other_runtimes,
)  # fmt: skip
"""What `job` looks like from each family of writers."""


def text_of(trace: Trace, dice: Random) -> bytes:
    """A trace as one of the ways to write it down; the bare list where there is no header."""
    indent = dice.choice((None, None, 2))
    separators = dice.choice(((",", ":"), (", ", ": ")))
    whole: Any = trace["traceEvents"] if len(trace) == 1 and dice.random() < 0.7 else trace
    return json.dumps(whole, indent=indent, separators=separators, ensure_ascii=dice.random() < 0.5).encode(
        "utf-8", "surrogatepass"
    )
