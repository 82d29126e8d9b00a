"""F8, F15, F16: files that may not be read, that are no files, that are gone, and names of every kind."""

from __future__ import annotations

import gzip
import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from stepcrit.cli.main import run
from stepcrit.ingest import source
from tests.faults.conftest import TRACE
from tests.faults.nursery import Nursery

NOBODY = 65534
READING = ("analyze", "critical", "doctor")


@pytest.fixture
def open_to_all(tmp_path: Path) -> Path:
    """A folder that another user may go into: pytest keeps its own to itself."""
    for folder in (tmp_path, *tmp_path.parents):
        if folder.name.startswith(("pytest-", "popen-", "test_")):
            folder.chmod(0o755)
    return tmp_path


def as_nobody() -> dict[str, int]:
    """Root may read everything: then the command runs as somebody else."""
    return {} if os.getuid() else {"uid": NOBODY}


# --- no file, no right, no time --------------------------------------------------------------


@pytest.mark.usefixtures("open_to_all")
@pytest.mark.parametrize("verb", READING)
@pytest.mark.parametrize("what", ["file", "folder", "folder above"])
def test_what_may_not_be_read_is_no_input(nursery: Nursery, trace: Path, verb: str, what: str) -> None:
    locked, named = {
        "file": (trace, trace),
        "folder": (trace.parent, trace.parent),
        "folder above": (trace.parent, trace),
    }[what]
    assert nursery.run(verb, str(named), **as_nobody()).code == 0
    locked.chmod(0)
    done = nursery.run(verb, str(named), **as_nobody())
    locked.chmod(0o755)
    assert (done.code, done.out) == (3, b"")
    assert b"Permission denied" in done.err
    assert named.name.encode() in done.err


def test_where_nothing_may_be_written_the_old_file_stays(
    nursery: Nursery, open_to_all: Path, trace: Path
) -> None:
    out = open_to_all / "shut" / "out.json"
    out.parent.mkdir()
    out.write_bytes(b"old")
    out.parent.chmod(0o555)
    done = nursery.run("doctor", str(trace), "-o", str(out), **as_nobody())
    out.parent.chmod(0o755)
    assert (done.code, done.out) == (5, b"")
    assert b"bytes: Permission denied\n  where  " + str(out).encode() in done.err
    assert [path.read_bytes() for path in out.parent.iterdir()] == [b"old"]


