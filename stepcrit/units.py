"""Integer nanoseconds, bytes, counts and shares as words for people: the only place that rounds.

Rounding is one policy, `three`: three significant digits, whole numbers stay whole, and a value that
is not zero never looks like zero. A share is never "0 %" or "100 %" unless exactly so.

`plain` is for streams that carry ASCII only: "us" and an ordinary space.
"""

from __future__ import annotations

THIN = "\u202f"  # a narrow no-break space, between a number and its unit and between thousands

_TIMES = (("s", 1e9), ("ms", 1e6), ("µs", 1e3))
_SIZES = ("KiB", "MiB", "GiB", "TiB", "PiB")
_NEXT_UNIT = 0.9995
"""From here on three digits round up to one of the next unit: 999 950 ns is "1.00 ms", not "1000 µs"."""


def ns_text(ns: float, *, sign: bool = False, plain: bool = False) -> str:
    """A duration for people: the unit that leaves one to three digits before the point.

    >>> ns_text(103_412_000).replace(THIN, " ")
    '103 ms'
    >>> ns_text(1_234).replace(THIN, " "), ns_text(1_234, plain=True)
    ('1.23 µs', '1.23 us')
    >>> ns_text(-500, sign=True).replace(THIN, " "), ns_text(999_950).replace(THIN, " "), ns_text(0)
    ('-500 ns', '1.00 ms', '0')
    """
    if ns == 0:
        return "0"
    for unit, scale in _TIMES:
        if abs(ns) >= scale * _NEXT_UNIT:
            return _words(three(ns / scale, sign=sign), unit, plain=plain)
    return _words(_whole(ns, sign=sign), "ns", plain=plain)


def share_text(part: float, whole: float, *, plain: bool = False) -> str:
    """A share for people, in percent; "-" when the whole is zero.

    >>> shares = (1, 3), (1, 100_000), (99_999, 100_000), (0, 5), (5, 5), (1, 0)
    >>> [share_text(a, b).replace(THIN, " ") for a, b in shares]
    ['33.3 %', '<0.1 %', '>99.9 %', '0 %', '100 %', '-']
    """
    if not whole:
        return "-"
    if part in (0, whole):
        return _words("100" if part else "0", "%", plain=plain)
    # from integers part / whole may come out as exactly 1.0, so the extremes are decided before it
    percent = 100 * (part / whole)
    return _words(_percent(percent), "%", plain=plain)


def bytes_text(n: float, *, plain: bool = False) -> str:
    """A size for people, in binary units.

    >>> bytes_text(1536).replace(THIN, " "), bytes_text(1023).replace(THIN, " "), bytes_text(2**20 - 1, plain=True)
    ('1.50 KiB', '1 023 B', '1.00 MiB')
    """
    if abs(n) < 1024:
        return _words(count_text(n, plain=plain), "B", plain=plain)
    value, unit = float(n), "B"
    for unit in _SIZES:  # noqa: B007 - the last unit stays, for sizes beyond it
        value /= 1024
        if abs(value) < 1023.5:
            break
    return _words(three(value), unit, plain=plain)


def count_text(n: float, *, plain: bool = False) -> str:
    """A count for people, with narrow spaces between thousands; a mean of counts in three digits.

    >>> count_text(1234567).replace(THIN, " "), count_text(1234567, plain=True), count_text(2.5)
    ('1 234 567', '1 234 567', '2.50')
    """
    return _words(_whole(n), "", plain=plain)


def three(value: float, *, sign: bool = False) -> str:
    """The rounding policy: three significant digits and no exponent; from 1000 on, whole numbers.

    >>> three(0.99995), three(9.996), three(12.34), three(1234.5).replace(THIN, " "), three(0.0001)
    ('1.00', '10.0', '12.3', '1 234', '<0.01')
    """
    size = abs(value)
    if 0 < size < 0.005:
        return ">-0.01" if value < 0 else "<0.01"
    digits = 0 if size >= 99.95 else 1 if size >= 9.995 else 2
    text = f"{value:+,.{digits}f}" if sign else f"{value:,.{digits}f}"
    return text.replace(",", THIN)


def _whole(value: float, *, sign: bool = False) -> str:
    """A whole number in full; anything else in three digits."""
    if value != int(value):
        return three(value, sign=sign)
    return (f"{int(value):+,}" if sign else f"{int(value):,}").replace(",", THIN)


def _percent(percent: float) -> str:
    """One decimal, and never a rounded extreme."""
    if 0 <= percent < 0.1:
        return "<0.1"
    if 99.9 < percent <= 100:
        return ">99.9"
    return ">-0.1" if -0.1 < percent < 0 else f"{percent:.1f}"


def _words(number: str, unit: str, *, plain: bool) -> str:
    """Number and unit, kept together."""
    text = f"{number}{THIN}{unit}" if unit else number
    return text.replace(THIN, " ").replace("µ", "u") if plain else text
