"""What every answer is made of: sentences, bars and tables of raw values, with their units beside them.

Nothing here is rounded, shortened or escaped: that is `report`'s work, and its alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from functools import cached_property
from typing import Any, TypeAlias

from msgspec import Struct


class Unit(StrEnum):
    """How a value is to be read. Integers stay integers until a renderer shows them."""

    TEXT = "text"  # our own words
    NAME = "name"  # a name from the trace: untrusted, possibly very long
    NS = "ns"
    SAVED_NS = "saved_ns"  # shown with its sign: what the step would gain
    COUNT = "count"
    SHARE = "share"  # a ratio 0..1
    BYTES = "bytes"
    MIXED = "mixed"  # of a column: each cell is a Value with a unit of its own


class Value(Struct, frozen=True):
    """A value inside a sentence."""

    raw: str | int | float | None
    unit: Unit


class Sentence(Struct, frozen=True):
    """A template with `{}` for each value: "device work ends {} later", values (Value(12, NS),)."""

    template: str
    values: tuple[Value, ...] = ()


Cell: TypeAlias = str | int | float | Value | None
"""None is "not recorded" or "not applicable"; the column or a note says which."""


class Column(Struct, frozen=True):
    """A table column: `key` carries the unit in machine formats, `title` is for people.

    A `spare` column is the first to go on a terminal that is not wide enough for all.
    """

    key: str
    title: str
    unit: Unit
    spare: bool = False


class Section(Struct, frozen=True):
    """A table, or (without columns) a paragraph.

    Attributes:
        title: heading, or "".
        columns: their number is every row's length.
        rows: raw cells.
        total: a last row that sums the others, or None: only columns that may be added have a cell.
        notes: sentences under the table, or the paragraph itself.
        claim: the claim label of the numbers (observed, schedule, bound, modelled, estimate), or "".
        limit: how many rows a terminal shows; None for all. Machine formats always show all.
        topic: the `stepcrit explain` topic that defines the numbers, or "".
    """

    title: str
    columns: tuple[Column, ...] = ()
    rows: tuple[tuple[Cell, ...], ...] = ()
    total: tuple[Cell, ...] | None = None
    notes: tuple[Sentence, ...] = ()
    claim: str = ""
    limit: int | None = None
    topic: str = ""


class Bar(Struct, frozen=True):
    """Parts of one whole, in ns, drawn as one line: they add up to `whole_ns` exactly."""

    title: str
    parts: tuple[tuple[str, int], ...]
    whole_ns: int
    claim: str = "observed"
    topic: str = ""


Block: TypeAlias = Section | Bar


class Finding(Struct, frozen=True):
    """Something the reader should know about the input: a stable code, a sentence, how often."""

    code: str
    what: Sentence
    count: int = 1


class Input(Struct, frozen=True):
    """One input, as the JSON envelope names it."""

    name: str
    sha256: str
    size_bytes: int


class Deferred(Mapping[str, Any]):
    """A mapping that is made when it is first looked into: a screen shows a part of the data, and needs none of it."""

    def __init__(self, make: Callable[[], dict[str, Any]]) -> None:
        self._make = make

    @cached_property
    def made(self) -> dict[str, Any]:
        """The mapping itself."""
        return self._make()

    def __getitem__(self, key: str) -> Any:
        return self.made[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.made)

    def __len__(self) -> int:
        return len(self.made)

    def __repr__(self) -> str:
        return repr(self.made)


class Document(Struct, frozen=True):
    """One verb's whole answer.

    Attributes:
        verb: "analyze", "critical", ...
        inputs: what it was computed from.
        blocks: for people, in reading order.
        data: for machines: JSON-able, integers with the unit in the key, shares 0..1, never NaN.
        findings: what is odd about the input.
        unknown: dotted path of a null in `data` -> why it could not be known.
    """

    verb: str
    inputs: tuple[Input, ...]
    blocks: tuple[Block, ...]
    data: Mapping[str, Any]
    findings: tuple[Finding, ...] = ()
    unknown: Mapping[str, str] | None = None
