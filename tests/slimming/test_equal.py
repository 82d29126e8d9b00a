"""A slimmed trace answers as the whole one: every number with all steps, what a step is made of with fewer."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepcrit.session import load
from tests.slimming.facts import differing, slimmed, step_facts

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
