"""`stepcrit check` in a repository made for a test."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from stepcrit.cli.main import run
from tests.cli.jobs import job
from tests.ingest.gitmade import QUIET, commit, new_repository, run_git

TRACE = "traces/a.json.gz"
CONFIG = '[check]\ntraces = ["traces/*.json.gz"]\n'


@dataclass
class Project:
    """A repository whose branch `main` is the baseline, and a branch `work` to change."""

    folder: Path
    capsys: pytest.CaptureFixture[str]

    def write(self, files: dict[str, bytes | str]) -> None:
        """Files of the work tree."""
        for name, content in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)

    def start(self, files: dict[str, bytes | str] | None = None, config: str = CONFIG) -> None:
        """What `main` has."""
        self.write({TRACE: job(), **(files or {}), **({"stepcrit.toml": config} if config else {})})
        commit(self.folder)
        run_git(self.folder, "checkout", "-q", "-b", "work")

    def commit(self) -> None:
        """All that is in the work tree."""
        commit(self.folder)

    def check(self, *argv: str, code: int) -> str:
        """What is printed; the exit code must be this."""
        got = run(["check", *argv])
        out, err = self.capsys.readouterr()
        assert got == code, out + err
        return " ".join((out if code in (0, 1, 4) else err).split())

    def data(self, *argv: str) -> dict[str, Any]:
        """The same as JSON."""
        run(["check", *argv, "--json"])
        data: dict[str, Any] = json.loads(self.capsys.readouterr().out)["data"]
        return data

    def row(self, metric: str, *argv: str) -> dict[str, Any]:
        """One row of the one trace."""
        (trace,) = self.data(*argv)["traces"]
        (row,) = [row for row in trace["rows"] if row["metric"] == metric]
        found: dict[str, Any] = row
        return found

    def codes(self, *argv: str) -> list[str]:
        """The remarks of every trace, then of the run."""
        data = self.data(*argv)
        return [one["code"] for part in (*data["traces"], data) for one in part["remarks"]]


def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Project:
    """An empty repository to be in, under nobody's settings."""
    for name, value in QUIET.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    folder = new_repository(tmp_path / "repo")
    monkeypatch.chdir(folder)
    return Project(folder, capsys)
