"""What-if on random traces: the invariants of methods 0.6, and a replay by definition that shares no code with it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from statistics import median
from typing import Any, Literal

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from stepcrit.graph.change import Change, Options
from stepcrit.graph.replay import Saving
from stepcrit.graph.select import select
from stepcrit.graph.selector import Selector
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.model.events import DEVICE_KINDS
from stepcrit.model.graph import EdgeKind, NodeKind
from stepcrit.session import Options as SessionOptions
from stepcrit.session import Trace
from tests.asking import analyze, curve
from tests.builders import trace
from tests.properties.schedules import PROPERTY as FULL

PROPERTY = settings(FULL, max_examples=200)  # each example is a whole trace

OPS, KERNELS = ("op_a", "op_b", "op_c"), ("k_a", "k_b", "k_c")
TENTHS = st.integers(0, 10).map(lambda n: Fraction(n, 10))
Side = Literal["device", "host"]


@dataclass(frozen=True)
class Run:
    """A trace in whole µs (multiples of 10 ns, so that tenths are exact), and its one step."""

    chrome: tuple[dict[str, Any], ...]

    @cached_property
    def view(self) -> StepGraph:
        view = Trace(trace(self.chrome), SessionOptions()).view()
        assert not view.step.opens_at_boundary  # the whole capture: one step, changed alone
        return view

    def names(self, cats: tuple[str, ...]) -> set[str]:
        return {e["name"] for e in self.chrome if e["cat"] in cats}


def event(cat: str, name: str, start: int, end: int, place: tuple[int, int], **args: Any) -> dict[str, Any]:
    pid, tid = place
    return {"cat": cat, "name": name, "ts": start, "dur": end - start, "pid": pid, "tid": tid, "args": args}


_LAUNCH = st.tuples(
    st.sampled_from((7, 20)), st.sampled_from(KERNELS), st.integers(1, 12), st.sampled_from((0, 0, 1, 3))
)
_OP = st.tuples(
    st.sampled_from((0, 1, 2)),
    st.sampled_from(OPS),
    st.integers(1, 4),
    st.lists(_LAUNCH, max_size=3),
    st.booleans(),  # with an operator nested in it
    st.sampled_from((False, False, True)),  # waits for the device at its end
)


@st.composite
def runs(draw: st.DrawFn) -> Run:
    """Operators in a row, each with launches on two queues; some wait for the device, some nest another."""
    drawn = draw(st.lists(_OP, min_size=1, max_size=6).filter(lambda ops: any(op[3] for op in ops)))
    found: list[dict[str, Any]] = []
    now, number = 0, 0
    queue = {7: 0, 20: 0}
    for idle, name, own, launches, nested, waits in drawn:
        now += idle
        start = now
        now += own
        for stream, kernel, dur, gap in launches:
            number += 1
            found.append(event("cuda_runtime", "cudaLaunchKernel", now, now + 2, (1, 1), correlation=number))
            now += 2
            at = max(now, queue[stream]) + gap
            queue[stream] = at + dur
            found.append(
                event("kernel", kernel, at, at + dur, (0, stream), correlation=number, stream=stream)
            )
        if nested:
            found.append(event("cpu_op", "inner", now, now + 3, (1, 1)))
            now += 4
        if waits:
            until = max(now, *queue.values()) + 2
            found.append(event("cuda_runtime", "cudaDeviceSynchronize", now, until, (1, 1)))
            now = until
        now += 1
        found.append(event("cpu_op", name, start, now, (1, 1)))
    return Run(tuple(found))


@dataclass(frozen=True)
class Part:
    """A selection: all kernels of a name, or the host time of all operators of a name."""

    side: Side
    name: str
    left: Fraction

    @property
    def change(self) -> Change:
        return Change(Selector("name", self.name), "scale", factor=self.left)


def parts(run: Run, data: st.DataObject, left: st.SearchStrategy[Fraction] = TENTHS) -> Part:
    side: Side = data.draw(st.sampled_from(("device", "host")))
    names = run.names(("kernel",) if side == "device" else ("cpu_op",))
    return Part(side, data.draw(st.sampled_from(sorted(names))), data.draw(left))


# --- the oracle -------------------------------------------------------------------------------


def changed(run: Run, some: list[Part]) -> list[int]:
    """New durations by definition: kernels by name, host stretches by how much of them lies in an operator."""
    view, graph = run.view, run.view.built.graph
    events = view.trace.events
    dur: list[int] = graph.dur_ns.tolist()
    for part in some:
        spans = [(e["ts"] * 1000, (e["ts"] + e["dur"]) * 1000) for e in run.chrome if e["name"] == part.name]
        for v in range(len(graph)):
            start, old = int(graph.start_ns[v]), int(graph.dur_ns[v])
            if not view.step.start_ns <= start < view.step.end_ns:
                continue  # one step is no steady run: what starts in its window changes
            if graph.kind[v] >= NodeKind.KERNEL:
                mine = old if part.side == "device" and events.name_of(int(graph.row[v])) == part.name else 0
            elif part.side == "host" and graph.kind[v] != NodeKind.SYNC:  # a return is the machine's latency
                mine = sum(max(0, min(start + old, b) - max(start, a)) for a, b in spans)
            else:
                mine = 0
            taken = mine * (1 - part.left)
            assert taken.denominator == 1
            dur[v] -= int(taken)
    return dur


def shorter_calls(run: Run, some: list[Part]) -> dict[int, int]:
    """By device node, by how much its launch call is shorter where it lets the node go (all of a call but its end)."""
    view, graph = run.view, run.view.built.graph
    spans = {e["args"]["correlation"]: (e["ts"], e["ts"] + e["dur"]) for e in run.chrome if e["name"] == "cudaLaunchKernel"}  # fmt: skip
    found: dict[int, int] = {}
    for u, v, kind in zip(graph.src.tolist(), graph.dst.tolist(), graph.edge_kind.tolist(), strict=True):
        if kind != EdgeKind.LAUNCH:
            continue
        start, end = spans[int(view.trace.events.correlation[graph.row[v]])]
        begin, until = max(int(graph.start_ns[u]), start * 1000), min(int(graph.end_ns[u]), end * 1000)
        for part in some:
            owners = [(e["ts"], e["ts"] + e["dur"]) for e in run.chrome if e["name"] == part.name]
            if part.side == "host" and any(a <= start and end <= b for a, b in owners):
                found[v] = found.get(v, 0) + int((until - begin) * (1 - part.left))
    return found


def saved(run: Run, dur: list[int], policy: str, less: dict[int, int]) -> int:
    """The saving by definition (B.6): every start by recursion over its predecessors.

    Under "join" an edge that did not bind brings the gap, or what its kind usually brings where that is
    known (by five at least, and at most 20 µs) and more, as far as there was room.
    """
    view, graph = run.view, run.view.built.graph
    start = graph.start_ns.tolist()
    end = [int(s + d) for s, d in zip(graph.start_ns, graph.dur_ns, strict=True)]
    preds: list[list[tuple[int, int]]] = [[] for _ in range(len(graph))]
    for u, v, kind in zip(graph.src.tolist(), graph.dst.tolist(), graph.edge_kind.tolist(), strict=True):
        preds[v].append((u, kind))
    ready = [max((end[u] for u, _ in before), default=graph.t0_ns) for before in preds]
    usual = usual_delays(start, end, preds, ready)
    finish: dict[int, int] = {}

    def lag(u: int, v: int, kind: int) -> int:
        gap = start[v] - ready[v]
        if end[u] == ready[v]:
            return gap
        return max(gap, min(usual.get(kind, 0), start[v] - end[u])) if policy == "join" else 0

    def finished(v: int) -> int:
        if v not in finish:
            # Under "join" a call may have submitted at its begin: then its being shorter speeds nothing up.
            late = {EdgeKind.LAUNCH: less.get(v, 0) if policy == "join" else 0}
            waits = [finished(u) + lag(u, v, kind) + late.get(EdgeKind(kind), 0) for u, kind in preds[v]]
            finish[v] = max(waits, default=start[v]) + dur[v]
        return finish[v]

    return view.step.end_ns - max(finished(v) for v in view.sinks)


def usual_delays(
    start: list[int], end: list[int], preds: list[list[tuple[int, int]]], ready: list[int]
) -> dict[int, int]:
    """The median gap of each kind of edge that bound five times at least, and at most 20 µs."""
    seen: dict[int, list[int]] = {}
    for v, before in enumerate(preds):
        for u, kind in before:
            if end[u] == ready[v]:
                seen.setdefault(kind, []).append(start[v] - ready[v])
    return {kind: min(int(median(gaps)), 20_000) for kind, gaps in seen.items() if len(gaps) >= 5}


# --- properties -------------------------------------------------------------------------------


@PROPERTY
@given(runs(), st.data())
def test_prediction_is_the_replay_by_definition(run: Run, data: st.DataObject) -> None:
    part = parts(run, data)
    answer = analyze(run.view, [part.change], Options(side=part.side))
    dur = changed(run, [part])
    assert answer.applied.dur_ns.tolist() == dur
    less = shorter_calls(run, [part])
    assert answer.saving == Saving(saved(run, dur, "join", less), saved(run, dur, "edge", less))
    assert sum(answer.after_by_class_ns.values()) == run.view.step.elapsed_ns - answer.saving.join_ns


@PROPERTY
@given(runs(), st.data())
def test_operator_means_what_it_launches_and_host_time_where_it_launches_nothing(
    run: Run, data: st.DataObject
) -> None:
    """The auto side, written out: calls launched within the operator's span, on its thread."""
    name = data.draw(st.sampled_from(sorted(run.names(("cpu_op",)))))
    spans = [(e["ts"], e["ts"] + e["dur"]) for e in run.chrome if e["name"] == name]
    calls = {e["args"]["correlation"]: e["ts"] for e in run.chrome if e["name"] == "cudaLaunchKernel"}
    device = [
        e["dur"]
        for e in run.chrome
        if e["cat"] == "kernel" and any(a <= calls[e["args"]["correlation"]] < b for a, b in spans)
    ]
    quiet = [(a, b) for a, b in spans if not any(a <= at < b for at in calls.values())]
    graph = run.view.built.graph
    host = 0  # waiting is no node, so the host time is what the graph has of it
    for v in np.flatnonzero(graph.kind == NodeKind.HOST):
        start, end = int(graph.start_ns[v]), int(graph.end_ns[v])
        host += sum(max(0, min(end, b * 1000) - max(start, a * 1000)) for a, b in quiet)
    selection = select(run.view, Selector("name", name))
    assert selection.device_count == len(device)
    assert selection.total_ns == sum(device) * 1000 + host


