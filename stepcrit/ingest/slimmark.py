"""The mark that `stepcrit slim` leaves in a header, and what it gives back to the label of the trace."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec.structs import replace

from stepcrit.ingest.dialect import DIALECT_WORDS
from stepcrit.ingest.times import MAX_NS, MIN_NS
from stepcrit.model.slim import SlimMark
from stepcrit.model.trace import Damage, Harm

SLIM_KEY = "stepcritSlim"
SCHEMA = 1

_LABEL_CHARS = 200


class _Written(msgspec.Struct, rename="camel"):
    """The mark as JSON."""

    schema: int
    stacks: bool
    anonymous: bool
    steps_of: int
    first_step: str
    last_step: str
    first_ns: int
    dialect: list[str]
    damage: dict[str, int] = {}
    lost_share: float = 0.0


def mark_text(mark: SlimMark) -> bytes:
    """The mark as it stands in a header."""
    fields: dict[str, Any] = {name: getattr(mark, name) for name in SlimMark.__struct_fields__}
    fields |= {"dialect": list(mark.dialect), "damage": dict(mark.damage)}
    return msgspec.json.encode(_Written(SCHEMA, **fields))


def read_mark(text: bytes | None) -> SlimMark | None:
    """The mark of a header, or None where there is none that can be meant.

    Words that we do not know are not taken over: the mark is text of a file like any other.
    """
    if text is None:
        return None
    try:
        found = msgspec.json.decode(text, type=_Written)
    except (msgspec.DecodeError, RecursionError):
        return None
    if found.schema != SCHEMA or not MIN_NS <= found.first_ns <= MAX_NS:
        return None
    return SlimMark(
        stacks=found.stacks,
        anonymous=found.anonymous,
        steps_of=max(found.steps_of, 0),
        first_step=found.first_step[:_LABEL_CHARS],
        last_step=found.last_step[:_LABEL_CHARS],
        first_ns=found.first_ns,
        dialect=tuple(word for word in found.dialect if word in DIALECT_WORDS),
        damage=tuple((h.name, found.damage[h.name]) for h in Harm if found.damage.get(h.name, 0) > 0),
        lost_share=min(max(found.lost_share, 0.0), 1.0),
    )


def with_marked(found: tuple[Damage, ...], mark: SlimMark | None) -> tuple[Damage, ...]:
    """The damage of a file and of the one that it was slimmed from: what is repaired is not what was sound."""
    if mark is None or not mark.damage:
        return found
    counts = {Harm[name]: count for name, count in mark.damage}
    own = {one.harm: one for one in found}
    return tuple(
        _sum(harm, own.get(harm), counts.get(harm, 0)) for harm in Harm if harm in own or harm in counts
    )


def counted(damage: Iterable[Damage]) -> tuple[tuple[str, int], ...]:
    """Damage without its places, which are of another file."""
    return tuple((one.harm.name, one.count) for one in damage)


def _sum(harm: Harm, own: Damage | None, marked: int) -> Damage:
    return replace(own, count=own.count + marked) if own else Damage(harm, marked)
