"""The header is the label on the box: any key may lack, lie or come last."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from stepcrit.ingest.times import MAX_NS
from stepcrit.model.arrays import NONE
from stepcrit.model.trace import Device, ProcessGroup

_OPTIONS = ("record_shapes", "with_stack", "profile_memory", "with_flops", "with_modules")
_NOTE_KEYS = ("WARNING", "ERROR")
_WHOLE = re.compile(rb'"?(\d{1,19})(?:\.0*)?"?\Z')
_RANK_LIST = re.compile(r"\[[\d,\s]*\]\Z")


class Header(Struct, frozen=True):
    """What the header says, in the terms of model.trace.TraceMeta."""

    base_ns: int
    rank: int
    world_size: int
    backend: str
    devices: tuple[Device, ...]
    groups: tuple[ProcessGroup, ...]
    options: frozenset[str]
    versions: Mapping[str, str]
    notes: tuple[str, ...]


def read_header(texts: Mapping[str, bytes]) -> Header:
    """Read the header.

    Args:
        texts: JSON text of every top-level value but the events, by key.

    Returns:
        What it says; what it does not say, or says in an unusable way, is unknown.
    """
    job = _mapping(_decode(texts, "distributedInfo"))
    devices = _decode(texts, "deviceProperties") or _decode(texts, "computeProperties")
    return Header(
        base_ns=_base_ns(texts.get("baseTimeNanoseconds", b"")),
        rank=_whole(job.get("rank")),
        world_size=_whole(job.get("world_size")),
        backend=_text(job.get("backend")),
        devices=tuple(_device(entry) for entry in _mappings(devices)),
        groups=tuple(_group(entry) for entry in _mappings(job.get("pg_config"))),
        options=frozenset(key for key in _OPTIONS if _decode(texts, key)),
        versions=_versions(texts, job),
        notes=tuple(line for key in _NOTE_KEYS for line in _lines(key, _decode(texts, key))),
    )


def _decode(texts: Mapping[str, bytes], key: str) -> Any:
    """The value of a key, or None."""
    try:
        return msgspec.json.decode(texts[key]) if key in texts else None
    except (msgspec.DecodeError, RecursionError):
        return None  # not UTF-8, or absurdly nested: its bounds were found, its content is lost


def _base_ns(text: bytes) -> int:
    """The base, from its text: a float64 would round it to 256 ns."""
    match = _WHOLE.match(text)
    base = int(match[1]) if match else NONE
    return base if base <= MAX_NS else NONE


def _device(entry: Mapping[str, Any]) -> Device:
    """One entry of deviceProperties."""
    return Device(
        id=_whole(entry.get("id")),
        name=_text(entry.get("name")),
        sm_count=_whole(entry.get("numSms")),
        compute_major=_whole(entry.get("computeMajor")),
        compute_minor=_whole(entry.get("computeMinor")),
    )


def _group(entry: Mapping[str, Any]) -> ProcessGroup:
    """One entry of pg_config. On-demand traces write the ranks as text, shortened when they are many."""
    ranks = entry.get("ranks")
    if isinstance(ranks, str) and _RANK_LIST.match(ranks):
        ranks = [int(rank) for rank in re.findall(r"\d+", ranks)]
    members = [_whole(rank) for rank in ranks] if isinstance(ranks, list) else []
    return ProcessGroup(
        name=_text(entry.get("pg_name")),
        description=_text(entry.get("pg_desc") or entry.get("uid")),
        ranks=tuple(members) if NONE not in members else (),
    )


def _versions(texts: Mapping[str, bytes], job: Mapping[str, Any]) -> dict[str, str]:
    """Runtime, driver and library versions by key."""
    found = {key: _text(_decode(texts, key)) for key in sorted(texts) if key.endswith("_version")}
    found["nccl_version"] = _text(job.get("nccl_version"))
    return {key: version for key, version in found.items() if version}


def _lines(key: str, value: object) -> list[str]:
    """The log lines under a key."""
    lines = value if isinstance(value, list) else [value]
    texts = [line.strip() for line in lines if isinstance(line, str)]
    return [text if text.startswith(key) else f"{key}: {text}" for text in texts]


def _mapping(value: object) -> Mapping[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def _mappings(value: object) -> list[Mapping[str, Any]]:
    """The objects of a list."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _whole(value: object) -> int:
    """A whole number not below 0, or its text; else NONE."""
    if isinstance(value, str) and value.isdecimal() and len(value) < 10:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31 else NONE


def _text(value: object) -> str:
    """Text, or a number as text; else ""."""
    return str(value) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else ""
