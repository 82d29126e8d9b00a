"""Every shared real trace is analyzed, or refused with exit code 3 and a reason; what is printed adds up."""

from __future__ import annotations

import csv
import json
import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from stepcrit.cli.main import run

CORPUS = Path(os.environ.get("STEPCRIT_CORPUS") or "/nonexistent")
pytestmark = pytest.mark.skipif(
    not (CORPUS / "catalog.tsv").exists(),
    reason="the shared corpus of real traces is not here: set STEPCRIT_CORPUS",
)

REFUSED = {
    "neg-cpuopmap/cpu_op_map_trace1.json": "map from operators to kernels",
    "neg-event-replay-ir/event_replay_ir.json": "event-replay IR",
    "neg-rocprofv3/908_results.json.gz": "rocprofv3",
    "neg-straggler-timeline/timeline-ST.json.gz": "Chrome trace of another program",
}
DEVICE_ONLY = {"amd-hpc-ddp4-ncclonly/merged_nccl_only.json.gz", "ibm-aiu/allreduce_tp4.json"}
"""Traces without any launch: refused as they are, analyzed with --device-only."""


def catalog() -> list[str]:
    """Files of the corpus, as slug/file."""
    if not (CORPUS / "catalog.tsv").exists():
        return ["absent"]
    with (CORPUS / "catalog.tsv").open(encoding="utf-8") as lines:
        return [f"{row['slug']}/{row['file']}" for row in csv.DictReader(lines, delimiter="\t")]


def analyzed(path: Path, out: Path, *options: str) -> dict[str, Any]:
    """The answer's data, after asserting success."""
    assert run(["analyze", str(path), "-o", str(out), *options]) == 0
    return dict(json.loads(out.read_text(encoding="utf-8"))["data"])


def test_the_corpus_has_its_80_traces() -> None:
    assert len(catalog()) == 80


@pytest.mark.parametrize("name", catalog())
def test_every_trace_is_analyzed_or_refused_with_a_reason(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "answer.json"
    if name in REFUSED or name in DEVICE_ONLY:
        assert run(["analyze", str(CORPUS / name), "-o", str(out)]) == 3
        assert REFUSED.get(name, "--device-only") in capsys.readouterr().err
        assert not out.exists()
        if name in REFUSED:
            return
    data = analyzed(CORPUS / name, out, *(("--device-only",) if name in DEVICE_ONLY else ()))
    check_conservation(data)


def check_conservation(data: dict[str, Any]) -> None:
    """The first promise, on the output itself: parts sum to their wholes, in integer nanoseconds."""
    elapsed, path = data["elapsed_ns"], data["critical_path"]
    for parts in ("by_class_ns", "by_group_ns", "by_evidence_ns"):
        assert sum(path[parts].values()) == elapsed
    pieces = path["pieces"]
    assert sum(p["length_ns"] for p in pieces) == elapsed
    assert all(a["end_ns"] == b["start_ns"] for a, b in pairwise(pieces))
    assert sum(r["critical_ns"] for r in data["operators"]) == elapsed
    # A side that was not recorded has no total, and no row has a part of it.
    for column, whole in (("device_ns", "device"), ("self_cpu_ns", "host_tracked")):
        parts = [r[column] for r in data["operators"]]
        total = data["operators_total"][column]
        assert total == data["summed_ns"][whole]
        assert set(parts) == {None} if total is None else sum(parts) == total
    if data["summed_ns"]["device"] is None:
        assert data["overlap"] is data["device_busy_ns"] is data["idle_by_cause_ns"] is None
        return
    for device, overlap in data["overlap"].items():
        assert sum(overlap["partition_ns"].values()) == overlap["window_ns"] == elapsed
        assert sum(overlap["symmetric_ns"].values()) == elapsed
        assert overlap["busy_ns"] == data["device_busy_ns"][device] <= overlap["summed_ns"]
    if data["overlap"]:
        busiest = max(data["overlap"].values(), key=lambda o: o["busy_ns"])
        assert sum(data["idle_by_cause_ns"].values()) == elapsed - busiest["busy_ns"]


NO_DEVICE = {
    "hta-cpu-of-gpujob/rank_not_found.json.gz",
    "hta-cupti-counters/benchmark_result_924719_1679055439_trace.json.gz",
    "zoology-a100/trace.json.gz",
}
"""Jobs of a device whose work was not recorded."""


@pytest.mark.parametrize("name", catalog())
def test_what_was_not_recorded_is_null_and_nothing_else(name: str, tmp_path: Path) -> None:
    if name in REFUSED:
        return
    data = analyzed(CORPUS / name, tmp_path / "a.json", *(("--device-only",) if name in DEVICE_ONLY else ()))
    assert (data["summed_ns"]["device"] is None) == (name in NO_DEVICE)
    assert (data["summed_ns"]["host_tracked"] is None) == (name in DEVICE_ONLY)


@pytest.mark.parametrize(
    "name",
    [
        "hta-a100-8rank-r3/control.json.gz",
        "tl-sglang-qwen30b-b300/1782799835.6885648-TP-0-DECODE.trace.json.gz",
    ],
)
def test_the_same_input_gives_the_same_bytes(name: str, tmp_path: Path) -> None:
    for out in ("a.json", "b.json"):
        assert run(["analyze", str(CORPUS / name), "-o", str(tmp_path / out)]) == 0
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
