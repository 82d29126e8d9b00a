"""`scripts/fuzz.py` in a process of its own: its peak of memory is its own, and a warning is a fault like any other."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
KEPT = sorted(path for path in (ROOT / "tests" / "fuzz" / "kept").iterdir() if path.suffix != ".md")


def fuzz(*words: str, **env: str) -> tuple[int, str]:
    """Exit code and everything that was said."""
    done = subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "scripts" / "fuzz.py"), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="backslashreplace",
        check=False,
        env={**os.environ, **env},
    )
    return done.returncode, done.stdout
