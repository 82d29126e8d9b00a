"""What the screen is, as its settings say; COLUMNS is only believed where it is a number."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TextIO

USUAL = 80
_MOST_DIGITS = 6


def columns() -> int:
    """The columns of the screen: as COLUMNS asks, else as a terminal tells, else 80; never none."""
    asked = os.environ.get("COLUMNS", "")
    if asked.isascii() and asked.isdigit() and len(asked) <= _MOST_DIGITS and int(asked):
        return int(asked)
    for descriptor in (1, 2, 0):  # what is written goes there first
        with suppress(OSError):
            told = os.get_terminal_size(descriptor).columns
            if told:
                return told
    return USUAL


def is_terminal(stream: TextIO) -> bool:
    """Whether a person reads along, or settings say so: TTY_COMPATIBLE (0 or 1), then FORCE_COLOR."""
    compatible, forced = os.environ.get("TTY_COMPATIBLE"), os.environ.get("FORCE_COLOR")
    if compatible in ("0", "1"):
        return compatible == "1"
    if forced is not None:
        return forced != ""
    try:
        return stream.isatty()
    except (AttributeError, ValueError):  # no stream of Python's own, or a closed one
        return False


def takes_color(stream: TextIO) -> bool:
    """Whether escape sequences for colour may be written: not to a dumb terminal, nor under NO_COLOR."""
    is_dumb = os.environ.get("TERM", "").lower() in ("dumb", "unknown")
    return is_terminal(stream) and not is_dumb and not os.environ.get("NO_COLOR")
