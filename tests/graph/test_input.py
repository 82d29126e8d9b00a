"""Waits for data after a change of the loader's pace, against hand-worked loops and against the simulator.

The simulator runs workers, prefetching and jitter with the change really made; it shares no code with this.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest

from scripts.simulator import kineto, truth
from scripts.simulator.change import Change
from scripts.simulator.engine import simulate
from scripts.simulator.scenarios import SCENARIOS
from stepcrit.graph.input import READY_NS as READY_RECORDED_NS
from stepcrit.graph.input import Loop, loop_of
from stepcrit.graph.schedule import GapPolicy, forward
from stepcrit.graph.stepgraph import StepGraph, sinks_of
from stepcrit.model.arrays import Int64Array
from stepcrit.session import Options, Trace, load
from tests.builders import Event, event, trace

FETCH = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
MAIN = (1, 1)


def loop(*spans: tuple[int, int], work: int = 3, name: str = FETCH) -> StepGraph:
    """A loop that fetches over each span, in µs, and then works `work` µs in one operator."""
    events: list[Event] = []
    for i, (asked, got) in enumerate(spans):
        events += [
            event("user_annotation", f"ProfilerStep#{i}", (asked, got + work), MAIN),
            event("user_annotation", name, (asked, got), MAIN),
            event("cpu_op", "aten::mm", (got, got + work), MAIN),
        ]
    return Trace(trace(events), Options()).view()


def bound(count: int = 5) -> StepGraph:
    """Every 10 µs a batch comes; the loop waits 7 for it and works 3."""
    return loop(*((10 * i, 10 * i + 7) for i in range(count)))


@dataclass(frozen=True)
class Waits:
    """What each fetch takes after a change, from optimistic to conservative, in ns."""

    observed_ns: Int64Array
    least_ns: Int64Array
    most_ns: Int64Array
    production_seen: bool


def waits_after(view: StepGraph, factor: Fraction, ready_ns: int = READY_RECORDED_NS) -> Waits:
    """The waits if producing a batch took `factor` times as long and nothing else changed."""
    found = loop_of(view)
    assert found is not None
    loop, dur = Loop(view, found.rows, ready_ns), view.built.graph.dur_ns
    ends: tuple[GapPolicy, GapPolicy] = ("edge", "join")
    least, most = (loop.waits(factor, policy, dur, view.delays(policy)) for policy in ends)
    return Waits(loop.took_ns, least, np.maximum(most, least), loop.production_seen)


def durations(view: StepGraph, wait_ns: Int64Array) -> Int64Array:
    found = loop_of(view)
    assert found is not None
    return found.durations(wait_ns, view.built.graph.dur_ns)


# --- by hand -----------------------------------------------------------------------------------


def test_in_a_loop_that_always_waits_batches_come_at_the_factor_times_their_distance() -> None:
    # Batches come at 7, 12, 17, …: the loop asks 3 after each, and waits 2.
    waits = waits_after(bound(), Fraction(1, 2), ready_ns=0)
    assert waits.production_seen
    assert waits.observed_ns.tolist() == [7_000] * 5
    assert waits.least_ns.tolist() == waits.most_ns.tolist() == [7_000, 2_000, 2_000, 2_000, 2_000]


def test_waits_end_where_the_loader_is_faster_than_the_loop() -> None:
    # At a tenth they would come every 1: each is ready when the loop asks, 3 after the one before.
    waits = waits_after(bound(), Fraction(1, 10), ready_ns=0)
    assert waits.least_ns.tolist() == waits.most_ns.tolist() == [7_000, 0, 0, 0, 0]


def test_a_ready_batch_costs_between_nothing_and_what_a_fetch_may_take_when_ready() -> None:
    waits = waits_after(bound(), Fraction(1, 10), ready_ns=2_000)
    assert waits.least_ns.tolist() == [7_000, 0, 0, 0, 0]
    assert waits.most_ns.tolist() == [7_000, 2_000, 2_000, 2_000, 2_000]


def test_a_slower_loader_adds_its_whole_production_to_a_loop_that_always_waits() -> None:
    # Every 20 instead of every 10, of which the loop still works 3.
    waits = waits_after(bound(), Fraction(2), ready_ns=0)
    assert waits.least_ns.tolist() == waits.most_ns.tolist() == [7_000, 17_000, 17_000, 17_000, 17_000]


def test_after_a_late_batch_the_worker_is_ahead_only_by_what_it_saved() -> None:
    # Batches 10, 10, 30, 10 apart become 5, 5, 15, 5: they come at 7, 12, 17, 32, 37, and are asked for 3 later.
    view = loop((0, 7), (10, 17), (20, 27), (30, 57), (60, 67))
    assert waits_after(view, Fraction(1, 2), ready_ns=0).least_ns.tolist() == [
        7_000,
        2_000,
        2_000,
        12_000,
        2_000,
    ]


def test_a_fetch_that_did_not_wait_leaves_production_unknown_and_an_interval() -> None:
    # Two batches arrive together every 20: one fetch waits 14, the next finds its batch there.
    view = loop((0, 14), (17, 17), (20, 34), (37, 37), (40, 54), (57, 57))
    waits = waits_after(view, Fraction(1, 2), ready_ns=0)
    assert not waits.production_seen
    assert waits.most_ns.tolist() == [14_000, 0, 7_000, 0, 7_000, 0]
    assert (waits.least_ns <= waits.most_ns).all()
    assert waits.least_ns[1:].sum() < waits.most_ns[1:].sum()


def test_where_production_is_unknown_only_what_was_waiting_for_sure_scales_and_the_first_fetch_stays() -> (
    None
):
    # A fetch of a ready batch takes 1 here: of the others that is no waiting.
    view = loop((0, 14), (17, 18), (20, 34), (37, 38), (40, 54), (57, 58))
    shorter, longer = (waits_after(view, factor, ready_ns=1_000) for factor in (Fraction(1, 2), Fraction(2)))
    assert shorter.most_ns.tolist() == [14_000, 1_000, 7_500, 1_000, 7_500, 1_000]
    assert longer.least_ns.tolist() == [14_000, 1_000, 27_000, 1_000, 27_000, 1_000]


def test_two_fetches_in_one_step_wait_as_two_fetches_in_two_steps() -> None:
    """Microbatches."""
    asked = range(0, 60, 10)
    events = [event("user_annotation", FETCH, (at, at + 7), MAIN) for at in asked]
    events += [event("cpu_op", "aten::mm", (at + 7, at + 10), MAIN) for at in asked]
    steps = [event("user_annotation", f"ProfilerStep#{i}", (20 * i, 20 * i + 20), MAIN) for i in range(3)]
    view = Trace(trace([*steps, *events]), Options()).view()
    waits = waits_after(view, Fraction(1, 2), ready_ns=0)
    assert waits.least_ns.tolist() == waits.most_ns.tolist() == [7_000, *[2_000] * 5]


def test_where_the_device_holds_the_loop_up_instead_a_batch_is_ready_when_asked_for() -> None:
    """The loop waits for the kernel of the step before anyway: all that it waits less for data, it waits there."""
    # step i: fetch 0..70, wait 70..80 for the kernel before (ends at 75), launch 80..90, kernel 90..175
    events: list[Event] = []
    for i in range(5):
        at = 100 * i
        events += [
            event("user_annotation", f"ProfilerStep#{i}", (at, at + 100), MAIN),
            event("user_annotation", FETCH, (at, at + 70), MAIN),
            event("cuda_runtime", "cudaDeviceSynchronize", (at + 70, at + 80), MAIN, correlation=10 + i),
            event("cuda_runtime", "cudaLaunchKernel", (at + 80, at + 90), MAIN, correlation=i),
            event("kernel", "k", (at + 90, at + 175), (0, 7), correlation=i, stream=7),
        ]
    view = Trace(trace(events), Options()).view()
    # At half, batches come at 70, 120, 170, …; the loop asks at 100, and from then on every 100 as before.
    assert waits_after(view, Fraction(1, 2), ready_ns=0).least_ns.tolist() == [70_000, 20_000, 0, 0, 0]


def test_of_a_fetch_that_a_boundary_cuts_the_end_gives_way_first() -> None:
    # The kernel of each step ends 3 into the next fetch, and the step with it: the fetch is 3 and 4.
    events: list[Event] = []
    for i in range(5):
        at = 10 * i
        events += [
            event("user_annotation", f"ProfilerStep#{i}", (at, at + 10), MAIN),
            event("user_annotation", FETCH, (at, at + 7), MAIN),
            event("cuda_runtime", "cudaLaunchKernel", (at + 8, at + 9), MAIN, correlation=i),
            event("kernel", "k", (at + 9, at + 13), (0, 7), correlation=i, stream=7),
        ]
    view = Trace(trace(events), Options()).view()
    waits = waits_after(view, Fraction(1, 2), ready_ns=0)
    graph, dur = view.built.graph, durations(view, waits.least_ns)
    shorter = {
        (int(graph.start_ns[v]), int(graph.end_ns[v])): int(graph.dur_ns[v] - dur[v])
        for v in np.flatnonzero(dur != graph.dur_ns)
    }
    for at in range(10_000, 50_000, 10_000):
        inside = {span: ns for span, ns in shorter.items() if at - 1_000 <= span[0] < at + 7_000}
        assert max((start - at, ns) for (start, _), ns in inside.items()) == (3_000, 4_000)
        assert sum(inside.values()) == 5_000


@pytest.mark.parametrize("ready_ns", [0, 2_000, 9_000])
def test_nothing_changed_gives_back_the_observed_waits(ready_ns: int) -> None:
    view = loop((0, 7), (10, 17), (20, 21), (24, 50), (53, 60))
    waits = waits_after(view, Fraction(1), ready_ns)
    assert waits.least_ns.tolist() == waits.most_ns.tolist() == waits.observed_ns.tolist()


def test_durations_move_the_time_of_the_fetches_and_no_other() -> None:
    view = bound(3)
    dur = durations(view, np.array([7_000, 2_000, 0], np.int64))
    graph = view.built.graph
    assert int(graph.dur_ns.sum() - dur.sum()) == 5_000 + 7_000
    assert (dur >= 0).all()


@pytest.mark.parametrize(
    "view",
    [
        pytest.param(bound(1), id="one fetch"),
        pytest.param(
            loop((0, 7), (10, 17), name="enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"),
            id="no workers: the fetch is the loop's own work",
        ),
        pytest.param(loop((0, 7), (10, 17), name="aten::empty"), id="no loader"),
    ],
)
def test_where_no_production_can_be_told_there_is_no_loop_to_follow(view: StepGraph) -> None:
    assert loop_of(view) is None


def test_fetches_of_several_threads_are_not_followed() -> None:
    events = [event("user_annotation", FETCH, (10 * i, 10 * i + 7), (1, 1 + i % 2)) for i in range(4)]
    assert loop_of(Trace(trace(events), Options()).view()) is None


def test_a_fetch_written_twice_counts_once() -> None:
    events = [event("user_annotation", FETCH, (10 * i, 10 * i + 7), MAIN) for i in range(3)]
    events += [event("user_annotation", FETCH, (10 * i + 1, 10 * i + 6), MAIN) for i in range(3)]
    view = Trace(trace(events), Options()).view()
    assert waits_after(view, Fraction(1, 2), 0).observed_ns.tolist() == [7_000] * 3


# --- against the simulator ---------------------------------------------------------------------

SCENARIO = SCENARIOS["dataloader_bound"]
READY_NS = 40_000
"""The simulated fetch has up to two operators' worth of host work of its own, 15 µs each and jitter."""

