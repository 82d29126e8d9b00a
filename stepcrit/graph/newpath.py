"""The critical path of a step after a change, in stretches: what takes over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepcrit.graph.path import Path, PieceKind, chain
from stepcrit.graph.replay import Replayer, Variant
from stepcrit.graph.schedule import Arrivals, Lags, forward
from stepcrit.graph.segments import gap_class, opened
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.graph.submission import Grown
from stepcrit.model.arrays import NONE, Int64Array
from stepcrit.model.classes import WorkClass
from stepcrit.model.graph import Graph, NodeKind


class Stretch(Struct, frozen=True):
    """A piece of a changed path: its owner's row (-1: untracked time), class and length."""

    row: int
    work: int
    length_ns: int
    is_gap: bool = False


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
    last = max(view.sinks, key=lambda v: (int(finish[v]), int(dur_ns[v]), -v))
    return Moved(after, arrivals, chain(after, arrivals, last, since_ns=_opening(replay, finish)))


def new_path(replay: Replayer, variant: Variant, grown: Grown) -> list[Stretch]:
    """The path of the replayer's step in a variant, under the conservative policy.

    Args:
        replay: of the step.
        variant: the change.
        grown: by how much which stretch of a host node changed.

    Returns:
        Stretches that sum to the step's new length.
    """
    view, graph = replay.view, replay.view.built.graph
    now = moved(replay, variant)
    path, start, dur_ns = now.path, now.graph.start_ns, now.graph.dur_ns
    parts = _host_parts(view, grown, path.node[dur_ns[path.node] != graph.dur_ns[path.node]])
    found: list[Stretch] = []
    columns = (path.kind, path.node, path.edge, path.start_ns, path.end_ns)
    for kind, node, edge, begin, end in zip(*(column.tolist() for column in columns), strict=True):
        if kind != PieceKind.NODE:
            found.append(
                Stretch(
                    int(graph.row[node]), _gap_class(view, now, kind, node, edge), end - begin, is_gap=True
                )
            )
        elif graph.kind[node] >= NodeKind.KERNEL:
            row = int(graph.row[node])
            found.append(Stretch(row, int(view.links.work[row]), end - begin))
        elif dur_ns[node] == graph.dur_ns[node]:
            back = int(graph.start_ns[node] - start[node])
            pieces = opened(view.links, graph, node, (begin + back, end + back))
            found += [Stretch(row, work, b - a) for a, b, work, row in pieces]
        else:
            found += _apportioned(view, parts.get(node, {}), node, end - begin)
    return found


def gaps_by_class(view: StepGraph, now: Moved) -> Counter[int]:
    """Time in gaps on the new path by their class (WorkClass), in ns."""
    path, found = now.path, Counter[int]()
    for i in np.flatnonzero(path.kind != PieceKind.NODE).tolist():
        work = _gap_class(view, now, int(path.kind[i]), int(path.node[i]), int(path.edge[i]))
        found[work] += int(path.end_ns[i] - path.start_ns[i])
    return found


def _gap_class(view: StepGraph, now: Moved, kind: int, node: int, edge: int) -> int:
    bound = int(now.graph.edge_kind[edge]) if edge >= 0 else NONE
    return gap_class(bound, int(now.arrivals.gap_ns[node]), view.usual_gaps, is_lag=kind == PieceKind.LAG)


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


def _apportioned(view: StepGraph, parts: dict[int, int], node: int, length: int) -> Iterator[Stretch]:
    """The parts of a node scaled to the stretch of it that lies in the window; they sum to it exactly."""
    whole = sum(parts.values())
    if whole <= 0:
        yield Stretch(NONE, WorkClass.UNTRACKED, length)
        return
    cut = {row: ns * length // whole for row, ns in parts.items()}
    cut[max(parts, key=lambda row: parts[row])] += length - sum(cut.values())
    is_return = view.built.graph.kind[node] == NodeKind.SYNC
    for row, ns in cut.items():
        work = WorkClass.UNTRACKED if row < 0 else int(view.links.work[row])
        yield Stretch(row, WorkClass.SYNC if is_return else work, ns)


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
