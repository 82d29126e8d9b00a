"""Claims become a graph: threads are cut, overlapped activities split, edges laid, the timing rule last."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct

from stepcrit.graph.assemble import Edges, Nodes, assemble, columns_of, edges_of, joined
from stepcrit.graph.claims import Claims
from stepcrit.graph.rules import apply_rules
from stepcrit.graph.scene import Rules, Scene, survey
from stepcrit.graph.schedule import Arrivals, observe
from stepcrit.graph.threads import ThreadNodes, collect_cuts, cut_threads, no_pieces
from stepcrit.intervals import ascending
from stepcrit.model.arrays import NONE, Int32Array, Int64Array, freeze
from stepcrit.model.classes import WorkClass
from stepcrit.model.events import EventKind, EventTable
from stepcrit.model.graph import EdgeKind, Evidence, Graph, NodeKind, Note
from stepcrit.model.links import Links


class TraceGraph(Struct, frozen=True, eq=False):
    """The schedule graph of one trace, with the way back from events to nodes.

    Attributes:
        graph: nodes and edges.
        arrivals: what decided each observed start.
        first_node, last_node: per event row, the first and last part of a device activity, -1 elsewhere.
        threads: the host nodes by thread; `number[i]` is the graph's number of thread node i.
        number: see threads.
    """

    graph: Graph
    arrivals: Arrivals
    first_node: Int32Array
    last_node: Int32Array
    threads: ThreadNodes
    number: Int64Array

    def host_node_ending(self, lane: int, at_ns: int) -> int:
        """The last node of a thread to end by an instant, -1 when there is none."""
        i = self.threads.ending_by(lane, at_ns)
        return int(self.number[i]) if i >= 0 else NONE

    def parts_of(self, rows: Sequence[int] | Int64Array) -> list[int]:
        """The first and the last part of each of the given device rows."""
        some = np.asarray(rows, np.int64)
        found = ascending(np.concatenate((self.first_node[some], self.last_node[some])))
        parts: list[int] = found[found >= 0].tolist()
        return parts


class DeviceNodes(Struct, frozen=True, eq=False):
    """Device nodes, parts of one activity next to each other.

    Attributes:
        row, start_ns, end_ns, part: per node.
        first, count: per event row, its first part and how many there are; -1 and 0 for other rows.
    """

    row: Int64Array
    start_ns: Int64Array
    end_ns: Int64Array
    part: Int64Array
    first: Int32Array
    count: Int32Array

    def ending_by(self, row: int, at_ns: int) -> int:
        """The last part of an activity that has ended by an instant, -1 when none has."""
        first = int(self.first[row])
        part = first + int(self.count[row]) - 1
        while part >= first and self.end_ns[part] > at_ns:
            part -= 1
        return part if part >= first else NONE

    def all_ending_by(self, row: Int64Array, at_ns: Int64Array) -> Int64Array:
        """The same for many activities at once."""
        first = self.first[row].astype(np.int64)
        found = first + self.count[row] - 1
        left = np.flatnonzero(self.end_ns[found] > at_ns)
        while left.size:
            found[left] -= 1
            left = left[found[left] >= first[left]]
            left = left[self.end_ns[found[left]] > at_ns[left]]
        return np.where(found >= first, found, NONE)


def build_graph(
    events: EventTable,
    links: Links,
    *,
    rules: Rules | None = None,
    boundaries: Iterable[tuple[int, int]] = (),
    full: bool = False,
) -> TraceGraph:
    """Build the schedule graph of a linked trace.

    Args:
        events: the event table.
        links: its links.
        rules: what rules may assume; by default everything but contradictions.
        boundaries: (host lane, instant) pairs at which a node must end, so that a step can end there.
        full: one node per change of owner on host threads (see `cut_threads`).
    """
    scene = survey(events, links, rules or Rules())
    claims = apply_rules(scene)
    pieces = no_pieces(links.pieces) if scene.rules.device_only else links.pieces
    threads = cut_threads(pieces, collect_cuts(events, claims, boundaries), full=full)
    device = _device_nodes(scene, claims)
    nodes = _node_table(scene, threads, device)
    edges = _edges(scene, claims, threads, device)
    t0 = int(nodes.start_ns.min(initial=2**62)) if len(nodes) else 0
    graph, number = assemble(nodes, edges, t0_ns=t0, notes=claims.notes)
    arrivals = observe(graph)
    late = [] if scene.rules.strict else _timing_edges(scene, graph, arrivals, device, number)
    if late:
        claims.notes[Note.TIMING] += len(late)
        src, dst = columns_of(late, 2)
        edges = joined(edges, edges_of((src, dst), EdgeKind.EVENT, Evidence.TIMING))
        graph, number = assemble(nodes, edges, t0_ns=t0, notes=claims.notes)
        arrivals = observe(graph)
    return _with_row_index(graph, arrivals, device, threads, number)


def _device_nodes(scene: Scene, claims: Claims) -> DeviceNodes:
    """One node per activity, or its parts where something starts before it ends."""
    cuts = _device_cuts(scene, claims)
    start, end = scene.events.start_ns, scene.events.end_ns
    count = np.zeros(len(start), np.int32)
    count[scene.device] = 1
    for one, inner in cuts.items():
        count[one] += len(inner)
    of_device = count[scene.device]
    first = np.full(len(start), NONE, np.int32)
    first[scene.device] = np.cumsum(of_device) - of_device
    row = np.repeat(scene.device, of_device)
    starts, ends, part = start[row], end[row], np.zeros(len(row), np.int64)
    for one, inner in cuts.items():
        low, bounds = int(first[one]), sorted(inner)
        starts[low + 1 : low + 1 + len(bounds)] = bounds
        ends[low : low + len(bounds)] = bounds
        part[low : low + len(bounds) + 1] = np.arange(1, len(bounds) + 2)
    return DeviceNodes(row, starts, ends, part, first, count)


def _device_cuts(scene: Scene, claims: Claims) -> dict[int, set[int]]:
    """Where activities are split; event claims that contradict time by more than the tolerance are dropped."""
    start, end = scene.events.start_ns, scene.events.end_ns
    src, dst = claims.device["src"], claims.device["dst"]
    over = end[src] - start[dst]
    late = (over > max(scene.rules.tolerance_ns, 0)) & (claims.device["kind"] == EdgeKind.EVENT)
    if late.any():
        claims.notes[Note.EVENT_TOO_LATE] += int(late.sum())
    split = np.flatnonzero((over > 0) & ~late & (start[dst] >= start[src]))
    cuts: dict[int, set[int]] = defaultdict(set)
    for one, at in zip(src[split].tolist(), start[dst[split]].tolist(), strict=True):
        cuts[one].add(at)
    claims.device.keep(~late)
    for wait in claims.wait:
        if wait.until_ns < end[wait.src]:
            cuts[wait.src].add(wait.until_ns)
    return cuts


def _node_table(scene: Scene, threads: ThreadNodes, device: DeviceNodes) -> Nodes:
    """Host nodes first, then device nodes; `assemble` numbers them anew."""
    events = scene.events
    is_kernel = events.kind[device.row] == int(EventKind.KERNEL)
    kinds = np.where(is_kernel, NodeKind.KERNEL, NodeKind.COPY).astype(np.int8)
    kinds[scene.links.work[device.row] == int(WorkClass.COMM)] = NodeKind.COLLECTIVE
    host_kind = np.where(threads.is_sync, NodeKind.SYNC, NodeKind.HOST).astype(np.int8)
    return Nodes(
        np.concatenate((threads.lane, events.lane[device.row])).astype(np.int32),
        np.concatenate((threads.start_ns, device.start_ns)),
        np.concatenate((threads.end_ns - threads.start_ns, device.end_ns - device.start_ns)),
        np.concatenate((host_kind, kinds)),
        np.concatenate((threads.row, device.row)),
        np.concatenate((np.zeros(len(threads.lane), np.int64), device.part)).astype(np.int32),
    )


def _edges(scene: Scene, claims: Claims, threads: ThreadNodes, device: DeviceNodes) -> Edges:
    """Every edge that the claims stand for; device nodes come after the host nodes."""
    host_count = len(threads.lane)
    return joined(
        _thread_edges(threads),
        _split_edges(device, host_count),
        _device_edges(scene, claims, device, host_count),
        _launch_edges(claims, threads, device),
        *_host_edges(scene, claims, threads, device),
    )


def _device_edges(scene: Scene, claims: Claims, device: DeviceNodes, host_count: int) -> Edges:
    """E3, E4: from the part that has ended by then."""
    src, dst, kind, evidence = claims.device.all
    from_node = device.all_ending_by(src, scene.events.start_ns[dst])
    return edges_of((from_node, device.first[dst]), kind, evidence, shift=(host_count, host_count))


def _launch_edges(claims: Claims, threads: ThreadNodes, device: DeviceNodes) -> Edges:
    """E2: from the stretch of the thread that ends at the launch point."""
    row, lane, at = claims.launch.all
    src = threads.all_ending_by(lane, at)
    without = int((src < 0).sum())
    if without:
        claims.notes[Note.NO_THREAD] += without
    return edges_of((src, device.first[row]), EdgeKind.LAUNCH, Evidence.ID, shift=(0, len(threads.lane)))


def _host_edges(
    scene: Scene, claims: Claims, threads: ThreadNodes, device: DeviceNodes
) -> tuple[Edges, Edges, Edges]:
    """E5, E6, E7, E9: what ends on a host thread."""
    host_count = len(threads.lane)
    src, call, _, until, kind, evidence = columns_of(claims.wait, 6)
    ends = (
        device.all_ending_by(src, until),
        threads.all_starting_from(scene.events.lane[call].astype(np.int64), until),
    )
    waits = edges_of(ends, kind, evidence, shift=(host_count, 0))
    src, lane, at, kind, evidence = columns_of(claims.release, 5)
    ends = device.all_ending_by(src, at), threads.all_starting_from(lane, at)
    releases = edges_of(ends, kind, evidence, shift=(host_count, 0))
    src_lane, src_ns, dst_lane, _, dst_ns, evidence = columns_of(claims.handover, 6)
    ends = threads.all_ending_by(src_lane, src_ns), threads.all_starting_from(dst_lane, dst_ns)
    return waits, releases, edges_of(ends, EdgeKind.HANDOVER, evidence)


def _thread_edges(threads: ThreadNodes) -> Edges:
    """E1: each node of a thread after the one before, across blocked stretches too."""
    same = np.flatnonzero(threads.lane[1:] == threads.lane[:-1])
    return edges_of((same, same + 1), EdgeKind.THREAD, Evidence.ORDER)


def _split_edges(device: DeviceNodes, host_count: int) -> Edges:
    """Head to tail of split activities."""
    same = np.flatnonzero(device.row[1:] == device.row[:-1])
    return edges_of((same, same + 1), EdgeKind.SPLIT, Evidence.ORDER, shift=(host_count, host_count))


def _timing_edges(
    scene: Scene, graph: Graph, arrivals: Arrivals, device: DeviceNodes, number: Int64Array
) -> list[tuple[int, int]]:
    """E4t: an unexplained wait that ends just after another queue's activity ended (methods B.7).

    Only what the graph orders before it: instants at one time would each wait for the other.
    """
    rules, events = scene.rules, scene.events
    host_count = len(number) - len(device.row)
    late = np.flatnonzero(
        (arrivals.gap_ns > rules.timing_gap_ns) & (graph.kind >= NodeKind.KERNEL) & (graph.part <= 1)
    )
    edges: list[tuple[int, int]] = []
    for node in late.tolist():
        row, start = int(graph.row[node]), int(graph.start_ns[node])
        near = [
            src
            for queue in scene.queues_of(events.lanes[int(graph.lane[node])].device)
            if queue.lane != graph.lane[node]
            and (src := queue.last_to_end_by(start)) >= 0
            and events.end_ns[src] >= start - rules.timing_near_ns
            and number[device.ending_by(src, start) + host_count] < node
        ]
        if near:
            src = max(near, key=lambda r: (int(events.end_ns[r]), r))
            part = device.ending_by(src, start)
            edges.append((part + host_count, int(device.first[row]) + host_count))
    return edges


def _with_row_index(
    graph: Graph, arrivals: Arrivals, device: DeviceNodes, threads: ThreadNodes, number: Int64Array
) -> TraceGraph:
    """Remember where each event row went."""
    host_count = len(threads.lane)
    rows = int(max(device.row.max(initial=-1), threads.row.max(initial=-1))) + 1
    first, last = np.full((2, rows), NONE, np.int32)
    placed = number[host_count:]
    last[device.row] = placed  # parts come in order, so the last one stays
    first[device.row[::-1]] = placed[::-1]
    freeze(first, last, number)
    return TraceGraph(graph, arrivals, first, last, threads, number[:host_count])