STEPS = 13
"""Twelve periods are whole rounds of 1, 2, 3 or 4 workers."""

PERCENTS = (0, 25, 50, 75, 150, 200)


class Job:
    """A random loop on the simulator whose workers need `pace` times the loop's own time for a batch each."""

    def __init__(self, seed: int, pace: tuple[float, float], **overrides: int) -> None:
        rng = Random(seed)
        params = {**SCENARIO.draw(rng), "steps": STEPS, "produce_ns": 0, **overrides}
        own_ns = mean_period(truth.steps(simulate(SCENARIO.program(params, seed)), 0))
        params["produce_ns"] = int(own_ns * params["workers"] * rng.uniform(*pace))
        self.program = SCENARIO.program(params, seed)
        text = kineto.write(simulate(self.program), 0).text
        self.view = load(io.BytesIO(text.encode())).view()

    def really_ns(self, percent: int) -> float:
        """The mean period when production really takes that share of its time."""
        return mean_period(truth.outcome(self.program, Change("data", "", percent))[0])

    def predicted_ns(self, wait_ns: Int64Array, policy: GapPolicy) -> float:
        """The mean period of the same steps, replayed with these waits."""
        view, graph = self.view, self.view.built.graph
        dur = durations(view, wait_ns)
        finish = forward(graph, dur, view.delays(policy)) + dur
        sinks = (
            sinks_of(view.trace, view.links, view.steps, view.steps[i], view.built) for i in (0, STEPS - 1)
        )
        first, last = (int(finish[nodes].max()) for nodes in sinks)
        return (last - first) / (STEPS - 1)


