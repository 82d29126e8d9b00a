"""What `stepcrit slim` did to a trace: told in the trace's header, so that nothing it left out passes for absent."""

from __future__ import annotations

from msgspec import Struct


class SlimMark(Struct, frozen=True):
    """The mark of a slimmed trace.

    Attributes:
        stacks: Python frames and call stacks were kept.
        anonymous: the user's own names of ranges were replaced too.
        steps_of: how many steps the trace had before any were left out.
        first_step, last_step: labels of the steps that were asked for.
        first_ns: time 0 of the whole trace, in ns as the file counts (without its base).
        dialect: words that date the writer; what they were read from may be gone.
        damage: what was wrong with the bytes of the trace it was made of: (name of a Harm, count).
        lost_share: the part of them that nothing could be made of, 0..1.
    """

    stacks: bool
    anonymous: bool
    steps_of: int
    first_step: str
    last_step: str
    first_ns: int
    dialect: tuple[str, ...]
    damage: tuple[tuple[str, int], ...] = ()
    lost_share: float = 0.0

    @property
    def level(self) -> str:
        """The kind of slimming, in one word: traces of different levels differ in what is left out."""
        words = (["stacks"] if self.stacks else []) + (["anonymous"] if self.anonymous else [])
        return "+".join(words) or "names"
