"""Real traces written otherwise get the same answers, to the byte: shuffled, shifted, renumbered, packed."""

from __future__ import annotations

import gzip
import os
from functools import cache
from pathlib import Path

import pytest

from tests.variants import (
    Layout,
    Renaming,
    Written,
    answers,
    keys_shuffled,
    renamed,
    shifted,
    shown,
    shuffled,
    to_bytes,
    understood,
    written,
)

CORPUS = Path(os.environ.get("STEPCRIT_CORPUS", ""))
NAMES = (
    "hta-simple-add/benchmark_simple_add_trace.json.gz",  # one operator on one GPU
    "hta-a100-critpath/benchmark_result_2869224_1695835535_trace.json.gz",  # sync records
    "zoology-a100/trace.json.gz",  # operators of the same times
    "sidnb13-h100/dc3b0e7228dd_851.1752215573993169006.pt.trace.json.gz",  # Python frames of the same times
    "dtu-cpu/trace.json.gz",  # the host alone, whole microseconds
    "hta-a100-critpath/event_sync.json.gz",  # waits for recorded events
    "tl-mi300x-hf/gaunernst_bert-small-uncased__1016001.json.gz",  # AMD
    "tl-mi300x-vllm-full/vllm_full_graph_execution.json.gz",  # graph launches
    "hta-mi250-ddp/mi250_minitoy_train_ROCm6_2_kineto.json.gz",  # two names for one thread
    "torchbench-a100/trace.json",  # an older writer
)
pytestmark = pytest.mark.skipif(not (CORPUS / NAMES[0]).is_file(), reason="STEPCRIT_CORPUS names no corpus")
VERBS = ("analyze", "critical", "rank", "doctor")
ASCENDING = Renaming(correlation=lambda n: 2 * n + 3, external_id=lambda n: 3 * n + 1)
VARIANTS = {
    "events shuffled": lambda trace: to_bytes(shuffled(trace, 7)),
    "keys shuffled": lambda trace: to_bytes(keys_shuffled(trace, 7)),
    "a day earlier": lambda trace: to_bytes(shifted(trace, -86_400 * 10**9)),
    "renumbered": lambda trace: to_bytes(renamed(trace, ASCENDING)),
    "gzip": lambda trace: to_bytes(trace, Layout(pack=lambda data: gzip.compress(data, 1))),
}


@cache
def original(name: str) -> tuple[Written, dict[str, bytes]]:
    trace = written(CORPUS / name)
    return trace, told_of(to_bytes(trace))


def told_of(data: bytes) -> dict[str, bytes]:
    return shown(answers(understood(data), VERBS), ("json",))


@pytest.mark.parametrize("name", NAMES)
def test_real_trace_written_otherwise_gets_the_same_answers(name: str) -> None:
    trace, told = original(name)
    for variant, change in VARIANTS.items():
        assert told_of(change(trace)) == told, variant
