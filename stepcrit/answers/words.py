"""The small words of every answer: typed values for sentences, and names for kinds and evidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stepcrit.graph.replay import Saving
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.model.graph import EdgeKind
from stepcrit.model.section import Input, Sentence, Unit, Value

EDGE_WORDS = {
    EdgeKind.THREAD: "program",
    EdgeKind.LAUNCH: "launch",
    EdgeKind.STREAM: "stream",
    EdgeKind.SPLIT: "same",
    EdgeKind.EVENT: "event",
    EdgeKind.SYNC: "wait",
    EdgeKind.HANDOVER: "hand-over",
    EdgeKind.BACKPRESSURE: "full queue",
    EdgeKind.PEER: "other rank",
}


def ns(value: float | None) -> Value:
    """A duration."""
    return Value(None if value is None else round(value), Unit.NS)


def saved(value: int | None) -> Value:
    """A saving, shown with its sign."""
    return Value(value, Unit.SAVED_NS)


def share(part: float, whole: float) -> Value:
    """A ratio; None when there is no whole."""
    return Value(part / whole if whole else None, Unit.SHARE)


def count(value: int) -> Value:
    """A number of things."""
    return Value(value, Unit.COUNT)


def name(text: str) -> Value:
    """A name from the trace."""
    return Value(text, Unit.NAME)


def text(words: str) -> Value:
    """Our own words."""
    return Value(words, Unit.TEXT)


def say(template: str, *values: Value) -> Sentence:
    """A sentence."""
    return Sentence(template, values)


def plural(n: int, one: str, many: str | None = None) -> str:
    """The noun that fits a count.

    >>> plural(1, "kernel"), plural(2, "kernel"), plural(0, "copy", "copies")
    ('kernel', 'kernels', 'copies')
    """
    return one if n == 1 else many or f"{one}s"


def input_of(view: StepGraph) -> Input:
    """The trace, as the JSON envelope names it."""
    meta = view.trace.meta
    return Input(meta.source, meta.sha256, meta.input_bytes)


def saving_data(saving: Saving | None) -> dict[str, int] | None:
    """A saving for JSON."""
    return None if saving is None else {"low_ns": saving.low_ns, "high_ns": saving.high_ns}


def say_settings(settings: Mapping[str, Any]) -> list[Sentence]:
    """One line on the options that change every number, if any differs from its default."""
    changed = [
        f"{key.replace('_', '-')} {value}"
        for key, value in settings.items()
        if value not in (None, False, "none", {})
    ]
    return [say("computed with: {}", text(", ".join(changed)))] if changed else []
