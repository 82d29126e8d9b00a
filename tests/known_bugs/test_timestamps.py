"""Times that cannot be, and clocks that disagree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stepcrit.graph.schedule import check_replay, lags
from stepcrit.model.graph import EdgeKind
from tests.answers.drawn import call, op, work
from tests.builders import Event, event
from tests.known_bugs.conftest import Ask
from tests.known_bugs.written import loop, raw, row_of, spans, step, trace

HOUR_US = 3_600_000_000


def moved(events: list[Event], by_us: float) -> list[Event]:
    """The same events, device work moved in time."""
    return [{**one, "ts": one["ts"] + by_us} if one["cat"] == "kernel" else one for one in events]


@pytest.mark.parametrize("duration", [-1, -1_660_000_000_000_000])
def test_b060_a_negative_length_is_0_and_counted_and_moves_no_window(ask: Ask, duration: int) -> None:
    events = [*loop(3), {**op("open", 250, 250), "dur": duration}]
    found = raw(events)
    assert spans(found, "open") == [(250_000, 250_000)]
    assert found.meta.dropped == {"negative duration clipped to 0": 1}
    assert int(found.events.start_ns.min()) == 0
    assert int(found.events.end_ns.max()) == 300_000
    answer = ask(events)
    assert (answer.code, answer.data["elapsed_ns"]) == (0, 100_000)
    assert "L101" in answer.codes
    assert ask(events, "analyze", "--strict").code == 4


def test_b063_a_call_just_outside_its_operator_stays_with_it_and_no_edge_turns_negative() -> None:
    """The call ends 300 ns before the range that made it begins: its id tells whose it is."""
    launch: Event = {**call("hipLaunchKernel", (0, 0), 7), "ts": 100.0, "dur": 0.5}
    launch["args"]["External id"] = 3
    autograd: Event = {**op("MmBackward0", 0, 0), "ts": 100.8, "dur": 20.0, "args": {"External id": 3}}
    found = trace([op("before", 0, 90), launch, autograd, work("k", (130, 190), 7)])
    kernel = row_of(found.raw, "k")
    assert found.raw.events.name_of(int(found.links.op[kernel])) == "MmBackward0"
    graph = found.built.graph
    gaps = graph.start_ns[graph.dst] - graph.end_ns[graph.src]
    assert int(gaps.min()) >= 0
    for policy in ("join", "edge"):
        check_replay(graph, lags(graph, found.built.arrivals, policy))
    assert (graph.edge_kind == EdgeKind.LAUNCH).sum() == 1


def clocked(offset_us: float) -> list[Event]:
    """Ten steps whose device clock is off; each ends with a call that waits until 1 µs after the product."""
    events = []
    for number in range(10):
        at = 100 * number
        events += [*step(number), call("cudaDeviceSynchronize", (at + 42, at + 91), 500 + number)]
    return moved(events, offset_us)


def test_b065_a_device_clock_that_runs_early_makes_no_delay_negative(ask: Ask) -> None:
    """Work begins 20 µs before its launch (70 early): no launch delay is below 0, and what is off is told."""
    answer = ask(clocked(-70))
    assert answer.code == 0
    queue = answer.data["queue"]
    assert queue["launch_to_start_ns"] is None or queue["launch_to_start_ns"] >= 0
    assert {"P305", "G202"} & set(answer.codes)
    assert all(piece["length_ns"] > 0 for piece in answer.data["critical_path"]["pieces"])
    assert answer.data["elapsed_ns"] == 100_000
    check = ask(moved(loop(2), -70), "doctor").check("E111")
    assert check["state"] == "warn"


def test_b067_a_device_clock_hours_off_loses_no_kernel(ask: Ask) -> None:
    """3 hours late, all rows alike: every kernel keeps its step, and periods are those of the loop."""
    answer = ask(moved(loop(5), 3 * HOUR_US))
    assert answer.code == 0
    assert [one["device_activities"] for one in answer.data["steps"]] == [1] * 5
    periods = {one["elapsed_ns"] for one in answer.data["steps"] if one["is_period"]}
    assert periods == {100_000}
    assert answer.data["device_busy_ns"] == {"0": 40_000}


def test_b068_a_trace_of_kernels_only_is_analyzed_on_the_device(ask: Ask) -> None:
    kernels = [one for one in loop(3) if one["cat"] == "kernel"]
    refused = ask(kernels)
    assert refused.code == 3
    assert "--device-only" in refused.err
    answer = ask(kernels, "analyze", "--device-only")
    # from 50 to 290, of which three times 40 busy
    assert (answer.code, answer.data["elapsed_ns"], answer.data["device_busy_ns"]) == (
        0,
        240_000,
        {"0": 120_000},
    )
    assert ask(kernels, "doctor").code == 0


def test_b068_times_that_are_not_set_are_told_and_no_window_is_stretched(ask: Ask) -> None:
    """A device row at time 0 in a trace of epoch times."""
    epoch = 1_700_000_000_000_000
    events: list[dict[str, Any]] = [{**one, "ts": one["ts"] + epoch} for one in loop(3)]
    lost = event("kernel", "lost", (0, 5), (0, 7), correlation=99, stream=7)
    answer = ask([*events, lost])
    assert (answer.code, answer.data["elapsed_ns"]) == (0, 100_000)
    assert {"L101", "P303"} & set(answer.codes)
    assert int(np.max([one["end_ns"] for one in answer.data["steps"]])) < 1_000_000
