"""Columns grow chunk by chunk, and text becomes small integers on the way in."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stepcrit.ingest.limits import NAME_CHARS, over
from stepcrit.model.arrays import NONE, Int32Array, Int64Array


class Room:
    """How many characters of distinct words an input may still bring."""

    def __init__(self, limit: int) -> None:
        self._limit = self._left = limit

    def take(self, word: str) -> None:
        """Make room for one more word.

        Raises:
            LimitInputError: there is none.
        """
        self._left -= len(word)
        if self._left < 0:
            raise over("names", "The distinct names are longer together than is allowed", self._limit)


class Interner(dict[Any, int]):
    """Numbers values by first appearance; values that are written alike (7 and "7") are one.

    Attributes:
        table: the values in their written form, by number.
    """

    def __init__(self, written: Callable[[Any], Any], *known: Any, room: Room | None = None) -> None:
        super().__init__((value, number) for number, value in enumerate(known))
        self.table = list(known)
        self._written = written
        self._room = room

    def __missing__(self, key: object) -> int:
        value = self._written(key)
        if value not in self:
            if self._room:
                self._room.take(value)
            self[value] = len(self.table)
            self.table.append(value)
        code = self[value]
        if not (
            isinstance(key, (str, bytes)) and len(key) > NAME_CHARS
        ):  # a name that was cut is not kept whole here
            self[key] = code
        return code

    def codes(self, values: Sequence[object]) -> Int32Array:
        """The number of each value. A dict's `__missing__` under `map` halves the time of a loop."""
        if is_one(values):
            return np.full(len(values), self[values[0]], np.int32)
        return np.fromiter(map(self.__getitem__, values), np.int32, len(values))


def is_one(values: Sequence[object]) -> bool:
    """Whether a column holds one value only, as most do in a piece of text: this takes a tenth of making numbers of it."""
    return bool(values) and values.count(values[0]) == len(values)


_BLOCK_ROWS = 1 << 18
"""Small pieces are joined into blocks of so many rows. Blocks are large enough for the system to take them back at
once when they are freed; memory of thousands of small pieces stays with the process."""


class ColumnStore:
    """Named columns as lists of pieces, joined one column at a time to keep the peak low."""

    def __init__(self) -> None:
        self._pieces: dict[str, list[np.ndarray[Any, Any]]] = {}
        self._blocks: dict[str, list[np.ndarray[Any, Any]]] = {}
        self._loose_rows = 0

    def append(self, **columns: np.ndarray[Any, Any]) -> None:
        """Add some rows to every column."""
        for name, values in columns.items():
            self._pieces.setdefault(name, []).append(values)
        self._loose_rows += len(next(iter(columns.values())))
        if self._loose_rows >= _BLOCK_ROWS:
            for name, pieces in self._pieces.items():
                self._blocks.setdefault(name, []).append(_joined(pieces))
                pieces.clear()
            self._loose_rows = 0

    def take(self, name: str, dtype: type[np.generic] = np.int64) -> np.ndarray[Any, Any]:
        """Join one column and forget its pieces."""
        parts = self._blocks.pop(name, []) + self._pieces.pop(name, [])
        return _joined(parts) if parts else np.zeros(0, dtype)


def _joined(parts: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    """Pieces as one; a single one is not copied."""
    return np.concatenate(parts) if len(parts) > 1 else parts[0]


def int64_column(values: Sequence[int | str], report: Callable[[int], None] | None = None) -> Int64Array:
    """Whole numbers or their text; what is neither, or does not fit, is NONE and reported as a count."""
    if values and values[0] == NONE and is_one(values):
        return np.full(len(values), NONE, np.int64)
    try:
        return np.array(values, np.int64)
    except (OverflowError, ValueError):
        column = np.array([_int64(value) for value in values], np.int64)
    lost = sum(
        value not in {NONE, str(NONE)} for value, got in zip(values, column, strict=True) if got == NONE
    )
    if report and lost:
        report(lost)
    return column


def _int64(value: int | str) -> int:
    """One whole number, or NONE."""
    try:
        number = int(value)
    except ValueError:
        return NONE
    return number if -(2**63) <= number < 2**63 else NONE


def label(value: object) -> str:
    """A name, pid or tid as it is shown: null is the empty text, and none is longer than NAME_CHARS."""
    text = "" if value is None else str(value)
    if len(text) <= NAME_CHARS:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{text[: NAME_CHARS - 18]}… {digest}"


UNDECODABLE = "<undecodable>"


def name_label(value: object) -> str:
    """A name as it is shown; those of which nothing can be read are one, for they may be as many as the events."""
    text = label(value)
    if "\ufffd" in text and not any(char.isalnum() for char in text):
        return UNDECODABLE
    return text
