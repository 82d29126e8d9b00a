"""Thousands of inputs that nobody would write: no exception that is none of ours, none over 2 s, none over 256 MB."""

from __future__ import annotations

import pytest
from fuzzing.targets import TARGETS

from tests.fuzz.fuzzed import fuzz

SEED = "20240229"
CHUNKS = [
    (target.name, first, min(target.chunk, target.bounded - first))
    for target in TARGETS.values()
    for first in range(0, target.bounded, target.chunk)
]


@pytest.mark.parametrize(("name", "first", "count"), CHUNKS)
def test_every_input_ends_in_an_answer_or_in_one_of_our_refusals(name: str, first: int, count: int) -> None:
    words = ("--seed", SEED, "--target", name, "--first", str(first), "--count", str(count), "--no-keep")
    code, said = fuzz(*words)
    assert code == 0, said
    assert said.splitlines()[-1].startswith(f"{count} inputs, 0 failed"), said


def test_at_least_5000_inputs_are_tried_and_each_target_has_its_part() -> None:
    assert sum(count for _, _, count in CHUNKS) >= 5000
    assert {name for name, _, _ in CHUNKS} == set(TARGETS)
    assert min(target.bounded for target in TARGETS.values()) >= 500
