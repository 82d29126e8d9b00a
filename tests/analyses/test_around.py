"""The neighbourhood of one operation: edges in and out, rooms, and names that are not there; times in µs."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepcrit.analyses import around
from stepcrit.errors import UsageError
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.model.graph import EdgeKind, Evidence
from stepcrit.session import Options, Trace, load
from tests.builders import event, trace

FILES = sorted((Path(__file__).parents[2] / "fixtures" / "simulated").glob("*.json.gz"))


def queue() -> StepGraph:
    """Two kernels of one queue."""
    # host  |aten::mm 0..10: la 2..4 | aten::add 10..50: lb 12..14 |
    # s7        [gemm_a 5............25]   [add_b 30..50]
    chrome = [
        event("cpu_op", "aten::mm", (0, 10), (1, 1)),
        event("cpu_op", "aten::add", (10, 50), (1, 1)),
        event("cuda_runtime", "la", (2, 4), (1, 1), correlation=1),
        event("cuda_runtime", "lb", (12, 14), (1, 1), correlation=2),
        event("kernel", "gemm_a", (5, 25), (0, 7), correlation=1, stream=7),
        event("kernel", "add_b", (30, 50), (0, 7), correlation=2, stream=7),
    ]
    return Trace(trace(chrome), Options()).view()


def test_exactly_the_binding_predecessor_has_no_room() -> None:
    """The kernel before ended at 25, the launch call at 14: the launch had 11 to spare."""
    view = queue()
    (one,), count = around.analyze(view, "add_b")
    assert (count, one.gap_ns, one.slack_ns) == (1, 5_000, 0)
    told = [(n.kind, n.evidence, n.room_ns, n.binds) for n in one.waits_for]
    assert told == [(EdgeKind.STREAM, Evidence.ORDER, 0, True), (EdgeKind.LAUNCH, Evidence.ID, 11_000, False)]
    assert one.waited_by == ()


def test_what_waits_is_listed_with_the_room_it_leaves() -> None:
    view = queue()
    (one,), _ = around.analyze(view, "gemm_a")
    assert [(view.node_name(n.node), n.kind, n.room_ns, n.binds) for n in one.waited_by] == [
        ("add_b", EdgeKind.STREAM, 0, True)
    ]
    assert one.drag_ns == 11_000  # without it, the launch call that returns at 14 would bind add_b


def test_operator_stands_for_its_host_nodes_and_for_what_it_launched() -> None:
    view = queue()
    found, _ = around.analyze(view, "aten::add")
    assert {view.node_name(one.node) for one in found} == {"aten::add", "add_b"}


def test_glob_finds_every_name_that_it_matches_and_an_exact_name_only_itself() -> None:
    view = queue()
    found, count = around.analyze(view, "*_?")
    assert {view.node_name(one.node) for one in found} == {"gemm_a", "add_b"}
    assert count == 2
    assert around.analyze(view, "*_?", limit=1)[1] == 2
    assert len(around.analyze(view, "*_?", limit=1)[0]) == 1


def test_name_that_is_not_there_is_refused_with_near_ones() -> None:
    with pytest.raises(UsageError) as refusal:
        around.analyze(queue(), "gem_a")
    assert "'gem_a'" in refusal.value.what
    assert "gemm_a" in refusal.value.do


def test_near_names_are_the_close_ones_first_and_then_those_that_hold_the_word() -> None:
    names = ("aten::mm", "aten::addmm", "ampere_sgemm", "loader")
    assert around.near_names("aten::mn", names)[0] == "aten::mm"
    assert "ampere_sgemm" in around.near_names("SGEMM", names)
    assert len(around.near_names("a", tuple(f"name {i} a" for i in range(20)))) == 5
    assert around.near_names("zzz", names) == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_room_is_never_negative_and_nothing_only_for_what_binds(path: Path) -> None:
    view = load(path).view()
    found, count = around.analyze(view, "*", limit=200)
    assert len(found) == min(count, 200)
    for one in found:
        for neighbour in (*one.waits_for, *one.waited_by):
            assert neighbour.room_ns >= 0
            assert neighbour.binds == (neighbour.room_ns == 0)
        assert one.drag_ns == 0 or one.slack_ns == 0
