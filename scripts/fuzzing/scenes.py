"""Sound JSON with absurd content: what the model, the links, the graph and the answers must stand."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random
from typing import Any

from fuzzing import odd
from fuzzing.mutate import changed
from fuzzing.seeds import Event, Trace, job, seed_trace

HOST = (
    "cpu_op",
    "cpu_op",
    "user_annotation",
    "cuda_runtime",
    "cuda_runtime",
    "cuda_driver",
    "python_function",
    "overhead",
)
DEVICE = ("kernel", "kernel", "kernel", "gpu_memcpy", "gpu_memset", "cuda_sync", "gpu_user_annotation")
CALLS = (
    "cudaLaunchKernel", "cudaLaunchKernel", "cudaLaunchKernelExC", "cudaMemcpyAsync", "cudaMemcpy", "cudaDeviceSynchronize",
    "cudaStreamSynchronize", "cudaEventSynchronize", "cudaEventRecord", "cudaStreamWaitEvent", "cudaGraphLaunch", "hipLaunchKernel",
    "cudaMalloc", "cuLaunchKernel", "cudaStreamIsCapturing",
)  # fmt: skip
OPS = ("aten::mm", "aten::add", "aten::to", "record_param_comms", "c10d::allreduce_", "nccl:all_reduce", "autograd::engine::evaluate_function: MmBackward0",
       "DistributedDataParallel.forward", "aten::item", "aten::_local_scalar_dense", "")  # fmt: skip
MARKS = ("ProfilerStep#0", "ProfilerStep#1", "ProfilerStep#1", "ProfilerStep#2", "Optimizer.step#SGD.step", "Optimizer.zero_grad#SGD.zero_grad",
         "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", "train", "nccl:all_reduce")  # fmt: skip
KERNELS = ("k", "void gemm<float, 128>(int)", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(int)", "ncclKernel_SendRecv", "elementwise",
           "Memcpy DtoH (Device -> Pageable)", "Memcpy HtoD (Pinned -> Device)", "Memset (Device)", "Event Sync", "Stream Wait Event", "Context Sync", "")  # fmt: skip


def scene(dice: Random) -> Trace:
    """A trace that can be read, and that no program ever recorded."""
    made = dice.choice(SCENES)(dice)
    return {key: sound(value) for key, value in made.items()}


def sound(value: Any) -> Any:
    """The value without what JSON cannot say."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: sound(inner) for key, inner in value.items()}
    return [sound(inner) for inner in value] if isinstance(value, list) else value


def _odd_values(dice: Random) -> Trace:
    return changed(seed_trace(dice), dice)


def _whole_job(dice: Random) -> Trace:
    """A job of which some rows lie elsewhere in time."""
    made = job(dice)
    for event in dice.sample(made["traceEvents"], min(len(made["traceEvents"]), dice.randint(0, 6))):
        event["ts"] = odd.time_us(dice)
        if "dur" in event and dice.random() < 0.5:
            event["dur"] = odd.time_us(dice)
    return made


def _wild(dice: Random) -> Trace:
    """Rows of every kind anywhere: crossing, nested, equal; ids that collide."""
    span = dice.choice((1, 3, 20, 200, 10**6))
    rows = [_row(dice, lambda: dice.randint(0, span)) for _ in range(dice.choice((1, 2, 5, 20, 100)))]
    return {"schemaVersion": 1, "traceEvents": [*rows, *_flows(dice, rows)]}


def _huge(dice: Random) -> Trace:
    """Rows at the ends of time."""
    rows = [_row(dice, lambda: odd.time_us(dice)) for _ in range(dice.choice((2, 5, 30)))]
    return {"schemaVersion": 1, "traceEvents": rows}


def _nothing_takes_time(dice: Random) -> Trace:
    rows = [{**_row(dice, lambda: 5), "dur": 0} for _ in range(dice.choice((1, 5, 60)))]
    return {"schemaVersion": 1, "traceEvents": rows}


def _many_lanes(dice: Random) -> Trace:
    """Every row on a thread or a queue of its own."""
    rows = []
    for index in range(dice.choice((200, 1500))):
        row = _row(dice, lambda: dice.randint(0, 1000))
        row["tid"] = index
        row["args"]["stream"] = index
        rows.append(row)
    return {"schemaVersion": 1, "traceEvents": rows}


