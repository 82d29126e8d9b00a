r"""One event's text that is not JSON becomes JSON, where what was meant can be told.

Every repair is one that a writer is known to make necessary (hand-written JSON: unescaped
backslashes, quotation marks and line ends, bare NaN and N/A, commas around nothing, bytes in other
encodings), and each is told by its `Harm`. What is not known is not guessed: then there is no answer.
"""

from __future__ import annotations

import re

import msgspec
from msgspec import Struct, field

from stepcrit.model.trace import Harm

LARGEST = 1 << 18
"""No event of more bytes is repaired: a real one has a few thousand."""

REPLACEMENT = "\ufffd"

_TOKEN = re.compile(rb'\s+|[{}\[\]:,]|"[^"\\]*+(?:\\.[^"\\]*+)*+"|[^\s"{}\[\]:,]+|"', re.DOTALL)
_NUMBER = re.compile(rb"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?\Z")
_LOOSE_NUMBER = re.compile(rb"([-+]?)0*+(\d*+)(?:\.(\d*+))?([eE][-+]?\d++)?\Z")
_NOTHING = frozenset(
    {
        b"nan",
        b"inf",
        b"infinity",
        b"n/a",
        b"na",
        b"none",
        b"null",
        b"undefined",
        b"nil",
        b"#n/a",
        b"1.#qnan",
        b"1.#inf",
    }
)
_TRUTH = {b"true": b"true", b"false": b"false"}
_BARE_WORD = re.compile(rb"[A-Za-z_][\w.:<>-]*\Z")
_ESCAPE = re.compile(rb"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_CONTROL = re.compile(rb"[\x00-\x1f]")
_SURROGATE = re.compile(
    rb"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|\\\\|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)
_RUN = re.compile(f"{REPLACEMENT}+")
_NAME = re.compile(rb'"name"\s*:\s*"')
_NAME_END = re.compile(rb'"\s*(?:,\s*"(?:ph|cat|pid|tid|ts|dur|args|id|bp|s)"\s*:|\}\s*\Z)')
_BARE_QUOTE = re.compile(rb'(?<!\\)((?:\\\\)*)"')
_TWICE_QUOTED = re.compile(rb'""([^"{}\[\],:\\]+)""')
_CLOSED_BY_BACKSLASH = re.compile(rb'(?<!\\)\\"(?=\s*[,}\]])')
_SIMPLE_ESCAPES = frozenset(b'"\\/bfnrt')


class _Draft(Struct):
    """The text as it gets right."""

    out: list[bytes] = field(default_factory=list)
    harms: set[Harm] = field(default_factory=set)
    is_apart: bool = False  # white space came last

    @property
    def last(self) -> bytes:
        """The last token that is no white space."""
        return self.out[-1] if self.out else b""


def repair(text: bytes) -> tuple[bytes, frozenset[Harm]] | None:
    r"""Make JSON of one value's text.

    Args:
        text: the text, from its first to its last byte.

    Returns:
        Valid JSON and what was wrong, or None when nothing sensible comes out.

    >>> print(repair(rb'{"a": "C:\\Users", "b": N/A,}'.replace(rb"\\", b"\\"))[0].decode())
    {"a":"C:\\Users","b":null}
    """
    if len(text) > LARGEST:
        return None
    harms: set[Harm] = set()
    text = text if text.isascii() else _utf8(text, harms)
    if harms and _is_json(text):  # nothing else is wrong, as mostly: told in a fraction of the time
        return text, frozenset(harms)
    made = _with_harms(text)
    return (made[0], made[1] | harms) if made else None


def _with_harms(text: bytes) -> tuple[bytes, frozenset[Harm]] | None:
    """Make JSON of text in UTF-8, in the way that works."""
    for prepare in (_as_it_is, _with_whole_name, _with_literal_ends):
        prepared = prepare(text)
        if prepared and prepared[1] and _is_json(prepared[0]):
            return prepared
        made = _made_valid(*prepared) if prepared else None
        if made:
            return made
    return None


def _made_valid(text: bytes, harms: frozenset[Harm]) -> tuple[bytes, frozenset[Harm]] | None:
    """Set every token right; None when the whole is no JSON even so."""
    draft = _Draft(harms=set(harms))
    for token in _TOKEN.finditer(text):
        if token[0] == b'"':  # a string that nothing ends
            return None
        _take(draft, token[0])
    joined = b"".join(draft.out)
    return (joined, frozenset(draft.harms)) if _is_json(joined) else None


def _is_json(text: bytes) -> bool:
    """Whether the text is one JSON value."""
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _take(draft: _Draft, token: bytes) -> None:
    """Add one token, set right."""
    first = token[:1]
    if first.isspace():
        _take_space(draft, token)
    elif first in b"{[:":
        draft.out.append(token)
    elif first in b",}]":
        _take_end(draft, token)
    else:
        value = _string(token, draft.harms) if first == b'"' else _bare(token, draft.harms)
        stands_alone = draft.last[-1:] in b"{[:,"
        draft.out.append(value if stands_alone or not draft.is_apart else b" " + value)
    if not first.isspace():
        draft.is_apart = False


def _take_space(draft: _Draft, space: bytes) -> None:
    """Keep values apart that nothing else keeps apart: two numbers side by side are not one."""
    if space.strip(b" \t\r\n"):
        draft.harms.add(Harm.CONTROL)
    draft.is_apart = True


def _take_end(draft: _Draft, mark: bytes) -> None:
    """Add what ends a member: nothing may stand before it but a value."""
    if draft.last == b":":
        draft.out.append(b"null")
        draft.harms.add(Harm.BARE)
    if mark == b"," and draft.last in (b"{", b"[", b",", b""):
        draft.harms.add(Harm.COMMA)
        return
    if mark != b"," and draft.last == b",":
        draft.out.pop()
        draft.harms.add(Harm.COMMA)
    draft.out.append(mark)


def _string(token: bytes, harms: set[Harm]) -> bytes:
    """A string literal, set right."""
    inner = token[1:-1]
    if not inner.isascii():
        inner = _utf8(inner, harms)
    if b"\\" in inner:
        inner = _escaped(inner, harms)
    if _CONTROL.search(inner):
        harms.add(Harm.CONTROL)
        inner = _CONTROL.sub(lambda found: b"\\u%04x" % found[0][0], inner)
    return b'"' + inner + b'"'


def _utf8(text: bytes, harms: set[Harm]) -> bytes:
    """Text in UTF-8: a run of bytes that are none becomes one replacement character."""
    try:
        text.decode()
    except UnicodeDecodeError:
        harms.add(Harm.UTF8)
        return _RUN.sub(REPLACEMENT, text.decode("utf-8", "replace")).encode()
    return text


def _escaped(inner: bytes, harms: set[Harm]) -> bytes:
    r"""Escapes, set right. Where one is none, its string was written without any: `C:\Users\new` has no line end."""
    if any(not _is_escape(found[1]) for found in _ESCAPE.finditer(inner)):
        harms.add(Harm.ESCAPE)
        return _ESCAPE.sub(lambda found: found[0] if found[1] in (b'"', b"\\") else b"\\" + found[0], inner)
    sound = _SURROGATE.sub(lambda found: found[0] if found[1] or found[0] == b"\\\\" else b"\\ufffd", inner)
    if sound != inner:
        harms.add(Harm.SURROGATE)
    return sound


def _is_escape(after: bytes) -> bool:
    """Whether a backslash before this is an escape."""
    return len(after) == 5 or after[0] in _SIMPLE_ESCAPES


def _bare(token: bytes, harms: set[Harm]) -> bytes:
    """What stands without quotation marks: a number, a word of JSON, or neither."""
    if token in (b"true", b"false", b"null") or _NUMBER.match(token):
        return token
    lower = token.lower().lstrip(b"+-")
    if lower in _NOTHING:
        harms.add(Harm.BARE)
        return b"null"
    if lower in _TRUTH:
        harms.add(Harm.NUMBER)
        return _TRUTH[lower]
    number = _LOOSE_NUMBER.match(token)
    if number and (number[2] or number[3] or b"0" in token):
        harms.add(Harm.NUMBER)
        sign = b"-" if number[1] == b"-" else b""
        return sign + (number[2] or b"0") + (b"." + number[3] if number[3] else b"") + (number[4] or b"")
    if _BARE_WORD.match(token):
        harms.add(Harm.WORD)
        return b'"' + token + b'"'
    return token  # not known: the whole will be no JSON


def _as_it_is(text: bytes) -> tuple[bytes, frozenset[Harm]]:
    """The text, its strings taken to end where they seem to."""
    return text, frozenset()


def _with_whole_name(text: bytes) -> tuple[bytes, frozenset[Harm]] | None:
    """The text with quotation marks inside its name escaped: the name ends where another key of an event follows."""
    text, twice = _TWICE_QUOTED.subn(rb'"\1"', text)
    start = _NAME.search(text)
    end = _NAME_END.search(text, start.end()) if start else None
    if not start or not end:
        return (text, frozenset({Harm.QUOTE})) if twice else None
    name = _BARE_QUOTE.sub(rb'\1\\"', text[start.end() : end.start()])
    return text[: start.end()] + name + text[end.start() :], frozenset({Harm.QUOTE})


def _with_literal_ends(text: bytes) -> tuple[bytes, frozenset[Harm]] | None:
    r"""The text with a backslash before the mark that ends a string taken for a backslash: `"C:\dir\"`."""
    made, count = _CLOSED_BY_BACKSLASH.subn(rb'\\\\"', text)
    return (made, frozenset({Harm.ESCAPE})) if count else None
