"""Where an answer may not go: onto anything that was read for it."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from stepcrit.cli.config import CONFIG, PYPROJECT
from stepcrit.errors import UsageError

STDIN = "-"


def check_target(target: str, source: str, *read: str) -> None:
    """Refuse an output that is an input, under whatever name: a link to it, or what stdin was opened from.

    Args:
        target: the path to write.
        source: the trace as the command line names it.
        read: other files that were read, and the trace itself where `source` is the folder it lies in.

    Raises:
        UsageError: see above.
    """
    if source and _is_input(target, source):
        raise UsageError("the output would overwrite the trace", where=target, do="give another path")
    for other in (*read, CONFIG, PYPROJECT):
        if _same(target, other):
            raise UsageError("the output would overwrite an input", where=target, do="give another path")


def same_target(one: str, other: str) -> bool:
    """Whether two outputs would land in the same place, be there a file yet or not."""
    return _place(one) == _place(other)


def _place(path: str) -> str:
    """A path with the links of its folders followed; the last part is replaced, never followed."""
    folder, name = os.path.split(os.path.abspath(path))  # noqa: PTH100 - strings are enough
    return os.path.join(os.path.realpath(folder), name)  # noqa: PTH118


def _is_input(target: str, source: str) -> bool:
    if source == STDIN:
        # a stream of a test has no number, and a closed stdin is no stream
        with suppress(OSError, ValueError, AttributeError):
            return os.path.samestat(os.stat(target), os.fstat(sys.stdin.fileno()))  # noqa: PTH116
        return False
    return _same(target, source)


def _same(a: str, b: str) -> bool:
    with suppress(OSError, ValueError):
        return os.path.samefile(a, b)  # noqa: PTH121 - strings are enough
    return False
