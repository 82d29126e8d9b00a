"""What an input may cost: limits with safe defaults, each named by the error that it raises.

A trace is written by somebody else. A small file may unpack to anything, and a name may be as long
as a file; so no input is read without a bound, and no size that a file declares is believed.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from stepcrit.errors import LimitInputError, UsageError

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
_UNITS = {"": 1, "kib": KIB, "mib": MIB, "gib": GIB, "kb": 10**3, "mb": 10**6, "gb": 10**9}

RATIO_FROM_BYTES = 64 * MIB
"""Text below which the ratio is not asked: small bombs do no harm. (A trace of 110 MB packs 14:1 with
gzip and 58:1 with zstd; a run of one byte 1028:1 and 32467:1.)"""

ZSTD_WINDOW_LOG = 27
"""128 MiB: what zstd itself allows by default; a header can ask for 2 GiB."""

NAME_CHARS = 1 << 16
"""A longer name, category or stack is cut in memory; a digest keeps cut names apart."""


MOST_EVENTS = 500_000_000
"""What there is of a row (it, two pieces of its thread, two nodes) is numbered in 32 bits."""


class Limits(Struct, frozen=True):
    """The most that is read of one input.

    Attributes:
        text: bytes of JSON text, unpacked.
        ratio: text over compressed bytes, asked from RATIO_FROM_BYTES of text on.
        value: bytes of one event, or of all of the header.
        names: characters of distinct names, categories, stacks and modules together.
        events: events of every phase.

    Raises:
        UsageError: more events are allowed than can be numbered.
    """

    text: int = 16 * GIB
    ratio: int = 300
    value: int = 64 * MIB
    names: int = 512 * MIB
    events: int = 200_000_000

    def __post_init__(self) -> None:
        if self.events > MOST_EVENTS:
            raise UsageError(
                "there are no numbers for so many events",
                do=f"allow at most these: --limit events={MOST_EVENTS}",
            )


def default_limits(environ: Mapping[str, str]) -> Limits:
    """The limits where none are asked for: in CI, where anybody's pull request brings traces, 2 GiB of text."""
    in_ci = environ.get("CI", "").lower() not in ("", "0", "false")
    return Limits(text=2 * GIB) if in_ci else Limits()


def parse_limits(limits: Limits, words: tuple[str, ...]) -> Limits:
    """`text=32GiB`, `events=1000000`, … laid over `limits`.

    Raises:
        UsageError: no limit is called that, its value is no positive whole number with a known unit, or more
            events are asked for than there are numbers for.
    """
    known = Limits.__struct_fields__
    for word in words:
        name, _, amount = word.partition("=")
        if name not in known:
            raise UsageError(f"no limit {name!r}", do=f"choose one of {', '.join(known)}: --limit text=32GiB")
        limits = replace(limits, **{name: _amount(name, amount.strip())})
    return limits


def _amount(name: str, text: str) -> int:
    """A whole number and perhaps a unit of bytes."""
    digits = text.rstrip("abgikmABGIKM ")
    unit = text[len(digits) :].strip().lower()
    if (
        not (digits.isascii() and digits.isdecimal())
        or len(digits) > 18
        or unit not in _UNITS
        or not int(digits)
    ):
        raise UsageError(
            f"--limit cannot read {name}={text!r}", do="give a whole number, or one with a unit: 32GiB"
        )
    return int(digits) * _UNITS[unit]


def over(name: str, what: str, allowed: int) -> LimitInputError:
    """The error about an input that asks for more than a limit allows."""
    size = size_words(allowed) if name in ("text", "value") else f"{allowed:,}".replace(",", " ")
    more = min(2 * allowed, MOST_EVENTS) if name == "events" else 2 * allowed
    do = f"If you trust the file, raise the limit: --limit {name}={size_words(more).replace(' ', '')}"
    return LimitInputError(
        f"{what} (limit {name}: {size}).",
        do=do if more > allowed else "Record fewer steps: no limit is higher.",
    )


def size_words(size: int) -> str:
    """Bytes in the largest binary unit that divides them; other numbers as they are."""
    for unit, each in (("GiB", GIB), ("MiB", MIB), ("KiB", KIB)):
        if not size % each:
            return f"{size // each} {unit}"
    return str(size)
