"""Drawn traces for the answers' tests: one host thread, device queues, times in µs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from stepcrit.answers.figures import Figures, figures
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.model.events import EventKind
from stepcrit.model.section import Sentence
from stepcrit.session import Options, Trace
from tests.builders import Event, event, trace

Span = tuple[int, int]


def op(name: str, start: int, end: int) -> Event:
    return event("cpu_op", name, (start, end))


def note(name: str, start: int, end: int) -> Event:
    return event("user_annotation", name, (start, end))


def call(name: str, span: Span, correlation: int) -> Event:
    return event("cuda_runtime", name, span, correlation=correlation)


def work(name: str, span: Span, correlation: int, *, stream: int = 7, device: int = 0) -> Event:
    """A copy, a fill or a kernel, as its name says."""
    cat = next(
        (c for sign, c in (("Memcpy", "gpu_memcpy"), ("Memset", "gpu_memset")) if sign in name), "kernel"
    )
    return event(cat, name, span, (device, stream), correlation=correlation, stream=stream)


def view_of(chrome: Sequence[Event], step: int | None = None) -> StepGraph:
    """The step of a drawn trace; what the trace calls overhead is overhead."""
    raw = trace(chrome)
    overhead = [i for i, cat in enumerate(raw.events.cats) if cat == "overhead"]
    kind = np.where(np.isin(raw.events.cat, overhead), EventKind.OVERHEAD, raw.events.kind).astype(np.int8)
    return Trace(replace(raw, events=replace(raw.events, kind=kind)), Options()).view(step)


def figures_of(chrome: Sequence[Event], step: int | None = None) -> Figures:
    return figures(view_of(chrome, step))


def words(sentence: Sentence) -> str:
    """A sentence with its values as they are: ns, and shares from 0 to 1."""
    return sentence.template.format(*(value.raw for value in sentence.values))
