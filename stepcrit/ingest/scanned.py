"""The compiled scanner's columns are added to the plain reader's: same words, same counts, same order.

What the scanner does not know for sure it gives back, a piece of text at a time, and the plain reader decodes that
piece. Words that it meets are numbered by it and told here once, as they stand in the file; what a word is (escapes,
cuts, limits) the plain reader's own interners say. Columns grow in the scanner until the plain reader has rows to
add, or all is read: moving them a piece of text at a time took as long as a third of scanning.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from stepcrit import kernels
from stepcrit.ingest.arguments import SAYS_NOTHING, unusable
from stepcrit.ingest.columns import Interner, label
from stepcrit.ingest.decoded import Event, Label, RowDecoder
from stepcrit.ingest.dialect import DATED_TEXT
from stepcrit.ingest.limits import Limits
from stepcrit.ingest.rows import RowCollector
from stepcrit.model.arrays import NONE

if TYPE_CHECKING:
    from stepcrit.kernels import _scan

_MOST_REMEMBERED = 64 << 20
"""Bytes of words that a scanner may remember; then it starts anew."""

_LOST_LIST = -2
"""What the scanner counts: a word that should be a list, and is none."""

_LOSSES = (
    "correlation", "correlation_id", "External id", "external id", "Sequence number", "Input Dims", "Input type",
)  # fmt: skip
_LABEL: msgspec.json.Decoder[Label] = msgspec.json.Decoder(Label)
_TYPES: dict[str, type[np.generic]] = {"begins": np.bool_, "is_start": np.int8} | dict.fromkeys(
    ("cat", "name", "track", "stack", "module", "shapes", "dtypes"), np.int32
)


class Table(IntEnum):
    """The scanner's tables of words."""

    CATS, NAMES, TRACKS, STACKS, MODULES, SHAPES, DTYPES, LABELS = range(8)


def readers(limits: Limits) -> tuple[RowDecoder, RowCollector]:
    """What decodes and collects events here: the plain reader, or the scanner in front of it.

    Raises:
        UsageError: the environment asks for kernels that there are not.
    """
    if kernels.chosen() == kernels.PLAIN:
        plain = RowDecoder()
        return plain, RowCollector(plain, limits.names)
    from stepcrit.kernels import _scan  # noqa: PLC0415 - where it is built only

    scanning = ScanningDecoder(_scan.Scanner)
    return scanning, ScanCollector(scanning, limits.names)


class Scanned(Collection[Event]):
    """The events of some text, whose columns wait in the scanner; they are decoded one by one only for who asks.

    Attributes:
        text: the text, of which `start` to `end` was scanned.
        columns: what is of this text alone, by name.
        counts: what else was met.
    """

    def __init__(self, text: bytes, bounds: tuple[int, int], found: dict[str, bytes | int]) -> None:
        self.text = text
        self.start, self.end = bounds
        self.columns = {name: value for name, value in found.items() if isinstance(value, bytes)}
        self.counts = {name: value for name, value in found.items() if isinstance(value, int)}

    def __len__(self) -> int:
        return self.counts["count"]

    def __iter__(self) -> Iterator[Event]:
        return iter(RowDecoder().many(self.text, self.start, self.end))

    def __contains__(self, event: object) -> bool:
        return event in list(self)


class ScanningDecoder(RowDecoder):
    """A decoder that scans what is written as usual, and decodes the rest."""

    def __init__(self, new_scanner: Callable[[], _scan.Scanner]) -> None:
        super().__init__()
        self._new_scanner = new_scanner
        self.scanner = new_scanner()
        self._full: list[dict[str, memoryview]] = []
        self._number_of: Callable[[int, bytes], int] = lambda _table, _word: 0

    def number_words(self, number_of: Callable[[int, bytes], int]) -> None:
        """Have the words of columns numbered by who collects them."""
        self._number_of = number_of

    def many(self, text: bytes, start: int, end: int) -> Collection[Event]:
        """Scan a part of a text, or decode it as the plain reader does."""
        if self.scanner.size() > _MOST_REMEMBERED:
            self._full.append(self.scanner.take())
            self.scanner = self._new_scanner()
        found = self.scanner.scan(text, start, end, self._number_of)
        if found is None:
            return super().many(text, start, end)
        scanned = Scanned(text, (start, end), found)
        self.dated.update(word for bit, word in enumerate(DATED_TEXT) if scanned.counts["dated"] >> bit & 1)
        return scanned

    def columns(self) -> Iterator[dict[str, memoryview]]:
        """All columns that were kept and not given yet, in the order of the file."""
        full, self._full = self._full, []
        yield from full
        yield self.scanner.take()


