"""The compiled scanner's columns are added to the plain reader's: same words, same counts, same order.

What the scanner does not know for sure it gives back, a piece of text at a time, and the plain reader decodes that
piece. Words that it meets are numbered by it and told here once, as they stand in the file; what a word is (escapes,
cuts, limits) the plain reader's own interners say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from stepcrit import kernels
from stepcrit.ingest.arguments import SAYS_NOTHING, unusable
from stepcrit.ingest.columns import ColumnStore, label
from stepcrit.ingest.dialect import DATED_TEXT
from stepcrit.ingest.limits import Limits
from stepcrit.ingest.rows import Event, Label, RowCollector, RowDecoder
from stepcrit.model.arrays import NONE, Int32Array

if TYPE_CHECKING:
    from stepcrit.kernels import _scan

_MOST_REMEMBERED = 64 << 20
"""Bytes of words that a scanner may remember; then it starts anew."""

_UNKNOWN = -2
_LOSSES = ("correlation", "correlation_id", "External id", "external id", "Sequence number")
_LABEL: msgspec.json.Decoder[Label] = msgspec.json.Decoder(Label)
_TYPES: dict[str, type[np.generic]] = {"begins": np.bool_, "is_start": np.int8} | dict.fromkeys(
    ("cat", "name", "track", "stack", "module", "shapes", "dtypes"), np.int32
)


class Table(IntEnum):
    """The scanner's tables of words."""

    CATS, NAMES, TRACKS, STACKS, MODULES, SHAPES, DTYPES, LABELS = range(8)


_TABLES = {
    "cat": Table.CATS, "name": Table.NAMES, "track": Table.TRACKS, "stack": Table.STACKS, "module": Table.MODULES,
    "shapes": Table.SHAPES, "dtypes": Table.DTYPES,
}  # fmt: skip


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
    """The events of some text, as columns; they are decoded one by one only for who asks.

    Attributes:
        text: the text, a JSON list.
        scanner: what knows its words.
        columns: by name.
        counts: what else was met.
    """

    def __init__(self, text: bytes, scanner: _scan.Scanner, found: dict[str, bytes | int]) -> None:
        self.text = text
        self.scanner = scanner
        self.columns = {name: value for name, value in found.items() if isinstance(value, bytes)}
        self.counts = {name: value for name, value in found.items() if isinstance(value, int)}

    def __len__(self) -> int:
        return self.counts["count"]

    def __iter__(self) -> Iterator[Event]:
        return iter(msgspec.json.decode(self.text, type=list[Event]))

    def __contains__(self, event: object) -> bool:
        return event in list(self)


class ScanningDecoder(RowDecoder):
    """A decoder that scans what is written as usual, and decodes the rest.

    Attributes:
        scanner: what scans, and knows the words met.
    """

    def __init__(self, new_scanner: Callable[[], _scan.Scanner]) -> None:
        super().__init__()
        self._new_scanner = new_scanner
        self.scanner = new_scanner()

    def many(self, text: bytes) -> Collection[Event]:
        """Scan a list of events, or decode it as the plain reader does."""
        if self.scanner.size() > _MOST_REMEMBERED:
            self.scanner = self._new_scanner()
        found = self.scanner.scan(text, 1, len(text) - 1)
        if found is None:
            return super().many(text)
        scanned = Scanned(text, self.scanner, found)
        self.dated.update(word for bit, word in enumerate(DATED_TEXT) if scanned.counts["dated"] >> bit & 1)
        return scanned


