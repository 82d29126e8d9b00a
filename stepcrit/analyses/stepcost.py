"""What each steady step is spent on, under keys that another trace would have too.

Question: how much of each step's critical path is of each key, and how much time does the key take on or off it?
Method:   each step's path divided by key (methods M.4); own time and calls of each key over the same windows.
Needs:    steps on their schedule graph.
Keeps:    the keys of a step sum to its elapsed time, in ns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepcrit.errors import InternalError
from stepcrit.graph.change import WAITS
from stepcrit.graph.pathkeys import Keyed, PathKey, keyed
from stepcrit.graph.segments import segments_of
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.intervals import ascending
from stepcrit.model.arrays import BoolArray, Int64Array
from stepcrit.model.classes import WorkClass
from stepcrit.model.events import DEVICE_KINDS, HOST_KINDS
from stepcrit.model.steps import Step


class Own(Struct, frozen=True):
    """What a key takes altogether, on the critical path or off it, over the steps.

    Attributes:
        total_ns: summed device time, or host time as innermost open range; over all threads and queues.
        calls: activities or ranges.
    """

    total_ns: int
    calls: int


class StepCost(Struct, frozen=True, eq=False):
    """One run.

    Attributes:
        steps: the steps.
        path_ns: for each of them, time on its path by key.
        class_ns: for each of them, time on its path by class of work.
        own: by key; untracked time and gaps have none of their own.
        kernels: by key of an operator, device time of each kernel under it.
        waits: by key of a call, how often it kept its thread waiting for the device.
        keyed: which row has which key.
    """

    steps: tuple[Step, ...]
    path_ns: tuple[Mapping[PathKey, int], ...]
    class_ns: tuple[Mapping[WorkClass, int], ...]
    own: Mapping[PathKey, Own]
    kernels: Mapping[PathKey, Mapping[str, int]]
    waits: Mapping[PathKey, int]
    keyed: Keyed


def analyze(view: StepGraph, steps: Sequence[Step]) -> StepCost:
    """Divide some steps of a trace by key.

    Args:
        view: any of its steps.
        steps: those to look at.
    """
    found = keyed(view.trace, view.links)
    by_key, by_class = [], []
    for step in steps:
        path, classes = _path(view, step, found)
        if sum(path.values()) != step.elapsed_ns:
            raise InternalError(
                f"the keys of {step.label} sum to {sum(path.values())}, not {step.elapsed_ns} ns"
            )
        by_key.append(path)
        by_class.append(classes)
    own, kernels = _own(view, steps, found)
    return StepCost(
        tuple(steps), tuple(by_key), tuple(by_class), own, kernels, _waits(view, steps, found), found
    )


def _path(view: StepGraph, step: Step, found: Keyed) -> tuple[dict[PathKey, int], dict[WorkClass, int]]:
    """Time on one step's path by key and by class."""
    there = replace(view, step=step)
    segments = segments_of(view.links, view.built, there.path, view.usual_gaps)
    key, length = found.groups.of_segments(segments), segments.length_ns
    total = np.zeros(len(found.keys), np.int64)
    np.add.at(total, key, length)
    path = {found.keys[i]: int(total[i]) for i in np.flatnonzero(total).tolist()}
    classes: Counter[WorkClass] = Counter()
    for work, ns in zip(segments.work.tolist(), length.tolist(), strict=True):
        classes[WorkClass(work)] += ns
    return path, {work: ns for work, ns in classes.items() if ns}


def _own(
    view: StepGraph, steps: Sequence[Step], found: Keyed
) -> tuple[dict[PathKey, Own], dict[PathKey, dict[str, int]]]:
    """Own time and calls by key in the steps' windows, and the kernels under each operator.

    Host time counts in the window on the host: the device is often steps behind it.
    """
    events, pieces, of_row = view.trace.events, view.links.pieces, found.groups.of_row
    size = len(found.keys)
    total, calls = np.zeros(size, np.int64), np.zeros(size, np.int64)
    device = events.is_kind(*DEVICE_KINDS)
    spans, on_host = (
        [(s.start_ns, s.end_ns) for s in steps],
        [(s.host_start_ns, s.host_end_ns) for s in steps],
    )
    here = device & _within(events.start_ns, spans)
    here |= events.is_kind(*HOST_KINDS) & _within(events.start_ns, on_host)
    rows = np.flatnonzero(here)
    np.add.at(calls, of_row[rows], 1)
    on_device = rows[device[rows]]
    length = events.end_ns[on_device] - events.start_ns[on_device]
    np.add.at(total, of_row[on_device], length)
    tiles = np.flatnonzero(_within(pieces.start_ns, on_host) & (pieces.owner >= 0))
    np.add.at(total, of_row[pieces.owner[tiles]], pieces.end_ns[tiles] - pieces.start_ns[tiles])
    own = {found.keys[i]: Own(int(total[i]), int(calls[i])) for i in np.flatnonzero(total + calls).tolist()}
    return own, _kernels(view, on_device, length, found)


def _kernels(
    view: StepGraph, rows: Int64Array, length: Int64Array, found: Keyed
) -> dict[PathKey, dict[str, int]]:
    """Device time by kernel under each operator's key."""
    events, names = view.trace.events, len(view.trace.events.names)
    key_of_row = found.groups.of_row[rows].astype(np.int64)
    packed, back = np.unique(key_of_row * names + events.name[rows], return_inverse=True)
    total = np.zeros(len(packed), np.int64)
    np.add.at(total, back, length)
    kernels: dict[PathKey, dict[str, int]] = {}
    for code, ns in zip(packed.tolist(), total.tolist(), strict=True):
        key, kernel = found.keys[code // names], events.names[code % names]
        if key.kind == "device" and key.name != kernel:
            kernels.setdefault(key, {})[kernel] = ns
    return kernels


def _waits(view: StepGraph, steps: Sequence[Step], found: Keyed) -> dict[PathKey, int]:
    """Calls whose return the device decided, in the steps' windows on the host."""
    graph = view.built.graph
    edges = np.flatnonzero(view.built.arrivals.binds & np.isin(graph.edge_kind, WAITS))
    nodes = ascending(graph.dst[edges])
    nodes = nodes[graph.row[nodes] >= 0]
    inside = _within(graph.start_ns[nodes], [(s.host_start_ns, s.host_end_ns) for s in steps])
    keys, counts = np.unique(found.groups.of_row[graph.row[nodes[inside]]], return_counts=True)
    return {found.keys[key]: int(n) for key, n in zip(keys.tolist(), counts.tolist(), strict=True)}


def _within(at_ns: Int64Array, spans: Sequence[tuple[int, int]]) -> BoolArray:
    """Which instants lie in one of some windows."""
    start, end = np.array(sorted(spans), np.int64).reshape(-1, 2).T
    step = np.searchsorted(start, at_ns, side="right") - 1
    inside: BoolArray = (step >= 0) & (at_ns < end[np.maximum(step, 0)])
    return inside