class ScanCollector(RowCollector):
    """A collector that takes scanned events as well."""

    def __init__(self, decoder: ScanningDecoder, name_chars: int) -> None:
        super().__init__(decoder, name_chars)
        self._decoder = decoder
        self._numbering: dict[int, Callable[[bytes], int]] = {
            Table.CATS: lambda word: self.cats[_LABEL.decode(word)],
            Table.NAMES: lambda word: self.names[_LABEL.decode(word)],
            Table.STACKS: lambda word: self.stacks[_LABEL.decode(word)] - 1,
            Table.MODULES: lambda word: self.modules[_LABEL.decode(word)] - 1,
            Table.SHAPES: lambda word: _list_number(self.shapes, word),
            Table.DTYPES: lambda word: _list_number(self.dtypes, word),
            Table.TRACKS: lambda word: self.tracks[_labels(word)],
            Table.LABELS: self._keep_label,
        }
        decoder.number_words(lambda table, word: self._numbering[table](word))

    def take(self, events: Collection[Event]) -> None:
        """Add the next events of the file."""
        if not isinstance(events, Scanned):
            self.finish()
            super().take(events)
            return
        self.phases.update(_phases(events))
        self._count_losses(events)
        self._keep_arguments(events)
        self._number_flows(events)
        self._decoder.scanner.keep(self.count)
        self.count += len(events)

    def finish(self) -> None:
        """Add the columns that wait in the scanner."""
        for columns in self._decoder.columns():
            for table in ("rows", "ends", "flows", "memory"):
                found = {
                    name.removeprefix(f"{table}."): _array(name, column)
                    for name, column in columns.items()
                    if name.startswith(f"{table}.")
                }
                if len(found["order"]):
                    getattr(self, table).append(**found)

    def _count_losses(self, events: Scanned) -> None:
        """Count what could not be used as it is."""
        losses = _column(events, "lost").tolist()
        self.dropped.update(
            {unusable(name): lost for name, lost in zip(_LOSSES, losses, strict=True) if lost}
        )
        if events.counts["negative"]:
            self.dropped["negative duration clipped to 0"] += events.counts["negative"]

    def _keep_arguments(self, events: Scanned) -> None:
        """Keep all arguments of the rows that need them."""
        order, start, end = (_column(events, f"kept.{name}").tolist() for name in ("order", "from", "to"))
        for row, first, last in zip(order, start, end, strict=True):
            self.arguments[row + self.count] = self._reader.all_of(msgspec.Raw(events.text[first:last]))

    def _number_flows(self, events: Scanned) -> None:
        """Number the flow arrows whose ids are not small numbers."""
        at, start, end = (_column(events, f"odd_ids.{name}").tolist() for name in ("at", "from", "to"))
        for place, first, last in zip(at, start, end, strict=True):
            number = self._flow_id(_LABEL.decode(events.text[first:last]) if first >= 0 else None)
            self._decoder.scanner.set_flow_id(place, number)

    def _keep_label(self, word: bytes) -> int:
        """Keep the name of a thread or a process."""
        pid, tid, text, _ = word[1:].split(b"\0")
        if word[:1] == b"t":
            track = label(_LABEL.decode(pid)), label(_LABEL.decode(tid))
            self.thread_names.setdefault(track, set()).add(text)
        else:
            self.process_names.setdefault(label(_LABEL.decode(pid)), set()).add(text)
        return 0


def _labels(word: bytes) -> tuple[Label, Label]:
    """The pid and tid of a track."""
    pid, tid, _ = word.split(b"\0")
    return _LABEL.decode(pid), _LABEL.decode(tid)


def _list_number(lists: Interner, word: bytes) -> int:
    """The number of a list by its text."""
    number = lists[word] - 1
    return _LOST_LIST if number == NONE and word.strip() not in SAYS_NOTHING else number


def _column(events: Scanned, name: str) -> Any:
    """A column of a scan."""
    return _array(name, events.columns[name])


def _array(name: str, column: bytes | memoryview) -> Any:
    """A column by its name: as it lies in memory."""
    return np.frombuffer(column, _TYPES.get(name.partition(".")[2], np.int64))


def _phases(events: Scanned) -> dict[str, int]:
    """Events by phase."""
    counts = _column(events, "phases")
    return {chr(code) if code else "": int(counts[code]) for code in np.flatnonzero(counts).tolist()}
