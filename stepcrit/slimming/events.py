"""One event of a trace, written anew: what is known stays, what tells of people and places goes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias

import msgspec
from msgspec import Struct

from stepcrit.ingest.columns import label
from stepcrit.ingest.decoded import Event
from stepcrit.ingest.dialect import meaning_of
from stepcrit.ingest.times import MAX_NS, MIN_NS, to_ns
from stepcrit.model.events import Side
from stepcrit.slimming import vocabulary as known
from stepcrit.slimming.metadata import label_args
from stepcrit.slimming.names import Names
from stepcrit.slimming.tokens import Tokens
from stepcrit.slimming.tracks import Tracks
from stepcrit.slimming.values import (
    CONCRETE_OPS,
    DEVICE_ONLY,
    SHAPED,
    UNUSABLE,
    UNUSABLE_TEXT,
    Rule,
    rules,
    text_of,
)

_ABSENT = b""
_STRAY, _UNREADABLE = b"null", b'{"ph":[]}'
"""What stays of an element that is no event, and of an event that the reader cannot use: it counts both."""

_TIME = re.compile(rb'"?\s*[-+]?\d{1,30}(?:\.\d*)?(?:[eE][-+]?\d{1,3})?\s*"?|null')
_SCALAR = re.compile(rb"-?\d[\d.eE+-]*|null")
_LETTER = re.compile(rb'"[a-z]"')
_RANGES = frozenset({"user_annotation", "gpu_user_annotation", "gpu_user_Annotation", "collective_comm"})

_ROWS, _ARROWS, _INSTANTS = frozenset("XBE"), frozenset("sf"), frozenset("iIR")

PYTHON = "python_function"


Fields: TypeAlias = Mapping[str, bytes]
"""One event: JSON text of each value."""


class Keeping(Struct, frozen=True):
    """What stays beside operators, kernels and calls.

    Attributes:
        stacks: Python frames and call stacks.
        flows: flow arrows, which are read where nothing else ties launches to device work.
        window_ns: (from, to) of arrows and allocator events, as the file counts; None for all.
    """

    stacks: bool
    flows: bool
    window_ns: tuple[int, int] | None

    def has(self, ts: bytes) -> bool:
        """Whether a time lies in the window; one that is no number is not known to lie outside."""
        at = to_ns(ts) if self.window_ns else None
        return self.window_ns is None or at is None or self.window_ns[0] <= at <= self.window_ns[1]


class EventWriter:
    """Writes the events of one trace anew.

    Attributes:
        left_out: events that were not written, by what they are.
    """

    def __init__(self, keeping: Keeping, tokens: Tokens, names: Names, tracks: Tracks) -> None:
        self.left_out: Counter[str] = Counter()
        self._keeping, self._tokens, self._names, self._tracks = keeping, tokens, names, tracks
        self._rules: Mapping[str, Rule] = rules(tokens, names, stacks=keeping.stacks)
        self._reader = msgspec.json.Decoder(Event)
        self._members = msgspec.json.Decoder(dict[str, msgspec.Raw])
        self._labels: set[bytes] = set()
        self._name_texts: dict[tuple[str, bytes], bytes] = {}
        self._places: dict[tuple[bytes, bytes], bytes] = {}

    def write(self, raw: bytes) -> bytes | None:
        """The text of an event that stays, None for one that does not."""
        try:
            self._reader.decode(raw)
        except (msgspec.DecodeError, RecursionError):
            return _UNREADABLE if raw[:1] == b"{" else _STRAY
        event = {key: bytes(value) for key, value in self._members.decode(raw).items()}
        phase = text_of(event.get("ph", _ABSENT))
        cat = text_of(event.get("cat", _ABSENT)) or ""
        why = self._why_not(phase, cat, event)
        if why:
            self.left_out[why] += 1
            return None
        return self._label(event) if phase == "M" else self._event(phase, cat, event)

    def _why_not(self, phase: str | None, cat: str, event: Fields) -> str:
        """What an event is that no analysis reads, "" for others."""
        if phase in _ROWS:
            # which row an E ends is told by where it stands, not by its category
            is_frame = cat == PYTHON and phase != "E"
            return "Python frames" if is_frame and not self._keeping.stacks else ""
        if phase in _ARROWS:
            ts = event.get("ts", _ABSENT)
            is_read = self._keeping.has(ts) if self._keeping.flows else not _is_time(ts)
            return "" if is_read else "flow arrows"  # a time that cannot be read is a loss that is counted
        if phase in _INSTANTS:
            is_read = text_of(event.get("name", _ABSENT)) in known.INSTANTS
            return "" if is_read and self._keeping.has(event.get("ts", _ABSENT)) else "instants"
        is_label = phase == "M" and text_of(event.get("name", _ABSENT)) in known.METADATA
        return "" if is_label else "other events that are not read"

    def _event(self, phase: str | None, cat: str, event: Fields) -> bytes:
        """An event that is no label."""
        parts = (
            (b'"ph":', event["ph"]),
            (b'"cat":', self._word(event.get("cat", _ABSENT), lambda text: text in known.CATS, "category")),
            (b'"name":', self._name(phase, cat, event.get("name", _ABSENT))),
            (b"", self._place(event)),
            (b'"ts":', _time(event.get("ts", _ABSENT))),
            (b'"dur":', _time(event.get("dur", _ABSENT))),
            (
                b'"id":',
                self._word(
                    event.get("id", _ABSENT), lambda text: bool(known.NUMERIC_TEXT.fullmatch(text)), "id"
                ),
            ),
            (b'"bp":', _letter(event.get("bp", _ABSENT))),
            (b'"s":', _letter(event.get("s", _ABSENT))),
            (b'"args":', self._arguments(cat, event)),
        )
        return b"{" + b",".join([key + value for key, value in parts if value]) + b"}"

    def _name(self, phase: str | None, cat: str, raw: bytes) -> bytes:
        """The name, treated as that of a range, a frame, an operator, or as nothing that is known."""
        if raw[:1] != b'"':
            return _scalar(raw)
        key = (cat, raw)
        if key not in self._name_texts:
            text = text_of(raw) or ""
            clean = text if phase in _INSTANTS else self._treated(cat, text)
            self._name_texts[key] = raw if clean == text else msgspec.json.encode(clean)
        return self._name_texts[key]

    def _treated(self, cat: str, text: str) -> str:
        if cat in _RANGES:
            return self._names.range(text)
        if cat == PYTHON:
            return self._names.frame(text)
        if cat not in known.CATS:
            return self._tokens.of(text, "name of an unknown category")
        if cat in SHAPED:
            return self._names.operation(text)
        return self._names.operator(text)

    def _place(self, event: Fields) -> bytes:
        """The process and the thread, with their keys."""
        key = (event.get("pid", _ABSENT), event.get("tid", _ABSENT))
        if key not in self._places:
            pid, tid = _text(event.get("pid", _ABSENT)), _text(event.get("tid", _ABSENT))
            parts = []
            if event.get("pid"):
                parts.append(b'"pid":' + _as_written(event["pid"], pid, self._tracks.pid))
            if event.get("tid"):
                parts.append(b'"tid":' + _as_written(event["tid"], tid, partial(self._tracks.tid, pid or "")))
            self._places[key] = b",".join(parts)
        return self._places[key]

    def _word(self, raw: bytes, is_known: Callable[[str], bool], what: str) -> bytes:
        """A word of a vocabulary, else its token."""
        if raw[:1] != b'"':
            return _scalar(raw)
        text = text_of(raw) or ""
        return raw if is_known(text) else msgspec.json.encode(self._tokens.of(text, what))

    def _arguments(self, cat: str, event: Fields) -> bytes:
        """The arguments that stay."""
        raw = event.get("args", _ABSENT) or event.get("attr", _ABSENT)
        if not raw:
            return b""
        try:
            found = self._members.decode(raw)
        except (msgspec.DecodeError, RecursionError):
            return b"0"  # unreadable before, unreadable now
        kept = []
        for key, value in found.items():
            rule = self._rules.get(key)
            if rule is None or not self._is_asked(cat, key, event):
                continue
            text = rule(bytes(value))
            if text is not None:
                kept.append(b'"' + key.encode() + b'":' + text)
        return b"{" + b",".join(kept) + b"}" if kept else b""

    def _is_asked(self, cat: str, key: str, event: Fields) -> bool:
        """Whether an argument tells anything on a row of this category."""
        if key in DEVICE_ONLY:
            meaning = meaning_of(cat)
            return meaning is None or meaning[1] != Side.HOST
        if key == "Concrete Inputs":
            return cat in SHAPED and bool(CONCRETE_OPS.search(text_of(event.get("name", _ABSENT)) or ""))
        return True

    def _label(self, event: Fields) -> bytes | None:
        """A name of a process or a thread; files may repeat one 300 000 times."""
        try:
            found = msgspec.json.decode(event.get("args", _ABSENT) or b"{}", type=dict[str, object])
        except (msgspec.DecodeError, RecursionError):
            found = {}
        name, track = (
            text_of(event.get("name", _ABSENT)) or "",
            (_text(event.get("pid", _ABSENT)) or "", _text(event.get("tid", _ABSENT)) or ""),
        )
        args = msgspec.json.encode(label_args(name, track, found, self._tracks, self._tokens))
        parts = [b'"ph":"M"', b'"name":' + event.get("name", _ABSENT), self._place(event), b'"args":' + args]
        told = b"{" + b",".join(part for part in parts if part) + b"}"
        if told in self._labels:
            self.left_out["repeated names of threads"] += 1
            return None
        self._labels.add(told)
        return told


def _text(raw: bytes) -> str | None:
    """A pid or tid as the reader calls it; None for what cannot be one."""
    if not raw:
        return ""
    try:
        return label(msgspec.json.decode(raw, type=str | int | float | None))
    except (msgspec.DecodeError, RecursionError):
        return None


def _as_written(raw: bytes, was: str | None, renumbered: Callable[[str], int | str]) -> bytes:
    """A pid or tid under its new number; the file's own text where it keeps it."""
    if was is None:
        return UNUSABLE
    now = renumbered(was)
    return raw if str(now) == was else msgspec.json.encode(now)


def _letter(raw: bytes) -> bytes:
    """A letter that tells how an arrow is bound; of another value nothing stays."""
    return raw if _LETTER.fullmatch(raw) else b""


def _scalar(raw: bytes) -> bytes:
    """A number or null, else something as unusable as what was there."""
    return raw if not raw or _SCALAR.fullmatch(raw) else UNUSABLE


def _is_time(raw: bytes) -> bool:
    """Whether the reader can use a time."""
    at = to_ns(raw)
    return at is not None and MIN_NS <= at <= MAX_NS


def _time(raw: bytes) -> bytes:
    """A time, digit for digit."""
    if not raw or _TIME.fullmatch(raw):
        return raw
    return UNUSABLE_TEXT if raw[:1] == b'"' else UNUSABLE
