"""Class floors: learned from the trace by hand-worked percentiles, and what they change; times in µs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from stepcrit.graph.build import build_graph
from stepcrit.graph.floors import launch_floor, learn_floors
from stepcrit.graph.path import PieceKind
from stepcrit.link.linker import link
from stepcrit.model.graph import EdgeKind
from stepcrit.session import Options, Trace
from tests.builders import trace

Event = dict[str, Any]


def host(cat: str, name: str, start: int, end: int, **args: Any) -> Event:
    return {"cat": cat, "name": name, "ts": start, "dur": end - start, "pid": 1, "tid": 1, "args": args}


def call(name: str, start: int, end: int, corr: int) -> Event:
    return host("cuda_runtime", name, start, end, correlation=corr)


def kernel(name: str, start: int, end: int, corr: int, stream: int = 7) -> Event:
    args = {"correlation": corr, "stream": stream}
    return {
        "cat": "kernel",
        "name": name,
        "ts": start,
        "dur": end - start,
        "pid": 0,
        "tid": stream,
        "args": args,
    }


def learned(chrome: list[Event]) -> tuple[dict[EdgeKind, int], tuple[str, ...]]:
    raw = trace(chrome)
    return learn_floors(build_graph(raw.events, link(raw)))


def idle_queue(count: int) -> list[Event]:
    """Every kernel finds its queue idle: kernel i starts 5 + i after its launch point."""
    # host  |l0|        |l1|         |l2| ...       every 100
    # s7         |k0|        |k1|          |k2|
    chrome: list[Event] = []
    for i in range(count):
        at = 100 * i
        chrome += [call("l", at, at + 2, i + 1), kernel("k", at + 7 + i, at + 20 + i, i + 1)]
    return chrome


def deep_queue(count: int, *, early: int = 100) -> list[Event]:
    """All are launched first; kernel i starts i after the one before it ends, the first at `early`."""
    # host  |l0 l1 l2 ...|
    # s7                       [k0]-1-[k1]--2--[k2]---3---[k3] ...
    chrome, end = [], early
    for i in range(count):
        start = end + i
        end = start + 10
        chrome += [call("l", 2 * i, 2 * i + 1, i + 1), kernel("k", start, end, i + 1)]
    return chrome


def test_launch_floor_is_the_fifth_percentile_of_launches_on_an_idle_queue() -> None:
    """Waits 5..24: the 5th percentile lies 0.95 above the least."""
    floors, notes = learned(idle_queue(20))
    assert floors == {EdgeKind.LAUNCH: 5_950}
    assert notes == ("floor of stream edges: fewer than 20 samples, taken as 0",)


def test_stream_floor_is_the_fifth_percentile_of_gaps_behind_early_launches() -> None:
    """Gaps 1..25: the 5th percentile lies 1.2 above the least."""
    floors, notes = learned(deep_queue(26))
    assert floors == {EdgeKind.STREAM: 2_200}
    assert notes == ("floor of launch edges: fewer than 20 samples, taken as 0",)


def test_class_below_twenty_samples_has_no_floor_and_says_so() -> None:
    floors, notes = learned(idle_queue(19))
    assert floors == {}
    assert notes[0] == "floor of launch edges: fewer than 20 samples, taken as 0"
    assert len(notes) == 2


def test_gap_behind_a_launch_of_less_than_fifty_is_no_sample() -> None:
    """Kernel i is launched at 2i + 1; with the first kernel at 3 the early ones are too close to their launch."""
    _, (note, *_) = learned([*deep_queue(26, early=50)])
    assert note.startswith("floor of launch edges")
    floors, notes = learned(deep_queue(20, early=3))
    assert EdgeKind.STREAM not in floors
    assert any(note.startswith("floor of stream edges: ") for note in notes)


@pytest.mark.parametrize(("ahead", "floor"), [(50, {EdgeKind.STREAM: 1_950}), (49, {})])
def test_gap_is_a_sample_if_its_launch_was_at_least_fifty_ahead(
    ahead: int, floor: dict[EdgeKind, int]
) -> None:
    """Gaps 1..20, the last behind a launch `ahead` of its start: 20 samples (1 + 0.05 * 19), or one too few."""
    chrome = deep_queue(21)
    start = chrome[-1]["ts"]
    chrome[-2] = call("l", start - ahead - 1, start - ahead, 21)
    assert learned(chrome)[0] == floor


def test_start_inside_its_own_call_is_no_sample() -> None:
    """It has no latency to learn from: the launch point is the start itself."""
    chrome = [
        e
        for i in range(25)
        for e in (call("l", 100 * i, 100 * i + 9, i + 1), kernel("k", 100 * i + 5, 100 * i + 20, i + 1))
    ]
    assert learned(chrome)[0] == {}


def test_launch_floor_alone_is_the_learned_one() -> None:
    for count, floor in ((20, 5_950), (19, None)):
        raw = trace(idle_queue(count))
        assert launch_floor(build_graph(raw.events, link(raw))) == floor


def test_launch_behind_an_event_wait_is_no_sample() -> None:
    """One more kernel with a short wait, but on a queue that had to wait for an event."""
    waited = [
        call("la", 5000, 5001, 501), kernel("a", 5002, 5003, 501), call("cudaEventRecord", 5001, 5002, 502),
        call("cudaStreamWaitEvent", 5003, 5004, 503), call("lb", 5005, 5006, 504), kernel("b", 5007, 5009, 504, 20),
    ]  # fmt: skip
    args = {
        "correlation": 503, "device": 0, "stream": 20, "wait_on_stream": 7, "wait_on_cuda_event_record_corr_id": 502,
        "cuda_sync_kind": "Stream Wait Event",
    }  # fmt: skip
    record = {
        "cat": "cuda_sync",
        "name": "Stream Wait Event",
        "ts": 5003,
        "dur": 1,
        "pid": 0,
        "tid": 7,
        "args": args,
    }
    floors, _ = learned([*idle_queue(20), *waited, record])
    # a waits 1 and counts: 1, 5..24 have their 5th percentile at 5; b's wait of 1 does not count
    assert floors[EdgeKind.LAUNCH] == 5_000


# --- what floors change: the golden schedule G35 as a trace -------------------------------------

# host  |host 0..26 |l 26..28|          launch ends 28, the kernel before ends 29, k starts at 41
# s7         [kp 12......29]       [k 41..51]
G35 = [
    host("cpu_op", "host", 0, 26), call("lp", 1, 2, 1), call("l", 26, 28, 2), kernel("kp", 12, 29, 1), kernel("k", 41, 51, 2),
]  # fmt: skip


def path_of(floors: str | Mapping[EdgeKind, int]) -> list[tuple[str, str, int, int]]:
    view = Trace(trace(G35), Options(floors=floors)).view()
    path = view.path
    return [
        (PieceKind(kind).name.lower(), view.node_name(node), start // 1000, end // 1000)
        for kind, node, start, end in zip(
            path.kind.tolist(), path.node.tolist(), path.start_ns.tolist(), path.end_ns.tolist(), strict=True
        )
    ]


def test_without_floors_the_kernel_that_ended_last_binds() -> None:
    found = path_of("none")
    assert found[-3:] == [("node", "kp", 12, 29), ("gap", "k", 29, 41), ("node", "k", 41, 51)]


def test_with_floors_the_launch_binds_and_its_lag_is_taken_out_of_the_gap() -> None:
    found = path_of({EdgeKind.LAUNCH: 10_000, EdgeKind.STREAM: 2_000})
    assert found[-4:] == [
        ("node", "l", 26, 28),
        ("lag", "k", 28, 38),
        ("gap", "k", 38, 41),
        ("node", "k", 41, 51),
    ]


def test_floors_move_the_slack_from_one_predecessor_to_the_other() -> None:
    slack = {}
    for floors in ("none", {EdgeKind.LAUNCH: 10_000, EdgeKind.STREAM: 2_000}):
        view = Trace(trace(G35), Options(floors=floors)).view()
        names = [view.node_name(node) for node in range(len(view.built.graph))]
        total = view.slack.total_ns
        slack[str(floors)[:4]] = (int(total[names.index("l")]), int(total[names.index("kp")]))
    assert slack == {"none": (1_000, 0), "{<Ed": (0, 7_000)}


def test_learning_too_little_is_like_no_floors() -> None:
    assert path_of("auto") == path_of("none")


@pytest.mark.parametrize("policy", ["join", "edge"])
def test_floors_never_move_an_observed_start(policy: str) -> None:
    """Loading replays the unchanged schedule under both policies, and would refuse a mistake."""
    view = Trace(trace([*idle_queue(25)]), Options(floors="auto")).view()
    delays = view.delays(policy)  # type: ignore[arg-type]
    assert (delays.edge_ns >= 0).all()
    assert (
        view.built.arrivals.phi_ns.max() == 6_200
    )  # waits 5..29: the 5th percentile lies 1.2 above the least
