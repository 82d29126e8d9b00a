"""The golden Kineto-like event lists: nodes, edges with evidence, path, slack and drag from raw events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepcrit.graph.build import TraceGraph, build_graph
from stepcrit.graph.drag import drag, slack
from stepcrit.graph.path import PieceKind, critical_path
from stepcrit.graph.scene import Rules
from stepcrit.graph.schedule import check_replay, lags
from stepcrit.link.linker import link
from stepcrit.model.events import EventKind, EventTable
from stepcrit.model.graph import EdgeKind, Evidence, NodeKind
from stepcrit.model.links import Links
from tests.builders import trace

CASES = json.loads((Path(__file__).parent / "traces.json").read_text(encoding="utf-8"))
EDGES = {
    EdgeKind.THREAD: "thread",
    EdgeKind.LAUNCH: "launch",
    EdgeKind.STREAM: "stream",
    EdgeKind.SPLIT: "split",
    EdgeKind.EVENT: "event",
    EdgeKind.SYNC: "sync",
}
EVIDENCE = {
    Evidence.ID: "observed-id",
    Evidence.SYNC: "sync",
    Evidence.ORDER: "order",
    Evidence.TIMING: "timing",
}
NOTES = {
    "T06": {"queue successor starts before its predecessor ends: predecessor split": 1},
    "T08": {"device activity without a launch in the trace": 1},
    "T10": {"device activity starts just before its launch: launch point clamped": 1},
    "T11": {"device activity starts before its launch: launch edge dropped": 1},
    "T14": {"dependency inferred from timing only": 2},
}


class Built:
    """One golden trace, built at full detail, with the golden names for its nodes."""

    def __init__(self, case: dict[str, Any]) -> None:
        raw = trace(case["traceEvents"])
        self.events: EventTable = raw.events
        self.links: Links = link(raw)
        self.built: TraceGraph = build_graph(
            self.events, self.links, rules=Rules(strict="timing" not in case["options"]), full=True
        )
        self.graph = self.built.graph
        self.names = [self._name(v) for v in range(len(self.graph))]
        self.sinks = [self.names.index(name) for name in case["expect"]["sinks"]]
        self.boundary = max(int(self.graph.end_ns[v]) for v in self.sinks)

    def _name(self, node: int) -> str:
        row = int(self.graph.row[node])
        if self.graph.kind[node] >= NodeKind.KERNEL:
            return self.events.name_of(row) + ("#tail" if self.graph.part[node] > 1 else "")
        owner = "untracked" if row < 0 else self.events.name_of(row)
        return (
            f"{self.events.lanes[self.graph.lane[node]].tid}:{owner}@{int(self.graph.start_ns[node]) // 1000}"
        )

    def kind(self, node: int) -> str:
        kind, row = NodeKind(self.graph.kind[node]), int(self.graph.row[node])
        if kind != NodeKind.HOST:
            return {NodeKind.COLLECTIVE: "kernel"}.get(kind, kind.name.lower())
        launches = set(self.links.launch.tolist())
        return "untracked" if row < 0 else "launch" if row in launches else "host"


@pytest.fixture(params=CASES, ids=lambda case: case["id"])
def case(request: pytest.FixtureRequest) -> dict[str, Any]:
    return dict(request.param)


def us(values: np.ndarray, names: list[str], *, null: bool = True) -> dict[str, int | None]:
    return {
        n: (None if null and v < 0 else int(v) // 1000) for n, v in zip(names, values.tolist(), strict=True)
    }


def test_nodes_are_the_hand_cut_ones(case: dict[str, Any]) -> None:
    b = Built(case)
    found = {
        name: (int(b.graph.start_ns[v]) // 1000, int(b.graph.dur_ns[v]) // 1000, b.kind(v))
        for v, name in enumerate(b.names)
    }
    assert found == {n: (x["start"], x["dur"], x["kind"]) for n, x in case["expect"]["nodes"].items()}


def test_edges_and_their_evidence_are_the_stated_ones(case: dict[str, Any]) -> None:
    b = Built(case)
    columns = (b.graph.src, b.graph.dst, b.graph.edge_kind, b.graph.evidence)
    found = {
        (b.names[u], b.names[v], EDGES[EdgeKind(k)], EVIDENCE[Evidence(e)])
        for u, v, k, e in zip(*columns, strict=True)
    }
    assert found == {tuple(edge) for edge in case["expect"]["edges"]}
    assert dict(b.graph.notes) == NOTES.get(case["id"], {})


def test_path_slack_and_drag_are_the_hand_worked_ones(case: dict[str, Any]) -> None:
    b, expect = Built(case), case["expect"]
    delays = lags(b.graph, b.built.arrivals, "join")
    check_replay(b.graph, delays)
    path = critical_path(b.graph, b.built.arrivals, b.sinks)
    segments = [
        [("gap:" if k == PieceKind.GAP else "") + b.names[v], int(s) // 1000, int(e) // 1000]
        for k, v, s, e in zip(path.kind, path.node, path.start_ns, path.end_ns, strict=True)
    ]
    assert segments == expect["segments"]
    assert int(path.end_ns[-1] - path.start_ns[0]) // 1000 == expect["elapsed"]
    gaps = {n: g for n, g in us(b.built.arrivals.gap_ns, b.names).items() if g}
    assert gaps == expect["gaps"]
    sinks = dict.fromkeys(b.sinks, b.boundary)
    assert us(slack(b.graph, delays, sinks).total_ns, b.names) == expect["total_slack"]
    drags = us(drag(b.graph, delays, b.built.arrivals.gap_ns, sinks).drag_ns, b.names)
    assert {n: d for n, d in drags.items() if d} == {n: d for n, d in expect["drag"].items() if d}


def test_coarse_cutting_gives_the_same_path_time_by_owner(case: dict[str, Any]) -> None:
    """Fewer nodes, same answer: the path's instants are the same set of stretches, merged or not."""
    raw = trace(case["traceEvents"])
    links = link(raw)
    rules = Rules(strict="timing" not in case["options"])
    fine, coarse = (build_graph(raw.events, links, rules=rules, full=full) for full in (True, False))
    assert len(coarse.graph) <= len(fine.graph)
    device = np.flatnonzero(raw.events.is_kind(EventKind.KERNEL, EventKind.MEMCPY))
    ends = []
    for built in (fine, coarse):
        path = critical_path(built.graph, built.arrivals, built.parts_of(device.tolist()))
        on_device = built.graph.kind[path.node] >= NodeKind.KERNEL
        ends.append(
            [(int(s), int(e)) for s, e in zip(path.start_ns[on_device], path.end_ns[on_device], strict=True)]
        )
    assert ends[0] == ends[1]