def mean_period(rows: list[dict[str, Any]]) -> float:
    return float(rows[-1]["device_end_ns"] - rows[0]["device_end_ns"]) / (len(rows) - 1)


@pytest.mark.parametrize("seed", range(6))
def test_where_the_loop_always_waits_the_period_is_the_one_that_really_comes(seed: int) -> None:
    job = Job(seed, (1.5, 4.0), workers=1)
    for percent in PERCENTS:
        waits = waits_after(job.view, Fraction(percent, 100), READY_NS)
        assert waits.production_seen
        really = job.really_ns(percent)
        assert job.predicted_ns(waits.least_ns, "edge") == pytest.approx(really, rel=0.01)
        assert job.predicted_ns(waits.most_ns, "join") == pytest.approx(really, rel=0.01)


@pytest.mark.parametrize("seed", range(14))
def test_whoever_is_slower_the_period_that_really_comes_is_in_the_interval(seed: int) -> None:
    job = Job(seed, (0.6, 2.5))
    for percent in PERCENTS:
        waits = waits_after(job.view, Fraction(percent, 100), READY_NS)
        really = job.really_ns(percent)
        assert job.predicted_ns(waits.least_ns, "edge") <= 1.01 * really
        assert really <= 1.01 * job.predicted_ns(waits.most_ns, "join")


def test_halving_production_is_not_halving_the_waits() -> None:
    """Half of the step is left while the loader stays the slower one, not the loop's own time and half the waits."""
    job = Job(3, (3.0, 3.0), workers=1)
    before, really = mean_period(truth.steps(simulate(job.program), 0)), job.really_ns(50)
    waits = waits_after(job.view, Fraction(1, 2), READY_NS)
    assert really == pytest.approx(before / 2, rel=0.03)
    assert job.predicted_ns(waits.most_ns, "join") == pytest.approx(really, rel=0.01)
    assert job.predicted_ns(waits.observed_ns // 2, "join") > 1.05 * really
