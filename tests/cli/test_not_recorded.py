"""What was not recorded is null with a reason and has no number on the screen: not known is not zero."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stepcrit.cli.main import run

HOST = {"cat": "cpu_op", "name": "aten::mm", "ts": 0, "dur": 40}
CALL = {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 1, "dur": 1, "args": {"correlation": 1}}
HIP = {**CALL, "name": "hipLaunchKernel"}
NCCL = {"cat": "user_annotation", "name": "nccl:all_reduce", "ts": 50, "dur": 9}
GLOO = {**NCCL, "name": "gloo:all_reduce"}
KERNEL = {"cat": "kernel", "name": "k", "ts": 5, "dur": 5, "args": {"correlation": 1, "stream": 7}}
LISTED = {"deviceProperties": [{"id": 0, "name": "NVIDIA A100"}]}


def written(path: Path, *chrome: dict[str, Any], **header: Any) -> str:
    events = [{"ph": "X", "pid": 1, "tid": 1, **event} for event in chrome]
    (path / "trace.json").write_text(json.dumps({"traceEvents": events, **header}), encoding="utf-8")
    return str(path / "trace.json")


def answer(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, Any]:
    assert run(["analyze", *argv, "--json"]) == 0
    return dict(json.loads(capsys.readouterr().out))


def screen(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert run([*argv]) == 0
    return " ".join(capsys.readouterr().out.split())


DEVICE_VALUES = (
    "device_busy_ns", "overlap", "exposed_comm", "idle_by_cause_ns", "idle_by_owner_ns", "queue",
)  # fmt: skip


@pytest.mark.parametrize(
    ("chrome", "header", "why"),
    [
        ([HOST, CALL], {}, "not recorded"),
        ([HOST, NCCL], {}, "not recorded"),
        ([HOST], {"distributedInfo": {"backend": "nccl"}}, "not recorded"),
        ([HOST], LISTED, "not known"),
    ],
)
def test_a_device_that_was_not_recorded_is_null_everywhere(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    chrome: list[dict[str, Any]],
    header: dict[str, Any],
    why: str,
) -> None:
    path = written(tmp_path, *chrome, **header)
    found = answer(capsys, path)
    data, reasons = found["data"], {one["path"]: one["why"] for one in found["unknown"]}
    assert [data[key] for key in DEVICE_VALUES] == [None] * len(DEVICE_VALUES)
    rows = [*data["operators"], *data["ranking"]["rows"], data["operators_total"], data["ranking"]]
    assert {row["device_ns"] for row in rows} == {data["summed_ns"]["device"]} == {None}
    assert {step["device_activities"] for step in data["steps"]} == {None}
    for key in (*DEVICE_VALUES, "summed_ns.device", "operators[].device_ns", "operators_total.device_ns"):
        assert reasons[key].startswith(why)
    shown = screen(capsys, "analyze", path)
    assert f"(device {why}, host " in shown
    assert f"device: {why}" in shown
    assert ("the device was not recorded" in shown) == (why == "not recorded")
    assert "it computes on the CPU" not in shown


@pytest.mark.parametrize(
    ("chrome", "header"),
    [([HOST], {}), ([HOST, GLOO], {"distributedInfo": {"backend": "gloo"}})],
)
def test_a_run_without_a_device_has_zeros(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], chrome: list[dict[str, Any]], header: dict[str, Any]
) -> None:
    path = written(tmp_path, *chrome, **header)
    data = answer(capsys, path)["data"]
    assert data["summed_ns"]["device"] == data["operators_total"]["device_ns"] == 0
    assert data["device_busy_ns"] == data["idle_by_cause_ns"] == {}
    shown = screen(capsys, "analyze", path)
    assert "(device work 0, host " in shown
    assert "recorded" not in shown
    assert "it computes on the CPU" in shown


def test_a_host_that_was_not_recorded_is_null_everywhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, KERNEL, {**KERNEL, "ts": 20})
    data = answer(capsys, path, "--device-only")["data"]
    rows = [*data["operators"], *data["ranking"]["rows"], data["operators_total"], data["ranking"]]
    assert {row["self_cpu_ns"] for row in rows} == {data["summed_ns"]["host_tracked"]} == {None}
    assert data["summed_ns"]["device"] == 10_000
    shown = screen(capsys, "analyze", path, "--device-only")
    assert "host not recorded)" in shown
    assert "self CPU: not recorded" in shown


def test_threads_that_work_at_once_are_said_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, HOST, {**HOST, "tid": 2}, {**HOST, "tid": 3})
    assert "host threads work side by side" in screen(capsys, "analyze", path)


@pytest.mark.parametrize(
    ("launch", "says"),
    [
        ("cudaLaunchKernel", "enable_cuda_sync_events=True to know"),
        ("hipLaunchKernel", "only the profiler for CUDA"),
    ],
)
def test_timing_alone_is_remedied_where_a_profiler_can(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], launch: str, says: str
) -> None:
    def pair(at: int, stream: int, span: tuple[int, int]) -> list[dict[str, Any]]:
        args = {"correlation": at, "stream": stream}
        call = {**CALL, "name": launch, "ts": at, "args": args}
        return [call, {**KERNEL, "tid": stream, "ts": span[0], "dur": span[1] - span[0], "args": args}]

    path = written(tmp_path, *pair(1, 7, (5, 1005)), *pair(3, 20, (1006, 3006)))
    assert says in screen(capsys, "analyze", path)


def test_devices_of_merged_files_are_called_by_their_ordinal_and_rank(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rank = {"ph": "M", "name": "process_name", "pid": 200000004, "tid": 0, "args": {"name": "RANK 2 - GPU"}}
    merged = {**KERNEL, "pid": 200000004, "args": {"stream": 7, "device": 4}}
    path = written(tmp_path, rank, {**KERNEL, "pid": 2, "args": {"stream": 7, "device": 2}}, merged)
    shown = screen(capsys, "analyze", path, "--device-only")
    assert "device 4 (RANK 2 - GPU)" in shown
    assert "200000004" not in shown
