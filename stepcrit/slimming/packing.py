"""The text of a slimmed trace on its way into gzip: the same bytes on every run."""

from __future__ import annotations

import zlib
from collections.abc import Mapping

import msgspec

_GZIP = 31  # zlib's number for a gzip frame, in which it writes neither a time nor a name
_LEVEL = 9


class Packer:
    """A JSON document, written front to back.

    Attributes:
        text_bytes: how much text has been written.
        events: how many events have been written.
    """

    def __init__(self) -> None:
        self.text_bytes = 0
        self.events = 0
        self._pack = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
        self._packed = bytearray()
        self._members = 0

    def members(self, values: Mapping[str, bytes]) -> None:
        """Members of the document."""
        for key, text in values.items():
            self._put((b",\n" if self._members else b"{\n") + msgspec.json.encode(key) + b":" + text)
            self._members += 1

    def open_list(self) -> None:
        """Begin the list of events."""
        self._put((b",\n" if self._members else b"{\n") + b'"traceEvents":[')
        self._members += 1

    def event(self, text: bytes) -> None:
        """One event, on a line of its own."""
        self._put((b",\n" if self.events else b"\n") + text)
        self.events += 1

    def close_list(self) -> None:
        """End the list of events."""
        self._put(b"\n]")

    def close(self) -> bytes:
        """End the document; returns the file."""
        self._put(b"\n}\n")
        self._packed += self._pack.flush()
        return bytes(self._packed)

    def _put(self, text: bytes) -> None:
        self.text_bytes += len(text)
        self._packed += self._pack.compress(text)
