"""Over real traces: every answer is as its schema declares it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from stepcrit.cli.main import run
from stepcrit.report.schemas.every import schema

CORPUS = Path(os.environ.get("STEPCRIT_CORPUS") or "/nonexistent")
LARGEST = 80_000
"""Small files are of as many families as large ones."""
FILES = sorted(
    path for path in CORPUS.glob("*/*") if path.is_file() and ".json" in path.name and path.stat().st_size < LARGEST
)  # fmt: skip
ASKED = ("analyze", "critical", "doctor", "whatif --rank", "whatif --shrink *=0.5")

pytestmark = pytest.mark.skipif(not FILES, reason="set STEPCRIT_CORPUS to run over real traces")


def test_there_are_enough_of_them() -> None:
    assert len({path.parent for path in FILES}) > 10


@pytest.mark.parametrize("words", ASKED)
def test_answers_about_real_traces_are_as_declared(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    verb, *options = words.split()
    answered = 0
    for path in FILES:
        if run([verb, str(path), *options, "--json"]) != 0:
            capsys.readouterr()
            continue
        answer = json.loads(capsys.readouterr().out)
        found = Draft202012Validator(schema(answer["schema"].split("/")[1])).iter_errors(answer)
        assert [f"{fault.json_path}: {fault.message[:200]}" for fault in found] == [], path
        answered += 1
    assert answered > len(FILES) // 2
