"""JSON for machines (design §4): raw integers, whole names, sorted keys; same input, same bytes.

Characters that control a terminal or are a command in a CI log are written as JSON escapes: the same
string to a parser, and harmless where JSON is printed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from stepcrit.errors import InternalError
from stepcrit.model.section import Document
from stepcrit.report.safe import is_unsafe, visible
from stepcrit.report.values import sentence_text

UNTRUSTED = ("data", "explain", "findings", "inputs", "unknown")
"""Keys of the envelope below which names may stand as the trace or the command line has them: a reader, above all
one that follows sentences, must take every string there for data."""

_UNUSUAL = re.compile(r"[^\x20-\x7e\n]")
_BRACKETED = re.compile(r"##(?=[A-Za-z]*\[)")
_SURROGATE = re.compile("[\ud800-\udfff]")


def render(document: Document) -> bytes:
    """The document's data in the envelope.

    Raises:
        InternalError: the data holds NaN, infinity or something that is no JSON; the message names where.
    """
    import orjson  # noqa: PLC0415 - only this format needs it

    envelope = {
        "schema": f"stepcrit/{document.verb}/1",
        "stepcrit": version(),
        "inputs": [{"name": i.name, "sha256": i.sha256, "size_bytes": i.size_bytes} for i in document.inputs],
        "data": document.data,
        "findings": [
            {"code": f.code, "what": sentence_text(f.what), "count": f.count} for f in document.findings
        ],
        "explain": {b.title or b.topic: b.topic for b in document.blocks if b.topic},
        "untrusted": list(UNTRUSTED),
        "unknown": [{"path": path, "why": why} for path, why in sorted((document.unknown or {}).items())],
    }
    try:
        plain = _plain(envelope)
    except _UnfitError as err:
        raise InternalError(str(err), where=_place_in(envelope).removeprefix(".")) from None
    try:
        packed = orjson.dumps(
            plain, option=orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
        )
    except TypeError as err:
        raise InternalError(f"the answer is not JSON: {err}") from err
    return _harmless(packed.decode()).encode()


def version() -> str:
    """The installed version; "unknown" when run from a folder that was never installed."""
    from importlib import metadata  # noqa: PLC0415 - 30 modules that only this form needs

    try:
        return metadata.version("stepcrit")
    except metadata.PackageNotFoundError:
        return "unknown"


class _UnfitError(Exception):
    """What JSON cannot say."""


def _plain(value: Any) -> Any:
    """The same data in JSON's own types, numpy numbers included; refuses what JSON cannot say.

    By their exact types first: answers hold hundred thousands of these, and of other kinds a few.
    """
    kind = type(value)
    if kind is str:
        return _text(value)
    if kind is int or kind is bool or value is None:
        return value
    if kind is dict:
        return {_text(str(key)): _plain(inner) for key, inner in value.items()}
    if kind is list or kind is tuple:
        return [_plain(inner) for inner in value]
    return _of_other_kind(value)


def _of_other_kind(value: Any) -> Any:
    """Numbers that may be infinite, and what is like a type of JSON's without being one: enums, mappings, arrays."""
    if isinstance(value, Mapping):
        return _plain(dict(value))
    if isinstance(value, list | tuple):
        return _plain(list(value))
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int | float):
        if not math.isfinite(value):
            raise _UnfitError(f"{value} in the answer")
        # a number of Python's own kind: numpy's floats and our enums are subclasses, which orjson refuses
        return int(value) if isinstance(value, int) else float(value)
    # numpy arrays and scalars alike; asked by their method, so that report need not import numpy
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    raise _UnfitError(f"a {type(value).__name__} in the answer is no JSON")


def _place_in(value: Any) -> str:
    """Where the first thing is that JSON cannot say: ".data.steps[0].elapsed_ns"."""
    inner: Iterable[tuple[str, Any]] = ()
    if isinstance(value, Mapping):
        inner = ((f".{key}", one) for key, one in value.items())
    elif isinstance(value, list | tuple):
        inner = ((f"[{i}]", one) for i, one in enumerate(value))
    for step, one in inner:
        try:
            _plain(one)
        except _UnfitError:
            return f"{step}{_place_in(one)}"
    return ""


def _text(value: str) -> str:
    """A string that UTF-8 can carry: lone surrogates become visible."""
    return value if value.isascii() else _SURROGATE.sub(lambda m: visible(m[0]), str(value))


def _harmless(text: str) -> str:
    """Escape what acts instead of printing; such characters only stand inside strings."""
    text = _BRACKETED.sub(r"#\\u0023", text) if "##" in text else text
    if text.isascii() and "\x7f" not in text:
        return text
    return _UNUSUAL.sub(lambda m: _escape(m[0]) if is_unsafe(m[0]) else m[0], text)


def _escape(char: str) -> str:
    """A character as JSON escapes, in UTF-16 units as JSON wants them."""
    units = char.encode("utf-16-be")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
