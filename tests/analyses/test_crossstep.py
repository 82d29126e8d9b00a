"""Cross-step replay against steps worked by hand, against the simulator's truth, and where it must refuse."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepcrit.analyses import crossstep
from stepcrit.analyses.crossstep import CrossStep
from stepcrit.errors import UsageError
from stepcrit.graph.counterparts import Counterparts, matcher
from stepcrit.graph.schedule import forward
from stepcrit.graph.stepgraph import StepGraph, sinks_of
from stepcrit.graph.transplant import transplant
from stepcrit.model.steps import Boundary
from stepcrit.session import Options, StepOptions, Trace, load
from tests.builders import Event, event, trace

FIXTURES = Path(__file__).parents[2] / "fixtures"
EVERY = sorted(str(p.relative_to(FIXTURES)) for p in FIXTURES.glob("*/*.json.gz"))
HOST = (1, 1)


def mark(number: int, start: int, end: int) -> Event:
    return event("user_annotation", f"ProfilerStep#{number}", (start, end), HOST)


def launch(start: int, corr: int, length: int = 2) -> Event:
    return event("cuda_runtime", "cudaLaunchKernel", (start, start + length), HOST, correlation=corr)


def kernel(name: str, start: int, length: int, corr: int, stream: int = 7) -> Event:
    return event("kernel", name, (start, start + length), (0, stream), correlation=corr, stream=stream)


def seen(chrome: Sequence[Event], boundary: Boundary | None = None) -> StepGraph:
    return Trace(trace(chrome), Options(StepOptions(boundary))).view()


def predicted(found: CrossStep) -> dict[tuple[str, str], tuple[int, int]]:
    """(predicted, measured) in µs by the numbers of (graph, durations)."""
    return {
        (pair.graph[-1], pair.durations[-1]): (pair.predicted_ns // 1000, pair.measured_ns // 1000)
        for pair in found.pairs
    }


# --- by hand, in µs ----------------------------------------------------------------------------


PLAIN = ((9, 30, 40, 50), (91, 30, 122, 50), (173, 30, 204, 50), (255, 33, 290, 51))
"""Start and length of a, start and length of b, by step.

step  a from..to  gap  b from..to   period = gap, a, gap, b
0      9 .. 39     1    40 .. 90
1     91 ..121     1   122 ..172     1 + 30 + 1 + 50 = 82
2    173 ..203     1   204 ..254     1 + 30 + 1 + 50 = 82
3    255 ..288     2   290 ..341     1 + 33 + 2 + 51 = 87
"""


def device_bound(kernels: Sequence[tuple[int, int, int, int]] = PLAIN) -> list[Event]:
    """Four steps of two kernels; the host is done with each in 40 and runs ahead."""
    events = []
    for i, (a, a_long, b, b_long) in enumerate(kernels):
        at = 40 * i
        events += [
            mark(i, at, at + 40), event("cpu_op", "aten::a", (at + 4, at + 8), HOST),
            event("cpu_op", "aten::b", (at + 9, at + 13), HOST),
            launch(at + 5, 2 * i + 1), launch(at + 10, 2 * i + 2),
            kernel("a", a, a_long, 2 * i + 1), kernel("b", b, b_long, 2 * i + 2),
        ]  # fmt: skip
    return events


def test_durations_of_one_step_and_gaps_of_the_other_make_the_predicted_period() -> None:
    found = crossstep.analyze(seen(device_bound()))
    assert predicted(found) == {
        ("1", "2"): (82, 82), ("2", "1"): (82, 82),
        ("2", "3"): (1 + 33 + 1 + 51, 87),  # step 3's durations, step 2's gaps
        ("3", "2"): (1 + 30 + 2 + 50, 82),
    }  # fmt: skip
    assert found.worst_error_share == 1 / 82
    assert found.median_error_share == pytest.approx((0 + 1 / 87) / 2)
    assert (found.matched_share, found.why_not) == (1.0, None)


def test_activity_in_two_parts_takes_its_parts_share_of_one_in_a_single_part() -> None:
    """In step 1 b starts after 25 of a's 30, in step 2 it starts 1 after a's 36."""
    kernels = ((9, 30, 40, 50), (91, 30, 116, 50), (167, 36, 204, 50), (255, 36, 292, 50))
    assert predicted(crossstep.analyze(seen(device_bound(kernels)))) == {
        ("1", "2"): (1 + 30 + 50, 88),  # 25/30 of 36 until b starts
        ("2", "1"): (1 + 30 + 1 + 50, 76),
        ("2", "3"): (88, 88), ("3", "2"): (88, 88),
    }  # fmt: skip


def host_bound(tails: Sequence[int]) -> list[Event]:
    """Each step: an operator of 100, a launch, a kernel 3 after it that ends after the host's step does."""
    events = []
    for i, tail in enumerate(tails):
        at = 104 * i
        events += [
            mark(i, at, at + 104), event("cpu_op", "aten::mm", (at + 2, at + 102), HOST),
            launch(at + 100, i + 1), kernel("k", at + 105, tail, i + 1),
        ]  # fmt: skip
    return events


