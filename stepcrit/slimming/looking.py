"""Whether a trace tells where it was recorded: it does where slimming would replace a word."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import closing

import msgspec
from msgspec import Struct

from stepcrit.ingest import sniff
from stepcrit.ingest.limits import Limits
from stepcrit.slimming.events import EventWriter, Keeping
from stepcrit.slimming.header import is_known_key, slim_header
from stepcrit.slimming.names import Names
from stepcrit.slimming.passes import Passes
from stepcrit.slimming.tokens import TOKEN, Tokens
from stepcrit.slimming.tracks import Tracks
from stepcrit.slimming.values import text_of

_SUSPECT = re.compile(rb"[/@]|\\\\|\.[a-z]{2,12}\b|\d\.\d{1,3}\.\d{1,3}\.\d")
"""What stands in every path, address and host name."""


_HARMLESS = ("trace id",)
"""Drawn by chance. The trace's name tells of a place where it is a path, or made of host and process."""

_PLAIN_NAME = re.compile(r"[A-Za-z _-]{0,40}(?:\.pt)?(?:\.trace)?(?:\.json)?(?:\.gz)?")


class Told(Struct, frozen=True):
    """What a trace tells of where it was recorded.

    Attributes:
        file_bytes: the size of the file.
        words: distinct words that slimming would replace or leave out, by what they are.
    """

    file_bytes: int
    words: Mapping[str, int]


def look_at(path: str | os.PathLike[str], limits: Limits) -> Told:
    """What a trace tells; nothing is written.

    Raises:
        InputError: it is no trace that can be read.
    """
    tokens = Tokens(b"")
    names = Names(tokens, anonymous=False)
    everything = Keeping(stacks=True, flows=True, window_ns=None)
    writer = EventWriter(everything, tokens, names, Tracks({}, {}, tokens))
    seen = False
    with closing(Passes(path, limits)) as passes, passes.walk() as (document, chunks):
        for chunk in chunks:
            for event in map(bytes, chunk):
                seen = True
                writer.write(event)
                if _SUSPECT.search(event):
                    _look_at_args(event, names)
        header = document.header
    if not seen:
        raise sniff.foreign(header, document.sample, ())
    unknown = [key for key in slim_header(header, tokens)[1] if not is_known_key(key)]
    harmless = _HARMLESS if _is_place(header) else (*_HARMLESS, "trace name")
    kinds = {what: n for what, n in tokens.replaced.items() if what not in harmless}
    words = dict(sorted(kinds.items())) | ({"unknown header key": len(unknown)} if unknown else {})
    return Told(passes.input_bytes, words)


def _is_place(header: Mapping[str, bytes]) -> bool:
    """Whether the trace's name is more than a word."""
    name = text_of(header.get("traceName", b'""'))
    return name is None or not (_PLAIN_NAME.fullmatch(name) or TOKEN.fullmatch(name))


def _look_at_args(event: bytes, names: Names) -> None:
    """Look for places in the arguments, those that slimming leaves out included."""
    try:
        found = msgspec.json.decode(event)
    except (msgspec.DecodeError, RecursionError):
        return
    args = found.get("args") if isinstance(found, dict) else None
    for text in _texts(args):
        names.operator(text)


def _texts(value: object) -> Iterator[str]:
    """Every text in a value, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _texts(item)
