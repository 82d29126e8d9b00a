"""Traces written by hand, in µs, and what stepcrit makes of them."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import stepcrit as sc
from stepcrit.ingest import read_trace
from stepcrit.model.trace import RawTrace
from tests.answers.drawn import call, note, op, work
from tests.builders import Event

Content: TypeAlias = bytes | Sequence[Event]
"""A trace's bytes, or its events."""


@dataclass(frozen=True)
class Answer:
    """What a run of the command leaves behind.

    Attributes:
        code: its exit code.
        shown: its JSON, {} where it gave none.
        out, err: its stdout and stderr as text.
    """

    code: int
    shown: dict[str, Any]
    out: str
    err: str

    @property
    def data(self) -> dict[str, Any]:
        """The answer itself."""
        found: dict[str, Any] = self.shown["data"]
        return found

    @property
    def codes(self) -> list[str]:
        """Codes of its findings."""
        return [finding["code"] for finding in self.shown["findings"]]

    @property
    def unknown(self) -> dict[str, str]:
        """Why a value is null, by its path."""
        return {one["path"]: one["why"] for one in self.shown["unknown"]}

    def check(self, code: str) -> dict[str, Any]:
        """One check of `doctor`."""
        found: dict[str, Any] = next(one for one in self.data["checks"] if one["code"] == code)
        return found


def text(events: Sequence[Event], **header: Any) -> bytes:
    """A trace file; events are complete ones ("X") unless they say otherwise."""
    return json.dumps(
        {"schemaVersion": 1, **header, "traceEvents": [{"ph": "X", **event} for event in events]},
        ensure_ascii=False,
    ).encode()


def raw(content: Content, *, salvage: bool = False, **header: Any) -> RawTrace:
    """What the reader makes of a trace."""
    given = content if isinstance(content, bytes) else text(content, **header)
    return read_trace(io.BytesIO(given), salvage=salvage)


def trace(content: Content, **header: Any) -> sc.Trace:
    """A trace, understood."""
    given = content if isinstance(content, bytes) else text(content, **header)
    return sc.load(io.BytesIO(given))


def step(number: int, *, period: int = 100) -> list[Event]:
    """One step of a loop, from `number` times `period`.

    The operator at 10 to 40 launches at 20 to 30 a matrix product that runs from 50 to 90. So with the usual
    period a step takes 100 µs from product's end to product's end, of which the product is 40.
    """
    at = number * period
    return [
        note(f"ProfilerStep#{number}", at, at + period),
        op("aten::mm", at + 10, at + 40),
        call("cudaLaunchKernel", (at + 20, at + 30), number + 1),
        work("gemm_kernel", (at + 50, at + 90), number + 1),
    ]


def loop(count: int) -> list[Event]:
    """So many steps."""
    return [event for number in range(count) for event in step(number)]


def names(found: RawTrace) -> list[str]:
    """The names of the rows, in time order."""
    return [found.events.name_of(row) for row in range(len(found.events))]


def spans(found: RawTrace, name: str) -> list[tuple[int, int]]:
    """Start and end of the rows of a name, in ns since the first row."""
    events = found.events
    rows = [row for row in range(len(events)) if events.name_of(row) == name]
    return [(int(events.start_ns[row]), int(events.end_ns[row])) for row in rows]


def row_of(found: RawTrace, name: str) -> int:
    """The one row of a name."""
    (row,) = (row for row in range(len(found.events)) if found.events.name_of(row) == name)
    return row
