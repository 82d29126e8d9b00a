"""I8: where things stand in a file decides nothing. Answers are the same to the byte, as text and as JSON.

Two things are told by their place alone, and stay: a B or E at the very instant of another on its thread (that is
how the format pairs them), and `displayTimeUnit` before the events, which dates the writer (`trace.dialect`).
"""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.properties.crowded import crowded, row
from tests.properties.schedules import PROPERTY as FULL
from tests.variants import (
    Layout,
    Written,
    answers,
    keys_shuffled,
    shown,
    shuffled,
    to_bytes,
    understood,
    written,
)

PROPERTY = settings(FULL, max_examples=30)  # each example is two traces and every answer to them
FIXTURES = Path(__file__).parents[2] / "fixtures"
NAMES = (
    "simulated/ddp_tail.rank1",
    "simulated/two_streams_sync_records",
    "simulated/graph_step",
    "simulated/dataloader_bound",
    "recorded/accumulation_stacks",
    "recorded/ddp_gloo_rank0",
)


@cache
def fixture(name: str) -> Written:
    return written(FIXTURES / f"{name}.json.gz")


@cache
def told(name: str) -> dict[str, bytes]:
    return shown(answers(understood(to_bytes(fixture(name)))))


@pytest.mark.parametrize("name", NAMES)
def test_events_in_any_order_get_the_same_answers(name: str) -> None:
    for seed in (1, 2):
        assert shown(answers(understood(to_bytes(shuffled(fixture(name), seed))))) == told(name)


@pytest.mark.parametrize("name", NAMES[:4])
def test_keys_in_any_order_get_the_same_answers(name: str) -> None:
    assert shown(answers(understood(to_bytes(keys_shuffled(fixture(name), 3))))) == told(name)


def test_header_after_the_events_changes_only_what_dates_the_writer() -> None:
    after = shown(answers(understood(to_bytes(fixture(NAMES[0]), Layout(events_first=True)))))
    word = b"displayTimeUnit before traceEvents (>= 2025-03)"
    assert {key for key, text in after.items() if text != told(NAMES[0])[key]} == {
        key for key, text in told(NAMES[0]).items() if word in b" ".join(text.split())
    } | {"doctor text"}
    assert after["critical json"] == told(NAMES[0])["critical json"]


@PROPERTY
@given(crowded(), st.integers(0, 99))
def test_events_of_the_same_instants_in_any_order_get_the_same_answers(trace: Written, seed: int) -> None:
    other = keys_shuffled(shuffled(trace, seed), seed)
    assert shown(answers(understood(to_bytes(other)))) == shown(answers(understood(to_bytes(trace))))


def test_outer_one_of_two_ranges_of_the_same_times_is_told_by_its_number_not_by_its_place() -> None:
    """aten::zeros takes 1000 µs, all of it in aten::empty: only the inner one has time of its own."""
    outer = row("cpu_op", "aten::zeros", (0, 1000), (1, 1), **{"External id": 1})
    inner = row("cpu_op", "aten::empty", (0, 1000), (1, 1), **{"External id": 2})
    for events in ([outer, inner], [inner, outer]):
        trace = understood(to_bytes(Written({"schemaVersion": 1}, events)))
        data = answers(trace, ["analyze"])["analyze"]
        assert not isinstance(data, str)
        own = {r["name"]: r["self_cpu_ns"] for r in data.data["operators"]}
        assert (own.get("aten::zeros", 0), own["aten::empty"]) == (0, 1_000_000)


def test_calls_of_one_instant_are_launched_in_the_order_of_their_numbers() -> None:
    """Two kernels launched in one instant, of equal length, one after the other: whichever was written first."""
    calls = [row("cuda_runtime", "cudaLaunchKernel", (5, 5), (1, 1), correlation=n) for n in (1, 2)]
    work = [
        row("kernel", "k", (10 * n, 10 * n + 5), (0, 7), correlation=n, stream=7, device=0) for n in (1, 2)
    ]
    op = row("cpu_op", "aten::mm", (0, 8), (1, 1), **{"External id": 1})
    events = [op, *calls, *work]
    first = shown(answers(understood(to_bytes(Written({}, events)))))
    for seed in range(5):
        mixed = list(events)
        random.Random(seed).shuffle(mixed)
        assert shown(answers(understood(to_bytes(Written({}, mixed))))) == first


def test_begins_and_ends_apart_in_time_pair_in_any_order() -> None:
    """B and E rows whose instants differ; `pair_ends` needs no order in the file for them."""
    trace = fixture("simulated/host_bound")
    host = [e for e in trace.events if e.get("cat") in ("cpu_op", "user_annotation")]
    instants = [at for e in host for at in (e["ts"], e["ts"] + e["dur"])]
    lone = {at for at in instants if instants.count(at) == 1}
    halves = []
    for e in trace.events:
        if e in host and {e["ts"], e["ts"] + e["dur"]} <= lone:
            begin = {k: v for k, v in e.items() if k != "dur"} | {"ph": "B"}
            halves += [begin, {"ph": "E", "pid": e["pid"], "tid": e["tid"], "ts": e["ts"] + e["dur"]}]
        else:
            halves.append(e)
    one = replace(trace, events=halves)
    assert len(halves) > len(trace.events)
    first = shown(answers(understood(to_bytes(one))))
    assert shown(answers(understood(to_bytes(shuffled(one, 5))))) == first
    assert first["critical json"] == told_of(trace)["critical json"]


def told_of(trace: Written) -> dict[str, bytes]:
    return shown(answers(understood(to_bytes(trace))))


def test_comparison_sees_a_trace_that_is_another() -> None:
    """Every kernel takes a nanosecond longer."""
    trace = fixture(NAMES[2])
    longer = [{**e, "dur": e["dur"] + 1} if e.get("cat") == "kernel" else e for e in trace.events]
    assert told_of(replace(trace, events=longer))["analyze json"] != told(NAMES[2])["analyze json"]
