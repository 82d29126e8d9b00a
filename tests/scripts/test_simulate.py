"""The simulator keeps the laws of the machine it imitates, and its files are what it would write today."""

from __future__ import annotations

import ast
import gzip
import json
import re
import socket
from collections import defaultdict
from functools import cache
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
import simulate as cli
from simulator import kineto, truth
from simulator.change import Change, apply
from simulator.engine import simulate
from simulator.journal import Run, Span
from simulator.kineto import OFFSET_NS
from simulator.program import Launch, Program
from simulator.scenarios import SCENARIOS

ROOT = Path(__file__).parents[2]
SOURCES = [ROOT / "scripts" / "simulate.py", *sorted((ROOT / "scripts" / "simulator").glob("*.py"))]
DRAWS = [(name, seed) for name in SCENARIOS for seed in (0, 1, 2)]
"""Seed 0 stands for the default parameters, the others for random ones."""

drawn = pytest.mark.parametrize(("name", "seed"), DRAWS)


@cache
def program_of(name: str, seed: int) -> Program:
    scenario = SCENARIOS[name]
    params = scenario.draw(Random(seed)) if seed else None
    return scenario.program(params, seed)


@cache
def run_of(name: str, seed: int) -> Run:
    return simulate(program_of(name, seed))


@cache
def fresh_files() -> dict[str, str]:
    return cli.fixtures()


def lanes(run: Run) -> list[list[Span]]:
    """Device spans by rank and stream, in the order they began."""
    grouped: defaultdict[tuple[int, str | int], list[Span]] = defaultdict(list)
    for span in run.spans:
        if span.on_device:
            grouped[span.rank, span.lane].append(span)
    return [sorted(spans, key=lambda s: (s.start_ns, s.correlation)) for spans in grouped.values()]


def launch_of(span: Span) -> Span:
    assert span.parent is not None
    return span.parent


# -- laws of the engine


@drawn
def test_work_of_one_stream_overlaps_only_by_dependent_launch_or_graph_branch(name: str, seed: int) -> None:
    overlaps = sum(b.start_ns < a.end_ns for lane in lanes(run_of(name, seed)) for a, b in pairwise(lane))
    assert (overlaps > 0) == (name in {"pdl_overlap", "graph_step"})


@drawn
def test_streams_run_in_launch_order(name: str, seed: int) -> None:
    for lane in lanes(run_of(name, seed)):
        correlations = [span.correlation for span in lane]
        assert correlations == sorted(correlations)


@drawn
def test_no_device_work_begins_before_its_launch_call(name: str, seed: int) -> None:
    device = [span for span in run_of(name, seed).spans if span.on_device]
    assert device
    assert all(span.start_ns > launch_of(span).start_ns for span in device)


@drawn
def test_every_span_ends_and_every_dependency_is_kept(name: str, seed: int) -> None:
    run = run_of(name, seed)
    assert all(span.end_ns >= span.start_ns for span in run.spans)
    for dependency in run.dependencies:
        before, after, why = dependency.before, dependency.after, dependency.why
        if why in {"stream", "event", "graph", "hand-over"}:
            # An operator may still be open when its thread wakes another: then its begin is what counts.
            done_ns = before.start_ns if why == "hand-over" else before.end_ns
            assert after.start_ns >= done_ns
        elif why in {"sync", "copy", "queue"}:
            assert after.end_ns >= before.end_ns
        else:
            assert why in {"launch", "pdl", "peer"}


@drawn
def test_host_spans_of_one_thread_nest_strictly(name: str, seed: int) -> None:
    # Equal intervals would leave it open which of two operators is the outer one.
    for span in run_of(name, seed).spans:
        if not span.on_device and span.parent is not None:
            assert span.parent.start_ns < span.start_ns
            assert span.end_ns < span.parent.end_ns


@drawn
def test_a_launch_call_returns_only_when_the_queue_has_room(name: str, seed: int) -> None:
    run = run_of(name, seed)
    depth = run.program.machine.queue_depth
    for lane in lanes(run):
        tasks: dict[int, list[Span]] = defaultdict(list)
        for span in lane:
            tasks[span.correlation].append(span)
        ends = [max(span.end_ns for span in spans) for spans in tasks.values()]
        returns = [launch_of(spans[0]).end_ns for spans in tasks.values()]
        assert all(back >= end for end, back in zip(ends, returns[depth:], strict=False))


def test_collectives_end_together_after_the_last_arrival_and_one_transfer() -> None:
    run = simulate(SCENARIOS["ddp_tail"].program({"jitter_permille": 0}))
    met: defaultdict[str, list[Span]] = defaultdict(list)
    for span in run.spans:
        collective = getattr(span.action, "collective", None)
        if span.on_device and collective:
            met[collective.key].append(span)
    assert len(met) == 15
    for spans in met.values():
        assert len({span.end_ns for span in spans}) == 1
        last = max(spans, key=lambda span: span.start_ns)
        assert last.end_ns - last.start_ns == getattr(last.action, "ns", None)
        assert {span.peer_cause for span in spans} == {last.rank}


