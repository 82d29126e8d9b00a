"""Ranked names: columns that add up to stated totals, self times only, and savings worked by hand."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from stepcrit.analyses import ranking
from stepcrit.analyses.ranking import Ranked
from stepcrit.answers.tables import ranking_section
from stepcrit.errors import UsageError
from stepcrit.graph import search
from stepcrit.graph.groups import ORPHAN, OTHER_WORK, UNATTRIBUTED, By, group
from stepcrit.graph.replay import Saving, replayer
from stepcrit.graph.search import best, candidates
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.link.presence import presence
from stepcrit.model.events import DEVICE_KINDS
from stepcrit.model.steps import Boundary
from stepcrit.session import Options, StepOptions, Trace, load
from tests.builders import Event, event, trace

ROOT = Path(__file__).parents[2]
PARTS = json.loads((ROOT / "tests" / "golden" / "parts.json").read_text(encoding="utf-8"))
FILES = sorted((ROOT / "fixtures").glob("*/*.json.gz"))


def op(name: str, start: int, end: int) -> Event:
    return event("cpu_op", name, (start, end), (1, 1))


def call(name: str, start: int, end: int, corr: int) -> Event:
    return event("cuda_runtime", name, (start, end), (1, 1), correlation=corr)


def kernel(name: str, start: int, end: int, corr: int, stream: int = 7) -> Event:
    return event("kernel", name, (start, end), (0, stream), correlation=corr, stream=stream)


def view_of(*chrome: Event) -> StepGraph:
    return Trace(trace(chrome), Options()).view()


def rows(view: StepGraph, by: str, **options: int) -> dict[str, Ranked]:
    """Rows by name."""
    return {row.name: row for row in ranking.analyze(view, by, **options).rows}  # type: ignore[arg-type]


# --- conservation ------------------------------------------------------------------------------


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_columns_of_every_grouping_add_up_to_what_they_divide(path: Path) -> None:
    view = load(path).view()
    events, step = view.trace.events, view.step
    inside = events.is_kind(*DEVICE_KINDS)
    device = np.minimum(events.end_ns[inside], step.end_ns) - np.maximum(
        events.start_ns[inside], step.start_ns
    )
    pieces = view.links.pieces
    tracked = np.minimum(pieces.end_ns, step.host_end_ns) - np.maximum(pieces.start_ns, step.host_start_ns)
    totals = (
        int(tracked[(pieces.owner >= 0) & (tracked > 0)].sum()),
        int(device[device > 0].sum()),
        step.elapsed_ns,
    )
    asked = 0
    for by in get_args(By):
        try:
            found = ranking.analyze(view, by, replays=0)  # type: ignore[arg-type]
        except UsageError:
            assert by in ("module", "collective", "line")
            continue
        asked += 1
        sums = [
            sum(getattr(row, name) for row in found.rows)
            for name in ("self_cpu_ns", "device_ns", "critical_ns")
        ]
        assert tuple(sums) == totals, by
        assert (found.self_cpu_ns, found.device_ns, found.critical_ns) == totals, by
        assert len({row.name for row in found.rows}) == len(found.rows), by
        assert all(min(row.calls, row.self_cpu_ns, row.device_ns, row.critical_ns) >= 0 for row in found.rows)
    assert asked >= 3


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_savings_of_names_off_the_path_are_nothing_where_the_step_is_changed_alone(path: Path) -> None:
    """Over several steady steps another step's path may hold the name: then it is unknown, not nothing."""
    found = ranking.analyze(load(path).view(), "op", replays=2)
    off_path = None if found.period_count else Saving(0, 0)
    for row in found.rows:
        if row.side == "gap":
            assert (row.half, row.free, row.slack_min_ns) == (None, None, None)
        elif not row.critical_ns:
            assert (row.half, row.free) == (off_path, off_path)
    replayed = [row for row in found.rows if row.critical_ns and row.free is not None]
    assert len(replayed) == found.replayed <= 2


# --- E01: nested operators ---------------------------------------------------------------------


def nested() -> StepGraph:
    """The golden operators with their launches; kernels queue up behind them."""
    # host  |outer 0..100: |inner1 10..40: l1 15..20|  |inner2 50..70: l3 55..60|   l2 80..85  |
    # s7                              [k1 22......52]            [k3 62..67]           [k2 90..102]
    given = PARTS["rollup"]["given"]
    ops = [op(name, start, start + dur) for name, (start, dur) in given["ops"].items()]
    calls = [
        call("cudaLaunchKernel", start, start + dur, int(i)) for i, (start, dur) in given["launches"].items()
    ]
    starts = {"1": 22, "3": 62, "2": 90}
    kernels = [kernel(f"k{i}", at, at + given["kernels"][i][0], int(i)) for i, at in starts.items()]
    return view_of(event("user_annotation", "ProfilerStep#1", (0, 100), (1, 1)), *ops, *calls, *kernels)


