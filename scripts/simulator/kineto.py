"""Write one rank of a run as the PyTorch profiler would have."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from . import events as ev
from .journal import Run, Span
from .training import AUTOGRAD

BASE_NS = 225 * 7_889_238 * 1_000_000_000  # Kineto counts from a grid of a quarter year
OFFSET_NS = 4_321_098_765_432_101  # where in that quarter the run began
MICROSECOND_KEYS = ("ts", "dur")


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """The text of a trace file, and where each span went.

    Attributes:
        text: the JSON.
        index: position in `traceEvents` of each recorded span, by identity.
        origin_ns: instant of the simulation at which the earliest recorded span starts.
    """

    text: str
    index: Mapping[int, int]
    origin_ns: int


def write(run: Run, rank: int) -> Trace:
    """Render what the profiler of `rank` recorded."""
    spans = recorded(run, rank)
    names = _name_operators(spans)
    events: list[dict[str, Any]] = []
    index: dict[int, int] = {}
    for span in spans:
        index[id(span)] = len(events)
        events.append(_event(span, names))
        events.extend(_companions(span, run))
    if run.program.recording.flows:
        events.extend(_forward_backward(spans))
    events.extend(_frame(spans))
    text = _document(_header(run, rank), events)
    return Trace(text, index, spans[0].start_ns)


def recorded(run: Run, rank: int) -> list[Span]:
    """Spans of `rank` inside the recording window: operators by start, then calls and device work by start."""
    own = [span for span in run.spans if span.rank == rank]
    steps = [span for span in own if span.name.startswith("ProfilerStep#")]
    opened_ns = steps[run.program.recording.unrecorded_steps].start_ns
    kept = [span for span in own if span.start_ns >= opened_ns]
    # A thread that was inside an operator when the window opened loses that operator, as in real traces.
    return sorted(kept, key=lambda span: (span.category not in ev.OPERATORS, span.start_ns))


def operator_of(span: Span) -> Span | None:
    """Return the innermost cpu_op around a call, or around the call that launched a device span."""
    outer = span.parent
    while outer is not None and outer.category != "cpu_op":
        outer = outer.parent
    return outer


def _name_operators(spans: list[Span]) -> dict[int, int]:
    """Give operators the ids that `External id` refers to."""
    operators = [span for span in spans if span.category in ev.OPERATORS]
    return {id(span): number for number, span in enumerate(operators, start=1)}


def _event(span: Span, names: Mapping[int, int]) -> dict[str, Any]:
    event: dict[str, Any] = {"ph": "X", "cat": ev.category(span), "name": span.name}
    event |= _place(span)
    event |= {"ts": span.start_ns, "dur": span.end_ns - span.start_ns}
    event["args"] = _external_id(span, names) | ev.arguments(span, names.get(id(span), 0))
    return event


def _external_id(span: Span, names: Mapping[int, int]) -> dict[str, int]:
    owner = span if span.category in ev.OPERATORS else operator_of(span)
    number = names.get(id(owner))
    return {"External id": number} if number is not None else {}


def _place(span: Span) -> dict[str, Any]:
    if span.on_device:
        return {"pid": span.rank, "tid": span.lane}
    pid = ev.FIRST_PID + span.rank
    return {"pid": pid, "tid": pid + 57 if span.lane == AUTOGRAD else pid}


def _companions(span: Span, run: Run) -> Iterator[dict[str, Any]]:
    """Yield what Kineto writes next to a call or device span: its flow end and its synchronization record."""
    if run.program.recording.flows and span.correlation and ev.has_flow(span):
        end = {"ph": "f" if span.on_device else "s", "id": span.correlation}
        bind = {"bp": "e"} if span.on_device else {}
        yield end | _place(span) | {"ts": span.start_ns, "cat": "ac2g", "name": "ac2g"} | bind
    if run.program.recording.sync_records and (record := ev.sync_record(span)):
        yield record


def _forward_backward(spans: list[Span]) -> Iterator[dict[str, Any]]:
    """Yield the flow from the innermost forward operator of a sequence number to its gradient function."""
    forward: dict[int, Span] = {}
    number = 0
    for span in spans:
        sequence = ev.sequence(span)
        if sequence is None:
            continue
        if span.lane != AUTOGRAD:
            forward[sequence] = span
        elif span.name.endswith("Backward0") and ":" not in span.name and sequence in forward:
            number += 1
            flow = {"cat": "fwdbwd", "name": "fwdbwd"}
            source = forward[sequence]
            yield {"ph": "s", "id": number} | _place(source) | {"ts": source.start_ns} | flow
            yield {"ph": "f", "id": number} | _place(span) | {"ts": span.start_ns} | flow | {"bp": "e"}


def _frame(spans: list[Span]) -> Iterator[dict[str, Any]]:
    """Yield names of processes and lanes, hulls of annotations, and the profiler's own marks."""
    start_ns = spans[0].start_ns
    end_ns = max(span.end_ns for span in spans)
    lanes = sorted({tuple(_place(span).values()): span for span in spans}.items())
    for (pid, tid), span in lanes:
        yield from ev.lane_names(pid, tid, span, start_ns)
    window = {"ts": start_ns, "dur": end_ns - start_ns}
    profiler = {"pid": "Spans", "tid": "PyTorch Profiler", "name": "PyTorch Profiler (0)"}
    yield {"ph": "X", "cat": "Trace"} | window | profiler | {"args": {"Op count": 0}}
    mark = {"ph": "i", "s": "g", "pid": "Traces", "tid": "Trace PyTorch Profiler", "ts": start_ns}
    yield {"name": "Iteration Start: PyTorch Profiler"} | mark
    yield from _hulls(spans)
    yield {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": end_ns + 150_000}


def _hulls(spans: list[Span]) -> Iterator[dict[str, Any]]:
    """Yield gpu_user_annotations: around the device work whose innermost annotation it was at launch."""
    names = _name_operators(spans)
    members: dict[tuple[int, str | int], list[Span]] = {}
    annotations: dict[int, Span] = {}
    for span in spans:
        annotation = _annotation_of(span) if span.on_device else None
        if annotation is not None and id(annotation) in names:
            annotations[id(annotation)] = annotation
            members.setdefault((id(annotation), span.lane), []).append(span)
    for (key, _), inside in members.items():
        first, last = min(s.start_ns for s in inside) - 1, max(s.end_ns for s in inside) + 1
        name = {"ph": "X", "cat": "gpu_user_annotation", "name": annotations[key].name}
        yield (
            name | _place(inside[0]) | {"ts": first, "dur": last - first, "args": {"External id": names[key]}}
        )


def _annotation_of(span: Span) -> Span | None:
    outer = span.parent
    while outer is not None and outer.category != "user_annotation":
        outer = outer.parent
    return outer


def _header(run: Run, rank: int) -> dict[str, Any]:
    world = len(run.program.ranks)
    header: dict[str, Any] = {
        "schemaVersion": 1,
        "deviceProperties": [ev.device_properties(number) for number in range(world)],
        "cupti_version": 28,
        "cuda_runtime_version": 12080,
        "cuda_driver_version": 12080,
    }
    if world > 1:
        header["distributedInfo"] = ev.distributed_info(rank, world)
    return header | {
        "trace_id": f"{run.program.seed:032X}",
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": BASE_NS,
    }


def _document(header: Mapping[str, Any], events: list[dict[str, Any]]) -> str:
    """Put the file together by hand: a JSON library would print times through floats and lose digits."""
    head = ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in header.items())
    body = ",\n".join(f"  {_line(event)}" for event in events)
    return f'{{\n{head},\n  "traceEvents": [\n{body}\n  ],\n  "traceName": "simulated.pt.trace.json"\n}}\n'


def _line(event: Mapping[str, Any]) -> str:
    return "{" + ", ".join(f"{json.dumps(key)}: {_value(key, value)}" for key, value in event.items()) + "}"


def _value(key: str, value: Any) -> str:
    if key not in MICROSECOND_KEYS:
        return json.dumps(value)
    ns = value + OFFSET_NS if key == "ts" else value
    return f"{ns // 1_000}.{ns % 1_000:03}"
