"""Runner-up chains: the binding predecessor, the next one, and how far behind it is; times in µs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stepcrit.analyses import joins
from stepcrit.analyses.joins import Join
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.model.graph import EdgeKind, Evidence
from stepcrit.session import Options, Trace, load
from tests.builders import event, trace

FILES = sorted((Path(__file__).parents[2] / "fixtures").glob("*/*.json.gz"))


def view_of(start: int, launched: int) -> StepGraph:
    """Two kernels of one queue: the second starts at `start`, and its launch returns at `launched`."""
    # host  |op  la 2..4 ...... lb ..launched |
    # s7        [a 5............25]   [b start..50]
    chrome = [
        event("cpu_op", "op", (0, 50), (1, 1)),
        event("cuda_runtime", "la", (2, 4), (1, 1), correlation=1),
        event("cuda_runtime", "lb", (launched - 2, launched), (1, 1), correlation=2),
        event("kernel", "a", (5, 25), (0, 7), correlation=1, stream=7),
        event("kernel", "b", (start, 50), (0, 7), correlation=2, stream=7),
    ]
    return Trace(trace(chrome), Options()).view()


def told(view: StepGraph, join: Join) -> tuple[str, int, EdgeKind, EdgeKind, Evidence]:
    assert view.node_name(join.node) == "b"
    return (
        view.node_name(join.binding),
        join.margin_ns,
        join.binding_kind,
        join.runner_up_kind,
        join.runner_up_evidence,
    )


@pytest.mark.parametrize(
    ("launched", "expected"),
    [
        (12, ("a", 13_000, EdgeKind.STREAM, EdgeKind.LAUNCH, Evidence.ID)),
        (28, ("op", 3_000, EdgeKind.LAUNCH, EdgeKind.STREAM, Evidence.ORDER)),
        (
            25,
            ("op", 0, EdgeKind.LAUNCH, EdgeKind.STREAM, Evidence.ORDER),
        ),  # a tie: the id is the better evidence
    ],
)
def test_join_names_the_binding_edge_the_next_and_the_margin(
    launched: int, expected: tuple[Any, ...]
) -> None:
    view = view_of(30, launched)
    (join,) = joins.analyze(view)
    assert told(view, join) == expected
    assert join.at_ns == 30_000


def test_of_two_equal_runner_ups_the_better_known_is_named() -> None:
    """What b waited for is a, until 50; its launch (by id) and the kernel before it (by order) were done at 12."""
    # host  |op la 2..4|record 5..6|lc 6..7|wait 8..9|lb 10..12|
    # s7             [a 4....................................50]
    # s20                               [c 7......12]          [b 50..60]
    args = {"device": 0, "stream": 20, "wait_on_stream": 7, "wait_on_cuda_event_record_corr_id": 2}
    kind = "Stream Wait Event"
    chrome = [
        event("cpu_op", "op", (0, 60), (1, 1)),
        event("cuda_runtime", "la", (2, 4), (1, 1), correlation=1),
        event("cuda_runtime", "cudaEventRecord", (5, 6), (1, 1), correlation=2),
        event("cuda_runtime", "lc", (6, 7), (1, 1), correlation=3),
        event("cuda_runtime", "cudaStreamWaitEvent", (8, 9), (1, 1), correlation=4),
        event("cuda_runtime", "lb", (10, 12), (1, 1), correlation=5),
        event("cuda_sync", kind, (8, 9), (0, 7), correlation=4, cuda_sync_kind=kind, **args),
        event("kernel", "a", (4, 50), (0, 7), correlation=1, stream=7),
        event("kernel", "c", (7, 12), (0, 20), correlation=3, stream=20),
        event("kernel", "b", (50, 60), (0, 20), correlation=5, stream=20),
    ]
    view = Trace(trace(chrome), Options()).view()
    (join,) = joins.analyze(view)
    assert told(view, join) == ("a", 38_000, EdgeKind.EVENT, EdgeKind.LAUNCH, Evidence.ID)


def test_chain_with_one_predecessor_each_has_no_join() -> None:
    chrome = [
        event("cpu_op", "op", (0, 10), (1, 1)),
        event("cuda_runtime", "la", (2, 4), (1, 1), correlation=1),
        event("kernel", "a", (5, 25), (0, 7), correlation=1, stream=7),
    ]
    assert joins.analyze(Trace(trace(chrome), Options()).view()) == ()


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_margins_are_never_negative_and_closest_comes_first(path: Path) -> None:
    view = load(path).view()
    found = joins.analyze(view)
    margins = [join.margin_ns for join in found]
    assert margins == sorted(margins)
    assert min(margins, default=0) >= 0
    assert all(view.step.start_ns < join.at_ns <= view.step.end_ns for join in found)
    assert all(join.binding != join.runner_up for join in found)
