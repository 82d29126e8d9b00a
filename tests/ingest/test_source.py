"""Bytes are told apart by what they are, and counted as they pass."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from stepcrit.errors import BrokenInputError, EmptyInputError, InputError, NotFoundInputError
from stepcrit.ingest import read_trace

EVENT = {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 2}
TEXT = json.dumps({"schemaVersion": 1, "traceEvents": [EVENT] * 300}).encode()


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz", "trace"])
@pytest.mark.parametrize("packed", [True, False])
def test_gzip_is_told_by_its_bytes_not_its_name(tmp_path: Path, name: str, *, packed: bool) -> None:
    data = gzip.compress(TEXT) if packed else TEXT
    path = tmp_path / name
    path.write_bytes(data)
    meta = read_trace(path).meta
    assert (meta.source, meta.compression) == (name, "gzip" if packed else "none")
    assert (meta.input_bytes, meta.json_bytes) == (len(data), len(TEXT))
    assert meta.sha256 == hashlib.sha256(data).hexdigest()
    assert meta.event_count == 300


def test_a_gzip_file_may_have_several_members_and_padding() -> None:
    data = gzip.compress(TEXT[:100]) + gzip.compress(TEXT[100:]) + b"\0" * 64
    meta = read_trace(io.BytesIO(data)).meta
    assert (meta.event_count, meta.input_bytes) == (300, len(data))
    assert meta.sha256 == hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("cut", [1, 9, 10, 40, 100])
def test_a_gzip_stream_that_stops_is_broken(cut: int) -> None:
    data = gzip.compress(TEXT)
    with pytest.raises(BrokenInputError):
        read_trace(io.BytesIO(data[: len(data) - cut]))


def test_a_damaged_gzip_stream_is_broken() -> None:
    data = bytearray(gzip.compress(TEXT))
    data[len(data) // 2] ^= 0xFF
    with pytest.raises(BrokenInputError, match="gzip"):
        read_trace(io.BytesIO(bytes(data)))


def test_an_empty_gzip_file_is_empty() -> None:
    with pytest.raises(EmptyInputError):
        read_trace(io.BytesIO(gzip.compress(b"")))


def test_a_dash_is_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(gzip.compress(TEXT))))
    meta = read_trace("-").meta
    assert (meta.source, meta.event_count) == ("-", 300)


def test_a_stream_that_hands_out_little_at_a_time_is_read_whole() -> None:
    class Trickle(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            return super().read(min(size or 7, 7))

    assert read_trace(Trickle(TEXT)).meta.event_count == 300


def test_a_folder_stands_for_its_only_trace(tmp_path: Path) -> None:
    (tmp_path / "rank0.json").write_bytes(TEXT)
    (tmp_path / "notes.txt").write_text("not a trace")
    assert read_trace(tmp_path).meta.source == "rank0.json"
    assert read_trace(str(tmp_path)).meta.source == "rank0.json"


def test_a_folder_of_several_traces_lists_them(tmp_path: Path) -> None:
    for rank in range(7):
        (tmp_path / f"rank{rank}.json.gz").write_bytes(TEXT)
    with pytest.raises(InputError, match="7 traces") as caught:
        read_trace(tmp_path)
    assert "rank0.json.gz, rank1.json.gz" in caught.value.do


def test_a_folder_without_traces_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotFoundInputError, match="no trace") as caught:
        read_trace(tmp_path)
    assert caught.value.where == str(tmp_path)


@pytest.mark.parametrize("name", ["missing.json", "nul\0.json", "a/b/c.json"])
def test_a_path_that_leads_nowhere_is_not_found(tmp_path: Path, name: str) -> None:
    with pytest.raises(NotFoundInputError) as caught:
        read_trace(str(tmp_path / name))
    assert name in caught.value.where


def test_a_stream_that_fails_is_an_input_error() -> None:
    class Failing(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:  # noqa: ARG002
            raise OSError(5, "Input/output error")

    with pytest.raises(NotFoundInputError, match="Input/output error"):
        read_trace(Failing())


def test_the_error_says_which_file(tmp_path: Path) -> None:
    path = tmp_path / "cut.json"
    path.write_bytes(TEXT[:200])
    with pytest.raises(BrokenInputError) as caught:
        read_trace(path)
    assert caught.value.where == "cut.json, byte 200 of the JSON text"
