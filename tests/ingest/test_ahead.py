"""Unpacking ahead in a thread changes nothing: same tables, same damage, same refusals, and no thread is left."""

from __future__ import annotations

import gzip
import io
import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from stepcrit.errors import InputError, InternalError, LimitInputError, NotFoundInputError
from stepcrit.ingest import read_trace
from stepcrit.ingest import source as opening
from stepcrit.ingest.ahead import Ahead, Piece
from stepcrit.ingest.limits import Limits
from stepcrit.model.trace import RawTrace

DEMO = Path(__file__).parents[2] / "stepcrit" / "data" / "demo.json.gz"
TEXT = gzip.decompress(DEMO.read_bytes())
LONG = TEXT.replace(b'"traceEvents": [', b'"traceEvents": [' + b" " * 3_000_000, 1)
PACKED = gzip.compress(LONG, mtime=0)
HALF = len(PACKED) // 2
BROKEN = LONG[:-4000] + LONG[-3990:]


def test_the_inputs_are_what_they_are_meant_to_be() -> None:
    assert len(LONG) > 3_000_000 > len(BROKEN) - len(TEXT) > 2_000_000
    assert not isinstance(outcome(io.BytesIO(PACKED)), tuple)


def outcome(source: Any, **options: Any) -> Any:
    """All that reading tells, as values that compare."""
    try:
        trace = read_trace(source, **options)
    except InputError as error:
        return type(error), error.what, error.where.partition(", ")[2], error.do
    return [*values(replace(trace.meta, source="")), *tables(trace)]


def values(record: Any) -> list[Any]:
    return [getattr(record, name) for name in record.__struct_fields__]


def tables(trace: RawTrace) -> list[Any]:
    """Every column as bytes."""
    found = [value for table in (trace.events, trace.flows, trace.memory) for value in values(table)]
    return [value.tobytes() if isinstance(value, np.ndarray) else value for value in found]


@pytest.mark.parametrize(
    "data",
    [
        PACKED,
        PACKED[:HALF],
        PACKED[:-3],
        PACKED[:-8] + b"\0" * 8,
        PACKED[:HALF] + b"\xff\0" + PACKED[HALF + 2 :],
        PACKED + b"junk that follows",
        PACKED + PACKED[:30],
        gzip.compress(LONG[:1_500_000], mtime=0) + gzip.compress(LONG[1_500_000:], mtime=0),
        gzip.compress(BROKEN, mtime=0)[:-9],
        gzip.compress(BROKEN, mtime=0),
        gzip.compress(b"", mtime=0),
        PACKED[:5],
    ],
)
@pytest.mark.parametrize(
    "options", [{}, {"salvage": True}, {"limits": Limits(text=2_000_000)}, {"limits": Limits(value=1000)}]
)
def test_a_packed_file_reads_as_the_stream_of_its_bytes_does(
    tmp_path: Path, data: bytes, options: dict[str, Any]
) -> None:
    path = tmp_path / "trace.json.gz"
    path.write_bytes(data)
    assert outcome(path, **options) == outcome(io.BytesIO(data), **options)
    assert [thread.name for thread in threading.enumerate() if thread.name == "reading ahead"] == []


@pytest.mark.parametrize("data", [LONG, BROKEN, LONG[:-3000], b"", b"[", b"PK\3\4"])
@pytest.mark.parametrize("options", [{}, {"salvage": True}, {"limits": Limits(text=2_000_000)}])
def test_a_large_plain_file_reads_as_the_stream_of_its_bytes_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes, options: dict[str, Any]
) -> None:
    monkeypatch.setattr(opening, "_WORTH_A_THREAD", -1)
    started: list[str] = []
    start = threading.Thread.start
    monkeypatch.setattr(
        threading.Thread, "start", lambda thread: (started.append(thread.name), start(thread))[1]
    )
    path = tmp_path / "trace.json"
    path.write_bytes(data)
    assert outcome(path, **options) == outcome(io.BytesIO(data), **options)
    assert started == ["reading ahead"]
    assert [thread.name for thread in threading.enumerate() if thread.name == "reading ahead"] == []


def test_a_file_that_is_refused_early_leaves_no_thread(tmp_path: Path) -> None:
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(b"[" + b" " * 30_000_000, mtime=0))
    with pytest.raises(LimitInputError):
        read_trace(path, limits=Limits(text=2_000_000))
    assert [thread.name for thread in threading.enumerate() if thread.name == "reading ahead"] == []


def test_what_the_thread_meets_is_raised_to_who_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(os.urandom(300_000).hex().encode(), mtime=0))
    read = opening._Tally._read_some

    def failing(self: opening._Tally, size: int) -> bytes | None:
        if self.count > 100_000:
            raise OSError(5, "Input/output error")
        return read(self, size)

    monkeypatch.setattr(opening._Tally, "_read_some", failing)
    with pytest.raises(NotFoundInputError, match="Input/output error"):
        read_trace(path)


def test_a_bug_in_the_thread_is_raised_to_who_reads_and_nobody_waits_after_it() -> None:
    def dies() -> Piece:
        raise ZeroDivisionError

    ahead = Ahead(dies)
    with pytest.raises(ZeroDivisionError):
        ahead.next()
    ahead.stop()
    with pytest.raises(InternalError, match="ended before the text"):
        ahead.next()


def test_where_no_thread_can_be_had_reading_does_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    path = tmp_path / "trace.json.gz"
    path.write_bytes(PACKED)
    usual = outcome(path)
    monkeypatch.setattr(threading.Thread, "start", refuses)
    assert outcome(path) == usual


def test_a_small_file_that_is_not_packed_and_a_pipe_need_no_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threading.Thread, "start", lambda _: pytest.fail("a thread was started"))
    path = tmp_path / "trace.json"
    path.write_bytes(TEXT)
    assert len(read_trace(path).events)
    ends = os.pipe()
    os.write(ends[1], DEMO.read_bytes()[:60_000])
    os.close(ends[1])
    assert len(read_trace(f"/dev/fd/{ends[0]}", salvage=True).events)
    os.close(ends[0])
