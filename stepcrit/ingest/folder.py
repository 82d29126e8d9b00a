"""A folder stands for the one trace in it; what each file is, its content says and never its name."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from stepcrit.errors import InputError, NotFoundInputError, StepcritError
from stepcrit.ingest.sniff import refuse_bytes

LOOK_BYTES = 1 << 16
SHOWN = 5
"""So many of several files are named."""

_SIGNS = re.compile(
    rb'"(?:traceEvents|deviceProperties|computeProperties|distributedInfo|baseTimeNanoseconds|ph)"\s*:'
)


def choose(folder: Path, head_of: Callable[[Path], bytes]) -> tuple[Path, tuple[tuple[str, str], ...]]:
    """Find the one trace of a folder.

    Args:
        folder: where to look, not in folders below it.
        head_of: reads the first bytes of a file's text; raises StepcritError where it cannot.

    Returns:
        The trace, and the other files with the reason why they are none: (name, reason).

    Raises:
        NotFoundInputError: there is none, or the folder cannot be read.
        InputError: there are several.
    """
    try:
        entries = sorted(each for each in folder.iterdir() if not each.name.startswith("."))
    except OSError as error:
        reason = error.strerror or error
        raise NotFoundInputError(f"The folder cannot be read: {reason}.", where=str(folder)) from error
    judged = [(each, _why_not(each, head_of)) for each in entries if not each.is_dir()]
    traces = [each for each, reason in judged if not reason]
    skipped = tuple((each.name, reason) for each, reason in judged if reason)
    if not traces:
        seen = f" Not traces: {_some([f'{name} ({why})' for name, why in skipped])}" if skipped else ""
        raise NotFoundInputError(
            "The folder holds no trace.", where=str(folder), do=f"Name the trace file itself.{seen}"
        )
    if len(traces) > 1:
        raise InputError(
            f"The folder holds {len(traces)} traces, and this verb reads one.",
            where=str(folder),
            do=f"Name one of them: {_some([each.name for each in traces])}",
        )
    return traces[0], skipped


def _why_not(path: Path, head_of: Callable[[Path], bytes]) -> str:
    """Why a file is no trace, or "" when it looks like one."""
    try:
        head = head_of(path)
        refuse_bytes(head)
    except StepcritError as error:
        return error.what.rstrip(".").removeprefix("The input is ").removeprefix("This is ")
    if head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] not in {b"{", b"["}:
        return "no JSON"
    return "" if _SIGNS.search(head) else "JSON without the keys of a trace"


def _some(words: list[str]) -> str:
    """The first few of many words."""
    return ", ".join(words[:SHOWN]) + (", ..." if len(words) > SHOWN else "")