def test_operators_have_self_times_only() -> None:
    found = rows(nested(), "op")
    for name, expect in PARTS["rollup"]["expect"].items():
        assert found[name].self_cpu_ns == expect["cpu_self"] * 1000
        assert found[name].device_ns == expect["device_self"] * 1000
        assert found[name].calls == 1
    runtime = sum(expect["runtime"] for expect in PARTS["rollup"]["expect"].values())
    assert (found["cudaLaunchKernel"].self_cpu_ns, found["cudaLaunchKernel"].calls) == (runtime * 1000, 3)
    assert sum(row.self_cpu_ns for row in found.values()) == 100_000


def test_kernels_are_named_by_themselves_and_the_host_is_one_row() -> None:
    found = rows(nested(), "kernel")
    assert {name: row.device_ns for name, row in found.items() if row.device_ns} == {
        "k1": 30_000,
        "k2": 12_000,
        "k3": 5_000,
    }
    assert (found["(host)"].self_cpu_ns, found["(host)"].device_ns) == (100_000, 0)


# --- slack and savings by hand -----------------------------------------------------------------


def diamond() -> StepGraph:
    """Two queues of which the longer one decides."""
    # host  |op  la 2..4   lb 6..8   30|      path: op 0-2, la 2-4, gap 4-5, a 5-25
    # s7        [a 5.............25]
    # s20                 [b 9....20]         b may end 5 later
    return view_of(
        op("op", 0, 30),
        call("la", 2, 4, 1),
        call("lb", 6, 8, 2),
        kernel("a", 5, 25, 1),
        kernel("b", 9, 20, 2, 20),
    )


