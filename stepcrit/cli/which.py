"""Which trace is meant where the command line names none: that of stepcrit.toml, else the last one analyzed.

The last one is remembered by its path alone, in one small file in the user's cache folder. Whatever keeps
that file from being written or read (no home, a full disk) keeps no command from its answer.
"""

from __future__ import annotations

import glob
import os
import tomllib
from contextlib import suppress
from itertools import islice
from pathlib import Path

from stepcrit.errors import UsageError, quoted

CONFIG = "stepcrit.toml"
SHOWN = 5
"""So many of several traces are named."""

LONGEST = 4096
"""A path of more characters is none that we wrote."""


def trace_meant(path: str | None) -> tuple[str, str]:
    """The path to read, and where it comes from where the user did not type it ("").

    Raises:
        UsageError: no trace is named anywhere, or several are, or it is no longer there.
    """
    if path is not None:
        return path, ""
    configured = _configured()
    if configured:
        return configured, CONFIG
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
    with suppress(OSError, RuntimeError, ValueError):
        file = _state_file()
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = file.with_name(f".{file.name}.{os.getpid()}")
        draft.write_text(os.path.abspath(path), encoding="utf-8")  # noqa: PTH100 - pathlib keeps the dots
        draft.replace(file)


def _last() -> str:
    with suppress(OSError, RuntimeError, ValueError):
        words = _state_file().read_text(encoding="utf-8")
        return words if len(words) <= LONGEST and "\0" not in words else ""
    return ""


def _state_file() -> Path:
    from platformdirs import user_cache_path  # noqa: PLC0415 - only to find the file

    return user_cache_path("stepcrit", appauthor=False) / "last-trace"


def _configured() -> str:
    """The one trace that stepcrit.toml names; "" without that file, or without traces in it.

    Raises:
        UsageError: the file cannot be read, or names no trace that is there, or several.
    """
    file = Path(CONFIG)
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{CONFIG} cannot be read: {error}", do="correct it, or name a trace") from error
    check = table.get("check", {})
    named = check.get("traces", []) if isinstance(check, dict) else []
    patterns = [named] if isinstance(named, str) else named
    if not isinstance(patterns, list) or not all(isinstance(one, str) and one for one in patterns):
        raise UsageError(
            f"[check] traces in {CONFIG} is no list of paths", do='traces = ["traces/*.json.gz"]'
        )
    if not patterns:
        return ""
    found = sorted({str(path) for one in patterns for path in _matching(one)})
    if len(found) == 1:
        return found[0]
    have = ", ".join(map(quoted, found[:SHOWN])) + (" …" if len(found) > SHOWN else "")
    what = f"names several traces: {have}" if found else "names no trace that is there"
    raise UsageError(f"{CONFIG} {what}", do="name one on the command line")


def _matching(pattern: str) -> list[Path]:
    """Files that a path or glob means, from here; of many, enough to say so."""
    if os.path.isfile(pattern):  # noqa: PTH113 - a string is enough
        return [Path(pattern)]
    try:
        found = (one for one in glob.iglob(pattern, recursive=True) if os.path.isfile(one))  # noqa: PTH113, PTH207 - absolute ones too
        return [Path(one) for one in islice(found, SHOWN + 1)]
    except ValueError:  # no path at all
        return []


def told(path: str, source: str) -> str:
    """What to tell the user of a trace that was not named."""
    return f"trace  {path} ({source})\n" if source else ""
