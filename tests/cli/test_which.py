"""A what-if without a path: the trace of stepcrit.toml, else the last one analyzed, and it says which."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from stepcrit.cli.main import run

ROOT = Path(__file__).parents[2]
TRACE = ROOT / "fixtures" / "simulated" / "device_bound.json.gz"
OTHER = ROOT / "fixtures" / "simulated" / "host_bound.json.gz"
CHANGE = ("--shrink", "aten::mm=0.5")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to be in, and a cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def whatif(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    code = run(["whatif", *argv, *CHANGE])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize("verb", ["analyze", "critical"])
def test_last_trace_analyzed_is_meant_and_named(capsys: pytest.CaptureFixture[str], verb: str) -> None:
    assert run([verb, os.path.relpath(TRACE)]) == 0
    capsys.readouterr()
    code, out, err = whatif(capsys)
    assert code == 0
    assert f"trace  {TRACE} (the last one analyzed)" in err
    assert out == whatif(capsys, str(TRACE))[1]


def test_refused_command_is_not_remembered(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["analyze", str(TRACE)]) == 0
    assert run(["analyze", "nosuch.json"]) == 3
    assert run(["whatif", str(OTHER), "--shrink", "nosuch=1"]) == 2
    capsys.readouterr()
    assert str(TRACE) in whatif(capsys)[2]


def test_trace_of_the_project_goes_before_the_last(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["analyze", str(TRACE)]) == 0
    (place / "traces").mkdir()
    shutil.copy(OTHER, place / "traces" / "step.json.gz")
    (place / "stepcrit.toml").write_text('[check]\ntraces = ["traces/*.json.gz"]\n', encoding="utf-8")
    capsys.readouterr()
    code, _, err = whatif(capsys)
    assert (code, err) == (0, f"trace  {Path('traces') / 'step.json.gz'} (stepcrit.toml)\n")


@pytest.mark.parametrize(
    ("toml", "says"),
    [
        ('[check]\ntraces = ["a.gz", "b.gz"]', "names several traces: 'a.gz', 'b.gz'"),
        ('[check]\ntraces = "*.json"', "names no trace that is there"),
        ("[check]\ntraces = [1]", "is no list of paths"),
        ("[check\n", "cannot be read"),
        ("check = 3", "check is no table"),
        ("[other]\ntraces = 1", "unknown key 'other'"),
        pytest.param("a = " + "[" * 5000, "cannot be read: it is nested too deeply", id="lists in lists"),
        pytest.param("a = " + "{b=" * 5000, "cannot be read: it is nested too deeply", id="tables in tables"),
        pytest.param("a = " + "9" * 5000, "cannot be read", id="a number of 5000 digits"),
        ('[check]\ntraces = ["/nosuch/**", "\\u0000"]', "names no trace"),
        ('[check]\ntraces = "/**"', "names several traces"),  # and is not searched to its end
    ],
)
def test_file_that_names_no_one_trace_is_wrong_use(
    place: Path, capsys: pytest.CaptureFixture[str], toml: str, says: str
) -> None:
    for name in ("a.gz", "b.gz"):
        (place / name).touch()
    (place / "stepcrit.toml").write_text(toml, encoding="utf-8")
    code, out, err = whatif(capsys)
    assert (code, out) == (2, "")
    assert says in err


def test_pyproject_names_the_trace_where_there_is_no_file_of_our_own(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(OTHER, place / "step.json.gz")
    (place / "pyproject.toml").write_text(
        "[tool.stepcrit.check]\ntraces = 'step.json.gz'\n", encoding="utf-8"
    )
    assert "trace  step.json.gz (pyproject.toml)\n" in whatif(capsys)[2]
    (place / "pyproject.toml").write_text("[project\n", encoding="utf-8")  # no concern of ours
    assert "(the last one analyzed)" in whatif(capsys)[2]


@pytest.mark.parametrize("toml", ["", "[check]\n", "[check]\nbase = 'main'"])
def test_file_without_traces_leaves_the_last_one(
    place: Path, capsys: pytest.CaptureFixture[str], toml: str
) -> None:
    assert run(["analyze", str(TRACE)]) == 0
    (place / "stepcrit.toml").write_text(toml, encoding="utf-8")
    capsys.readouterr()
    assert "the last one analyzed" in whatif(capsys)[2]


def test_nothing_analyzed_yet_asks_for_a_trace(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = whatif(capsys)
    assert (code, out) == (2, "")
    assert "no trace given" in err


def test_trace_that_is_gone_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = tmp_path / "gone.json.gz"
    shutil.copy(TRACE, copy)
    assert run(["analyze", str(copy)]) == 0
    copy.unlink()
    capsys.readouterr()
    code, _, err = whatif(capsys)
    assert code == 2
    assert "gone.json.gz" in err
    assert "no longer there" in err


@pytest.mark.parametrize("broken", ["file", "junk"])
def test_cache_that_cannot_be_used_keeps_no_answer_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], broken: str
) -> None:
    if broken == "file":
        (tmp_path / "cache").write_text("no folder", encoding="utf-8")
    else:
        (tmp_path / "cache" / "stepcrit").mkdir(parents=True)
        (tmp_path / "cache" / "stepcrit" / "last-trace").write_bytes(b"\xff\x00" * 9_000)
        assert whatif(capsys)[0] == 2
    assert run(["analyze", str(TRACE)]) == 0


def test_only_the_path_is_kept(tmp_path: Path) -> None:
    assert run(["analyze", str(TRACE)]) == 0
    files = [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert [path.read_text(encoding="utf-8") for path in files] == [str(TRACE)]


def test_piped_trace_is_not_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with TRACE.open("rb") as stream:
        monkeypatch.setattr("sys.stdin", type("Stdin", (), {"buffer": stream}))
        assert run(["analyze", "-"]) == 0
    assert not (tmp_path / "cache").exists()