class ScanCollector(RowCollector):
    """A collector that takes scanned events as well."""

    def __init__(self, decoder: ScanningDecoder, name_chars: int) -> None:
        super().__init__(decoder, name_chars)
        self._meet(decoder.scanner)
        self._interners = {
            Table.CATS: self._label_of(self.cats),
            Table.NAMES: self._label_of(self.names),
            Table.STACKS: self._label_of(self.stacks, 1),
            Table.MODULES: self._label_of(self.modules, 1),
            Table.SHAPES: lambda word: self.shapes[word] - 1,
            Table.DTYPES: lambda word: self.dtypes[word] - 1,
            Table.TRACKS: lambda word: self.tracks[_labels(word)],
            Table.LABELS: self._keep_label,
        }

    def take(self, events: Collection[Event]) -> None:
        """Add the next events of the file."""
        if not isinstance(events, Scanned):
            super().take(events)
            return
        if events.scanner is not self._scanner:
            self._meet(events.scanner)
        self.phases.update(_phases(events))
        self._take_scanned_rows(events)
        self._append(self.ends, "ends", events)
        self._take_scanned_flows(events)
        self._append(self.memory, "memory", events)
        for name, table in (("memory_cats", Table.CATS), ("labels", Table.LABELS)):
            if events.columns[name]:
                self._numbers(table, np.frombuffer(events.columns[name], np.int32))
        self.count += len(events)

    def _meet(self, scanner: _scan.Scanner) -> None:
        """Know none of a scanner's words."""
        self._scanner = scanner
        self._codes = {table: np.full(1024, _UNKNOWN, np.int32) for table in Table}

    def _take_scanned_rows(self, events: Scanned) -> None:
        """Rows with a duration."""
        if not events.columns["rows.order"]:
            return
        self._append(self.rows, "rows", events)
        for argument, lost in zip(
            _LOSSES, np.frombuffer(events.columns["lost"], np.int64).tolist(), strict=True
        ):
            if lost:
                self.dropped[unusable(argument)] += lost
        if events.counts["negative"]:
            self.dropped["negative duration clipped to 0"] += events.counts["negative"]
        order, start, end = (_column(events, f"kept.{name}").tolist() for name in ("order", "from", "to"))
        for row, first, last in zip(order, start, end, strict=True):
            self.arguments[row + self.count] = self._reader.all_of(msgspec.Raw(events.text[first:last]))

    def _take_scanned_flows(self, events: Scanned) -> None:
        """Flow arrows."""
        at = _column(events, "odd_ids.at").tolist()
        if at:
            ids = _column(events, "flows.id").copy()
            starts, ends = _column(events, "odd_ids.from").tolist(), _column(events, "odd_ids.to").tolist()
            for place, start, end in zip(at, starts, ends, strict=True):
                ids[place] = self._flow_id(_LABEL.decode(events.text[start:end]) if start >= 0 else None)
            events.columns["flows.id"] = ids.tobytes()
        self._append(self.flows, "flows", events)

    def _append(self, store: ColumnStore, prefix: str, events: Scanned) -> None:
        """Add the columns of one table."""
        if not events.columns[f"{prefix}.order"]:
            return
        columns = {}
        for full in events.columns:
            table, _, name = full.partition(".")
            if table == prefix:
                values = _column(events, full)
                if name in _TABLES:
                    values = self._numbers(_TABLES[name], values)
                columns[name] = values + self.count if name == "order" else values
        store.append(**columns)

    def _numbers(self, table: Table, words: Int32Array) -> Int32Array:
        """The interners' numbers of a scanner's words."""
        known = self._codes[table]
        largest = int(words.max())
        if largest >= len(known):
            more = np.full(max(len(known), largest + 1 - len(known)), _UNKNOWN, np.int32)
            self._codes[table] = known = np.concatenate((known, more))
        codes = known[words]
        unknown = codes == _UNKNOWN
        if unknown.any():
            for word in np.unique(words[unknown]).tolist():
                known[word] = self._interners[table](self._scanner.word(table, word))
            codes = known[words]
        if table in {Table.SHAPES, Table.DTYPES}:
            self._count_lost(table, words[(codes == NONE) & (words != 0)])
        return codes

    def _count_lost(self, table: Table, words: Int32Array) -> None:
        """Count lists that are none."""
        for word, count in Counter(words.tolist()).items():
            if self._scanner.word(table, word).strip() not in SAYS_NOTHING:
                self.dropped[unusable("Input Dims" if table == Table.SHAPES else "Input type")] += count

    def _keep_label(self, word: bytes) -> int:
        """Keep the name of a thread or a process."""
        pid, tid, text, _ = word[1:].split(b"\0")
        if word[:1] == b"t":
            track = label(_LABEL.decode(pid)), label(_LABEL.decode(tid))
            self.thread_names.setdefault(track, set()).add(text)
        else:
            self.process_names.setdefault(label(_LABEL.decode(pid)), set()).add(text)
        return 0

    @staticmethod
    def _label_of(interner: dict[object, int], less: int = 0) -> Callable[[bytes], int]:
        """What gives the number of a string or a number by its text."""
        return lambda word: interner[_LABEL.decode(word)] - less


def _labels(word: bytes) -> tuple[Label, Label]:
    """The pid and tid of a track."""
    pid, tid, _ = word.split(b"\0")
    return _LABEL.decode(pid), _LABEL.decode(tid)


def _column(events: Scanned, name: str) -> Any:
    """A column of a scan."""
    return np.frombuffer(events.columns[name], _TYPES.get(name.partition(".")[2], np.int64))


def _phases(events: Scanned) -> dict[str, int]:
    """Events by phase."""
    counts = np.frombuffer(events.columns["phases"], np.int64)
    return {chr(code) if code else "": int(counts[code]) for code in np.flatnonzero(counts).tolist()}
