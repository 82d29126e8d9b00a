"""The critical path of a step after a change: what takes over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepcrit.graph.path import Path, PieceKind, chain, last_of
from stepcrit.graph.replay import Replayer, Variant
from stepcrit.graph.schedule import Arrivals, Lags, forward
from stepcrit.graph.segments import entered_by, gap_classes, opened
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.graph.submission import Grown
from stepcrit.intervals import ascending
from stepcrit.model.arrays import Int64Array
from stepcrit.model.classes import WorkClass
from stepcrit.model.graph import Graph, NodeKind


class Moved(Struct, frozen=True, eq=False):
    """A schedule after a change, and the path of the replayer's step on it.

    Attributes:
        graph: with the new starts and durations.
        arrivals: what binds each node now.
        path: in pieces; paths are not counted.
    """

    graph: Graph
    arrivals: Arrivals
    path: Path


def moved(replay: Replayer, variant: Variant) -> Moved:
    """Replay a variant under the conservative policy, and walk back."""
    view, graph = replay.view, replay.view.built.graph
    dur_ns, delays = replay.scheduled(variant, "join")
    start = forward(graph, dur_ns, delays)
    after = replace(graph, start_ns=start, dur_ns=dur_ns)
    finish = after.end_ns
    arrivals = _arrivals(view, start, finish, delays)
    last = last_of(after, view.sinks)[0]
    return Moved(after, arrivals, chain(after, arrivals, last, since_ns=_opening(replay, finish)))


def time_by_class(replay: Replayer, variant: Variant, grown: Grown) -> Counter[int]:
    """The time of the new path of the replayer's step in a variant, by class (WorkClass), in ns.

    It is the path under the conservative policy.

    Args:
        replay: of the step.
        variant: the change.
        grown: by how much which stretch of a host node changed.
    """
    view, graph = replay.view, replay.view.built.graph
    now = moved(replay, variant)
    path, start, dur_ns = now.path, now.graph.start_ns, now.graph.dur_ns
    parts = _host_parts(view, grown, path.node[dur_ns[path.node] != graph.dur_ns[path.node]])
    length, is_node = path.end_ns - path.start_ns, path.kind == PieceKind.NODE
    on_device = is_node & (graph.kind[path.node] >= NodeKind.KERNEL)
    same = dur_ns[path.node] == graph.dur_ns[path.node]
    found = gaps_by_class(view, now)
    _add(found, view.links.work[graph.row[path.node[on_device]]], length[on_device])
    host = np.flatnonzero(is_node & ~on_device & same)
    back = (graph.start_ns - start)[path.node[host]]
    inner = opened(view.links, graph, path.node[host], (path.start_ns[host] + back, path.end_ns[host] + back))
    _add(found, inner.work, inner.end_ns - inner.start_ns)
    for i in np.flatnonzero(is_node & ~on_device & ~same).tolist():
        node = int(path.node[i])
        for work, ns in _apportioned(view, parts.get(node, {}), node, int(length[i])):
            found[work] += ns
    return found


def gaps_by_class(view: StepGraph, now: Moved) -> Counter[int]:
    """Time in gaps on the new path by their class (WorkClass), in ns."""
    path, found = now.path, Counter[int]()
    gaps = np.flatnonzero(path.kind != PieceKind.NODE)
    _, kind = entered_by(now.graph, path.edge[gaps])
    residual, is_lag = now.arrivals.gap_ns[path.node[gaps]], path.kind[gaps] == PieceKind.LAG
    work = gap_classes(kind, residual, view.usual_gaps, is_lag=is_lag)
    _add(found, work, (path.end_ns - path.start_ns)[gaps])
    return found


def _add(found: Counter[int], work: np.typing.NDArray[np.integer[Any]], length_ns: Int64Array) -> None:
    for one in ascending(work).tolist():
        found[one] += int(length_ns[work == one].sum())


def _host_parts(view: StepGraph, grown: Grown, nodes: Int64Array) -> dict[int, dict[int, int]]:
    """What each of some host nodes consists of after the changes, by owner's row."""
    every, wanted = view.stretches, np.zeros(len(view.built.graph), np.bool_)
    wanted[nodes] = True
    host, more = wanted[every.node] & ~every.on_device, wanted[grown[0]]
    node = np.concatenate((every.node[host], grown[0][more]))
    row = np.concatenate((every.row[host], grown[1][more]))
    length = np.concatenate((every.length_ns[host], grown[2][more]))
    parts: dict[int, dict[int, int]] = {}
    for n, r, ns in zip(node.tolist(), row.tolist(), length.tolist(), strict=True):
        inside = parts.setdefault(n, {})
        inside[r] = inside.get(r, 0) + ns
    return parts


def _apportioned(view: StepGraph, parts: dict[int, int], node: int, length: int) -> Iterator[tuple[int, int]]:
    """Class and length of the parts of a node scaled to the stretch of it that lies in the window; they sum to it exactly."""
    whole = sum(parts.values())
    if whole <= 0:
        yield WorkClass.UNTRACKED, length
        return
    cut = {row: ns * length // whole for row, ns in parts.items()}
    cut[max(parts, key=lambda row: parts[row])] += length - sum(cut.values())
    is_return = view.built.graph.kind[node] == NodeKind.SYNC
    for row, ns in cut.items():
        work = WorkClass.UNTRACKED if row < 0 else int(view.links.work[row])
        yield WorkClass.SYNC if is_return else work, ns


def _arrivals(view: StepGraph, start: Int64Array, finish: Int64Array, delays: Lags) -> Arrivals:
    """Which edge binds each node now; what it carries of the gap is shown as gap again."""
    graph: Graph = view.built.graph
    gap = np.minimum(view.built.arrivals.gap_ns[graph.dst], delays.edge_ns)
    arrival = finish[graph.src] + delays.edge_ns
    binds = arrival == start[graph.dst]
    # Where what bound before still does, a usual delay that just fits is no reason to call it a tie.
    still = binds & view.built.arrivals.binds
    kept = np.bincount(graph.dst[still], minlength=len(graph)) > 0
    binds = np.where(kept[graph.dst], still, binds)
    carried = np.zeros(len(graph), np.int64)
    np.maximum.at(carried, graph.dst[binds], gap[binds])
    roots = np.diff(graph.dst_ptr) == 0
    return Arrivals(delays.edge_ns - gap, np.where(roots, start - graph.t0_ns, carried), binds)


def _opening(replay: Replayer, finish: Int64Array) -> int:
    """When the step's window opens after the change: at the moved boundary of the step before."""
    view = replay.view
    if not replay.period_count:
        return view.step.start_ns
    before = view.previous_sinks
    return int(finish[before].max()) if before else view.step.start_ns
