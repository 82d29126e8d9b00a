"""What is no torch.profiler trace is refused by its name."""

from __future__ import annotations

import gzip
import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from backports import zstd

from stepcrit.errors import EmptyInputError, ForeignInputError, InputError, PointerInputError
from stepcrit.ingest.sniff import refuse_bytes
from stepcrit.model.trace import RawTrace

Read = Callable[..., RawTrace]

LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n"
MEGATRON = {
    "name": "forward-compute",
    "cat": "forward-compute",
    "ph": "X",
    "pid": 0,
    "tid": 0,
    "ts": 0.5,
    "dur": 1,
}

BYTES: list[tuple[bytes, type[InputError], str]] = [
    (b"", EmptyInputError, "empty"),
    (b" \n ", EmptyInputError, "empty"),
    (LFS, PointerInputError, "Git LFS"),
    (b"SQLite format 3\0" + b"\0" * 84, ForeignInputError, "SQLite"),
    (b"PK\x03\x04rest", ForeignInputError, "zip"),
    (zstd.compress(zstd.compress(b"{}")), ForeignInputError, "compressed twice"),
    (b"\xfd7zXZ\0rest", ForeignInputError, "xz"),
    (b"BZh91AY", ForeignInputError, "bzip2"),
    (pickle.dumps({"segments": []}), ForeignInputError, "pickle"),
    (b"\x0a\xc3\x01\x0a\x10", ForeignInputError, "Perfetto"),
    (b"<!DOCTYPE html>", ForeignInputError, "HTML"),
    (b"name".ljust(257, b"\0") + b"ustar", ForeignInputError, "tar"),
    (b"\x7fELF\0\0", ForeignInputError, "binary"),
    (gzip.compress(gzip.compress(b"{}")), ForeignInputError, "compressed twice"),
    (gzip.compress(LFS), PointerInputError, "Git LFS"),
]

DOCUMENTS: list[tuple[Any, str]] = [
    ({"rocprofiler-sdk-tool": [{"metadata": {}}]}, "rocprofv3"),
    ({"$schema": "https://www.speedscope.app/file-format-schema.json", "profiles": []}, "speedscope"),
    ({"shared": {"frames": []}, "profiles": []}, "speedscope"),
    ({"schema": "1.1.0-chakra.0.0.4", "pid": 1, "nodes": []}, "execution trace"),
    ({"segments": [], "device_traces": []}, "memory snapshot"),
    ({"aten::add": ["k1", "k2"], "aten::mm": []}, "map from operators"),
    ({"a": 1, "b": 2}, "no traceEvents"),
    ({"a": ["x"], "b": 2, "c": 3, "d": 4}, "(a, b, c, ...)"),
    ({}, "without any trace event"),
    ({"traceEvents": []}, "without any trace event"),
    ({"traceEvents": None}, "without any trace event"),
    ({"schemaVersion": 1, "traceEvents": []}, "without any trace event"),
    ([], "without any trace event"),
    ([{"op_name": "aten::add", "replay_ir": {}}], "event-replay IR"),
    ([[0, 1, 2], [[3, 4], [5, 6]]], "memory timeline"),
    ([1, 2, 3], "no trace events"),
    (["a"], "no trace events"),
    ([MEGATRON], "another program: no category is torch.profiler's (forward-compute)"),
    ({"traceEvents": [MEGATRON]}, "another program"),
    ([{"name": "x", "ph": "X", "pid": 0, "tid": 0, "ts": 0, "dur": 1}], "no category"),
]


@pytest.mark.parametrize(("data", "error", "word"), BYTES, ids=[case[2] for case in BYTES])
def test_bytes_of_another_kind_are_named(
    read_text: Read, data: bytes, error: type[InputError], word: str
) -> None:
    with pytest.raises(error) as caught:
        read_text(data)
    assert word in caught.value.what
    assert caught.value.do
    assert "\n" not in caught.value.what + caught.value.do


def test_a_damaged_file_of_another_kind_is_named_by_its_keys(read_text: Read) -> None:
    with pytest.raises(ForeignInputError, match="rocprofv3"):
        read_text(b'{"rocprofiler-sdk-tool":[{"strings":{"f":"\xa0" "}}]}')


@pytest.mark.parametrize(("document", "word"), DOCUMENTS, ids=[case[1][:20] for case in DOCUMENTS])
@pytest.mark.parametrize("chunk_bytes", [5, 1 << 20])
def test_json_of_another_kind_is_named(read_text: Read, document: Any, word: str, chunk_bytes: int) -> None:
    with pytest.raises(ForeignInputError) as caught:
        read_text(json.dumps(document), chunk_bytes=chunk_bytes)
    assert word in caught.value.what
    assert "torch.profiler" in caught.value.do


@pytest.mark.parametrize(
    "head",
    [
        b"\n {",
        b"\n\t{",
        b"\n\r\n{",
        b"\n\n[",
        b"\n{",
        b"\n[",
        b"\n",
        b"{\x02",
        b"[\x03\x00" + b" " * 30,
        b'{"a\x00":1234}',
    ],
)
def test_json_behind_a_line_end_or_with_a_damaged_byte_is_no_binary_file(head: bytes) -> None:
    refuse_bytes(head)


@pytest.mark.parametrize("bom", ["", "\ufeff"])
@pytest.mark.parametrize("encoding", ["UTF-32LE", "UTF-32BE", "UTF-16LE", "UTF-16BE"])
def test_text_in_a_wide_encoding_is_named_with_the_way_out(encoding: str, bom: str) -> None:
    for text in ('{"traceEvents": []}', ' [{"ph": "X"}]'):
        with pytest.raises(ForeignInputError, match=f"text in {encoding}") as caught:
            refuse_bytes((bom + text).encode(encoding))
        assert f"iconv -f {encoding} -t UTF-8" in caught.value.do


def test_json_with_a_tenth_of_zero_bytes_is_a_binary_file() -> None:
    with pytest.raises(ForeignInputError, match="binary data"):
        refuse_bytes(b'{"a\x00":123}')


def test_a_trace_of_marks_alone_is_still_a_trace(read_text: Read) -> None:
    marks = [{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}}]
    trace = read_text(json.dumps({"schemaVersion": 1, "traceEvents": marks}))
    assert (len(trace.events), trace.meta.phases, trace.meta.origin_ns) == (0, {"M": 1}, 0)
