"""The JSON around the events is walked once, in windows, whatever the order of its keys.

Events leave in lists of a few megabytes of text. Where to cut is found by a pattern that cannot
match inside a JSON string; when a cut turns out wrong (an argument that looks like an event, the
end of the array), the window is split again by `split`, which follows strings and brackets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Generic, Protocol, TypeVar

import msgspec

from stepcrit.errors import BrokenInputError, EmptyInputError
from stepcrit.ingest.split import after_space, split, value_end

Event = TypeVar("Event")

_BOUNDARY = re.compile(rb'\}\s*,\s*(?=\{\s*"(?:ph|name|cat|pid|tid|ts|dur|id|args|attr|bp|s)"\s*:)')
_BYTE = re.compile(r"\(byte (\d+)\)")
_TAIL_BYTES = 1 << 14
_BOM = b"\xef\xbb\xbf"
_SAMPLE_BYTES = 2048


class EventDecoder(Protocol[Event]):
    """What turns text into events."""

    def many(self, text: bytes) -> list[Event]:
        """Decode a JSON array. Raises what msgspec raises."""

    def one(self, text: bytes) -> Event:
        """Decode one value, whatever its type. Raises msgspec.DecodeError if it is not JSON."""


class Document(Generic[Event]):
    """A JSON document that may hold trace events, read front to back.

    Attributes:
        is_array: whether the document is a bare list of events.
        header: JSON text of every top-level value but the events, by key.
        keys: every top-level key, in file order.
        sample: some of the first text of the list of events.
    """

    def __init__(self, read: Callable[[int], bytes], decoder: EventDecoder[Event], chunk_bytes: int) -> None:
        self.is_array = False
        self.header: dict[str, bytes] = {}
        self.keys: list[str] = []
        self.sample = b""
        self._read = read
        self._decoder = decoder
        self._chunk_bytes = chunk_bytes
        self._text = b""
        self._at = 0  # everything before it is dealt with
        self._offset = 0  # of _text[0] in the document
        self._at_end = False
        self._after_comma = False

    def events(self) -> Iterator[list[Event]]:
        """Yield the events in file order; the header is complete when this is exhausted.

        Raises:
            EmptyInputError: there is nothing but white space.
            BrokenInputError: the text is not JSON, or it stops early.
        """
        self._skip_bom()
        first = self._peek()
        if not first:
            raise EmptyInputError(
                "The input is empty.", do="Check that the trace was written and copied in full."
            )
        if first == b"[":
            self.is_array = True
            yield from self._array()
        elif first == b"{":
            yield from self._object()
        else:
            raise self._broken("This is not JSON: it starts with neither { nor [", self._at)
        if self._peek():
            raise self._broken("Something follows the end of the JSON", self._at)

    # --- the top level ---------------------------------------------------------------------

    def _object(self) -> Iterator[list[Event]]:
        """Walk the members of the document."""
        self._at += 1
        more = self._peek() != b"}"
        while more:
            key = self._key()
            if key == "traceEvents" and key in self.keys:
                raise self._broken("There are two lists of traceEvents", self._at)
            self.keys.append(key)
            if key == "traceEvents" and self._peek() == b"[":
                yield from self._array()
            else:
                self.header[key] = self._value()
            more = self._peek() == b","
            if more:
                self._at += 1
        self._expect(b"}")

    def _key(self) -> str:
        """Read a member's name and its colon."""
        if self._peek() not in {b'"', b""}:
            raise self._broken("A key was expected", self._at)
        text = self._value()
        try:
            key = msgspec.json.decode(text, type=str)
        except msgspec.DecodeError as error:
            raise self._malformed(error, text, self._at - len(text)) from error
        self._expect(b":")
        return key

    def _value(self) -> bytes:
        """Read the text of one value, and check that it is JSON."""
        self._peek()
        while (end := value_end(self._text, self._at, at_end=self._at_end)) < 0:
            was_at_end = self._at_end
            if not self._grow() and was_at_end:
                raise self._misread(b"") or self._truncated()
        text = self._text[self._at : end]
        try:
            msgspec.json.decode(text, type=msgspec.Raw)
        except msgspec.DecodeError as error:
            raise self._malformed(error, text, self._at) from error
        except RecursionError:
            text = b"null"  # nothing we know is nested like this
        self._at = end
        return text

    def _expect(self, mark: bytes) -> None:
        """Step over one punctuation mark."""
        found = self._peek()
        if not found:
            raise self._truncated()
        if found != mark:
            raise self._broken(f"'{mark.decode()}' was expected", self._at)
        self._at += 1

    # --- the events ------------------------------------------------------------------------

    def _array(self) -> Iterator[list[Event]]:
        """Walk a list of events, in chunks."""
        self._at += 1
        self._peek()
        self._after_comma = closed = False
        while not closed:
            self._fill()
            text, start = self._text, self._at
            events = self._quick()
            if events is None:
                events, closed = self._exact()
            if not self.sample and self._text is text:
                self.sample = text[start : min(self._at, start + _SAMPLE_BYTES)]
            if events:
                yield events

    def _quick(self) -> list[Event] | None:
        """Decode up to the last event boundary in the window, if that is what it seems."""
        cut = _last_boundary(self._text, self._at)
        if cut is None:
            return None
        try:
            events = self._decoder.many(self._list_of(self._at, cut[0]))
        except (msgspec.DecodeError, RecursionError):
            return None
        self._at, self._after_comma = cut[1], True
        return events

    def _exact(self) -> tuple[list[Event], bool]:
        """Decode every complete element of the window; the flag tells that the list has ended."""
        parts = split(self._text, self._at, at_end=self._at_end, after_comma=self._after_comma)
        events = self._decode(parts.bounds)
        if parts.malformed_at >= 0:
            raise self._broken("The JSON is malformed: ',' or ']' was expected", parts.malformed_at)
        # The Chrome trace format lets a bare list end in a comma, and anywhere between two events.
        if parts.closed and parts.dangling and not self.is_array:
            raise self._broken("The JSON is malformed: a comma before ']'", parts.used - 1)
        self._at, self._after_comma = parts.used, parts.dangling
        if parts.closed or parts.bounds:
            return events, parts.closed
        misread = self._misread(b"[")
        if misread:
            raise misread
        was_at_end = self._at_end
        if self._grow() or not was_at_end:
            return events, False
        if self.is_array and not self._peek():
            return events, True
        raise self._truncated()

    def _decode(self, bounds: list[tuple[int, int]]) -> list[Event]:
        """Decode elements in one go, or one by one when some are not what an event should be."""
        if not bounds:
            return []
        start, end = bounds[0][0], bounds[-1][1]
        try:
            return self._decoder.many(self._list_of(start, end))
        except (msgspec.ValidationError, RecursionError):
            return [self._decode_one(*bound) for bound in bounds]
        except msgspec.DecodeError as error:
            raise self._malformed(error, self._text[start:end], start, lead=1) from error

    def _decode_one(self, start: int, end: int) -> Event:
        """Decode one element."""
        text = self._text[start:end]
        try:
            return self._decoder.one(text)
        except msgspec.DecodeError as error:
            raise self._malformed(error, text, start) from error

    def _list_of(self, start: int, end: int) -> bytes:
        """A piece of the window as a JSON list."""
        return b"".join((b"[", memoryview(self._text)[start:end], b"]"))

    # --- the window ------------------------------------------------------------------------

    def _fill(self) -> None:
        """Have a chunk of text in the window, if there is that much left."""
        while len(self._text) - self._at < self._chunk_bytes and self._grow():
            pass

    def _grow(self) -> bool:
        """Read on, doubling what is left so that no text is looked at more than twice."""
        left = len(self._text) - self._at
        block = self._read(max(self._chunk_bytes - left, left, 1))
        self._at_end = not block
        self._text = self._text[self._at :] + block
        self._offset += self._at
        self._at = 0
        return bool(block)

    def _peek(self) -> bytes:
        """Move over white space and return the next byte, or nothing at the end."""
        while True:
            self._at = after_space(self._text, self._at)
            if self._at < len(self._text) or not self._grow():
                return self._text[self._at : self._at + 1]

    def _skip_bom(self) -> None:
        """Move over a byte order mark."""
        while len(self._text) < len(_BOM) and self._grow():
            pass
        if self._text.startswith(_BOM):
            self._at = len(_BOM)

    # --- refusals --------------------------------------------------------------------------

    def _broken(self, what: str, position: int, do: str = "") -> BrokenInputError:
        """An error about a position of the window."""
        return BrokenInputError(f"{what}.", where=f"byte {self._offset + position} of the JSON text", do=do)

    def _truncated(self) -> BrokenInputError:
        """An error about text that stops."""
        advice = "The trace was cut off while it was written or copied: record it or copy it again."
        return self._broken("The JSON stops before its end", len(self._text), advice)

    def _misread(self, lead: bytes) -> BrokenInputError | None:
        """The error in text that seems to stop only because a stray quote swaps inside and outside."""
        text = lead + self._text[self._at :]
        try:
            msgspec.json.decode(text, type=msgspec.Raw)
        except msgspec.DecodeError as error:
            found = _BYTE.search(str(error))
            # At the very end it is only a number that the end cuts.
            if found and int(found[1]) < len(text):
                return self._malformed(error, text[len(lead) :], self._at, lead=len(lead))
        except RecursionError:
            pass
        return None

    def _malformed(
        self, error: msgspec.DecodeError, text: bytes, start: int, *, lead: int = 0
    ) -> BrokenInputError:
        """An error about text that is not JSON, with advice for the ways traces are known to break."""
        message = str(error).removeprefix("JSON is malformed: ")
        if "truncated" in message:  # a bare word, cut: only the decoder knows that it is one
            return self._truncated()
        found = _BYTE.search(message)
        inside = int(found[1]) - lead if found else _first_bad_utf8(text)
        around = text[max(0, inside - 1) : inside + 8]
        what = f"The JSON is malformed: {_BYTE.sub('', message).strip()}"
        return self._broken(what, start + inside, _advice(message, around))


def _last_boundary(text: bytes, start: int) -> tuple[int, int] | None:
    """End of an event and start of the next one, as late in `text` as possible."""
    tail = _TAIL_BYTES
    while True:
        last = None
        for last in _BOUNDARY.finditer(text, max(start, len(text) - tail)):  # noqa: B007 - the last is wanted
            pass
        if last:
            return last.start() + 1, last.end()
        if tail >= len(text) - start:
            return None
        tail *= 8


def _first_bad_utf8(text: bytes) -> int:
    """Where `text` stops being UTF-8."""
    try:
        text.decode()
    except UnicodeDecodeError as error:
        return error.start
    return 0


def _advice(message: str, around: bytes) -> str:
    """What to do about malformed JSON of a known make."""
    if "escape" in message:
        return (
            "The file has unescaped Windows backslashes in its names (PyTorch 1.12 and 1.13 on Windows write them): "
            "record with a newer PyTorch, or without with_stack."
        )
    if re.search(rb"(?i)\b(nan|inf)", around):
        return "The file holds NaN or Infinity, which JSON has not: replace them by null."
    if "UTF-8" in message:
        return "Re-encode the file as UTF-8."
    return "Check that the file is complete and was not edited by hand."
