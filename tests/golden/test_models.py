"""The resource models of the golden cases: launch queue, contention, links, and the two bounds."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepcrit.graph.assemble import Edges, Nodes, assemble
from stepcrit.graph.busy import Busy, busy_lanes
from stepcrit.graph.engines import order, queued, replayed
from stepcrit.graph.fluid import rivals, simulate
from stepcrit.graph.schedule import Lags, lags, observe
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.graph.transfer import Fit, after, fit
from stepcrit.graph.wiring import without_queue_order
from stepcrit.model.arrays import Int64Array
from stepcrit.model.graph import EdgeKind, Evidence, Graph, NodeKind
from stepcrit.session import Options, Trace
from tests.builders import event, trace

CASES = {
    case["id"]: case
    for case in json.loads((Path(__file__).parent / "models.json").read_text(encoding="utf-8"))
}
HOST = (1, 1)
Spans = list[list[int]]


def launched(run: dict[str, Any]) -> StepGraph:
    """A run of C01 as a trace in µs: five launch calls in a row, five kernels in one queue."""
    chrome = [event("cpu_op", "op", (0, run["host_free"]), HOST)]
    for i, (call, kernel) in enumerate(zip(run["launch"], run["kernel"], strict=True), 1):
        chrome.append(event("cuda_runtime", "cudaLaunchKernel", tuple(call), HOST, correlation=i))
        chrome.append(event("kernel", "k", tuple(kernel), (0, 7), correlation=i, stream=7))
    return Trace(trace(chrome), Options()).view()


def outcome(view: StepGraph, depth: int, kernels: Fraction) -> tuple[list[int], list[int]]:
    """When each launch returns and when each kernel ends, in µs, with kernels scaled."""
    graph = view.built.graph
    device = graph.kind >= NodeKind.KERNEL
    dur = np.array([int(d * (kernels if on else 1)) for d, on in zip(graph.dur_ns, device, strict=True)])
    finish = queued(view, depth)(dur, view.delays("join")) // 1000
    # Every call of this program is a node of its own: it launches at its end.
    return sorted(finish[~device].tolist()), sorted(finish[device].tolist())


def ends(spans: Spans) -> list[int]:
    return [end for _, end in spans]


@pytest.mark.parametrize(
    ("recorded", "depth", "kernels", "expected"),
    [
        ("expect_unbounded", 2, Fraction(1), "expect"),
        ("expect_unbounded", 2, Fraction(1, 2), "expect_kernels_half"),
        ("expect_unbounded", 5, Fraction(1), "expect_unbounded"),
        ("expect", 2, Fraction(1), "expect"),
        ("expect", 2, Fraction(1, 2), "expect_kernels_half"),  # what a call waited is no work of the host
    ],
)
def test_launches_return_when_the_queue_has_room(
    recorded: str, depth: int, kernels: Fraction, expected: str
) -> None:
    """C01, from a record without the limit and from one with it."""
    case = CASES["C01"]
    returns, finishes = outcome(launched(case[recorded]), depth, kernels)
    assert returns == ends(case[expected]["launch"])
    assert finishes == ends(case[expected]["kernel"])
    assert (returns[-1], finishes[-1]) == (case[expected]["host_free"], case[expected]["finish"])


SCALE = 1000


def two_at_once() -> tuple[Graph, Lags]:
    """C02: communication [0, 6] and compute [0, 11], in thousands of ns."""
    nodes = Nodes(
        np.array([0, 1], np.int32),
        np.zeros(2, np.int64),
        np.array([6, 11], np.int64) * SCALE,
        np.array([NodeKind.COLLECTIVE, NodeKind.KERNEL], np.int8),
        np.arange(2),
        np.zeros(2, np.int32),
    )
    none = np.empty(0, np.int64)
    graph, _ = assemble(
        nodes, Edges(none, none, none.astype(np.int8), none.astype(np.int8)), t0_ns=0, notes={}
    )
    return graph, lags(graph, observe(graph), "join")


@pytest.mark.parametrize(
    ("comm", "key"),
    [(Fraction(1), "observed"), (Fraction(0), "comm_removed"), (Fraction(1, 2), "comm_halved"), (Fraction(2), "comm_doubled")],
)  # fmt: skip
def test_compute_has_its_work_to_do_however_long_communication_takes(comm: Fraction, key: str) -> None:
    expect = CASES["C02"]["expect"]
    graph, delays = two_at_once()
    on_comm = graph.kind == NodeKind.COLLECTIVE
    who = rivals(graph, np.zeros(2, np.int64), on_comm, ~on_comm, Fraction(6, 5))
    assert sum(who.work) == expect["work"] * SCALE * 6  # six ticks a nanosecond at full speed
    dur = np.array([int(d * comm) if c else d for d, c in zip(graph.dur_ns, on_comm, strict=True)], np.int64)
    finish = simulate(graph, dur, delays, who)
    assert int(finish[~on_comm][0]) == expect[key] * SCALE


@pytest.mark.parametrize(("faster", "key"), [(1, "now"), (2, "x2"), (4, "x4"), (10**9, "inf")])
def test_bandwidth_shortens_a_transfer_beyond_its_start_up_only(faster: int, key: str) -> None:
    expect = CASES["C03"]["expect"]
    wanted = int(expect[key] * 1000)
    assert after(50_000, Fraction(10_000), Fraction(faster)) == (wanted, wanted)


def test_unknown_start_up_gives_the_range_from_all_to_nothing() -> None:
    low, high = CASES["C03"]["expect"]["alpha_unknown_x2_range"]
    assert after(50_000, None, Fraction(2)) == (low * 1000, high * 1000)


def test_start_up_and_time_per_byte_are_fitted_to_sizes() -> None:
    expect = CASES["C04"]["expect"]
    found = fit([(mb * 10**6, us * 1000) for mb, us in ((1, 30), (2, 40), (4, 60))])
    assert isinstance(found, Fit)
    assert found.alpha_ns == expect["alpha_us"] * 1000
    assert found.ns_per_byte * 10**6 == expect["us_per_MB"] * 1000
    assert 1 / found.ns_per_byte == expect["algbw_GBps"]
    assert (found.size_count, found.explained_share, found.clamped) == (3, 1.0, False)


def one_queue() -> tuple[Graph, list[str]]:
    """C07 as given, in its own units; lanes are numbered as in the list."""
    given = CASES["C07"]["given"]
    names, rows = list(given["nodes"]), list(given["nodes"].values())
    lanes = sorted({lane for *_, lane in rows})
    kinds = {"launch": EdgeKind.LAUNCH, "stream": EdgeKind.STREAM, "sync": EdgeKind.SYNC}
    nodes = Nodes(
        np.array([lanes.index(lane) for *_, lane in rows], np.int32),
        np.array([start for start, *_ in rows], np.int64),
        np.array([dur for _, dur, _ in rows], np.int64),
        np.zeros(len(rows), np.int8),
        np.arange(len(rows)),
        np.zeros(len(rows), np.int32),
    )
    edges = Edges(
        np.array([names.index(u) for u, *_ in given["edges"]]),
        np.array([names.index(v) for _, v, _ in given["edges"]]),
        np.array([kinds[kind] for *_, kind in given["edges"]], np.int8),
        np.full(len(given["edges"]), Evidence.ORDER, np.int8),
    )
    graph, _ = assemble(nodes, edges, t0_ns=0, notes={})
    return graph, lanes


def test_queue_order_both_at_once_and_busy_time_give_the_three_hand_worked_lengths() -> None:
    expect = CASES["C07"]["expect"]
    graph, lanes = one_queue()
    delays = lags(graph, observe(graph), "join")
    everything = np.ones(len(graph), np.bool_)
    ends_in_order: Int64Array = order(graph)(graph.dur_ns, delays)
    ends_at_once = replayed(without_queue_order(graph, everything, 0))(graph.dur_ns, delays)
    assert int(ends_in_order.max()) == expect["stream_order"]
    assert int(ends_at_once.max()) == expect["no_stream_order"]
    busy = busy_lanes(graph, graph.dur_ns, everything)
    assert {lanes[one.lane]: one.busy_ns for one in busy} == expect["busy_bound"]
    assert busy[0] == Busy(lanes.index("gpu:7"), expect["lane_busy_bound"])
