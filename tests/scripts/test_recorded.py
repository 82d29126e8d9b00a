"""The recorded fixtures are what their README says, and give nothing away."""

from __future__ import annotations

import getpass
import gzip
import itertools
import json
import re
import socket
import statistics
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from stepcrit.ingest.limits import Limits
from stepcrit.slimming.looking import look_at

RECORDED = Path(__file__).resolve().parents[2] / "fixtures" / "recorded"
NAMES = sorted(path.name.removesuffix(".json.gz") for path in RECORDED.glob("*.json.gz"))
MEASURED = sorted(path.name.removesuffix(".measured.json") for path in RECORDED.glob("*.measured.json"))
WAIT_FOR_DATA = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"

PAIRS = (
    "loader_halved",
    "loader_hidden",
    "op_halved",
    "small_ops_halved",
    "copies_removed",
    "python_halved",
    "wait_removed",
    "barrier_removed",
)
"""Recorded in turns, before and after."""

# Words that a trace has of its own accord, so that a machine or user of that name proves nothing.
COMMON_WORDS = {"python", "thread", "torch", "main", "cpu", "default", "localhost", "stream"}


@cache
def trace(name: str) -> dict[str, Any]:
    return dict(json.loads(text_of(name)))


def text_of(name: str) -> str:
    return gzip.decompress((RECORDED / f"{name}.json.gz").read_bytes()).decode()


def spans(name: str, start: str) -> list[dict[str, Any]]:
    """The complete events whose name starts so, in time order."""
    found = [e for e in trace(name)["traceEvents"] if e["ph"] == "X" and e["name"].startswith(start)]
    return sorted(found, key=lambda event: float(event["ts"]))


def median_dur(name: str, start: str) -> float:
    return statistics.median(float(event["dur"]) for event in spans(name, start))


def median_ns(name: str) -> int:
    return int(json.loads((RECORDED / f"{name}.measured.json").read_text())["median_ns"])


def inside(outer: dict[str, Any], inner: dict[str, Any]) -> bool:
    start = float(outer["ts"])
    return start <= float(inner["ts"]) < start + float(outer["dur"])


# --- what the README says ----------------------------------------------------------------------


def test_readme_has_a_row_for_each_file_and_no_other() -> None:
    rows = re.findall(r"^\| `([^`]+)`", (RECORDED / "README.md").read_text(), re.MULTILINE)
    assert sorted(rows) == sorted(path.name for path in RECORDED.glob("*.*") if path.name != "README.md")


def test_the_folder_stays_small() -> None:
    sizes = [path.stat().st_size for path in RECORDED.iterdir()]
    assert max(sizes) < 150_000
    assert sum(sizes) < 1_000_000


@pytest.mark.parametrize("name", MEASURED)
def test_the_medians_of_the_readme_are_those_of_the_files(name: str) -> None:
    measured = json.loads((RECORDED / f"{name}.measured.json").read_text())
    assert measured["n"] >= 20
    assert measured["q1_ns"] <= measured["median_ns"] <= measured["q3_ns"]
    row = f"| `{name}.measured.json` | {measured['median_ns'] / 1e6:.3f} |"
    assert row in (RECORDED / "README.md").read_text()


@pytest.mark.parametrize(
    ("name", "first", "last"),
    [
        ("dataloader_before", 2, 6),
        ("dataloader_after", 2, 6),
        ("accumulation_microbatch", 4, 11),
        ("accumulation_update", 2, 4),
        ("accumulation_stacks", 2, 3),
        ("op_pair_before", 2, 6),
        ("op_pair_after", 2, 6),
        ("ddp_gloo_rank0", 4, 8),
        ("ddp_gloo_rank1", 4, 8),
        *((f"{pair}_{when}", 5, 11) for pair in PAIRS for when in ("before", "after")),
    ],
)
def test_profiler_steps_are_the_ones_named_and_input_shapes_are_there(
    name: str, first: int, last: int
) -> None:
    assert [e["name"] for e in spans(name, "ProfilerStep#")] == [
        f"ProfilerStep#{n}" for n in range(first, last + 1)
    ]
    assert all(e["args"]["Input Dims"][0] for e in spans(name, "aten::addmm"))
    assert trace(name)["record_shapes"] == 1


def test_each_optimizer_step_of_the_microbatch_recording_closes_four_microbatches() -> None:
    steps = spans("accumulation_microbatch", "ProfilerStep#")
    updates = spans("accumulation_microbatch", "Optimizer.step#AdamW.step")
    assert [i for i, step in enumerate(steps) for update in updates if inside(step, update)] == [3, 7]
    losses = spans("accumulation_microbatch", "aten::mse_loss")
    forward = [e for e in losses if e["name"] == "aten::mse_loss"]
    assert [sum(inside(step, loss) for loss in forward) for step in steps] == [1] * 8


def test_each_step_of_the_update_recording_holds_four_microbatches_and_one_optimizer_step() -> None:
    steps = spans("accumulation_update", "ProfilerStep#")
    losses = [e for e in spans("accumulation_update", "aten::mse_loss") if e["name"] == "aten::mse_loss"]
    updates = spans("accumulation_update", "Optimizer.step#AdamW.step")
    assert [sum(inside(step, e) for e in losses) for step in steps] == [4, 4, 4]
    assert [sum(inside(step, e) for e in updates) for step in steps] == [1, 1, 1]