@drawn
def test_the_same_seed_gives_the_same_run(name: str, seed: int) -> None:
    first, second = run_of(name, seed), simulate(program_of(name, seed))
    assert kineto.write(first, 0).text == kineto.write(second, 0).text


def test_another_seed_gives_another_run() -> None:
    scenario = SCENARIOS["device_bound"]
    first, second = (simulate(scenario.program(seed=seed)) for seed in (1, 2))
    assert [s.start_ns for s in first.spans] != [s.start_ns for s in second.spans]


# -- changes

CHANGES = [
    Change("kernel"),
    Change("transfer", percent=0),
    Change("self"),
    Change("host", percent=0),
    Change("op"),
    Change("launch", percent=10),
    Change("data"),
    Change("remove_sync"),
]


@drawn
def test_shortening_never_makes_a_device_step_end_later(name: str, seed: int) -> None:
    # Order on every lane is fixed by the program, so each time is a maximum of sums of durations.
    before = _device_ends(run_of(name, seed))
    program = program_of(name, seed)
    for change in (*CHANGES, *SCENARIOS[name].changes):
        after = _device_ends(simulate(apply(change, program)))
        assert all(after[key] <= end for key, end in before.items() if key in after), change


def _device_ends(run: Run) -> dict[tuple[int, int], int]:
    ends: dict[tuple[int, int], int] = {}
    for span in run.spans:
        if span.on_device:
            ends[span.rank, span.step] = max(ends.get((span.rank, span.step), 0), span.end_ns)
    return ends


@drawn
def test_a_change_to_all_of_it_by_one_hundred_percent_changes_nothing(name: str, seed: int) -> None:
    run = run_of(name, seed)
    for what in ("kernel", "transfer", "self", "host", "op", "launch", "data"):
        same = simulate(apply(Change(what, percent=100), program_of(name, seed)))
        assert _times(same) == _times(run)


def _times(run: Run) -> list[tuple[str, int, int]]:
    return [(span.name, span.start_ns, span.end_ns) for span in run.spans]


def test_unchanged_activities_keep_their_luck() -> None:
    program = program_of("device_bound", 1)
    changed = simulate(apply(Change("remove_op", "aten::linear"), program))
    kept = {_key(span): span.end_ns - span.start_ns for span in changed.spans if span.on_device}
    before = {
        _key(span): span.end_ns - span.start_ns for span in run_of("device_bound", 1).spans if span.on_device
    }
    assert 0 < len(kept) < len(before)
    assert all(before[key] == ns for key, ns in kept.items())


def _key(span: Span) -> str:
    launch = launch_of(span).action
    assert isinstance(launch, Launch)
    return launch.key


@pytest.mark.parametrize("name", SCENARIOS)
def test_changes_with_slack_save_nothing_and_changes_on_the_path_save_something(name: str) -> None:
    program = program_of(name, 0)
    before = sum(truth.periods(truth.steps(run_of(name, 0), 0)))
    for change in SCENARIOS[name].changes:
        saved = before - sum(truth.periods(truth.outcome(program, change)[0]))
        if change.role == "slack":
            assert abs(saved) <= before // 1_000, change
        if change.role == "path":
            assert saved > before // 100, change


# -- files


@pytest.mark.parametrize("name", sorted(fresh_files()))
def test_committed_fixtures_are_what_the_simulator_writes_today(name: str) -> None:
    data = (cli.FIXTURES / name).read_bytes()
    text = (gzip.decompress(data) if name.endswith(".gz") else data).decode()
    assert text == fresh_files()[name]


def test_no_other_file_lies_among_the_fixtures() -> None:
    assert {path.name for path in cli.FIXTURES.iterdir()} == set(fresh_files())


def test_fixtures_stay_small() -> None:
    sizes = {path.name: path.stat().st_size for path in cli.FIXTURES.iterdir()}
    assert sum(sizes.values()) < 600_000
    assert max(size for name, size in sizes.items() if name.endswith(".gz")) < 60_000


TRACES = sorted(name for name in fresh_files() if name.endswith(".json.gz"))


def _trace(name: str) -> dict[str, Any]:
    """Read a trace with times as exact nanoseconds."""
    document: dict[str, Any] = json.loads(fresh_files()[name], parse_float=_ns_or_float)
    return document


def _ns_or_float(text: str) -> int | float:
    whole, _, fraction = text.partition(".")
    return int(whole + fraction) if len(fraction) == 3 else float(text)