def _all_alike(dice: Random) -> Trace:
    """One name, one id, one place for everything."""
    rows = [_row(dice, lambda: dice.randint(0, 60)) for _ in range(dice.choice((5, 80)))]
    for row in rows:
        row["name"] = "same"
        row["args"] = {**row["args"], "correlation": 1, "External id": 1, "stream": 7}
    return {"schemaVersion": 1, "traceEvents": [*rows, *_flows(dice, rows)]}


def _deep(dice: Random) -> Trace:
    """Rows within rows within rows."""
    depth = dice.choice((10, 300, 1200))
    rows = [
        {**_row(dice, lambda: 0), "cat": "cpu_op", "pid": 1, "tid": 1, "ts": i, "dur": 2 * (depth - i)}
        for i in range(depth)
    ]
    launch = {
        "ph": "X",
        "cat": "cuda_runtime",
        "name": "cudaLaunchKernel",
        "pid": 1,
        "tid": 1,
        "ts": depth,
        "dur": 0,
        "args": {"correlation": 1},
    }
    kernel = {
        "ph": "X",
        "cat": "kernel",
        "name": "k",
        "pid": 0,
        "tid": 7,
        "ts": depth,
        "dur": 5,
        "args": {"correlation": 1, "stream": 7},
    }
    return {"schemaVersion": 1, "traceEvents": [*rows, launch, kernel]}


def _steps_anyhow(dice: Random) -> Trace:
    """Steps nested, crossing, repeated, empty, on several threads."""
    made = job(dice)
    for _ in range(dice.randint(1, 8)):
        start = dice.randint(0, 200)
        made["traceEvents"].append(
            {"ph": "X", "cat": "user_annotation", "name": dice.choice(MARKS), "pid": 1, "tid": dice.choice((1, 1, 2)), "ts": start,
             "dur": dice.choice((0, 1, 10, 300))}
        )  # fmt: skip
    return made


SCENES: tuple[Callable[[Random], Trace], ...] = (
    _odd_values, _odd_values, _whole_job, _whole_job, _wild, _wild, _wild, _huge, _nothing_takes_time, _many_lanes, _all_alike, _deep,
    _steps_anyhow, _steps_anyhow,
)  # fmt: skip


def _row(dice: Random, when: Callable[[], Any]) -> Event:
    """A row of any kind: times from `when`, everything else from small pools, so that things meet."""
    on_host = dice.random() < 0.6
    cat = dice.choice(HOST if on_host else DEVICE)
    names = {"cuda_runtime": CALLS, "cuda_driver": CALLS, "user_annotation": MARKS}
    stream = dice.choice((7, 7, 7, 20, 0, -1))
    args: dict[str, Any] = (
        {} if dice.random() < 0.1 else {"correlation": dice.choice((0, 1, 2, 3, 3, dice.randint(0, 50)))}
    )
    if on_host:
        args |= {"External id": dice.randint(0, 5), "Sequence number": dice.choice((-1, 0, 1, 1))}
    else:
        args |= {
            "stream": stream,
            "device": dice.choice((0, 0, 0, 1)),
            "wait_on_stream": 7,
            "wait_on_cuda_event_record_corr_id": dice.randint(0, 4),
        }
    if dice.random() < 0.1:
        args |= {
            "Collective name": dice.choice(("allreduce", "send", "x")),
            "Group size": dice.choice((0, 1, 2, "2", -1)),
            "In msg nelems": dice.choice((0, 5, "7")),
        }
    start, other = when(), when()
    return {
        "ph": "X", "cat": cat, "name": dice.choice(names.get(cat, OPS if on_host else KERNELS)),
        "pid": dice.choice((1, 1, 1, 2)) if on_host else dice.choice((0, 0, 0, 1)), "tid": dice.choice((1, 1, 2)) if on_host else stream,
        "ts": start, "dur": other if dice.random() < 0.3 else dice.choice((0, 0, 1, 3, 10)), "args": args,
    }  # fmt: skip


def _flows(dice: Random, rows: list[Event]) -> list[Event]:
    """Arrows between any two rows, cycles and strays among them."""
    made: list[Event] = []
    for _ in range(dice.choice((0, 0, 4, 30))):
        cat, number = dice.choice(("ac2g", "fwdbwd", "ac2g", "foo")), dice.choice((0, 1, 2, "x", -1))
        for phase in dice.choice(("sf", "fs", "s", "f", "ssff")):
            row = dice.choice(rows)
            made.append(
                {
                    "ph": phase,
                    "cat": cat,
                    "name": cat,
                    "id": number,
                    "pid": row["pid"],
                    "tid": row["tid"],
                    "ts": row["ts"],
                    "bp": "e",
                }
            )
    return made
