"""Random traces in which a lot happens at the same instants: ties, zero lengths, crossings, calls without work.

Nothing is spared: device work may start before its launch, or overlap on its queue.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.variants import Event, Written

_AT, _LONG = st.integers(0, 5), st.sampled_from((0, 0, 1, 2, 5))
_OPS = (
    "aten::mm",
    "aten::add",
    "autograd::engine::evaluate_function: MmBackward0",
    "Optimizer.step#SGD.step",
    "mine",
)
_CALLS = (
    "cudaLaunchKernel",
    "cudaLaunchKernel",
    "cudaMemcpyAsync",
    "cudaStreamSynchronize",
    "cudaStreamWaitEvent",
)
_WORK = ("gemm_kernel", "add_kernel", "ncclDevKernel_AllReduce")
_HOST = st.tuples(st.sampled_from(_OPS), _AT, _LONG, st.sampled_from((1, 2)), st.booleans())
_CALL = st.tuples(st.sampled_from(_CALLS), _AT, _LONG, st.sampled_from((1, 2)), st.integers(0, 2))
_FRAME = st.tuples(st.sampled_from(("train.py(1): f", "train.py(2): g", "nn.Module: Net_0")), _AT, _LONG)


@st.composite
def crowded(draw: st.DrawFn) -> Written:
    """Up to a dozen rows of each kind on two threads and two queues, in whole microseconds."""
    rows: list[Event] = []
    for number, (name, at, dur, tid, is_op) in enumerate(draw(st.lists(_HOST, min_size=1, max_size=8)), 1):
        cat = "cpu_op" if is_op else "user_annotation"
        rows.append(row(cat, name, (at, at + dur), (1, tid), **{"External id": number}))
    for number, (name, at, dur, tid, works) in enumerate(draw(st.lists(_CALL, max_size=8)), 1):
        rows.append(row("cuda_runtime", name, (at, at + dur), (1, tid), correlation=number))
        for work in range(works if name in _CALLS[:3] else 0):
            start, stream = at + draw(_AT) - 1, draw(st.sampled_from((7, 20)))
            span = (start, start + draw(_LONG))
            args = {"correlation": number, "stream": stream, "device": 0}
            cat = "gpu_memcpy" if name == _CALLS[2] else "kernel"
            rows.append(row(cat, _WORK[(number + work) % 3], span, (0, stream), **args))
    for number, (name, at, dur) in enumerate(draw(st.lists(_FRAME, max_size=3)), 1):
        rows.append(row("python_function", name, (at, at + dur), (1, 1), **{"Python id": number}))
    return Written({"schemaVersion": 1}, rows)


def row(cat: str, name: str, span_us: tuple[int, int], place: tuple[int, int], **args: Any) -> Event:
    """A row with a duration."""
    start, end = span_us
    pid, tid = place
    times = {"ts": (start + 1000) * 1000, "dur": (end - start) * 1000}
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, **times, "args": args}
