"""No input costs more than its limits allow, and the error names the limit."""

from __future__ import annotations

import gzip
import io
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
from backports import zstd

from stepcrit.errors import InputError, LimitInputError, UsageError
from stepcrit.ingest import read_trace
from stepcrit.ingest.limits import GIB, MIB, NAME_CHARS, Limits, default_limits, parse_limits

EVENT = {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 2}


def _text(count: int = 300, **more: object) -> bytes:
    return json.dumps([{**EVENT, **more} for _ in range(count)]).encode()


OVER = [
    ("text", Limits(text=9_999), _text(), "more JSON text"),
    ("value", Limits(value=5_000), _text(3, args={"x": "y" * 9_000}), "One value"),
    ("value", Limits(value=5_000), b'{"a":"' + b"x" * 9_000 + b'","traceEvents":[]}', "One value|The header"),
    (
        "value",
        Limits(value=5_000),
        b"{" + b",".join(b'"k%d":"%s"' % (n, b"x" * 900) for n in range(9)) + b',"traceEvents":[]}',
        "The header",
    ),
    (
        "names",
        Limits(names=50),
        json.dumps([{**EVENT, "name": "n" * n} for n in range(20)]).encode(),
        "names",
    ),
    ("events", Limits(events=299), _text(), "more events"),
]


@pytest.mark.parametrize(
    ("name", "limits", "data", "what"), OVER, ids=[f"{case[0]}-{case[3]}" for case in OVER]
)
def test_an_input_over_a_limit_is_refused_by_its_name(
    name: str, limits: Limits, data: bytes, what: str
) -> None:
    for chunk_bytes in (100, 1 << 20):
        with pytest.raises(LimitInputError, match=what) as caught:
            read_trace(io.BytesIO(data), limits=limits, chunk_bytes=chunk_bytes, salvage=True)
        assert f"(limit {name}: " in caught.value.what
        assert f"--limit {name}=" in caught.value.do


def test_an_input_at_its_limits_is_read() -> None:
    data = _text()
    limits = Limits(text=len(data), events=300, names=len("a") + len("cpu_op"), value=len(data))
    assert read_trace(io.BytesIO(data), limits=limits).meta.event_count == 300


@pytest.mark.parametrize("limits", [Limits(names=len("a") + len("cpu_op") - 1), Limits(events=299)])
def test_an_input_one_over_a_limit_is_refused(limits: Limits) -> None:
    with pytest.raises(LimitInputError):
        read_trace(io.BytesIO(_text()), limits=limits)


def test_the_header_may_have_all_of_its_limit_and_not_a_byte_more() -> None:
    values = {"traceName": "x" * 400, "displayTimeUnit": "y" * 298}  # 402 and 300 with their quotation marks
    data = json.dumps({"traceEvents": [EVENT], **values}).encode()
    assert read_trace(io.BytesIO(data), limits=Limits(value=702), chunk_bytes=100).meta.event_count == 1
    with pytest.raises(LimitInputError, match="The header"):
        read_trace(io.BytesIO(data), limits=Limits(value=701), chunk_bytes=100)


def test_the_advice_can_be_typed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(LimitInputError) as caught:
        read_trace(io.BytesIO(_text()), limits=Limits(events=5))
    raised = parse_limits(Limits(events=5), (caught.value.do.split("--limit ")[1],))
    assert raised == Limits(events=10)
    assert capsys.readouterr().out == ""


BOMBS = {
    "gzip": gzip.compress,
    "zstd": zstd.compress,
    "zstd of many frames": lambda text: zstd.compress(text[: 8 << 20]) * 100,
}


