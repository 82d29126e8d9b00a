"""Replayed savings against changes that the simulator really made, and against a schedule worked by hand."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import pytest

from stepcrit.graph.parts import keep_tails
from stepcrit.graph.replay import Ends, Saving, never_less, replayer
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.graph.threads import shares
from stepcrit.model.arrays import BoolArray, Int64Array
from stepcrit.model.events import EventKind
from stepcrit.model.graph import NodeKind
from stepcrit.model.steps import Boundary
from stepcrit.session import Options, StepOptions, Trace, load
from tests.builders import event, trace

FIXTURES = Path(__file__).parents[2] / "fixtures" / "simulated"
TOLERANCE = 0.01  # of the period

# Files whose changes one rank's trace can know: no peer, no loader and no small queue decides there.
KNOWABLE = (
    "device_bound", "host_bound", "two_streams", "two_streams_sync_records", "grad_accumulation", "graph_step",
    "full_queue_1023", "ddp_tail.rank1",
)  # fmt: skip


def truth_of(name: str) -> dict[str, Any]:
    return dict(json.loads((FIXTURES / f"{name}.truth.json").read_text(encoding="utf-8")))


def changes(kinds: tuple[str, ...]) -> list[Any]:
    """Every change of the knowable files whose durations are named by a kernel, a call or an operator."""
    return [
        pytest.param(name, i, id=f"{name}: {one['change']['what']} {one['change']['name'][:30]}")
        for name in KNOWABLE
        for i, one in enumerate(truth_of(name)["changes"])
        if one["change"]["what"] in kinds
    ]


def part_of(view: StepGraph, what: str, name: str) -> Int64Array:
    """The durations that a change shortens, by node, over the whole capture."""
    events, graph = view.trace.events, view.built.graph
    named: BoolArray = np.array([one == name for one in events.names], np.bool_)[events.name]
    if what in ("kernel", "transfer"):
        device = (graph.kind >= NodeKind.KERNEL) & named[np.maximum(graph.row, 0)]
        return np.where(device, graph.dur_ns, 0)
    runtime = events.kind == EventKind.RUNTIME
    own = named & (runtime if what == "launch" else events.kind == EventKind.CPU_OP)
    if what == "host":  # the operator and the calls directly in it
        own = own | (runtime & (view.links.parent >= 0) & own[np.maximum(view.links.parent, 0)])
    share = shares(view.links.pieces, view.built.threads)
    mine = (share.owner >= 0) & own[np.maximum(share.owner, 0)]
    part = np.zeros(len(graph), np.int64)
    np.add.at(part, view.built.number[share.node[mine]], share.length_ns[mine])
    return part


def scaled(view: StepGraph, part_ns: Int64Array, numerator: int, denominator: int) -> Int64Array:
    """Durations with `numerator/denominator` of `part_ns` taken off each node (rounded down)."""
    graph = view.built.graph
    shorter: Int64Array = graph.dur_ns - part_ns * numerator // denominator
    return keep_tails(graph, np.maximum(shorter, 0))


@pytest.mark.parametrize(("name", "index"), changes(("kernel", "transfer", "launch", "host")))
def test_predicted_interval_holds_what_the_change_really_saved(name: str, index: int) -> None:
    made = load(FIXTURES / f"{name}.json.gz")
    truth = truth_of(name)
    key = "update_period_ns" if made.steps.boundary == Boundary.UPDATE else "period_ns"
    used = [step.index - 1 for step in made.steps if step.used and step.opens_at_boundary]
    one = truth["changes"][index]
    before, after = (mean(periods[i] for i in used) for periods in (truth[key], one[key]))
    view = made.view()
    part = part_of(view, one["change"]["what"], one["change"]["name"])
    assert part.any()
    saving = replayer(view).saving(scaled(view, part, round(100 - 100 * one["change"]["factor"]), 100))
    slop = TOLERANCE * before
    assert saving.low_ns - slop <= before - after <= saving.high_ns + slop


def test_there_are_enough_real_changes_to_compare_with() -> None:
    assert len(changes(("kernel", "transfer", "launch", "host"))) >= 20


# --- by hand -----------------------------------------------------------------------------------


def diamond() -> StepGraph:
    """Two queues of which the longer one decides; one window of 25."""
    # host  |op  la 2..4   lb 6..8   30|
    # s7        [a 5.............25]
    # s20                 [b 9....20]
    chrome = [
        event("cpu_op", "op", (0, 30), (1, 1)),
        event("cuda_runtime", "la", (2, 4), (1, 1), correlation=1),
        event("cuda_runtime", "lb", (6, 8), (1, 1), correlation=2),
        event("kernel", "a", (5, 25), (0, 7), correlation=1, stream=7),
        event("kernel", "b", (9, 20), (0, 20), correlation=2, stream=20),
    ]
    return Trace(trace(chrome), Options()).view()


@pytest.mark.parametrize(
    ("name", "kept", "saved"),
    [
        ("a", 75, 5), ("a", 50, 5), ("a", 0, 5),  # b takes over when a is 5 shorter
        ("a", 90, 2), ("b", 0, 0), ("a", 100, 0),
    ],
)  # fmt: skip
def test_saving_saturates_where_the_other_queue_takes_over(name: str, kept: int, saved: int) -> None:
    view = diamond()
    found = replayer(view).saving(scaled(view, part_of(view, "kernel", name), 100 - kept, 100))
    assert found == Saving(saved * 1000, saved * 1000)


def test_both_queues_together_save_more_than_one_of_them() -> None:
    view = diamond()
    both = part_of(view, "kernel", "a") + part_of(view, "kernel", "b")
    assert replayer(view).saving(scaled(view, both, 1, 1)) == Saving(
        16_000, 16_000
    )  # b's launch at 8 and its gap


def test_shortening_is_rounded_down_and_never_below_nothing() -> None:
    view = diamond()
    part = np.full(len(view.built.graph), 3, np.int64)
    assert (view.built.graph.dur_ns - scaled(view, part, 1, 2)).max() == 1
    assert scaled(view, part * 10**6, 1, 1).min() == 0


def test_interval_is_ordered_whatever_the_policies_say() -> None:
    assert (
        (Saving(5, 9).low_ns, Saving(5, 9).high_ns) == (Saving(9, 5).low_ns, Saving(9, 5).high_ns) == (5, 9)
    )


@pytest.mark.parametrize("name", ["device_bound", "host_bound", "two_streams", "item_sync", "pdl_overlap"])
def test_no_change_saves_nothing(name: str) -> None:
    view = load(FIXTURES / f"{name}.json.gz", Options(StepOptions(Boundary.DEVICE))).view()
    for step in (None, view.steps.all[0].label, view.steps.all[2].label):
        one = (
            load(FIXTURES / f"{name}.json.gz", Options(StepOptions(Boundary.DEVICE))).view(step)
            if step
            else view
        )
        assert replayer(one).saving(one.built.graph.dur_ns) == Saving(0, 0)


def test_halved_program_takes_half_the_time_without_gaps() -> None:
    """Every duration halved: what is left over is what the gaps kept."""
    view = diamond()
    found = replayer(view).saving(scaled(view, view.built.graph.dur_ns, 1, 2))
    assert found.low_ns == 12_000  # the path is 24 of work and a gap of 1


HOST = (1, 1)


def test_work_that_the_opening_of_the_step_cuts_changes_by_its_part_inside() -> None:
    """One step alone, [10, 60]: of an operator [0, 40] the 30 inside can go, of a kernel the 38 after its wait began."""
    # host  [op        40][wait for k 50]   mark 10..60
    # s7       [k 5        45]
    host = [
        event("user_annotation", "ProfilerStep#1", (10, 60), HOST),
        event("cpu_op", "op", (0, 40), HOST),
    ]
    view = Trace(trace(host), Options()).view()
    assert view.step.elapsed_ns == 50_000
    one = replayer(view)
    assert one.saving(scaled(view, part_of(view, "host", "op"), 1, 2)) == Saving(15_000, 15_000)
    assert one.saving(scaled(view, part_of(view, "host", "op"), 1, 1)) == Saving(30_000, 30_000)
    device = [
        event("user_annotation", "ProfilerStep#1", (10, 60), HOST),
        event("cuda_runtime", "cudaLaunchKernel", (0, 4), HOST, correlation=1),
        event("kernel", "k", (5, 50), (0, 7), correlation=1, stream=7),
        event("cuda_runtime", "cudaDeviceSynchronize", (12, 50), HOST),
    ]
    view = Trace(trace(device), Options(StepOptions(boundary=Boundary.HOST))).view()
    one = replayer(view)
    assert (view.step.start_ns, view.step.end_ns) == (10_000, 60_000)
    assert one.saving(scaled(view, part_of(view, "kernel", "k"), 1, 2)) == Saving(20_000, 20_000)
    assert one.saving(scaled(view, part_of(view, "kernel", "k"), 1, 1)) == Saving(38_000, 38_000)


def test_run_that_does_not_settle_is_read_off_its_last_boundary_over_all_steps() -> None:
    one = replayer(load(FIXTURES / "device_bound.json.gz").view())
    assert (one.period_count, one.closing_index) == (3, 4)
    ends = Ends((50, 10), (500, 1000))
    assert one.read(ends, settled=False) == Saving(100, 200)
    assert one.read(ends, settled=True) == Saving(150, 330)
    alone = replayer(load(FIXTURES / "device_bound.json.gz").view(-1))
    assert alone.read(ends, settled=False) == alone.read(ends, settled=True) == Saving(500, 1000)


def test_savings_of_ever_larger_shortenings_are_cut_to_later_ones_and_to_nothing() -> None:
    some = [Saving(-3, 5), Saving(40, 7), Saving(30, 6)]
    assert never_less(some) == [Saving(0, 5), Saving(30, 6), Saving(30, 6)]
    assert never_less(some, Saving(-10, -10)) == [Saving(-3, 5), Saving(30, 6), Saving(30, 6)]
