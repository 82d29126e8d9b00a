"""What a trace's words mean: every category of every writer, and which words date a writer.

A category alone decides what an event is. The few writers without categories (the autograd
exporter before Kineto, Ascend device rows, IBM AIU) are told by their tracks and names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TypeAlias

from msgspec import Struct

from stepcrit.model.events import EventKind, Side

Meaning: TypeAlias = tuple[EventKind, Side]
"""What a row stands for, and the kind of lane it lies on."""

UNKNOWN: Meaning = (EventKind.OTHER, Side.OTHER)

_OP = (EventKind.CPU_OP, Side.HOST)
_MARK = (EventKind.ANNOTATION, Side.HOST)
_CALL = (EventKind.RUNTIME, Side.HOST)
_KERNEL = (EventKind.KERNEL, Side.DEVICE)
_COPY = (EventKind.MEMCPY, Side.DEVICE)
_SET = (EventKind.MEMSET, Side.DEVICE)
_DEVICE_NOTE = (EventKind.OTHER, Side.DEVICE)

CATEGORIES: dict[str, Meaning] = {
    "cpu_op": _OP,
    "user_annotation": _MARK,
    "collective_comm": _MARK,  # oneCCL: a host range around the call
    "cuda_runtime": _CALL,  # HIP calls too
    "cuda_driver": _CALL,
    "xpu_runtime": _CALL,
    "xpu_driver": _CALL,
    "mtia_runtime": _CALL,
    "privateuse1_runtime": _CALL,
    "privateuse1_driver": _CALL,
    "glow_runtime": _CALL,
    "hpu_op": _CALL,
    "enqueue": _CALL,  # torch-npu: the task queue's two ends
    "dequeue": _CALL,
    "kernel": _KERNEL,
    "mtia_ccp_events": _KERNEL,
    "gpu_memcpy": _COPY,
    "gpu_memset": _SET,
    "cuda_sync": (EventKind.SYNC, Side.OTHER),
    "gpu_user_annotation": (EventKind.GPU_ANNOTATION, Side.OTHER),
    "python_function": (EventKind.PYTHON, Side.HOST),
    "overhead": (EventKind.OVERHEAD, Side.OTHER),
    "Trace": (EventKind.PROFILER, Side.OTHER),
    "cuda_event": _DEVICE_NOTE,  # a moment on the device's clock, not work
    "graph_event_node": _DEVICE_NOTE,
    "graph_host_node": _DEVICE_NOTE,
    "cuda_profiler_range": UNKNOWN,  # its times are made up
    "mtia_insight": UNKNOWN,
    "xpu_sync": UNKNOWN,
    # until 2022-04
    "Operator": _OP,
    "Runtime": _CALL,
    "Kernel": _KERNEL,
    "Memcpy": _COPY,
    "Memset": _SET,
    "gpu_user_Annotation": (EventKind.GPU_ANNOTATION, Side.OTHER),
}
"""Every category of rows with a duration that torch.profiler's writers are known to use."""

OTHER_CATEGORIES = frozenset(
    {
        "cpu_instant_event", "fwdbwd", "ac2g", "async_cpu_to_gpu", "async_gpu", "async",
        "cpu_to_cuda", "async_npu", "async_task_queue", "async_acl_npu", "HostToDevice",
        "hardware_counters", "mtia_counters", "xpu_scope_profiler",
    }
)  # fmt: skip
"""Categories of torch.profiler's instants, counters and flow arrows."""

CAPITALISED = frozenset({"Operator", "Runtime", "Kernel", "Memcpy", "Memset", "gpu_user_Annotation"})

_NAMES_IN_CATEGORY: dict[str, dict[str, Meaning]] = {
    "mtia_ccp_events": {"event_wait": _DEVICE_NOTE, "event_record": _DEVICE_NOTE, "dma_request": _COPY},
    # On the device's pid: the device's view of a host call that is listed under the host too.
    "mtia_runtime": {"synchronize": UNKNOWN},
}
"""Categories that mix work and notes, told apart by name."""

_LEGACY_TRACKS = {"CPU functions": _OP, "CUDA functions": _KERNEL}
_NPU_PROCESSES = {"Ascend Hardware": _KERNEL, "CANN": _CALL}
_NPU_WAITS = ("EVENT_", "NOTIFY_", "Notify_", "CAPTURE_")
_AIU_ENDINGS = {" Cmpt Exec": _KERNEL, " DmaI": _COPY, " DmaO": _COPY, " Cmpt Prep": _DEVICE_NOTE}

_SURELY_EPOCH_NS = 10**18  # 2001, or 31 years of uptime

