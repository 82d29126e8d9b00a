"""The launch queue of a given depth: where the wait attaches, what was waiting already, and what cannot be."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import pytest

from stepcrit.errors import UsageError
from stepcrit.graph.backpressure import returns_of, with_queue
from stepcrit.graph.engines import queued
from stepcrit.graph.replay import Saving, replayer
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.model.arrays import Int64Array
from stepcrit.model.graph import EdgeKind, Evidence, NodeKind
from stepcrit.session import Options, Trace, load
from tests.builders import event, trace

FIXTURES = Path(__file__).parents[2] / "fixtures" / "simulated"
HOST = (1, 1)
Event = dict[str, Any]


def call(span: tuple[int, int], number: int) -> Event:
    return event("cuda_runtime", "cudaLaunchKernel", span, HOST, correlation=number)


def kernel(name: str, span: tuple[int, int], number: int, stream: int = 7) -> Event:
    return event("kernel", name, span, (0, stream), correlation=number, stream=stream)


def view_of(*chrome: Event) -> StepGraph:
    return Trace(trace(chrome), Options()).view()


def device_node(view: StepGraph, name: str) -> int:
    graph = view.built.graph
    found = [
        v
        for v in range(len(graph))
        if graph.kind[v] >= NodeKind.KERNEL and view.trace.events.name_of(int(graph.row[v])) == name
    ]
    return found[-1]


def host_end(view: StepGraph, depth: int, dur_us: dict[str, int]) -> int:
    """When the host is done, in µs, with some kernels of another length."""
    graph = view.built.graph
    dur: Int64Array = graph.dur_ns.copy()
    for name, us in dur_us.items():
        dur[device_node(view, name)] = us * 1000
    finish = queued(view, depth)(dur, view.delays("join"))
    return int(finish[graph.kind < NodeKind.KERNEL].max()) // 1000


def launched_inside() -> StepGraph:
    """The second kernel starts while its call still runs: the thread is cut at 10, and the call returns at 14."""
    # host  [op 0 .. [call 1 5-9] .. [call 2 10-14] .. 20]       queue  [a 9-11][b 11-13]
    return view_of(
        event("cpu_op", "op", (0, 20), HOST),
        call((5, 9), 1),
        call((10, 14), 2),
        kernel("a", (9, 11), 1),
        kernel("b", (11, 13), 2),
    )


@pytest.mark.parametrize(
    ("a_us", "host_us"),
    [
        (2, 20),  # as recorded: a ends at 11, the call returns at 14 anyway
        (5, 20),  # a ends at 14, just as the call returns
        (6, 21),  # one more, and the return and all after it come one later
        (7, 22),
        (16, 31),
    ],
)
def test_it_is_the_return_of_the_call_that_waits_even_within_a_node(a_us: int, host_us: int) -> None:
    view = launched_inside()
    assert view.built.graph.end_ns[view.built.graph.kind < NodeKind.KERNEL].tolist()[-1] == 20_000
    assert host_end(view, 1, {"a": a_us}) == host_us
    assert host_end(view, 2, {"a": a_us}) == 20  # room for both: nothing waits


def test_graph_launch_is_one_operation_that_ends_with_its_last_activity() -> None:
    # One call launches g1 and g2; with room for one operation the next call waits for g2, not for g1.
    view = view_of(
        event("cpu_op", "op", (0, 6), HOST),
        event("cuda_runtime", "cudaGraphLaunch", (0, 2), HOST, correlation=1),
        call((3, 5), 2),
        kernel("g1", (2, 6), 1),
        kernel("g2", (6, 12), 1),
        kernel("k", (12, 14), 2),
    )
    (only,) = returns_of(view, 1)
    assert only.src == device_node(view, "g2")
    assert host_end(view, 1, {}) == 13  # back at 12, and one more of the operator


def test_work_whose_launch_is_not_in_the_trace_takes_its_place_in_the_queue() -> None:
    view = view_of(
        event("cpu_op", "op", (0, 6), HOST),
        call((0, 1), 8),  # a thread's first node waits for nothing
        call((1, 2), 9),
        kernel("before", (0, 8), 5),
        kernel("j", (8, 9), 8),
        kernel("k", (9, 10), 9),
    )
    assert [one.src for one in returns_of(view, 2)] == [device_node(view, "before")]
    assert host_end(view, 2, {}) == 12  # the second call returns at 8, and four of the operator are left


def test_every_queue_has_its_own_depth() -> None:
    view = view_of(
        event("cpu_op", "op", (0, 8), HOST),
        call((0, 1), 1),
        call((2, 3), 2),
        kernel("a", (1, 30), 1, stream=7),
        kernel("b", (3, 40), 2, stream=20),
    )
    assert list(returns_of(view, 1)) == []


def truth_of(name: str) -> dict[str, Any]:
    return dict(json.loads((FIXTURES / f"{name}.truth.json").read_text(encoding="utf-8")))


@pytest.mark.parametrize(("name", "depth"), [("full_queue_16", 16), ("full_queue_1023", 1023)])
def test_halved_kernels_save_what_the_simulator_says_where_the_queue_was_full(name: str, depth: int) -> None:
    """The simulator really ran with half the kernels; without the queue's model the small one saves nothing."""
    view, truth = load(FIXTURES / f"{name}.json.gz").view(), truth_of(name)
    (halved,) = (one for one in truth["changes"] if one["change"]["what"] == "kernel")
    assert halved["change"]["factor"] == 0.5
    graph, events = view.built.graph, view.trace.events
    named = np.array(
        [events.name_of(int(r)) == halved["change"]["name"] if r >= 0 else False for r in graph.row]
    )
    dur = np.where(named & (graph.kind >= NodeKind.KERNEL), graph.dur_ns // 2, graph.dur_ns)
    used = [s.index - 1 for s in view.steps if s.used and s.opens_at_boundary]
    before, after = (mean(periods[i] for i in used) for periods in (truth["period_ns"], halved["period_ns"]))
    one = replayer(view, queued(view, depth))
    assert one.baseline() == Saving(0, 0)
    saving = one.saving(dur)
    assert before - after == pytest.approx(saving.low_ns, rel=0.001)
    assert saving.low_ns == saving.high_ns


@pytest.mark.parametrize(
    "name", ["full_queue_1023", "full_queue_16", "two_streams", "graph_step", "item_sync"]
)
@pytest.mark.parametrize("depth", [1, 16, 1023])
def test_no_dependency_is_there_twice(name: str, depth: int) -> None:
    view = load(FIXTURES / f"{name}.json.gz").view()
    wired = with_queue(view, depth).graph
    assert len(set(zip(wired.src.tolist(), wired.dst.tolist(), strict=True))) == len(wired.src)
    assert (wired.src < wired.dst).all()
    added = (wired.edge_kind == EdgeKind.BACKPRESSURE) & (wired.evidence == Evidence.ASSUMED)
    assert len(wired.src) - int(added.sum()) == len(view.built.graph.src)


def test_waits_that_the_record_shows_already_are_not_added() -> None:
    view = load(FIXTURES / "full_queue_1023.json.gz").view()
    graph = view.built.graph
    shown = np.flatnonzero(graph.edge_kind == EdgeKind.BACKPRESSURE)
    assert shown.size
    pairs = set(zip(graph.src[shown].tolist(), graph.dst[shown].tolist(), strict=True))
    assert not pairs & {(one.src, one.dst) for one in returns_of(view, 1023)}


def test_queue_smaller_than_what_was_outstanding_makes_a_longer_baseline() -> None:
    """Calls at 0-1 and 1-2, kernels of 10: with room for one the second call returns at 11, not at 2."""
    view = view_of(
        event("cpu_op", "op", (0, 2), HOST),
        call((0, 1), 1),
        call((1, 2), 2),
        kernel("a", (1, 11), 1),
        kernel("b", (11, 21), 2),
    )
    assert host_end(view, 1, {}) == 11
    assert host_end(view, 2, {}) == 2


def test_queue_in_which_the_program_waits_for_itself_is_refused() -> None:
    # a waits for c of the other queue (by timing); the launch of c comes after one that waits for a.
    waiting = [
        event("cpu_op", "op", (0, 6), HOST),
        call((0, 1), 1),
        call((2, 3), 2),
        call((4, 5), 3),
        kernel("c", (6, 40), 3, stream=20),
        kernel("a", (41, 50), 1),
        kernel("b", (50, 60), 2),
    ]
    view = view_of(*waiting)
    assert (view.built.graph.evidence == Evidence.TIMING).any()
    queued(view, 2)
    with pytest.raises(UsageError, match="would wait for itself"):
        queued(view, 1)


def test_depth_is_a_positive_number() -> None:
    with pytest.raises(UsageError, match="at least 1"):
        queued(launched_inside(), 0)


def full_of_two() -> StepGraph:
    """Room for two: the third call of 8 was waiting for 7 of them. After it, the operator takes 4 more."""
    # host  [call 1][call 2][call 3 ........ 10][op to 14]   queue [a 1-10][b 10-20][c 20-21]
    return view_of(
        event("cpu_op", "op", (0, 14), HOST),
        call((0, 1), 1),
        call((1, 2), 2),
        call((2, 10), 3),
        kernel("a", (1, 10), 1),
        kernel("b", (10, 20), 2),
        kernel("c", (20, 21), 3),
    )


@pytest.mark.parametrize(("a_us", "host_us"), [(9, 14), (5, 10), (3, 8), (2, 7), (1, 7), (19, 24)])
def test_time_that_a_call_waited_goes_with_what_it_waited_for(a_us: int, host_us: int) -> None:
    """A call that finds room takes 1, so the host cannot be done before 3 + 4."""
    assert host_end(full_of_two(), 2, {"a": a_us}) == host_us


def test_host_work_taken_off_a_waiting_call_saves_nothing() -> None:
    """The call of 8 at half its length still returns when the queue has room."""
    view = full_of_two()
    graph = view.built.graph
    node = next(v for v in range(len(graph)) if graph.dur_ns[v] == 8_000)
    dur = graph.dur_ns.copy()
    dur[node] = 4_000
    finish = queued(view, 2)(dur, view.delays("join"))
    assert (finish == graph.end_ns).all()
    dur[node] = 9_000  # one more of work: 2, which the wait of 7 hides
    assert (queued(view, 2)(dur, view.delays("join")) == graph.end_ns).all()


def test_two_waits_within_one_node_do_not_count_each_others_time() -> None:
    """Room for one. Back from the first wait the host has 1 of its own and a call of 1 + 2 to do before it launches c."""
    # host  [call 1 0-1][..][call 2 2-12][..][call 3 13-22][op to 30]     queue [a 1-10][b 10-20][c 22-25]
    view = view_of(
        event("cpu_op", "op", (0, 30), HOST),
        call((0, 1), 1),
        call((2, 12), 2),
        call((13, 22), 3),
        kernel("a", (1, 10), 1),
        kernel("b", (10, 20), 2),
        kernel("c", (22, 25), 3),
    )
    graph = view.built.graph
    assert [v for v in range(len(graph)) if (graph.start_ns[v], graph.end_ns[v]) == (2_000, 22_000)]
    assert host_end(view, 1, {}) == 30
    assert host_end(view, 1, {"a": 20}) == 41  # a ends 21, b 31; call 3 returns 2 later, then 8
    assert host_end(view, 1, {"a": 20, "b": 1}) == 35  # a ends 21, call 2 is back at 23, 4 of work, then 8


def test_call_that_launches_into_two_queues_waits_once() -> None:
    view = view_of(
        event("cpu_op", "op", (0, 14), HOST),
        event("cuda_runtime", "cudaGraphLaunch", (0, 1), HOST, correlation=1),
        event("cuda_runtime", "cudaGraphLaunch", (2, 10), HOST, correlation=2),
        kernel("a", (1, 10), 1),
        kernel("a2", (1, 6), 1, stream=20),
        kernel("b", (10, 20), 2),
        kernel("b2", (10, 12), 2, stream=20),
    )
    assert host_end(view, 1, {}) == 14
    assert host_end(view, 1, {"a": 1, "a2": 1}) == 7  # 1 before the call, 1 in it, 4 after it
    assert host_end(view, 1, {"a2": 19}) == 24  # now the other queue holds it


def test_threads_first_node_waits_for_nothing_but_the_origin() -> None:
    view = view_of(
        event("cpu_op", "op", (5, 8), HOST),
        call((5, 7), 9),
        kernel("before", (0, 2), 5),
        kernel("k", (7, 9), 9),
    )
    assert host_end(view, 1, {}) == 8


def test_call_that_finds_room_takes_what_the_middle_one_of_them_took() -> None:
    """Calls of 1, 3 and 3 found room; the fourth of 8 waited for a, and alone it would take 3."""
    view = view_of(
        event("cpu_op", "op", (0, 15), HOST),
        call((0, 1), 1),
        call((1, 4), 2),
        call((4, 7), 3),
        call((7, 15), 4),
        kernel("a", (1, 15), 1),
        kernel("b", (15, 16), 2),
        kernel("c", (16, 17), 3),
        kernel("d", (17, 18), 4),
    )
    assert (host_end(view, 3, {}), host_end(view, 3, {"a": 1})) == (15, 10)
