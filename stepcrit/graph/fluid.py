"""Compute and communication at the same time: compute runs slower while a collective is active beside it.

The model (methods C.4): on one device, compute advances at rate 1/c while any communication is active,
else at rate 1; communication, copies and the host always take their time. What a compute activity lasted
contains that already, so its work is (time alone) + (time beside communication) / c.

All is exact. With c = n/d a device's compute clock advances n a nanosecond alone and d beside
communication, so work and clock are whole numbers; an activity ends at the first whole nanosecond by
which the clock has run through its work. With nothing changed every observed instant comes back.

Unlike a plain replay this is not monotone: a longer activity may push communication out of the way
of compute, and then the step gets shorter.
"""

from __future__ import annotations

import heapq
from fractions import Fraction

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepcrit.errors import UsageError
from stepcrit.graph.schedule import Lags
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.intervals import union
from stepcrit.model.arrays import NONE, BoolArray, Int64Array
from stepcrit.model.classes import WorkClass
from stepcrit.model.graph import Graph, NodeKind


class Rivals(Struct, frozen=True, eq=False):
    """Who slows whom, per node of one graph.

    Attributes:
        slowdown: c, at least 1.
        compute: the device on which a node computes, where communication runs too; else -1.
        comm: the device on which a node communicates, where compute runs too; else -1.
        work: of computing nodes, in ticks of the compute clock; 0 elsewhere.
    """

    slowdown: Fraction
    compute: Int64Array
    comm: Int64Array
    work: tuple[int, ...]

    def work_after(self, graph: Graph, dur_ns: Int64Array) -> list[int]:
        """Work in proportion to changed durations; a node that took no time gets it at full speed."""
        full, changed = (
            self.slowdown.numerator,
            np.flatnonzero((dur_ns != graph.dur_ns) & (self.compute >= 0)),
        )
        work = list(self.work)
        for v in changed.tolist():
            old, new = int(graph.dur_ns[v]), int(dur_ns[v])
            work[v] = work[v] * new // old if old else full * new
        return work

    def renumbered(self, number: Int64Array, work: list[int]) -> Rivals:
        """With other work, and node v as number[v]."""
        own = np.empty_like(number)
        own[number] = np.arange(len(number))
        moved = tuple(work[v] for v in own.tolist())
        return replace(self, compute=self.compute[own], comm=self.comm[own], work=moved)


def rivals_of(view: StepGraph, slowdown: Fraction) -> Rivals:
    """Who slows whom in a trace."""
    graph, lanes = view.built.graph, view.trace.events.lanes
    devices: dict[str, int] = {}
    of_lane = np.array([devices.setdefault(lane.device_label, len(devices)) for lane in lanes], np.int64)
    on_device = graph.kind >= NodeKind.KERNEL
    work = np.where(on_device, view.links.work[np.maximum(graph.row, 0)], NONE)
    device = of_lane[graph.lane] if len(lanes) else np.empty(0, np.int64)
    comm = on_device & (work == WorkClass.COMM)
    return rivals(graph, device, comm, on_device & (work < WorkClass.COMM), slowdown)


def rivals(
    graph: Graph, device: Int64Array, comm: BoolArray, compute: BoolArray, slowdown: Fraction
) -> Rivals:
    """Who slows whom, by device of each node and masks of what communicates and what computes.

    Raises:
        UsageError: the slowdown is less than 1.
    """
    if slowdown < 1:
        raise UsageError(f"a slowdown of {slowdown} is a speed-up", do="give 1 or more: contend:1.2")
    both = np.intersect1d(device[comm], device[compute])
    meets = np.isin(device, both)
    on_comm, on_compute = np.where(comm & meets, device, NONE), np.where(compute & meets, device, NONE)
    beside = np.zeros(len(graph), np.int64)
    for one in both.tolist():
        mine = on_compute == one
        active = union(graph.start_ns[on_comm == one], graph.end_ns[on_comm == one])
        beside[mine] = active.covered_by(graph.end_ns[mine]) - active.covered_by(graph.start_ns[mine])
    n, d = slowdown.numerator, slowdown.denominator
    columns = zip(graph.dur_ns.tolist(), beside.tolist(), (on_compute >= 0).tolist(), strict=True)
    work = tuple(n * (dur - inside) + d * inside if mine else 0 for dur, inside, mine in columns)
    return Rivals(slowdown, on_compute, on_comm, work)


def simulate(graph: Graph, dur_ns: Int64Array, delays: Lags, rivals: Rivals) -> Int64Array:
    """Finish of every node, in ns.

    Args:
        graph: the graph.
        dur_ns: durations; of computing nodes their work counts instead.
        delays: from `schedule.lags`; an edge to a node with a fixed duration may have a negative one, as
            long as the node still ends after its source.
        rivals: who slows whom.
    """
    run = _Run(graph, dur_ns, delays, rivals)
    run.finish_all()
    return np.array(run.finish, np.int64)


