"""Where the time of one command goes: phases that add up to the whole (`--timings`).

A phase counts what is spent in it but not in a phase inside of it. Before the first one it is start-up
(imports, mostly); what no phase claims after that is the answer's. Nothing is measured unless asked for.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

START_UP, ANSWER = "start-up", "answer"
PHASES = (START_UP, "read", "link", "steps", "graph", "path", "ranking", ANSWER, "render")
"""In the order in which they are told."""

P = ParamSpec("P")
R = TypeVar("R")


class Stopwatch:
    """Time by phase since a beginning, in ns.

    Attributes:
        spent: time by phase so far, without the one that goes on.
    """

    def __init__(self, began_ns: int) -> None:
        self.spent = dict.fromkeys(PHASES, 0)
        self._since_ns = began_ns
        self._open = [START_UP]

    def enter(self, phase: str) -> None:
        """A phase begins inside of the one that goes on."""
        self._lap()
        if self._open == [START_UP]:
            self._open = [ANSWER]
        self._open.append(phase)

    def leave(self) -> None:
        """The innermost phase ends."""
        self._lap()
        self._open.pop()

    def lines(self) -> list[str]:
        """Each phase with its ms and its share; the printed ms add up to the printed whole."""
        self._lap()
        whole, so_far, shown = max(sum(self.spent.values()), 1), 0, 0
        lines = []
        for phase, ns in self.spent.items():
            so_far += ns
            tenths = round(so_far / 100_000) - shown
            shown += tenths
            lines.append(_line(phase, tenths, ns / whole))
        return [*lines, _line("all", shown, 1.0)]

    def _lap(self) -> None:
        now = time.perf_counter_ns()
        self.spent[self._open[-1]] += now - self._since_ns
        self._since_ns = now


def _line(phase: str, tenths: int, share: float) -> str:
    return f"{phase:10}{tenths / 10:12.1f} ms{share:9.1%}"


_BEGAN_NS = time.perf_counter_ns()
_watches: list[Stopwatch] = []


def begin() -> None:
    """Measure from here on; what came before counts as start-up."""
    _watches[:] = [Stopwatch(_BEGAN_NS)]


def end() -> list[str]:
    """What was measured, to be told; nothing where nothing was. No more is measured."""
    lines = _watches[0].lines() if _watches else []
    _watches.clear()
    return lines


def timed(phase: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Count the time of a function to a phase."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def measured(*args: P.args, **kwargs: P.kwargs) -> R:
            if not _watches:
                return function(*args, **kwargs)
            watch = _watches[0]
            watch.enter(phase)
            try:
                return function(*args, **kwargs)
            finally:
                watch.leave()

        return measured

    return decorate
