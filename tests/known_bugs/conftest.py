"""The real command on a trace written by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stepcrit.cli.main import run
from tests.known_bugs.written import Answer, Content, text

Ask = Callable[..., Answer]


@pytest.fixture
def ask(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Ask:
    """Write a trace (or take a path) and ask about it: `ask(content, "doctor", "--strict", rank=...)`."""

    def asked(
        content: Content | Path, verb: str = "analyze", *options: str, name: str = "trace.json", **header: Any
    ) -> Answer:
        path = content if isinstance(content, Path) else tmp_path / name
        if not isinstance(content, Path):
            path.write_bytes(content if isinstance(content, bytes) else text(content, **header))
        plain = "--format" in options
        code = run([verb, str(path), *options, *(() if plain else ("--json",))])
        out, err = capsys.readouterr()
        return Answer(code, json.loads(out) if out and not plain else {}, out, err)

    return asked
