"""What happened in a run: spans, the real dependencies between them, and why each device span began."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from .program import Action, DeviceOp, Program


@dataclass(slots=True, eq=False)
class Span:
    """One stretch of one lane; a lane is a thread name or a stream number."""

    rank: int
    lane: str | int
    category: str
    name: str
    start_ns: int
    end_ns: int = -1
    correlation: int = 0
    parent: Span | None = None  # innermost open operator of the thread; for device spans, the launch call
    action: Action | DeviceOp | None = None
    step: int = -1
    cause: str = ""  # which constraint of a device span was the last to be met
    peer_cause: int = -1  # rank of the last arrival of a collective
    record: Span | None = None  # the event record this wait call refers to

    @property
    def on_device(self) -> bool:
        """Whether it occupied the device."""
        return isinstance(self.lane, int)


@dataclass(frozen=True, slots=True)
class Dependency:
    """`after` could not go on before `before` was done."""

    before: Span
    after: Span
    why: str


@dataclass(frozen=True, slots=True)
class Cause:
    """An instant before which something cannot begin, and who set it."""

    at_ns: int
    why: str
    source: Span | None = None


@dataclass(slots=True, eq=False)
class Run:
    """A finished simulation."""

    program: Program
    spans: list[Span] = field(default_factory=list)
    dependencies: list[Dependency] = field(default_factory=list)

    def add(self, span: Span) -> Span:
        """Note a span when it begins."""
        self.spans.append(span)
        return span

    def depend(self, before: Span | None, after: Span, why: str) -> None:
        """Note a dependency; nothing to wait for is no dependency."""
        if before is not None:
            self.dependencies.append(Dependency(before, after, why))

    def vary(self, ns: int, key: str) -> int:
        """Stretch or shorten `ns` by the luck that belongs to `key`."""
        permille = self.program.machine.jitter_permille
        if not permille or not ns:
            return ns
        luck = Random(f"{self.program.seed}/{key}").randint(-permille, permille)
        return ns + ns * luck // 1_000