def test_a_folder_is_no_place_for_an_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in (str(tmp_path), f"{tmp_path}/", f"{tmp_path}/new/", f"{TRACE}/a.json"):
        assert run(["doctor", str(TRACE), "-o", name]) == 5
        assert capsys.readouterr().out == ""
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_goes_between_listing_and_opening_is_not_found(
    trace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = source.choose

    def gone(*asked: Any) -> tuple[Path, tuple[tuple[str, str], ...]]:
        found, skipped = listed(*asked)
        found.unlink()
        return found, skipped

    monkeypatch.setattr(source, "choose", gone)
    assert run(["doctor", str(trace.parent)]) == 3
    assert "There is no such file" in capsys.readouterr().err


@pytest.mark.parametrize("verb", READING)
def test_what_is_no_regular_file_ends_with_a_word(
    tmp_path: Path, verb: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    loop, empty = tmp_path / "loop.json", tmp_path / "empty"
    loop.symlink_to(loop)
    empty.mkdir()
    with socket.socket(socket.AF_UNIX) as one:
        monkeypatch.chdir(tmp_path)
        one.bind("socket.json")  # a short name: the system takes no long one
        for path in (loop, empty, tmp_path / "socket.json", Path("/dev/null"), tmp_path / "empty" / "x.json"):
            assert run([verb, str(path)]) == 3
            captured = capsys.readouterr()
            assert captured.out == ""
            assert captured.err.startswith("error SC30")


# --- how the text is written -----------------------------------------------------------------

TEXT = gzip.decompress(TRACE.read_bytes())
SPREAD = json.dumps(json.loads(TEXT), indent=1).encode()


@pytest.mark.parametrize(
    "text",
    [SPREAD, SPREAD.replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + TEXT, b"\r\n\n \t\n" + TEXT, TEXT + b"\n\n"],
    ids=["lf", "crlf", "bom", "blank lines before", "blank lines after"],
)
def test_line_ends_marks_and_blank_lines_change_no_answer(
    tmp_path: Path, text: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = []
    for data in (TEXT, text, gzip.compress(text)):
        path = tmp_path / "a.json"
        path.write_bytes(data)
        assert run(["analyze", str(path), "--json"]) == 0
        answers.append(json.loads(capsys.readouterr().out)["data"])
        assert answers[-1].pop("trace")["events"] == 719  # the rest of it tells of the bytes
    assert answers[0] == answers[1] == answers[2]


@pytest.mark.parametrize(
    ("encoding", "mark", "name"),
    [
        ("utf-16-le", b"\xff\xfe", "UTF-16"),
        ("utf-16-be", b"\xfe\xff", "UTF-16"),
        ("utf-16-le", b"", "UTF-16"),
        ("utf-16-be", b"", "UTF-16"),
        ("utf-32-le", b"\xff\xfe\0\0", "UTF-32"),
        ("utf-32-be", b"\0\0\xfe\xff", "UTF-32"),
        ("utf-32-le", b"", "UTF-32"),
        ("utf-32-be", b"", "UTF-32"),
    ],
)
@pytest.mark.parametrize("before", ["", "\r\n "])
def test_a_wide_encoding_is_refused_by_its_name(
    tmp_path: Path, encoding: str, mark: bytes, name: str, before: str, capsys: pytest.CaptureFixture[str]
) -> None:
    wide = mark + (before + TEXT.decode()).encode(encoding)
    for data in (wide, gzip.compress(wide)):
        path = tmp_path / "a.json"
        path.write_bytes(data)
        assert run(["doctor", str(path)]) == 3
        captured = capsys.readouterr()
        assert captured.out == ""
        assert f"text in {name}" in captured.err
        assert "UTF-8" in captured.err


# --- names -----------------------------------------------------------------------------------

NAMES = [
    "a name with blanks",
    "two\nlines",
    "-rf",
    "--help",
    "-",
    "~",
    "~root",
    "100%s%n",
    "$(reboot)`x`;&|<>*?[a]'\"\\",
    "日本語😀👩\u200d💻",
    "\u202eevil\u2066",
    "\x1b[31mred\x1b]0;x\x07",
    "\udcff\udc80not UTF-8",
    "::error file=a::b",
    "x" * 250,
    "é" * 125,
    "😀" * 62,
]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to be in."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def only_prints(text: str) -> bool:
    """Whether nothing in it does anything else; our own narrow blank prints."""
    return all(char.isprintable() or char in "\n\u202f" for char in text)


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_a_file_may_have_any_name(place: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    trace = f"{name}.json"
    Path(place, trace).write_bytes(TRACE.read_bytes())
    for argv in (["analyze", "--", trace], ["--", trace], ["doctor", f"./{trace}"]):
        assert run(argv) == 0
        captured = capsys.readouterr()
        assert only_prints(captured.out + captured.err)
    assert run(["whatif", "--shrink", "aten::mm=0.5", "--json"]) == 0  # the trace that was just read
    captured = capsys.readouterr()
    assert "the last one analyzed" in captured.err
    assert only_prints(captured.out + captured.err)
    (told,) = json.loads(captured.out)["inputs"]
    assert "\ufffd" not in told["name"]
    assert run(["doctor", "--", f"{trace}.nosuch"]) == 3
    assert only_prints(capsys.readouterr().err)


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_a_folder_and_an_output_may_have_any_name(
    place: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(place, name).mkdir()
    Path(place, name, "t.json.gz").write_bytes(TRACE.read_bytes())
    out = f"./{name}.csv"
    assert run(["doctor", f"--output={out}", "--", f"./{name}"]) == 0
    assert run(["doctor", f"--output={out}", "--", f"./{name}"]) == 0
    assert sorted(os.listdir(place)) == sorted([name, out[2:]])  # noqa: PTH208 - names as they are
    assert Path(out).read_bytes().startswith(b"table,")
    assert run(["doctor", str(TRACE), f"--output=./{name}"]) == 5
    captured = capsys.readouterr()
    assert captured.out == ""
    assert only_prints(captured.err)


def test_a_name_as_long_as_names_can_be_is_written_and_read(place: Path) -> None:
    for name in ("x" * 250 + ".json", "é" * 125 + ".json", "😀" * 62 + "ab.json"):
        assert len(os.fsencode(name)) >= 254
        assert run(["doctor", str(TRACE), "-o", name]) == 0
        assert os.listdir(place) == [name]  # noqa: PTH208 - names as they are
        Path(name).unlink()
