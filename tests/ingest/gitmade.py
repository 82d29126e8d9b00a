"""Git repositories made for a test, in a folder of its own and under no settings of whoever runs it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

QUIET = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.invalid",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.invalid",
    "GIT_AUTHOR_DATE": "2026-01-02T03:04:05Z",
    "GIT_COMMITTER_DATE": "2026-01-02T03:04:05Z",
}


def run_git(folder: Path, *words: str) -> str:
    """One git command, which must succeed."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    done = subprocess.run(
        ["git", *words], cwd=folder, env={**kept, **QUIET}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def new_repository(folder: Path) -> Path:
    """An empty repository whose branch is `main`."""
    folder.mkdir(parents=True, exist_ok=True)
    run_git(folder, "init", "-q", "-b", "main")
    return folder


def commit(folder: Path, files: dict[str, bytes] | None = None, message: str = "change") -> str:
    """Write files, add everything, commit; returns the sha."""
    for name, data in (files or {}).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    run_git(folder, "add", "-A")
    run_git(folder, "commit", "-q", "--allow-empty", "-m", message)
    return run_git(folder, "rev-parse", "HEAD")
