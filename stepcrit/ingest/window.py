"""A long text is looked at through a window that moves forward and never back."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stepcrit import kernels
from stepcrit.ingest.damage import Place, excerpt
from stepcrit.ingest.limits import over
from stepcrit.ingest.split import after_space

_BOM = b"\xef\xbb\xbf"


class Window:
    """The part of a text that is in memory.

    Attributes:
        text: the part.
        at: everything before it is dealt with.
        at_end: whether nothing follows `text`.
        chunk_bytes: how much of it is wanted at a time.
        largest: the most that one value may take.
    """

    def __init__(self, read: Callable[[int], bytes], chunk_bytes: int, largest: int) -> None:
        self.text = b""
        self.at = 0
        self.at_end = False
        self._read = read
        self.chunk_bytes = chunk_bytes
        self.largest = largest
        self._offset = 0  # of text[0] in the document
        self._lines = 0  # line ends before text[0]

    @property
    def position(self) -> int:
        """Where `at` lies in the document."""
        return self._offset + self.at

    def fill(self) -> None:
        """Have most of a chunk of text in the window, if there is that much left."""
        while 2 * (len(self.text) - self.at) < self.chunk_bytes and self.grow():
            pass

    def grow(self) -> bool:
        """Read on, at least half of what is left in the window, so that no text is looked at more than three times.

        Returns:
            Whether there was more.

        Raises:
            LimitInputError: what is left is one value already larger than the limit.
        """
        left = len(self.text) - self.at
        if left > self.largest:
            raise over("value", "One value of the JSON is larger than is allowed", self.largest)
        block = self._block(max(self.chunk_bytes - left, left, 1))
        self._lines += _lines(self.text, self.at)
        self.text = self.text[self.at :] + block
        self._offset += self.at
        self.at = 0
        return bool(block)

    def _block(self, size: int) -> bytes:
        """About the next `size` bytes, or all there are: at least half of it, as joining pieces copies them."""
        pieces: list[bytes] = []
        left = size
        while 2 * left > size and not self.at_end:
            piece = self._read(left)
            self.at_end = not piece
            pieces.append(piece)
            left -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def peek(self) -> bytes:
        """Move over white space and return the next byte, or nothing at the end."""
        while True:
            self.at = after_space(self.text, self.at)
            if self.at < len(self.text) or not self.grow():
                return self.text[self.at : self.at + 1]

    def skip_bom(self) -> None:
        """Move over a byte order mark."""
        while len(self.text) < len(_BOM) and self.grow():
            pass
        if self.text.startswith(_BOM):
            self.at = len(_BOM)

    def skip_rest(self) -> int:
        """Move to the end; returns how many bytes that passes over."""
        passed = len(self.text) - self.at
        self.at = len(self.text)
        while self.grow():
            passed += len(self.text)
            self.at = len(self.text)
        return passed

    def is_utf8(self, start: int, end: int) -> bool:
        """Whether a part of the window is UTF-8 (the decoder does not look at what nobody asks for)."""
        return self.text.isascii() or is_utf8(self.text[start:end])

    def place(self, position: int) -> Place:
        """Where a position of the window lies in the document."""
        line = self._lines + _lines(self.text, position) + 1
        return Place(self._offset + position, line, excerpt(self.text, position))


def _lines(text: bytes, end: int) -> int:
    """Line ends before a position. Numpy is five times as fast as `bytes.count`, which stops at each; C, ten times."""
    if kernels.chosen() == kernels.COMPILED:
        from stepcrit.kernels import _scan  # noqa: PLC0415 - where it is built only

        return _scan.line_ends(text, end)
    part = np.frombuffer(text, np.uint8)[:end]
    return int(np.count_nonzero(part == ord("\n")))


def is_utf8(text: bytes) -> bool:
    """Whether a text is UTF-8."""
    if text.isascii():
        return True
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
