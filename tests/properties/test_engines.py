"""Engines on random schedules: exact with nothing changed, bounds that hold against every order, work that is kept."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from stepcrit.graph.assemble import assemble
from stepcrit.graph.busy import busy_lanes
from stepcrit.graph.engines import order, queued, replayed
from stepcrit.graph.fluid import Rivals, rivals, simulate
from stepcrit.graph.schedule import FAR, Lags, forward, latest_finish
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.graph.wiring import without_queue_order
from stepcrit.model.arrays import BoolArray, Int64Array
from stepcrit.model.graph import EdgeKind, Evidence, Graph, NodeKind
from stepcrit.session import Options, Trace
from tests.builders import event, trace
from tests.properties.schedules import PROPERTY, Built, Link, Node, Schedule, columns, per_node, schedules

FEW = settings(PROPERTY, max_examples=120)
SLOWDOWNS = st.sampled_from((Fraction(1), Fraction(6, 5), Fraction(3, 2), Fraction(7, 3), Fraction(5)))


def queues_only(schedule: Schedule) -> Schedule:
    """Queue order holds within a queue alone: across queues the same dependency is an event's."""
    lane = [node.lane for node in schedule.nodes]
    return replace(
        schedule,
        links=tuple(
            replace(e, kind=EdgeKind.EVENT)
            if e.kind in (EdgeKind.STREAM, EdgeKind.SPLIT) and lane[e.src] != lane[e.dst]
            else e
            for e in schedule.links
        ),
    )


# --- bounds -------------------------------------------------------------------------------------


class Step:
    """The end of a schedule as a step: what starts from an instant on may change and move, the rest is past."""

    def __init__(self, schedule: Schedule, cut: int, drawn: list[int]) -> None:
        built = Built(queues_only(schedule))
        self.graph: Graph = built.graph
        self.delays: Lags = built.lags
        starts = sorted({*self.graph.start_ns.tolist()})
        self.since = int(starts[cut % len(starts)])
        self.inside: BoolArray = self.graph.start_ns >= self.since
        self.dur: Int64Array = np.where(self.inside, built.at(drawn[: len(self.graph)]), self.graph.dur_ns)
        zero = Lags(np.zeros_like(self.delays.edge_ns), self.delays.origin_ns)
        late = latest_finish(self.graph, self.graph.dur_ns, zero, dict.fromkeys(built.sinks, built.finish))
        self.required: BoolArray = self.inside & (late < FAR)

    def length(self, finish: Int64Array) -> int:
        return int(finish[self.required].max(initial=self.since)) - self.since

    @property
    def free(self) -> int:
        wiring = without_queue_order(self.graph, self.inside, self.since)
        return self.length(replayed(wiring)(self.dur, self.delays))

    @property
    def lanes(self) -> int:
        busy = busy_lanes(self.graph, self.dur, self.required)
        return busy[0].busy_ns if busy else 0

    def in_every_order(self) -> list[int]:
        """The step's length for every serial order of its activities, each as early as its queue allows."""
        nodes = np.flatnonzero(self.inside).tolist()
        return [self._length_in(one) for one in permutations(nodes) if self._possible(one)]

    def _waits(self, v: int) -> list[int]:
        return list(range(int(self.graph.dst_ptr[v]), int(self.graph.dst_ptr[v + 1])))

    def _possible(self, one: tuple[int, ...]) -> bool:
        place = {v: i for i, v in enumerate(one)}
        return all(
            place.get(int(self.graph.src[e]), -1) < place[v]
            for v in one
            for e in self._waits(v)
            if self.graph.edge_kind[e] != EdgeKind.STREAM
        )

    def _length_in(self, one: tuple[int, ...]) -> int:
        graph, end = self.graph, self.graph.end_ns.tolist()
        clear: dict[int, int] = defaultdict(lambda: self.since)  # past work may reach into the step
        for v in np.flatnonzero(~self.inside).tolist():
            clear[int(graph.lane[v])] = max(clear[int(graph.lane[v])], end[v])
        for v in one:
            lane = int(graph.lane[v])
            waits = [
                end[int(graph.src[e])] + int(self.delays.edge_ns[e])
                for e in self._waits(v)
                if graph.edge_kind[e] != EdgeKind.STREAM
            ]
            origin = graph.t0_ns + int(self.delays.origin_ns[v])
            end[v] = clear[lane] = max([origin, clear[lane], *waits]) + int(self.dur[v])
        return self.length(np.array(end, np.int64))


@settings(PROPERTY, max_examples=150)
@given(schedules(max_nodes=6), st.integers(0, 5), per_node(st.integers(0, 9), 6))
def test_no_order_of_the_queues_makes_the_step_shorter_than_its_bounds(
    schedule: Schedule, cut: int, drawn: list[int]
) -> None:
    step = Step(schedule, cut, drawn)
    assert min(step.in_every_order()) >= max(step.free, step.lanes)


