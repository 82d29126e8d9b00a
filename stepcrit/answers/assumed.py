"""What a prediction assumes, in words: always, and where this trace cannot show what would happen."""

from __future__ import annotations

from collections.abc import Sequence

from stepcrit.answers.sure import Sure, sure_lines
from stepcrit.answers.words import say, text
from stepcrit.graph.input import loop_of
from stepcrit.graph.models import Model
from stepcrit.graph.replay import replayer
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.link.presence import Platform, Use, platform_of, presence
from stepcrit.model.arrays import distinct
from stepcrit.model.classes import WorkClass
from stepcrit.model.events import DEVICE_KINDS, EventKind
from stepcrit.model.graph import EdgeKind
from stepcrit.model.section import Section

ORDER = "every thread and queue keeps its recorded order and dependencies"
KERNELS = "kernels keep their durations: no contention, no other clocks, no other kernel choice"
OPERATORS = "operators keep their durations: no contention, no other clocks"
UNRECORDED = (
    "device work was not recorded: waiting for it counts as host time, a change is of the host alone, and the "
    "prediction does not hold where the device decides"
)
KERNELS_BESIDE_COMM = (
    "but for communication beside them kernels keep their durations: no other clocks, no other choice"
)


def assumed_section(assumed: Sequence[str], sure: Sure) -> Section:
    """What a prediction assumes, and how sure it is: the last table of each such answer."""
    lines = (*(say("{}", text(words)) for words in assumed), *sure_lines(sure))
    return Section("Assumed", notes=lines, topic="trust")


def assumptions(view: StepGraph, models: Sequence[Model] = ()) -> tuple[str, ...]:
    """What holds for every prediction on this step, but for what the models say otherwise."""
    names = {model.name for model in models}
    found = [
        ORDER,
        _of_kernels(view, beside_comm="contend" in names),
        _of_ranks(view, links="comm" in names),
        _of_the_loader(view, followed=not names & {"queue", "contend"}),
        _of_queues(view),
        "" if "queue" in names else _of_launches(view),
    ]
    return tuple(words for words in found if words)


def _of_kernels(view: StepGraph, *, beside_comm: bool) -> str:
    """What else takes the time it took."""
    if presence(view.trace, view.links).use == Use.NOT_RECORDED:
        return UNRECORDED
    if not view.trace.events.is_kind(*DEVICE_KINDS).any():
        return OPERATORS
    return KERNELS_BESIDE_COMM if beside_comm else KERNELS


def _of_ranks(view: StepGraph, *, links: bool) -> str:
    """One rank's file does not show when the others arrive."""
    meta, comm = view.trace.meta, view.links.work == WorkClass.COMM
    if meta.world_size <= 1 and not comm.any():
        return ""
    which = f"rank {meta.rank} of {meta.world_size}" if meta.world_size > 1 and meta.rank >= 0 else "one rank"
    waiting = "waiting" if links else "collectives take as long as recorded, waiting"
    kept = " stays as recorded" if links else " included"
    return (
        f"this is {which}: {waiting} for other ranks{kept}; what a change does on those is not known, and the "
        "prediction does not hold where they decide"
    )


def _of_the_loader(view: StepGraph, *, followed: bool) -> str:
    """Production is in no trace."""
    if loop_of(view) is None:
        return ""
    loop = replayer(view).loop if followed else None
    if loop is None:
        return "waits for loader workers stay as recorded, or are what a change of class:input changes"
    if loop.production_seen:
        return (
            "but for a change of class:input, loader workers keep their pace, or at the optimistic end waits for "
            "them stay as recorded"
        )
    return "waits for loader workers stay as recorded unless class:input is changed"


def _of_queues(view: StepGraph) -> str:
    """Event waits that delayed nothing are only in sync records."""
    events = view.trace.events
    queues = len(distinct(events.lane[events.is_kind(*DEVICE_KINDS)]))
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
