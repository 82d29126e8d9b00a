"""A slimmed trace answers as the whole one: every number with all steps, what a step is made of with fewer."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from stepcrit.session import load
from tests.slimming.facts import answer, differing, slimmed, step_facts

FIXTURES = Path(__file__).parents[2] / "fixtures"
WHOLE = (
    "recorded/accumulation_stacks",
    "recorded/ddp_gloo_rank1",
    "recorded/dataloader_before",
    "simulated/two_streams_sync_records",
    "simulated/full_queue_16",
    "simulated/graph_step",
)
IN_PART = (
    "recorded/accumulation_update",
    "recorded/loader_halved_before",
    "recorded/copies_removed_before",
    "simulated/item_sync",
    "simulated/two_streams_sync_records",
    "simulated/full_queue_1023",
    "simulated/graph_step",
    "simulated/ddp_tail.rank0",
    "simulated/host_bound",
)


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.parametrize("name", WHOLE)
def test_every_number_of_every_answer_is_the_same_with_all_steps(name: str, tmp_path: Path) -> None:
    source, after = FIXTURES / f"{name}.json.gz", tmp_path / "after.json.gz"
    after.write_bytes(slimmed(source, steps="all").data)
    assert differing(source, after, tmp_path / "answer.json") == []


@pytest.mark.parametrize("which", ["middle", "last"])
@pytest.mark.parametrize("name", IN_PART)
def test_a_step_that_stays_is_made_of_the_same(name: str, which: str, tmp_path: Path) -> None:
    source, after = FIXTURES / f"{name}.json.gz", tmp_path / "after.json.gz"
    steps = load(source).steps
    label = steps[len(steps) // 2 if which == "middle" else -1].label
    part = slimmed(source, steps=label)
    assert part.after.file_bytes < slimmed(source, steps="all").after.file_bytes
    after.write_bytes(part.data)
    assert step_facts(after, label) == step_facts(source, label)
    assert len(load(after).steps) == part.steps[1]


NAMELESS = (
    "boundary", "chosen_step", "elapsed_ns", "latency_ns", "microbatches", "steps", "summed_ns", "device_busy_ns",
    "overlap", "idle_by_cause_ns", "queue", "operators_total",
)  # fmt: skip


@pytest.mark.parametrize("name", WHOLE)
def test_an_anonymous_trace_has_the_same_numbers_under_other_names(name: str, tmp_path: Path) -> None:
    source, after = FIXTURES / f"{name}.json.gz", tmp_path / "after.json.gz"
    after.write_bytes(slimmed(source, steps="all", anonymize=True, stacks=True).data)
    before, now = (answer(path, ("analyze",), tmp_path / "answer.json")["data"] for path in (source, after))
    assert {key: now[key] for key in NAMELESS} == {key: before[key] for key in NAMELESS}
    for part in ("by_class_ns", "by_group_ns", "by_evidence_ns"):
        assert now["critical_path"][part] == before["critical_path"][part]
    assert len(now["operators"]) == len(before["operators"])


def loop(*more: dict[str, Any]) -> dict[str, Any]:
    """Five steps of 100 µs; in each an operator launches a kernel that runs at once."""
    rows = list(more)
    for i in range(5):
        t = 100 * i
        rows += [
            row("user_annotation", f"ProfilerStep#{i}", (t, t + 100)),
            row("cpu_op", "aten::mm", (t + 5, t + 30)),
            row("cuda_runtime", "cudaLaunchKernel", (t + 10, t + 15), correlation=i + 1),
            row("kernel", "gemm", (t + 20, t + 60), (0, 7), correlation=i + 1, stream=7),
        ]
    return {"schemaVersion": 1, "traceEvents": rows}


def late_kernel(launched: int, until: int) -> tuple[dict[str, Any], ...]:
    """A kernel of another stream that runs on long after its launch."""
    return (
        row("cpu_op", "aten::late", (launched - 2, launched + 8)),
        row("cuda_runtime", "cudaLaunchKernel", (launched, launched + 3), correlation=99),
        row("kernel", "long", (launched + 5, until), (0, 20), correlation=99, stream=20),
    )


def row(
    cat: str, name: str, span: tuple[int, int], place: tuple[int, int] = (4100, 4100), **args: int
) -> dict[str, Any]:
    ids = {"pid": place[0], "tid": place[1], "args": args}
    return {"ph": "X", "cat": cat, "name": name, "ts": 1000 + span[0], "dur": span[1] - span[0], **ids}


@pytest.mark.parametrize(
    ("launched", "until", "label", "stay"),
    [
        (-50, 330, "ProfilerStep#3", 2),  # in flight when the step begins: its call and operator stay
        (40, 270, "ProfilerStep#3", 4),  # steps 1 and 2 end with it: step 0 alone tells when
        (40, 170, "ProfilerStep#2", 3),
    ],
)
def test_what_still_runs_when_a_step_begins_stays_with_all_that_tells_its_beginning(
    launched: int, until: int, label: str, stay: int, tmp_path: Path
) -> None:
    source, after = tmp_path / "before.json", tmp_path / "after.json.gz"
    source.write_text(json.dumps(loop(*late_kernel(launched, until))), encoding="utf-8")
    part = slimmed(source, steps=label)
    assert part.steps == (1, stay)
    after.write_bytes(part.data)
    assert step_facts(after, label) == step_facts(source, label)
    assert slimmed(part.data, steps=label).data == part.data
    assert any("'aten::late'" in str(one) for one in step_facts(after, label)["work"]) == (until > 300)


@pytest.mark.parametrize("name", ["simulated/full_queue_1023", "simulated/host_bound"])
def test_updates_are_counted_anew_from_the_one_before_those_that_stay(name: str, tmp_path: Path) -> None:
    """Without ProfilerStep ranges updates are the steps; the device may lag behind by more than one."""
    text = gzip.decompress((FIXTURES / f"{name}.json.gz").read_bytes()).decode()
    source, after = tmp_path / "before.json", tmp_path / "after.json.gz"
    source.write_text(re.sub("ProfilerStep#", "iteration ", text), encoding="utf-8")
    steps = load(source).steps
    assert (steps.source, steps[3].label) == ("optimizer", "update 4")
    part = slimmed(source, steps="4")
    assert (part.mark.first_step, part.steps) == ("update 4", (1, 2))
    after.write_bytes(part.data)
    assert step_facts(after, "update 2") == step_facts(source, "update 4")
    assert slimmed(part.data, steps="2").data == part.data


@pytest.mark.parametrize("steps", ["all", "median", "last:2", None])
@pytest.mark.parametrize("name", [*WHOLE[:3], *IN_PART[3:6]])
def test_slimming_twice_is_slimming_once(name: str, steps: str | None) -> None:
    once = slimmed(FIXTURES / f"{name}.json.gz", steps=steps)
    assert slimmed(once.data, steps=steps).data == once.data
    assert slimmed(once.data).data == once.data
    assert slimmed(once.data, key=b"another key, of the user's").data == once.data


@pytest.mark.parametrize("name", ["recorded/loader_halved_before", "simulated/full_queue_1023"])
def test_a_slimmed_trace_slimmed_to_fewer_steps_is_the_whole_one_slimmed_to_them(name: str) -> None:
    source = FIXTURES / f"{name}.json.gz"
    some = slimmed(source, steps="last:4")
    few = slimmed(some.data, steps="last:2")
    assert few.data == slimmed(source, steps="last:2").data
    assert few.after.events < some.after.events < few.mark.steps_of * some.after.events
