"""The JSON around the events is walked once, in windows, whatever the order of its keys.

Events leave in lists of a few megabytes of text. Where to cut is found by a pattern that cannot
match inside a JSON string; when a cut turns out wrong (an argument that looks like an event, the
end of the array), the window is split again by `split`, which follows strings and brackets. Where
that fails too the text is damaged: the events of the window are read one by one by `rescue`, and
the walk goes on strictly behind them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from typing import Generic, TypeVar

import msgspec

from stepcrit.errors import BrokenInputError, EmptyInputError
from stepcrit.ingest.damage import DamageLog, Place
from stepcrit.ingest.limits import Limits, over
from stepcrit.ingest.refusal import STOPS, Refusals
from stepcrit.ingest.repair import repair
from stepcrit.ingest.rescue import BOUNDARY, LOOK_AHEAD, EventDecoder, Rescuer, first_harm
from stepcrit.ingest.split import Parts, check_json, split, value_end
from stepcrit.ingest.window import Window
from stepcrit.model.trace import Harm

Event = TypeVar("Event")

_TAIL_BYTES = 1 << 14
_SAMPLE_BYTES = 2048
_HEAD_BYTES = 1 << 16
_HEADER_KEY = re.compile(
    rb',\s*(?="(?:traceEvents|schemaVersion|deviceProperties|computeProperties|distributedInfo|baseTimeNanoseconds|'
    rb"displayTimeUnit|traceName|trace_id|host_?name|record_shapes|with_stack|with_flops|with_modules|profile_memory|"
    rb'INFO|WARNING|ERROR|\w+_version)"\s*:)'
)
"""Where a member of the document begins whose key profilers are known to write."""

_FIRST_EVENT = re.compile(rb'\{\s*"ph"\s*:')


class Document(Generic[Event]):
    """A JSON document that may hold trace events, read front to back.

    Attributes:
        is_array: whether the document is a bare list of events.
        header: JSON text of every top-level value but the events, by key.
        keys: every top-level key, in file order.
        sample: some of the first text of the list of events.
    """

    def __init__(
        self,
        read: Callable[[int], bytes],
        decoder: EventDecoder[Event],
        chunk_bytes: int,
        log: DamageLog,
        limits: Limits,
    ) -> None:
        self.is_array = False
        self.header: dict[str, bytes] = {}
        self.keys: list[str] = []
        self.sample = b""
        self._decoder = decoder
        self._log = log
        self._limits = limits
        self._header_bytes = 0
        self._window = Window(read, chunk_bytes, limits.value)
        self._refuse = Refusals(self._window)
        self._rescuer = Rescuer(self._window, decoder, log)
        self._after_comma = False

    def events(self) -> Iterator[Collection[Event]]:
        """Yield the events in file order; the header is complete when this is exhausted.

        What is damaged is told to the log.

        Raises:
            EmptyInputError: there is nothing but white space.
            BrokenInputError: the text is no JSON at all.
            LimitInputError: one value is larger than is allowed.
        """
        self._window.skip_bom()
        first = self._window.peek()
        if not first:
            raise EmptyInputError(
                "The input is empty.", do="Check that the trace was written and copied in full."
            )
        if first == b"[":
            self.is_array = True
            self._window.at += 1
            yield from self._array()
        elif first == b"{":
            yield from self._object()
            if "ph" in self.header:
                yield from self._headless()
        else:
            self._find_head()
            yield from self._from_inside()
        self._after_end()

    def _find_head(self) -> None:
        """Begin at the first event of a text that has lost its head, if it has one."""
        window = self._window
        error = self._refuse.broken(
            "This is not JSON: it starts with neither { nor [",
            window.at,
            "Give a trace from torch.profiler (prof.export_chrome_trace).",
        )
        while not (start := _FIRST_EVENT.search(window.text, window.at)) and len(window.text) < _HEAD_BYTES:
            if not window.grow():
                break
        if not start:
            raise error
        self._log.blame(error)
        self._log.add(Harm.HEAD, window.place, window.at, lost=start.start() - window.at)
        window.at = start.start()

    def _headless(self) -> Iterator[Collection[Event]]:
        """Read on where the document turned out to be one event: the text before it is missing."""
        window = self._window
        members = (msgspec.json.encode(key) + b":" + value for key, value in self.header.items())
        event = b"{" + b",".join(members) + b"}"
        self._log.blame(self._refuse.broken("The document begins inside its list of events", 0))
        self._log.add(Harm.HEAD, lambda _: Place(0, 1, ""))
        self.header = {}
        window.at += window.peek() == b","
        yield [self._decoder.one(event)]
        yield from self._from_inside()

    def _from_inside(self) -> Iterator[Collection[Event]]:
        """Walk the rest of a document that begins inside its list of events; that it ends there is no more wrong."""
        self.keys = ["traceEvents"]
        if self._window.peek():
            yield from self._array()
        if self._window.peek() and self._has_more():
            yield from self._members()

    def _after_end(self) -> None:
        """What follows the end of the document is no part of it."""
        window = self._window
        if not window.peek():
            return
        self._log.blame(self._refuse.broken("Something follows the end of the JSON", window.at))
        self._log.add(Harm.AFTER, window.place, window.at)
        self._log.lost_bytes += window.skip_rest()

    # --- the top level ---------------------------------------------------------------------

    def _object(self) -> Iterator[Collection[Event]]:
        """Walk the members of the document."""
        window = self._window
        window.at += 1
        more = window.peek() != b"}"
        if more:
            yield from self._members()
        else:
            window.at += 1

    def _members(self) -> Iterator[Collection[Event]]:
        """Walk members, the next of which is there."""
        window, more = self._window, True
        while more:
            key = ""
            try:
                key = self._key()
                is_list = self._is_list(key)
                if not is_list:
                    self._keep(key, self._value())
            except BrokenInputError as error:
                more = self._skip_section(error, key)
                continue
            if is_list:
                window.at += 1
                yield from self._array()
            more = self._has_more()

    def _is_list(self, key: str) -> bool:
        """Note a member's key; tells whether its value, which comes next, is the list of events."""
        if key == "traceEvents" and key in self.keys:
            raise self._refuse.broken(
                "There are two lists of traceEvents",
                self._window.at,
                "Keep one of them: which one is the trace cannot be told.",
            )
        self.keys.append(key)
        return key == "traceEvents" and self._window.peek() == b"["

    def _has_more(self) -> bool:
        """Step over what follows a member; tells whether another one does."""
        window = self._window
        mark = window.peek()
        if mark in (b",", b"}"):
            window.at += 1
            return mark == b","
        if mark:
            return self._skip_section(self._refuse.broken("'}' was expected", window.at), "")
        return self._skip_section(self._refuse.truncated(), "")

    def _skip_section(self, error: BrokenInputError, key: str) -> bool:
        """Move to the next member that is known, behind a damaged value of `key`; tells whether there is one."""
        self._log.blame(error)
        window = self._window
        while not (found := _HEADER_KEY.search(window.text, window.at)) and window.grow():
            pass
        end = found.start() if found else len(window.text)
        if not found and error.what.startswith(STOPS):
            if not self._log.has(Harm.CUT):
                self._log.add(Harm.CUT, window.place, end, lost=end - window.at)
        elif not self._mended(key, window.text[window.at : end]):
            self._log.add(Harm.SECTION, window.place, window.at, lost=end - window.at)
        window.at = found.end() if found else end
        return found is not None

    def _mended(self, key: str, text: bytes) -> bool:
        """Keep a header value that can be set right; `text` may hold the end of the document as well."""
        if not key or key == "traceEvents":
            return False
        value = text.rstrip() if self._window.at + len(text) < len(self._window.text) else _without_end(text)
        made = repair(value)
        if not made:
            return False
        self._keep(key, made[0])
        for harm in sorted(made[1]):
            self._log.add(harm, self._window.place, self._window.at + first_harm(value, harm))
        return True

    def _keep(self, key: str, text: bytes) -> None:
        """Keep a header value, within the limit."""
        self._header_bytes += len(text)
        if self._header_bytes > self._limits.value:
            raise over("value", "The header of the JSON is larger than is allowed", self._limits.value)
        self.header[key] = text

    def _key(self) -> str:
        """Read a member's name and its colon."""
        window = self._window
        if window.peek() not in {b'"', b""}:
            raise self._refuse.broken("A key was expected", window.at)
        text = self._value()
        try:
            key = msgspec.json.decode(text, type=str)
        except msgspec.DecodeError as error:
            raise self._refuse.malformed(error, text, window.at - len(text)) from error
        self._expect(b":")
        return key

    def _value(self) -> bytes:
        """Read the text of one value, and check that it is JSON."""
        window = self._window
        window.peek()
        while (end := value_end(window.text, window.at, at_end=window.at_end)) < 0:
            was_at_end = window.at_end
            if not window.grow() and was_at_end:
                raise self._refuse.misread(b"") or self._refuse.truncated()
        text = window.text[window.at : end]
        try:
            msgspec.json.decode(text, type=msgspec.Raw)
            text.decode()
        except msgspec.DecodeError as error:
            raise self._refuse.malformed(error, text, window.at) from error
        except UnicodeDecodeError as error:
            raise self._refuse.not_utf8(text, window.at) from error
        except RecursionError:
            text = b"null"  # nothing we know is nested like this
        window.at = end
        return text

    def _expect(self, mark: bytes) -> None:
        """Step over one punctuation mark."""
        found = self._window.peek()
        if not found:
            raise self._refuse.truncated()
        if found != mark:
            raise self._refuse.broken(f"'{mark.decode()}' was expected", self._window.at)
        self._window.at += 1

    # --- the events ------------------------------------------------------------------------

    def _array(self) -> Iterator[Collection[Event]]:
        """Walk a list of events, in chunks; the window stands behind its `[`."""
        window = self._window
        window.peek()
        self._after_comma = closed = False
        while not closed:
            window.fill()
            text, start, before = window.text, window.at, window.position
            events = self._quick()
            if events is None:
                events, closed = self._carefully()
            self.sample = self.sample or text[start : start + min(window.position - before, _SAMPLE_BYTES)]
            if events:
                yield events

    def _quick(self) -> Collection[Event] | None:
        """Decode up to the last event boundary in the window, if that is what it seems."""
        window = self._window
        cut = _last_boundary(window.text, window.at)
        if cut is None:
            return None
        if not window.is_utf8(window.at, cut[0]):
            return None
        try:
            events = self._decoder.many(window.text, window.at, cut[0])
        except (msgspec.DecodeError, RecursionError):
            return None
        window.at, self._after_comma = cut[1], True
        return events

    def _carefully(self) -> tuple[Collection[Event], bool]:
        """Decode what `_quick` could not: exactly, and where that fails event by event."""
        try:
            return self._exact()
        except BrokenInputError as error:
            self._log.blame(error)
        events, closed = self._rescuer.events(is_array=self.is_array, after_comma=self._after_comma)
        self._after_comma = self._rescuer.after_comma
        return events, closed

    def _exact(self) -> tuple[Collection[Event], bool]:
        """Decode every complete element of the window; the flag tells that the list has ended."""
        window = self._window
        parts = split(window.text, window.at, at_end=window.at_end, after_comma=self._after_comma)
        if parts.closed and len(window.text) - parts.used < LOOK_AHEAD and window.grow():
            return self._exact()  # what follows the bracket tells whether it ends the list
        self._check_list(parts)
        events = self._decode(parts.bounds)
        window.at, self._after_comma = parts.used, parts.dangling
        if parts.closed or parts.bounds:
            return events, parts.closed
        misread = self._refuse.misread(b"[")
        if misread:
            raise misread
        was_at_end = window.at_end
        if window.grow() or not was_at_end:
            return events, False
        if self.is_array and not window.peek():
            return events, True
        raise self._refuse.truncated()

    def _check_list(self, parts: Parts) -> None:
        """Refuse what stands in a list's way."""
        if parts.malformed_at >= 0:
            raise self._refuse.broken("The JSON is malformed: ',' or ']' was expected", parts.malformed_at)
        # The Chrome trace format lets a bare list end in a comma, and anywhere between two events.
        if parts.closed and parts.dangling and not self.is_array:
            raise self._refuse.broken("The JSON is malformed: a comma before ']'", parts.used - 1)
        if parts.closed and not self._rescuer.closes(parts.used - 1, is_array=self.is_array):
            raise self._refuse.broken("A list of events ends here, and goes on", parts.used - 1)

    def _decode(self, bounds: list[tuple[int, int]]) -> Collection[Event]:
        """Decode elements in one go, or one by one when some are not what an event should be."""
        if not bounds:
            return []
        start, end = bounds[0][0], bounds[-1][1]
        if not self._window.is_utf8(start, end):
            raise self._refuse.not_utf8(self._window.text[start:end], start)
        try:
            return self._decoder.many(self._window.text, start, end)
        except (msgspec.ValidationError, RecursionError):
            # All are looked at before one is decoded: what the decoder counts, it counts once.
            for bound in bounds:
                self._check(*bound)
            return [self._decoder.one(self._window.text[begin:stop]) for begin, stop in bounds]
        except msgspec.DecodeError as error:
            raise self._refuse.malformed(error, self._window.text[start:end], start, lead=1) from error

    def _check(self, start: int, end: int) -> None:
        """Make sure that an element is JSON."""
        text = self._window.text[start:end]
        try:
            check_json(text)
        except msgspec.DecodeError as error:
            raise self._refuse.malformed(error, text, start) from error


def _without_end(text: bytes) -> bytes:
    """Text without the brace that ends the document."""
    return text.rstrip().removesuffix(b"}").rstrip()


def _last_boundary(text: bytes, start: int) -> tuple[int, int] | None:
    """End of an event and start of the next one, as late in `text` as possible."""
    tail = _TAIL_BYTES
    while True:
        last = None
        for last in BOUNDARY.finditer(text, max(start, len(text) - tail)):  # noqa: B007 - the last is wanted
            pass
        if last:
            return last.start() + 1, last.end()
        if tail >= len(text) - start:
            return None
        tail *= 8
