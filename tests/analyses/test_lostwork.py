"""Launches whose device work is missing: told where it is bulk, and steps without theirs are not used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stepcrit.analyses.lostwork import analyze
from stepcrit.cli.main import run
from stepcrit.link.linker import link
from stepcrit.link.steps import find_steps
from stepcrit.link.unserved import launch_calls
from stepcrit.model.steps import Steps
from stepcrit.model.trace import RawTrace
from tests.builders import Event, event, trace


def call(name: str, span: tuple[int, int], correlation: int) -> Event:
    return event("cuda_runtime", name, span, correlation=correlation)


def kernel(span: tuple[int, int], correlation: int, cat: str = "kernel") -> Event:
    return event(cat, "k", span, (0, 7), correlation=correlation, stream=7)


def training(steps: int, lost: set[int], *, launches: int = 12, kept: int = 0) -> list[Event]:
    """Steps of 100 µs, one launch every 8 µs; of steps in `lost` only `kept` kernels were recorded."""
    chrome = []
    for step in range(steps):
        at = step * 100
        chrome.append(event("user_annotation", f"ProfilerStep#{step + 1}", (at, at + 100)))
        for i in range(launches):
            number = step * launches + i + 1
            chrome.append(call("cudaLaunchKernel", (at + 8 * i, at + 8 * i + 2), number))
            if step not in lost or i < kept:
                chrome.append(kernel((at + 8 * i + 3, at + 8 * i + 8), number))
    return chrome


def found(chrome: list[Event]) -> dict[str, tuple[int, int]]:
    raw = trace(chrome)
    links = link(raw)
    return {odd.code: (odd.count, odd.of_count) for odd in analyze(raw, links, steps_of(raw))}


def steps_of(raw: RawTrace) -> Steps:
    return find_steps(raw.events, link(raw))


def reasons(chrome: list[Event]) -> list[str]:
    return [step.why_not for step in steps_of(trace(chrome))]


def test_b062_first_steps_without_kernels_are_kept_out_of_means() -> None:
    why = reasons(training(50, {0, 1, 2}))
    lost = "device work lost: 12 of 12 launches have none"
    assert why[:4] == [
        "first recorded step: no boundary before it",
        lost,
        lost,
        "the step before it lost device work: when this one began is not known",
    ]
    assert not any(why[4:])


def test_b167_three_of_five_steps_without_kernels_do_not_make_lost_work_usual() -> None:
    """The median number of kernels is 0 here: launches tell, not the other steps."""
    steps = steps_of(trace(training(5, {0, 1, 3})))
    assert not any(step.used for step in steps)
    assert steps[1].why_not == steps[3].why_not == "device work lost: 12 of 12 launches have none"
    assert steps[2].why_not == steps[4].why_not == "the step before it lost device work: when this one began is not known"  # fmt: skip


def test_b170_a_last_step_with_60_percent_fewer_kernels_is_told() -> None:
    why = reasons(training(6, {5}, launches=10, kept=4))
    assert why[1:] == ["", "", "", "", "device work lost: 6 of 10 launches have none"]
    assert found(training(6, {5}, launches=10, kept=4))["P309"] == (1, 6)


def test_b168_kernels_that_run_in_the_next_step_belong_to_the_step_that_launched_them() -> None:
    chrome = training(4, set())
    late = [{**one, "ts": one["ts"] + 50} if one["cat"] == "kernel" else one for one in chrome]
    assert [step.device_count for step in steps_of(trace(late))] == [12, 12, 12, 12]
    assert found(late) == {}


def test_where_no_step_has_work_the_device_was_not_recorded() -> None:
    """B070, B072, B075: calls and no device row at all is E101, not lost work."""
    chrome = training(4, {0, 1, 2, 3})
    assert found(chrome) == {}
    assert not any("lost" in why for why in reasons(chrome))


def test_b077_copies_without_kernels_are_told_by_kind() -> None:
    chrome = training(4, {0, 1, 2, 3})
    for i in range(4):
        chrome += [call("cudaMemcpyAsync", (i * 100 + 96, i * 100 + 97), 900 + i), kernel((i * 100 + 98, i * 100 + 99), 900 + i, "gpu_memcpy")]  # fmt: skip
    assert found(chrome) == {"P307": (48, 48)}


@pytest.mark.parametrize(("lost", "told"), [(9, {}), (10, {"P307": (10, 100)})])
def test_a_few_launches_at_the_end_of_a_recording_are_no_loss(lost: int, told: dict[str, Any]) -> None:
    chrome = []
    for i in range(100):
        chrome.append(call("cudaLaunchKernel", (10 * i, 10 * i + 2), i + 1))
        if i < 100 - lost:
            chrome.append(kernel((10 * i + 3, 10 * i + 9), i + 1))
    assert found(chrome) == told


def test_launches_of_a_capture_run_nothing() -> None:
    chrome = [*training(2, set()), call("cudaStreamBeginCapture", (300, 301), 900)]
    chrome += [call("cudaLaunchKernel", (310 + 2 * i, 311 + 2 * i), 500 + i) for i in range(40)]
    chrome += [call("cudaStreamEndCapture", (400, 401), 901)]
    assert found(chrome) == {}
    assert found([one for one in chrome if "Capture" not in one["name"]]) == {"P307": (40, 64)}
    # A capture that the recording cuts at either side still is one.
    assert found([one for one in chrome if "Begin" not in one["name"]]) == {}
    assert found([one for one in chrome if "End" not in one["name"]]) == {}


def test_b098_graph_replays_that_were_not_recorded_do_not_make_the_device_idle() -> None:
    chrome = training(2, set())
    for i in range(200):
        chrome.append(call("cudaGraphLaunch", (300 + 10 * i, 302 + 10 * i), 1000 + i))
        chrome += [kernel((304 + 10 * i, 305 + 10 * i), 1000 + i)] * (i < 2)
    assert found(chrome) == {"P308": (198, 200)}


def test_b098_the_answer_does_not_call_such_a_device_idle(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chrome = [event("cpu_op", "op", (0, 3000)), *training(2, set())]
    chrome += [call("cudaGraphLaunch", (300 + 10 * i, 302 + 10 * i), 1000 + i) for i in range(200)]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": [{"ph": "X", **one} for one in chrome]}))
    assert run(["analyze", str(path)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "runs nothing that was recorded for" in shown
    assert "200 of 200 graph launches own no device work" in shown


def test_a_driver_call_inside_its_runtime_call_lost_nothing() -> None:
    """Both carry the correlation; only the outer one owns the kernel."""
    chrome = [
        call("cudaLaunchKernel", (0, 9), 1),
        event("cuda_driver", "cuLaunchKernel", (2, 5), correlation=1),
    ]
    raw = trace([*chrome, kernel((12, 20), 1)])
    calls = launch_calls(raw.events, link(raw).launch)
    assert (len(calls.rows), int(calls.lost.sum())) == (2, 0)


def test_a_rank_without_device_rows_is_told_apart_from_an_idle_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """B073: launches and no device row: not recorded, which is neither zero nor not applicable."""
    path = tmp_path / "trace.json"
    chrome = [one for one in training(3, set()) if one["cat"] != "kernel"]
    path.write_text(json.dumps({"traceEvents": [{"ph": "X", **one} for one in chrome]}))
    assert run(["doctor", str(path), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)["data"]
    assert {c["code"]: c["state"] for c in data["checks"]}["E101"] == "missing"
    assert data["implausible"] == []
    assert run(["analyze", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["data"]["device_busy_ns"] is None
