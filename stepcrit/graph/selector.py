"""What the user typed to select something, and which names it matches."""

from __future__ import annotations

import fnmatch
import re
import time
from dataclasses import dataclass

import numpy as np

from stepcrit.errors import UsageError, quoted
from stepcrit.model.arrays import BoolArray

PREFIXES = ("re", "class", "module", "stream", "step", "line")
PATTERN_SECONDS = 2.0
"""A user's regular expression may look at all names for this long."""


@dataclass(frozen=True, slots=True)
class Selector:
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
        UsageError: the regular expression is none, or takes too long.
    """
    if selector.kind == "re":
        return _regex_test(names, selector.pattern)
    exact = np.array([name == selector.pattern for name in names], np.bool_)
    if exact.any():
        return exact
    glob = re.compile(fnmatch.translate(selector.pattern))
    return np.array([bool(glob.match(name)) for name in names], np.bool_)


def _regex_test(names: tuple[str, ...], pattern: str) -> BoolArray:
    import regex  # noqa: PLC0415 - unlike re it can be given a time limit

    until = time.monotonic() + PATTERN_SECONDS
    try:
        compiled = regex.compile(pattern)
        found = [bool(compiled.search(name, timeout=_left(until))) for name in names]
    except (regex.error, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise UsageError(f"{quoted(pattern)} is not a regular expression: {why}") from error
    except TimeoutError as error:
        raise UsageError(
            f"the pattern {quoted(pattern)} takes too long", do="write it without nested repetition"
        ) from error
    return np.array(found, np.bool_)


def _left(until: float) -> float:
    """Seconds until then.

    Raises:
        TimeoutError: none are left.
    """
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