@pytest.mark.parametrize("kind", BOMBS)
def test_a_bomb_is_refused_in_little_memory(kind: str, tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.json"
    bomb.write_bytes(BOMBS[kind](b'{"a":"' + b"x" * (400 * MIB)))
    assert bomb.stat().st_size < MIB
    code = (
        "import re, sys; from pathlib import Path\n"
        "from stepcrit.errors import LimitInputError; from stepcrit.ingest import read_trace\n"
        "try: read_trace(sys.argv[1])\n"
        "except LimitInputError as error: print(error.what)\n"
        "print(re.search(r'VmHWM:\\s+(\\d+)', Path('/proc/self/status').read_text())[1])"
    )
    child = subprocess.run(
        [sys.executable, "-c", code, str(bomb)], check=True, capture_output=True, text=True
    )
    what, peak = child.stdout.splitlines()
    assert "limit ratio: 300" in what or "limit value: 64 MiB" in what
    assert int(peak) < 300 << 10


def test_a_real_ratio_is_no_bomb() -> None:
    noise = random.Random(1)
    pads = [f"{noise.random()}" * 170 for _ in range(500)]
    each = (json.dumps({**EVENT, "ts": n, "args": {"x": noise.choice(pads)}}).encode() for n in range(21_000))
    text = b"[" + b",".join(each) + b"]"
    data = zstd.compress(text, level=3)
    assert len(text) > 64 * MIB
    assert 20 < len(text) / len(data) < 300
    assert read_trace(io.BytesIO(data)).meta.event_count == 21_000


def test_a_little_text_may_pack_to_next_to_nothing() -> None:
    text = _text() + b" " * 10_000_000
    data = zstd.compress(text)
    assert len(text) > 1000 * len(data)
    assert read_trace(io.BytesIO(data)).meta.event_count == 300


def test_a_size_that_a_frame_declares_is_not_believed() -> None:
    # single segment, 8 bytes of content size: 2^62; then one raw block of 2 bytes, the last
    frame = b"\x28\xb5\x2f\xfd\xe0" + (1 << 62).to_bytes(8, "little") + b"\x11\0\0" + b"[]"
    with pytest.raises(InputError):
        read_trace(io.BytesIO(frame))


def test_a_long_name_is_cut_and_kept_apart_from_its_like() -> None:
    long = "n" * (NAME_CHARS + 1)
    found = [{**EVENT, "name": name} for name in (long + "a", long + "b", long + "a", "n" * NAME_CHARS)]
    names = read_trace(io.BytesIO(json.dumps(found).encode())).events.names
    assert max(map(len, names)) == NAME_CHARS
    assert len(set(names)) == len(names) == 3
    assert "n" * NAME_CHARS in names


def test_in_ci_less_text_is_read() -> None:
    assert default_limits({}).text == default_limits({"CI": "false"}).text == 16 * GIB
    assert default_limits({"CI": "true"}).text == default_limits({"CI": "1"}).text == 2 * GIB


@pytest.mark.parametrize(
    ("word", "limits"),
    [
        ("text=32GiB", Limits(text=32 * GIB)),
        ("text=32 gib", Limits(text=32 * GIB)),
        ("text=1KiB", Limits(text=1_024)),
        ("text=1MiB", Limits(text=1_048_576)),
        ("text=1GiB", Limits(text=1_073_741_824)),
        ("text=2kB", Limits(text=2_000)),
        ("text=3GB", Limits(text=3_000_000_000)),
        ("value=5MB", Limits(value=5_000_000)),
        ("ratio=600", Limits(ratio=600)),
        ("events=7", Limits(events=7)),
        ("events=500000000", Limits(events=500_000_000)),
    ],
)
def test_a_limit_is_a_number_perhaps_with_a_unit(word: str, limits: Limits) -> None:
    assert parse_limits(Limits(), (word,)) == limits


@pytest.mark.parametrize(
    "word",
    [
        "text",
        "text=",
        "text=0",
        "text=-1",
        "text=1.5GiB",
        "text=1TiB",
        "text=" + "9" * 30,
        "x=1",
        "=1",
        "",
        "events=500000001",
    ],
)
def test_what_is_no_limit_is_refused(word: str) -> None:
    with pytest.raises(UsageError):
        parse_limits(Limits(), (word,))


def test_looking_ahead_in_damaged_text_is_no_large_value() -> None:
    found = [json.dumps({**EVENT, "name": f"op{n}", "ts": n}) for n in range(900)]
    text = ("[" + ",".join(found) + "]").replace('"op1"', '"op1""').encode()
    assert read_trace(io.BytesIO(text), limits=Limits(value=10_000), chunk_bytes=1000).meta.event_count == 900
