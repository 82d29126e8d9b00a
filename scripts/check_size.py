"""Keep files small enough to find one's way: 400 lines each, and no room named after its shape."""

from __future__ import annotations

import sys
from pathlib import Path

MAX_LINES = 400
VAGUE = {"utils.py", "helpers.py", "common.py", "misc.py"}
ROOT = Path(__file__).resolve().parent.parent


def complaints() -> list[str]:
    """One line per file of the package that is too long or vaguely named."""
    found = []
    for path in sorted((ROOT / "stepcrit").rglob("*.py")):
        lines = len(path.read_text(encoding="utf-8").splitlines())
        name = path.relative_to(ROOT).as_posix()
        if lines > MAX_LINES:
            found.append(f"{name}: {lines} lines, {MAX_LINES} allowed")
        if path.name in VAGUE:
            found.append(f"{name}: say what is in it")
    return found


if __name__ == "__main__":
    problems = complaints()
    print("\n".join(problems) or "sizes ok")
    sys.exit(bool(problems))