@pytest.mark.parametrize("name", ["accumulation_microbatch", "accumulation_update"])
def test_memory_events_take_and_give_back(name: str) -> None:
    sizes = [e["args"]["Bytes"] for e in trace(name)["traceEvents"] if e["name"] == "[memory]"]
    assert len(sizes) > 100
    assert min(sizes) < 0 < max(sizes)
    assert trace(name)["profile_memory"] == 1


def test_the_stacks_recording_has_frames_modules_and_call_stacks() -> None:
    events = trace("accumulation_stacks")["traceEvents"]
    names = {e["name"] for e in events if e.get("cat") == "python_function"}
    assert {"nn.Module: Net_0", "nn.Module: Linear_0", "nn.Module: Linear_1"} <= names
    ops = [e for e in events if e.get("cat") == "cpu_op"]
    assert all(
        "record_accumulation.py" in e["args"]["Call stack"]
        for e in spans("accumulation_stacks", "aten::addmm")
    )
    assert all("Call stack" in e["args"] for e in ops)


@pytest.mark.parametrize("rank", [0, 1])
def test_ddp_recordings_say_their_rank_and_reduce_once_a_step(rank: int) -> None:
    name = f"ddp_gloo_rank{rank}"
    info = trace(name)["distributedInfo"]
    assert (info["backend"], info["rank"], info["world_size"]) == ("gloo", rank, 2)
    assert len(spans(name, "gloo:all_reduce")) == len(spans(name, "c10d::allreduce_")) == 5


def test_rank_1_does_three_times_the_work_of_rank_0() -> None:
    ratio = median_dur("ddp_gloo_rank1", "rank_work") / median_dur("ddp_gloo_rank0", "rank_work")
    assert ratio == pytest.approx(3, rel=0.1)
    assert median_ns("ddp_gloo") > 2 * median_ns("ddp_gloo_balanced")


@pytest.mark.parametrize(("pair", "changed"), [("dataloader", WAIT_FOR_DATA), ("op_pair", "big_elementwise")])
def test_the_after_of_each_pair_has_half_of_what_was_halved(pair: str, changed: str) -> None:
    ratio = median_dur(f"{pair}_after", changed) / median_dur(f"{pair}_before", changed)
    assert ratio == pytest.approx(0.5, abs=0.05)
    assert median_ns(f"{pair}_after") / median_ns(f"{pair}_before") == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize(
    ("pair", "changed"),
    [("op_halved", "big_elementwise"), ("small_ops_halved", "augment"), ("python_halved", "format_log")],
)
def test_the_after_of_each_halved_pair_has_half_of_it(pair: str, changed: str) -> None:
    ratio = median_dur(f"{pair}_after", changed) / median_dur(f"{pair}_before", changed)
    assert ratio == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize(
    ("pair", "changed", "per_step"),
    [
        ("copies_removed", "redundant_copy", 4),
        ("wait_removed", "wait_for_logger", 1),
        ("barrier_removed", "meet", 1),
    ],
)
def test_the_after_of_each_pair_with_something_removed_has_none_of_it(
    pair: str, changed: str, per_step: int
) -> None:
    assert len(spans(f"{pair}_before", changed)) == 7 * per_step
    assert not spans(f"{pair}_after", changed)


def test_the_halved_loader_stays_the_slower_one_and_the_hidden_one_does_not() -> None:
    fetch_ms = {
        name: median_dur(name, WAIT_FOR_DATA) / 1000
        for pair in ("loader_halved", "loader_hidden")
        for name in (f"{pair}_before", f"{pair}_after")
    }
    assert fetch_ms["loader_halved_before"] > fetch_ms["loader_halved_after"] > 2
    assert fetch_ms["loader_hidden_before"] > 10
    assert fetch_ms["loader_hidden_after"] < 2


@pytest.mark.parametrize("name", [f"{pair}_{when}" for pair in PAIRS for when in ("before", "after")])
def test_the_recording_kept_of_a_pair_is_typical_of_the_turns(name: str) -> None:
    """Its steps take what all profiled steps took; these are longer than the steps without the profiler."""
    measured = json.loads((RECORDED / f"{name}.measured.json").read_text())
    ends = [1000 * (float(e["ts"]) + float(e["dur"])) for e in spans(name, "ProfilerStep#")]
    periods = [after - before for before, after in itertools.pairwise(ends[1:])]
    profiled = measured["profiled"]
    assert statistics.fmean(periods) == pytest.approx(profiled["median_ns"], rel=0.03)
    assert profiled["n"] == 8 * len(periods)
    assert profiled["q1_ns"] <= profiled["median_ns"] <= profiled["q3_ns"]
    row = rf"\| `{name}.measured.json` \| [\d.]+ \| {profiled['median_ns'] / 1e6:.3f} \|"
    assert re.search(row, (RECORDED / "README.md").read_text())


# --- what a fixture must not say ---------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_no_fixture_holds_a_path_a_machine_or_a_user(name: str) -> None:
    text = text_of(name)
    assert not re.search(r"/(home|root|tmp|usr|opt|work|Users)/|site-packages", text)
    for word in {socket.gethostname(), getpass.getuser()} - COMMON_WORDS:
        assert not re.search(rf"\b{re.escape(word)}\b", text), word


@pytest.mark.parametrize("name", NAMES)
def test_fixtures_tell_of_no_place_and_hold_small_process_numbers_only(name: str) -> None:
    assert look_at(RECORDED / f"{name}.json.gz", Limits()).words == {}
    events = trace(name)["traceEvents"]
    assert {e["pid"] for e in events} == {1000, "Spans", "Traces", ""}
    assert {e["args"]["name"] for e in events if e["name"] == "process_name"} == {"python"}
