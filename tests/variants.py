"""One trace written in other ways, and everything the product says about it: what must not change, must not.

A document is taken apart into events with times in exact nanoseconds; no float is ever made of a time.
"""

from __future__ import annotations

import gzip
import io
import json
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec.structs
import orjson

from stepcrit.analyses.whatif import Question
from stepcrit.answers import analyze, critical, doctor, rank, whatif
from stepcrit.errors import StepcritError, UnusableInputError
from stepcrit.graph.change import Change
from stepcrit.graph.selector import Selector
from stepcrit.ingest.reader import CHUNK_BYTES, read_trace
from stepcrit.model.section import Document
from stepcrit.report.write import render
from stepcrit.session import Options, Trace

Event = dict[str, Any]
TIMES = ("ts", "dur")
HALF = (Change(Selector("name", "*"), "scale", factor=Fraction(1, 2)),)
VERBS: Mapping[str, Callable[[Trace], Document]] = {
    "analyze": lambda trace: analyze.answer(trace.view(), settings=trace.options.told()),
    "by kernel": lambda trace: analyze.answer(trace.view(), by="kernel"),
    "critical": lambda trace: critical.answer(trace.view(), full=True),
    "whatif": lambda trace: whatif.answer(trace.view(), Question(HALF), whatif.Wanted(curve=True)),
    "rank": lambda trace: rank.answer(trace.view(), top=50),
    "doctor": lambda trace: doctor.answer(trace.raw, trace.links, trace.steps, _notes(trace)),
}
"""Name of a question -> its answer."""


@dataclass(frozen=True)
class Written:
    """A trace file taken apart.

    Attributes:
        header: the top-level keys but the events, in order.
        events: as written, but times are integer nanoseconds.
    """

    header: Mapping[str, Any]
    events: Sequence[Event]


def written(path: Path) -> Written:
    """Take a file apart."""
    data = path.read_bytes()
    text = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    found = json.loads(text.decode("utf-8", "replace"), parse_float=_Exact, strict=False)
    if isinstance(found, list):
        return Written({}, [_in_ns(event) for event in found])
    return Written(
        {key: value for key, value in found.items() if key != "traceEvents"},
        [_in_ns(event) for event in found["traceEvents"]],
    )


class _Exact(Decimal):
    """A number with a fraction, digits kept."""


def _in_ns(event: Any) -> Any:
    times = {key: int(Decimal(event[key]) * 1000) for key in TIMES if key in event and _is_time(event[key])}
    return {key: times.get(key, value) for key, value in event.items()}


def _is_time(value: object) -> bool:
    return isinstance(value, int | Decimal) or (
        isinstance(value, str) and value.lstrip("-").replace(".", "").isdigit()
    )


# --- writing ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Layout:
    """How a document is put into bytes.

    Attributes:
        time: an integer number of nanoseconds as JSON text in microseconds.
        dumps: any JSON value as text.
        around: what stands between two events.
        events_first: whether the events come before the header.
        pack: what is done with the text.
    """

    time: Callable[[int], str] = lambda ns: decimal(ns)  # noqa: PLW0108 - it stands below
    dumps: Callable[[Any], str] = lambda value: orjson.dumps(value, default=_fragment).decode()
    around: str = ",\n"
    events_first: bool = False
    pack: Callable[[bytes], bytes] = bytes


def _fragment(value: Any) -> orjson.Fragment:
    if isinstance(value, Decimal):
        return orjson.Fragment(str(value).encode())
    raise TypeError


def decimal(ns: int) -> str:
    """A time as Kineto writes it: microseconds with three decimals."""
    sign, ns = ("-", -ns) if ns < 0 else ("", ns)
    return f"{sign}{ns // 1000}.{ns % 1000:03}"


def to_bytes(trace: Written, layout: Layout | None = None) -> bytes:
    """Put a document together."""
    layout = layout or Layout()
    members = [f"{layout.dumps(key)}: {layout.dumps(value)}" for key, value in trace.header.items()]
    lines = layout.around.join(_line(event, layout) for event in trace.events)
    events = f'"traceEvents": [{lines}]'
    members.insert(0 if layout.events_first else len(members), events)
    return layout.pack(("{" + ", ".join(members) + "}").encode("utf-8", "surrogatepass"))


def _line(event: Event, layout: Layout) -> str:
    parts = [
        f"{layout.dumps(key)}: {layout.time(value) if key in TIMES and isinstance(value, int) else layout.dumps(value)}"
        for key, value in event.items()
    ]
    return "{" + ", ".join(parts) + "}"


# --- the answers ------------------------------------------------------------------------------


def understood(data: bytes, options: Options | None = None, *, chunk_bytes: int = CHUNK_BYTES) -> Trace:
    """A trace from bytes."""
    return Trace(read_trace(io.BytesIO(data), chunk_bytes=chunk_bytes), options or Options())


