"""In a CI runner's log nothing is a command but what we mean as one, whatever a trace or a repository is called."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

import stepcrit.report.write
from stepcrit.cli.main import run
from stepcrit.cli.output import Stdout, annotate, say, tell
from stepcrit.cli.runner import tell_runner
from stepcrit.report.github import SUMMARY_BYTES, annotated
from tests.report.checks import checked, failing, hostile
from tests.report.runner import WANTING, commands
from tests.security.hostile_trace import hostile_trace
from tests.security.test_hostile_names import ANSWERED, PLAIN, REFUSED, Place

ACTING = "".join(f"{line}\n" for line in WANTING).replace("%0A", "\n")


@pytest.fixture(autouse=True)
def in_actions(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return Place(tmp_path / "here", hostile_trace(), hostile_trace(1))


@pytest.mark.parametrize("fmt", ["", "text", "md", "csv", "json"])
def test_no_answer_of_any_command_is_one_to_a_runner(
    place: Place, fmt: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for command, typed in ANSWERED:
        if "TRACE" not in typed and command == ("whatif",):
            continue
        argv = [*command, *place.argv(typed), *(["--format", fmt] if fmt and command[0] not in PLAIN else [])]
        run(argv)
        out, err = capsys.readouterr()
        assert commands(out) == commands(err) == [], argv
        assert out or err


def test_no_refusal_is_one_to_a_runner(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    for typed, code in REFUSED:
        assert run(place.argv(typed)) == code
        out, err = capsys.readouterr()
        assert commands(out) == commands(err) == [], typed


@pytest.mark.parametrize("fmt", ["text", "md", "csv", "json"])
def test_what_a_renderer_forgot_is_stopped_at_the_door(
    place: Place, fmt: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stepcrit.report.write, "render", lambda *_: ACTING.encode())
    for _ in range(2):
        assert run(place.argv(f"doctor TRACE --format {fmt}")) == 0
        out = capsys.readouterr().out
        assert commands(out) == []
        assert len(out) == len(ACTING)
        monkeypatch.setenv("GITHUB_ACTIONS", "false")
        assert run(place.argv(f"doctor TRACE --format {fmt}")) == 0
        assert capsys.readouterr().out == ACTING  # elsewhere what is rendered is what is written
        monkeypatch.setenv("GITHUB_ACTIONS", "true")


@pytest.mark.parametrize("packed", [gzip.compress(b"x", mtime=0), b"\x28\xb5\x2f\xfd"])
def test_a_packed_file_on_stdout_stays_what_it_is(packed: bytes) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), "utf-8")
    data = packed + ACTING.encode()
    Stdout(stream).send(data)
    assert stream.buffer.getvalue() == data


def test_words_by_either_door_are_stopped(capsys: pytest.CaptureFixture[str]) -> None:
    say(ACTING)
    tell(ACTING)
    out, err = capsys.readouterr()
    assert commands(out) == commands(err) == []


def test_the_only_commands_in_a_log_are_our_notes(capsys: pytest.CaptureFixture[str]) -> None:
    tell(ACTING)
    annotate(annotated(hostile()))
    tell(ACTING)
    out, err = capsys.readouterr()
    assert out == ""
    assert [one.name for one in commands(err)] == ["error"] * 10 + ["warning"]
    assert {key for one in commands(err) for key in one.properties} == {"file", "line", "title"}


def test_notes_are_in_signs_that_the_stream_has() -> None:
    code = """
from stepcrit.cli.output import annotate
from stepcrit.report.github import annotated
from tests.report.checks import hostile
annotate(annotated(hostile()))
"""
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, env=env, cwd=Path(__file__).parents[2]
    )
    assert done.stderr.isascii()
    assert [one.name for one in commands(done.stderr.decode())] == ["error"] * 10 + ["warning"]


# --- the summary -----------------------------------------------------------------------------

FAILED = checked(failing("traces/a.json.gz"))


@pytest.fixture
def file(place: Place, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the environment wants the summary."""
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    assert place.folder.is_dir()
    return Path("summary.md")


def test_outside_a_runner_nothing_is_told(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "1")
    tell_runner(FAILED)
    assert capsys.readouterr() == ("", "")
    assert not file.exists()


def test_a_summary_goes_below_what_stands_there(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text("of the step before", encoding="utf-8")
    tell_runner(FAILED)
    tell_runner(FAILED)
    text = file.read_text(encoding="utf-8")
    assert text.startswith("of the step before\n### stepcrit check\n")
    assert text.count("### stepcrit check\n") == 2
    assert [one.name for one in commands(capsys.readouterr().err)] == ["error"] * 2
    assert commands(text) == []


def test_the_summary_of_a_whole_step_fits_what_github_takes(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_bytes(b"x" * (SUMMARY_BYTES - 100))
    before = file.read_bytes()
    tell_runner(FAILED)
    assert file.read_bytes() == before
    assert "no summary for the job: summary.md would pass 900000 bytes" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "nowhere", "input"])
def test_what_is_no_place_for_a_summary_is_told_and_left(
    place: Place, kind: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("other").write_text("mine", encoding="utf-8")
    Path("link").symlink_to("other")
    os.mkfifo("pipe")
    Path("folder").mkdir()
    Path("input").write_text("read", encoding="utf-8")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "no/where" if kind == "nowhere" else kind)
    before = place.files()
    tell_runner(FAILED, "input")
    assert "no summary for the job: " in capsys.readouterr().err
    assert Path("other").read_text(encoding="utf-8") == "mine"
    assert Path("input").read_text(encoding="utf-8") == "read"
    assert place.files() == before


def test_a_summary_of_hostile_names_is_told_harmlessly(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "no\x1b[2J/\n::error::x")
    tell_runner(hostile())
    assert [one.properties for one in commands(capsys.readouterr().err) if "file" not in one.properties] == []
    assert not file.exists()
