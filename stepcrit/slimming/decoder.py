"""Events as text: the reader's walk through a trace, with nothing decoded that is not asked for."""

from __future__ import annotations

import msgspec

from stepcrit.ingest.decoded import Event
from stepcrit.ingest.split import MAX_DEPTH, check_json, without_depth


class TextDecoder:
    """Takes for an event what the reader takes for one, so that both count the same ones."""

    def __init__(self) -> None:
        self._events = msgspec.json.Decoder(list[Event])
        self._texts = msgspec.json.Decoder(list[msgspec.Raw])
        self._event = msgspec.json.Decoder(Event)

    def many(self, text: bytes, start: int, end: int) -> list[msgspec.Raw]:
        """The events in a part of a text, which is the inside of a JSON array.

        Raises:
            msgspec.DecodeError, RecursionError: as `ingest.rows.RowDecoder`.
        """
        part = b"".join((b"[", memoryview(text)[start:end], b"]"))
        self._events.decode(part)
        return self._texts.decode(part)

    def one(self, text: bytes) -> msgspec.Raw:
        """One element, whatever it is.

        Raises:
            msgspec.DecodeError: `text` is not JSON.
        """
        try:
            self._event.decode(text)
        except RecursionError:
            return self.one(without_depth(text, MAX_DEPTH))
        except msgspec.ValidationError:
            check_json(text)
        return msgspec.Raw(text)
