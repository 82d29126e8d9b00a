"""Text in styles, as far as a terminal answer needs it: pieces that are put together, cut, and printed.

A style is words: "bold", "dim", "cyan", "bold yellow"; "not bold" takes a style of what is around it away. It is
made of text that has crossed `safe_text` already, and is never markup.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import groupby

from rich.cells import cell_len

ATTRIBUTES = {"bold": "1", "dim": "2"}
COLORS = {"green": "32", "yellow": "33", "blue": "34", "magenta": "35", "cyan": "36", "bright_black": "90"}


class Text:
    """A line of text; a piece without a style of its own has that of the whole."""

    __slots__ = ("_pieces", "style")

    def __init__(self, plain: str = "", style: str = "") -> None:
        self.style = style
        self._pieces: list[tuple[str, str]] = [(plain, "")] if plain else []

    @property
    def plain(self) -> str:
        """Without styles."""
        return "".join([text for text, _ in self._pieces])

    @property
    def cell_len(self) -> int:
        """In cells of a terminal."""
        return cell_len(self.plain)

    def append(self, plain: str, style: str = "") -> Text:
        """More text, in a style on top of that of the whole."""
        if plain:
            self._pieces.append((plain, style))
        return self

    def append_text(self, other: Text) -> Text:
        """Another text, in its styles on top of that of the whole."""
        self._pieces += [(plain, _over(other.style, own)) for plain, own in other._pieces]
        return self

    def __add__(self, other: Text) -> Text:
        return self.copy().append_text(other)

    def copy(self) -> Text:
        """Another text alike."""
        return self._of(self._pieces)

    def stylize(self, style: str) -> None:
        """Put a style on top of all."""
        self._pieces = [(plain, _over(own, style)) for plain, own in self._pieces]

    def rstrip(self) -> None:
        """Leave out blanks at the end."""
        while self._pieces:
            plain, own = self._pieces.pop()
            kept = plain.rstrip()
            if kept:
                self._pieces.append((kept, own))
                return

    def respelled(self, plain: str) -> Text:
        """In the same styles another text that is as long."""
        found, at = [], 0
        for old, own in self._pieces:
            found.append((plain[at : at + len(old)], own))
            at += len(old)
        return self._of(found)

    def divide(self, offsets: Iterable[int]) -> list[Text]:
        """Cut at ascending places."""
        lines: list[Text] = []
        left, begin = list(self._pieces), 0
        for end in offsets:
            taken, left = _cut(left, end - begin)
            lines.append(self._of(taken))
            begin = end
        return [*lines, self._of(left)]

    def _of(self, pieces: Sequence[tuple[str, str]]) -> Text:
        made = Text(style=self.style)
        made._pieces = list(pieces)
        return made

    def printed(self, *, color: bool) -> str:
        """For a terminal, with escape sequences where it takes them."""
        if not color:
            return self.plain
        out = []
        for codes, same in groupby(self._pieces, lambda piece: _codes(_over(self.style, piece[1]))):
            plain = "".join([text for text, _ in same])
            out.append(f"\x1b[{codes}m{plain}\x1b[0m" if codes else plain)
        return "".join(out)


def joined(parts: Iterable[Text], between: str) -> Text:
    """Texts with something between them."""
    found = Text()
    for i, part in enumerate(parts):
        found.append(between if i else "").append_text(part)
    return found


def _cut(pieces: list[tuple[str, str]], length: int) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """The pieces up to so many characters, and the rest."""
    for i, (plain, own) in enumerate(pieces):
        if length < len(plain):
            head = [(plain[:length], own)] if length else []
            return [*pieces[:i], *head], [(plain[length:], own), *pieces[i + 1 :]]
        length -= len(plain)
    return pieces, []


def _over(below: str, above: str) -> str:
    return f"{below} {above}" if below and above else below or above


@cache
def _codes(style: str) -> str:
    """What a terminal takes for a style."""
    attributes = dict.fromkeys(ATTRIBUTES, False)
    color, is_on = "", True
    for word in style.split():
        if word in attributes:
            attributes[word] = is_on
        elif word != "not":
            color = COLORS[word]
        is_on = word != "not"
    codes = [code for word, code in ATTRIBUTES.items() if attributes[word]]
    return ";".join([*codes, color] if color else codes)