def us(saving: Saving | None) -> tuple[int, int] | None:
    return saving and (saving.low_ns // 1000, saving.high_ns // 1000)


def test_slack_and_savings_of_kernels_are_the_hand_worked_ones() -> None:
    found = rows(diamond(), "kernel")
    assert {
        name: (row.critical_ns // 1000, us(row.half), us(row.free), row.side) for name, row in found.items()
    } == {
        "a": (20, (5, 5), (5, 5), "device"),
        "b": (0, (0, 0), (0, 0), "device"),
        "(host)": (4, (1, 2), (2, 4), "host"),  # 2 of the 4 are the call, which may submit at its begin
        "(launch latency)": (1, None, None, "gap"),
    }
    assert {name: found[name].slack_min_ns for name in "ab"} == {"a": 0, "b": 5_000}
    assert {name: found[name].drag_max_ns for name in "ab"} == {"a": 5_000, "b": 0}
    assert found["(launch latency)"].drag_max_ns is None


def test_savings_of_host_names_shorten_their_own_time_only() -> None:
    found = rows(diamond(), "kernel"), rows(diamond(), "class")
    assert us(found[1]["launch"].half) == (0, 1)
    assert us(found[1]["launch"].free) == (0, 2)
    assert us(found[1]["host op"].free) == (2, 2)
    assert us(found[0]["(host)"].free) == (2, 4)


def test_rows_come_by_saving_then_path_then_name() -> None:
    names = [row.name for row in ranking.analyze(diamond(), "kernel").rows]
    assert names == ["a", "(host)", "(launch latency)", "b"]


def test_full_saving_is_at_least_the_half_one_and_at_most_the_time_on_the_path() -> None:
    """From a fixed opening, on one schedule: invariants 5 and 6."""
    for view in (diamond(), nested()):
        for by in ("op", "kernel", "class"):
            for row in rows(view, by, replays=99).values():
                if row.half and row.free:
                    assert 0 <= row.half.low_ns <= row.free.low_ns
                    assert row.half.high_ns <= row.free.high_ns
                    assert row.free.low_ns <= row.critical_ns


def test_orphan_and_unattributed_work_have_rows_of_their_own() -> None:
    view = view_of(op("op", 10, 30), call("la", 2, 4, 1), kernel("a", 5, 25, 1), kernel("b", 26, 28, 99))
    found = rows(view, "op")
    assert found[UNATTRIBUTED].device_ns == 20_000
    assert found[ORPHAN].device_ns == 2_000


@pytest.mark.parametrize(
    ("by", "missing"), [("module", "no modules in this trace"), ("line", "no Python lines in this trace")]
)
def test_grouping_that_the_trace_does_not_record_is_refused(by: str, missing: str) -> None:
    with pytest.raises(UsageError) as refusal:
        rows(diamond(), by)
    assert refusal.value.what.startswith(missing)
    assert "with_stack=True" in refusal.value.do


# --- the search for the best, and what is told of them -----------------------------------------


@pytest.mark.parametrize("by", ["op", "kernel", "class"])
@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_best_names_are_the_best_of_all_though_not_all_are_replayed(path: Path, by: By) -> None:
    """Against the replay of every name; equal savings may stand for each other."""
    view = load(path).view()
    among = candidates(replayer(view), group(view, by))
    gaps = set(among.groups.gap_of_class.values())
    every = [k for k in range(len(among.groups.labels)) if k not in gaps]
    replay = among.replay
    savings = {k: replay.at_least(replay.earlier_at_least(among.variant({k: Fraction(1)}))) for k in every}
    assert all(savings[k] <= among.bound_ns[k] for k in every)
    ranked = sorted(savings.values(), reverse=True)
    for count in (1, 3, 6):
        found = best(among, count)
        assert {k: savings[k] for k in found} == {k: one.saving_ns for k, one in found.items()}
        top = sorted((one.saving_ns for one in found.values()), reverse=True)[:count]
        assert top + [0] * (count - len(top)) == ranked[:count]


def test_search_stops_where_no_bound_beats_the_best() -> None:
    """`a` saves 5 of its 20 on the path; the host's 4 and what is off the path cannot beat that."""
    found = ranking.analyze(diamond(), "kernel", replays=1)
    assert (found.replayed, found.looked_at) == (1, 1)
    assert rows(diamond(), "kernel", replays=1)["(host)"].gains is None


def test_saving_levels_off_where_the_next_path_takes_over() -> None:
    """`a` of 20 saves 5 at a quarter and no more: then `b` decides. The host's 4 never level off."""
    found = {r.name: r for r in ranking.analyze(diamond(), "kernel", detailed=True).rows}
    a, host = found["a"].gains, found["(host)"].gains
    assert a is not None
    assert host is not None
    assert (us(a.quarter), us(a.half), us(a.free)) == ((5, 5), (5, 5), (5, 5))
    assert (a.levels_off_by, a.takes_over) == (Fraction(1, 2), "b")
    # Half of it is the call that lets `a` go: it may submit at its begin, and then only the other half counts.
    assert (us(host.quarter), us(host.free), host.levels_off_by) == ((0, 1), (2, 4), None)


def test_collectives_are_ranked_by_operation_and_group() -> None:
    names: dict[str, object] = {"Process Group Name": "dp", "Group size": 2}
    view = view_of(
        op("op", 0, 20),
        call("la", 2, 4, 1),
        call("lb", 6, 8, 2),
        call("lc", 10, 12, 3),
        {**kernel("ncclDevKernel_AllReduce_Sum", 20, 40, 1), "args": {
            "correlation": 1, "stream": 7, "Collective name": "allreduce", **names}},
        kernel("gemm", 40, 70, 2),
        kernel("ncclDevKernel_SendRecv", 70, 75, 3),
    )  # fmt: skip
    found = rows(view, "collective")
    assert {n: r.device_ns // 1000 for n, r in found.items() if r.device_ns} == {
        "allreduce in group dp": 20,
        "ncclDevKernel_SendRecv": 5,
        OTHER_WORK: 30,
    }
    assert us(found["allreduce in group dp"].free) == (20, 20)
    with pytest.raises(UsageError, match="no collectives on the device"):
        rows(diamond(), "collective")


def test_returns_of_blocking_calls_are_of_the_class_that_the_path_calls_them() -> None:
    """A copy to pageable memory blocks; its call's return of 4 is "sync", whatever class the call has."""
    copy = event("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", (20, 30), (0, 7), correlation=1, stream=7)
    view = view_of(op("op", 0, 50), call("cudaMemcpyAsync", 10, 34, 1), copy, op("end", 50, 60))
    view = Trace(view.trace, Options(StepOptions(Boundary.HOST))).view()
    found = rows(view, "class")
    assert found["sync"].critical_ns == 4_000
    assert us(found["sync"].free) == (4, 4)


def test_where_too_many_might_save_as_much_the_rest_is_bounded_and_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One name may be looked at: the others may save what they have of the path, and the table says so."""
    view = load(ROOT / "fixtures" / "simulated" / "host_bound.json.gz").view()
    whole = ranking.analyze(view, "op", replays=1)
    assert whole.beyond_ns is None
    monkeypatch.setattr(search, "MOST_LOOKED_AT", 1)
    cut = ranking.analyze(view, "op", replays=1)
    among = candidates(replayer(view), group(view, "op"))
    gaps = set(among.groups.gap_of_class.values())
    bounds = sorted((int(n) for k, n in enumerate(among.bound_ns) if k not in gaps), reverse=True)
    assert (cut.looked_at, cut.beyond_ns) == (1, bounds[1])
    notes = [note.template for note in ranking_section(cut, presence(view.trace, view.links), limit=6).notes]
    assert notes[-1].startswith("of many names that might save as much")
