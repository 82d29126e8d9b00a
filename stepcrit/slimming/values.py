"""Arguments of events: which stay, and what may stand in them.

Numbers stay as the file spells them. A known argument that holds something else keeps being unusable, so that
the reader counts the same losses in a slimmed trace.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

import msgspec

from stepcrit.slimming import vocabulary as known
from stepcrit.slimming.names import Names
from stepcrit.slimming.tokens import Tokens

Rule: TypeAlias = Callable[[bytes], bytes | None]
"""JSON text of a value to the text that stays, None where nothing does."""

UNUSABLE_TEXT, UNUSABLE = b'"?"', b"[]"

_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|true|false|null")
_NUMERIC_TEXT = re.compile(rb'"\s*[-+]?\d{1,30}(?:\.\d{0,30})?(?:[eE][-+]?\d{1,3})?\s*"|""')
_NUMBER_LIST = re.compile(rb"[\[\]\d,\s.eE+-]*")
_SPACE = re.compile(rb"\s+")

NUMBERS = (
    "correlation", "correlation_id", "External id", "external id", "Python id", "Sequence number", "bytes", "Bytes",
    "size", "graph id", "Op count", "device", "stream", "context", "sycl queue", "l0 queue",
    "wait_on_stream", "wait_on_cuda_event_record_corr_id", "wait_on_cuda_event_id",
    "Total Allocated", "Total Reserved", "Device Type", "Device Id",
    "In msg nelems", "Out msg nelems", "Group size", "Rank", "Src Rank", "Dst Rank", "Seq", "Comms Id",
    "Global rank start", "Global rank stride", "Is asynchronized op",
)  # fmt: skip
SHAPES = ("Input Dims", "Input dims")
SHAPED = frozenset({"cpu_op", "Operator"})
"""Categories of operators."""

DEVICE_ONLY = frozenset({"device", "stream", "context"})
"""Asked of device rows alone: on calls a stream is a handle, an address in memory."""

CONCRETE_OPS = re.compile(
    r"aten::(?:_?convolution\w*|conv\w+|cudnn_convolution\w*|miopen_\w+|\w*addmm\w*|\w*bmm|_scaled_mm|_\w*attention\w*"
    r"|scaled_dot_product\w*)|\b\w+::\w*(?:attn|attention|gemm|conv)\w*",
    re.IGNORECASE,
)
"""Operators whose work depends on more than the shapes of their inputs. A word is looked at from its beginning only."""


def number(text: bytes) -> bytes:
    """A number, or its text."""
    if _NUMBER.fullmatch(text) or _NUMERIC_TEXT.fullmatch(text):
        return text
    return UNUSABLE_TEXT if text[:1] == b'"' else UNUSABLE


def dims(text: bytes) -> bytes | None:
    """Nested lists of numbers."""
    return _SPACE.sub(b"", text) if text[:1] == b"[" and _NUMBER_LIST.fullmatch(text) else None


def rules(tokens: Tokens, names: Names, *, stacks: bool) -> Mapping[str, Rule]:
    """The rule of each argument that stays.

    Args:
        tokens: make what replaces words.
        names: treat what stands in stacks.
        stacks: whether call stacks stay.
    """
    group = _word(known.GROUP_NAME, lambda word: tokens.of(word, "name of a process group"))
    other = _word(known.COLLECTIVES, lambda word: tokens.of(word, "unknown word"))
    kept: dict[str, Rule] = dict.fromkeys(NUMBERS, number)
    kept |= dict.fromkeys(SHAPES, dims)
    kept |= {
        "Process Group Name": group,
        "Process Group ID": group,
        "Process Group Description": group,
        "Process Group Ranks": _word(known.NUMBER_LIST, lambda _: "?"),
        "In split size": _word(known.NUMBER_LIST, lambda _: "?"),
        "Out split size": _word(known.NUMBER_LIST, lambda _: "?"),
        "Collective name": other,
        "dtype": _word(known.TYPE_NAME, lambda word: tokens.of(word, "unknown word")),
        "cuda_sync_kind": _word(known.SYNC_KIND, lambda word: tokens.of(word, "unknown word")),
        "Input type": _words(known.TYPE_NAME),
        "Concrete Inputs": _words(known.CONCRETE),
    }
    if stacks:
        kept |= {"Call stack": _text(names.stack), "Module Hierarchy": _text(names.hierarchy)}
    return kept


def text_of(raw: bytes) -> str | None:
    """A JSON string's text, None where it is no string."""
    try:
        return msgspec.json.decode(raw, type=str)
    except (msgspec.DecodeError, RecursionError):
        return None


def _word(pattern: re.Pattern[str], otherwise: Callable[[str], str]) -> Rule:
    """A word of a vocabulary, a number; some writers quote words twice."""

    def rule(raw: bytes) -> bytes:
        if _NUMBER.fullmatch(raw):
            return raw
        text = text_of(raw)
        if text is None:
            return dims(raw) or UNUSABLE
        word = text.strip().removeprefix('"').removesuffix('"')
        return raw if pattern.fullmatch(word) else msgspec.json.encode(otherwise(word))

    return rule


def _words(pattern: re.Pattern[str]) -> Rule:
    """A list of words of a vocabulary; others are only marked."""
    known_texts: dict[bytes, bytes | None] = {}

    def rule(raw: bytes) -> bytes | None:
        if raw not in known_texts:
            known_texts[raw] = _list_text(raw, pattern)
        return known_texts[raw]

    return rule


def _list_text(raw: bytes, pattern: re.Pattern[str]) -> bytes | None:
    try:
        found = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return None
    return msgspec.json.encode(_only(found, pattern)) if isinstance(found, list) else None


def _only(value: object, pattern: re.Pattern[str]) -> object:
    """Lists of words, numbers and nothing else."""
    if isinstance(value, list):
        return [_only(item, pattern) for item in value]
    if isinstance(value, str):
        return value if pattern.fullmatch(value) else "?"
    return value if isinstance(value, int) else None


def _text(treated: Callable[[str], str]) -> Rule:
    def rule(raw: bytes) -> bytes:
        text = text_of(raw)
        if text is None:
            return number(raw)
        clean = treated(text)
        return raw if clean == text else msgspec.json.encode(clean)

    return rule
