"""Engines on whole traces: the record comes back, and the bounds of one step are its own."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepcrit.graph.busy import busy_in_step
from stepcrit.graph.engines import contended, engine_of, free, order, queued
from stepcrit.graph.fluid import rivals_of
from stepcrit.graph.models import parse_model
from stepcrit.graph.replay import POLICIES, Saving, replayer, step_alone
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.model.graph import NodeKind
from stepcrit.model.steps import Boundary
from stepcrit.session import Options, StepOptions, Trace, load
from tests.builders import event, trace

FIXTURES = Path(__file__).parents[2] / "fixtures" / "simulated"
NAMES = sorted(path.name.removesuffix(".json.gz") for path in FIXTURES.glob("*.json.gz"))
HOST = (1, 1)
Event = dict[str, Any]


@pytest.mark.parametrize("name", NAMES)
def test_every_engine_that_claims_to_gives_back_the_record(name: str) -> None:
    view = load(FIXTURES / f"{name}.json.gz").view()
    graph = view.built.graph
    for policy in POLICIES:
        delays = view.delays(policy)
        for slowdown in (Fraction(1), Fraction(6, 5), Fraction(31, 7)):
            assert (contended(view, slowdown)(graph.dur_ns, delays) == graph.end_ns).all()
            both = contended(view, slowdown, depth=1023)
            assert (both(graph.dur_ns, delays) == graph.end_ns).all()
        assert (order(graph)(graph.dur_ns, delays) == graph.end_ns).all()
        assert (queued(view, 1023)(graph.dur_ns, delays) == graph.end_ns).all()
        assert (free(view)(graph.dur_ns, delays) <= graph.end_ns).all()


@pytest.mark.parametrize("name", NAMES)
def test_bounds_of_a_step_stay_below_what_was_recorded_and_below_any_change(name: str) -> None:
    trace_ = load(FIXTURES / f"{name}.json.gz")
    view = trace_.view()
    device = view.built.graph.kind >= NodeKind.KERNEL
    for factor in (1, 0.5, 2):
        dur = np.where(device, view.built.graph.dur_ns * factor, view.built.graph.dur_ns).astype(np.int64)
        alone = step_alone(view)
        in_order = view.step.elapsed_ns - alone.saving(dur).high_ns
        at_once = view.step.elapsed_ns - step_alone(view, free(view)).saving(dur).high_ns
        busiest = busy_in_step(alone, dur)[0].busy_ns
        assert max(at_once, busiest) <= in_order


def test_contention_slows_what_the_simulator_overlaps() -> None:
    """The fixture has compute beside all-reduces: taken away, compute gains more than without contention."""
    view = load(FIXTURES / "ddp_tail.rank0.json.gz").view()
    graph = view.built.graph
    who = rivals_of(view, Fraction(6, 5))
    assert (who.compute >= 0).sum() > 10
    assert (who.comm >= 0).sum() > 10
    none = np.where(graph.kind == NodeKind.COLLECTIVE, 0, graph.dur_ns)
    slowed, plain = (
        replayer(view, engine).saving(none) for engine in (contended(view, Fraction(6, 5)), order(graph))
    )
    assert slowed.low_ns > plain.low_ns > 0


def call(span: tuple[int, int], number: int) -> Event:
    return event("cuda_runtime", "cudaLaunchKernel", span, HOST, correlation=number)


def kernel(name: str, span: tuple[int, int], number: int, stream: int = 7) -> Event:
    return event("kernel", name, span, (0, stream), correlation=number, stream=stream)


def two_in_a_queue() -> StepGraph:
    """C07's shape as a trace: k1 of 20 and k2 of 30 in one queue, then a synchronize and 5 of host."""
    chrome = [
        event("cpu_op", "op", (0, 60), HOST),
        call((0, 4), 1),
        call((4, 5), 2),
        kernel("k1", (5, 25), 1),
        kernel("k2", (25, 55), 2),
        event("cuda_runtime", "cudaDeviceSynchronize", (5, 55), HOST),
    ]
    return Trace(trace(chrome), Options(StepOptions(Boundary.HOST))).view()


def length_us(view: StepGraph, saving: Saving) -> float:
    return (view.step.elapsed_ns - saving.high_ns) / 1000


def test_step_alone_is_bounded_by_its_queue_and_by_what_could_run_at_once() -> None:
    view = two_in_a_queue()
    assert view.step.elapsed_ns == 60_000
    assert length_us(view, step_alone(view, free(view)).baseline()) == 40
    busy = busy_in_step(step_alone(view), view.built.graph.dur_ns)
    lanes = view.trace.events.lanes
    assert [(lanes[one.lane].words, one.busy_ns) for one in busy] == [
        ("device 0 stream 7", 50_000),
        ("thread 1", 10_000),
    ]


