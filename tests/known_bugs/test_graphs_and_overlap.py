"""One launch of many kernels, and rows of one queue that overlap."""

from __future__ import annotations

from tests.answers.drawn import call, op, work
from tests.builders import Event, event
from tests.known_bugs.conftest import Ask
from tests.known_bugs.written import loop, raw, trace

GRAPH = "cudaGraphLaunch"


def graph(kernels: int) -> list[Event]:
    """A graph launch from 10 to 20, whose kernels of 4 µs follow each other every 5 µs from 30 on."""
    launched = [work(f"k{n}", (30 + 5 * n, 34 + 5 * n), 1) for n in range(kernels)]
    return [op("replay", 0, 25), call(GRAPH, (10, 20), 1), *launched]


def test_b096_all_kernels_of_a_graph_are_on_the_path(ask: Ask) -> None:
    events = graph(400)
    assert (trace(events).links.launch >= 0).sum() == 400
    data = ask(events).data
    # 10 of the operator, 10 of the call, 10 until the first starts, 400 times 4 and 399 gaps of 1
    assert data["elapsed_ns"] == 10_000 + 10_000 + 10_000 + 1_600_000 + 399_000
    classes = data["critical_path"]["by_class_ns"]
    assert classes["other kernel"] == 1_600_000
    assert data["queue"]["launched"] == 400
    assert data["trust"]["evidence_share"].keys() >= {"id", "order"}


def test_b099_a_trace_of_graph_launches_only_has_their_cost_and_their_wait(ask: Ask) -> None:
    events = [one for n in range(3) for one in (
        op("replay", 100 * n, 100 * n + 25),
        call(GRAPH, (100 * n + 10, 100 * n + 20), n + 1),
        work("k", (100 * n + 30, 100 * n + 90), n + 1),
    )]  # fmt: skip
    data = ask(events).data
    assert data["queue"]["launch_to_start_ns"] == 10_000
    launches = next(row for row in data["operators"] if row["name"] == GRAPH)
    assert (launches["calls"], launches["self_cpu_ns"]) == (3, 30_000)
    lacking = [one for one in events if one["cat"] != "kernel"]
    assert ask(lacking, "doctor").check("E101")["state"] == "missing"


def test_b101_a_row_without_length_overlaps_nothing(ask: Ask) -> None:
    events = [*loop(3), call("cudaLaunchKernel", (131, 133), 50), work("marker", (160, 160), 50)]
    answer = ask(events)
    assert answer.code == 0
    assert answer.data["device_busy_ns"] == {"0": 40_000}
    assert answer.data["summed_ns"]["device"] == 40_000
    assert "P302" not in answer.codes


def test_b106_a_sync_row_on_the_lane_of_kernels_is_no_device_work(ask: Ask) -> None:
    kinds = {"cuda_sync_kind": "Stream Sync", "stream": 7, "device": 0}
    for track in (7, 1_000_007):
        syncs = [
            event("cuda_sync", "Stream Sync", (100 * n + 45, 100 * n + 95), (0, track), **kinds)
            for n in range(3)
        ]
        label: Event = {
            "ph": "M",
            "cat": "",
            "name": "thread_name",
            "pid": 0,
            "tid": track,
            "args": {"name": "stream 7 (sync)"},
        }
        answer = ask([*loop(3), *syncs, label])
        assert (answer.code, answer.data["elapsed_ns"]) == (0, 100_000)
        assert answer.data["device_busy_ns"] == {"0": 40_000}
        assert answer.data["overlap"]["0"]["partition_ns"]["idle"] == 60_000
        assert "G204" not in answer.codes
        check = ask([*loop(3), *syncs, label], "doctor").check("E103")
        assert check["seen_numbers"] == [3, 1]  # three records, one queue


def test_b108_an_end_that_is_the_next_start_is_no_overlap(ask: Ask) -> None:
    events = [op("aten::mm", 0, 100)]
    for n in range(20):
        events += [
            call("cudaLaunchKernel", (3 * n, 3 * n + 2), n + 1),
            work(f"k{n}", (60 + 7 * n, 67 + 7 * n), n + 1),
        ]
    answer = ask(events)
    assert answer.data["device_busy_ns"] == {"0": 140_000}
    assert answer.data["summed_ns"]["device"] == 140_000
    assert {"G204", "P301", "P302"}.isdisjoint(answer.codes)


def test_b108_ties_within_a_nanosecond_are_counted_to_the_nanosecond() -> None:
    first: Event = {**work("a", (0, 1), 1), "ts": 10.001, "dur": 4.999}
    second: Event = {**work("b", (0, 1), 2), "ts": 15.0, "dur": 1.001}
    found = raw([first, second])
    assert found.events.end_ns.tolist()[0] == found.events.start_ns.tolist()[1] == 4_999
