"""What a user may have meant: close names, and what a kind of selector has to choose from."""

from __future__ import annotations

import numpy as np

from stepcrit.graph.segments import gap_class_of_nodes
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.intervals import ascending
from stepcrit.link.patterns import near_names
from stepcrit.link.source import frame_label
from stepcrit.model.arrays import Int8Array, distinct
from stepcrit.model.classes import WorkClass
from stepcrit.model.events import DEVICE_KINDS, HOST_KINDS


def could_be(view: StepGraph, kind: str, wanted: str) -> str:
    """What this trace has of a kind of selector, nearest first where there are many."""
    links, events = view.links, view.trace.events
    if kind == "stream":
        streams = {events.lanes[i].stream for i in distinct(events.lane[events.is_kind(*DEVICE_KINDS)])}
        return f"streams: {', '.join(map(str, sorted(streams))) or 'none'}"
    work = events.is_kind(*DEVICE_KINDS, *HOST_KINDS)
    if kind == "class":
        present = sorted(_classes(view, links.work[work]))
        return f"classes in this trace: {', '.join(w.label for w in present) or 'none'}"
    if kind == "module":
        return _some("modules", wanted, links.module_names)
    if kind == "line":
        frames = distinct(events.name[links.frame[links.frame >= 0]])
        return _some("lines", wanted, tuple(frame_label(events.names[i]) for i in frames))
    # Python frames and other bookkeeping cannot be selected by name.
    near = near_names(wanted, tuple(events.names[i] for i in distinct(events.name[work])))
    return f"near names: {', '.join(near) or 'none'}"


def _classes(view: StepGraph, of_rows: Int8Array) -> set[WorkClass]:
    """The classes of rows, of gaps, and untracked time where there is any."""
    gaps = gap_class_of_nodes(view.built, view.usual_gaps)[view.built.arrivals.gap_ns > 0]
    found = {WorkClass(int(w)) for w in ascending(np.concatenate((of_rows, gaps))) if w >= 0}
    return found | ({WorkClass.UNTRACKED} if (view.stretches.row < 0).any() else set())


def _some(what: str, wanted: str, names: tuple[str, ...]) -> str:
    """The closest names, or if none is close, the first few."""
    return f"{what}: {', '.join(near_names(wanted, names) or names[:5]) or 'none'}"
