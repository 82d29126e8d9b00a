"""What a prediction assumes, in words: always, and where this trace cannot show what would happen."""

from __future__ import annotations

import numpy as np

from stepcrit.answers.sure import Sure, sure_lines
from stepcrit.answers.words import say, text
from stepcrit.graph.input import loop_of
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.link.presence import Platform, platform_of
from stepcrit.model.classes import WorkClass
from stepcrit.model.events import DEVICE_KINDS, EventKind
from stepcrit.model.graph import EdgeKind
from stepcrit.model.section import Section

ALWAYS = (
    "every thread and queue keeps its recorded order and dependencies",
    "kernels keep their durations: no contention, no other clocks, no other kernel choice",
)


def assumed_section(view: StepGraph, sure: Sure) -> Section:
    """What a prediction assumes, and how sure it is: the last table of each such answer."""
    lines = (*(say("{}", text(words)) for words in assumptions(view)), *sure_lines(sure))
    return Section("Assumed", notes=lines, topic="trust")


def assumptions(view: StepGraph) -> tuple[str, ...]:
    """What holds for every prediction on this step."""
    found = [*ALWAYS, _of_ranks(view), _of_the_loader(view), _of_queues(view), _of_launches(view)]
    return tuple(words for words in found if words)


def _of_ranks(view: StepGraph) -> str:
    """One rank's file does not show when the others arrive."""
    meta, comm = view.trace.meta, view.links.work == WorkClass.COMM
    if meta.world_size <= 1 and not comm.any():
        return ""
    which = f"rank {meta.rank} of {meta.world_size}" if meta.world_size > 1 and meta.rank >= 0 else "one rank"
    return (
        f"this is {which}: collectives take as long as recorded, waiting for other ranks included; what a "
        "change does on those is not known, and the prediction does not hold where they decide"
    )


def _of_the_loader(view: StepGraph) -> str:
    """Production is in no trace."""
    loop = loop_of(view)
    if loop is None:
        return ""
    if loop.production_seen:
        return "loader workers keep their pace, or at the optimistic end waits for them stay as recorded"
    return "waits for loader workers stay as recorded unless class:input is changed"


def _of_queues(view: StepGraph) -> str:
    """Event waits that delayed nothing are only in sync records."""
    events = view.trace.events
    queues = len(np.unique(events.lane[events.is_kind(*DEVICE_KINDS)]))
    if queues < 2 or platform_of(view.trace) != Platform.CUDA or (events.kind == EventKind.SYNC).any():
        return ""
    return (
        "waits between queues that delayed nothing are not in this trace: where a change makes another queue "
        "the later one, the prediction may be too short (record with enable_cuda_sync_events=True)"
    )


def _of_launches(view: StepGraph) -> str:
    """The depth of a launch queue shows where it fills up, and nowhere else."""
    graph = view.built.graph
    if not (graph.edge_kind == EdgeKind.LAUNCH).any() or (graph.edge_kind == EdgeKind.BACKPRESSURE).any():
        return ""
    said = "launch queues, which never filled up in this trace, have no limit"
    cuda = platform_of(view.trace) == Platform.CUDA  # whose queues are known to hold about so many
    return f"{said} (--model queue:1024 sets one)" if cuda else said
