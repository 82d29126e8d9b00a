"""What-if as a whole: against changes that the simulator really made, and its promises on every fixture."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import pytest

from stepcrit.analyses import ranking
from stepcrit.analyses.whatif import WhatIf
from stepcrit.graph.change import Options, parse_change
from stepcrit.graph.replay import POLICIES, Saving, Variant, replayer
from stepcrit.graph.schedule import forward
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.model.classes import WorkClass
from stepcrit.model.steps import Boundary
from stepcrit.session import Options as SessionOptions
from stepcrit.session import Trace, load
from tests.asking import analyze, curve
from tests.builders import trace

FIXTURES = Path(__file__).parents[2] / "fixtures" / "simulated"
NAMES = sorted(path.name.removesuffix(".truth.json") for path in FIXTURES.glob("*.truth.json"))
TOLERANCE = 0.01  # of the period

# What the simulator changed -> how a user says that with the file's selector hint. The hint of an operator or
# a launch call names host time in the simulator; without --side it would mean the device work.
HOW = {
    "kernel": Options(),
    "launch": Options(side="host"),
    "host": Options(side="host"),
    "op": Options(side="both"),
    "remove_op": Options(side="both"),
}

# (file, change) that one rank's trace cannot know, and why.
EXCEPTIONS = {
    ("dataloader_bound", "host"): "the loader's workers decide; how far ahead they are is not in the trace",
    ("ddp_tail.rank0", "kernel"): "the slower rank's kernels change too, and this trace does not show them",
}


def truth_of(name: str) -> dict[str, Any]:
    return dict(json.loads((FIXTURES / f"{name}.truth.json").read_text(encoding="utf-8")))


@cache
def made(name: str) -> Trace:
    return load(FIXTURES / f"{name}.json.gz")


@cache
def view_of(name: str) -> StepGraph:
    return made(name).view()


def known() -> list[Any]:
    """Changes without a caveat, as (file, index)."""
    return [
        pytest.param(name, i, id=f"{name}: {one['change']['what']} {one['change']['name'][:30]}")
        for name in NAMES
        for i, one in enumerate(truth_of(name)["changes"])
        if not one["caveat"] and one["change"]["what"] in HOW
    ]


def whatif(view: StepGraph, *changes: str, **how: Any) -> WhatIf:
    """The answer to changes written as the user types them: "shrink k=0.5"."""
    return analyze(view, [parse_change(*words.split(" ", 1)) for words in changes], Options(**how))


def compared(name: str, index: int) -> tuple[float, float, WhatIf]:
    """The period before, what the simulator's change really saved of it, and the prediction."""
    truth, steps = truth_of(name), made(name).steps
    key = "update_period_ns" if steps.boundary == Boundary.UPDATE else "period_ns"
    used = [step.index - 1 for step in steps if step.used and step.opens_at_boundary]
    one = truth["changes"][index]
    before, after = (mean(periods[i] for i in used) for periods in (truth[key], one[key]))
    change = parse_change("shrink", one["selector_hint"])
    return before, before - after, analyze(view_of(name), [change], HOW[one["change"]["what"]])


@pytest.mark.parametrize(("name", "index"), known())
def test_interval_holds_what_the_change_really_saved(name: str, index: int) -> None:
    before, saved, answer = compared(name, index)
    slop = TOLERANCE * before
    inside = answer.saving.low_ns - slop <= saved <= answer.saving.high_ns + slop
    # The exceptions miss, or they would be none: whoever teaches the model one strikes it from the list.
    assert inside != ((name, truth_of(name)["changes"][index]["change"]["what"]) in EXCEPTIONS)
    assert abs(answer.period_ns - before) <= slop


def test_most_of_the_changes_really_made_are_compared() -> None:
    assert len(known()) >= 38
    assert len(EXCEPTIONS) <= 2


def test_hint_of_a_launch_call_means_the_call_without_more_words() -> None:
    one = next(c for c in truth_of("host_bound")["changes"] if c["change"]["what"] == "launch")
    saving = whatif(view_of("host_bound"), f"shrink {one['selector_hint']}").saving
    # The last call's own half may come after what it submits, or before (4.5 µs a call, and jitter).
    assert saving.edge_ns == 51_606
    assert 0 < saving.edge_ns - saving.join_ns < 2_500


