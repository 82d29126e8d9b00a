"""Tiny programs whose every instant was worked out by hand; a unit is one nanosecond."""

from __future__ import annotations

from dataclasses import replace

import pytest
from simulator.change import Change, apply
from simulator.engine import StuckError, simulate
from simulator.journal import Run
from simulator.program import (
    Action,
    Await,
    Close,
    Collective,
    DeviceOp,
    Launch,
    Loader,
    Machine,
    NextBatch,
    Node,
    Open,
    Post,
    Program,
    Rank,
    Record,
    Sync,
    WaitEvent,
    Work,
)

STILL = Machine(
    launch_latency_ns=0,
    stream_gap_ns=0,
    node_gap_ns=0,
    event_latency_ns=0,
    sync_return_ns=0,
    handover_ns=0,
)
"""A machine without delays; each test adds the ones it is about."""


def launch(name: str, ns: int, cost_ns: int, stream: int = 7) -> Launch:
    return Launch(f"{name} call", (Node(DeviceOp(name, ns)),), stream, cost_ns, "cudaLaunchKernel", 0)


def work(ns: int) -> Work:
    return Work(f"work {ns}", ns, "")


def run(machine: Machine, *actions: Action) -> Run:
    return simulate(Program((Rank({"main": actions}),), machine))


def device(finished: Run) -> dict[str, tuple[int, int]]:
    return {span.name: (span.start_ns, span.end_ns) for span in finished.spans if span.on_device}


def calls(finished: Run) -> list[tuple[int, int]]:
    return [(s.start_ns, s.end_ns) for s in finished.spans if s.category == "cuda_runtime"]


def causes(finished: Run) -> dict[str, str]:
    return {span.name: span.cause for span in finished.spans if span.on_device}


def test_launch_bound_kernels_wait_for_their_calls() -> None:
    finished = run(replace(STILL, launch_latency_ns=2), *(launch(k, 3, 10) for k in "abc"))
    assert calls(finished) == [(0, 10), (10, 20), (20, 30)]
    assert device(finished) == {"a": (12, 15), "b": (22, 25), "c": (32, 35)}
    assert set(causes(finished).values()) == {"launch"}


def test_device_bound_kernels_wait_for_each_other() -> None:
    finished = run(replace(STILL, stream_gap_ns=1), *(launch(k, 20, 2) for k in "abc"))
    assert device(finished) == {"a": (2, 22), "b": (23, 43), "c": (44, 64)}
    assert causes(finished) == {"a": "launch", "b": "stream", "c": "stream"}


def test_reading_a_value_blocks_the_host_until_the_copy_is_done() -> None:
    # l1 [0,2], copy call [2,40] for a copy that ends at 36, Python [40,50], l2 [50,52]
    machine = replace(STILL, launch_latency_ns=2, stream_gap_ns=1, sync_return_ns=4)
    copy = replace(launch("copy", 1, 2), call="cudaMemcpyAsync", blocking=True)
    finished = run(machine, launch("k1", 30, 2), copy, work(10), launch("k2", 20, 2))
    assert device(finished) == {"k1": (4, 34), "copy": (35, 36), "k2": (54, 74)}
    assert calls(finished) == [(0, 2), (2, 40), (50, 52)]


def test_a_stream_waits_for_the_work_before_the_latest_record() -> None:
    # near 7: a [2,32], c [10,..] after a; far 20 waits for a only (recorded before c), then 7 waits for far
    actions = (
        launch("a", 30, 2),
        Record("r1", "ready", 7, 1),  # [2,3]
        WaitEvent("w1", "ready", 20, 1),  # [3,4]
        launch("far", 40, 2, stream=20),  # [4,6]
        Record("r2", "done", 20, 1),  # [6,7]
        launch("c", 10, 2),  # [7,9]
        WaitEvent("w2", "done", 7, 1),  # [9,10]
        launch("join", 5, 2),  # [10,12]
    )
    finished = run(replace(STILL, event_latency_ns=2), *actions)
    assert device(finished) == {"a": (2, 32), "far": (34, 74), "c": (32, 42), "join": (76, 81)}
    assert causes(finished) == {"a": "launch", "far": "event", "c": "stream", "join": "event"}
    assert [(d.before.name, d.after.name) for d in finished.dependencies if d.why == "event"] == [
        ("a", "far"),
        ("far", "join"),
    ]


def test_an_event_that_was_never_recorded_holds_nothing_up() -> None:
    finished = run(STILL, launch("a", 30, 2), WaitEvent("w", "never", 20, 1), launch("b", 5, 2, stream=20))
    assert device(finished)["b"] == (5, 10)


def test_branches_of_a_graph_overlap_and_the_stream_waits_for_all_of_them() -> None:
    nodes = (
        Node(DeviceOp("root", 10)),
        Node(DeviceOp("short", 5), (0,)),
        Node(DeviceOp("long", 20), (0,)),
        Node(DeviceOp("join", 3), (1, 2)),
        Node(DeviceOp("side", 40), (0,)),
    )
    graph = Launch("graph", nodes, 7, 4, "cudaGraphLaunch", 0)
    finished = run(replace(STILL, node_gap_ns=1, stream_gap_ns=2), graph, launch("next", 5, 1))
    assert device(finished) == {
        "root": (4, 14),
        "short": (15, 20),
        "long": (15, 35),
        "join": (36, 39),
        "side": (15, 55),
        "next": (57, 62),
    }
    assert len({span.correlation for span in finished.spans if span.on_device}) == 2