_EVER_BEFORE = -(2**62)
_START, _COMM_ON, _COMM_OFF = range(3)


class _Device:
    """One device's compute clock: how far it is, and what runs on it by the reading at which it ends."""

    def __init__(self, slowdown: Fraction) -> None:
        self.alone, self.beside = slowdown.numerator, slowdown.denominator
        self.at_ns, self.clock, self.comm_count = 0, 0, 0
        self.running: list[tuple[int, int]] = []

    def advance(self, to_ns: int) -> None:
        """Let the clock run to an instant."""
        self.clock += (to_ns - self.at_ns) * (self.beside if self.comm_count else self.alone)
        self.at_ns = to_ns

    def due_ns(self) -> int:
        """When, as things are, the next activity ends."""
        rate = self.beside if self.comm_count else self.alone
        behind = self.clock - self.running[0][0]
        return self.at_ns - behind // rate


class _Run:
    """One simulation. Instants come in order; whatever has a fixed duration is known as soon as it may start."""

    def __init__(self, graph: Graph, dur_ns: Int64Array, delays: Lags, rivals: Rivals) -> None:
        by_src = np.argsort(graph.src, kind="stable")
        self.ptr = np.searchsorted(graph.src[by_src], np.arange(len(graph) + 1)).tolist()
        self.target = graph.dst[by_src].tolist()
        self.lag = delays.edge_ns[by_src].tolist()
        indegree = np.diff(graph.dst_ptr)
        self.waiting = indegree.tolist()
        origin = graph.t0_ns + delays.origin_ns
        self.at = np.where(indegree == 0, origin, _EVER_BEFORE).tolist()
        self.dur = dur_ns.tolist()
        self.work = rivals.work
        self.compute, self.comm = rivals.compute.tolist(), rivals.comm.tolist()
        used = set(rivals.compute.tolist()) - {NONE}
        self.devices = {one: _Device(rivals.slowdown) for one in sorted(used)}
        self.finish = [0] * len(graph)
        self.events: list[tuple[int, int, int]] = []

    def finish_all(self) -> None:
        """Run to the end."""
        for v in [v for v, waits in enumerate(self.waiting) if not waits]:
            self._begin_from(v)
        due: dict[int, int] = {}
        while self.events or due:
            device = min(due, key=due.__getitem__) if due else NONE
            if self.events and (device < 0 or self.events[0][0] < due[device]):
                device = self._event()
            else:
                self._complete(self.devices[device], due[device])
            if self.devices[device].running:
                due[device] = self.devices[device].due_ns()
            else:
                due.pop(device, None)

    def _event(self) -> int:
        """Take the next event; returns its device."""
        at_ns, code, node = heapq.heappop(self.events)
        device: int = self.compute[node] if code == _START else self.comm[node]
        one = self.devices[device]
        one.advance(at_ns)
        if code == _START:
            heapq.heappush(one.running, (one.clock + self.work[node], node))
        else:
            one.comm_count += 1 if code == _COMM_ON else -1
        return device

    def _complete(self, device: _Device, at_ns: int) -> None:
        """End what a device has run through by an instant."""
        device.advance(at_ns)
        while device.running and device.running[0][0] <= device.clock:
            self._finished(heapq.heappop(device.running)[1], at_ns)

    def _begin_from(self, node: int) -> None:
        """A node that waits for nothing any more."""
        end = self._begin(node)
        if end is not None:
            self._finished(node, end)

    def _begin(self, node: int) -> int | None:
        """Start a node; returns its end where that is known already."""
        at_ns = self.at[node]
        if self.compute[node] >= 0:
            heapq.heappush(self.events, (at_ns, _START, node))
            return None
        end: int = at_ns + self.dur[node]
        if self.comm[node] >= 0 and end > at_ns:
            heapq.heappush(self.events, (at_ns, _COMM_ON, node))
            heapq.heappush(self.events, (end, _COMM_OFF, node))
        return end

    def _finished(self, node: int, end_ns: int) -> None:
        """Set a node's finish, and start what waited for it and whatever follows from that."""
        known = [(node, end_ns)]
        while known:
            u, end = known.pop()
            self.finish[u] = end
            for i in range(self.ptr[u], self.ptr[u + 1]):
                v, arrival = self.target[i], end + self.lag[i]
                if arrival > self.at[v]:  # noqa: PLR1730 - max() would cost as much as the rest of the loop
                    self.at[v] = arrival
                self.waiting[v] -= 1
                if not self.waiting[v]:
                    ended = self._begin(v)
                    if ended is not None:
                        known.append((v, ended))