def answers(trace: Trace, verbs: Iterable[str] = VERBS) -> dict[str, Document | str]:
    """Every verb's answer without the name, size and digest of its input; what a verb refuses, in its words."""
    found: dict[str, Document | str] = {}
    for verb in verbs:
        try:
            answer = VERBS[verb](trace)
            about = {k: v for k, v in answer.data.get("trace", {}).items() if k != "json_bytes"}
            data = {**answer.data, "trace": about} if about else dict(answer.data)
            found[verb] = msgspec.structs.replace(answer, inputs=(), data=data)
        except StepcritError as error:
            found[verb] = f"{type(error).__name__}: {error}"
    return found


def shown(given: Mapping[str, Document | str], formats: Sequence[str] = ("text", "json")) -> dict[str, bytes]:
    """Answers as the real renderers write them."""
    return {
        f"{verb} {fmt}": render(answer, fmt) if isinstance(answer, Document) else answer.encode()
        for verb, answer in given.items()
        for fmt in formats
    }


def _notes(trace: Trace) -> dict[str, int]:
    try:
        return dict(trace.built.graph.notes)
    except UnusableInputError:
        return {}


# --- other ways to write the same -------------------------------------------------------------


def shuffled(trace: Written, seed: int) -> Written:
    """The same events in another order."""
    events = list(trace.events)
    random.Random(seed).shuffle(events)
    return replace(trace, events=events)


def keys_shuffled(trace: Written, seed: int) -> Written:
    """The same keys in another order: of the file, of each event and of its arguments."""
    chance = random.Random(seed)

    def mixed(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        items = list(value.items())
        chance.shuffle(items)
        return {key: mixed(inner) for key, inner in items}

    return Written(mixed(trace.header), [mixed(event) for event in trace.events])


def timed(trace: Written, change: Callable[[int, str], int]) -> Written:
    """The same events with other times: `change` gets nanoseconds and which time it is."""
    return replace(
        trace,
        events=[
            {k: change(v, k) if k in TIMES and isinstance(v, int) else v for k, v in event.items()}
            for event in trace.events
        ],
    )


def shifted(trace: Written, by_ns: int) -> Written:
    """The same events, later."""
    return timed(trace, lambda ns, key: ns + by_ns if key == "ts" else ns)


def scaled(trace: Written, factor: int) -> Written:
    """The same events, so many times slower, from the same earliest instant."""
    first = min(event["ts"] for event in trace.events if event.get("ph") == "X")
    return timed(trace, lambda ns, key: first + (ns - first) * factor if key == "ts" else ns * factor)


CORRELATIONS = ("correlation", "wait_on_cuda_event_record_corr_id")
STREAMS = ("stream", "wait_on_stream")


@dataclass(frozen=True)
class Renaming:
    """Other numbers for the same things; each a bijection.

    Attributes:
        thread: of host threads (pid, tid).
        stream: of the streams of a device.
        device: of devices.
        correlation, external_id: of calls and operators.
    """

    thread: Callable[[Any, Any], tuple[Any, Any]] = lambda pid, tid: (pid, tid)
    stream: Callable[[int], int] = int
    device: Callable[[int], int] = int
    correlation: Callable[[int], int] = int
    external_id: Callable[[int], int] = int


def renamed(trace: Written, names: Renaming) -> Written:
    """The same things under other numbers, wherever events say them."""
    devices = {
        event["pid"]
        for event in trace.events
        if "stream" in event.get("args", {}) and event.get("cat") in _ON_DEVICE
    }
    return replace(trace, events=[_renamed(event, names, devices) for event in trace.events])


_ON_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset", "cuda_sync", "gpu_user_annotation")


def _renamed(event: Event, names: Renaming, devices: set[Any]) -> Event:
    found = dict(event)
    if event.get("pid") in devices:
        found["pid"] = names.device(event["pid"])
        if isinstance(event["tid"], int) and event.get("cat") != "cuda_sync" and event.get("ph") != "M":
            found["tid"] = names.stream(event["tid"])
    elif "tid" in event and event.get("ph") != "M" and isinstance(event.get("pid"), int):
        found["pid"], found["tid"] = names.thread(event["pid"], event["tid"])
    if event.get("ph") in ("s", "f") and event.get("cat") == "ac2g":
        found["id"] = names.correlation(event["id"])
    on_device = event.get("cat") in _ON_DEVICE
    changes: dict[str, Callable[[int], int]] = {
        **dict.fromkeys(CORRELATIONS, names.correlation),
        **(dict.fromkeys(STREAMS, names.stream) if on_device else {}),
        **({"device": names.device} if on_device else {}),
        "External id": names.external_id,
    }
    if "args" in event:
        found["args"] = {
            key: changes[key](value) if key in changes and isinstance(value, int) and value >= 0 else value
            for key, value in event["args"].items()
        }
    return found