def _truth(name: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(fresh_files()[name.replace(".json.gz", ".truth.json")])
    return told


@pytest.mark.parametrize("name", TRACES)
def test_traces_have_the_keys_of_real_ones(name: str) -> None:
    trace = json.loads(fresh_files()[name])
    assert {
        "schemaVersion",
        "deviceProperties",
        "baseTimeNanoseconds",
        "displayTimeUnit",
        "traceEvents",
    } <= set(trace)
    assert ("distributedInfo" in trace) == name.startswith("ddp")
    for event in trace["traceEvents"]:
        assert {"ph", "name", "ts", "pid", "tid"} <= set(event)
        if event["ph"] == "X":
            assert event["dur"] >= 0
            assert "cat" in event
        if event.get("cat") in {"kernel", "gpu_memcpy"}:
            assert {"device", "context", "stream", "correlation"} <= set(event["args"])


@pytest.mark.parametrize("name", TRACES)
def test_traces_name_no_machine_user_or_path(name: str) -> None:
    text = fresh_files()[name]
    assert socket.gethostname() not in text
    assert not re.search(r'host_?name|user_?name|"/|/home|/root|/tmp', text, re.IGNORECASE)


@pytest.mark.parametrize("name", TRACES)
def test_the_truth_about_steps_can_be_read_off_the_trace(name: str) -> None:
    events = [
        event for event in _trace(name)["traceEvents"] if event["ph"] == "X" and event["cat"] != "Trace"
    ]
    origin_ns = min(event["ts"] for event in events)
    windows = [e for e in events if e["cat"] == "user_annotation" and e["name"].startswith("ProfilerStep#")]
    launches = {
        e["args"]["correlation"]: e["ts"] for e in events if e["cat"] in {"cuda_runtime", "cuda_driver"}
    }
    device = [event for event in events if event["cat"] in {"kernel", "gpu_memcpy"}]
    assert origin_ns >= OFFSET_NS
    for window, step in zip(windows, _truth(name)["steps"], strict=True):
        end = window["ts"] + window["dur"]
        own = [e for e in device if window["ts"] <= launches.get(e["args"]["correlation"], -1) < end]
        assert step["label"] == window["name"]
        assert step["host_start_ns"] == window["ts"] - origin_ns
        assert step["host_end_ns"] == end - origin_ns
        assert step["device_end_ns"] == max(e["ts"] + e["dur"] for e in own) - origin_ns


@pytest.mark.parametrize("name", TRACES)
def test_the_truth_about_dependencies_points_at_the_right_events(name: str) -> None:
    events, told = _trace(name)["traceEvents"], _truth(name)
    device = {number for number, event in enumerate(events) if event.get("cat") in {"kernel", "gpu_memcpy"}}
    assert device == {int(number) for number in told["binding"]}
    assert set(told["binding"].values()) <= {"launch", "queue", "stream", "pdl", "event", "graph"}
    for before, after, why in told["dependencies"]:
        if why == "launch":
            assert events[before]["args"]["correlation"] == events[after]["args"]["correlation"]
            assert after in device
        if why in {"stream", "event"}:
            assert {before, after} <= device
            assert events[before]["ts"] + events[before]["dur"] <= events[after]["ts"]


@pytest.mark.parametrize("name", TRACES)
def test_the_truth_holds_at_least_three_changes(name: str) -> None:
    told = _truth(name)
    assert {"scenario", "seed", "parameters", "steps", "period_ns"} <= set(told)
    assert len(told["changes"]) >= 3
    for change in told["changes"]:
        assert len(change["period_ns"]) == len(told["period_ns"]) == len(told["steps"]) - 1
        assert change["selector_hint"]


def test_waits_on_events_are_recorded_only_where_asked() -> None:
    def kinds(name: str) -> set[str]:
        return {e["name"] for e in _trace(name)["traceEvents"] if e.get("cat") == "cuda_sync"}

    assert kinds("two_streams.json.gz") == set()
    assert kinds("two_streams_sync_records.json.gz") == {"Stream Wait Event", "Context Sync"}


def test_two_ranks_name_the_same_collectives() -> None:
    def calls(rank: int) -> list[tuple[str, int]]:
        events = _trace(f"ddp_tail.rank{rank}.json.gz")["traceEvents"]
        return [
            (e["name"], e["args"]["Seq"]) for e in events if e.get("cat") == "kernel" and "Seq" in e["args"]
        ]

    assert calls(0) == calls(1) != []


# -- the script


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_the_simulator_imports_nothing_from_the_package(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert not [name for name in names if name.startswith("stepcrit")]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_files_stay_small_enough_to_read(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400


def test_write_makes_a_trace_and_its_truth_for_every_rank(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        cli.main(["write", "ddp_tail", "--seed", "5", "--out", str(tmp_path), "--draw", "--ranks", "3"]) == 0
    )
    names = {f"ddp_tail.rank{rank}.{end}" for rank in range(3) for end in ("json.gz", "truth.json")}
    assert {path.name for path in tmp_path.iterdir()} == names
    assert "ddp_tail.rank2.json.gz" in capsys.readouterr().out


def test_list_names_every_scenario(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["list"]) == 0
    assert all(name in capsys.readouterr().out for name in ["item_sync"])
