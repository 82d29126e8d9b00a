"""The truth about one rank of a run: steps, dependencies, causes, and what changes really do."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from .change import Change, apply
from .engine import simulate
from .journal import Run, Span
from .kineto import Trace, recorded
from .program import Program
from .script import Params


def steps(run: Run, rank: int) -> list[dict[str, Any]]:
    """Return the recorded steps of one rank, in ns since the earliest recorded span."""
    spans = recorded(run, rank)
    origin_ns = spans[0].start_ns
    marks = [span for span in spans if span.name.startswith("ProfilerStep#")]
    work = [span for span in spans if span.on_device]
    rows = []
    for mark in marks:
        own = [span for span in work if span.step == int(mark.name.partition("#")[2])]
        rows.append(
            {
                "label": mark.name,
                "host_start_ns": mark.start_ns - origin_ns,
                "host_end_ns": mark.end_ns - origin_ns,
                "device_end_ns": max(span.end_ns for span in own) - origin_ns,
                "update_end_ns": max(
                    (span.end_ns - origin_ns for span in own if _in_update(span)), default=None
                ),
            }
        )
    return rows


def periods(rows: Iterable[Mapping[str, Any]], boundary: str = "device_end_ns") -> list[int]:
    """Return the times between the boundaries of consecutive steps; a step without one is skipped."""
    ends = [row[boundary] for row in rows if row[boundary] is not None]
    return [after - before for before, after in pairwise(ends)]


def outcome(program: Program, change: Change) -> list[list[dict[str, Any]]]:
    """Run `program` again with `change` really made; return the steps of each rank."""
    run = simulate(apply(change, program))
    return [steps(run, rank) for rank in range(len(program.ranks))]


def tell(
    run: Run, rank: int, traces: list[Trace], outcomes: Mapping[Change, list[list[dict[str, Any]]]]
) -> dict[str, Any]:
    """Return the truth beside the trace of `rank`; numbers of activities are positions in `traceEvents`."""
    own = traces[rank].index
    rows = steps(run, rank)
    device = [span for span in run.spans if span.on_device and id(span) in own]
    return {
        "steps": rows,
        "period_ns": periods(rows),
        "update_period_ns": periods(rows, "update_end_ns"),
        "dependencies": _dependencies(run, own),
        "peer_dependencies": _peers(run, rank, traces),
        "binding": {str(own[id(span)]): span.cause for span in device},
        "collective_last_arrival": {str(own[id(s)]): s.peer_cause for s in device if s.peer_cause >= 0},
        "changes": [_change(change, after[rank]) for change, after in outcomes.items()],
    }


def heading(scenario: str, seed: int, parameters: Params, decides: str) -> dict[str, Any]:
    """Return what identifies a truth file."""
    return {
        "scenario": scenario,
        "seed": seed,
        "decides": decides,
        "parameters": dict(sorted(parameters.items())),
    }


def render(truth: Mapping[str, Any]) -> str:
    """Write one key a line: small, and still readable as a diff."""
    lines = (f"{json.dumps(key)}: {json.dumps(value, separators=(',', ':'))}" for key, value in truth.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _in_update(span: Span) -> bool:
    outer = span.parent
    while outer is not None and not outer.name.startswith("Optimizer.step"):
        outer = outer.parent
    return outer is not None


def _dependencies(run: Run, own: Mapping[int, int]) -> list[tuple[int, int, str]]:
    """Return the dependencies whose two ends are in this trace."""
    return [
        (own[id(d.before)], own[id(d.after)], d.why)
        for d in run.dependencies
        if id(d.before) in own and id(d.after) in own
    ]


def _peers(run: Run, rank: int, traces: list[Trace]) -> list[tuple[int, int, int]]:
    """Return (peer rank, position there, position here): the peer's kernel had to start first."""
    return [
        (d.before.rank, traces[d.before.rank].index[id(d.before)], traces[rank].index[id(d.after)])
        for d in run.dependencies
        if d.why == "peer" and d.after.rank == rank
        if id(d.before) in traces[d.before.rank].index and id(d.after) in traces[rank].index
    ]


def _change(change: Change, rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "change": change.words(),
        "selector_hint": change.hint(),
        "caveat": change.caveat,
        "period_ns": periods(rows),
        "update_period_ns": periods(rows, "update_end_ns"),
        "steps": rows,
    }
