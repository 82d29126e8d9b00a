"""What a stream can show: how wide, in which signs, and whether in colour."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterable
from typing import TextIO

from msgspec import Struct
from rich.cells import cell_len
from rich.text import Text

from stepcrit.report.safe import ascii_text, no_command
from stepcrit.report.terminal import USUAL, columns
from stepcrit.units import THIN

NARROWEST = 20
WIDEST_TEXT = 100
"""Prose and bars go no wider: longer lines are hard to read. Tables may."""

_FORCES = ("FORCE_COLOR", "TTY_COMPATIBLE")
"""Settings by which rich takes for a terminal what is none."""

_OWN_SIGNS = f"█▓▒░·…–µ×{THIN}"


class Screen(Struct, frozen=True):
    """A stream's abilities.

    Attributes:
        width: in cells.
        encoding: of the stream.
        color: whether escape sequences for colour may be written.
    """

    width: int = 80
    encoding: str = "utf-8"
    color: bool = False

    @classmethod
    def of(cls, stream: TextIO) -> Screen:
        """A stream as rich sees it: 80 columns unless a terminal; NO_COLOR, FORCE_COLOR and TERM=dumb hold."""
        encoding = getattr(stream, "encoding", None) or "utf-8"
        if not (stream.isatty() or any(name in os.environ for name in _FORCES)):
            return cls(USUAL, encoding)
        from rich.console import Console  # noqa: PLC0415 - for terminals only: it takes as long to load as all of report

        # told both sizes, rich reads neither COLUMNS nor LINES: it fails on some, and takes a dumb terminal for 80 wide
        console = Console(file=stream, force_jupyter=False, width=columns(), height=100)
        color = console.is_terminal and console.color_system is not None and not console.no_color
        width = columns() if console.is_terminal else USUAL
        return cls(width, encoding, color)

    @property
    def plain(self) -> bool:
        """Whether the encoding lacks any of our signs: then all are spelled in ASCII."""
        try:
            _OWN_SIGNS.encode(self.encoding)
        except (UnicodeEncodeError, LookupError):
            return True
        return False

    @property
    def cells(self) -> int:
        """The width that is drawn to."""
        return max(self.width, NARROWEST)

    @property
    def prose(self) -> int:
        """The width of sentences and bars."""
        return min(self.cells, WIDEST_TEXT)

    def sign(self, text: str) -> str:
        """Safe text in signs the stream has."""
        return ascii_text(text) if self.plain else text

    def printed(self, lines: Iterable[Text]) -> bytes:
        """The lines as bytes for the stream; nothing is wrapped, marked up or highlighted any more."""
        for line in (lines := list(lines)):
            line.rstrip()
            line.plain = no_command(line.plain)  # wrapped and shortened, a name may have become one
        text = _colored(lines) if self.color else "".join(f"{line.plain}\n" for line in lines)
        return text.encode(self.encoding if not self.plain else "ascii", "backslashreplace")


def _colored(lines: Iterable[Text]) -> str:
    """The lines with escape sequences for their styles."""
    from rich.console import Console  # noqa: PLC0415 - see Screen.of

    out = io.StringIO()
    console = Console(
        file=out, force_terminal=True, color_system="standard", no_color=False, width=USUAL, height=100,
        force_jupyter=False, legacy_windows=False, markup=False, highlight=False, emoji=False,
    )  # fmt: skip
    for line in lines:
        console.print(line, soft_wrap=True)
    return out.getvalue()


def wrap(text: Text, width: int, hang: int = 0) -> list[Text]:
    """Lines of at most `width` cells, broken at blanks; later lines are indented by `hang`.

    Rich would also break at the narrow space between a number and its unit.
    """
    hang = min(hang, width // 2)
    lines = text.divide(_breaks(text.plain, width, hang))
    return [line if i == 0 else Text(" " * hang) + line for i, line in enumerate(lines)]


def _breaks(plain: str, width: int, hang: int) -> list[int]:
    """Offsets at which new lines start."""
    breaks: list[int] = []
    room = width
    for found in re.finditer(r"[^ ]+ *| +", plain):
        if cell_len(found[0].rstrip(" ")) > room and room < width - hang * bool(breaks):
            breaks.append(found.start())
            room = width - hang
        room = _fold(found, room, width - hang, breaks)
    return breaks


def _fold(word: re.Match[str], room: int, fresh: int, breaks: list[int]) -> int:
    """Place a word, cutting it where it is wider than a whole line; returns the room that is left."""
    ink = len(word[0].rstrip(" "))
    if word[0].isascii() and ink <= room:
        return room - len(word[0])
    for i, char in enumerate(word[0]):
        wide = cell_len(char)
        if i < ink and wide > room:
            breaks.append(word.start() + i)
            room = fresh
        room -= wide
    return room