def test_a_full_queue_holds_launch_calls_until_the_operation_before_retires() -> None:
    machine = replace(STILL, queue_depth=2)
    program = Program((Rank({"main": tuple(launch(k, 10, 1) for k in "abcde")}),), machine)
    finished = simulate(program)
    assert [end for _, end in calls(finished)] == [1, 2, 11, 21, 31]
    assert device(finished)["e"] == (41, 51)
    halved = simulate(apply(Change("kernel"), program))
    assert device(halved)["e"][1] == 26


def test_the_transfer_begins_when_the_last_rank_arrives() -> None:
    # compute 10, 12, 18 and a transfer of 4: all end at 22 (calls cost nothing)
    def rank(ns: int) -> Rank:
        reduce = DeviceOp("reduce", 4, collective=Collective("bucket", "allreduce", 1, 1, 3))
        call = Launch("reduce call", (Node(reduce),), 7, 0, "cudaLaunchKernel", 0)
        return Rank({"main": (launch("compute", ns, 0), call)})

    finished = simulate(Program(tuple(rank(ns) for ns in (10, 12, 18)), STILL))
    reduces = [span for span in finished.spans if span.name == "reduce"]
    assert sorted((s.rank, s.start_ns, s.end_ns) for s in reduces) == [(0, 10, 22), (1, 12, 22), (2, 18, 22)]
    assert {span.peer_cause for span in reduces} == {2}


def test_the_last_bucket_is_exposed_behind_the_backward_pass() -> None:
    # backward kernels [0,60] and [60,100] on 7, buckets of 30 and 8 on 20, update after both
    def bucket(name: str, ns: int) -> tuple[Action, ...]:
        ready, reduced = f"{name} ready", f"{name} reduced"
        return (
            Record(ready, ready, 7, 0),
            WaitEvent(f"{name} w", ready, 20, 0),
            launch(name, ns, 0, stream=20),
            Record(reduced, reduced, 20, 0),
        )

    waits = (WaitEvent("w1", "ar1 reduced", 7, 0), WaitEvent("w2", "ar2 reduced", 7, 0))
    backward = (launch("b1", 60, 0), *bucket("ar1", 30), launch("b2", 40, 0), *bucket("ar2", 8))
    finished = run(STILL, *backward, *waits, launch("update", 5, 0))
    assert device(finished) == {
        "b1": (0, 60),
        "ar1": (60, 90),
        "b2": (60, 100),
        "ar2": (100, 108),
        "update": (108, 113),
    }


def test_a_dependent_launch_begins_before_its_predecessor_ends() -> None:
    first = launch("a", 20, 1)
    second = replace(launch("b", 10, 1), nodes=(Node(DeviceOp("b", 10, pdl_ns=3)),))
    finished = run(replace(STILL, stream_gap_ns=1), first, second, launch("c", 5, 1))
    assert device(finished) == {"a": (1, 21), "b": (18, 28), "c": (29, 34)}
    assert causes(finished)["b"] == "pdl"


@pytest.mark.parametrize(
    ("sync", "returns_ns"),
    [
        (Sync("s", "cudaStreamSynchronize", 1, stream=20), 17),  # far [4,14], return latency 3
        (Sync("s", "cudaDeviceSynchronize", 1), 55),  # near [2,52]
        (Sync("s", "cudaEventSynchronize", 1, event="early"), 6),  # recorded when nothing was enqueued
    ],
)
def test_host_waits_return_after_what_they_name(sync: Sync, returns_ns: int) -> None:
    actions = (
        Record("r", "early", 20, 1),
        launch("near", 50, 1),
        launch("far", 10, 2, stream=20),
        work(1),
        sync,
    )
    finished = run(replace(STILL, sync_return_ns=3), *actions)
    assert device(finished) == {"near": (2, 52), "far": (4, 14)}
    assert calls(finished)[-1] == (5, returns_ns)


def test_a_submission_may_lie_inside_its_call() -> None:
    finished = run(replace(STILL, submit_percent=50), launch("a", 3, 10))
    assert calls(finished) == [(0, 10)]
    assert device(finished) == {"a": (5, 8)}


def test_a_thread_hands_over_and_waits() -> None:
    main = (Open("loss"), work(5), Close(), Post("go"), Await("back"), launch("update", 2, 1))
    autograd = (Await("go"), Open("evaluate"), work(10), Close(), Post("back"))
    finished = simulate(Program((Rank({"main": main, "autograd": autograd}),), replace(STILL, handover_ns=3)))
    evaluate = next(span for span in finished.spans if span.name == "evaluate")
    assert (evaluate.start_ns, evaluate.end_ns) == (8, 18)
    assert calls(finished) == [(21, 22)]
    assert [(d.before.name, d.after.name) for d in finished.dependencies if d.why == "hand-over"] == [
        ("loss", "evaluate"),
        ("evaluate", "cudaLaunchKernel"),
    ]


def test_a_loader_works_ahead_only_as_far_as_its_prefetch() -> None:
    # one worker, one batch ahead, 10 to produce; the loop needs 4 between batches, and 100 once
    steps = [(NextBatch(n), Open(f"step {n}"), work(100 if n == 1 else 4), Close()) for n in range(4)]
    actions = tuple(action for step in steps for action in step)
    finished = simulate(Program((Rank({"main": actions}, Loader(1, 1, 10)),), STILL))
    # batch 2 is ready long before step 1 ends at 120; batch 3 is begun only when 2 is taken
    assert [span.start_ns for span in finished.spans] == [10, 20, 120, 130]


def test_a_program_that_waits_for_ever_is_refused() -> None:
    with pytest.raises(StuckError, match="rank 0 main"):
        run(STILL, Await("nobody"))
