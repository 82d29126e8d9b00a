"""Columns grow chunk by chunk, and text becomes small integers on the way in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from stepcrit.model.arrays import NONE, Int32Array, Int64Array


class Interner(dict[Any, int]):
    """Numbers values by first appearance; values that are written alike (7 and "7") are one.

    Attributes:
        table: the values in their written form, by number.
    """

    def __init__(self, written: Callable[[Any], Any], *known: Any) -> None:
        super().__init__((value, number) for number, value in enumerate(known))
        self.table = list(known)
        self._written = written

    def __missing__(self, key: object) -> int:
        value = self._written(key)
        if value not in self:
            self[value] = len(self.table)
            self.table.append(value)
        self[key] = code = self[value]
        return code

    def codes(self, values: Iterable[object]) -> Int32Array:
        """The number of each value. A dict's `__missing__` under `map` halves the time of a loop."""
        return np.array(list(map(self.__getitem__, values)), np.int32)


class ColumnStore:
    """Named columns as lists of chunks, joined one column at a time to keep the peak low."""

    def __init__(self) -> None:
        self._chunks: dict[str, list[np.ndarray[Any, Any]]] = {}

    def append(self, **columns: np.ndarray[Any, Any]) -> None:
        """Add one chunk to every column."""
        for name, values in columns.items():
            self._chunks.setdefault(name, []).append(values)

    def take(self, name: str, dtype: type[np.generic] = np.int64) -> np.ndarray[Any, Any]:
        """Join one column and forget its chunks."""
        chunks = self._chunks.pop(name, [])
        return np.concatenate(chunks) if chunks else np.zeros(0, dtype)


def int64_column(values: Sequence[int | str], report: Callable[[int], None] | None = None) -> Int64Array:
    """Whole numbers or their text; what is neither, or does not fit, is NONE and reported as a count."""
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
    """A name, pid or tid as it is shown: null is the empty text."""
    return "" if value is None else str(value)
