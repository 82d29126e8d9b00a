"""Every trace of the corpus is read alike by plain and compiled kernels, and none of it is too odd for the scanner.

Needs STEPCRIT_CORPUS, the folder with catalog.tsv: the traces are other people's and not ours to ship.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from stepcrit import kernels
from stepcrit.ingest import scanned

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

CORPUS = os.environ.get("STEPCRIT_CORPUS", "")

pytestmark = [
    pytest.mark.skipif(not CORPUS, reason="STEPCRIT_CORPUS names no corpus of real traces"),
    pytest.mark.skipif(bool(kernels._absent()), reason="no compiled kernels are built here"),
]

FILES = sorted(path for path in Path(CORPUS or "absent").glob("*/*") if path.suffix in {".json", ".gz"})
ODD = {"dtu-windows-badjson", "neg-straggler-timeline"}
"""Damaged, or of another program: of these not all is scanned."""


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}"[:60])
def test_a_real_trace_is_read_alike_and_scanned_whole(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fuzzing import twins  # noqa: PLC0415 - a script's

    given_back: list[int] = []
    decode = scanned.ScanningDecoder.many

    def many(self: scanned.ScanningDecoder, text: bytes, start: int, end: int) -> Any:
        events = decode(self, text, start, end)
        given_back.extend([end - start] if isinstance(events, list) else [])
        return events

    monkeypatch.setattr(scanned.ScanningDecoder, "many", many)
    assert twins.unlike(path.read_bytes()) == []
    assert given_back == [] or path.parent.name in ODD
