"""Exact bounds of JSON values, found by strings and brackets alone: slow, never fooled."""

from __future__ import annotations

import re

import msgspec
from msgspec import Struct, field

_SPACE = re.compile(rb"[ \t\r\n]*")
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_SCALAR = re.compile(rb"[^ \t\r\n,\]}]*")
# A lone quote, last, is a string that the text does not finish. Brackets come in runs: hostile text is full of them.
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[{]+|[\]}]+|"', re.DOTALL)
_OPEN = b"[{"
_CLOSE = b"]}"


class Parts(Struct):
    """The elements at the head of the inside of a list.

    Attributes:
        bounds: start and end of every complete element.
        used: where they and the commas after them end.
        closed: whether the list's `]` was met (it is within `used`).
        dangling: whether the last thing before `]` or before the text's end was a comma.
        malformed_at: where something stands that cannot, or -1.
    """

    bounds: list[tuple[int, int]] = field(default_factory=list)
    used: int = 0
    closed: bool = False
    dangling: bool = False
    malformed_at: int = -1


def split(text: bytes, start: int, *, at_end: bool, after_comma: bool = False) -> Parts:
    """Find the elements in the text that follows a list's `[` or one of its commas.

    Args:
        text: the text, which may stop anywhere.
        start: where to begin.
        at_end: whether nothing follows `text`.
        after_comma: whether a comma stands before `start`.

    Returns:
        What was found. An element counts only when what follows it is known.
    """
    parts = Parts(used=start, dangling=after_comma)
    while not parts.closed and parts.malformed_at < 0:
        begin = after_space(text, parts.used)
        if text[begin : begin + 1] == b"]":
            parts.used, parts.closed = begin + 1, True
            break
        end = value_end(text, begin, at_end=at_end)
        follower = after_space(text, end) if end >= 0 else len(text)
        if end < 0 or (follower == len(text) and not at_end):
            break
        _accept(parts, text, (begin, end), follower)
    return parts


def _accept(parts: Parts, text: bytes, bound: tuple[int, int], follower: int) -> None:
    """Add an element, given where the mark after it is."""
    mark = text[follower : follower + 1]
    if mark not in {b",", b"]", b""} or bound[0] == bound[1]:
        parts.malformed_at = follower
        return
    parts.bounds.append(bound)
    parts.used = follower + len(mark)
    parts.closed, parts.dangling = mark == b"]", mark == b","


def value_end(text: bytes, start: int, *, at_end: bool) -> int:
    """Find the end of the value that starts at `start`.

    Args:
        text: the text, which may stop anywhere.
        start: where the value starts.
        at_end: whether nothing follows `text`, so that a number may end with it.

    Returns:
        The position after the value, or -1 when `text` stops before its end.
    """
    first = text[start : start + 1]
    if not first:
        return -1
    if first in {b"{", b"["}:
        return _container_end(text, start)
    match = (_STRING if first == b'"' else _SCALAR).match(text, start)
    if match is None or (match.end() == len(text) and first != b'"' and not at_end):
        return -1
    return match.end()


def _container_end(text: bytes, start: int) -> int:
    """Find the bracket that closes the one at `start`; which kind it is, the decoder will check."""
    depth = 0
    for token in _TOKEN.finditer(text, start):
        mark, length = text[token.start()], token.end() - token.start()
        if mark in _OPEN:
            depth += length
        elif mark in _CLOSE:
            if depth <= length:
                return token.start() + depth
            depth -= length
        elif length == 1:
            return -1
    return -1


MAX_DEPTH = 64
"""Deeper values of an event are cut. Nothing that is asked for lies below the third level."""


def check_json(text: bytes) -> None:
    """Make sure that a value is JSON, whatever its type and depth.

    Raises:
        msgspec.DecodeError: it is not.
    """
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except RecursionError:
        msgspec.json.decode(without_depth(text, MAX_DEPTH), type=msgspec.Raw)


def without_depth(text: bytes, limit: int) -> bytes:
    """Replace every container nested deeper than `limit` by null: decoders recurse, files need not stop."""
    kept: list[bytes] = []
    depth = start = 0
    for token in _TOKEN.finditer(text):
        mark, length = text[token.start()], token.end() - token.start()
        if mark in _OPEN:
            if depth <= limit < depth + length:
                kept.append(text[start : token.start() + limit - depth] + b"null")
            depth += length
        elif mark in _CLOSE:
            depth -= length
            if depth <= limit < depth + length:
                start = token.end() - (limit - depth)
    return b"".join(kept) + text[start:]


def after_space(text: bytes, position: int) -> int:
    """The next position that is not white space."""
    match = _SPACE.match(text, position)
    return match.end() if match else position
