"""I4 to I7 and I16 on whole traces: what tests/properties shows on random schedules holds through the product's doors."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import pairwise, permutations
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import given, settings

from stepcrit.errors import UnusableInputError, UsageError
from stepcrit.graph.change import Change, Options
from stepcrit.graph.drag import UNNEEDED, slack
from stepcrit.graph.export import to_networkx
from stepcrit.graph.path import critical_path
from stepcrit.graph.replay import Saving
from stepcrit.graph.selector import Selector
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.model.events import DEVICE_KINDS
from stepcrit.model.graph import EdgeKind, Note
from stepcrit.session import load
from tests.asking import analyze
from tests.properties.crowded import crowded, row
from tests.properties.oracle import Oracle
from tests.properties.schedules import PROPERTY as FULL
from tests.properties.schedules import Built, Schedule, schedules
from tests.variants import Written, to_bytes, understood

FIXTURES = sorted((Path(__file__).parents[2] / "fixtures").glob("*/*.json.gz"))
SIDES = ("auto", "device", "host", "both")
FACTORS = tuple(Fraction(n, 4) for n in range(9))


@cache
def fixture(path: Path) -> StepGraph:
    return load(path).view()


def check_graph(view: StepGraph) -> None:
    """Acyclic, weights not negative, no cause later than its effect; path and slack of the step."""
    graph, path = view.built.graph, view.path
    assert nx.is_directed_acyclic_graph(to_networkx(view))
    assert (graph.dur_ns >= 0).all()
    assert (view.built.arrivals.gap_ns >= 0).all()
    assert (graph.end_ns[graph.src] <= graph.start_ns[graph.dst]).all()
    pieces = list(zip(path.start_ns.tolist(), path.end_ns.tolist(), strict=True))
    assert all(a[1] == b[0] for a, b in pairwise(pieces))
    assert sum(b - a for a, b in pieces) == view.step.elapsed_ns
    room = view.slack.total_ns
    assert ((room >= 0) | (room == UNNEEDED)).all()
    assert not room[path.node].any()


@pytest.mark.parametrize("path", FIXTURES, ids=lambda p: p.name)
def test_graph_path_and_slack_keep_their_laws_on_every_fixture(path: Path) -> None:
    check_graph(fixture(path))


@settings(FULL, max_examples=200)
@given(crowded())
def test_graph_path_and_slack_keep_their_laws_on_crowded_traces(trace: Written) -> None:
    try:
        view = understood(to_bytes(trace)).view()
        assert len(view.path)
    except (UnusableInputError, UsageError):
        return  # nothing that takes time, device work without any launch, or a step without work of its own
    check_graph(view)


def test_work_that_begins_when_a_call_has_returned_was_not_awaited_by_it() -> None:
    """The kernel is issued before the wait and starts 0.3 µs after it: 0.2 µs long, it ends within the tolerance."""
    kernel = row("kernel", "k", (30, 31), (0, 7), stream=7, device=0, correlation=1)
    events = [
        row("cpu_op", "aten::mm", (0, 40), (1, 1), **{"External id": 1}),
        row("cuda_runtime", "cudaLaunchKernel", (1, 5), (1, 1), correlation=1),
        row("cuda_runtime", "cudaStreamSynchronize", (10, 30), (1, 1), correlation=2),
        {**kernel, "ts": kernel["ts"] + 300, "dur": 200},
    ]
    view = understood(to_bytes(Written({}, events))).view()
    check_graph(view)
    assert view.built.graph.notes[Note.WAIT_TOO_LATE] == 1
    assert EdgeKind.SYNC not in view.built.graph.edge_kind


@FULL
@given(schedules())
def test_everything_on_the_path_is_without_slack(schedule: Schedule) -> None:
    built = Built(schedule)
    room = slack(built.graph, built.lags, built.boundary).total_ns
    path = critical_path(built.graph, built.arrivals, built.sinks)
    assert not room[path.node].any()


@settings(FULL, max_examples=150)
@given(schedules())
def test_start_may_be_late_by_the_slack_and_one_more_moves_the_end_by_one(schedule: Schedule) -> None:
    """An activity that is put off, not one that takes longer: the end by every chain written out."""
    built, oracle = Built(schedule), Oracle(schedule)
    for v, room in enumerate(built.own(slack(built.graph, built.lags, built.boundary).total_ns)):
        for late, moved in ((room, 0), (room + 1, 1)) if room != UNNEEDED else ((1000, 0),):
            lag = {pair: ns + late * (pair[1] == v) for pair, ns in oracle.lag.items()}
            origin = [ns + late * (u == v and not oracle.preds[v]) for u, ns in enumerate(oracle.origin)]
            assert oracle.finish_after(None, lag, origin) == oracle.finish + moved


@pytest.mark.parametrize("path", FIXTURES, ids=lambda p: p.name)
def test_trace_compared_with_itself_shows_no_difference(path: Path) -> None:
    """Nothing is changed, in each of the words that can say so."""
    view, every = fixture(path), Selector("name", "*")
    same = (
        Change(every, "scale"),
        Change(every, "scale", factor=Fraction(1)),
        Change(every, "add", amount_ns=0),
    )
    has_device = view.trace.events.is_kind(*DEVICE_KINDS).any()
    for change in same:
        for side in SIDES if has_device else ("auto", "host", "both"):
            answer = analyze(view, [change], Options(side=side))
            assert answer.saving == Saving(0, 0)
            assert (answer.applied.dur_ns == view.built.graph.dur_ns).all()
            assert sum(answer.after_by_class_ns.values()) == view.step.elapsed_ns


@pytest.mark.parametrize("path", FIXTURES, ids=lambda p: p.name)
def test_saving_is_concave_in_what_is_taken_away_and_falls_with_the_factor(path: Path) -> None:
    """The new length is the longest of many chains, each linear in the factor: so convex, and never falling with it.

    At factor 1, where nothing saves, the slope may jump; every event's share is rounded to whole ns.
    """
    view = fixture(path)
    answers = [analyze(view, [Change(Selector("name", "*"), "scale", factor=f)]) for f in FACTORS]
    rounding = len(view.trace.events)
    for saved in ([a.saving.join_ns for a in answers], [a.saving.edge_ns for a in answers]):
        assert saved[FACTORS.index(Fraction(1))] == 0
        assert all(later <= sooner for sooner, later in pairwise(saved))
        slopes = [sooner - later for sooner, later in pairwise(saved)]
        shorter, longer = slopes[:4], slopes[4:]
        for some in (shorter, longer):
            assert all(later >= sooner - rounding for sooner, later in pairwise(some))


@pytest.mark.parametrize("name", ["graph_step", "host_bound", "two_streams"])
def test_order_of_changes_of_one_thing_does_not_matter(name: str) -> None:
    """Scaling twice multiplies, whichever comes first; each change rounds a duration to whole ns."""
    (path,) = [one for one in FIXTURES if one.name == f"{name}.json.gz"]
    view, every = fixture(path), Selector("name", "*")
    changes = [
        Change(every, "scale", factor=Fraction(3, 8)),
        Change(every, "scale", factor=Fraction(1, 2)),
        Change(Selector("class", "launch"), "scale", factor=Fraction(3, 4)),
    ]
    forth, *others = (analyze(view, some) for some in permutations(changes))
    for back in others:
        assert abs(forth.applied.dur_ns - back.applied.dur_ns).max() <= len(changes)
        assert back.saving.join_ns == pytest.approx(forth.saving.join_ns, rel=1e-4)
        assert back.saving.edge_ns == pytest.approx(forth.saving.edge_ns, rel=1e-4)