def test_shortening_is_never_told_as_a_loss() -> None:
    answer = whatif(view_of("full_queue_16"), "shrink class:elementwise=0.5")
    assert answer.saving.low_ns >= 0
    assert answer.ceiling.low_ns >= 0


# --- promises on every fixture ---------------------------------------------------------------------


def before_by_class(view: StepGraph) -> dict[WorkClass, int]:
    segments = view.segments
    parts = np.bincount(segments.work, segments.length_ns, max(WorkClass) + 1)
    return {WorkClass(w): int(n) for w, n in enumerate(parts) if n}


@pytest.mark.parametrize("name", NAMES)
def test_nothing_changed_saves_nothing_and_keeps_the_path(name: str) -> None:
    view = view_of(name)
    for words in ("shrink *=1", "speedup class:gap=1x", "add class:host=0us", "shrink class:compute=1"):
        answer = whatif(view, words, side="both")
        assert answer.saving == Saving(0, 0)
        assert answer.predicted_ns == (answer.period_ns, answer.period_ns)
        assert sum(answer.after_by_class_ns.values()) == view.step.elapsed_ns
    assert answer.after_by_class_ns == before_by_class(view)


def test_unexplained_gap_stays_unexplained() -> None:
    parts: list[dict[str, Any]] = [
        {"cat": "cpu_op", "name": "op", "ts": 0, "dur": 20, "pid": 1, "tid": 1, "args": {}}
    ]
    for i, start in enumerate((10, 21, 32, 43, 154)):  # gaps of 1, and one of 101
        ids = {"correlation": i}
        parts += [
            {"cat": "cuda_runtime", "name": "l", "ts": 1 + i, "dur": 1, "pid": 1, "tid": 1, "args": ids},
            {"cat": "kernel", "name": "k", "ts": start, "dur": 10, "pid": 0, "tid": 7, "args": ids},
        ]
    view = Trace(trace(parts), SessionOptions()).view()
    assert before_by_class(view)[WorkClass.UNEXPLAINED] == 101_000
    assert whatif(view, "shrink k=1").after_by_class_ns == before_by_class(view)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("words", ["shrink *=0.5", "remove class:gap", "shrink class:host=0.3", "remove *"])
