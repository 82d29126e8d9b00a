"""Compressed input becomes text as far as it goes: what a damaged stream held before its damage is kept.

The formats' own file classes lose what they had unpacked when they meet damage, and a zstd reader
takes a stream that stops for one that ends; so frames are unpacked one by one here. How much one
call may hand out is bounded, whatever sizes a header declares.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, Protocol

from stepcrit.errors import BrokenInputError, UsageError
from stepcrit.ingest.damage import DamageLog
from stepcrit.ingest.limits import ZSTD_WINDOW_LOG
from stepcrit.model.trace import Harm

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTD_SKIPPABLE = (b"\x2a\x4d\x18", 1)  # after a byte 0x50..0x5f: a frame without content, which pzstd writes
MAGIC_BYTES = 4
_BLOCK_BYTES = 1 << 16
_GZIP_BITS = 31


_TOLD = {
    Harm.PACK_CUT: (
        "stops before its end",
        "The file was cut off while it was written or copied: copy it again.",
    ),
    Harm.PACK_BAD: ("is damaged", "Copy the file again; `{} -t` tells whether the copy is sound."),
    Harm.PACK_AFTER: (
        "is followed by other bytes",
        "Copy the file again; `{} -t` tells whether the copy is sound.",
    ),
}


class UnpackError(Exception):
    """A frame is damaged: `sound` is what it held before, `lost_bytes` how much of the input nothing came of."""

    def __init__(self, sound: bytes, lost_bytes: int) -> None:
        super().__init__()
        self.sound = sound
        self.lost_bytes = lost_bytes


class Engine(Protocol):
    """What unpacks one frame.

    Attributes:
        after: when the frame is complete, input that was given and belongs to what follows; else None.
    """

    after: bytes | None

    @property
    def is_hungry(self) -> bool:
        """Whether nothing more comes out without more input."""

    def feed(self, block: bytes, size: int) -> bytes:
        """Unpack up to about `size` bytes. Raises UnpackError."""


class Frames:
    """Compressed frames, one after another, as one text.

    Attributes:
        words: the compression's name.
        log: what is told of damage.
    """

    def __init__(
        self, read: Callable[[int], bytes], head: bytes, log: DamageLog, kind: type[_Inflate | _Zstd]
    ) -> None:
        self.words = kind.words
        self._raw = read
        self._pending = head
        self.log = log
        self._kind = kind
        self._engine: Engine = kind()
        self._is_over = False

    def read(self, size: int) -> bytes:
        """Unpack up to about `size` bytes; none means the end."""
        while not self._is_over:
            out = self._step(size)
            if out:
                return out
        return b""

    def _step(self, size: int) -> bytes:
        """Unpack some, or find out why there is no more."""
        if self._engine.after is not None:
            self._next_frame(self._engine.after)
            return b""
        is_dry = False
        if self._engine.is_hungry and not self._pending:
            self._pending = self._raw(self._kind.block_bytes)
            is_dry = not self._pending
        block, self._pending = self._pending, b""
        try:
            out = self._engine.feed(block, size)
        except UnpackError as error:
            self._give_up(Harm.PACK_BAD, error.lost_bytes)
            return error.sound
        if is_dry and not out and self._engine.after is None:
            self._is_over = True
            self._tell(Harm.PACK_CUT)
        return out

    def _next_frame(self, after: bytes) -> None:
        """Go on with what follows a frame: another one, padding, or bytes that are none of it."""
        self._pending = after.lstrip(self._kind.padding)
        while len(self._pending) < MAGIC_BYTES and (block := self._raw(_BLOCK_BYTES)):
            self._pending = (self._pending + block).lstrip(self._kind.padding)
        if not self._pending:
            self._is_over = True
        elif self._kind.begins(self._pending):
            self._engine = self._kind()
        else:
            self._give_up(Harm.PACK_AFTER, len(self._pending))

    def _give_up(self, harm: Harm, lost: int) -> None:
        """Read to the end of the input, so that it is known how much is lost besides what is known to be."""
        while block := self._raw(_BLOCK_BYTES):
            lost += len(block)
        self._tell(harm)
        self.log.lost_input_bytes += lost
        self._is_over = True

    def _tell(self, harm: Harm) -> None:
        """Note what is wrong with the stream."""
        what, do = _TOLD[harm]
        self.log.add(harm)
        self.log.blame(BrokenInputError(f"The {self.words} stream {what}.", do=do.format(self.words)))


class _Inflate:
    """One member of a gzip file (RFC 1952); length and checksum are verified."""

    words = "gzip"
    block_bytes = 1 << 16
    padding = b"\0"

    def __init__(self) -> None:
        self.after: bytes | None = None
        self._left = b""
        self._z = zlib.decompressobj(_GZIP_BITS)

    @property
    def is_hungry(self) -> bool:
        """Whether all input given has been used."""
        return not self._left

    @staticmethod
    def begins(block: bytes) -> bool:
        """Whether a member can begin like this."""
        return block.startswith(GZIP_MAGIC)

    def feed(self, block: bytes, size: int) -> bytes:
        """Unpack up to `size` bytes."""
        block = self._left + block
        sound = self._z.copy()
        try:
            out = self._z.decompress(block, size)
        except zlib.error as error:
            raise UnpackError(*_until_damage(sound, block)) from error
        self.after = self._z.unused_data if self._z.eof else None
        self._left = b"" if self._z.eof else self._z.unconsumed_tail
        return out


def _until_damage(sound: Any, block: bytes) -> tuple[bytes, int]:
    """What a block holds before its damage, and how much is left; a byte at a time, but once an input."""
    out, place = bytearray(), 0
    try:
        for place in range(len(block)):
            out += sound.decompress(block[place : place + 1])
    except zlib.error:
        pass
    return bytes(out), len(block) - place


class _Zstd:
    """One zstd frame (RFC 8878)."""

    words = "zstd"
    block_bytes = 1 << 12  # of a damaged block nothing is had
    padding = b""

    def __init__(self) -> None:
        zstd = _zstd()
        self.after: bytes | None = None
        self._error = zstd.ZstdError
        self._z = zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: ZSTD_WINDOW_LOG})

    @property
    def is_hungry(self) -> bool:
        """Whether all input given has been used."""
        return bool(self._z.needs_input)

    @staticmethod
    def begins(block: bytes) -> bool:
        """Whether a frame can begin like this."""
        return is_zstd(block)

    def feed(self, block: bytes, size: int) -> bytes:
        """Unpack up to `size` bytes."""
        try:
            out: bytes = self._z.decompress(block, size)
        except self._error as error:
            raise UnpackError(b"", len(block)) from error  # what this block might have given is lost with it
        self.after = self._z.unused_data if self._z.eof else None
        return out


def is_zstd(head: bytes) -> bool:
    """Whether the first bytes are those of a zstd frame."""
    return head.startswith(ZSTD_MAGIC) or (head[1:4] == _ZSTD_SKIPPABLE[0] and 0x50 <= head[0] <= 0x5F)


def _zstd() -> Any:
    """The standard library's module, or the package that brings it to older Pythons.

    Raises:
        UsageError: there is neither.
    """
    try:
        from compression import zstd  # type: ignore[import-not-found] # noqa: PLC0415 - Python 3.14
    except ImportError:
        pass
    else:
        return zstd
    try:
        from backports import zstd  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise UsageError(
            "The input is zstd-compressed, which needs the extra `zstd` of stepcrit.",
            do="Install it (pip install 'stepcrit[zstd]'), or decompress the file first: zstd -d FILE",
        ) from error
    return zstd


def unpacked(read: Callable[[int], bytes], head: bytes, log: DamageLog) -> Frames | None:
    """The text of an input that begins with `head`, or None where its first bytes are of no compression.

    Raises:
        UsageError: it is compressed with zstd, and nothing here can read that.
    """
    if head.startswith(GZIP_MAGIC):
        return Frames(read, head, log, _Inflate)
    return Frames(read, head, log, _Zstd) if is_zstd(head) else None
