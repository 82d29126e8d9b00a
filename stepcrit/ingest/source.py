"""Input bytes become JSON text here: opened, told apart by magic bytes, unpacked, hashed."""

from __future__ import annotations

import hashlib
import os
import select
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO, TextIO

from stepcrit.errors import NotFoundInputError, PartialError
from stepcrit.ingest.ahead import Ahead, Piece
from stepcrit.ingest.damage import DamageLog
from stepcrit.ingest.folder import LOOK_BYTES, choose
from stepcrit.ingest.limits import RATIO_FROM_BYTES, Limits, over
from stepcrit.ingest.unpack import MAGIC_BYTES, Frames, unpacked

STDIN = "-"
_OPEN_PIPES = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")
"""Pipes somebody has opened for us already, such as a shell's `<(zcat a.gz)`: reading them cannot hang for want
of a writer, as a FIFO can."""


_PIECE_BYTES = 1 << 20
"""Text read or unpacked at a time in a thread."""

_WORTH_A_THREAD = 8 << 20
"""A file that is not packed is read and hashed in a thread if it is larger: for a smaller one, starting it takes longer."""

_HABIT_BYTES = 8 << 20
"""A block so large is taken and given back before much is read. After that the C library of Linux keeps what is freed,
up to twice as much, for the next piece of text (mallopt(3) on M_MMAP_THRESHOLD, which is dynamic). Before, it gives each
piece back to the system, and is given zeroed pages for the next one: a tenth of the time of reading."""

_NO_OTHERS: tuple[tuple[str, str], ...] = ()


class Source:
    """One input, read front to back.

    Attributes:
        name: file name without its folder, or "-".
        compression: "none", "gzip" or "zstd", by the first bytes and never by the name.
        json_bytes: bytes of text handed out so far.
        log: what was wrong with it.
        skipped: other files of the folder it was found in, each with the reason why it is no trace.
    """

    def __init__(self, raw: BinaryIO, name: str, limits: Limits) -> None:
        self.name = name
        self.json_bytes = 0
        self.log = DamageLog()
        self.skipped = _NO_OTHERS
        self._limits = limits
        self._head = b""
        self._tally = _Tally(raw, name)
        head = self._tally.first(MAGIC_BYTES)
        frames = unpacked(self._tally.read, head, self.log)
        self.compression = frames.words if frames else "none"
        self._first = b"" if frames else head
        self._frames = frames
        self._ahead: Ahead | None = None
        self._is_over = False
        self._reached = 0
        self._text_bytes = 0

    @property
    def input_bytes(self) -> int:
        """Bytes of input read so far."""
        return self._tally.count

    @property
    def sha256(self) -> str:
        """Digest of the input read so far."""
        return self._tally.digest.hexdigest()

    def peek(self, size: int) -> bytes:
        """Look at the first bytes of the text. To be called once, before `read`.

        Raises:
            LimitInputError, NotFoundInputError: as `read`.
        """
        while len(self._head) < size and (block := self._read(size)):
            self._head += block
        return self._head[:size]

    def read(self, size: int) -> bytes:
        """Read about `size` bytes of text; none means the end, or damage that the log tells.

        Raises:
            LimitInputError: there is more text than is allowed.
            NotFoundInputError: the operating system cannot read on.
        """
        block, self._head = self._head[:size], self._head[size:]
        block = block or self._read(size)
        self.json_bytes += len(block)
        return block

    def _read(self, size: int) -> bytes:
        """Read from the file or the unpacker, within the limits."""
        block, self._first = self._first, b""
        block = block or self._text(size)
        self._text_bytes += len(block)
        if self._text_bytes > self._limits.text:
            raise over("text", "There is more JSON text than is allowed", self._limits.text)
        allowed = self._limits.ratio * self._reached
        if self.compression != "none" and self._text_bytes > max(RATIO_FROM_BYTES, allowed):
            what = "The file unpacks to more than is plausible for a trace"
            raise over("ratio", what, self._limits.ratio)
        return block

    def _text(self, size: int) -> bytes:
        """Read from the file, or from what unpacks it."""
        if self._ahead:
            return self._from_ahead(self._ahead)
        block = self._frames.read(size) if self._frames else self._tally.read(size)
        self._reached = self._tally.count
        return block

    def read_ahead(self, size: int) -> None:
        """Read and unpack in a thread of its own, which `close` ends. Not for pipes: they may keep it waiting.

        Args:
            size: of the file.
        """
        if self._frames or size > _WORTH_A_THREAD:
            bytearray(_HABIT_BYTES)
            with suppress(RuntimeError):  # the system gives no more threads
                self._ahead = Ahead(partial(self._piece, self._frames))

    def _piece(self, frames: Frames | None) -> Piece:
        """Read or unpack some text, in the thread."""
        log = DamageLog()
        if frames:
            frames.log = log
        text = (frames or self._tally).read(_PIECE_BYTES)
        return Piece(text, log, self._tally.count)

    def _from_ahead(self, ahead: Ahead) -> bytes:
        """Take text from the thread: a piece as it is, as cutting it to size would copy it."""
        if self._is_over:
            return b""
        piece = ahead.next()
        self.log.merge(piece.log)
        self._reached = piece.input_bytes
        self._is_over = not piece.text
        return piece.text

    def close(self) -> None:
        """End the thread, if there is one."""
        if self._ahead:
            self._ahead.stop()


