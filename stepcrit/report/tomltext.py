"""A stepcrit.toml as text: what is written says in comments what it rests on, and names from a repository stay strings.

A limit is written in few digits, and never below what it stands for.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from decimal import ROUND_CEILING, Decimal

from stepcrit.model.section import Unit
from stepcrit.report.safe import ascii_text, is_unsafe, safe_text

DIGITS = 3
_TIMES = ((10**9, "s"), (10**6, "ms"), (10**3, "us"), (1, "ns"))
_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_BRACKETED = re.compile(r"##(?=[A-Za-z]*\[)")


def toml_string(text: str) -> str:
    r"""A basic string that only prints: whatever is in a path, it ends where it should.

    >>> print(toml_string('a"b\\c\n'), toml_string("##[error]"))
    "a\"b\\c\n" "#\u0023[error]"

    Raises:
        ValueError: it holds half a surrogate pair, which no TOML file can.
    """
    text.encode()
    return _BRACKETED.sub(r"#\\u0023", f'"{"".join(map(_escaped, text))}"')


def _escaped(char: str) -> str:
    if char in _SHORT:
        return _SHORT[char]
    code = ord(char)
    return char if not is_unsafe(char) else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def toml_list(texts: Iterable[str]) -> str:
    """A list of strings."""
    return f"[{', '.join(map(toml_string, texts))}]"


def comment(text: str) -> str:
    """A comment: one line, in ASCII, that only prints."""
    return f"# {ascii_text(safe_text(text, None))}"


def amount(value: float, unit: Unit) -> str:
    """A limit as stepcrit.toml takes it, rounded up to three digits; counts and sizes stay whole.

    >>> amount(779539, Unit.NS), amount(0.86001, Unit.SHARE), amount(23, Unit.COUNT), amount(60000, Unit.BYTES)
    ('"780 us"', '"86.1 %"', '23', '"60000 B"')
    """
    if unit == Unit.COUNT:
        return str(math.ceil(value))
    if unit == Unit.BYTES:
        return f'"{math.ceil(value)} B"'
    if unit == Unit.SHARE:
        return f'"{_rounded(Decimal(repr(float(value))) * 100)} %"'
    scale, name = next((one for one in _TIMES if value >= one[0]), _TIMES[-1])
    return f'"{_rounded(Decimal(repr(value)) / scale)} {name}"'


def _rounded(value: Decimal) -> str:
    """Three digits, rounded up; no more places than say something."""
    if not value:
        return "0"
    step = Decimal(1).scaleb(value.adjusted() - DIGITS + 1)
    return f"{value.quantize(min(step, Decimal(1)), ROUND_CEILING):f}"
