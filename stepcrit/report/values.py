"""One raw value as words, the same in every format for people."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from stepcrit.errors import InternalError
from stepcrit.model.section import Cell, Sentence, Unit, Value
from stepcrit.report.safe import safe_text
from stepcrit.units import bytes_text, count_text, ns_text, share_text

MISSING = "–"
"""Not recorded, or not applicable: never to be taken for zero, which is "0"."""

WORDS = frozenset({Unit.TEXT, Unit.NAME})


def value_text(raw: Cell, unit: Unit, *, plain: bool = False) -> str:
    """A value for people; strings whole, but safe.

    Args:
        raw: the cell; None is "–".
        unit: how it is to be read.
        plain: in ASCII.

    Raises:
        InternalError: a number where there should be words, the reverse, or NaN.
    """
    if raw is None:
        return "-" if plain else MISSING
    if isinstance(raw, Value):
        return value_text(raw.raw, raw.unit, plain=plain)
    if unit in WORDS:
        return safe_text(str(raw))
    return _FORMATS[unit](_number(raw, unit), plain)


_FORMATS: dict[Unit, Callable[[float, bool], str]] = {
    Unit.NS: lambda n, plain: ns_text(n, plain=plain),
    Unit.SAVED_NS: lambda n, plain: ns_text(n, sign=True, plain=plain),
    Unit.COUNT: lambda n, plain: count_text(n, plain=plain),
    Unit.SHARE: lambda n, plain: share_text(n, 1, plain=plain),
    Unit.BYTES: lambda n, plain: bytes_text(n, plain=plain),
}


def pieces(sentence: Sentence) -> Iterator[str | Value]:
    """A sentence's words and values in reading order.

    Raises:
        InternalError: the template has another number of places than there are values.
    """
    words = sentence.template.split("{}")
    if len(words) != len(sentence.values) + 1:
        raise InternalError("a sentence has not one value for each place", where=sentence.template)
    for before, value in zip(words, sentence.values, strict=False):
        yield before
        yield value
    yield words[-1]


def sentence_text(sentence: Sentence) -> str:
    """A sentence as one plain string, with whole names."""
    return "".join(
        safe_text(piece) if isinstance(piece, str) else value_text(piece.raw, piece.unit)
        for piece in pieces(sentence)
    )


def _number(raw: str | float, unit: Unit) -> float:
    """The number that a unit promises."""
    if isinstance(raw, str) or not math.isfinite(raw):
        raise InternalError(f"{raw!r} is no value in {unit}")
    return raw
