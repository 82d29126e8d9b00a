"""Real traces of many writers, slimmed: the same answers, a size for git, and nothing of where they were recorded."""

from __future__ import annotations

import csv
import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from stepcrit.cli.main import run
from stepcrit.ingest.limits import Limits
from stepcrit.session import load
from stepcrit.slimming.looking import look_at
from tests.slimming.facts import differing, slimmed, step_facts

CORPUS = Path(os.environ.get("STEPCRIT_CORPUS") or "/nonexistent")
pytestmark = pytest.mark.skipif(
    not (CORPUS / "catalog.tsv").exists(),
    reason="the shared corpus of real traces is not here: set STEPCRIT_CORPUS",
)

WHOLE = (
    "dtu-cpu/trace.json.gz",  # the host alone, whole microseconds
    "dtu-windows-badjson/host_9792.1673466239037.pt.trace.json.gz",  # damaged: backslashes
    "hta-a100-critpath/benchmark_result_2869224_1695835535_trace.json.gz",  # sync records
    "hta-a100-critpath/event_sync.json.gz",
    "hta-a100-critpath/overlaid_critical_path_trace.json.gz",  # edited by a tool
    "hta-cpu-gloo-300/rank-34_trimmed.pt.trace.json.gz",  # one of 300 ranks
    "hta-cpu-of-gpujob/rank_not_found.json.gz",
    "hta-cupti-counters/benchmark_result_924719_1679055439_trace.json.gz",
    "hta-mi250-ddp/mi250_minitoy_train_ROCm6_2_kineto.json.gz",  # AMD
    "hta-simple-add/benchmark_simple_add_trace.json.gz",
    "hta-trimmed/base.json.gz",
    "hta-triton/triton_example_v3.json.gz",
    "ibm-aiu/allreduce_tp4.json",  # another accelerator
    "kineto-gpumetrics/gpu_metrics_input_v1.json",  # capitalised categories
    "kineto-h100-flowfix/after_fix_trace.json",
    "param-dlrm-8rank/worker1_step_12.1694128201556.pt.trace.json.gz",  # DLRM, collectives
    "particle-a100/profiler_trace.json",
    "particle-cpu/hmoss-6a49xb_4025559.1732704788383329918.pt.trace.json.gz",
    "sidnb13-h100/dc3b0e7228dd_851.1752215573993169006.pt.trace.json.gz",  # Python frames
    "swinv2-a4000/trace.json.gz",
    "tl-h100-hf/gaunernst_bert-small-uncased__1016001.json.gz",
    "tl-mi210-gpuonly/gpu_only_trace.json.gz",  # no operators
    "tl-mi300x-hf/gaunernst_bert-small-uncased__1016001.json.gz",
    "tl-mi300x-vllm-full/vllm_full_graph_execution.json.gz",  # graph replay
    "tl-sglang-qwen30b-mi300/1782859605.7198358-TP-0-DECODE.trace.json.gz",
    "tokenomics-tp2-llama/llama_trace_4layers0_with_annotations.json.gz",
    "torchbench-a100/trace.json",
    "zoology-a100/trace.json.gz",
)
IN_PART = (
    "dtu-windows-badjson/host_9792.1673466239037.pt.trace.json.gz",
    "hta-a100-nccl-meta/nccl_data.json.gz",
    "hta-v100-ns/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz",
    "torchbench-a100/trace.json",
)


PAIRS = (
    ("hta-trimmed/base.json.gz", "hta-simple-add/benchmark_simple_add_trace.json.gz"),
    (
        "tl-h100-hf/gaunernst_bert-small-uncased__1016001.json.gz",
        "tl-mi300x-hf/gaunernst_bert-small-uncased__1016001.json.gz",
    ),
    ("dtu-cpu/trace.json.gz", "dtu-windows-cpu/trace.json.gz"),
)


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.parametrize("name", WHOLE)
def test_a_real_trace_with_all_its_steps_answers_as_before(name: str, tmp_path: Path) -> None:
    once = slimmed(CORPUS / name, steps="all")
    after = tmp_path / Path(name).name  # the same name: answers tell it
    after.write_bytes(once.data)
    assert differing(CORPUS / name, after, tmp_path / "answer.json") == []
    assert slimmed(once.data).data == once.data
    assert look_at(after, Limits()).words == {}
    assert once.after.file_bytes / once.steps[1] < 700_000
    other = tmp_path / "other" / Path(name).name  # a trace beside itself is known by its digest
    other.parent.mkdir()
    other.write_bytes(_with_a_blank_more(CORPUS / name))
    assert _compared(CORPUS / name, after, tmp_path) == _compared(CORPUS / name, other, tmp_path)


@pytest.mark.parametrize(("base", "new"), PAIRS)
def test_two_slimmed_traces_differ_as_the_whole_ones_do(base: str, new: str, tmp_path: Path) -> None:
    slim = []
    for side, name in (("base", base), ("new", new)):
        (tmp_path / side).mkdir()
        slim.append(tmp_path / side / Path(name).name)
        slim[-1].write_bytes(slimmed(CORPUS / name, steps="all").data)
    whole = _compared(CORPUS / base, CORPUS / new, tmp_path)
    assert _compared(*slim, tmp_path) == whole
    assert whole["path"]["delta_ns"]


@pytest.mark.parametrize("name", IN_PART)
def test_a_step_of_a_real_trace_is_made_of_the_same_alone(name: str, tmp_path: Path) -> None:
    steps = load(CORPUS / name).steps
    label = steps[len(steps) // 2].label
    after = tmp_path / "after.json.gz"
    after.write_bytes(slimmed(CORPUS / name, steps=label).data)
    assert step_facts(after, label) == step_facts(CORPUS / name, label)


def _with_a_blank_more(path: Path) -> bytes:
    """The same trace in other bytes."""
    data = path.read_bytes()
    return data + (gzip.compress(b"\n", mtime=0) if data[:2] == b"\x1f\x8b" else b"\n")


def _compared(base: Path, new: Path, folder: Path) -> Any:
    """All numbers of a comparison, but for what it notes about the recordings; or that it was refused."""
    out = folder / "compared.json"
    code = run(["diff", str(base), str(new), "-o", str(out)])
    if code:
        return {"refused": code}
    data = json.loads(out.read_bytes())["data"]
    data["matched"]["differences"] = [
        one for one in data["matched"]["differences"] if one["level"] not in ("note", "capture")
    ]
    for side in ("base", "new"):
        for option in ("with_stack", "with_modules"):  # are left out
            del data[side]["fingerprint"]["recorded"][option]
    return data


def test_traces_of_many_families_are_looked_at() -> None:
    with (CORPUS / "catalog.tsv").open(encoding="utf-8") as lines:
        family = {
            f"{row['slug']}/{row['file']}": row["family"] for row in csv.DictReader(lines, delimiter="\t")
        }
    assert len({family[name] for name in WHOLE}) >= 10
