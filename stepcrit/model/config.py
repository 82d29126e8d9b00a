"""What a project asks of its traces: which they are, what they are compared with, and what they may cost."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from stepcrit.model.checked import Number, Place


class Kind(StrEnum):
    """What an amount counts, as its unit says."""

    TIME = "a time"  # in ns
    SIZE = "a size"  # in bytes
    SHARE = "a share"  # 0..1, from "5 %"
    PLAIN = "a bare number"  # a count, or a share


class Amount(Struct, frozen=True):
    """A limit as it was written.

    Attributes:
        number: in ns, bytes or as a share.
        kind: what its unit says it counts.
        words: as written.
    """

    number: Number
    kind: Kind
    words: str


class Level(StrEnum):
    """What a budget that is passed does."""

    ERROR = "error"
    WARN = "warn"
    OFF = "off"


class Manner(StrEnum):
    """What is done where a trace cannot be compared, or is older than its code."""

    ERROR = "error"  # not judged: exit 4
    WARN = "warn"  # said, and judged all the same
    SKIP = "skip"  # said, and left out


class Preset(StrEnum):
    """Which metrics may not grow without being named."""

    RECOMMENDED = "recommended"  # counts and bytes exactly, times beyond what noise explains
    STRUCTURE = "structure"  # counts and bytes alone
    NONE = "none"  # what [budget] names alone


class Budget(Struct, frozen=True):
    """One line of a [budget] table.

    Attributes:
        glob: the traces that it is about.
        metric: as written.
        max, min: the most and the least; None: no such limit.
        grow: the relative growth that is allowed over the baseline, as a share.
        grow_abs: the absolute one; a growth fails that passes both.
        level: what happens where it is passed.
        place: its line.
    """

    glob: str
    metric: str
    max: Amount | None
    min: Amount | None
    grow: Amount | None
    grow_abs: Amount | None
    level: Level
    place: Place


class Watch(Struct, frozen=True):
    """Code that traces are about: when it changes, they are old."""

    glob: str
    code: tuple[str, ...]
    place: Place


class Config(Struct, frozen=True):
    """A whole configuration.

    Attributes:
        source: the file, as it is named to the user.
        traces: paths and globs.
        base: a git ref or a folder; "": budgets only.
        steps: "median", "worst", "all", a step, or a range "12-15".
        preset: which metrics are watched without being named.
        incomparable: what is done with a trace that cannot be compared with its baseline.
        stale: what is done with one that is older than its code.
        max_trace_size: the largest trace, in bytes; None: any.
        watch, budgets: in the order of the file.
    """

    source: str
    traces: tuple[str, ...] = ()
    base: str = ""
    steps: str = "median"
    preset: Preset = Preset.RECOMMENDED
    incomparable: Manner = Manner.ERROR
    stale: Manner = Manner.ERROR
    max_trace_size: Amount | None = None
    watch: tuple[Watch, ...] = ()
    budgets: tuple[Budget, ...] = ()


def is_backwards(steps: str) -> bool:
    """Whether a range of steps ends before it begins, so that it can mean none.

    >>> is_backwards("12-15"), is_backwards("15-12"), is_backwards("median")
    (False, True, False)
    """
    first, dash, last = steps.partition("-")
    return bool(dash) and int(first) > int(last)
