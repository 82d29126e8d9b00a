"""Events become columns a chunk at a time; no event outlives its chunk.

msgspec decodes a chunk into typed structs (arguments included) in a third of the time that
`json.loads` takes to make dicts of it (2.8 to 3.9 times faster on traces of 35 to 56 MB), because
it skips what nobody asks for. Times and arguments stay text at first: times because they must not
pass through a float, arguments because a second, narrower decoding serves most rows and the few
that need all of them are decoded one by one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from typing import Any, TypeAlias

import msgspec
import numpy as np

from stepcrit.ingest.arguments import (
    NO_ARGUMENTS,
    NO_TEXT,
    SAYS_NOTHING,
    UNKNOWN_BYTES,
    ArgumentReader,
    Arguments,
    Number,
    unusable,
    written_list,
)
from stepcrit.ingest.columns import ColumnStore, Interner, Room, int64_column, label, name_label
from stepcrit.ingest.dialect import DATED_TEXT
from stepcrit.ingest.split import MAX_DEPTH, check_json, without_depth
from stepcrit.ingest.times import MAX_DURATION_NS, MAX_NS, MIN_NS, column_ns
from stepcrit.model.arrays import NONE, BoolArray, Int32Array, Int64Array

Label: TypeAlias = str | int | float | None

_NO_TIME = msgspec.Raw(b"null")
_NO_DURATION = msgspec.Raw(b"0")


class Event(msgspec.Struct, gc=False):
    """What is read of one trace event; unknown keys are skipped."""

    ph: str = ""
    cat: Label = ""
    name: Label = ""
    pid: Label = ""
    tid: Label = ""
    ts: msgspec.Raw = _NO_TIME
    dur: msgspec.Raw = _NO_DURATION
    id: Label = None
    args: msgspec.Raw = NO_ARGUMENTS
    attr: msgspec.Raw = NO_ARGUMENTS  # IBM AIU's name for args


class RowDecoder:
    """Turns event text into `Event`s, and counts what is none.

    Attributes:
        dropped: what could not be read, by reason.
        dated: texts met that date the writer (keys of dialect.DATED_TEXT).
    """

    def __init__(self) -> None:
        self.dropped: Counter[str] = Counter()
        self.dated: set[bytes] = set()
        self._many = msgspec.json.Decoder(list[Event])
        self._one = msgspec.json.Decoder(Event)

    def many(self, text: bytes, start: int, end: int) -> Collection[Event]:
        """Decode a part of a text, which is the inside of a list of events.

        Raises:
            msgspec.DecodeError: it is not JSON, or an element is no event.
            RecursionError: an element is nested too deeply.
        """
        text = b"".join((b"[", memoryview(text)[start:end], b"]"))
        events = self._many.decode(text)
        self._note_dated(text)
        return events

    def one(self, text: bytes) -> Event:
        """Decode one element, or stand in an event without a phase for what is none.

        Raises:
            msgspec.DecodeError: `text` is not JSON.
        """
        try:
            event = self._one.decode(text)
            self._note_dated(text)
        except RecursionError:
            self.dropped["arguments nested too deeply, cut"] += 1
            return self.one(without_depth(text, MAX_DEPTH))
        except msgspec.ValidationError:
            # It says so at the first wrong type, before it has looked at what follows.
            check_json(text)
            is_object = text[:1] == b"{"
            self.dropped["fields of an unusable type" if is_object else "not a JSON object"] += 1
            return Event()
        return event

    def _note_dated(self, text: bytes) -> None:
        """Note what dates the writer."""
        self.dated.update(word for word in DATED_TEXT if word not in self.dated and word in text)


class RowCollector:
    """Sorts events by phase into columns.

    Attributes:
        count: events seen, of every phase.
        phases: events by phase.
        dropped, dated: the decoder's, added to.
        rows, ends, flows, memory: columns in file order, times in ns as written.
        cats, names, tracks, stacks, modules, shapes, dtypes: what the codes in the columns mean.
        arguments: all arguments of the rows that need them, by position in the file.
        thread_names, process_names: JSON texts of the metadata, by (pid, tid) and by pid.
    """

    def __init__(self, decoder: RowDecoder, name_chars: int) -> None:
        room = Room(name_chars)
        self.count = 0
        self.phases: Counter[str] = Counter()
        self.dropped, self.dated = decoder.dropped, decoder.dated
        self.rows, self.ends, self.flows, self.memory = (ColumnStore() for _ in range(4))
        self.cats, self.names = Interner(label, "", room=room), Interner(name_label, room=room)
        self.stacks, self.modules = Interner(label, "", room=room), Interner(label, "", room=room)
        self.shapes, self.dtypes = (
            Interner(written_list, "", room=room),
            Interner(written_list, "", room=room),
        )
        self.flow_ids = Interner(label)
        self.tracks = Interner(lambda track: (label(track[0]), label(track[1])))
        self.arguments: dict[int, dict[str, Any]] = {}
        self.thread_names: dict[tuple[str, str], set[bytes]] = {}
        self.process_names: dict[str, set[bytes]] = {}
        self._reader = ArgumentReader(self.dropped)
        self._takers: tuple[tuple[str, Callable[[list[Event], Int64Array], None]], ...] = (
            ("XB", self._take_rows),
            ("E", self._take_ends),
            ("sf", self._take_flows),
            ("iIR", self._take_memory),
            ("M", self._take_metadata),
        )

    def take(self, events: Collection[Event]) -> None:
        """Add the next events of the file."""
        found = list(events)
        phases = [event.ph for event in found]
        present = Counter(phases)
        self.phases.update(present)
        for letters, taker in self._takers:
            wanted = {letter for letter in letters if letter in present}
            if wanted:
                places = [place for place, phase in enumerate(phases) if phase in wanted]
                taker([found[place] for place in places], np.array(places, np.int64) + self.count)
        self.count += len(events)

    def finish(self) -> None:
        """Have all that was taken in the columns."""

    def _take_rows(self, events: list[Event], order: Int64Array) -> None:
        """Rows with a duration: X, and B until its E is found."""
        start, has_start = self._times(events)
        duration, has_duration = column_ns([event.dur for event in events])
        self._count("duration is no number", ~has_duration & has_start)
        self._count("negative duration clipped to 0", has_start & (duration < 0))
        self._count("duration over 73 years cut", has_start & (duration > MAX_DURATION_NS))
        kept = has_start & has_duration
        if not kept.all():
            events = [event for event, keep in zip(events, kept, strict=True) if keep]
            start, duration, order = start[kept], duration[kept], order[kept]
        if events:
            self._add_rows(events, order, start, duration.clip(0, MAX_DURATION_NS))

    def _add_rows(
        self, events: list[Event], order: Int64Array, start: Int64Array, duration: Int64Array
    ) -> None:
        """Append readable rows to the columns."""
        texts = [event.args if event.args is not NO_ARGUMENTS else event.attr for event in events]
        args = self._reader.many(texts)
        self.rows.append(
            order=order,
            start=start,
            duration=duration,
            begins=np.array([event.ph == "B" for event in events], np.bool_),
            cat=self.cats.codes([event.cat for event in events]),
            name=self.names.codes([event.name for event in events]),
            track=self._tracks(events),
            stack=self.stacks.codes([arg.stack for arg in args]) - 1,
            module=self.modules.codes([arg.module for arg in args]) - 1,
            shapes=self._list_codes(
                self.shapes,
                "Input Dims",
                _texts([arg.shapes for arg in args], [arg.old_shapes for arg in args]),
            ),
            dtypes=self._list_codes(self.dtypes, "Input type", _texts([arg.dtypes for arg in args])),
            **self._argument_columns(args),
        )
        for place in [
            place
            for place, (event, arg) in enumerate(zip(events, args, strict=True))
            if arg.collective or arg.graph > 0 or event.cat == "cuda_sync"
        ]:
            self.arguments[int(order[place])] = self._reader.all_of(texts[place])

    def _take_ends(self, events: list[Event], order: Int64Array) -> None:
        """Ends of B."""
        time, usable = self._times(events)
        self.ends.append(order=order[usable], time=time[usable], track=self._tracks(events)[usable])

    def _take_flows(self, events: list[Event], order: Int64Array) -> None:
        """Flow arrows."""
        time, usable = self._times(events)
        self.flows.append(
            order=order[usable],
            time=time[usable],
            is_start=np.array([event.ph == "s" for event in events], np.int8)[usable],
            cat=self.cats.codes([event.cat for event in events])[usable],
            id=np.array([self._flow_id(event.id) for event in events], np.int64)[usable],
            track=self._tracks(events)[usable],
        )

    def _take_memory(self, events: list[Event], order: Int64Array) -> None:
        """Allocator events among the instants; the others are only counted by phase."""
        places = [place for place, event in enumerate(events) if event.name == "[memory]"]
        if not places:
            return
        events = [events[place] for place in places]
        time, usable = self._times(events)
        args = self._reader.memory([event.args for event in events])
        has_bytes = np.array([arg.nbytes != UNKNOWN_BYTES for arg in args], np.bool_)
        self._count("memory event without its bytes", usable & ~has_bytes)
        usable &= has_bytes
        self.memory.append(
            order=order[places][usable],
            time=time[usable],
            nbytes=int64_column([arg.nbytes for arg in args])[usable],
            allocated=int64_column([arg.allocated for arg in args])[usable],
            reserved=int64_column([arg.reserved for arg in args])[usable],
            device_type=int64_column([arg.device_type for arg in args])[usable],
            device=int64_column([arg.device for arg in args])[usable],
        )
        # So that their category counts as one of torch.profiler's.
        self.cats.codes([event.cat for event in events])

    def _take_metadata(self, events: list[Event], _order: Int64Array) -> None:
        """Names of threads and processes; a file may repeat them 300 000 times."""
        for event in events:
            if event.name == "thread_name":
                track = label(event.pid), label(event.tid)
                self.thread_names.setdefault(track, set()).add(bytes(event.args))
            elif event.name == "process_name":
                self.process_names.setdefault(label(event.pid), set()).add(bytes(event.args))

    def _times(self, events: list[Event]) -> tuple[Int64Array, BoolArray]:
        """The events' times, and which of them are usable."""
        time, is_number = column_ns([event.ts for event in events])
        in_range = (time >= MIN_NS) & (time <= MAX_NS)
        self._count("time is missing or no number", ~is_number)
        self._count("time is out of range", ~in_range)
        return time, is_number & in_range

    def _tracks(self, events: list[Event]) -> Int32Array:
        """The tracks (pid, tid) of the events."""
        pids, tids = [event.pid for event in events], [event.tid for event in events]
        return self.tracks.codes(zip(pids, tids, strict=True))

    def _flow_id(self, value: Label) -> int:
        """A flow's id as an int64: 64-bit ids wrap, text that is no number is numbered from below."""
        try:
            number = int(value)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            return -(2**62) - self.flow_ids[value]
        return (number + 2**63) % 2**64 - 2**63

    def _count(self, reason: str, mask: BoolArray) -> None:
        """Count what could not be used as it is."""
        if mask.any():
            self.dropped[reason] += int(mask.sum())

    def _argument_columns(self, args: list[Arguments]) -> dict[str, Int64Array]:
        """The arguments that every row has a column for."""
        external = int64_column([arg.external_id for arg in args], self._lost("External id"))
        old_external = int64_column([arg.old_external_id for arg in args], self._lost("external id"))
        correlation = int64_column([arg.correlation for arg in args], self._lost("correlation"))
        npu_correlation = int64_column([arg.npu_correlation for arg in args], self._lost("correlation_id"))
        return {
            # CUPTI and roctracer call the correlation that they do not know 0.
            "correlation": np.where(correlation > 0, correlation, npu_correlation),
            "external_id": np.where(external == NONE, old_external, external),
            "python_id": int64_column([arg.python_id for arg in args]),
            "seq": int64_column([arg.seq for arg in args], self._lost("Sequence number")),
            "nbytes": int64_column(
                _first_there([a.nbytes for a in args], [a.old_nbytes for a in args], [a.size for a in args])
            ),
            # On host calls a stream is a HIP handle in hexadecimal: no loss.
            "stream": int64_column(  # XPU has no streams but queues
                _first_there(
                    [a.stream for a in args], [a.sycl_queue for a in args], [a.l0_queue for a in args]
                )
            ),
            "device": int64_column([arg.device for arg in args]),
        }

    def _list_codes(self, interner: Interner, argument: str, texts: list[bytes]) -> Int32Array:
        """The numbers of lists by their text, -1 for what is none."""
        codes = interner.codes(texts) - 1
        absent = int((codes == NONE).sum())
        lost = absent - sum(map(texts.count, SAYS_NOTHING)) if absent else 0
        if lost > 0:
            lost = sum(
                text.strip() not in SAYS_NOTHING
                for text, code in zip(texts, codes, strict=True)
                if code == NONE
            )
            self.dropped[unusable(argument)] += lost
        return codes

    def _lost(self, argument: str) -> Callable[[int], None]:
        """What counts values of an argument that are no number."""

        def count(lost: int) -> None:
            self.dropped[unusable(argument)] += lost

        return count


def _texts(*columns: list[msgspec.Raw]) -> list[bytes]:
    """Of each row, the list under the first of its names that is there: until 2021 one was written in small letters."""
    texts, *others = columns
    for other in others:
        if other.count(NO_TEXT) < len(other):
            texts = [then if text is NO_TEXT else text for text, then in zip(texts, other, strict=True)]
    return [b"" if text is NO_TEXT else bytes(text) for text in texts]


def _first_there(*columns: list[Number]) -> list[Number]:
    """Of each row, the number under the first of its names that is there."""
    numbers, *others = columns
    for other in others:
        if other.count(NONE) < len(other):
            numbers = [
                then if number == NONE else number for number, then in zip(numbers, other, strict=True)
            ]
    return numbers
