"""From claims to a graph: cuts, parts, rows found again, boundaries, and what building counts; times in µs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepcrit.graph.build import TraceGraph, build_graph
from stepcrit.graph.scene import Rules
from stepcrit.graph.schedule import check_replay, lags
from stepcrit.graph.threads import shares
from stepcrit.link.linker import link
from stepcrit.model.events import DEVICE_KINDS
from stepcrit.model.graph import EdgeKind, NodeKind
from stepcrit.session import load
from tests.builders import Event, event, trace

FILES = sorted((Path(__file__).parents[2] / "fixtures").glob("*/*.json.gz"))


def op(name: str, start: int, end: int) -> Event:
    return event("cpu_op", name, (start, end), (1, 1))


def call(name: str, start: int, end: int, corr: int) -> Event:
    return event("cuda_runtime", name, (start, end), (1, 1), correlation=corr)


def kernel(name: str, start: int, end: int, corr: int, stream: int = 7) -> Event:
    return event("kernel", name, (start, end), (0, stream), correlation=corr, stream=stream)


def build(chrome: list[Event], **options: Any) -> TraceGraph:
    raw = trace(chrome)
    return build_graph(raw.events, link(raw), **options)


def host_spans(built: TraceGraph) -> list[tuple[int, int]]:
    """Host nodes in µs."""
    graph = built.graph
    host = graph.kind < NodeKind.KERNEL
    return [
        (int(a) // 1000, int(b) // 1000)
        for a, b in zip(graph.start_ns[host], graph.end_ns[host], strict=True)
    ]


ONE = [op("op", 0, 30), call("la", 2, 4, 1), kernel("a", 5, 25, 1)]


def test_thread_is_cut_only_where_something_attaches() -> None:
    """At the launch point; at every change of owner only in full detail."""
    assert host_spans(build(ONE)) == [(0, 4), (4, 30)]
    assert host_spans(build(ONE, full=True)) == [(0, 2), (2, 4), (4, 30)]


def test_boundary_of_a_step_is_a_cut() -> None:
    built = build(ONE, boundaries=[(0, 12_000)])
    assert host_spans(built) == [(0, 4), (4, 12), (12, 30)]
    node = built.host_node_ending(0, 12_000)
    assert int(built.graph.end_ns[node]) == 12_000


def test_host_node_ending_is_the_last_one_to_end_by_the_instant() -> None:
    built = build(ONE)
    assert int(built.graph.end_ns[built.host_node_ending(0, 29_999)]) == 4_000
    assert built.host_node_ending(0, 3_999) == -1


def test_launch_from_the_first_instant_of_a_thread_hangs_on_an_empty_marker() -> None:
    built = build([call("la", 0, 9, 1), kernel("a", 0, 25, 1)])
    assert host_spans(built)[0] == (0, 0)
    assert (built.graph.edge_kind == EdgeKind.LAUNCH).sum() == 1


def test_blocked_stretch_of_a_call_is_no_node() -> None:
    chrome = [
        op("op", 0, 60),
        call("la", 2, 4, 1),
        call("cudaDeviceSynchronize", 6, 35, 2),
        kernel("a", 5, 33, 1),
    ]
    built = build(chrome)
    assert host_spans(built) == [(0, 4), (4, 6), (33, 35), (35, 60)]
    sync = built.graph.kind == NodeKind.SYNC
    assert (int(built.graph.start_ns[sync][0]), int(sync.sum())) == (33_000, 1)


def test_parts_of_a_split_activity_are_found_by_its_row_and_numbered() -> None:
    """B starts inside a, and c inside b: two parts each, in order, joined by split edges."""
    chrome = [
        op("op", 0, 30), call("la", 2, 4, 1), call("lb", 6, 7, 2), call("lc", 8, 9, 3),
        kernel("a", 5, 30, 1), kernel("b", 10, 12, 2), kernel("c", 11, 40, 3),
    ]  # fmt: skip
    raw = trace(chrome)
    built = build_graph(raw.events, link(raw))
    row = next(r for r in range(len(raw.events)) if raw.events.name_of(r) == "a")
    graph = built.graph
    mine = np.flatnonzero((graph.row == row) & (graph.kind == NodeKind.KERNEL))
    spans = [(int(graph.start_ns[v]) // 1000, int(graph.end_ns[v]) // 1000, int(graph.part[v])) for v in mine]
    assert spans == [(5, 10, 1), (10, 30, 2)]
    assert (int(built.first_node[row]), int(built.last_node[row])) == (int(mine[0]), int(mine[-1]))
    assert built.parts_of([row]) == [int(mine[0]), int(mine[-1])]
    assert (graph.edge_kind == EdgeKind.SPLIT).sum() == 2


def test_host_rows_have_no_device_node() -> None:
    raw = trace(ONE)
    built = build_graph(raw.events, link(raw))
    assert [int(v) >= 0 for v in built.first_node] == [
        name == "a" for name in map(raw.events.name_of, range(3))
    ]


def test_kinds_of_device_nodes_are_kernel_copy_and_collective() -> None:
    chrome = [
        *ONE, call("lc", 6, 7, 2), call("lm", 8, 9, 3),
        event("gpu_memcpy", "Memcpy DtoD", (40, 45), (0, 7), correlation=2, stream=7),
        kernel("ncclDevKernel_AllReduce", 50, 60, 3),
    ]  # fmt: skip
    graph = build(chrome).graph
    device = graph.kind[graph.kind >= NodeKind.KERNEL].tolist()
    assert device == [NodeKind.KERNEL, NodeKind.COPY, NodeKind.COLLECTIVE]


def test_origin_is_the_first_start_on_host_or_device() -> None:
    assert build(ONE).graph.t0_ns == 0
    assert build([kernel("early", -50, -40, 99), *ONE]).graph.t0_ns == -50_000
    assert build(ONE, rules=Rules(device_only=True)).graph.t0_ns == 5_000


def test_empty_trace_is_an_empty_graph() -> None:
    built = build([])
    assert (len(built.graph), len(built.graph.src)) == (0, 0)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
@pytest.mark.parametrize("full", [True, False], ids=["full", "merged"])
def test_graph_of_every_fixture_keeps_its_promises(path: Path, full: bool) -> None:  # noqa: FBT001
    """Replay is exact, edges go forward in number and time, each activity is whole, each host instant once."""
    made = load(path)
    events, links = made.raw.events, made.links
    built = build_graph(events, links, full=full)
    graph = built.graph
    for policy in ("join", "edge"):
        check_replay(graph, lags(graph, built.arrivals, policy))  # type: ignore[arg-type]
    assert (graph.src < graph.dst).all()
    assert (graph.end_ns[graph.src] <= graph.start_ns[graph.dst]).all()
    device = np.flatnonzero(events.is_kind(*DEVICE_KINDS))
    length = np.zeros(len(events), np.int64)
    on_device = graph.kind >= NodeKind.KERNEL
    np.add.at(length, graph.row[on_device], graph.dur_ns[on_device])
    assert (length[device] == (events.end_ns - events.start_ns)[device]).all()
    share = shares(links.pieces, built.threads)
    per_node = np.bincount(share.node, weights=share.length_ns, minlength=len(built.threads.lane))
    assert (per_node == built.threads.end_ns - built.threads.start_ns).all()
    same = built.threads.lane[1:] == built.threads.lane[:-1]
    assert (built.threads.end_ns[:-1][same] <= built.threads.start_ns[1:][same]).all()
