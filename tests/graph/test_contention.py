"""The slowdown beside communication: what is compared, and when there is too little to compare."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from stepcrit.errors import UnusableInputError, UsageError
from stepcrit.graph.contention import compare, measure
from stepcrit.graph.engines import contended, engine_of
from stepcrit.graph.models import parse_model
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.model.graph import NodeKind
from stepcrit.session import Options, Trace
from tests.builders import event, trace

HOST = (1, 1)
Run = tuple[str, str, int, int]
"""Operator, kernel, µs, of these µs beside communication (from its start)."""


def view_of(runs: list[Run], **meta: Any) -> StepGraph:
    """Kernels in one queue, far apart, each with its own stretch of communication in another."""
    chrome: list[dict[str, Any]] = []
    for i, (op, kernel, us, beside) in enumerate(runs):
        at = 100 * i
        chrome += [
            event("cpu_op", op, (at, at + 2), HOST),
            event("cuda_runtime", "cudaLaunchKernel", (at, at + 1), HOST, correlation=2 * i + 1),
            event("kernel", kernel, (at + 10, at + 10 + us), (0, 7), correlation=2 * i + 1, stream=7),
        ]
        if beside:
            chrome += [
                event("cuda_runtime", "cudaLaunchKernel", (at + 3, at + 4), HOST, correlation=2 * i + 2),
                event(
                    "kernel", "ncclDevKernel_AllReduce", (at + 5, at + 10 + beside), (0, 20),
                    correlation=2 * i + 2, stream=20,
                ),
            ]  # fmt: skip
    return Trace(trace(chrome, **meta), Options()).view()


def test_slowdown_is_the_median_ratio_of_the_same_kernel_under_the_same_operator() -> None:
    """Ten of 24 against 20 alone; under another operator the kernel takes 50 whatever runs beside it."""
    one = [("a", "k", 20, 0)] * 10 + [("a", "k", 24, 24)] * 10
    other = [("b", "k", 50, 0)] * 6 + [("b", "k", 50, 50)] * 6
    found = measure(view_of(one + other))
    assert found.slowdown == Fraction(6, 5)
    assert (found.beside_count, found.alone_count) == (16, 16)
    assert found.quartiles == (1.0, 1.2)


@pytest.mark.parametrize(
    ("beside", "counted"),
    [(18, (10, 10)), (17, (0, 0)), (2, (0, 0)), (1, (0, 0))],
)
def test_activity_counts_as_beside_from_nine_tenths_on(beside: int, counted: tuple[int, int]) -> None:
    """Of 20: 18 are nine tenths; 17 and 2 are neither; 1 is alone, and then nothing is beside."""
    found = measure(view_of([("a", "k", 20, 0)] * 10 + [("a", "k", 20, beside)] * 10))
    assert (found.beside_count, found.alone_count) == counted


@pytest.mark.parametrize(("us", "counted"), [(10, 10), (9, 0)])
def test_clock_of_whole_microseconds_has_no_ratio_of_short_kernels(us: int, counted: int) -> None:
    runs = [("a", "k", us, 0)] * 10 + [("a", "k", us, us)] * 10
    assert measure(view_of(runs, resolution_ns=1000)).beside_count == counted
    assert measure(view_of(runs)).beside_count == 10


def test_kernels_seen_one_way_only_are_not_compared() -> None:
    found = measure(view_of([("a", "alone", 20, 0)] * 12 + [("a", "beside", 40, 40)] * 12))
    assert found.slowdown is None
    assert "0 ran beside communication and 0 alone" in found.why_not


@pytest.mark.parametrize(("alone", "beside"), [(9, 10), (10, 9)])
def test_fewer_than_ten_of_either_are_not_enough(alone: int, beside: int) -> None:
    few = compare([([10] * alone, [12] * beside)])
    assert few.slowdown is None
    assert f"{beside} ran beside communication and {alone} alone" in few.why_not
    assert compare([([10] * 10, [12] * 10)]).slowdown == Fraction(6, 5)


def test_faster_beside_communication_is_no_slowdown_and_the_measure_is_kept() -> None:
    found = compare([([10] * 10, [8] * 10)])
    assert (found.slowdown, found.measured) == (Fraction(1), 0.8)


def test_unmeasurable_slowdown_is_refused_with_the_numbers() -> None:
    view = view_of([("a", "k", 20, 0)] * 10 + [("a", "k", 24, 24)] * 3)
    with pytest.raises(UnusableInputError, match="3 ran beside communication and 10 alone"):
        engine_of(view, [parse_model("contend")])


@pytest.mark.parametrize(
    "words", [("queue:2", "queue:3"), ("free", "queue:2"), ("contend:2", "free"), ("contend:2", "contend")]
)
def test_models_that_do_not_go_together_are_refused(words: tuple[str, ...]) -> None:
    view = view_of([("a", "k", 20, 5)])
    with pytest.raises(UsageError):
        engine_of(view, [parse_model(word) for word in words])


def test_speed_up_is_no_slowdown() -> None:
    with pytest.raises(UsageError, match="speed-up"):
        contended(view_of([("a", "k", 20, 5)]), Fraction(1, 2))


def test_devices_do_not_slow_each_other() -> None:
    chrome = [
        event("cpu_op", "op", (0, 4), HOST),
        event("cuda_runtime", "cudaLaunchKernel", (0, 1), HOST, correlation=1),
        event("cuda_runtime", "cudaLaunchKernel", (2, 3), HOST, correlation=2),
        event("kernel", "ncclDevKernel_AllReduce", (5, 25), (0, 20), correlation=1, stream=20),
        event("kernel", "k", (5, 25), (1, 7), correlation=2, stream=7),
    ]
    view = Trace(trace(chrome), Options()).view()
    graph, delays = view.built.graph, view.delays("join")
    dur = graph.dur_ns.copy()
    dur[graph.row == view.trace.events.name.tolist().index(view.trace.events.names.index("k"))] *= 2
    assert int(contended(view, Fraction(3))(dur, delays).max()) == 45_000


def test_activity_that_took_no_time_gets_its_new_time_at_full_speed() -> None:
    """A kernel of 0 set to 10, with communication beside its first 6: 4 alone, and 6 + 1 for 6/1.2 of work."""
    chrome = [
        event("cpu_op", "op", (0, 4), HOST),
        event("cuda_runtime", "cudaLaunchKernel", (0, 1), HOST, correlation=1),
        event("cuda_runtime", "cudaLaunchKernel", (1, 2), HOST, correlation=2),
        event("kernel", "ncclDevKernel_AllReduce", (4, 10), (0, 20), correlation=1, stream=20),
        event("kernel", "k", (4, 4), (0, 7), correlation=2, stream=7),
    ]
    view = Trace(trace(chrome), Options()).view()
    graph, delays = view.built.graph, view.delays("join")
    node = view.trace.events.name.tolist().index(view.trace.events.names.index("k"))
    dur = np.where((graph.row == node) & (graph.kind == NodeKind.KERNEL), 10_000, graph.dur_ns)
    assert int(contended(view, Fraction(6, 5))(dur, delays).max()) == 4_000 + 11_000
