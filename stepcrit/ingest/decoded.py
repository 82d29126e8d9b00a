"""A piece of text becomes events: what reads it fastest is tried first, and what says what is right comes last.

- `Frames`: nothing but Python frames, as most of a trace with stacks is. Whatever else stands in the text, no
  column of theirs can hold, so only the columns that frames fill are made.
- `Typed`: events whose arguments are of the types that they should be of.
- A list of `Event`: all else that is JSON. Arguments stay text until they are read one by one.

A decoder refuses what is not of its kind, most often at the first event. What it accepts, the last way
reads alike, and gives where it is iterated over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import compress
from typing import Any, Literal, TypeAlias

import msgspec
import numpy as np
from msgspec import Struct, field

from stepcrit.ingest.arguments import NO_ARGUMENTS, ArgumentReader, Arguments
from stepcrit.ingest.dialect import DATED_TEXT
from stepcrit.ingest.split import MAX_DEPTH, check_json, without_depth
from stepcrit.ingest.times import MAX_DURATION_NS, column_ns, in_range
from stepcrit.model.arrays import Int64Array

Label: TypeAlias = str | int | float | None

_NO_TIME = msgspec.Raw(b"null")
_NO_DURATION = msgspec.Raw(b"0")


class Event(Struct, gc=False):
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

    @property
    def arguments(self) -> msgspec.Raw:
        """The arguments, whatever they are called."""
        return self.args if self.args is not NO_ARGUMENTS else self.attr


_NOTHING = Arguments()


class TypedEvent(Event, gc=False):
    """The same with its arguments read."""

    args: Arguments = _NOTHING  # type: ignore[assignment]
    attr: Arguments = _NOTHING  # type: ignore[assignment]


class FrameArguments(Struct, gc=False, forbid_unknown_fields=True):
    """All that a Python frame says of itself."""

    python_id: int = field(name="Python id")
    parent_id: int | None = field(default=None, name="Python parent id")
    module_id: int | None = field(default=None, name="Python module id")
    index: int | None = field(default=None, name="Ev Idx")
    finished: bool | None = None


class Frame(Struct, gc=False, forbid_unknown_fields=True):
    """A Python frame; what has more to it, or less, is none."""

    ph: Literal["X"]
    cat: Literal["python_function"]
    name: str
    pid: int
    tid: int
    ts: msgspec.Raw
    dur: msgspec.Raw
    args: FrameArguments


_EVENTS = msgspec.json.Decoder(list[Event])
_EVENT = msgspec.json.Decoder(Event)
_TYPED = msgspec.json.Decoder(list[TypedEvent])
_FRAMES = msgspec.json.Decoder(list[Frame])


class Chunk(Collection[Event]):
    """A list of events as JSON text."""

    def __init__(self, text: bytes) -> None:
        self.text = text

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)

    def __contains__(self, event: object) -> bool:
        return event in self.events

    @cached_property
    def events(self) -> list[Event]:
        """The events, with their arguments as text."""
        return _EVENTS.decode(self.text)


class Typed(Chunk):
    """Events with their arguments read."""

    def __init__(self, text: bytes) -> None:
        super().__init__(text)
        self.typed = _TYPED.decode(text)

    def __len__(self) -> int:
        return len(self.typed)


class Frames(Chunk):
    """Nothing but Python frames, of which there is nothing to tell but what they say.

    Attributes:
        frames: the frames.
        names: their names.
        start, duration: in ns, as written.

    Raises:
        msgspec.DecodeError: there is something else, or a time that is none.
    """

    def __init__(self, text: bytes) -> None:
        super().__init__(text)
        self.frames = _FRAMES.decode(text)
        self.names = [frame.name for frame in self.frames]
        self.start, has_start = column_ns([frame.ts for frame in self.frames])
        self.duration, has_duration = column_ns([frame.dur for frame in self.frames])
        is_sound = has_start & in_range(self.start) & has_duration & (self.duration >= 0)
        if not (is_sound & (self.duration <= MAX_DURATION_NS)).all():
            raise msgspec.ValidationError("a time is not what it should be")

    def __len__(self) -> int:
        return len(self.frames)


class Part(Struct, frozen=True):
    """Some of the events of a chunk.

    Attributes:
        events: the events; of `Typed` ones, the arguments are read.
        places: their places in the chunk.
        chunk: all events of the chunk.
    """

    events: Sequence[Event]
    places: Int64Array
    chunk: Collection[Event]

    def where(self, wanted: list[bool]) -> Part:
        """Some of them."""
        if all(wanted):
            return self
        return Part(list(compress(self.events, wanted)), self.places[np.array(wanted, np.bool_)], self.chunk)

    def written(self) -> list[Event]:
        """The same events, with their arguments as text."""
        events = list(self.chunk)
        return [events[place] for place in self.places.tolist()]

    def arguments(self, reader: ArgumentReader) -> list[Arguments]:
        """What is read of the events' arguments."""
        if isinstance(self.chunk, Typed):
            typed: Sequence[Any] = self.events
            return [event.args if event.args is not _NOTHING else event.attr for event in typed]
        return reader.many([event.arguments for event in self.events])


def whole(events: Collection[Event]) -> Part:
    """All events of a chunk."""
    found = events.typed if isinstance(events, Typed) else list(events)
    return Part(found, np.arange(len(found)), events)


class RowDecoder:
    """Turns event text into events, and counts what is none.

    Attributes:
        dropped: what could not be read, by reason.
        dated: texts met that date the writer (keys of dialect.DATED_TEXT).
    """

    def __init__(self) -> None:
        self.dropped: Counter[str] = Counter()
        self.dated: set[bytes] = set()

    def many(self, text: bytes, start: int, end: int) -> Collection[Event]:
        """Decode a part of a text, which is the inside of a list of events.

        Raises:
            msgspec.DecodeError: it is not JSON, or an element is no event.
            RecursionError: an element is nested too deeply.
        """
        text = b"".join((b"[", memoryview(text)[start:end], b"]"))
        events = _decoded(text)
        self._note_dated(text)
        return events

    def one(self, text: bytes) -> Event:
        """Decode one element, or stand in an event without a phase for what is none.

        Raises:
            msgspec.DecodeError: `text` is not JSON.
        """
        try:
            event = _EVENT.decode(text)
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
        """Note what dates the writer: it may stand anywhere, even in what a key written twice has in its first place."""
        self.dated.update(word for word in DATED_TEXT if word not in self.dated and _holds(text, word))


def _holds(text: bytes, word: bytes) -> bool:
    """`word in text`, in half the time where it is not: four letters of the word are looked for first."""
    if len(text) < len(word):
        return False
    letters = np.frombuffer(word, np.uint32, 1, len(word) // 2 - 2)
    fours = (np.frombuffer(text, np.uint32, (len(text) - shift) // 4, shift) for shift in range(4))
    return any((four == letters).any() for four in fours) and word in text


def _decoded(text: bytes) -> Collection[Event]:
    """The events of a list, in the first way that takes it."""
    for kind in (Frames, Typed):
        with suppress(msgspec.DecodeError, RecursionError):
            return kind(text)
    return _EVENTS.decode(text)
