"""Work done once a table: tables never change, and several readers of one ask for the same of it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar
from weakref import WeakKeyDictionary

P = ParamSpec("P")
R = TypeVar("R")


def once(function: Callable[P, R]) -> Callable[P, R]:
    """Remember what a function of tables says, as long as the first of them lives.

    For the first table only the latest others are remembered. What is said must not hold that table, or it
    would live for ever, and must not be changed: its arrays are frozen.
    """
    known: WeakKeyDictionary[object, tuple[tuple[object, ...], R]] = WeakKeyDictionary()

    @wraps(function)
    def remembering(*args: P.args, **kwargs: P.kwargs) -> R:
        first, *others = args
        found = known.get(first)
        if found is None or not all(a is b for a, b in zip(found[0], others, strict=True)):
            found = tuple(others), function(*args, **kwargs)
            known[first] = found
        return found[1]

    return remembering
