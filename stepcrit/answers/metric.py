"""What one metric is: a number of a step that a budget can name, and how it is read."""

from __future__ import annotations

import difflib
from collections.abc import Callable

from msgspec import Struct

from stepcrit.answers.measured import Measured
from stepcrit.errors import quoted
from stepcrit.model.classes import WorkClass
from stepcrit.model.config import Amount, Kind
from stepcrit.model.reading import Reading
from stepcrit.model.section import Unit

CLASSES = {work.label: work for work in WorkClass}
NEAR = 3

Read = Callable[[Measured], Reading]

_FITTING = {
    Unit.NS: (Kind.TIME,),
    Unit.BYTES: (Kind.SIZE, Kind.PLAIN),
    Unit.SHARE: (Kind.SHARE, Kind.PLAIN),
    Unit.COUNT: (Kind.PLAIN,),
}
_WORDS = {Unit.NS: "a time", Unit.BYTES: "a size", Unit.SHARE: "a share", Unit.COUNT: "a count"}


class UnknownMetricError(ValueError):
    """No metric is called so; `do` offers what there is."""

    def __init__(self, what: str, do: str) -> None:
        super().__init__(what)
        self.do = do


class Metric(Struct, frozen=True):
    """One number of a step.

    Attributes:
        name: as it was written.
        unit: of its value.
        read: looks it up in a step.
        is_count: whether the same program gives the same number: compared exactly where it repeats.
        more_is_better: whether it is good when it grows.
    """

    name: str
    unit: Unit
    read: Read
    is_count: bool = False
    more_is_better: bool = False

    def fits(self, amount: Amount) -> bool:
        """Whether an amount can be a limit of it; a bare 0 needs no unit."""
        return amount.kind in _FITTING[self.unit] or (amount.kind == Kind.PLAIN and not amount.number)

    @property
    def takes(self) -> str:
        """What a limit of it is, in words."""
        return _WORDS[self.unit]


def one_of(word: str, known: tuple[str, ...], what: str) -> str:
    """A word that must be one of ours.

    Raises:
        UnknownMetricError: it is not.
    """
    if word in known:
        return word
    near = difflib.get_close_matches(word, known, NEAR)
    hint = f"did you mean {', '.join(near)}?" if near else f"there are {', '.join(dict.fromkeys(known))}"
    raise UnknownMetricError(f"{quoted(word)} is no {what}", hint)