def test_saving_is_that_of_the_periods_and_the_new_path_that_of_the_step(name: str, words: str) -> None:
    """Replayed once more by hand: boundaries from new ends, window from the moved boundary before."""
    view = view_of(name)
    answer = whatif(view, words, side="both")
    replay = replayer(view)
    after = answer.applied
    graph = view.built.graph
    changed = {policy: after.delays(view, policy) for policy in POLICIES}
    variant = Variant(after.dur_ns, changed, after.production)
    saved = []
    for policy in POLICIES:
        dur, delays = replay.scheduled(variant, policy)
        end = forward(graph, dur, delays) + dur
        ends = [max(int(end[v]) for v in sinks) for sinks in replay.ends]
        old = [max(int(graph.end_ns[v]) for v in sinks) for sinks in replay.ends]
        if policy == "join":
            opening = max((int(end[v]) for v in view.previous_sinks), default=view.step.start_ns)
            opening = opening if replay.period_count else view.step.start_ns
            length = max(int(end[v]) for v in view.sinks) - opening
        n = replay.period_count
        saved.append(((old[-1] - old[0]) - (ends[-1] - ends[0])) // n if n else old[0] - ends[0])
    assert answer.saving == Saving(*saved)
    assert sum(answer.after_by_class_ns.values()) == length
    assert all(ns > 0 for ns in answer.after_by_class_ns.values())
    assert answer.predicted_ns == (answer.period_ns - max(saved), answer.period_ns - min(saved))


@pytest.mark.parametrize("name", ["device_bound", "host_bound", "two_streams", "grad_accumulation"])
def test_ceiling_is_the_saving_of_removing_everything_selected(name: str) -> None:
    view = view_of(name)
    selector = "class:compute"
    answer, gone = whatif(view, f"shrink {selector}=0.9"), whatif(view, f"remove {selector}")
    assert answer.ceiling == gone.saving == gone.ceiling
    assert answer.saving.high_ns <= answer.ceiling.high_ns


def test_lengthening_tests_slack_and_its_cost_is_negative() -> None:
    view = view_of("device_bound")
    assert whatif(view, "add class:gemm=10us").saving.high_ns < 0
    assert whatif(view, "add cudaLaunchKernel=100ns", side="host").saving == Saving(
        0, 0
    )  # the host has slack
    assert whatif(view, "shrink class:gemm=2").predicted_ns[0] > whatif(view, "shrink class:gemm=1").period_ns


def test_savings_of_single_changes_are_not_added_but_replayed_together() -> None:
    view = view_of("device_bound")
    one, two = ["shrink class:gemm=0"], ["shrink class:elementwise=0"]
    single = whatif(view, *one).saving.low_ns + whatif(view, *two).saving.low_ns
    assert whatif(view, *one, *two).saving.low_ns <= single


@pytest.mark.parametrize("name", ["device_bound", "host_bound", "item_sync", "two_streams"])
@pytest.mark.parametrize("selector", ["class:compute", "class:host"])
def test_curve_starts_at_nothing_rises_and_ends_below_the_ceiling(name: str, selector: str) -> None:
    view = view_of(name)
    change = [parse_change("shrink", f"{selector}=0.5")]
    points = curve(view, change)
    assert [x for x, _ in points] == [n / 10 for n in range(11)]
    assert points[0][1] == Saving(0, 0)
    assert points[5][1] == analyze(view, change).saving
    lows = [s.low_ns for _, s in points]
    assert lows == sorted(lows)
    assert points[-1][1].high_ns <= analyze(view, change).ceiling.high_ns


def test_curve_takes_each_share_once_however_often_it_is_named() -> None:
    view = view_of("device_bound")
    change = parse_change("shrink", "class:gemm=0.5")
    assert curve(view, [change, change]) == curve(view, [change])


def test_a_step_that_stands_for_no_others_is_changed_alone() -> None:
    view = made("device_bound").view(-1)
    answer = whatif(view, "shrink class:gemm=0.5")
    assert answer.period_count == 0
    assert answer.period_ns == view.step.elapsed_ns
    assert answer.saving.low_ns > 0


def test_what_is_counted_as_changed_is_what_is_changed() -> None:
    view = made("device_bound").view(-1)
    answer = whatif(view, "shrink class:gemm=0.5")
    assert answer.applied.selections[0].total_ns <= view.step.elapsed_ns


@pytest.mark.parametrize("name", NAMES)
def test_halves_and_wholes_are_those_of_the_ranking_and_never_less_for_more(name: str) -> None:
    """One selection, asked in several ways: the ranking's two savings, any share of it, and the curve."""
    view = view_of(name)
    rows = [row for row in ranking.analyze(view, "kernel").rows if row.side == "device" and row.free]
    assert rows
    for row in rows:
        half, free = (whatif(view, f"shrink {row.name}={f}") for f in ("0.5", "0"))
        assert (half.saving, free.saving) == (row.half, row.free)
        assert 0 <= half.saving.low_ns <= free.saving.low_ns <= free.ceiling.low_ns
        assert half.ceiling == free.ceiling
        points = dict(curve(view, [parse_change("shrink", f"{row.name}=0.5")]))
        assert (points[0.5], points[1.0]) == (row.half, row.free)


def test_a_gap_alone_of_its_kind_is_not_its_own_measure() -> None:
    """Of a single late start nothing says that it is usual: 7 ms after its launch are unexplained."""
    parts: list[dict[str, Any]] = [
        {
            "cat": "cuda_runtime",
            "name": "l",
            "ts": 0,
            "dur": 5,
            "pid": 1,
            "tid": 1,
            "args": {"correlation": 1},
        },
        {"cat": "kernel", "name": "k", "ts": 7005, "dur": 10, "pid": 0, "tid": 7, "args": {"correlation": 1}},
    ]
    view = Trace(trace(parts), SessionOptions()).view()
    assert before_by_class(view)[WorkClass.UNEXPLAINED] == 7_000_000