@PROPERTY
@given(runs())
def test_nothing_changed_saves_nothing_under_either_policy(run: Run) -> None:
    for side in ("device", "host", "both"):
        answer = analyze(run.view, [Change(Selector("name", "*"), "scale")], Options(side=side))
        assert answer.saving == Saving(0, 0)
    path = np.bincount(run.view.segments.work, run.view.segments.length_ns)
    assert answer.after_by_class_ns == {int(w): path[w] for w in np.flatnonzero(path)}


@PROPERTY
@given(runs(), st.data())
def test_saving_lies_between_nothing_and_what_the_path_loses(run: Run, data: st.DataObject) -> None:
    part = parts(run, data)
    answer = analyze(run.view, [part.change], Options(side=part.side))
    selection = answer.applied.selections[0]
    assert 0 <= answer.saving.low_ns <= answer.saving.high_ns
    assert answer.saving.high_ns <= selection.on_path_ns * (1 - part.left)
    assert answer.saving.high_ns <= answer.ceiling.high_ns
    assert selection.on_path_ns <= selection.total_ns


@PROPERTY
@given(runs(), st.data())
def test_lengthening_never_shortens(run: Run, data: st.DataObject) -> None:
    part = parts(run, data, st.sampled_from((Fraction(11, 10), Fraction(2), Fraction(5))))
    answer = analyze(run.view, [part.change], Options(side=part.side))
    assert answer.saving.high_ns <= 0
    assert answer.saving.high_ns >= -int(answer.applied.dur_ns.sum())