class _Tally:
    """A raw stream that counts and hashes what passes through it."""

    def __init__(self, raw: BinaryIO, name: str) -> None:
        self.count = 0
        self.digest = hashlib.sha256()
        self._raw = raw
        self._name = name

    def read(self, size: int) -> bytes:
        """Read up to `size` bytes."""
        try:
            # None is nothing for now: another program made the pipe that we share non-blocking
            while (block := self._read_some(size)) is None:
                select.select([self._raw], [], [])
        except OSError as error:
            raise _unreadable(error, self._name if not self.count else "") from error
        self.count += len(block)
        self.digest.update(block)
        return block

    def _read_some(self, size: int) -> bytes | None:
        return self._raw.read(size)

    def first(self, size: int) -> bytes:
        """The first `size` bytes, or as many as there are."""
        head = self.read(size)
        while head and len(head) < size and (more := self.read(size - len(head))):
            head += more
        return head


@contextmanager
def open_source(source: str | os.PathLike[str] | BinaryIO, limits: Limits) -> Iterator[Source]:
    """Open a path, standard input ("-") or a binary stream.

    Args:
        source: what the user named. A folder stands for the one trace in it.
        limits: the most that may be read.

    Yields:
        The opened input; a file opened here is closed afterwards.

    Raises:
        NotFoundInputError: there is no such file, it may not be read, or it is a device or a pipe.
        InputError: the folder holds several traces.
        PartialError: the file was changed while it was read.
    """
    if not isinstance(source, (str, os.PathLike)):
        yield Source(source, _stream_name(source), limits)
    elif source == STDIN:
        yield Source(_bytes_of(sys.stdin), STDIN, limits)
    else:
        path, skipped = Path(source), _NO_OTHERS
        if os.path.isdir(path):  # noqa: PTH112 - Path.is_dir raises where nobody may look, or a name is too long
            path, skipped = choose(path, lambda each: _head(each, limits))
        with _open(path) as raw:
            before = os.fstat(raw.fileno())
            opened = Source(raw, path.name, limits)
            opened.skipped = skipped
            if stat.S_ISREG(before.st_mode):
                opened.read_ahead(before.st_size)
            try:
                yield opened
            finally:
                opened.close()
            _check_unchanged(path, before, os.fstat(raw.fileno()))


def _head(path: Path, limits: Limits) -> bytes:
    """The first bytes of a file's text."""
    with _open(path) as raw:
        return Source(raw, path.name, limits).peek(LOOK_BYTES)


def _bytes_of(stdin: TextIO | None) -> BinaryIO:
    """Standard input, where there is one."""
    if stdin is None:
        raise NotFoundInputError(
            "Standard input is closed.", where=STDIN, do="Name a file, or send a trace into stepcrit."
        )
    return stdin.buffer


def _open(path: Path) -> BinaryIO:
    """Open a file, or say why not. Opening never waits: a FIFO without a writer would hold us for ever."""
    try:
        number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError as error:
        raise NotFoundInputError("There is no such file.", where=str(path), do="Check the path.") from error
    except (OSError, ValueError) as error:
        raise _unreadable(error, str(path)) from error
    raw = os.fdopen(number, "rb", buffering=0)
    if stat.S_ISREG(os.fstat(number).st_mode):
        return raw
    if stat.S_ISFIFO(os.fstat(number).st_mode) and str(path).startswith(_OPEN_PIPES):
        os.set_blocking(number, True)
        return raw
    raw.close()
    raise NotFoundInputError(
        "The input is no regular file but a device, a pipe or a socket.",
        where=str(path),
        do="Name a file, or send the trace to standard input: cat PIPE | stepcrit analyze -",
    )


def _check_unchanged(path: Path, before: os.stat_result, after: os.stat_result) -> None:
    """Refuse what was written to, cut or replaced meanwhile: what was read of it may never have been one file."""
    try:
        now = path.stat()
    except OSError:
        now = after  # taken away: what was open was whole
    same = [(s.st_size, s.st_mtime_ns, s.st_ino, s.st_dev) for s in (before, after, now)]
    if stat.S_ISREG(before.st_mode) and len(set(same)) > 1:
        raise PartialError(
            "The file was changed while it was read.",
            where=str(path),
            do="Wait until it is written; run again.",
        )


def _unreadable(error: OSError | ValueError, where: str = "") -> NotFoundInputError:
    """An error about something the operating system will not read."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else error
    return NotFoundInputError(f"The input cannot be read: {reason}.", where=where)


def _stream_name(stream: BinaryIO) -> str:
    """The name of an open file, or "-"."""
    name = getattr(stream, "name", None)
    return Path(name).name if isinstance(name, str) else STDIN