DATED_TEXT = {
    b'"Trace iteration"': '"Trace iteration" (<= 2022-10)',
    b'"Ev Idx"': '"Ev Idx" (>= 2022-11)',
    b'"Record function id"': '"Record function id" (>= 2024-05)',
    b'"graph node id"': '"graph node id" (>= 2026-02)',
    b'"Comms Id"': '"Comms Id" (>= 2026-03)',
}
"""Argument names that date a writer. A quoted name cannot stand unescaped inside a JSON string."""


class Features(Struct, frozen=True):
    """What dates a writer.

    Attributes:
        is_array: the document is a bare list of events.
        keys: top-level keys, in file order.
        categories: categories of the events.
        dated: keys of DATED_TEXT that the events hold.
        whole_microseconds: no time has a fraction.
        first_ns: the earliest time, as the file counts.
    """

    is_array: bool
    keys: Sequence[str]
    categories: Collection[str]
    dated: Collection[bytes]
    whole_microseconds: bool
    first_ns: int


_EVIDENCE = (
    "array form",
    "capitalised categories (<= 2022-04)",
    "flow async_cpu_to_gpu (<= 2022-10)",
    "cuda_driver (>= 2023-04)",
    "integer µs (< 2024-03)",
    "epoch µs with decimals (2024-03..2024-05)",
    "no base, times since an unknown moment",
    "baseTimeNanoseconds (>= 2024-05)",
    "displayTimeUnit before traceEvents (>= 2025-03)",
)
DIALECT_WORDS = frozenset((*_EVIDENCE, *DATED_TEXT.values()))
"""Every word that `words_of` can say."""


def words_of(features: Features) -> tuple[str, ...]:
    """The words that date a writer, oldest evidence first."""
    keys, categories = features.keys, features.categories
    has_unit_first = "displayTimeUnit" in keys and keys.index("displayTimeUnit") < keys.index("traceEvents")
    has_base = "baseTimeNanoseconds" in keys
    is_epoch = features.first_ns > _SURELY_EPOCH_NS
    evidence = (
        ("array form", features.is_array),
        ("capitalised categories (<= 2022-04)", not CAPITALISED.isdisjoint(categories)),
        ("flow async_cpu_to_gpu (<= 2022-10)", "async_cpu_to_gpu" in categories),
        *_dated(features, b'"Trace iteration"', b'"Ev Idx"'),
        ("cuda_driver (>= 2023-04)", "cuda_driver" in categories),
        ("integer µs (< 2024-03)", features.whole_microseconds),
        ("epoch µs with decimals (2024-03..2024-05)", is_epoch and not features.whole_microseconds),
        ("no base, times since an unknown moment", not (is_epoch or has_base)),
        ("baseTimeNanoseconds (>= 2024-05)", has_base),
        *_dated(features, b'"Record function id"'),
        ("displayTimeUnit before traceEvents (>= 2025-03)", has_unit_first),
        *_dated(features, b'"graph node id"', b'"Comms Id"'),
    )
    return tuple(word for word, holds in evidence if holds)


def _dated(features: Features, *texts: bytes) -> list[tuple[str, bool]]:
    """Words for some of the dated texts, and whether the events hold them."""
    return [(DATED_TEXT[text], text in features.dated) for text in texts]


def depends_on_name(category: str) -> bool:
    """Whether rows of `category` need more than it to be understood."""
    return category in _NAMES_IN_CATEGORY or not category


def meaning_of(category: str) -> Meaning | None:
    """What a category stands for, or None when no known writer uses it."""
    return CATEGORIES.get(category)


def meaning_of_name(category: str, name: str, process: str) -> Meaning | None:
    """What a row of a mixed category, or of none, stands for.

    Args:
        category: the row's category, "" when it has none.
        name: the row's name.
        process: the name of the row's process, or its pid as written when it has no name.

    Returns:
        The meaning, or None when nothing tells it.
    """
    if category:
        return _NAMES_IN_CATEGORY.get(category, {}).get(name, meaning_of(category))
    if process in _LEGACY_TRACKS:
        return _LEGACY_TRACKS[process]
    if process in _NPU_PROCESSES:
        return _npu_meaning(name, _NPU_PROCESSES[process])
    return next((meaning for ending, meaning in _AIU_ENDINGS.items() if name.endswith(ending)), None)


def _npu_meaning(name: str, meaning: Meaning) -> Meaning:
    """A row of an Ascend process: tasks that are no kernels are named after their type."""
    if meaning is _KERNEL and name.startswith(_NPU_WAITS):
        return _DEVICE_NOTE
    return _COPY if meaning is _KERNEL and ("MEMCPY" in name or name == "SDMA") else meaning


def is_torch(categories: Iterable[str], names: Iterable[str]) -> bool:
    """Whether events of these categories and names can come from torch.profiler."""
    if any(category in CATEGORIES or category in OTHER_CATEGORIES for category in categories):
        return True
    return any(name.startswith(("aten::", "autograd::")) for name in names)
