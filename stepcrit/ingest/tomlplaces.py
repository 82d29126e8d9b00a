"""Where in a TOML text each key and value stands: lines for messages, spans for changing one value in place.

`tomllib` tells what a text means and this file only where it says so: it walks over text that tomllib has
accepted, so it never judges, and whatever it does not find it leaves out.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import TypeAlias

from msgspec import Struct

Path: TypeAlias = tuple[str | int, ...]
"""Keys from the top; numbers count the tables of an array of tables."""

_BLANK = re.compile(r"[ \t]*")
_SKIPPED = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_STRINGS = (
    re.compile(r'"""(?:\\.|[^\\])*?"{3,5}(?!")', re.DOTALL),
    re.compile(r"'''.*?'{3,5}(?!')", re.DOTALL),
    re.compile(r'"(?:\\.|[^"\\\n])*"'),
    re.compile(r"'[^'\n]*'"),
)
_PLAIN = re.compile(r"[^,\]}#\r\n]+")


class Spot(Struct, frozen=True):
    """Where a key stands.

    Attributes:
        line: of the key, counted from 1.
        start: first sign of its value; -1 for a table of its own.
        end: one past the last.
    """

    line: int
    start: int = -1
    end: int = -1


def places(text: str) -> Mapping[Path, Spot]:
    """The place of every key of a TOML text that tomllib accepts."""
    walk = _Walk(text.replace("\r\n", " \n"))  # as long as before, so that places stay right
    walk.document()
    return walk.found


class _Walk:
    """A walk over valid TOML."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.found: dict[Path, Spot] = {}
        self._counts: dict[Path, int] = {}
        self._line, self._counted = 1, 0

    def document(self) -> None:
        """Headers, and keys below them."""
        table: Path = ()
        self._skip(_SKIPPED)
        while self.at < len(self.text):
            if self.text[self.at] == "[":
                table = self._header()
            else:
                self._pair(table)
            self._skip(_SKIPPED)

    def _header(self) -> Path:
        is_array = self.text.startswith("[[", self.at)
        line = self._line_here()
        self.at += 2 if is_array else 1
        table: Path = ()
        keys = self._keys()
        for i, key in enumerate(keys):
            table = (*table, key)
            if is_array and i == len(keys) - 1:
                self._counts[table] = self._counts.get(table, -1) + 1
            self.found.setdefault(table, Spot(line))
            if table in self._counts:
                table = (*table, self._counts[table])
        self.found.setdefault(table, Spot(line))
        self.at += 2 if is_array else 1
        return table

    def _pair(self, table: Path) -> None:
        """`key = value`."""
        line = self._line_here()
        for key in self._keys():
            table = (*table, key)
            self.found.setdefault(table, Spot(line))
        self.at += 1  # the sign of equality
        self._skip(_BLANK)
        start = self.at
        self._value(table)
        self.found[table] = Spot(line, start, self.at)

    def _keys(self) -> list[str]:
        """`a."b.c".d` as three keys; the walk then stands on what ends them."""
        keys = []
        while True:
            self._skip(_BLANK)
            start = self.at
            if self.text[start] in "\"'":
                self._string()
                keys.append(str(tomllib.loads(f"k = {self.text[start : self.at]}")["k"]))
            else:
                self._skip(_BARE)
                keys.append(self.text[start : self.at])
            self._skip(_BLANK)
            if self.text[self.at] != ".":
                return keys
            self.at += 1

    def _value(self, path: Path) -> None:
        first = self.text[self.at]
        if first in "\"'":
            self._string()
        elif first in "[{":
            self._bracketed(path, "]" if first == "[" else "}")
        else:
            self._skip(_PLAIN)
            while self.text[self.at - 1] in " \t":
                self.at -= 1

    def _bracketed(self, path: Path, closing: str) -> None:
        """An array or an inline table."""
        self.at += 1
        self._skip(_SKIPPED)
        count = 0
        while self.text[self.at] != closing:
            if closing == "}":
                self._pair(path)
            else:
                line, start = self._line_here(), self.at
                self._value((*path, count))
                self.found[*path, count] = Spot(line, start, self.at)
            count += 1
            self._skip(_SKIPPED)
            if self.text[self.at] == ",":
                self.at += 1
                self._skip(_SKIPPED)
        self.at += 1

    def _string(self) -> None:
        found = next(match for each in _STRINGS if (match := each.match(self.text, self.at)))
        self.at = found.end()

    def _skip(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self.text, self.at)
        self.at = found.end() if found else self.at

    def _line_here(self) -> int:
        self._line += self.text.count("\n", self._counted, self.at)
        self._counted = self.at
        return self._line
