"""Small traces for tests: an event table straight from Chrome events, with nothing of `load` in between."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stepcrit.model.events import EventKind, EventTable, Lane, Side
from stepcrit.model.trace import FlowTable, MemoryTable, RawTrace, TraceMeta

KINDS = {
    "cpu_op": EventKind.CPU_OP,
    "user_annotation": EventKind.ANNOTATION,
    "cuda_runtime": EventKind.RUNTIME,
    "cuda_driver": EventKind.RUNTIME,
    "kernel": EventKind.KERNEL,
    "gpu_memcpy": EventKind.MEMCPY,
    "gpu_memset": EventKind.MEMSET,
    "cuda_sync": EventKind.SYNC,
    "python_function": EventKind.PYTHON,
}
Event = dict[str, Any]
"""One event as a Chrome trace holds it."""

DEVICE = (EventKind.KERNEL, EventKind.MEMCPY, EventKind.MEMSET)


def event(cat: str, name: str, span: tuple[int, int], place: tuple[int, int] = (1, 1), **args: Any) -> Event:
    """An event over a span at a place (pid, tid)."""
    ids = {"pid": place[0], "tid": place[1], "args": args}
    return {"cat": cat, "name": name, "ts": span[0], "dur": span[1] - span[0], **ids}


def table(chrome: Sequence[Mapping[str, Any]], *, scale: int = 1000) -> EventTable:
    """An event table from Chrome events with integer times (µs become ns with the default scale)."""
    starts = [int(e["ts"] * scale) for e in chrome]
    ends = [int((e["ts"] + e.get("dur", 0)) * scale) for e in chrome]
    order = sorted(range(len(chrome)), key=lambda i: (starts[i], -ends[i], i))
    chrome = [chrome[i] for i in order]
    names, cats = Interned(), Interned()
    lanes: dict[Lane, int] = {}
    kinds = [KINDS.get(e.get("cat", ""), EventKind.OTHER) for e in chrome]
    args = {i: dict(e.get("args", {})) for i, e in enumerate(chrome)}
    none = np.full(len(chrome), -1, np.int64)
    shapes, dtypes = Interned(), Interned()
    lists = [
        np.array(
            [kept(json.dumps(a[key], separators=(",", ":"))) if a.get(key) else -1 for a in args.values()],
            np.int32,
        )
        for kept, key in ((shapes, "Input Dims"), (dtypes, "Input type"))
    ]
    return EventTable(
        np.array(kinds, np.int8),
        np.array([cats(e.get("cat", "")) for e in chrome], np.int32),
        np.array([names(e["name"]) for e in chrome], np.int32),
        np.array([starts[i] for i in order], np.int64),
        np.array([ends[i] for i in order], np.int64),
        np.array([_lane(e, k, lanes) for e, k in zip(chrome, kinds, strict=True)], np.int32),
        np.array([a.get("correlation", -1) for a in args.values()], np.int64),
        none,
        np.array([a.get("bytes", -1) for a in args.values()], np.int64),
        np.array(order, np.int64),
        none,
        none.astype(np.int32),
        none.astype(np.int32),
        *lists,
        names.words,
        cats.words,
        tuple(lanes),
        (),
        (),
        *(kept.words for kept in (shapes, dtypes)),
        {i: a for i, a in args.items() if a and (kinds[i] == EventKind.SYNC or "Collective name" in a)},
    )


def trace(chrome: Sequence[Mapping[str, Any]], **meta: Any) -> RawTrace:
    """A whole trace around `table`."""
    none64, none32, none8 = np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.int8)
    defaults = {
        "source": "made",
        "sha256": "",
        "input_bytes": 0,
        "json_bytes": 0,
        "compression": "none",
        "origin_ns": 0,
    }
    return RawTrace(
        TraceMeta(**{**defaults, **meta}),
        table(chrome),
        FlowTable(none8, none32, none64, none64, none32),
        MemoryTable(none64, none64, none64, none64, none32, none32),
    )


class Interned:
    """Words by number, in order of first use."""

    def __init__(self) -> None:
        self.index: dict[str, int] = {}

    def __call__(self, word: str) -> int:
        return self.index.setdefault(word, len(self.index))

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(self.index)


def _lane(event: Mapping[str, Any], kind: EventKind, lanes: dict[Lane, int]) -> int:
    args = event.get("args", {})
    if kind in DEVICE:
        lane = Lane(
            Side.DEVICE, str(event["pid"]), str(event["tid"]), event["pid"], args.get("stream", event["tid"])
        )
    elif kind in (EventKind.SYNC, EventKind.OTHER):
        lane = Lane(Side.OTHER, str(event["pid"]), str(event["tid"]), args.get("device", event["pid"]))
    else:
        lane = Lane(Side.HOST, str(event["pid"]), str(event["tid"]))
    return lanes.setdefault(lane, len(lanes))
