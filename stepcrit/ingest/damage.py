"""What was wrong with an input's bytes: counted by kind, with the place where each kind first stood."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from stepcrit.errors import BrokenInputError
from stepcrit.model.trace import Damage, Harm

EXCERPT_BYTES = 60


class Place(Struct, frozen=True):
    """A place in the JSON text.

    Attributes:
        byte: offset in the text.
        line: number of its line, from 1.
        excerpt: some of the text around it, as it stands.
    """

    byte: int
    line: int
    excerpt: str


class DamageLog:
    """Collects what was repaired and what was lost of one input.

    Attributes:
        lost_bytes: text that no event came of.
        lost_input_bytes: compressed bytes that could not be unpacked.
        error: what a reader that repairs nothing would have said, or None.
    """

    def __init__(self) -> None:
        self.lost_bytes = 0
        self.lost_input_bytes = 0
        self.error: BrokenInputError | None = None
        self._by_harm: dict[Harm, Damage] = {}

    def add(
        self, harm: Harm, place_of: Callable[[int], Place] | None = None, position: int = 0, *, lost: int = 0
    ) -> None:
        """Count one case at a position of a window; `lost` bytes of text went with it.

        Only the first case of a harm is asked for its place: finding its line takes time.
        """
        self.lost_bytes += lost
        known = self._by_harm.get(harm)
        if known:
            self._by_harm[harm] = replace(known, count=known.count + 1)
        elif place_of:
            place = place_of(position)
            self._by_harm[harm] = Damage(harm, 1, place.byte, place.line, place.excerpt)
        else:
            self._by_harm[harm] = Damage(harm, 1)

    def blame(self, error: BrokenInputError) -> None:
        """Keep the first error: it is raised when too little is left."""
        self.error = self.error or error

    def merge(self, other: DamageLog) -> None:
        """Take over what another log has that knows no places."""
        if other.error:
            self.blame(other.error)
        for each in other.found:
            for _ in range(each.count):
                self.add(each.harm)
        self.lost_bytes += other.lost_bytes
        self.lost_input_bytes += other.lost_input_bytes

    def has(self, harm: Harm) -> bool:
        """Whether this has been met."""
        return harm in self._by_harm

    @property
    def found(self) -> tuple[Damage, ...]:
        """Every kind met, in the order of `Harm`."""
        return tuple(self._by_harm[harm] for harm in Harm if harm in self._by_harm)


def excerpt(text: bytes, position: int) -> str:
    """Up to EXCERPT_BYTES of text around a position; what is no UTF-8 becomes U+FFFD."""
    start = max(position - EXCERPT_BYTES // 3, 0)
    return text[start : start + EXCERPT_BYTES].decode("utf-8", "replace")
