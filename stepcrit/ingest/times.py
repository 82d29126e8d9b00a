"""Times leave their decimal text as exact integers: no float64 ever holds a timestamp.

A float64 keeps a quarter of a microsecond of an epoch time in µs, so a trace that writes
`1712170339414321.487` would lose its nanoseconds in any parser that makes floats of numbers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import TypeAlias

import msgspec
import numpy as np

from stepcrit.model.arrays import BoolArray, Int64Array

Text: TypeAlias = bytes | msgspec.Raw
"""A JSON value as it stands in the file."""

MIN_NS, MAX_NS = -(2**60), 2**62
"""What a timestamp may be: 36 years before the epoch to 146 after. Differences fit an int64."""

MAX_DURATION_NS = 2**61
"""Start + duration of anything in range still fits an int64. 73 years."""

_NUMBER = re.compile(rb'"?\s*([-+]?\d{1,30}(?:\.\d*)?(?:[eE][-+]?\d{1,3})?)\s*"?\Z')
_PLAIN_INTS: msgspec.json.Decoder[list[int]] = msgspec.json.Decoder(list[int])


def to_ns(text: Text) -> int | None:
    """Read one time in µs, as JSON number or string, truncated to whole ns.

    Args:
        text: the value's JSON text; exponents and quotes are accepted.

    Returns:
        Nanoseconds, or None when `text` is no number.

    >>> to_ns(b"812.5"), to_ns(b'"1704161511420306.491"'), to_ns(b"1.2e3"), to_ns(b"null")
    (812500, 1704161511420306491, 1200000, None)
    """
    match = _NUMBER.match(bytes(text))
    return int(Decimal(match[1].decode()).scaleb(3)) if match else None


def column_ns(texts: Sequence[Text]) -> tuple[Int64Array, BoolArray]:
    """Read a column of times in µs.

    The two layouts Kineto writes (all whole, or all with one to three decimals) are read in
    bulk, ten times faster than value by value; anything else goes through `to_ns`.

    Args:
        texts: JSON texts of the values.

    Returns:
        Nanoseconds, and a mask of the values that are numbers (the others are 0). Numbers
        outside MIN_NS - 1 .. MAX_NS + 1 are cut to these, so that a caller can tell them.
    """
    joined = b",".join(texts)
    values = _whole(joined) if b"." not in joined else _fractional(joined, len(texts))
    if values is not None:
        return values, np.ones(len(values), np.bool_)
    each = [to_ns(text) for text in texts]
    usable = np.array([ns is not None for ns in each], np.bool_)
    filled = [min(max(ns or 0, MIN_NS - 1), MAX_NS + 1) for ns in each]
    return np.array(filled, np.int64), usable


def in_range(time_ns: Int64Array) -> BoolArray:
    """Which times a trace can have."""
    return (time_ns >= MIN_NS) & (time_ns <= MAX_NS)


def _whole(joined: bytes) -> Int64Array | None:
    """Whole microseconds, or None when one of them is not that."""
    numbers = _integers(joined)
    if numbers is None or (len(numbers) and int(np.abs(numbers).max()) > MAX_NS // 1000):
        return None
    return numbers * 1000


def _fractional(joined: bytes, count: int) -> Int64Array | None:
    """Microseconds that all have one to three decimals, or None when one of them has not."""
    if b"-" in joined:
        return None
    # "12.05,3.4" -> "12,105,3,14": the 1 keeps the zeros that lead a fraction.
    numbers = _integers(joined.replace(b".", b",1"))
    if numbers is None or len(numbers) != 2 * count:
        return None
    whole, part = numbers[::2], numbers[1::2]
    # A value without decimals shifts the pairs, which puts a fraction out of these bounds.
    if int(whole.max()) > MAX_NS // 1000 or int(part.min()) < 10 or int(part.max()) > 1999:
        return None
    return whole * 1000 + np.where(
        part >= 1000, part - 1000, np.where(part >= 100, part * 10 - 1000, part * 100 - 1000)
    )


def _integers(joined: bytes) -> Int64Array | None:
    """Comma-separated JSON integers, or None when there is anything else."""
    try:
        return np.array(_PLAIN_INTS.decode(b"[" + joined + b"]"), np.int64)
    except (msgspec.DecodeError, OverflowError):
        return None