@PROPERTY
@given(runs(), st.data())
def test_what_has_slack_saves_nothing_and_lengthened_within_it_costs_nothing(
    run: Run, data: st.DataObject
) -> None:
    """Each kernel gets a name of its own, so that a selection can hold exactly those with slack."""
    own = Run(
        tuple({**e, "name": f"kernel {i}"} if e["cat"] == "kernel" else e for i, e in enumerate(run.chrome))
    )
    view = own.view
    kernels = np.flatnonzero(np.isin(view.trace.events.kind[view.built.graph.row], DEVICE_KINDS))
    kernels = kernels[view.built.graph.kind[kernels] >= NodeKind.KERNEL]
    room = view.slack.total_ns
    names = {int(v): view.node_name(int(v)) for v in kernels if room[v] > 0}
    if not names:
        return
    some = data.draw(st.sets(st.sampled_from(sorted(names)), min_size=1))
    gone = [Change(Selector("name", names[v]), "scale", factor=Fraction(0)) for v in sorted(some)]
    assert analyze(view, gone).saving == Saving(0, 0)
    one = min(some)
    longer = Change(Selector("name", names[one]), "add", amount_ns=int(min(room[one], 10**6)))
    assert analyze(view, [longer]).saving == Saving(0, 0)


@PROPERTY
@given(runs(), TENTHS, TENTHS)
def test_changes_of_different_things_commute(run: Run, first: Fraction, second: Fraction) -> None:
    device = [
        Change(Selector("name", name), "scale", factor=first) for name in sorted(run.names(("kernel",)))
    ]
    other = Change(Selector("class", "launch"), "scale", factor=second)
    forth, back = analyze(run.view, [*device, other]), analyze(run.view, [other, *reversed(device)])
    assert (forth.applied.dur_ns == back.applied.dur_ns).all()
    assert (forth.saving, forth.ceiling) == (back.saving, back.ceiling)
    assert forth.after_by_class_ns == back.after_by_class_ns


@PROPERTY
@given(runs(), st.data())
def test_saving_grows_and_flattens_as_more_is_taken_away(run: Run, data: st.DataObject) -> None:
    part = parts(run, data)
    points = [s for _, s in curve(run.view, [part.change], Options(side=part.side))]
    for values in ([s.join_ns for s in points], [s.edge_ns for s in points]):
        slopes = [b - a for a, b in pairwise(values)]
        assert values[0] == 0
        assert all(slope >= 0 for slope in slopes)
        assert all(later <= sooner for sooner, later in pairwise(slopes))


@PROPERTY
@given(runs(), st.data())
def test_removing_saves_at_least_as_much_as_taking_no_time(run: Run, data: st.DataObject) -> None:
    part = parts(run, data)
    selector = Selector("name", part.name)
    gone = analyze(run.view, [Change(selector, "remove")], Options(side=part.side))
    nothing = analyze(run.view, [Change(selector, "scale", factor=Fraction(0))], Options(side=part.side))
    assert gone.saving.join_ns >= nothing.saving.join_ns
    assert gone.saving.edge_ns >= nothing.saving.edge_ns
    assert gone.saving == gone.ceiling