def test_head_start_of_the_step_before_is_carried_over() -> None:
    """Periods are 104 and what the kernel's tail grew: durations of one step alone would miss the tail before."""
    view = seen(host_bound([25, 20, 26, 21, 20]))
    assert [s.elapsed_ns // 1000 for s in view.steps[1:]] == [99, 110, 99, 103]
    found = crossstep.analyze(view)
    assert len(found.pairs) == 6
    assert found.worst_error_share == 0
    assert {m for _, m in predicted(found).values()} == {110, 99, 103}


def test_path_that_stays_on_one_thread_crosses_nothing() -> None:
    """The host boundary of a host-bound loop adds up one thread; the device boundary takes one launch."""
    events = host_bound([20, 20, 20, 20])
    assert crossstep.analyze(seen(events, Boundary.HOST)).crossing_count == 0
    assert crossstep.analyze(seen(events)).crossing_count == 1


def test_wait_of_a_call_is_not_carried_over_but_the_time_after_it_is() -> None:
    """A synchronize that blocks for 10 in one step and 60 in the other: the graph finds out itself."""
    # op 20 | launch 2 | sync until the kernel has ended, and a return that takes its own time
    events, at = [], 0
    for i, (length, back) in enumerate([(40, 1), (40, 0), (46, 4), (40, 1)]):
        end = at + 24 + length + back
        events += [
            mark(i, at, end), event("cpu_op", "aten::mm", (at, at + 22), HOST),
            launch(at + 20, 2 * i + 1), kernel("k", at + 24, length, 2 * i + 1),
            event("cuda_runtime", "cudaDeviceSynchronize", (at + 23, end), HOST, correlation=2 * i + 2),
        ]  # fmt: skip
        at = end
    found = crossstep.analyze(seen(events, Boundary.HOST))
    assert predicted(found) == {
        ("1", "2"): (74, 74), ("2", "1"): (64, 64), ("2", "3"): (65, 65), ("3", "2"): (74, 74)
    }  # fmt: skip


def test_forward_and_update_around_a_handed_over_backward_take_their_own_times() -> None:
    """Thread 1: forward, a wait for thread 2's backward, the update; each node takes what its operator took."""
    events, at = [], 0
    for i, (ahead, back, update) in enumerate([(50, 80, 20), (50, 80, 20), (60, 84, 27), (50, 80, 20)]):
        turn, end = at + ahead + 4 + back, at + ahead + 4 + back + 6 + update
        events += [
            mark(i, at, end), event("cpu_op", "aten::mm", (at, at + ahead), HOST),
            event("cpu_op", "autograd::engine::evaluate_function: MmBackward0", (at + ahead + 4, turn), (1, 2)),
            event("cpu_op", "aten::add_", (turn + 6, end), HOST),
        ]  # fmt: skip
        at = end
    view = seen(events)
    match = matcher(view).match(*view.steps[1:3])
    assert isinstance(match, Counterparts)
    dur = transplant(view, [match])
    graph, one = view.built.graph, view.steps[1]
    inside = np.flatnonzero((graph.start_ns >= one.start_ns) & (graph.end_ns <= one.end_ns))
    took = [(view.node_name(v), int(dur[v]) // 1000) for v in inside.tolist()]
    backward = "autograd::engine::evaluate_function: MmBackward0"
    assert took == [("aten::mm", 60), (backward, 84), ("aten::add_", 27)]


# --- what does not compare ---------------------------------------------------------------------


def with_more(which: Sequence[int], more: Event | None = None) -> list[Event]:
    """The host-bound loop, with one operator more in some steps."""
    steps = max(which) + 2
    added = more or event("cpu_op", "aten::log", (10, 12), HOST)
    return host_bound([20] * steps) + [{**added, "ts": added["ts"] + 104 * i} for i in which]


def test_step_with_an_operator_more_is_refused_by_its_name() -> None:
    found = crossstep.analyze(seen(with_more([2])))
    assert found.pairs == ()
    assert (found.median_error_share, found.worst_error_share, found.matched_share) == (None, None, None)
    assert found.why_not in {
        "'aten::log' runs never in ProfilerStep#1 and once in ProfilerStep#2 (thread 1)",
        "'aten::log' runs once in ProfilerStep#2 and never in ProfilerStep#3 (thread 1)",
    }


def test_other_kernel_is_refused_by_its_name() -> None:
    events = device_bound()
    events[-1] = {**events[-1], "name": "b_splitk"}
    found = crossstep.analyze(seen(events))
    assert set(predicted(found)) == {("1", "2"), ("2", "1")}
    whys = matcher(seen(events)).match(*seen(events).steps[2:4])
    assert whys == "'b' runs once in ProfilerStep#2 and never in ProfilerStep#3 (device 0 stream 7)"


def test_same_operators_in_another_order_are_refused() -> None:
    events = device_bound()
    last = [e for e in events if e["name"] in ("aten::a", "aten::b")][-2:]
    last[0]["name"], last[1]["name"] = last[1]["name"], last[0]["name"]
    view = seen(events)
    assert matcher(view).match(*view.steps[2:4]) == (
        "ProfilerStep#2 and ProfilerStep#3 run the same work in another order (thread 1)"
    )


def test_operators_that_start_at_one_instant_have_no_order() -> None:
    """A clock of microseconds gives two short operators one start; the file may then name either first."""
    events = host_bound([20] * 4)
    for i in range(4):
        two = [("aten::x", 10), ("aten::y", 11 if i == 1 else 10)]
        for name, start in two if i % 2 else two[::-1]:
            events.append(event("cpu_op", name, (104 * i + start, 104 * i + start), HOST))
    assert len(crossstep.analyze(seen(events)).pairs) == 4


def test_step_marks_that_an_old_profiler_calls_operators_are_no_work() -> None:
    events = [{**e, "cat": "cpu_op"} if e["cat"] == "user_annotation" else e for e in host_bound([20] * 4)]
    assert len(crossstep.analyze(seen(events)).pairs) == 4


def test_calls_that_only_ask_may_differ() -> None:
    query = event("cuda_runtime", "cudaEventQuery", (10, 12), HOST)
    assert len(crossstep.analyze(seen(with_more([2], query))).pairs) == 4


def test_annotation_that_counts_is_the_same_in_every_step() -> None:
    events = host_bound([20] * 4)
    events += [event("user_annotation", f"batch {i}", (104 * i + 1, 104 * i + 103), HOST) for i in range(4)]
    assert len(crossstep.analyze(seen(events)).pairs) == 4


def test_steps_that_alternate_are_compared_with_the_next_but_one() -> None:
    found = crossstep.analyze(seen(with_more([0, 2, 4, 6])))
    apart = {int(pair.durations[-1]) - int(pair.graph[-1]) for pair in found.pairs}
    assert apart == {2, -2}
    assert found.worst_error_share == 0


def test_thread_that_only_runs_beside_the_step_is_left_out_and_counted() -> None:
    """Thread 2 works 26 of each 104, under another name in every step; thread 1 all 104, the kernel 20."""
    beside = [event("cpu_op", f"aten::{'abcd'[i]}", (104 * i + 9, 104 * i + 35), (1, 2)) for i in range(4)]
    events = [*host_bound([20] * 4), *beside]
    found = crossstep.analyze(seen(events))
    assert found.worst_error_share == 0
    # Between its operators thread 2 is untracked, not idle; it ends 35 into step 3. The graphs are of 1, 2, 2, 3.
    assert found.matched_share == pytest.approx(4 * (104 + 20) / (4 * (104 + 20) + 3 * 104 + 35))


@pytest.mark.parametrize(
    ("steps", "why"), [(1, "no steady steps; two are needed"), (2, "1 steady step; two are needed")]
)
def test_too_few_steps_are_a_reason(steps: int, why: str) -> None:
    assert crossstep.analyze(seen(host_bound([20] * steps))).why_not == why


def test_no_more_pairs_than_asked_for_and_the_nearest_first() -> None:
    view = seen(host_bound([20] * 12))
    here = view.step.index
    found = crossstep.analyze(view, pairs=2)
    assert len(found.pairs) == 2
    near = {
        abs(view.steps.all[i].index - here)
        for i in range(12)
        for p in found.pairs
        if view.steps[i].label == p.graph
    }
    assert near <= {0, 1}


# --- the simulator knows -----------------------------------------------------------------------

SAME_DEPENDENCIES = (
    "device_bound",
    "two_streams",
    "two_streams_sync_records",
    "pdl_overlap",
    "graph_step",
    "ddp_tail.rank1",
)
"""Simulated jobs whose steps differ in durations alone."""


@pytest.mark.parametrize("name", SAME_DEPENDENCIES)
def test_steps_that_differ_in_durations_alone_predict_each_other(name: str) -> None:
    """To 0.01 %, where taking the other step's period as it is would be off by more than ten times that."""
    found = crossstep.analyze(load(FIXTURES / "simulated" / f"{name}.json.gz").view())
    truth = json.loads((FIXTURES / "simulated" / f"{name}.truth.json").read_text(encoding="utf-8"))
    period = {one["label"]: ns for one, ns in zip(truth["steps"][1:], truth["period_ns"], strict=True)}
    assert len(found.pairs) == 6
    assert all(pair.measured_ns == period[pair.durations] for pair in found.pairs)
    assert (found.worst_error_share or 0) < 1e-4
    assert median(abs(period[p.graph] - p.measured_ns) / p.measured_ns for p in found.pairs) > 1e-3


def test_missing_dependency_shows() -> None:
    """Without what was inferred from timing, the other stream's work no longer holds back its successor."""
    path = FIXTURES / "simulated" / "two_streams.json.gz"
    known, unknown = (crossstep.analyze(load(path, Options(strict=s)).view()) for s in (False, True))
    assert (known.worst_error_share or 0) < 1e-4
    assert (unknown.worst_error_share or 0) > 1e-3


# --- always ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("boundary", [None, Boundary.HOST, Boundary.LAUNCH])
def test_own_durations_give_back_every_recorded_boundary(name: str, boundary: Boundary | None) -> None:
    view = load(FIXTURES / name, Options(StepOptions(boundary))).view()
    match = matcher(view)
    again = [found for step in view.steps if isinstance(found := match.match(step, step), Counterparts)]
    assert len(again) == len(view.steps)
    dur = transplant(view, again)
    assert np.array_equal(dur, view.built.graph.dur_ns)
    finish = forward(view.built.graph, dur, view.delays("join")) + dur
    known = 0
    for step in view.steps:
        # A boundary inside a call that blocks is no activity's end.
        with suppress(UsageError):
            sinks = sinks_of(view.trace, view.links, view.steps, step, view.built)
            assert int(finish[sinks].max()) == step.end_ns
            known += 1
    assert known


durations = st.integers(20, 24)


@settings(max_examples=40)
@given(st.lists(st.tuples(*[durations] * 6), min_size=4, max_size=6))
def test_loop_without_delays_is_predicted_exactly(steps: list[tuple[int, ...]]) -> None:
    """Two queues, a synchronize at the end of every step, no gaps: any durations are predicted to the nanosecond."""
    found = crossstep.analyze(seen(synced_loop(steps)), pairs=100)
    if not found.why_not:
        assert found.worst_error_share == 0
        assert found.matched_share == 1


def test_loop_without_delays_has_pairs() -> None:
    steps = [
        (20, 21, 22, 23, 24, 20),
        (24, 20, 20, 20, 22, 21),
        (20, 24, 24, 20, 20, 22),
        (21, 22, 20, 24, 23, 24),
    ]
    found = crossstep.analyze(seen(synced_loop(steps)))
    assert len(found.pairs) == 4
    assert found.worst_error_share == 0
    assert len({pair.measured_ns for pair in found.pairs}) == 3


def synced_loop(steps: Sequence[tuple[int, ...]]) -> list[Event]:
    """Per step: three operators that launch to queues 7, 20, 7, then a wait for the device; nothing else takes time."""
    events: list[Event] = []
    now, corr = 0, 0
    for i, times in enumerate(steps):
        begin = now
        free = {7: now, 20: now}
        for n, stream in enumerate((7, 20, 7)):
            corr += 1
            events.append(event("cpu_op", f"aten::{n}", (now, now + times[n]), HOST))
            now += times[n]
            events.append(launch(now - 3, corr, 3))
            start = max(now, free[stream])
            free[stream] = start + times[n + 3]
            events.append(kernel(f"k{n}", start, times[n + 3], corr, stream))
        corr += 1
        end = max(now, *free.values()) + 1  # a return of 1
        events.append(event("cuda_runtime", "cudaDeviceSynchronize", (now, end), HOST, correlation=corr))
        events.append(mark(i, begin, end))
        now = end
    return events
