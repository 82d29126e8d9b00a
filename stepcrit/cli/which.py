"""Which trace is meant where the command line names none: that of stepcrit.toml, else the last one analyzed.

The last one is remembered by its path alone, in one small file in the user's cache folder. Whatever keeps
that file from being written or read (no home, a full disk) keeps no command from its answer.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from stepcrit.cli.config import project_config
from stepcrit.cli.lookup import files_like, read_small
from stepcrit.errors import UsageError, quoted
from stepcrit.report.drafts import replace
from stepcrit.report.safe import safe_text

SHOWN = 5
"""So many of several traces are named."""

HINDRANCES = (OSError, RuntimeError, ValueError, ImportError)
"""What may keep the file from being found, written or read; RuntimeError: a user without a home."""

LONGEST = 4096
"""A path of more bytes is none that we wrote."""


def trace_meant(path: str | None) -> tuple[str, str]:
    """The path to read, and where it comes from where the user did not type it ("").

    Raises:
        UsageError: no trace is named anywhere, or several are, or it is no longer there.
    """
    if path is not None:
        return path, ""
    configured, source = _configured()
    if configured:
        return configured, source
    last = _last()
    if not last:
        raise UsageError("no trace given", do="name one: stepcrit whatif trace.json --shrink aten::mm=0.5")
    if not os.path.exists(last):  # noqa: PTH110 - a string is enough
        raise UsageError("the last trace analyzed is no longer there", where=last, do="name a trace")
    return last, "the last one analyzed"


def remember(path: str) -> None:
    """Note the trace that was analyzed."""
    if path == "-":
        return
    with suppress(*HINDRANCES):
        file = _state_file()
        file.parent.mkdir(0o700, parents=True, exist_ok=True)
        # replaced, whatever lies there: a link or a pipe is not followed; as bytes: a name may be in no encoding
        replace(os.fsencode(os.path.abspath(path)), str(file))  # noqa: PTH100 - pathlib keeps the dots


def _last() -> str:
    """The path that `remember` wrote; "" where there is none, or what is there was not written by us."""
    with suppress(OSError, RuntimeError, ValueError):
        words = os.fsdecode(read_small(_state_file(), LONGEST, follow=False))
        return words if os.path.isabs(words) and "\0" not in words else ""  # noqa: PTH117 - a string is enough
    return ""


def _state_file() -> Path:
    from platformdirs import user_cache_path  # noqa: PLC0415 - only to find the file

    return user_cache_path("stepcrit", appauthor=False) / "last-trace"


def _configured() -> tuple[str, str]:
    """The one trace that the configuration names, and that file; "" without it, or without traces in it.

    Raises:
        UsageError: the file cannot be read, or names no trace that is there, or several.
    """
    config = project_config()
    if config is None or not config.traces:
        return "", ""
    found = sorted({path for one in config.traces for path in files_like(one, SHOWN + 1)})
    if len(found) == 1:
        return found[0], config.source
    have = ", ".join(map(quoted, found[:SHOWN])) + (" …" if len(found) > SHOWN else "")
    what = f"names several traces: {have}" if found else "names no trace that is there"
    raise UsageError(f"{config.source} {what}", do="name one on the command line")


def told(path: str, source: str) -> str:
    """What to tell the user of a trace that was not named."""
    return f"trace  {safe_text(path)} ({source})\n" if source else ""
