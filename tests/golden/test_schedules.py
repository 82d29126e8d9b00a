"""Every hand-specified schedule of the golden cases: path, slack, drag and what-if, under both gap policies."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path as FilePath
from typing import Any

import numpy as np
import pytest

from stepcrit.graph.assemble import Edges, Nodes, assemble
from stepcrit.graph.drag import drag, slack
from stepcrit.graph.path import PieceKind, critical_path
from stepcrit.graph.schedule import Arrivals, Lags, check_replay, forward, lags, observe, without
from stepcrit.model.graph import EdgeKind, Evidence, Graph, NodeKind

CASES = json.loads((FilePath(__file__).parent / "schedules.json").read_text(encoding="utf-8"))
SCALE = 1000  # golden units become ns here, so that a fifth of 3 units stays an integer
EDGE_KINDS = {
    "thread": EdgeKind.THREAD,
    "launch": EdgeKind.LAUNCH,
    "stream": EdgeKind.STREAM,
    "split": EdgeKind.SPLIT,
    "event": EdgeKind.EVENT,
    "sync": EdgeKind.SYNC,
    "handoff": EdgeKind.HANDOVER,
    "p2p": EdgeKind.PEER,
    "peer": EdgeKind.PEER,
}
EVIDENCE = {
    "observed-id": Evidence.ID,
    "sync": Evidence.SYNC,
    "order": Evidence.ORDER,
    "timing": Evidence.TIMING,
}
NODE_KINDS = {
    "kernel": NodeKind.KERNEL,
    "copy": NodeKind.COPY,
    "collective": NodeKind.COLLECTIVE,
    "sync": NodeKind.SYNC,
    "transfer": NodeKind.TRANSFER,
}
PARAMS = [
    pytest.param(case, policy, id=f"{case['id']}-{policy}")
    for case in CASES
    for policy in ("join", "edge")
    if policy in case["expect"]
]


class Case:
    """One golden schedule as a Graph, with names for its nodes."""

    def __init__(self, case: dict[str, Any], policy: Any) -> None:
        given = case["given"]
        self.given_nodes = given["nodes"]
        names = list(self.given_nodes)
        lanes = sorted({n.get("resource", name) for name, n in self.given_nodes.items()})
        rows = list(self.given_nodes.values())
        nodes = Nodes(
            np.array(
                [lanes.index(n.get("resource", name)) for name, n in self.given_nodes.items()], np.int32
            ),
            np.array([n["start"] * SCALE for n in rows], np.int64),
            np.array([n["dur"] * SCALE for n in rows], np.int64),
            np.array([NODE_KINDS.get(n.get("kind", "cpu"), NodeKind.HOST) for n in rows], np.int8),
            np.arange(len(rows), dtype=np.int64),
            np.zeros(len(rows), np.int32),
        )
        ends = [(names.index(u), names.index(v)) for u, v, *_ in given["edges"]]
        edges = Edges(
            np.array([u for u, _ in ends], np.int64),
            np.array([v for _, v in ends], np.int64),
            np.array([EDGE_KINDS[e[2]] if len(e) > 2 else EdgeKind.THREAD for e in given["edges"]], np.int8),
            np.array([EVIDENCE[e[3]] if len(e) > 3 else Evidence.ORDER for e in given["edges"]], np.int8),
        )
        self.graph, number = assemble(nodes, edges, t0_ns=given["t0"] * SCALE, notes={})
        self.name = {int(number[i]): name for i, name in enumerate(names)}
        self.number = {name: v for v, name in self.name.items()}
        floors = {EDGE_KINDS[k]: v * SCALE for k, v in (given["floors"] or {}).items()}
        self.arrivals: Arrivals = observe(self.graph, floors)
        self.lags: Lags = lags(self.graph, self.arrivals, policy)
        self.sinks = self._sinks(given["sinks"])

    def _sinks(self, given: list[str] | None) -> list[int]:
        if given is not None:
            return [self.number[name] for name in given]
        inner = set(self.graph.src.tolist())
        return [v for v in range(len(self.graph)) if v not in inner]

    @property
    def boundary(self) -> int:
        return max(int(self.graph.end_ns[v]) for v in self.sinks)

    def selected(self, select: dict[str, list[str]]) -> np.ndarray:
        keys = {"ids": None, "kind": "kind", "cat": "category", "res": "resource"}
        mask = np.zeros(len(self.graph), np.bool_)
        for how, values in select.items():
            for name, node in self.given_nodes.items():
                got = name if how == "ids" else node.get(keys[how] or "")
                mask[self.number[name]] |= got in values
        return mask

    def after(self, ops: list[dict[str, Any]]) -> int:
        dur, delays = self.graph.dur_ns.copy(), self.lags
        for op in ops:
            mask = self.selected(op["select"])
            if op["op"] == "scale":
                factor = Fraction(str(op["factor"]))
                dur[mask] = [int(factor * int(d)) for d in dur[mask]]
            elif op["op"] == "set":
                dur[mask] = op["dur"] * SCALE
            else:
                dur[mask] = 0
                if op.get("with_gap", True):
                    delays = without(self.graph, delays, mask)
        start = forward(self.graph, dur, delays)
        return max(int(start[v] + dur[v]) for v in self.sinks)


def scaled(value: Any) -> int | None:
    return None if value is None else int(value * SCALE)


def named(case: Case, values: np.ndarray) -> dict[str, int | None]:
    return {name: (None if values[v] < 0 else int(values[v])) for name, v in case.number.items()}


@pytest.mark.parametrize(("given", "policy"), PARAMS)
def test_replay_is_exact_and_the_path_is_the_hand_worked_one(given: dict[str, Any], policy: str) -> None:
    case, expect = Case(given, policy), given["expect"][policy]
    check_replay(case.graph, case.lags)
    path = critical_path(case.graph, case.arrivals, case.sinks)
    label = {PieceKind.NODE: "", PieceKind.LAG: "lag:", PieceKind.GAP: "gap:"}
    segments = [
        [label[PieceKind(k)] + case.name[int(v)], int(a), int(b)]
        for k, v, a, b in zip(path.kind, path.node, path.start_ns, path.end_ns, strict=True)
        if b > a
    ]
    assert segments == [[name, scaled(a), scaled(b)] for name, a, b in expect["segments"]]
    nodes = [case.name[int(v)] for k, v in zip(path.kind, path.node, strict=True) if k == PieceKind.NODE]
    assert nodes == expect["critical_path"]
    assert (path.ties, path.path_count) == (expect["ties"], expect["critical_paths"])
    assert case.boundary == scaled(expect["finish"])


@pytest.mark.parametrize(("given", "policy"), PARAMS)
def test_gaps_slack_and_drag_are_the_hand_worked_ones(given: dict[str, Any], policy: str) -> None:
    case, expect = Case(given, policy), given["expect"][policy]
    gaps = {n: g for n, g in named(case, case.arrivals.gap_ns).items() if g}
    assert gaps == {n: scaled(g) for n, g in expect["gaps"].items()}
    sinks = dict.fromkeys(case.sinks, case.boundary)
    found = slack(case.graph, case.lags, sinks)
    assert named(case, found.total_ns) == {n: scaled(v) for n, v in expect["total_slack"].items()}
    assert named(case, found.free_ns) == {n: scaled(v) for n, v in expect["free_slack"].items()}
    drags = drag(case.graph, case.lags, case.arrivals.gap_ns, sinks)
    assert named(case, drags.drag_ns) == {n: scaled(v) for n, v in expect["drag"].items()}
    gap_drag = named(case, drags.gap_drag_ns)
    assert {n: gap_drag[n] for n in expect["gap_drag"]} == {
        n: scaled(v) for n, v in expect["gap_drag"].items()
    }


@pytest.mark.parametrize(("given", "policy"), PARAMS)
def test_what_if_replays_give_the_hand_worked_finish(given: dict[str, Any], policy: str) -> None:
    case, expect = Case(given, policy), given["expect"][policy]
    for what_if in expect["whatif"]:
        assert case.after(what_if["ops"]) == scaled(what_if["finish"]), what_if


def test_run_ahead_saves_by_the_period_not_by_the_latency() -> None:
    """G33: kernels at a fifth save 20 a step; the latency of a single step would promise 24."""
    given = next(case for case in CASES if case["id"] == "G33")
    case, extra = Case(given, "edge"), given["expect"]["extra"]
    dur = case.graph.dur_ns.copy()
    for name in ("g0", "g1", "g2", "g3"):
        dur[case.number[name]] //= 5
    ends = forward(case.graph, dur, case.lags) + dur
    boundaries = [int(ends[case.number[g]]) // SCALE for g in ("g0", "g1", "g2", "g3")]
    assert np.diff(boundaries).tolist() == extra["periods_if_kernels_x0_2"]


def test_graph_is_read_only() -> None:
    graph: Graph = Case(CASES[0], "join").graph
    with pytest.raises(ValueError, match="read-only"):
        graph.dur_ns[0] = 1