@PROPERTY
@given(schedules(), st.integers(0, 7), per_node(st.integers(0, 9)))
def test_bounds_never_pass_the_recorded_order(schedule: Schedule, cut: int, drawn: list[int]) -> None:
    step = Step(schedule, cut, drawn)
    in_order = step.length(order(step.graph)(step.dur, step.delays))
    assert max(step.free, step.lanes) <= in_order


@PROPERTY
@given(schedules(), st.integers(0, 7), per_node(st.integers(0, 9)), per_node(st.integers(0, 3)))
def test_bounds_never_fall_when_work_grows(
    schedule: Schedule, cut: int, drawn: list[int], more: list[int]
) -> None:
    small = Step(schedule, cut, drawn)
    large = Step(schedule, cut, [a + b for a, b in zip(drawn, more, strict=True)])
    assert small.free <= large.free
    assert small.lanes <= large.lanes


# --- contention ---------------------------------------------------------------------------------


class Device:
    """A random schedule whose queues compute, communicate or do neither, on one device or two."""

    def __init__(self, schedule: Schedule, roles: list[int], slowdown: Fraction) -> None:
        self.built = Built(schedule)
        graph = self.graph = self.built.graph
        role = self.built.at(roles[: len(graph)])
        self.device: Int64Array = (graph.lane // 2).astype(np.int64)
        self.comm, self.compute = role == 0, (role == 1) | (role == 2)
        self.who: Rivals = rivals(graph, self.device, self.comm, self.compute, slowdown)
        self.slowdown = slowdown

    def finish(self, dur: Int64Array) -> list[int]:
        who = self.who.renumbered(np.arange(len(self.graph)), self.who.work_after(self.graph, dur))
        found: list[int] = simulate(self.graph, dur, self.built.lags, who).tolist()
        return found


ROLES = per_node(st.integers(0, 3))


@PROPERTY
@given(schedules(), ROLES, SLOWDOWNS)
def test_contention_gives_back_every_observed_end_when_nothing_changes(
    schedule: Schedule, roles: list[int], slowdown: Fraction
) -> None:
    one = Device(schedule, roles, slowdown)
    assert one.finish(one.graph.dur_ns) == one.graph.end_ns.tolist()


def by_the_clock(one: Device, dur: list[int]) -> list[int]:
    """Contention by its definition, nanosecond by nanosecond: no events, no heaps, no clocks of compute."""
    graph, delays = one.graph, one.built.lags
    end: dict[int, int] = {}
    begun: dict[int, int] = {}
    left: dict[int, Fraction] = {}
    now = graph.t0_ns
    while len(end) < len(graph):
        settled = False
        while not settled:  # all that happens at this instant, in whatever order it follows
            settled = True
            for v in range(len(graph)):
                if v not in begun and _may_begin(graph, delays, v, end, now):
                    begun[v], left[v], settled = now, _work(one, v, dur[v]), False
                if v in begun and v not in end and left[v] <= 0:
                    end[v], settled = now, False
        running = [v for v in begun if v not in end]
        busy = {int(one.device[v]) for v in running if one.comm[v]}
        for v in running:
            slowed = one.compute[v] and int(one.device[v]) in busy
            left[v] -= 1 / one.slowdown if slowed else 1
        now += 1
    return [end[v] for v in range(len(graph))]


def _may_begin(graph: Graph, delays: Lags, v: int, end: dict[int, int], now: int) -> bool:
    edges = range(int(graph.dst_ptr[v]), int(graph.dst_ptr[v + 1]))
    if any(int(graph.src[e]) not in end for e in edges):
        return False
    waits = [end[int(graph.src[e])] + int(delays.edge_ns[e]) for e in edges]
    return now >= max(waits, default=graph.t0_ns + int(delays.origin_ns[v]))


def _work(one: Device, v: int, dur: int) -> Fraction:
    """What a node has to do, in ns at full speed: observed time beside communication counts 1/c."""
    if not one.compute[v]:
        return Fraction(dur)
    graph = one.graph
    span = range(int(graph.start_ns[v]), int(graph.end_ns[v]))
    rivals_ = [u for u in range(len(graph)) if one.comm[u] and one.device[u] == one.device[v]]
    beside = sum(any(graph.start_ns[u] <= t < graph.end_ns[u] for u in rivals_) for t in span)
    work = len(span) - beside + beside / one.slowdown
    return work * dur / len(span) if span else Fraction(dur)


def in_ticks(one: Device, dur: list[int]) -> bool:
    """Whether changed work is a whole number of ticks; the product rounds the rest down."""
    full = one.slowdown.numerator
    return all((_work(one, v, dur[v]) * full).denominator == 1 for v in range(len(dur)))


@settings(PROPERTY, max_examples=150)
@given(schedules(), ROLES, SLOWDOWNS, per_node(st.sampled_from((0, 1, 2, 3))))
def test_contention_is_what_the_clock_says(
    schedule: Schedule, roles: list[int], slowdown: Fraction, times: list[int]
) -> None:
    one = Device(schedule, roles, slowdown)
    # Whole multiples keep work a whole number of ticks.
    dur = [int(d) * k for d, k in zip(one.graph.dur_ns, times, strict=False)]
    assert in_ticks(one, dur)
    assert one.finish(np.array(dur, np.int64)) == by_the_clock(one, dur)


@PROPERTY
@given(schedules(), ROLES, SLOWDOWNS, per_node(st.integers(0, 9)))
def test_contention_lies_between_all_alone_and_all_beside(
    schedule: Schedule, roles: list[int], slowdown: Fraction, drawn: list[int]
) -> None:
    one = Device(schedule, roles, slowdown)
    dur = one.built.at(drawn[: len(one.graph)])
    work = np.array(one.who.work_after(one.graph, dur), np.int64)
    computes = one.who.compute >= 0
    finish = np.array(one.finish(dur))
    for rate, sign in ((slowdown.numerator, 1), (slowdown.denominator, -1)):
        length = np.where(computes, -(-work // rate), dur)
        assert ((finish - forward(one.graph, length, one.built.lags) - length) * sign >= 0).all()


def test_longer_activity_may_shorten_the_step_where_work_contends() -> None:
    """Why no such thing is promised of contention: a later collective no longer slows the compute beside it."""
    # host  [head 0]    stream 2  [comm 20]    stream 1  [compute 12, all beside comm: 6 of work at c = 2]
    nodes = (Node(0, 0, 0), Node(2, 0, 20), Node(1, 0, 12))
    links = (Link(0, 1, EdgeKind.EVENT, Evidence.SYNC),)
    graph, _ = assemble(*columns(Schedule(0, nodes, links, (2,), (), "join")), t0_ns=0, notes={})
    comm, compute = graph.lane == 2, graph.lane == 1
    who = rivals(graph, np.zeros(3, np.int64), comm, compute, Fraction(2))
    delays = Lags(np.zeros(1, np.int64), np.zeros(3, np.int64))
    lengths = [
        int(simulate(graph, np.where(graph.lane == 0, head, graph.dur_ns), delays, who)[compute][0])
        for head in (0, 4)
    ]
    assert lengths == [12, 8]  # 4 of the work alone, then 2 at half the rate


# --- launch queue -------------------------------------------------------------------------------

HOST = (1, 1)


class Launches:
    """A host that launches into one queue, with time of its own between; recorded with room for all."""

    def __init__(self, drawn: list[tuple[int, int, int]]) -> None:
        self.own, self.call, self.kernel = (list(column) for column in zip(*drawn, strict=True))
        chrome: list[dict[str, Any]] = []
        now = free = 0
        for i, (own, call, kernel) in enumerate(drawn, 1):
            start, now = now + own, now + own + call
            free = max(now, free) + kernel
            chrome += [
                event("cpu_op", "op", (start - own, now), HOST),
                event("cuda_runtime", "cudaLaunchKernel", (start, now), HOST, correlation=i),
                event("kernel", "k", (free - kernel, free), (0, 7), correlation=i, stream=7),
            ]
        self.view: StepGraph = Trace(trace(chrome), Options()).view()

    def by_hand(self, depth: int, kernel: list[int]) -> tuple[list[int], list[int]]:
        """Returns and ends under a queue of `depth`, by E9's own words."""
        now, returns, ends = 0, list[int](), list[int]()
        for n, (own, call) in enumerate(zip(self.own, self.call, strict=True)):
            now = max(now + own + call, ends[n - depth] if n >= depth else 0)
            returns.append(now)
            ends.append(max([now, *ends[-1:]]) + kernel[n])
        return returns, ends


@FEW
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3), st.integers(1, 9)), min_size=1, max_size=9),
    st.integers(1, 10),
    per_node(st.integers(0, 12), 9),
)
def test_queue_of_any_depth_is_what_its_rule_says(
    drawn: list[tuple[int, int, int]], depth: int, kernels: list[int]
) -> None:
    run = Launches(drawn)
    graph = run.view.built.graph
    device = np.flatnonzero(graph.kind >= NodeKind.KERNEL)
    host = np.flatnonzero(graph.kind < NodeKind.KERNEL)
    engine, delays = queued(run.view, depth), run.view.delays("join")
    finish = engine(graph.dur_ns, delays)
    returns, ends = run.by_hand(depth, run.kernel)
    assert (finish[device] // 1000).tolist() == ends
    assert sorted(set((finish[host] // 1000).tolist()) | {0}) == sorted({0, *returns})
    dur = graph.dur_ns.copy()
    dur[device] = np.array(kernels[: len(drawn)]) * 1000
    assert (engine(dur, delays)[device] // 1000).tolist() == run.by_hand(depth, kernels)[1]


@FEW
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3), st.integers(1, 9)), min_size=1, max_size=9),
    st.integers(1, 10),
)
def test_deeper_queue_never_delays_anything(drawn: list[tuple[int, int, int]], depth: int) -> None:
    run = Launches(drawn)
    dur, delays = run.view.built.graph.dur_ns, run.view.delays("join")
    shallow, deep = (queued(run.view, n)(dur, delays) for n in (depth, depth + 1))
    assert (shallow >= deep).all()
    assert (deep >= run.view.built.graph.end_ns).all()