def test_step_waits_for_all_its_boundary_needed_even_where_the_sink_would_end_sooner() -> None:
    """The host waits for k2 alone. Freed, that ends at 7; but the step is over when k1 has ended too."""
    chrome = [
        event("cpu_op", "op", (0, 48), HOST),
        call((0, 1), 1),
        call((1, 2), 2),
        kernel("k1", (2, 42), 1),
        kernel("k2", (42, 47), 2),
        event("cuda_runtime", "cudaStreamSynchronize", (2, 47), HOST),
    ]
    view = Trace(trace(chrome), Options(StepOptions(Boundary.HOST))).view()
    saving = step_alone(view, free(view), required=view.required).baseline()
    # launched at 1, with the gap of 1 behind its launch
    assert (view.step.elapsed_ns, length_us(view, saving)) == (48_000, 42)


def test_model_longer_than_the_record_has_a_baseline_of_its_own() -> None:
    """Five kernels of 10 on launches of 1: with room for two, the operator behind them ends 26 later."""
    chrome = [event("cpu_op", "op", (0, 10), HOST)]
    for i in range(5):
        chrome += [call((i, i + 1), i + 1), kernel("k", (10 * i + 1, 10 * i + 11), i + 1)]
    view = Trace(trace(chrome), Options(StepOptions(Boundary.HOST))).view()
    one = replayer(view, queued(view, 2))
    assert one.baseline() == Saving(-26_000, -26_000)  # host free at 31 instead of 5
    assert replayer(view).baseline() == Saving(0, 0)
    halved = np.where(view.built.graph.kind >= NodeKind.KERNEL, 5_000, view.built.graph.dur_ns)
    # Only the first kernel starts within the step, which ends with its host: free at 6 + 2 kernels of 10.
    assert one.saving(halved) == Saving(-21_000, -21_000)


def test_work_across_the_opening_of_the_step_counts_with_its_part_inside() -> None:
    chrome = [
        event("user_annotation", "ProfilerStep#1", (10, 60), HOST),
        call((0, 4), 1),
        kernel("k", (5, 50), 1),
        event("cuda_runtime", "cudaDeviceSynchronize", (12, 50), HOST),
    ]
    view = Trace(trace(chrome), Options(StepOptions(boundary=Boundary.HOST))).view()
    graph = view.built.graph
    assert (view.step.start_ns, view.step.end_ns) == (10_000, 60_000)
    busy = busy_in_step(step_alone(view), graph.dur_ns)
    assert [one.busy_ns for one in busy] == [40_000, 12_000]  # the queue from 10 to 50; the host 2 and 10
    device = graph.kind >= NodeKind.KERNEL
    halved = np.where(device, graph.dur_ns // 2, graph.dur_ns)
    begun = int(step_alone(view).inside(halved)[device].sum())
    assert busy_in_step(step_alone(view), halved)[0].busy_ns == begun - int(
        (10_000 - graph.start_ns[device]).max()
    )


def test_overlap_that_was_seen_in_a_queue_is_no_work_of_two_at_a_time() -> None:
    """k2 starts at 8 while k1 runs until 11: of k1 the 6 before count, so the queue is busy for 16, not 19."""
    chrome = [
        event("cpu_op", "op", (0, 3), HOST),
        call((0, 1), 1),
        call((1, 2), 2),
        kernel("k1", (2, 11), 1),
        kernel("k2", (8, 18), 2),
    ]
    view = Trace(trace(chrome), Options()).view()
    assert busy_in_step(step_alone(view), view.built.graph.dur_ns)[0].busy_ns == 16_000


def test_models_named_together_make_one_engine() -> None:
    view = two_in_a_queue()
    graph, delays = view.built.graph, view.delays("join")
    dur = np.where(graph.kind >= NodeKind.KERNEL, graph.dur_ns * 2, graph.dur_ns)
    words = {
        (): order(graph),
        ("order",): order(graph),
        ("comm:k=2", "lanes"): order(graph),
        ("queue:1",): queued(view, 1),
        ("free",): free(view),
        ("contend:2", "queue:1"): contended(view, Fraction(2), depth=1),
    }
    ends = {names: engine_of(view, [parse_model(n) for n in names])(dur, delays) for names in words}
    assert all((ends[names] == engine(dur, delays)).all() for names, engine in words.items())
    assert (ends["queue:1",] > ends["free",]).any()
