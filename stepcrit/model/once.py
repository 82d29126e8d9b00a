"""Work done once a table: tables never change, and several readers of one ask for the same of it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar, TypeVarTuple
from weakref import WeakKeyDictionary

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
R = TypeVar("R")


def once(function: Callable[[T, *Ts], R]) -> Callable[[T, *Ts], R]:
    """Remember what a function of tables says, as long as the first of them lives.

    For the first table only the latest others are remembered. What is said must not hold that table, or it
    would live for ever, and must not be changed: its arrays are frozen.
    """
    known: WeakKeyDictionary[object, tuple[tuple[object, ...], R]] = WeakKeyDictionary()

    @wraps(function)
    def remembering(first: T, *others: *Ts) -> R:
        rest: tuple[object, ...] = others
        found = known.get(first)
        if found is None or not all(a is b for a, b in zip(found[0], rest, strict=True)):
            found = rest, function(first, *others)
            known[first] = found
        return found[1]

    return remembering
