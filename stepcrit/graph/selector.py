"""What the user typed to select something, and which names it matches."""

from __future__ import annotations

from msgspec import Struct

from stepcrit.link.patterns import found_by, meant_by
from stepcrit.model.arrays import BoolArray

PREFIXES = ("re", "class", "module", "stream", "step", "line")


class Selector(Struct, frozen=True):
    """What the user typed: `kind` is "name" or one of PREFIXES."""

    kind: str
    pattern: str

    def __str__(self) -> str:
        return self.pattern if self.kind == "name" else f"{self.kind}:{self.pattern}"


def parse_selector(text: str) -> Selector:
    """A selector from its text: an exact name or glob, or `prefix:pattern`.

    >>> parse_selector("class:gemm"), parse_selector("aten::mm")
    (Selector(kind='class', pattern='gemm'), Selector(kind='name', pattern='aten::mm'))
    """
    prefix, colon, rest = text.partition(":")
    if colon and prefix in PREFIXES and not rest.startswith(":"):
        return Selector(prefix, rest)
    return Selector("name", text)


def matching(names: tuple[str, ...], selector: Selector) -> BoolArray:
    """Which names match: exactly, or else as a glob, or as a regular expression in limited time.

    Raises:
        UsageError: the pattern is none, is beyond the limits, or takes too long.
    """
    test = found_by if selector.kind == "re" else meant_by
    return test(names, selector.pattern)
