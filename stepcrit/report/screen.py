"""What a stream can show: how wide, in which signs, and whether in colour."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TextIO

from msgspec import Struct
from rich.cells import cell_len

from stepcrit.report.safe import ascii_text, no_command
from stepcrit.report.styled import Text
from stepcrit.report.terminal import USUAL, columns, is_terminal, takes_color
from stepcrit.units import THIN

NARROWEST = 20
WIDEST_TEXT = 100
"""Prose and bars go no wider: longer lines are hard to read. Tables may."""

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
        """A stream: 80 columns unless a terminal; NO_COLOR, FORCE_COLOR and TERM=dumb hold."""
        width = columns() if is_terminal(stream) else USUAL
        return cls(width, getattr(stream, "encoding", None) or "utf-8", takes_color(stream))

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
        """The lines as bytes for the stream; nothing is wrapped any more."""
        out = []
        for line in lines:
            line.rstrip()
            plain = line.plain
            safe = no_command(plain)  # wrapped and shortened, a name may have become one
            out.append((line if safe == plain else line.respelled(safe)).printed(color=self.color))
        text = "".join(f"{line}\n" for line in out)
        return text.encode(self.encoding if not self.plain else "ascii", "backslashreplace")


def wrap(text: Text, width: int, hang: int = 0) -> list[Text]:
    """Lines of at most `width` cells, broken at blanks; later lines are indented by `hang`.

    No line ends at the narrow space between a number and its unit.
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
