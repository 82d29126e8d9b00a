"""Amounts as people write them: "420 ms", "64 MiB", "5 %", or a bare number."""

from __future__ import annotations

import re
from decimal import Decimal

from stepcrit.model.config import Amount, Kind

_UNITS: dict[str, tuple[Kind, int]] = {
    "ns": (Kind.TIME, 1),
    "us": (Kind.TIME, 10**3),
    "\u00b5s": (Kind.TIME, 10**3),
    "ms": (Kind.TIME, 10**6),
    "s": (Kind.TIME, 10**9),
    "min": (Kind.TIME, 60 * 10**9),
    "B": (Kind.SIZE, 1),
    "kB": (Kind.SIZE, 10**3),
    "KB": (Kind.SIZE, 10**3),
    "MB": (Kind.SIZE, 10**6),
    "GB": (Kind.SIZE, 10**9),
    "TB": (Kind.SIZE, 10**12),
    "KiB": (Kind.SIZE, 1 << 10),
    "MiB": (Kind.SIZE, 1 << 20),
    "GiB": (Kind.SIZE, 1 << 30),
    "TiB": (Kind.SIZE, 1 << 40),
}
UNITS = ("ns", "us", "ms", "s", "min", "B", "KB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB", "%")
"""Those that a message names."""

_WRITTEN = re.compile(r"(?P<number>[0-9][0-9_ \u202f\u00a0]*(?:\.[0-9]+)?)\s*(?P<unit>[^\s0-9.]*)", re.ASCII)
_LONGEST = 40
_LARGEST = 1e18


def read_amount(written: str | float) -> Amount:
    """An amount with its unit; times become whole ns, sizes whole bytes.

    >>> read_amount("1.5 ms").number, read_amount("5 %").number, read_amount(3).number
    (1500000, 0.05, 3)

    Raises:
        ValueError: it is none; the words say why.
    """
    if isinstance(written, str):
        return _read_text(written)
    if isinstance(written, bool) or not isinstance(written, int | float):
        raise ValueError('give a number and a unit: "420 ms", "64 MiB", "5 %", or a bare number')  # noqa: TRY004 - one error for all that is no amount
    if not 0 <= written <= _LARGEST:  # so NaN, too
        raise ValueError("an amount is at least 0 and at most 1e18")
    return Amount(written, Kind.PLAIN, str(written))


def _read_text(written: str) -> Amount:
    """A number with a unit, or without."""
    text = written.strip().replace("\u03bc", "\u00b5")  # two signs look like micro
    found = _WRITTEN.fullmatch(text) if len(text) <= _LONGEST else None
    if found is None:
        raise ValueError('give a number and a unit: "420 ms", "64 MiB", "5 %", or a bare number')
    number = Decimal(re.sub(r"[_ \u202f\u00a0]", "", found["number"]))
    unit = found["unit"]
    if not unit:
        return read_amount(int(number) if number == int(number) else float(number))
    if unit == "%":
        return Amount(float(number / 100), Kind.SHARE, written)
    if unit not in _UNITS:
        raise ValueError(f"{unit!r} is no unit; there are {', '.join(UNITS)}")
    kind, scale = _UNITS[unit]
    if number * scale > _LARGEST:
        raise ValueError("it is larger than 1e18 ns or bytes")
    return Amount(round(number * scale), kind, written)
