"""Reading the file, hashing and unpacking run ahead in a thread of their own: all let go of Python's lock meanwhile.

What the thread meets (damage, errors, how far it has read) comes with the text it was met in, so that nothing
depends on how far ahead it is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Condition, Thread

from msgspec import Struct

from stepcrit.errors import InternalError
from stepcrit.ingest.damage import DamageLog

_MOST_AHEAD = 2
"""Pieces that wait to be read."""


class Piece(Struct, frozen=True):
    """Some text, and what was met in unpacking it.

    Attributes:
        text: none means the end.
        log: damage of the compressed stream, if it is one.
        input_bytes: how much of the input had been read then.
        error: raised instead, or None.
    """

    text: bytes
    log: DamageLog
    input_bytes: int
    error: Exception | None = None


class Ahead:
    """Makes pieces before they are asked for.

    Args:
        make: makes the next piece; after an error or an empty text it is not called again.
    """

    def __init__(self, make: Callable[[], Piece]) -> None:
        self._make = make
        self._made: deque[Piece] = deque()
        self._changed = Condition()
        self._is_stopped = False
        self._thread = Thread(target=self._run, name="reading ahead", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        """Make pieces, and tell when that ends, however it does."""
        try:
            self._make_all()
        finally:
            with self._changed:
                self._is_stopped = True
                self._changed.notify_all()

    def _make_all(self) -> None:
        """Make pieces, but never more than a few too many."""
        is_last = False
        while not is_last:
            try:
                piece = self._make()
            except Exception as error:  # noqa: BLE001 - raised again where it is asked for
                piece = Piece(b"", DamageLog(), 0, error)
            is_last = not piece.text
            with self._changed:
                self._changed.wait_for(lambda: self._is_stopped or len(self._made) < _MOST_AHEAD)
                if self._is_stopped:
                    return
                self._made.append(piece)
                self._changed.notify_all()

    def next(self) -> Piece:
        """The next piece. Not to be called after the last one."""
        with self._changed:
            self._changed.wait_for(lambda: self._made or self._is_stopped)
            if not self._made:
                raise InternalError("reading ended before the text did")
            piece = self._made.popleft()
            self._changed.notify_all()
        if piece.error:
            raise piece.error
        return piece

    def stop(self) -> None:
        """Make no more; what is read from is free when this returns."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()
        self._thread.join()
