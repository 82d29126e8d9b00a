"""Events become columns a chunk at a time; no event outlives its chunk.

msgspec decodes a chunk into typed structs, and skips what nobody asks for (see `decoded`). Times stay text at
first, because they must not pass through a float.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import Any

import msgspec
import numpy as np

from stepcrit.ingest.arguments import (
    NO_TEXT,
    SAYS_NOTHING,
    UNKNOWN_BYTES,
    ArgumentReader,
    Arguments,
    Number,
    unusable,
    written_list,
)
from stepcrit.ingest.columns import ColumnStore, Interner, Room, int64_column, is_one, label, name_label
from stepcrit.ingest.decoded import Event, Frame, Frames, Label, Part, RowDecoder, whole
from stepcrit.ingest.times import MAX_DURATION_NS, column_ns, in_range
from stepcrit.model.arrays import NONE, BoolArray, Int32Array, Int64Array

_NOT_OF_FRAMES: dict[str, type[np.generic]] = dict.fromkeys(
    ("stack", "module", "shapes", "dtypes"), np.int32
) | dict.fromkeys(("correlation", "external_id", "seq", "nbytes", "stream", "device"), np.int64)
"""Columns in which a Python frame has nothing."""


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
        self._takers: tuple[tuple[str, Callable[[Part], None]], ...] = (
            ("XB", self._take_rows),
            ("E", self._take_ends),
            ("sf", self._take_flows),
            ("iIR", self._take_memory),
            ("M", self._take_metadata),
        )

    def take(self, events: Collection[Event]) -> None:
        """Add the next events of the file."""
        if isinstance(events, Frames):
            self._take_frames(events)
        else:
            self._take_part(whole(events))
        self.count += len(events)

    def _take_part(self, part: Part) -> None:
        """Sort events by their phase."""
        phases = [event.ph for event in part.events]
        present = Counter(phases)
        self.phases.update(present)
        for letters, taker in self._takers:
            wanted = present.keys() & set(letters)
            if wanted:
                taker(part.where([phase in wanted for phase in phases]))

    def finish(self) -> None:
        """Have all that was taken in the columns."""

    def _take_frames(self, found: Frames) -> None:
        """Append Python frames."""
        count = len(found)
        self.phases["X"] += count
        self.rows.append(
            order=np.arange(count) + self.count,
            start=found.start,
            duration=found.duration,
            begins=np.zeros(count, np.bool_),
            cat=self.cats.codes([frame.cat for frame in found.frames]),
            name=self.names.codes(found.names),
            track=self._tracks(found.frames),
            python_id=int64_column([frame.args.python_id for frame in found.frames]),
            **{name: np.full(count, NONE, dtype) for name, dtype in _NOT_OF_FRAMES.items()},
        )

    def _take_rows(self, part: Part) -> None:
        """Rows with a duration: X, and B until its E is found."""
        start, has_start = self._times(part.events)
        duration, has_duration = column_ns([event.dur for event in part.events])
        self._count("duration is no number", ~has_duration & has_start)
        self._count("negative duration clipped to 0", has_start & (duration < 0))
        self._count("duration over 73 years cut", has_start & (duration > MAX_DURATION_NS))
        kept = has_start & has_duration
        if kept.any():
            self._add_rows(part.where(kept.tolist()), start[kept], duration[kept].clip(0, MAX_DURATION_NS))

    def _add_rows(self, part: Part, start: Int64Array, duration: Int64Array) -> None:
        """Append readable rows to the columns."""
        events, args = part.events, part.arguments(self._reader)
        cat = self.cats.codes([event.cat for event in events])
        self.rows.append(
            order=part.places + self.count,
            start=start,
            duration=duration,
            begins=np.array([event.ph == "B" for event in events], np.bool_),
            cat=cat,
            name=self.names.codes([event.name for event in events]),
            track=self._tracks(events),
            stack=self.stacks.codes([arg.stack for arg in args]) - 1,
            module=self.modules.codes([arg.module for arg in args]) - 1,
            shapes=self._list_codes(
                self.shapes, "Input Dims", [arg.shapes for arg in args], [arg.old_shapes for arg in args]
            ),
            dtypes=self._list_codes(self.dtypes, "Input type", [arg.dtypes for arg in args]),
            **self._argument_columns(args),
        )
        wanted = self._need_all(cat, args)
        if wanted.any():
            self._keep_whole_arguments(part.where(wanted.tolist()))

    def _need_all(self, cat: Int32Array, args: list[Arguments]) -> BoolArray:
        """Which rows keep all their arguments."""
        needed: BoolArray = cat == self.cats.get("cuda_sync", NONE)
        collectives, graphs = [arg.collective for arg in args], [arg.graph for arg in args]
        if collectives.count("") < len(args):
            needed |= [collective != "" for collective in collectives]
        if graphs.count(0) < len(args):
            needed |= [graph > 0 for graph in graphs]
        return needed

    def _keep_whole_arguments(self, part: Part) -> None:
        """Keep all arguments of rows."""
        for place, event in zip(part.places.tolist(), part.written(), strict=True):
            self.arguments[place + self.count] = self._reader.all_of(event.arguments)

    def _take_ends(self, part: Part) -> None:
        """Ends of B."""
        time, usable = self._times(part.events)
        self.ends.append(
            order=part.places[usable] + self.count,
            time=time[usable],
            track=self._tracks(part.events)[usable],
        )

    def _take_flows(self, part: Part) -> None:
        """Flow arrows."""
        events = part.events
        time, usable = self._times(events)
        self.flows.append(
            order=part.places[usable] + self.count,
            time=time[usable],
            is_start=np.array([event.ph == "s" for event in events], np.int8)[usable],
            cat=self.cats.codes([event.cat for event in events])[usable],
            id=self._flow_ids([event.id for event in events])[usable],
            track=self._tracks(events)[usable],
        )

    def _take_memory(self, part: Part) -> None:
        """Allocator events among the instants; the others are only counted by phase."""
        is_memory = [event.name == "[memory]" for event in part.events]
        if not any(is_memory):
            return
        part = part.where(is_memory)
        time, usable = self._times(part.events)
        args = self._reader.memory([event.args for event in part.written()])
        has_bytes = np.array([arg.nbytes != UNKNOWN_BYTES for arg in args], np.bool_)
        self._count("memory event without its bytes", usable & ~has_bytes)
        usable &= has_bytes
        self.memory.append(
            order=part.places[usable] + self.count,
            time=time[usable],
            nbytes=int64_column([arg.nbytes for arg in args])[usable],
            allocated=int64_column([arg.allocated for arg in args])[usable],
            reserved=int64_column([arg.reserved for arg in args])[usable],
            device_type=int64_column([arg.device_type for arg in args])[usable],
            device=int64_column([arg.device for arg in args])[usable],
        )
        # So that their category counts as one of torch.profiler's.
        self.cats.codes([event.cat for event in part.events])

    def _take_metadata(self, part: Part) -> None:
        """Names of threads and processes; a file may repeat them 300 000 times."""
        for event in part.written():
            if event.name == "thread_name":
                track = label(event.pid), label(event.tid)
                self.thread_names.setdefault(track, set()).add(bytes(event.args))
            elif event.name == "process_name":
                self.process_names.setdefault(label(event.pid), set()).add(bytes(event.args))

    def _times(self, events: Sequence[Event]) -> tuple[Int64Array, BoolArray]:
        """The events' times, and which of them are usable."""
        time, is_number = column_ns([event.ts for event in events])
        is_in_range = in_range(time)
        self._count("time is missing or no number", ~is_number)
        self._count("time is out of range", ~is_in_range)
        return time, is_number & is_in_range

    def _tracks(self, events: Sequence[Event | Frame]) -> Int32Array:
        """The tracks (pid, tid) of the events."""
        pids, tids = [event.pid for event in events], [event.tid for event in events]
        if is_one(pids) and is_one(tids):
            return np.full(len(pids), self.tracks[pids[0], tids[0]], np.int32)
        return self.tracks.codes(list(zip(pids, tids, strict=True)))

    def _flow_ids(self, values: list[Label]) -> Int64Array:
        """The ids of flows; most writers number them."""
        if set(map(type, values)) == {int}:
            with suppress(OverflowError):
                return np.array(values, np.int64)
        return np.array([self._flow_id(value) for value in values], np.int64)

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

    def _list_codes(self, interner: Interner, argument: str, *columns: list[msgspec.Raw]) -> Int32Array:
        """The numbers of lists by their text, -1 for what is none; of the first of their names that is there."""
        if all(column.count(NO_TEXT) == len(column) for column in columns):
            return np.full(len(columns[0]), NONE, np.int32)
        texts = _texts(*columns)
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
