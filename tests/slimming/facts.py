"""What two traces must agree on: every number of their answers, or what one step is made of."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stepcrit.cli.main import run
from stepcrit.session import Options, Trace, load
from stepcrit.slimming import Slimmed, SlimOptions, slim

QUESTIONS = (
    ("analyze",),
    ("whatif", "--rank"),
    ("whatif", "--shrink", "class:gemm=0.5", "--add", "class:elementwise=10us"),
    ("whatif", "--speedup", "re:.*=2x"),
)
"""What is asked of a trace before and after."""

MAY_DIFFER = re.compile(
    r"\.data\.trace\.(events|json_bytes)$"  # how much there is
    r"|\.data\.verdict\.next\[\d+\]\.what"  # which line of Python to look at
    r"|\.findings\[\d+\]\.what$"  # places of damage in the text
)
"""What slimming all steps changes, of a trace with Python frames or damage."""

_THREAD = re.compile(r"\bthread -?\d+")


def slimmed(source: str | Path | bytes, **options: Any) -> Slimmed:
    return slim(io.BytesIO(source) if isinstance(source, bytes) else source, None, SlimOptions(**options))


def answer(path: Path, question: tuple[str, ...], out: Path) -> Any:
    """Data, findings and reasons of an answer, or how it was refused."""
    code = run([question[0], str(path), *question[1:], "-o", str(out)])
    if code:
        return {"refused": code}
    told = json.loads(out.read_text(encoding="utf-8"))
    return {key: told[key] for key in ("data", "findings", "unknown")}


def differences(a: Any, b: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Every place at which two answers differ; threads may be called otherwise."""
    if isinstance(a, dict) and isinstance(b, dict):
        for key in sorted(set(a) | set(b)):
            yield from differences(a.get(key, "absent"), b.get(key, "absent"), f"{path}.{key}")
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            yield from differences(x, y, f"{path}[{i}]")
    elif isinstance(a, str) and isinstance(b, str):
        if _THREAD.sub("thread", a) != _THREAD.sub("thread", b):
            yield path, a, b
    elif a != b or type(a) is not type(b):
        yield path, a, b


def differing(before: Path, after: Path, out: Path) -> list[tuple[Any, ...]]:
    """Where answers to all questions differ, though they must not."""
    found: list[tuple[Any, ...]] = []
    for question in QUESTIONS:
        pair = (answer(path, question, out) for path in (before, after))
        found += [(*question, *one) for one in differences(*pair) if not MAY_DIFFER.match(one[0])]
    return found


def step_facts(path: Path, label: str) -> dict[str, Any]:
    """What one step is made of: its times, the stretches of its path, and all that overlaps its window."""
    trace = load(path, Options())
    view = trace.view(label)
    step, segments, events = view.step, view.segments, trace.raw.events
    names = [(events.name_of(row) if row >= 0 else "") for row in segments.row.tolist()]
    window = (step.start_ns, step.end_ns)
    return {
        "times": (step.start_ns, step.end_ns, step.host_start_ns, step.host_end_ns, step.latency_ns),
        "device_count": step.device_count,
        "boundary": str(trace.steps.boundary),
        "path": list(
            zip(
                segments.start_ns.tolist(),
                segments.end_ns.tolist(),
                names,
                segments.is_gap.tolist(),
                strict=True,
            )
        ),
        "work": rows_between(trace, window),
    }


def rows_between(trace: Trace, window: tuple[int, int]) -> list[tuple[Any, ...]]:
    """All but Python frames and marks of steps that overlaps a window, with its class of work and its launch."""
    events, links = trace.raw.events, trace.links
    inside = (events.end_ns > window[0]) & (events.start_ns < window[1])
    rows = [row for row in inside.nonzero()[0].tolist() if events.cats[events.cat[row]] != "python_function"]
    start = events.start_ns
    found = [
        (
            int(start[row]), int(events.end_ns[row]), events.name_of(row), int(events.kind[row]), int(links.work[row]),
            int(events.nbytes[row]), int(start[links.launch[row]]) if links.launch[row] >= 0 else None,
            events.name_of(int(links.op[row])) if links.op[row] >= 0 else "",
        )
        for row in rows
        if not events.name_of(row).startswith("ProfilerStep")
    ]  # fmt: skip
    return sorted(found, key=str)
