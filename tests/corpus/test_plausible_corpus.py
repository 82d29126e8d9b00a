"""Real traces raise no false alarm: those with rows that cannot be true are listed here, each looked at by hand."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import pytest

from stepcrit.analyses.lostwork import analyze
from stepcrit.errors import InputError
from stepcrit.session import load

CORPUS = Path(os.environ.get("STEPCRIT_CORPUS") or "/nonexistent")
pytestmark = pytest.mark.skipif(
    not (CORPUS / "catalog.tsv").exists(),
    reason="the shared corpus of real traces is not here: set STEPCRIT_CORPUS",
)

FOUND = {
    # A frame of `next` inside `__enter__`, which took 0.2 ms, runs on to the end of the recording 304 ms later.
    "tl-mi300x-xdit-flux/capture_trace_rank_0.json.gz": {"P310": 1},
    # Trimmed by hand: the one kernel that its second step launched was cut out of the file.
    "hta-trimmed/test.json.gz": {"P309": 1},
}


def catalog() -> list[str]:
    if not (CORPUS / "catalog.tsv").exists():
        return ["absent"]
    with (CORPUS / "catalog.tsv").open(encoding="utf-8") as lines:
        return [f"{row['slug']}/{row['file']}" for row in csv.DictReader(lines, delimiter="\t")]


@pytest.mark.parametrize("name", catalog())
def test_only_the_listed_traces_hold_what_cannot_be_true(name: str) -> None:
    try:
        trace = load(CORPUS / name)
    except InputError:
        assert name.startswith("neg-")
        return
    odd = (*trace.raw.oddities, *analyze(trace.raw, trace.links, trace.steps))
    assert {one.code: one.count for one in odd} == FOUND.get(name, {})
