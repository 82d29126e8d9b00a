"""A whole in parts as one line of cells: widths that add up to the line, nothing lost without a word."""

from __future__ import annotations

from collections.abc import Sequence

from stepcrit.errors import InternalError
from stepcrit.model.section import Bar

BLOCKS = "█▓▒░·"
ASCII_BLOCKS = "#=+-."


def parts_of(bar: Bar) -> list[tuple[str, int]]:
    """The parts that are not zero.

    Raises:
        InternalError: they do not add up to the whole, or one is negative.
    """
    if any(ns < 0 for _, ns in bar.parts) or sum(ns for _, ns in bar.parts) != bar.whole_ns:
        raise InternalError("the parts of a bar do not add up to its whole", where=bar.title)
    return [(label, ns) for label, ns in bar.parts if ns]


def apportion(parts: Sequence[int], width: int) -> list[int]:
    """Cells for each part by largest remainder; they sum to `width`.

    A part worth half a cell or more gets one, if there are cells enough; a smaller one is for the legend.

    >>> apportion([574, 191, 132, 103], 10), apportion([999, 1], 10), apportion([96, 4], 10), apportion([0], 5)
    ([6, 2, 1, 1], [10, 0], [10, 0], [0])
    """
    whole = sum(parts)
    if whole <= 0:
        return [0] * len(parts)
    # in integers, so that no platform rounds another way
    cells = [part * width // whole or int(2 * part * width >= whole) for part in parts]
    owed = [part * width - n * whole for part, n in zip(parts, cells, strict=True)]
    order = sorted(range(len(parts)), key=lambda i: (cells[i] == 0, -owed[i], i))
    for i in order[: max(width - sum(cells), 0)]:
        cells[i] += 1
    while sum(cells) > width:
        # too many were rounded up to one cell: the widest pay; among single cells the smallest
        payers = [i for i, n in enumerate(cells) if n > 1] or [i for i, n in enumerate(cells) if n]
        cells[max(payers, key=lambda i: (cells[i] * whole - parts[i] * width, i))] -= 1
    return cells
