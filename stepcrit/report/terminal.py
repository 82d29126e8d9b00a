"""How wide the screen is, whatever its settings say: COLUMNS is only believed where it is a number."""

from __future__ import annotations

import os
from contextlib import suppress

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
