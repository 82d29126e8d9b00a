"""What cannot be true of a row, and what became of it: set right, put aside, or only told."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, field


class Done(StrEnum):
    """What became of implausible rows."""

    SET_RIGHT = "set right"
    PUT_ASIDE = "put aside"
    TOLD = "told"  # nothing was changed


class Oddity(Struct, frozen=True):
    """One kind of implausible rows in one trace.

    Attributes:
        code: stable id (`stepcrit explain CODE`).
        count: rows concerned.
        of_count: rows that were looked at.
        done: what became of them.
        example: name of the worst of them, or what else the finding is about: text from the trace.
        order: position of the worst in the file's traceEvents array, -1 when it is no single row.
        ns: times that the finding tells, by JSON key; None where a time is not known.
    """

    code: str
    count: int
    of_count: int
    done: Done
    example: str = ""
    order: int = -1
    ns: Mapping[str, int | None] = field(default_factory=dict)
