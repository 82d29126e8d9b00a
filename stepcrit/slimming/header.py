"""The header of a slimmed trace: what an analysis reads of it, and the mark of what was done."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from stepcrit.ingest.slimmark import SLIM_KEY
from stepcrit.slimming import vocabulary as known
from stepcrit.slimming.tokens import Tokens

_EVENTS = "traceEvents"


def identity_words(header: Mapping[str, bytes]) -> tuple[str, ...]:
    """The words of a header that name a host, a user or a job, to be looked for in names."""
    found: list[str] = []
    for key, what in known.HEADER_IDENTITY.items():
        value = _decoded(header.get(key)) if what not in ("trace name", "trace id") else None
        if isinstance(value, str):
            found += (value, value.partition(".")[0])  # a host goes by its first part as well
    return tuple(found)


def slim_header(header: Mapping[str, bytes], tokens: Tokens) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """The header values that stay, by key, and the keys that do not."""
    kept: dict[str, bytes] = {}
    for key, raw in header.items():
        text = None if key in (SLIM_KEY, _EVENTS) else _value(key, raw, tokens)
        if text is not None:
            kept[key] = text
    return kept, tuple(key for key in header if key not in kept and key not in (SLIM_KEY, _EVENTS))


def is_known_key(key: str) -> bool:
    """Whether a header key is one that profilers write, so that what goes with it tells nothing."""
    return key in known.HEADER_LEFT_OUT


def _value(key: str, raw: bytes, tokens: Tokens) -> bytes | None:
    """The text that stays of one value, None where nothing does."""
    value = _decoded(raw)
    if key in known.HEADER_NUMBERS or key == "displayTimeUnit":
        is_known = _is_number(value) or (key == "displayTimeUnit" and value in ("ms", "ns"))
        return raw if is_known else None  # as the file spells it
    if key in known.HEADER_IDENTITY:
        word = value if isinstance(value, str) else raw.decode(errors="replace")
        return msgspec.json.encode(tokens.of(word, known.HEADER_IDENTITY[key]))
    if key in known.HEADER_VERSIONS:
        return msgspec.json.encode(_version(value))
    found = _PARTS.get(key)
    return msgspec.json.encode(found(value, tokens)) if found else None


def _decoded(raw: bytes | None) -> Any:
    try:
        return msgspec.json.decode(raw) if raw is not None else None
    except (msgspec.DecodeError, RecursionError):
        return None


def _version(value: object) -> object:
    if isinstance(value, int | float):
        return value
    return value if isinstance(value, str) and known.VERSION_TEXT.fullmatch(value) else ""


def _lines(value: object) -> Iterable[str]:
    lines = value if isinstance(value, list) else [value]
    return (line for line in lines if isinstance(line, str))


def _mappings(value: object) -> Iterable[Mapping[str, Any]]:
    return (one for one in value if isinstance(one, dict)) if isinstance(value, list) else ()


def _device(entry: Mapping[str, Any], tokens: Tokens) -> dict[str, Any]:
    """One entry of deviceProperties."""
    kept = {key: value for key, value in entry.items() if key in known.DEVICE_NUMBERS and _is_number(value)}
    name = entry.get("name")
    if isinstance(name, str):
        kept["name"] = name if known.DEVICE_NAME.fullmatch(name) else tokens.of_product(name, "device name")
    return kept


def _job(value: object, tokens: Tokens) -> dict[str, Any]:
    """distributedInfo: numbers, and the words that torch.distributed gives backends and groups."""
    job = value if isinstance(value, dict) else {}
    kept: dict[str, Any] = {
        key: job[key] for key in ("rank", "world_size", "pg_count") if _is_number(job.get(key))
    }
    if "backend" in job:
        kept["backend"] = _word(job["backend"], known.BACKEND.fullmatch, "backend", tokens)
    if "nccl_version" in job:
        kept["nccl_version"] = _version(job["nccl_version"])
    if "pg_config" in job:
        kept["pg_config"] = [_group(one, tokens) for one in _mappings(job["pg_config"])]
    return kept


def _group(entry: Mapping[str, Any], tokens: Tokens) -> dict[str, Any]:
    """One entry of pg_config."""
    kept: dict[str, Any] = {}
    for key in ("pg_name", "pg_desc", "uid"):
        if key in entry:
            kept[key] = _word(entry[key], known.GROUP_NAME.fullmatch, "name of a process group", tokens)
    if "backend_config" in entry:
        kept["backend_config"] = _word(entry["backend_config"], known.BACKEND.fullmatch, "backend", tokens)
    if _is_number(entry.get("pg_size")):
        kept["pg_size"] = entry["pg_size"]
    ranks = entry.get("ranks")
    if isinstance(ranks, str) and known.NUMBER_LIST.fullmatch(ranks):
        kept["ranks"] = ranks
    elif isinstance(ranks, list):
        kept["ranks"] = [rank if _is_number(rank) else "?" for rank in ranks]
    return kept


def _word(value: object, is_known: Callable[[str], object], what: str, tokens: Tokens) -> object:
    if isinstance(value, str):
        return value if is_known(value) else tokens.of(value, what)
    return value if _is_number(value) else ""


def _is_number(value: object) -> bool:
    """A number, or one as text: writers disagree."""
    if isinstance(value, str):
        return bool(known.NUMERIC_TEXT.fullmatch(value))
    return isinstance(value, int | float)


_PARTS: Mapping[str, Callable[[object, Tokens], object]] = {
    **dict.fromkeys(
        known.HEADER_LOGS, lambda value, tokens: [tokens.of(line, "log line") for line in _lines(value)]
    ),
    **dict.fromkeys(
        ("deviceProperties", "computeProperties"),
        lambda value, tokens: [_device(one, tokens) for one in _mappings(value)],
    ),
    "distributedInfo": _job,
}
"""What is made of a value with parts."""
