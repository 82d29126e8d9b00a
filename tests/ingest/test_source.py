"""Bytes are told apart by what they are, and counted as they pass."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import random
import sys
import zlib
from pathlib import Path
from types import SimpleNamespace

import pytest
from backports import zstd

from stepcrit.errors import (
    BrokenInputError,
    EmptyInputError,
    InputError,
    NotFoundInputError,
    PartialError,
    UsageError,
)
from stepcrit.ingest import read_trace, reader
from stepcrit.ingest.rows import RowCollector
from stepcrit.ingest.tables import Tables, build_tables
from stepcrit.model.trace import Harm

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


PACKERS = {"gzip": gzip.compress, "zstd": zstd.compress}


@pytest.mark.parametrize("kind", PACKERS)
def test_a_packed_file_may_have_several_frames(kind: str) -> None:
    pack = PACKERS[kind]
    data = pack(TEXT[:100]) + pack(b"") + pack(TEXT[100:]) + (b"\0" * 64 if kind == "gzip" else b"")
    meta = read_trace(io.BytesIO(data)).meta
    assert (meta.event_count, meta.input_bytes, meta.compression) == (300, len(data), kind)
    assert meta.sha256 == hashlib.sha256(data).hexdigest()
    assert meta.damage == ()


def _whole_events(text: bytes) -> int:
    return text.count(b"}")


@pytest.mark.parametrize("cut", [1, 9, 10, 40, 100])
@pytest.mark.parametrize("kind", PACKERS)
def test_of_a_stream_that_stops_what_it_held_is_kept(kind: str, cut: int) -> None:
    noise = random.Random(3)
    text = json.dumps([{**EVENT, "name": f"{noise.random()}"} for _ in range(3000)]).encode()
    data = PACKERS[kind](text)
    trace = read_trace(io.BytesIO(data[: len(data) - cut]), salvage=True)
    harms = {damage.harm: damage.count for damage in trace.meta.damage}
    assert harms.pop(Harm.PACK_CUT) == 1
    assert set(harms) <= {Harm.CUT}
    if kind == "gzip":  # its standard tool hands out what came before the cut: an oracle
        before = zlib.decompressobj(31).decompress(data[: len(data) - cut])
        assert trace.meta.event_count == _whole_events(before)


@pytest.mark.parametrize("chunk_bytes", [64, 5000, 1 << 20])
def test_of_a_stream_that_stops_and_unpacks_to_much_all_is_kept(chunk_bytes: int) -> None:
    data = gzip.compress(json.dumps([EVENT] * 3000).encode())[:-30]
    before = zlib.decompressobj(31).decompress(data)
    meta = read_trace(io.BytesIO(data), salvage=True, chunk_bytes=chunk_bytes).meta
    assert (meta.event_count, meta.json_bytes) == (_whole_events(before), len(before))


def test_of_a_damaged_gzip_stream_what_came_before_is_kept() -> None:
    noise = random.Random(3)
    text = json.dumps([{**EVENT, "name": f"{noise.random()}"} for _ in range(3000)]).encode()
    data = bytearray(gzip.compress(text))
    data[len(data) // 2] ^= 0xFF
    trace = read_trace(io.BytesIO(bytes(data)), salvage=True)
    assert Harm.PACK_BAD in {damage.harm for damage in trace.meta.damage}
    assert trace.meta.event_count >= 1000
    assert trace.meta.lost_share > 0.4
    assert trace.meta.sha256 == hashlib.sha256(data).hexdigest()
    with pytest.raises(BrokenInputError, match="The gzip stream is damaged") as caught:
        read_trace(io.BytesIO(bytes(data)))
    assert "gzip -t" in caught.value.do


@pytest.mark.parametrize("kind", PACKERS)
def test_input_that_cannot_be_unpacked_is_lost_also_in_the_block_that_fails(kind: str) -> None:
    noise = random.Random(4)
    text = json.dumps([{**EVENT, "name": f"{noise.random()}"} for _ in range(400)]).encode()
    data = bytearray(PACKERS[kind](text))
    start = len(data) // 5
    data[start : start + 64] = bytes(64)
    with pytest.raises(BrokenInputError, match=r"\d\d % of the input cannot be used|stream is damaged"):
        read_trace(io.BytesIO(bytes(data)))


def test_a_wrong_checksum_is_told_and_the_text_kept() -> None:
    data = bytearray(gzip.compress(TEXT))
    data[-6] ^= 0xFF
    meta = read_trace(io.BytesIO(bytes(data))).meta
    assert (meta.event_count, [damage.harm for damage in meta.damage]) == (300, [Harm.PACK_BAD])


@pytest.mark.parametrize("kind", PACKERS)
def test_junk_behind_a_packed_stream_is_told(kind: str) -> None:
    data = PACKERS[kind](TEXT) + b"junk"
    meta = read_trace(io.BytesIO(data)).meta
    assert (meta.event_count, [damage.harm for damage in meta.damage]) == (300, [Harm.PACK_AFTER])
    assert meta.lost_share == 4 / len(data)


@pytest.mark.parametrize("kind", PACKERS)
def test_much_junk_behind_a_packed_stream_is_lost_to_its_last_byte(kind: str) -> None:
    junk = b"junk" * 100_000
    packed = PACKERS[kind](TEXT)
    meta = read_trace(io.BytesIO(packed + junk), salvage=True).meta
    assert meta.event_count == 300
    assert meta.lost_share == len(junk) / (len(packed) + len(junk))
    assert meta.input_bytes == len(packed) + len(junk)


def test_zstd_may_begin_with_a_skippable_frame() -> None:
    data = b"\x50\x2a\x4d\x18\x04\0\0\0abcd" + zstd.compress(TEXT)
    assert read_trace(io.BytesIO(data)).meta.event_count == 300


def test_a_zstd_frame_may_not_ask_for_a_window_of_two_gibibytes() -> None:
    # magic, a descriptor without content size, a window descriptor of 2 GiB, one empty last block
    frame = b"\x28\xb5\x2f\xfd" + bytes([0x00, 0xA8]) + b"\x01\0\0"
    with pytest.raises(BrokenInputError, match="zstd stream is damaged"):
        read_trace(io.BytesIO(frame + zstd.compress(TEXT)))


def test_without_the_extra_a_zstd_file_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("compression", "backports", "backports.zstd"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UsageError, match="extra `zstd`") as caught:
        read_trace(io.BytesIO(zstd.compress(TEXT)))
    assert "stepcrit[zstd]" in caught.value.do


@pytest.mark.parametrize(
    "data",
    [gzip.compress(b""), gzip.compress(b"")[:10], zstd.compress(b""), b"\x1f\x8b"],
    ids=["gzip", "its header", "zstd", "two bytes"],  # by content they would have the time of day in them
)
def test_a_packed_file_of_nothing_is_empty(data: bytes) -> None:
    with pytest.raises(EmptyInputError):
        read_trace(io.BytesIO(data))


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
    names = [f"rank{rank}.json.gz" for rank in range(5)]
    assert caught.value.do == f"Name one of them: {', '.join(names)}, ..."
    for rank in range(2, 7):
        (tmp_path / f"rank{rank}.json.gz").unlink()
    with pytest.raises(InputError, match="2 traces") as caught:
        read_trace(tmp_path)
    assert caught.value.do == "Name one of them: rank0.json.gz, rank1.json.gz"


@pytest.mark.parametrize("before", ["\ufeff", " ", "\t", "\r\n", "\n"])
def test_a_trace_of_a_folder_may_begin_with_white_space(tmp_path: Path, before: str) -> None:
    (tmp_path / "rank0.json").write_bytes(before.encode() + TEXT)
    assert read_trace(tmp_path).meta.event_count == 300


@pytest.mark.parametrize("error", [OSError(13, "Permission denied"), OSError("odd")])
def test_a_folder_that_cannot_be_read_is_told_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    def refuse(_: Path) -> None:
        raise error

    monkeypatch.setattr(Path, "iterdir", refuse)
    reason = error.strerror or "odd"
    with pytest.raises(NotFoundInputError, match=f"The folder cannot be read: {reason}.") as caught:
        read_trace(tmp_path)
    assert caught.value.where == str(tmp_path)


def test_the_trace_of_a_folder_is_told_by_content_and_the_others_by_name_and_reason(tmp_path: Path) -> None:
    (tmp_path / "profile.1625.bin").write_bytes(gzip.compress(TEXT))
    (tmp_path / "execution.json").write_text('{"schema": "1.1.1-chakra", "nodes": []}')
    (tmp_path / "nsys.sqlite").write_bytes(b"SQLite format 3\0" + bytes(100))
    (tmp_path / "noise.json").write_bytes(bytes(range(256)))
    (tmp_path / "notes.txt").write_text("not a trace")
    (tmp_path / "empty.json").write_bytes(b"")
    (tmp_path / ".hidden.json").write_bytes(TEXT)
    (tmp_path / "deeper").mkdir()
    meta = read_trace(tmp_path).meta
    assert (meta.source, meta.event_count) == ("profile.1625.bin", 300)
    assert dict(meta.skipped) == {
        "empty.json": "empty",
        "execution.json": "JSON without the keys of a trace",
        "noise.json": "binary data",
        "notes.txt": "no JSON",
        "nsys.sqlite": "an SQLite database (Nsight Systems exports these)",
    }


SIGNS = [
    '{"traceEvents":[]}',
    '{"deviceProperties":[]}',
    '{"computeProperties":[]}',
    '{"distributedInfo":{}}',
    '{"baseTimeNanoseconds" : 1}',
    '[{"ph":"X"}]',
]


@pytest.mark.parametrize("text", SIGNS)
def test_any_key_of_a_trace_makes_a_file_one_of_the_traces_of_its_folder(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text)
    (tmp_path / "b.json").write_bytes(TEXT)
    with pytest.raises(InputError, match="2 traces"):
        read_trace(tmp_path)


def test_a_folder_without_traces_is_told_and_what_it_holds(tmp_path: Path) -> None:
    with pytest.raises(NotFoundInputError, match="no trace") as caught:
        read_trace(tmp_path)
    assert caught.value.where == str(tmp_path)
    (tmp_path / "notes.txt").write_text("not a trace")
    with pytest.raises(NotFoundInputError) as caught:
        read_trace(tmp_path)
    assert "notes.txt (no JSON)" in caught.value.do


def test_a_pipe_a_device_and_a_socket_are_not_opened(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero"), Path("/dev/null")):
        with pytest.raises(NotFoundInputError, match="no regular file") as caught:
            read_trace(path)
        assert "standard input" in caught.value.do


def test_a_pipe_that_is_open_already_is_read() -> None:
    reading, writing = os.pipe()
    os.write(writing, TEXT[:20_000])
    os.close(writing)
    meta = read_trace(f"/dev/fd/{reading}", salvage=True).meta
    os.close(reading)
    assert meta.event_count > 100


@pytest.mark.parametrize("change", ["grow", "cut", "touch", "replace"])
def test_a_file_that_changes_while_it_is_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(TEXT)

    def tables(collected: RowCollector, _: int | None) -> Tables:
        if change == "grow":
            path.write_bytes(TEXT + b" ")
        elif change == "cut":
            path.write_bytes(TEXT[:-1])
        elif change == "touch":
            os.utime(path, ns=(0, 0))
        else:
            (tmp_path / "new").write_bytes(TEXT)
            (tmp_path / "new").replace(path)
        return build_tables(collected)

    monkeypatch.setattr(reader, "build_tables", tables)
    with pytest.raises(PartialError, match="changed while it was read"):
        read_trace(path)


def test_a_file_that_is_taken_away_while_it_is_read_was_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(TEXT)

    def tables(collected: RowCollector, _: int | None) -> Tables:
        path.unlink()
        return build_tables(collected)

    monkeypatch.setattr(reader, "build_tables", tables)
    assert read_trace(path).meta.event_count == 300


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
    path.write_bytes(TEXT[:90])
    with pytest.raises(BrokenInputError) as caught:
        read_trace(path)
    assert caught.value.where.startswith("cut.json, byte 90 of the JSON text, line 1")
