"""The words that schemas are written in: few kinds of values, and objects that hold exactly the keys they name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

Shape: TypeAlias = dict[str, Any]
"""A JSON Schema."""

TEXT: Shape = {"type": "string"}
FLAG: Shape = {"type": "boolean"}
NUMBER: Shape = {"type": "number"}
INTEGER: Shape = {"type": "integer"}
COUNT: Shape = {"type": "integer", "minimum": 0}
SPAN: Shape = {"type": "integer", "minimum": 0}
"""A duration or a size."""
SHARE: Shape = {"type": "number", "minimum": 0, "maximum": 1}


def keys(**shapes: Shape) -> Shape:
    """An object with these keys, all of them, and no other."""
    return {
        "type": "object",
        "properties": shapes,
        "required": sorted(shapes),
        "additionalProperties": False,
    }


def also(shape: Shape, **shapes: Shape) -> Shape:
    """An object with further keys that may be there."""
    return {**shape, "properties": {**shape["properties"], **shapes}}


def by_name(shape: Shape, names: Iterable[str] | None = None) -> Shape:
    """An object from names, of a trace or of a list, to values."""
    told: Shape = {"type": "object", "additionalProperties": shape}
    return told if names is None else {**told, "propertyNames": {"enum": sorted(names)}}


def rows(shape: Shape) -> Shape:
    """A list."""
    return {"type": "array", "items": shape}


def one_of(words: Iterable[str]) -> Shape:
    """One of a few words."""
    return {"enum": sorted(words)}


def const(value: object) -> Shape:
    """This value alone."""
    return {"const": value}


def maybe(shape: Shape) -> Shape:
    """A value that may not be known: `unknown` then has its path and the reason."""
    kinds = shape.get("type")
    if kinds is not None:
        return {**shape, "type": [*([kinds] if isinstance(kinds, str) else kinds), "null"]}
    return {"anyOf": [shape, {"type": "null"}]}


def either(*shapes: Shape) -> Shape:
    """One of several forms."""
    return {"anyOf": list(shapes)}


def described(shape: Mapping[str, Any], words: Mapping[str, str]) -> Shape:
    """The same schema with a description beside each key that has words.

    Args:
        shape: a schema.
        words: key -> description; a key that is not in it keeps what it has.
    """
    told: Shape = {}
    for key, value in shape.items():
        if key == "properties":
            told[key] = {name: _described(name, inner, words) for name, inner in value.items()}
        elif isinstance(value, Mapping):
            told[key] = described(value, words)
        elif isinstance(value, list):
            told[key] = [described(one, words) if isinstance(one, Mapping) else one for one in value]
        else:
            told[key] = value
    return told


def _described(name: str, shape: Mapping[str, Any], words: Mapping[str, str]) -> Shape:
    inner = described(shape, words)
    return {**inner, "description": words[name]} if name in words and "description" not in inner else inner
