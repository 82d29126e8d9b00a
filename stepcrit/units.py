"""Decimal text to integer nanoseconds, and the only place that turns numbers into words for people.

Rounding is one policy: three significant digits, never "0 %" or "100 %" unless exactly so.
"""

from __future__ import annotations

THIN = "\u202f"  # a narrow no-break space, between a number and its unit


def ns_text(ns: int | float, *, sign: bool = False) -> str:
    """A duration for people: the unit that leaves one to three digits before the point.

    >>> ns_text(103_412_000).replace(THIN, " ")
    '103 ms'
    >>> ns_text(1_234).replace(THIN, " ")
    '1.23 µs'
    >>> ns_text(-500, sign=True).replace(THIN, " ")
    '-500 ns'
    """
    value = float(ns)
    for unit, scale in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if abs(value) >= scale * 0.9995:
            return f"{_three(value / scale, sign=sign)}{THIN}{unit}"
    return f"{_three(value, sign=sign)}{THIN}ns"


def share_text(part: int | float, whole: int | float) -> str:
    """A share for people, in percent; "-" when the whole is zero.

    >>> share_text(1, 3), share_text(1, 100000), share_text(99999, 100000), share_text(0, 5), share_text(5, 5)
    ('33.3 %', '<0.1 %', '>99.9 %', '0 %', '100 %')
    """
    if not whole:
        return "-"
    share = 100 * part / whole
    if share in (0.0, 100.0):
        return f"{share:.0f} %"
    if 0 < share < 0.1:
        return "<0.1 %"
    if 99.9 < share < 100:
        return ">99.9 %"
    return f"{share:.1f} %"


def bytes_text(n: int) -> str:
    """A size for people, in binary units.

    >>> bytes_text(1536).replace(THIN, " ")
    '1.5 KiB'
    """
    value = float(n)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(value) < 1024 or unit == "TiB":
            return f"{value:.3g}{THIN}{unit}" if unit != "B" else f"{int(value)}{THIN}B"
        value /= 1024
    raise AssertionError("unreachable")


def count_text(n: int) -> str:
    """A count for people, with narrow spaces between thousands.

    >>> count_text(1234567).replace(THIN, " ")
    '1 234 567'
    """
    return f"{n:,}".replace(",", THIN)


def _three(value: float, *, sign: bool) -> str:
    """Three significant digits without an exponent."""
    size = abs(value)
    digits = 0 if size >= 99.95 or size == int(size) else 1 if size >= 9.995 else 2
    return f"{value:+.{digits}f}" if sign else f"{value:.{digits}f}"
