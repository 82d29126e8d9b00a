"""What was meant: mistyped paths and commands, options before the path, and a bug that is to be seen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stepcrit.cli.main import run

ROOT = Path(__file__).parents[2]
TRACE = str(ROOT / "fixtures" / "simulated" / "item_sync.json.gz")


# --- what was meant --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "argv",
    [
        ["./nosuch.json"],
        ["nosuch.json"],
        ["nosuch.JSON.GZ"],
        ["no/such"],
        ["--json", "nosuch.json"],
        ["--step", "3", "no/such"],
    ],
)
def test_a_mistyped_path_is_no_input(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(argv) == 3
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "There is no such file" in captured.err


def test_options_may_stand_before_the_path(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--json", TRACE]) == 0
    assert json.loads(capsys.readouterr().out)["data"]


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["analyse", "x.json"], "Did you mean 'analyze'?"),
        (["nosuch"], "No such command"),
        (["--json"], "No such option"),
        (["--json", "critical", TRACE], "No such option"),
        (["-o", "out.json"], "Missing argument"),
    ],
)
def test_what_is_no_path_is_wrong_use(argv: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(argv) == 2
    assert says in capsys.readouterr().err


def test_help_stays_help_whatever_follows(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help", TRACE]) == 0
    assert capsys.readouterr().out.startswith("Usage")


def test_debug_shows_the_traceback_and_keeps_exit_code_70(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import stepcrit.session  # noqa: PLC0415

    def broken(*_: object) -> None:
        raise RuntimeError("the sky \x1b[31m fell")

    monkeypatch.setattr(stepcrit.session, "read_trace", broken)
    monkeypatch.setenv("STEPCRIT_DEBUG", "1")
    assert run(["analyze", TRACE]) == 70
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert "\x1b" not in err
