"""A clock that runs processes; a process sleeps until an instant or waits for a signal."""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from heapq import heappop, heappush
from itertools import count


class Signal:
    """Something that happens once; processes may wait for it."""

    __slots__ = ("at_ns", "waiters")

    def __init__(self) -> None:
        self.at_ns: int | None = None
        self.waiters: list[Process] = []


Process = Generator[Signal | int, None, None]


class Clock:
    """Integer nanoseconds; what falls on one instant runs in the order it was asked for."""

    def __init__(self) -> None:
        self.now = 0
        self._agenda: list[tuple[int, int, Callable[[], None]]] = []
        self._order = count()

    def run(self) -> None:
        """Run until nothing is left to do."""
        while self._agenda:
            self.now, _, action = heappop(self._agenda)
            action()

    def start(self, process: Process) -> None:
        """Let `process` take its next turn at this instant."""
        self._at(self.now, partial(self._resume, process))

    def fire(self, signal: Signal) -> None:
        """Make `signal` happen now."""
        signal.at_ns = self.now
        for process in signal.waiters:
            self.start(process)
        signal.waiters.clear()

    def fire_at(self, when_ns: int, signal: Signal) -> None:
        """Make `signal` happen at an instant that is already known."""
        self._at(when_ns, partial(self.fire, signal))

    def _at(self, when_ns: int, action: Callable[[], None]) -> None:
        heappush(self._agenda, (max(when_ns, self.now), next(self._order), action))

    def _resume(self, process: Process) -> None:
        target = next(process, None)
        if isinstance(target, int):
            self._at(target, partial(self._resume, process))
        elif isinstance(target, Signal) and target.at_ns is not None:
            self.start(process)
        elif isinstance(target, Signal):
            target.waiters.append(process)
