"""A git repository with a trace and its budgets, as a team would have it; nothing of the machine's own git gets in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from tests.report.runner import Command, commands

ROOT = Path(__file__).parents[2]
TRACE = "traces/rank0.json.gz"


@dataclass(frozen=True)
class Done:
    """What a command of ours left.

    Attributes:
        code: exit code.
        text: the screen.
        answer: its JSON.
        junit: its JUnit XML.
        notes: what a runner was told.
        summary: what was added to the summary of the job.
        told: stderr of the run that shows the screen.
    """

    code: int
    text: str
    answer: Any
    junit: ET.Element
    notes: list[Command]
    summary: str
    told: str

    def rows(self, trace: str = TRACE) -> dict[str, str]:
        """Metric or code -> outcome, of one trace in the JUnit file: cases are what every reader sees."""
        found = {}
        for case in self.junit.iter("testcase"):
            if case.attrib["classname"] == trace:
                words = " ".join(case.itertext()).strip()
                found[case.attrib["name"]] = words.partition(":")[0]
        return found


class Repository:
    """A work tree."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.commits = 0
        self.env = {
            **{key: value for key, value in os.environ.items() if not key.startswith(("GIT_", "GITHUB_"))},
            "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "HOME": str(folder.parent / "home"),
            "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.invalid", "GIT_COMMITTER_NAME": "A",
            "GIT_COMMITTER_EMAIL": "a@example.invalid", "PYTHONPATH": str(ROOT), "COLUMNS": "100", "XDG_CACHE_HOME": str(folder.parent / "cache"),
        }  # fmt: skip

    @classmethod
    def new(cls, folder: Path) -> Repository:
        """An empty one, on its branch main."""
        folder.mkdir()
        made = cls(folder)
        made.git("init", "--quiet", "--initial-branch=main", ".")
        return made

    def cloned(self, name: str, *options: str) -> Repository:
        """A clone of it, by the way a runner takes."""
        folder = self.folder.parent / name
        made = Repository(folder)
        self.git("clone", "--quiet", *options, self.folder.as_uri(), str(folder))
        return made

    def git(self, *words: str) -> str:
        """A git command, at a time of its own."""
        at = f"{1_700_000_000 + self.commits * 60} +0000"
        env = {**self.env, "GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at}
        where = self.folder if self.folder.exists() else self.folder.parent
        done = subprocess.run(["git", *words], cwd=where, env=env, capture_output=True, text=True, check=True)
        return done.stdout

    def write(self, path: str, content: bytes | str) -> None:
        """Put a file into the work tree."""
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)

    def commit(self, files: dict[str, bytes | str | None], words: str = "change") -> None:
        """Write or remove files, and commit."""
        for path, content in files.items():
            if content is None:
                (self.folder / path).unlink()
            else:
                self.write(path, content)
        self.commits += 1
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", words)

    def run(self, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        """A command of ours."""
        command = [sys.executable, "-m", "stepcrit", *words]
        kept = {**self.env, **env}
        return subprocess.run(
            command, cwd=self.folder, env=kept, capture_output=True, text=True, check=False, encoding="utf-8"
        )

    def check(self, *words: str) -> Done:
        """`stepcrit check` twice: as a person sees it, and as a runner does, with every file that it writes."""
        seen = self.run("check", *words)
        kept = self.folder.parent / "kept"
        kept.mkdir(exist_ok=True)
        files = {name: kept / name for name in ("answer.json", "junit.xml", "summary.md")}
        for file in files.values():
            file.unlink(missing_ok=True)
        asked = (
            "check",
            *words,
            "--json",
            "-o",
            str(files["answer.json"]),
            "--junit",
            str(files["junit.xml"]),
        )
        done = self.run(*asked, GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=str(files["summary.md"]))
        assert done.returncode == seen.returncode, done.stderr
        assert done.stdout == ""
        assert commands(seen.stdout) == commands(seen.stderr) == []
        texts = {
            name: path.read_text(encoding="utf-8") if path.exists() else "" for name, path in files.items()
        }
        return Done(
            seen.returncode,
            seen.stdout,
            json.loads(texts["answer.json"] or "null"),
            ET.fromstring(texts["junit.xml"] or "<testsuites/>"),  # noqa: S314 - our own text
            commands(done.stderr),
            texts["summary.md"],
            seen.stderr,
        )
