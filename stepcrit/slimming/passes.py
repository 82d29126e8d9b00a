"""A trace is read several times front to back, and must be the same each time."""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import IO, BinaryIO, cast

import msgspec

from stepcrit.errors import NotFoundInputError, PartialError
from stepcrit.ingest import read_trace
from stepcrit.ingest.envelope import Document
from stepcrit.ingest.limits import Limits, over
from stepcrit.ingest.reader import CHUNK_BYTES
from stepcrit.ingest.source import STDIN, open_source
from stepcrit.model.trace import RawTrace
from stepcrit.slimming.decoder import TextDecoder

_IN_MEMORY = 64 << 20
_BLOCK = 1 << 20
_PERSON = b"stepcrit slim"  # so that no digest that an answer tells leads to the key


class Passes:
    """One input, to be read again and again.

    Args:
        source: a path, "-" or a binary stream; what cannot be read twice is kept meanwhile.
        limits: the most that is read.

    Attributes:
        input_bytes: the size of the input, once it was walked through.
    """

    def __init__(self, source: str | os.PathLike[str] | BinaryIO, limits: Limits) -> None:
        self._limits = limits
        self._source = source
        self.input_bytes = 0
        self._sha256 = ""
        self._kept: IO[bytes] | None = None
        if source == STDIN:
            if sys.stdin is None:
                raise NotFoundInputError(
                    "Standard input is closed.", where=STDIN, do="Name a file, or send a trace into stepcrit."
                )
            self._keep(sys.stdin.buffer)
        elif not isinstance(source, (str, os.PathLike)):
            self._keep(source)

    def close(self) -> None:
        """Forget what was kept."""
        if self._kept:
            self._kept.close()

    def understand(self, *, salvage: bool) -> RawTrace:
        """The columns of the trace.

        Raises:
            InputError, PartialError: as `read_trace`.
        """
        raw = read_trace(self._begin(), limits=self._limits, salvage=salvage)
        self._check(raw.meta.sha256, raw.meta.source)
        return raw

    def look(self) -> tuple[dict[str, bytes], bytes]:
        """The header, and a key that only the trace itself gives."""
        digest = hashlib.blake2b(person=_PERSON)
        with self.walk() as (document, events):
            for chunk in events:
                for event in chunk:
                    digest.update(event)
            return document.header, digest.digest()

    @contextmanager
    def walk(self) -> Iterator[tuple[Document[msgspec.Raw], Iterator[Collection[msgspec.Raw]]]]:
        """The document, and its events as text; its header is whole when these are exhausted.

        Raises:
            InputError, PartialError: as `read_trace`.
        """
        with open_source(self._begin(), self._limits) as opened:
            opened.peek(1)
            document = Document(opened.read, TextDecoder(), CHUNK_BYTES, opened.log, self._limits)
            yield document, document.events()
            self.input_bytes = opened.input_bytes
            self._check(opened.sha256, opened.name)

    def _begin(self) -> str | os.PathLike[str] | BinaryIO:
        if not self._kept:
            return self._source
        self._kept.seek(0)
        return cast("BinaryIO", self._kept)

    def _keep(self, stream: BinaryIO) -> None:
        self._kept = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - closed by `close`
        size = 0
        while block := stream.read(_BLOCK):
            size += len(block)
            if size > self._limits.text:
                raise over("text", "There is more text than is allowed", self._limits.text)
            self._kept.write(block)

    def _check(self, sha256: str, name: str) -> None:
        self._sha256 = self._sha256 or sha256
        if sha256 != self._sha256:
            raise PartialError(
                "The file was changed while it was read.",
                where=name,
                do="Wait until it is written; run again.",
            )
