"""The arguments stepcrit asks for, read in bulk; one that lies about its type counts as absent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, TypeAlias, TypeVar

import msgspec

from stepcrit.ingest.columns import label
from stepcrit.model.arrays import NONE

Number: TypeAlias = int | str
"""A whole number, or its text: writers disagree (`"bytes": 128` and `"bytes": "128"`)."""

NO_ARGUMENTS = msgspec.Raw(b"{}")
NO_TEXT = msgspec.Raw(b"")
"""Stands for a list that an event does not give."""

UNKNOWN_BYTES = ""
"""Stands for the bytes an allocator event does not give: -1 is a size like others there."""


class Arguments(msgspec.Struct, frozen=True, gc=False):
    """Arguments of rows with a duration."""

    correlation: Number = NONE
    npu_correlation: Number = msgspec.field(default=NONE, name="correlation_id")
    external_id: Number = msgspec.field(default=NONE, name="External id")
    old_external_id: Number = msgspec.field(default=NONE, name="external id")
    python_id: Number = msgspec.field(default=NONE, name="Python id")
    seq: Number = msgspec.field(default=NONE, name="Sequence number")
    nbytes: Number = msgspec.field(default=NONE, name="bytes")
    old_nbytes: Number = msgspec.field(default=NONE, name="Bytes")
    size: Number = NONE
    stream: Number = NONE
    sycl_queue: Number = msgspec.field(default=NONE, name="sycl queue")
    l0_queue: Number = msgspec.field(default=NONE, name="l0 queue")
    device: Number = NONE
    stack: str = msgspec.field(default="", name="Call stack")
    module: str = msgspec.field(default="", name="Module Hierarchy")
    # Lists stay text: few of them differ, and each is looked at once (see `written_list`).
    shapes: msgspec.Raw = msgspec.field(default=NO_TEXT, name="Input Dims")
    old_shapes: msgspec.Raw = msgspec.field(default=NO_TEXT, name="Input dims")
    dtypes: msgspec.Raw = msgspec.field(default=NO_TEXT, name="Input type")
    # Rows with one of these keep all their arguments.
    collective: str = msgspec.field(default="", name="Collective name")
    graph: int = msgspec.field(default=0, name="graph id")


class MemoryArguments(msgspec.Struct, gc=False):
    """Arguments of an allocator event."""

    nbytes: Number = msgspec.field(default=UNKNOWN_BYTES, name="Bytes")
    allocated: Number = msgspec.field(default=NONE, name="Total Allocated")
    reserved: Number = msgspec.field(default=NONE, name="Total Reserved")
    device_type: Number = msgspec.field(default=NONE, name="Device Type")
    device: Number = msgspec.field(default=NONE, name="Device Id")


Shape = TypeVar("Shape", Arguments, MemoryArguments)


class ArgumentReader:
    """Decodes the arguments of many events at once."""

    def __init__(self, dropped: Counter[str]) -> None:
        self._dropped = dropped
        self._arguments = msgspec.json.Decoder(list[Arguments])
        self._memory = msgspec.json.Decoder(list[MemoryArguments])

    def many(self, texts: Sequence[msgspec.Raw]) -> list[Arguments]:
        """The arguments of rows with a duration."""
        return self._read(self._arguments, texts, Arguments)

    def memory(self, texts: Sequence[msgspec.Raw]) -> list[MemoryArguments]:
        """The arguments of allocator events."""
        return self._read(self._memory, texts, MemoryArguments)

    def all_of(self, text: msgspec.Raw) -> dict[str, Any]:
        """Every argument of one row."""
        found = _values(text)
        if found is not None:
            return found
        self._dropped["arguments that cannot be read, taken as absent"] += 1
        return {}

    def _read(
        self, decoder: msgspec.json.Decoder[list[Shape]], texts: Sequence[msgspec.Raw], shape: type[Shape]
    ) -> list[Shape]:
        """Decode all, and one by one only when that fails."""
        try:
            return decoder.decode(b"[" + b",".join(texts) + b"]")
        except (msgspec.DecodeError, RecursionError):
            return [self._read_one(text, shape) for text in texts]

    def _read_one(self, text: msgspec.Raw, shape: type[Shape]) -> Shape:
        """Decode one event's arguments, leaving out those of a wrong type."""
        try:
            return msgspec.json.decode(text, type=shape)
        except (msgspec.DecodeError, RecursionError):
            found, lists = self.all_of(text), _texts_of(text) or {}
        sound: dict[str, Any] = {}
        for field in _FIELDS[shape]:
            # what is there and not found could not be read
            value = found.get(field.encode_name, ... if field.encode_name in lists else None)
            if field.type is msgspec.Raw:
                sound[field.name] = lists.get(field.encode_name, NO_TEXT)
            elif _is_of(value, field.type):
                sound[field.name] = value
            elif value is not None:
                self._dropped[unusable(field.encode_name)] += 1
        return shape(**sound)


def _values(text: msgspec.Raw) -> dict[str, Any] | None:
    """Every argument that can be read; None where they are no object.

    A number that no float holds (1e999) can not, and is no reason to lose the others.
    """
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        value = _one_by_one(text)
    return value if isinstance(value, dict) else None


def _one_by_one(text: msgspec.Raw) -> dict[str, Any] | None:
    """The arguments that can be read alone."""
    texts = _texts_of(text)
    if texts is None:
        return None
    found: dict[str, Any] = {}
    for name, value in texts.items():
        with suppress(msgspec.DecodeError, RecursionError):
            found[name] = msgspec.json.decode(value)
    return found


def _texts_of(text: msgspec.Raw) -> dict[str, msgspec.Raw] | None:
    """The arguments as they are written; None where they are no object."""
    try:
        return msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, RecursionError):
        return None


def unusable(argument: str) -> str:
    """The reason under which values of an argument are counted that are not what it should hold."""
    return f'argument "{argument}" is unusable, taken as absent'


def written_list(text: bytes) -> str:
    r"""A JSON list without blanks, so that lists that say the same are the same text; "" for all else.

    Lists that some writers quote are unquoted. An empty list says nothing of any input, like none at all.

    >>> written_list(b"[[2, 3],\n []]"), written_list(b'"[[2,3], []]"'), written_list(b"[]"), written_list(b"7")
    ('[[2,3],[]]', '[[2,3],[]]', '', '')
    """
    try:
        value = msgspec.json.decode(text) if text else None
        value = msgspec.json.decode(value) if isinstance(value, str) and value else value
        return label(msgspec.json.encode(value).decode()) if isinstance(value, list) and value else ""
    except (msgspec.DecodeError, RecursionError):
        return ""


SAYS_NOTHING = frozenset({b"", b"null", b"[]", b'""', b'"[]"'})
"""Texts of a list that is absent, and no fault of the writer's."""

_FIELDS = {shape: msgspec.structs.fields(shape) for shape in (Arguments, MemoryArguments)}


def _is_of(value: object, kind: object) -> bool:
    """Whether a decoded value fits a field."""
    if isinstance(value, str):
        return kind is not int
    return kind is not str and isinstance(value, int) and not isinstance(value, bool)
