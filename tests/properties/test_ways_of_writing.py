"""I11, I12, I15: how a trace is written, packed and handed over decides nothing, nor does what it says besides."""

from __future__ import annotations

import gzip
import io
import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepcrit.model.section import Document
from stepcrit.session import load
from tests.properties.crowded import crowded
from tests.properties.schedules import PROPERTY as FULL
from tests.variants import Event, Layout, Written, answers, decimal, shown, to_bytes, understood, written

PROPERTY = settings(FULL, max_examples=20)
FIXTURES = Path(__file__).parents[2] / "fixtures"
PATH = FIXTURES / "simulated" / "ddp_tail.rank1.json.gz"
NAMES = ("simulated/ddp_tail.rank1", "recorded/ddp_gloo_rank1")


@cache
def fixture(name: str = NAMES[0]) -> Written:
    return written(FIXTURES / f"{name}.json.gz")


@cache
def told_of(name: str = NAMES[0]) -> dict[str, bytes]:
    return shown(answers(understood(to_bytes(fixture(name)))))


# --- I11: layouts -----------------------------------------------------------------------------


def _members(data: bytes) -> bytes:
    """Three gzip members, one of them empty."""
    third = len(data) // 3
    return b"".join(gzip.compress(part, 1) for part in (data[:third], b"", data[third:]))


def _exponent(ns: int) -> str:
    return f"{ns}e-3"


LAYOUTS = {
    "compact": Layout(around=","),
    "one event a line": Layout(around=",\n"),
    "pretty": Layout(dumps=lambda value: json.dumps(value, indent=4, ensure_ascii=False, default=float), around=" ,\r\n\t "),
    "escaped": Layout(dumps=lambda value: _escaped(json.dumps(value, default=float))),
    "times as text": Layout(time=lambda ns: f'"{decimal(ns)}"'),
    "times with an exponent": Layout(time=_exponent),
    "times in every manner": Layout(time=lambda ns: (decimal, _exponent, lambda t: f'"{decimal(t)}"')[ns % 3](ns)),
    "gzip": Layout(pack=gzip.compress),
    "gzip in several members": Layout(pack=_members),
}  # fmt: skip


def _escaped(text: str) -> str:
    """Every letter of the words in a JSON text as an escape by its number (keys, too)."""
    out, inside = [], False
    for sign in text:
        inside ^= sign == '"'
        out.append(f"\\u{ord(sign):04x}" if inside and sign.isalpha() else sign)
    return "".join(out)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", NAMES)
def test_layout_and_packing_decide_nothing(name: str, layout: str) -> None:
    data = to_bytes(fixture(name), LAYOUTS[layout])
    if layout == "escaped":
        assert plain(_without_dialect(answers(understood(data)))) == plain(_without_dialect(told(name)))
    else:
        assert shown(answers(understood(data))) == told_of(name)


@cache
def told(name: str = NAMES[0]) -> Mapping[str, Document | str]:
    return answers(understood(to_bytes(fixture(name))))


def _without_dialect(found: Mapping[str, Document | str]) -> dict[str, Any]:
    """The writer is dated by words as they stand in the bytes; escaped, they are not looked for."""
    return data_of(found, "dialect")


@pytest.mark.parametrize("chunk_bytes", [1, 7, 1000, 1 << 24])
def test_size_of_the_pieces_in_which_it_is_read_decides_nothing(chunk_bytes: int) -> None:
    short = replace(fixture(), events=fixture().events[:: 3 if chunk_bytes < 100 else 1])
    data = to_bytes(short)
    assert shown(answers(understood(data, chunk_bytes=chunk_bytes))) == shown(answers(understood(data)))


@PROPERTY
@given(crowded(), st.integers(1, 300), st.sampled_from(sorted(set(LAYOUTS) - {"escaped"})))
def test_any_trace_in_any_layout_and_pieces_gets_the_same_answers(
    trace: Written, chunk_bytes: int, layout: str
) -> None:
    one = shown(answers(understood(to_bytes(trace))))
    assert shown(answers(understood(to_bytes(trace, LAYOUTS[layout]), chunk_bytes=chunk_bytes))) == one


