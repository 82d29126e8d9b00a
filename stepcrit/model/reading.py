"""A number that was looked for in a trace: known, or with the reason why not."""

from __future__ import annotations

from msgspec import Struct

from stepcrit.model.checked import Number


class Reading(Struct, frozen=True):
    """A value, or why there is none.

    Attributes:
        value: None where it is not known.
        why: the reason, "" where it is known.
    """

    value: Number | None
    why: str = ""


def unknown(why: str) -> Reading:
    """No value, for a reason."""
    return Reading(None, why)
