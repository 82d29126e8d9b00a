"""What a user types to mean names, under limits: which names match, in bounded time and memory, and close names.

A pattern may come from a script or from another's project. `re` can be kept busy for days by seven
characters; `regex` takes a time limit, but compiling needs memory that grows with each repetition.
"""

from __future__ import annotations

import fnmatch
import re
import time
from collections.abc import Sequence

import numpy as np

from stepcrit.errors import UsageError, quoted
from stepcrit.model.arrays import BoolArray

PATTERN_SECONDS = 1.0
"""A user's regular expressions may look at all names of a trace for this long."""

LONGEST = 4000
"""A pattern of more characters is refused; a name in full may be longer."""

DEEPEST = 8
"""So many groups may be nested: each one more triples what compiling takes."""

MOST_REPEATS = 10_000
"""So often may the counted repetitions of a pattern multiply: the compiler writes each of them out in memory."""

COMPARED = 80
"""So many characters of names are compared where a close one is looked for: the cost grows with their square."""

AMONG = 1000
"""The closest are looked for among so many names."""

_COUNTED = re.compile(r"\{(\d*),?(\d*)\}")


def deadline() -> float:
    """When regular expressions that begin now must have ended."""
    return time.monotonic() + PATTERN_SECONDS


def meant_by(names: Sequence[str], typed: str) -> BoolArray:
    """Which names are what was typed, or else match it as a glob.

    Raises:
        UsageError: as `named_like`.
    """
    exact = np.array([name == typed for name in names], np.bool_)
    return exact if exact.any() else named_like(names, typed)


def named_like(names: Sequence[str], glob: str) -> BoolArray:
    """Which names a glob means, whole and in their case.

    Raises:
        UsageError: it is longer than any glob needs to be.
    """
    _check_length(glob)
    compiled = re.compile(fnmatch.translate(glob))  # of a glob, `re` never takes exponential time
    return np.array([bool(compiled.match(name)) for name in names], np.bool_)


def found_by(names: Sequence[str], pattern: str, until: float | None = None) -> BoolArray:
    """In which names a regular expression is found, anywhere.

    Args:
        names: what it looks at.
        pattern: the regular expression.
        until: a deadline shared with others; its own by default.

    Raises:
        UsageError: it is none, is beyond the limits, or takes too long.
    """
    import regex  # noqa: PLC0415 - unlike re it can be given a time limit

    until = deadline() if until is None else until
    check_pattern(pattern)
    try:
        compiled = regex.compile(pattern)
        found = [bool(compiled.search(name, timeout=_left(until))) for name in names]
    except TimeoutError as error:
        raise UsageError(
            f"the pattern {quoted(pattern)} takes too long: it has {PATTERN_SECONDS:g} s for all names",
            do="write it without nested repetition",
        ) from error
    return np.array(found, np.bool_)


def check_pattern(pattern: str) -> None:
    """Refuse what is no regular expression, before anything is read.

    Raises:
        UsageError: see above.
    """
    import regex  # noqa: PLC0415 - as above

    _check_length(pattern)
    if _nesting(pattern) > DEEPEST:
        raise UsageError(
            f"{quoted(pattern)} is not a regular expression that is tried: it is nested too deeply",
            do=f"nest at most {DEEPEST} groups",
        )
    if _repeats(pattern) > MOST_REPEATS:
        raise UsageError(f"the pattern {quoted(pattern)} repeats too often", do="write + or * for many")
    try:
        regex.compile(pattern)
    except (regex.error, RecursionError, OverflowError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise UsageError(f"{quoted(pattern)} is not a regular expression: {why}") from error


def near_names(wanted: str, names: tuple[str, ...], count: int = 5) -> list[str]:
    """The closest names, for an error that helps: compared by how they begin, where names are long or many."""
    import difflib  # noqa: PLC0415 - only an error needs it

    wanted = wanted[:COMPARED].lower()
    lower = {name[:COMPARED].lower(): name for name in names}
    close = difflib.get_close_matches(wanted, list(lower)[:AMONG], n=count, cutoff=0.4)
    inside = [name for key, name in lower.items() if wanted in key and key not in close]
    return [lower[key] for key in close][:count] + inside[: max(0, count - len(close))]


def _check_length(pattern: str) -> None:
    if len(pattern) > LONGEST:
        raise UsageError(
            f"the pattern {quoted(pattern)} has {len(pattern)} characters", do=f"write at most {LONGEST}"
        )


def _nesting(pattern: str) -> int:
    """How deeply parentheses are nested, escaped ones left out."""
    depth = deepest = 0
    for found in re.finditer(r"\\.|[()]", pattern, re.DOTALL):
        depth += (found[0] == "(") - (found[0] == ")")
        deepest = max(deepest, depth)
    return deepest


def _repeats(pattern: str) -> int:
    """How often a part of the pattern may be repeated at most, were all its counted repetitions nested."""
    product = 1
    for counts in _COUNTED.findall(pattern):
        for digits in counts:
            product *= max(int(digits[:9] or 1), 1)
            if product > MOST_REPEATS:
                return product
    return product


def _left(until: float) -> float:
    """Seconds until then.

    Raises:
        TimeoutError: none are left.
    """
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
