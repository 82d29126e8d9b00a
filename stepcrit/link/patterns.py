"""Names, and what a user wrote to mean some of them: patterns in limited time, and close names."""

from __future__ import annotations

import fnmatch
import re
import time

import numpy as np

from stepcrit.errors import UsageError, quoted
from stepcrit.model.arrays import BoolArray

PATTERN_SECONDS = 2.0
"""A user's regular expressions may look at all names for this long."""


def deadline() -> float:
    """When regular expressions that begin now must have ended."""
    return time.monotonic() + PATTERN_SECONDS


def glob_test(names: tuple[str, ...], pattern: str) -> BoolArray:
    """Which names a pattern is, or else matches as a glob."""
    exact = np.array([name == pattern for name in names], np.bool_)
    if exact.any():
        return exact
    glob = re.compile(fnmatch.translate(pattern))
    return np.array([bool(glob.match(name)) for name in names], np.bool_)


def regex_test(names: tuple[str, ...], pattern: str, until: float | None = None) -> BoolArray:
    """In which names a regular expression finds something, in limited time.

    Args:
        names: what it looks at.
        pattern: the regular expression.
        until: a deadline shared with others; its own by default.

    Raises:
        UsageError: it is no regular expression, or takes too long.
    """
    import regex  # noqa: PLC0415 - unlike re it can be given a time limit

    until = deadline() if until is None else until
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


def near_names(wanted: str, names: tuple[str, ...], count: int = 5) -> list[str]:
    """The closest names, for an error that helps."""
    import difflib  # noqa: PLC0415 - only an error needs it

    lower = {name.lower(): name for name in names}
    close = difflib.get_close_matches(wanted.lower(), lower, n=count, cutoff=0.4)
    inside = [name for key, name in lower.items() if wanted.lower() in key and key not in close]
    return [lower[key] for key in close][:count] + inside[: max(0, count - len(close))]
