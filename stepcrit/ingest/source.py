"""Input bytes become JSON text here: opened, told apart by magic bytes, unpacked, hashed."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from stepcrit.errors import BrokenInputError, InputError, NotFoundInputError

STDIN = "-"
_GZIP_MAGIC = b"\x1f\x8b"
_SUFFIXES = (".json", ".json.gz")


class Source:
    """One input, read front to back.

    Attributes:
        name: file name without its folder, or "-".
        compression: "none" or "gzip", by the first bytes and never by the name.
        json_bytes: bytes of text handed out so far.
    """

    def __init__(self, raw: BinaryIO, name: str) -> None:
        self.name = name
        self.json_bytes = 0
        self._head = b""
        self._tally = _Tally(raw)
        buffered = io.BufferedReader(self._tally, 1 << 18)
        try:
            is_gzip = buffered.peek(2)[:2] == _GZIP_MAGIC
        except OSError as error:
            raise _unreadable(error, name) from error
        self.compression = "gzip" if is_gzip else "none"
        self._text = gzip.GzipFile(fileobj=buffered, mode="rb") if is_gzip else buffered

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
            BrokenInputError, NotFoundInputError: as `read`.
        """
        self._head = self._read(size)
        return self._head

    def read(self, size: int) -> bytes:
        """Read about `size` bytes of text; none means the end.

        Raises:
            BrokenInputError: the gzip stream is damaged or stops early.
            NotFoundInputError: the operating system cannot read on.
        """
        block, self._head = self._head[:size], self._head[size:]
        block = block or self._read(size)
        self.json_bytes += len(block)
        return block

    def _read(self, size: int) -> bytes:
        """Read from the file or the unpacker."""
        try:
            return self._text.read(size)
        except EOFError as error:
            raise BrokenInputError(
                "The gzip stream stops before its end.",
                where=f"byte {self.input_bytes} of the input",
                do="The file was cut off while it was written or copied: copy it again.",
            ) from error
        except (gzip.BadGzipFile, zlib.error) as error:
            raise BrokenInputError(
                f"The gzip stream is damaged: {error}.",
                where=f"about byte {self.input_bytes} of the input",
                do="Copy the file again; `gzip -t` tells whether the copy is sound.",
            ) from error
        except OSError as error:
            raise _unreadable(error) from error


class _Tally(io.RawIOBase):
    """A raw stream that counts and hashes what passes through it."""

    def __init__(self, raw: BinaryIO) -> None:
        super().__init__()
        self.count = 0
        self.digest = hashlib.sha256()
        self._raw = raw

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        block = self._raw.read(len(buffer)) or b""
        buffer[: len(block)] = block
        self.count += len(block)
        self.digest.update(block)
        return len(block)


@contextmanager
def open_source(source: str | os.PathLike[str] | BinaryIO) -> Iterator[Source]:
    """Open a path, standard input ("-") or a binary stream.

    Args:
        source: what the user named. A folder stands for the one trace in it.

    Yields:
        The opened input; a file opened here is closed afterwards.

    Raises:
        NotFoundInputError: there is no such file, or it may not be read.
        InputError: the folder holds several traces.
    """
    if not isinstance(source, (str, os.PathLike)):
        yield Source(source, _stream_name(source))
    elif source == STDIN:
        yield Source(sys.stdin.buffer, STDIN)
    else:
        path = _one_file(Path(source))
        with _open(path) as raw:
            yield Source(raw, path.name)


def _open(path: Path) -> BinaryIO:
    """Open a file, or say why not."""
    try:
        return path.open("rb", buffering=0)
    except FileNotFoundError as error:
        raise NotFoundInputError("There is no such file.", where=str(path), do="Check the path.") from error
    except (OSError, ValueError) as error:
        raise _unreadable(error, str(path)) from error


def _unreadable(error: OSError | ValueError, where: str = "") -> NotFoundInputError:
    """An error about something the operating system will not read."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else error
    return NotFoundInputError(f"The input cannot be read: {reason}.", where=where)


def _one_file(path: Path) -> Path:
    """The file itself, or the only trace in a folder."""
    if not path.is_dir():
        return path
    try:
        found = sorted(entry for entry in path.iterdir() if entry.name.lower().endswith(_SUFFIXES))
    except OSError as error:
        raise _unreadable(error, str(path)) from error
    if not found:
        raise NotFoundInputError(
            "The folder holds no trace (*.json, *.json.gz).",
            where=str(path),
            do="Name the trace file itself.",
        )
    if len(found) > 1:
        names = ", ".join(entry.name for entry in found[:5]) + (", ..." if len(found) > 5 else "")
        raise InputError(
            f"The folder holds {len(found)} traces, and this verb reads one.",
            where=str(path),
            do=f"Name one of them: {names}",
        )
    return found[0]


def _stream_name(stream: BinaryIO) -> str:
    """The name of an open file, or "-"."""
    name = getattr(stream, "name", None)
    return Path(name).name if isinstance(name, str) else STDIN
