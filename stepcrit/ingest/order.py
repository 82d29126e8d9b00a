"""What a file says decides the order of its rows and words, not where a writer or a merge tool put them.

Of two ranges with the same start and end on one thread, the one that was begun first is the outer one.
Ids tell which: operators, Python frames and calls are numbered as they begin. (In every trace seen,
ranges of the same times stand in the file as their ids ascend.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np

from stepcrit.model.arrays import BoolArray, Int32Array, Int64Array
from stepcrit.model.events import EventKind

Columns: TypeAlias = Mapping[str, np.ndarray[Any, Any]]
Word = TypeVar("Word", str, tuple[str, str])

_IDS = ("external_id", "python_id", "correlation", "seq")
_REST = ("name", "cat", "track", "device", "stream", "nbytes", "module", "stack", "shapes", "dtypes")


def alphabetical(table: Sequence[Word]) -> tuple[tuple[Word, ...], Int32Array]:
    """Words that were numbered as they came, in alphabetical order, and the new number of each."""
    order = sorted(range(len(table)), key=table.__getitem__)
    number = np.empty(len(table), np.int32)
    number[order] = np.arange(len(table), dtype=np.int32)
    return tuple(table[code] for code in order), number


def in_order(rows: Columns) -> Int64Array:
    """The rows by start, the longest first; rows of the same times by kind, ids, words and place.

    Args:
        rows: columns of the collector, with start, end and kind, in the order of the file; codes of words ascend
            alphabetically.

    Returns:
        The order. Rows that differ in nothing that is read keep their order in the file.
    """
    # Few rows share a start: sorting by it alone, and those few again, takes half the time.
    order = np.argsort(rows["start"], kind="stable")
    start = rows["start"][order]
    place = np.flatnonzero(_in_company(start, start))
    tied = order[place]
    order[place] = tied[np.lexsort((-rows["end"][tied], rows["start"][tied]))]
    place = np.flatnonzero(_in_company(start, rows["end"][order]))
    tied = order[place]
    keys = [rows["start"][tied], -rows["end"][tied], _level(rows["kind"][tied])]
    keys += [rows[name][tied] for name in (*_IDS, *_REST, "order")]
    order[place] = tied[np.lexsort(keys[::-1])]
    return order


def _in_company(start: Int64Array, end: Int64Array) -> BoolArray:
    """Which of the sorted rows have the same times as the one before or after them."""
    same = (start[1:] == start[:-1]) & (end[1:] == end[:-1])
    mask = np.zeros(len(start), np.bool_)
    mask[1:] |= same
    mask[:-1] |= same
    return mask


def _level(kind: np.ndarray[Any, Any]) -> Int64Array:
    """Operators and annotations are numbered together, and hold the calls made in them."""
    level = kind.astype(np.int64)
    level[kind == EventKind.ANNOTATION] = EventKind.CPU_OP
    return level
