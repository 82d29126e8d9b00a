"""Damaged text is read event by event: what decodes is kept, what can be set right is, the rest is counted.

The borders between events are found by a pattern (`},{"ph"` and its like) instead of by strings and
brackets, which a single stray quotation mark turns inside out.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Generic, Protocol, TypeVar

import msgspec

from stepcrit.ingest.damage import DamageLog
from stepcrit.ingest.repair import repair
from stepcrit.ingest.split import after_space, value_end
from stepcrit.ingest.window import Window, is_utf8
from stepcrit.model.trace import Harm

Event = TypeVar("Event")
Event_co = TypeVar("Event_co", covariant=True)

_KEYS = rb'"(?:ph|name|cat|pid|tid|ts|dur|id|args|attr|bp|s)"\s*:'
BOUNDARY = re.compile(rb"\}\s*,\s*(?=\{\s*" + _KEYS + rb")")
"""Between two events. It cannot match inside a JSON string, whose quotation marks are escaped."""

_START = re.compile(rb"\{\s*" + _KEYS)
_PHASE = re.compile(rb'"ph"\s*:')
_LIST_END = re.compile(rb"\}\s*+,?\s*+(?=\])")
_END_OF_LIST_IN_OBJECT = re.compile(rb"\]\s*(?:\Z|,(?!\s*\{)|\}(?!\s*[,\]}]))")
_END_OF_BARE_LIST = re.compile(rb"\]\s*(?:\Z|(?!\{\s*" + _KEYS + rb")[^\s,\]}])")
LOOK_AHEAD = 256
"""So much text behind a bracket tells whether it ends the list."""

_LOST_BEFORE_DOUBT = 2000
"""So many events may be lost before it is asked whether most are: from then on no more repairs are tried."""

_EVENT_BYTES = 1 << 16
"""So much text is looked at before an event is taken for damaged: an argument of it may look like a border."""

_BORDERS_TRIED = 32
"""An argument may look like a border; so may damage. Of either, no more than this are tried for one event."""


class EventDecoder(Protocol[Event_co]):
    """What turns text into events."""

    def many(self, text: bytes, start: int, end: int) -> Collection[Event_co]:
        """Decode a part of a text, which is the inside of a JSON array. Raises what msgspec raises."""

    def one(self, text: bytes) -> Event_co:
        """Decode one value, whatever its type. Raises msgspec.DecodeError if it is not JSON."""


class Rescuer(Generic[Event]):
    """Reads what the window holds of a damaged list of events.

    Attributes:
        after_comma: whether a comma was the last that was read.
    """

    def __init__(self, window: Window, decoder: EventDecoder[Event], log: DamageLog) -> None:
        self._window = window
        self._decoder = decoder
        self._log = log
        self.after_comma = False
        self._is_array = False
        self._lost_count = 0
        self._kept_count = 0

    def events(self, *, is_array: bool, after_comma: bool) -> tuple[list[Event], bool]:
        """Move over the events in the window, at least over one or to the end of the text.

        Args:
            is_array: whether the document is nothing but the list.
            after_comma: whether a comma stands before the window.

        Returns:
            The events, and whether the list has ended.
        """
        found: list[Event] = []
        closed = self._read(found, is_array=is_array, after_comma=after_comma)
        self._kept_count += len(found)
        return found, closed

    def _read(self, found: list[Event], *, is_array: bool, after_comma: bool) -> bool:
        """Move over the events in the window; tells whether the list has ended."""
        window = self._window
        self._is_array = is_array
        self.after_comma = after_comma
        enough = window.position + window.chunk_bytes
        while mark := window.peek():
            if found and window.position >= enough:
                return False
            if mark == b"]" and self._closes_here():
                if self.after_comma and not is_array:
                    self._log.add(Harm.COMMA, window.place, window.at)
                window.at += 1
                return True
            if mark in b",]":
                self._log.add(Harm.COMMA, window.place, window.at)
                window.at += 1
                self.after_comma = False  # it has been counted
            else:
                self._next(found)
        return True

    def closes(self, position: int, *, is_array: bool) -> bool:
        """Whether a bracket of the window ends the list, by what follows: in damage it may be an argument's."""
        ends = _END_OF_BARE_LIST if is_array else _END_OF_LIST_IN_OBJECT
        return ends.match(self._window.text, position) is not None

    def _closes_here(self) -> bool:
        """Whether the bracket where the window stands ends the list."""
        self._see(LOOK_AHEAD)
        return self.closes(self._window.at, is_array=self._is_array)

    def _see(self, size: int) -> None:
        """Have so much text ahead, if there is."""
        window = self._window
        while len(window.text) - window.at < size and window.grow():
            pass

    def _next(self, found: list[Event]) -> None:
        """Read one event, or grow the window."""
        window = self._window
        self._see(min(_EVENT_BYTES, window.largest // 2))
        border = BOUNDARY.search(window.text, window.at)
        if border:
            self._upto(border.start() + 1, border.end(), found)
        elif window.at_end:
            self._last(found)
        else:
            window.grow()

    def _upto(self, end: int, following: int, found: list[Event]) -> None:
        """Read one event that seems to end at `end`, before another one at `following`."""
        window = self._window
        text = window.text[window.at : end]
        event = self._decoded(text)
        # What is sound as far as it goes may have been cut by an argument that looks like a border; else the
        # border behind a sound event may be what is damaged.
        if event is None and self._exact(self._limit(end) if _stops(text) else end, found):
            return
        if event is None:
            self._repaired(end, found)
        else:
            found.append(event)
        window.at, self.after_comma = following, True

    def _limit(self, end: int) -> int:
        """The end of a few more events: how far an argument may reach that looks like a border."""
        for _ in range(_BORDERS_TRIED):
            border = BOUNDARY.search(self._window.text, end)
            if not border:
                return len(self._window.text)
            end = border.end()
        return end

    def _exact(self, limit: int, found: list[Event]) -> bool:
        """Read one event by its strings and brackets, if it is sound by them."""
        window = self._window
        end = value_end(window.text[window.at : limit], 0, at_end=False)
        if end < 0:
            return False
        follower = after_space(window.text, window.at + end)
        mark = window.text[follower : follower + 1]
        if mark not in {b",", b"]", b"{", b""}:
            return False
        event = self._decoded(window.text[window.at : window.at + end])
        if event is None:
            return False
        if mark == b"{":  # nothing between two events
            self._log.add(Harm.COMMA, window.place, follower)
        found.append(event)
        window.at, self.after_comma = follower + (mark == b","), mark == b","
        return True

    def _repaired(self, end: int, found: list[Event]) -> None:
        """Set an event right that ends at `end`, or find a sound one inside what is lost."""
        window = self._window
        start = window.at
        if self._is_hopeless(len(found)):
            self._lost(start, end - start)
            return
        if self._mended(start, end, found):
            return
        inner = [place.start() for place in _START.finditer(window.text, start + 1, end)][-_BORDERS_TRIED:]
        for place in inner:
            if _PHASE.search(window.text, place, end) and self._mended(place, end, found):
                self._lost(start, place - start)
                return
        self._lost(start, end - start)

    def _lost(self, start: int, size: int) -> None:
        """Count what no event came of."""
        self._lost_count += 1
        self._log.add(Harm.EVENT, self._window.place, start, lost=size)

    def _is_hopeless(self, found_count: int) -> bool:
        """Whether so much is lost that trying to set more right would only take time."""
        return self._lost_count > _LOST_BEFORE_DOUBT and self._lost_count > 2 * (
            self._kept_count + found_count
        )

    def _mended(self, start: int, end: int, found: list[Event]) -> bool:
        """Read the event in some text, set right where that is needed and possible."""
        text = self._window.text[start:end]
        event = self._decoded(text)
        if event is not None:
            found.append(event)
            return True
        made = repair(text)
        event = self._decoded(made[0]) if made else None
        if made is None or event is None:
            return False
        for harm in sorted(made[1]):
            self._log.add(harm, self._window.place, start + first_harm(text, harm))
        found.append(event)
        return True

    def _last(self, found: list[Event]) -> None:
        """Read the last event of the text, or the last before the end of the list."""
        window = self._window
        if self._exact(len(window.text), found):
            return
        closings = (
            one
            for one in _LIST_END.finditer(window.text, window.at)
            if self.closes(one.end(), is_array=self._is_array)
        )
        closing = next(closings, None)
        if closing and self._before(closing, found):
            return
        end = value_end(window.text, window.at, at_end=True)
        rest = window.text[end:].strip() if end >= 0 else b"?"
        if rest in {b"", b","} and self._mended(window.at, end, found):
            window.at, self.after_comma = len(window.text), bool(rest)
            return
        self._log.add(Harm.CUT, window.place, len(window.text), lost=len(window.text) - window.at)
        window.at = len(window.text)

    def _before(self, closing: re.Match[bytes], found: list[Event]) -> bool:
        """Read the event before what seems to be the end of the list; not so where the text just stops inside it."""
        window, end = self._window, closing.start() + 1
        if not self._mended(window.at, end, found):
            if _stops(window.text[window.at :]):
                return False
            self._repaired(end, found)
        window.at, self.after_comma = closing.end(), b"," in closing[0]
        return True

    def _decoded(self, text: bytes) -> Event | None:
        """The event, or None when its text is no JSON in UTF-8."""
        if not is_utf8(text):
            return None
        try:
            return self._decoder.one(text)
        except msgspec.DecodeError:
            return None


def _stops(text: bytes) -> bool:
    """Whether text is sound as far as it goes."""
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except msgspec.DecodeError as error:
        return "truncated" in str(error)
    except RecursionError:
        return value_end(text, 0, at_end=False) < 0
    return False


def first_harm(text: bytes, harm: Harm) -> int:
    """About where in an event's text a harm stands: exact where a byte tells it, else the event's start."""
    if harm == Harm.UTF8:
        try:
            text.decode()
        except UnicodeDecodeError as error:
            return error.start
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except msgspec.DecodeError as error:
        byte = re.search(r"\(byte (\d+)\)", str(error))
        return int(byte[1]) if byte else 0
    except RecursionError:
        return 0
    return 0
