"""A failing input is made as small as it goes, and kept."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from fuzzing.judge import Target, judged

KEPT = Path(__file__).resolve().parents[2] / "tests" / "fuzz" / "kept"
SECONDS = 30.0
"""Making smaller stops after so long."""


def keep(target: Target, data: bytes, folder: Path = KEPT) -> Path:
    """Write an input down under a name that says its target and what is in it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{target.name}-{digest_of(data)}"
    path.write_bytes(data)
    return path


def digest_of(data: bytes) -> str:
    """A short name for what is in an input."""
    return hashlib.sha256(data).hexdigest()[:12]


def smallest(target: Target, data: bytes, complaint: str) -> bytes:
    """An input that fails like `data` does, and from which little can be left out."""
    kind = kind_of(complaint)

    def fails(pieces: Sequence[bytes]) -> bool:
        return kind_of(judged(target, b"".join(pieces))) == kind

    if complaint.startswith("over "):
        return data  # each try would take as long
    until = time.monotonic() + SECONDS
    if target.is_lines:
        return b"".join(_without(data.splitlines(keepends=True), fails, until))
    by_word = _without([data[i : i + 16] for i in range(0, len(data), 16)], fails, until)
    by_byte = [bytes([byte]) for byte in b"".join(by_word)]
    return b"".join(_without(by_byte, fails, until) if len(by_byte) < 4096 else by_byte)


def kind_of(complaint: str) -> str:
    """What makes two failures the same: the last line of a traceback without its numbers, and where it was."""
    lines = complaint.strip().splitlines()
    if not lines:
        return ""
    places = [line.strip() for line in lines if line.lstrip().startswith("File ") and "stepcrit" in line]
    return f"{lines[-1].split(':')[0]} {places[-1] if places else ''}"


def _without(pieces: list[bytes], fails: Callable[[Sequence[bytes]], bool], until: float) -> list[bytes]:
    """Leave out ever smaller runs of pieces while the rest still fails (delta debugging)."""
    size = max(len(pieces) // 2, 1)
    while time.monotonic() < until:
        start, cut = 0, False
        while start < len(pieces) and time.monotonic() < until:
            rest = pieces[:start] + pieces[start + size :]
            if rest and fails(rest):
                pieces, cut = rest, True
            else:
                start += size
        if size == 1 and not cut:
            break
        size = max(size // 2, 1)
    return pieces
