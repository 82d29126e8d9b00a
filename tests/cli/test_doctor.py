"""`stepcrit doctor`: what can be answered, in three different words, and a program that records it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from stepcrit.answers.doctor import recipe
from stepcrit.cli.main import run
from stepcrit.link.presence import Platform
from stepcrit.units import THIN

FIXTURES = Path(__file__).parents[2] / "fixtures"
CORPUS = Path(os.environ.get("STEPCRIT_CORPUS") or "/nonexistent")
HOST = {"cat": "cpu_op", "name": "aten::mm", "ts": 0, "dur": 40}
CALL = {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 1, "dur": 1, "args": {"correlation": 1}}
HIP = {**CALL, "name": "hipLaunchKernel"}
KERNEL = {
    "cat": "kernel",
    "name": "k",
    "ts": 5,
    "dur": 5,
    "args": {"correlation": 1, "stream": 7, "device": 0},
}
OTHER_QUEUE = {**KERNEL, "tid": 20, "args": {"correlation": 2, "stream": 20, "device": 0}}
ORPHAN = {**KERNEL, "args": {"correlation": 9, "stream": 7, "device": 0}}
NCCL = {**KERNEL, "name": "ncclDevKernel_AllReduce"}


def written(path: Path, *chrome: dict[str, Any]) -> str:
    events = [{"ph": "X", "pid": 1, "tid": 1, **event} for event in chrome]
    (path / "trace.json").write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
    return str(path / "trace.json")


def screen(capsys: pytest.CaptureFixture[str], path: str) -> str:
    assert run(["doctor", path]) == 0
    return capsys.readouterr().out


def able(shown: str) -> list[str]:
    """The capability line."""
    return " ".join(shown.split("Can be answered")[1].split("Missing or odd", maxsplit=1)[0].split()).split(
        " · "
    )


@pytest.mark.parametrize(
    ("chrome", "word"),
    [
        ([HOST, CALL, KERNEL], "critical path yes"),
        ([HOST, CALL, KERNEL, OTHER_QUEUE], "critical path yes (inferred waits)"),
        ([HOST, CALL], "critical path yes (host only)"),
        ([HOST], "critical path yes"),
        ([HOST, ORPHAN], "critical path with --device-only"),
        ([ORPHAN, OTHER_QUEUE], "critical path with --device-only"),
    ],
)
def test_a_path_is_promised_where_analyze_gives_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], chrome: list[dict[str, Any]], word: str
) -> None:
    path = written(tmp_path, *chrome)
    assert able(screen(capsys, path))[0] == word
    options = ["--device-only"] if "--device-only" in word else []
    assert run(["analyze", path]) == (3 if options else 0)
    assert run(["analyze", path, *options]) == 0


def test_not_recorded_and_not_applicable_are_two_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "bytes of collectives n/a" in able(screen(capsys, written(tmp_path, HOST, CALL, KERNEL)))
    assert "bytes of collectives no" in able(screen(capsys, written(tmp_path, HOST, CALL, NCCL)))


def test_numbers_look_as_everywhere_else_and_json_keeps_them_raw(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, *({**HOST, "ts": 50 * i} for i in range(1234)), {**CALL, "ts": 8}, KERNEL)
    shown = screen(capsys, path)
    assert f"1{THIN}234 operators on the host" in shown
    assert f"by up to 3.00{THIN}µs" in " ".join(shown.split("\n"))
    assert run(["doctor", path, "--json"]) == 0
    checks = {c["code"]: c for c in json.loads(capsys.readouterr().out)["data"]["checks"]}
    assert checks["E104"]["seen_numbers"] == [1234]
    assert checks["E111"]["seen_numbers"] == [1, 3000]
    assert checks["E111"]["seen"] == "1 started too early; device times moved by up to 3000 ns"
    assert checks["E105"]["seen_numbers"] == []


def test_only_what_is_missing_is_done_without(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = " ".join(screen(capsys, written(tmp_path, HOST, CALL, KERNEL)).split())
    assert "E106 steady steps: no distribution can be shown, and a single step may be an accident" in shown
    assert "E110 memory events: without it: memory at the peak is unknown" in shown


@pytest.mark.parametrize("platform", Platform)
def test_a_recipe_is_a_whole_program_that_fits_the_screen(platform: Platform) -> None:
    lines = recipe(platform)
    compile("\n".join(lines), "recipe", "exec")
    assert max(map(len, lines)) <= 76
    program = "\n".join(lines)
    for part in ("schedule(", "on_trace_ready=", "record_shapes=True", "prof.step()", "import"):
        assert part in program
    assert ("enable_cuda_sync_events" in program) == (platform == Platform.CUDA)
    assert ("experimental_config=config" in program) == (platform == Platform.CUDA)
    assert ("torch." in program.replace("from torch.", "")) <= ("import torch\n" in program)


@pytest.mark.parametrize(
    ("chrome", "says"),
    [
        ([HOST, CALL, KERNEL], "enable_cuda_sync_events=True)"),
        ([HOST, HIP, KERNEL], "[ProfilerActivity.CPU, ProfilerActivity.CUDA],  # ROCm, too"),
        ([HOST], "activities=[ProfilerActivity.CPU],"),
        ([HOST, ORPHAN], "activities=torch.profiler.supported_activities(),"),
    ],
)
def test_the_recipe_is_for_the_device_of_the_trace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], chrome: list[dict[str, Any]], says: str
) -> None:
    assert says in screen(capsys, written(tmp_path, *chrome)).split("How to record")[1]


@pytest.mark.skipif(not (CORPUS / "catalog.tsv").exists(), reason="the shared corpus is not here")
@pytest.mark.parametrize(
    "file", ["amd-hpc-ddp4-ncclonly/merged_nccl_only.json.gz", "ibm-aiu/allreduce_tp4.json"]
)
def test_real_traces_without_launches_are_promised_a_path_on_the_device_only(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert able(screen(capsys, str(CORPUS / file)))[0] == "critical path with --device-only"


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*/*.json.gz")), ids=lambda path: path.name)
def test_every_fixture_gets_its_answer(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = able(screen(capsys, str(path)))
    assert len(words) == 6
    assert words[0].startswith("critical path yes")
    assert all(word.endswith((" yes", " no", " n/a")) for word in words[1:])


def test_rows_that_cannot_be_true_are_listed_with_what_became_of_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = [{**CALL, "ts": 30 * i, "args": {"correlation": i}} for i in range(20)]
    kernels = [{**KERNEL, "ts": 30 * i + 8, "args": {**KERNEL["args"], "correlation": i}} for i in range(20)]
    kernels[9] = {**kernels[9], "name": "[red]slow", "dur": 1_600_000}
    path = written(tmp_path, {**HOST, "dur": 600}, *calls, *kernels)
    shown = " ".join(screen(capsys, path).split())
    assert "P301 1 41 set right [red]slow" in shown
    assert "[red]slow: 1.60 s written, 30.0 µs taken (P301)" in shown
    assert run(["doctor", path, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["data"]["implausible"] == [
        {
            "code": "P301",
            "count": 1,
            "of_count": 41,
            "done": "set right",
            "example": "[red]slow",
            "place": 30,
            "written_ns": 1_600_000_000,
            "taken_ns": 30_000,
        }
    ]
    assert [one["code"] for one in answer["findings"] if one["code"][0] == "P"] == ["P301"]
    assert run(["doctor", path, "--strict"]) == 4
    assert "P301 (1)" in capsys.readouterr().err


def test_a_file_without_oddities_has_an_empty_list_and_no_section(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, HOST, CALL, KERNEL)
    assert "Cannot be true" not in screen(capsys, path)
    assert run(["doctor", path, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["data"]["implausible"] == []


def test_b065_a_clock_that_was_set_right_is_told_with_its_interval(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A kernel seen at 5 whose call began at 45, and a synchronize that returned 60 after it ended, seen at 10."""
    sync = {**CALL, "name": "cudaDeviceSynchronize", "ts": 50, "dur": 20, "args": {"correlation": 2}}
    path = written(tmp_path, {**HOST, "dur": 80}, {**CALL, "ts": 45}, KERNEL, sync)
    shown = " ".join(screen(capsys, path).split())
    assert "times were moved by 40.0 µs (possible: 40.0 µs to 60.0 µs)" in shown
    assert "between host and device are known to 20.0 µs (P305)" in shown
    assert "E111 device clock against causality warn 1 started too early; device times moved by up to 40.0 µs" in shown  # fmt: skip
    assert run(["analyze", path]) == 0
    assert "(P305)" in capsys.readouterr().out
