"""The path is a chain through a graph without circles, and each of its edges has evidence."""

from __future__ import annotations

from itertools import pairwise, permutations

import networkx as nx
import pytest

import stepcrit as sc
from stepcrit.answers.findings import CODES
from stepcrit.model.graph import EdgeKind, Evidence, Note
from tests.answers.drawn import call, op, work
from tests.builders import Event, event
from tests.known_bugs.conftest import Ask
from tests.known_bugs.written import loop, trace
from tests.properties.schedules import Built, Link, Node, Schedule

LAUNCH = "cudaLaunchKernel"
WAIT = {"cuda_sync_kind": "Stream Wait Event", "device": 0}


def chain(found: sc.Trace) -> list[tuple[int, int, str]]:
    """The path's stretches: start, end and name."""
    rows = found.graph().critical_path().to_pandas()
    return list(zip(rows["start_ns"].tolist(), rows["end_ns"].tolist(), rows["name"].tolist(), strict=True))


def check_chain(found: sc.Trace) -> None:
    """The stretches touch, and fill the step to the nanosecond."""
    path, step = chain(found), found.steps.median()
    assert all(before[1] == after[0] for before, after in pairwise(path))
    assert (path[0][0], path[-1][1]) == (step.start_ns, step.end_ns)
    assert sum(end - start for start, end, _ in path) == step.elapsed_ns


def test_b155_events_that_begin_together_make_no_circle() -> None:
    together = [
        op("aten::linear", 0, 50),
        op("aten::mm", 0, 30),
        call(LAUNCH, (0, 10), 1),
        op("aten::empty", 0, 0),
    ]
    for order in permutations(together):
        found = trace([*order, work("k", (20, 90), 1)])
        assert nx.is_directed_acyclic_graph(found.graph().to_networkx())
        check_chain(found)
        assert found.steps.median().elapsed_ns == 90_000


# s7   [a 30..60]        b is launched at once and waits for a's queue; the path goes over a alone,
# s20  [c 30..40]        whatever other edges join nodes that lie on it
SHORTCUT = [
    op("aten::mm", 0, 25),
    call(LAUNCH, (2, 4), 1),
    call(LAUNCH, (6, 8), 2),
    call(LAUNCH, (10, 12), 3),
    work("a", (30, 60), 1),
    work("b", (60, 90), 2),
    work("c", (30, 40), 3, stream=20),
]


def test_b157_the_path_is_a_chain_whose_stretches_sum_to_the_step() -> None:
    for events in (SHORTCUT, loop(4)):
        check_chain(trace(events))
    assert [name for _, _, name in chain(trace(SHORTCUT)) if name in "abc"] == [
        "a",
        "a",
        "b",
    ]  # latency, a, b


def test_b158_a_call_that_waits_is_told_by_what_it_waited_for(ask: Ask) -> None:
    """Of 10 ms in the call the device works until 1 µs before its end: the path has that work, not the call."""
    events = [
        op("aten::mm", 0, 30),
        call(LAUNCH, (10, 20), 1),
        work("k", (38, 10_039), 1),
        call("cudaDeviceSynchronize", (40, 10_040), 2),
        op("aten::item", 10_040, 10_100),
    ]
    answer = ask(events, "analyze", "--boundary", "host")
    classes = answer.data["critical_path"]["by_class_ns"]
    assert answer.data["elapsed_ns"] == 10_100_000
    assert classes["other kernel"] == 10_039_000 - 38_000
    assert classes.get("sync", 0) + classes.get("sync return", 0) == 1_000
    assert classes["launch latency"] == 18_000