@pytest.mark.parametrize("name", NAMES)
def test_whole_microseconds_may_be_integers_or_decimals(name: str) -> None:
    """`1700` and `1700.000`; the clock is in whole microseconds either way."""
    whole = replace(
        fixture(name),
        events=[{k: v // 1000 * 1000 if k in ("ts", "dur") else v for k, v in e.items()} for e in fixture(name).events],
    )  # fmt: skip
    integers = Layout(time=lambda ns: str(ns // 1000))
    found = shown(answers(understood(to_bytes(whole, integers))))
    assert found == shown(answers(understood(to_bytes(whole))))
    assert b'"resolution_ns": 1000' in found["analyze json"]


@pytest.mark.parametrize("name", NAMES)
def test_rows_may_be_written_as_begin_and_end(name: str) -> None:
    """But for how many events there are, and of which phase."""
    halves: list[Event] = []
    for e in fixture(name).events:
        if e.get("ph") == "X" and e["dur"] > 0 and e.get("cat") in ("cpu_op", "user_annotation"):
            halves.append({k: v for k, v in e.items() if k != "dur"} | {"ph": "B"})
            halves.append({"ph": "E", "pid": e["pid"], "tid": e["tid"], "ts": e["ts"] + e["dur"]})
        else:
            halves.append(e)
    assert len(halves) > len(fixture(name).events)
    found = answers(understood(to_bytes(replace(fixture(name), events=halves))))
    assert data_of(found, "events") == data_of(told(name), "events")


# --- I12: additions ---------------------------------------------------------------------------

START = min(e["ts"] for e in fixture().events if e.get("ph") == "X")
TRACK = {"pid": 424242, "tid": 1}
ADDITIONS: dict[str, list[Event]] = {
    "unknown phases": [{"ph": ph, "name": "n", **TRACK, "ts": START + 5000} for ph in "ZbneOND("],
    "counters": [{"ph": "C", "name": "c", **TRACK, "ts": START + 5000, "args": {"v": 1}}],
    "unknown categories": [
        {"ph": "X", "cat": "warp_drive", "name": "n", **TRACK, "ts": START + 5000, "dur": 10**9, "args": {"stream": 7}}
    ],
    "metadata": [
        {"ph": "M", "name": "thread_name", **TRACK, "ts": START, "args": {"name": "new"}},
        {"ph": "M", "name": "never heard of", **TRACK, "ts": 0, "args": {"x": [1, {"y": None}]}},
    ],
    "instants": [{"ph": "i", "name": "mark", "s": "g", **TRACK, "ts": START + 5000}],
}  # fmt: skip


@pytest.mark.parametrize("what", ADDITIONS)
def test_events_of_no_known_meaning_change_no_number(what: str) -> None:
    more = [*fixture().events[:100], *ADDITIONS[what], *fixture().events[100:], *ADDITIONS[what]]
    found = answers(understood(to_bytes(replace(fixture(), events=more))))
    assert data_of(found, "events") == data_of(told(), "events")


def test_unknown_category_is_told() -> None:
    more = [*fixture().events, *ADDITIONS["unknown categories"]]
    found = answers(understood(to_bytes(replace(fixture(), events=more))), ["analyze"])["analyze"]
    assert isinstance(found, Document)
    assert "warp_drive" in str(found.findings)


def test_unknown_keys_and_arguments_change_nothing() -> None:
    odd = {"later": {"a": [1, None, "\u2028", 1e300]}, "": 0, "TS": 5, "dur ": -1}
    events = [{**odd, **e, "args": {**odd, **e.get("args", {}), **odd}} for e in fixture().events]
    found = Written({**fixture().header, "unheard of": odd, "traceEvents2": []}, events)
    assert shown(answers(understood(to_bytes(found)))) == told_of()


# --- I15: the same input twice ----------------------------------------------------------------


def test_input_is_the_same_from_a_path_a_folder_a_stream_and_stdin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = PATH.read_bytes()
    folder = tmp_path / "one"
    folder.mkdir()
    shutil.copy(PATH, folder / "t.json.gz")
    (folder / ".hidden.json").write_bytes(data)
    (tmp_path / "plain.txt").write_bytes(gzip.decompress(data))
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(data)))
    expected = shown(told(), ("json",))  # on screen stands the name of the file
    ways = (PATH, str(PATH), folder / "t.json.gz", tmp_path / "plain.txt", folder, io.BytesIO(data), "-")
    for way in ways:
        assert shown(answers(load(way)), ("json",)) == expected, way


def test_one_trace_asked_twice_says_the_same() -> None:
    """Nothing that an answer looks at is changed by another answer."""
    trace = understood(to_bytes(fixture()))
    assert shown(answers(trace)) == shown(answers(trace)) == told_of()


# --- comparing --------------------------------------------------------------------------------


def data_of(found: Mapping[str, Document | str], *but: str) -> dict[str, Any]:
    """Numbers of the answers without some of what they say about the file; doctor says little else."""
    plain_data = {
        verb: one.data if isinstance(one, Document) else one
        for verb, one in found.items()
        if verb != "doctor"
    }
    return {
        verb: {**one, "trace": {k: v for k, v in one["trace"].items() if k not in but}}
        if isinstance(one, dict) and "trace" in one
        else one
        for verb, one in plain_data.items()
    }  # fmt: skip


def plain(value: object) -> str:
    """A value for comparing."""
    return json.dumps(value, sort_keys=True, default=str)
