"""What an edge brings when it comes to bind: the delay its kind usually has; numbers by hand, times in µs."""

from __future__ import annotations

from stepcrit.graph.change import parse_change
from stepcrit.graph.replay import Saving
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.model.graph import EdgeKind
from stepcrit.session import Options, Trace
from tests.asking import analyze
from tests.builders import Event, event, trace


def launches(count: int) -> StepGraph:
    """`count` kernels that each start 4 after their launch on an idle queue, then one behind a long kernel."""
    # host  L0 0..1   L1 20..21  ... (every 20)      Llong        Llast
    # s7      k 5..10   k 25..30 ...                   long 100     last right behind it (gap 1)
    chrome: list[Event] = []
    for i in range(count):
        at = 20 * i
        chrome.append(event("cuda_runtime", "cudaLaunchKernel", (at, at + 1), correlation=i))
        chrome.append(event("kernel", "k", (at + 5, at + 10), (0, 7), correlation=i, stream=7))
    at = 20 * count
    chrome += [
        event("cuda_runtime", "cudaLaunchKernel", (at, at + 1), correlation=90),
        event("kernel", "long", (at + 5, at + 105), (0, 7), correlation=90, stream=7),
        event("cuda_runtime", "cudaLaunchKernel", (at + 50, at + 51), correlation=91),
        event("kernel", "last", (at + 106, at + 126), (0, 7), correlation=91, stream=7),
    ]
    return Trace(trace([event("cpu_op", "op", (0, at + 60)), *chrome]), Options()).view()


def test_launch_that_takes_over_brings_its_usual_latency() -> None:
    """`long` at nothing: `last` was launched at +51, and starts 1 (gap kept), 4 (usual) or 0 after it."""
    view = launches(5)
    assert view.usual_delays[EdgeKind.LAUNCH] == 4_000
    saving = analyze(view, [parse_change("shrink", "long=0")]).saving
    assert saving == Saving(106_000 - 55_000, 106_000 - 51_000)


def test_delay_is_usual_only_by_five_and_below_only_the_gap_is_kept() -> None:
    view = launches(3)  # with the long kernel's, four launches bind
    assert EdgeKind.LAUNCH not in view.usual_delays
    saving = analyze(view, [parse_change("shrink", "long=0")]).saving
    assert saving == Saving(106_000 - 52_000, 106_000 - 51_000)


def test_slack_of_the_host_leaves_room_for_the_latency_that_its_launch_would_have() -> None:
    """`last` starts 55 after its launch: the call may end 51 later, for the launch takes 4."""
    view = launches(5)
    graph = view.built.graph
    into_last = (graph.edge_kind == EdgeKind.LAUNCH) & (graph.dst == len(graph) - 1)
    call = int(graph.src[into_last][0])
    assert (view.node_name(len(graph) - 1), int(graph.end_ns[call])) == ("last", 151_000)
    assert int(view.slack.total_ns[call]) == 51_000


def test_floor_is_part_of_the_usual_delay() -> None:
    """Of the 4 from launch to start a floor of 1 is the edge's own: what it brings is 4 all the same."""
    raw = launches(5).trace
    view = Trace(raw, Options(floors={EdgeKind.LAUNCH: 1_000})).view()
    assert view.usual_delays[EdgeKind.LAUNCH] == 4_000
    saving = analyze(view, [parse_change("shrink", "long=0")]).saving
    assert saving.join_ns == 106_000 - 55_000