def test_b160_between_kernels_lies_the_collective_that_the_second_waited_for(ask: Ask) -> None:
    """C to 100, all-to-all on another stream from 110 to 3110, then D: no edge of 3 ms from C to D."""
    events = [
        op("aten::mm", 0, 60),
        call(LAUNCH, (2, 4), 1),
        work("C", (20, 100), 1),
        call("cudaStreamWaitEvent", (5, 6), 12),
        event(
            "cuda_sync",
            "Stream Wait Event",
            (5, 6),
            (0, 20),
            correlation=12,
            stream=20,
            wait_on_stream=7,
            **WAIT,
        ),
        call(LAUNCH, (8, 10), 2),
        work("ncclDevKernel_SendRecv", (110, 3110), 2, stream=20),
        call("cudaStreamWaitEvent", (14, 15), 13),
        event(
            "cuda_sync",
            "Stream Wait Event",
            (14, 15),
            (0, 7),
            correlation=13,
            stream=7,
            wait_on_stream=20,
            **WAIT,
        ),
        call(LAUNCH, (20, 22), 3),
        work("D", (3115, 3200), 3),
    ]
    data = ask(events).data
    classes = data["critical_path"]["by_class_ns"]
    assert data["elapsed_ns"] == 3_200_000
    assert classes["comm"] == 3_000_000
    assert classes["other kernel"] == 80_000 + 85_000
    assert classes["event gap"] == 10_000 + 5_000
    assert "stream gap" not in classes


@pytest.mark.parametrize("shift", range(5))
def test_b162_sync_records_that_contradict_each_other_make_no_circle(ask: Ask, shift: int) -> None:
    """Two streams that each wait for the other, with the records in every order."""
    numbers = [11, 12, 13, 14, 15]
    numbers = numbers[shift:] + numbers[:shift]
    events: list[Event] = [op("aten::mm", 0, 80)]
    for n, (queue, other) in enumerate([(7, 20), (20, 7), (7, 20), (20, 7), (7, 20)]):
        at = 12 * n
        events += [
            call("cudaStreamWaitEvent", (at, at + 2), numbers[n]),
            event(
                "cuda_sync", "Stream Wait Event", (at, at + 1), (0, queue), correlation=numbers[n], stream=queue,
                wait_on_stream=other, wait_on_cuda_event_record_corr_id=numbers[(n + 2) % 5], **WAIT,
            ),
            call(LAUNCH, (at + 4, at + 6), 100 + n),
            work(f"k{n}", (at + 8, at + 18), 100 + n, stream=queue),
        ]  # fmt: skip
    found = trace(events)
    assert nx.is_directed_acyclic_graph(found.graph().to_networkx())
    check_chain(found)
    assert ask(events).code == 0


def test_b162_of_a_circle_the_edge_of_the_worst_evidence_is_left_out_and_counted() -> None:
    """Instants 0, 1, 2 in a ring, the last edge by timing alone. The finding tells how often, not which."""
    ring = ((0, 1, Evidence.ID), (1, 2, Evidence.ORDER), (2, 0, Evidence.TIMING))
    links = tuple(Link(src, dst, EdgeKind.EVENT, evidence) for src, dst, evidence in ring)
    schedule = Schedule(0, tuple(Node(lane, 5, 0) for lane in range(3)), links, (2,), (), "join")
    built = Built(schedule)
    assert set(built.own_edges(built.graph.evidence)) == {(0, 1), (1, 2)}
    assert built.graph.notes == {str(Note.CYCLE): 1}
    assert CODES[Note.CYCLE] == "G211"


def test_b163_every_kernel_of_a_stream_waits_for_the_one_before_it() -> None:
    """Ties, too: of kernels that begin together the file's order is the stream's."""
    events = [op("aten::mm", 0, 40)]
    for n in range(6):
        start = 50 + 10 * (n // 2 * 2)  # pairs begin together; the first of a pair has no length
        events += [
            call(LAUNCH, (3 * n, 3 * n + 2), n + 1),
            work(f"k{n}", (start, start + 15 * (n % 2)), n + 1),
        ]
    found = trace(events)
    graph = found.built.graph
    edges = {
        (found.raw.events.name_of(int(graph.row[src])), found.raw.events.name_of(int(graph.row[dst])))
        for src, dst, kind in zip(graph.src, graph.dst, graph.edge_kind, strict=True)
        if kind == EdgeKind.STREAM
    }
    assert edges >= {(f"k{n}", f"k{n + 1}") for n in range(5)}
    check_chain(found)
