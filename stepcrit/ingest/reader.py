"""A trace file becomes a `RawTrace`, or one clear reason why not."""

from __future__ import annotations

import os
from typing import BinaryIO

from stepcrit.errors import InputError
from stepcrit.ingest import sniff
from stepcrit.ingest.dialect import Features, is_torch, words_of
from stepcrit.ingest.envelope import Document
from stepcrit.ingest.metadata import read_header
from stepcrit.ingest.rows import Event, RowCollector, RowDecoder
from stepcrit.ingest.source import Source, open_source
from stepcrit.ingest.tables import Tables, build_tables
from stepcrit.model.arrays import NONE
from stepcrit.model.events import EventKind, EventTable
from stepcrit.model.trace import RawTrace, TraceMeta

CHUNK_BYTES = 1 << 20
"""Text decoded at a time. 256 KiB to 8 MiB are equally fast, but the structs of a chunk take eight
times its text: at 1 MiB the peak is 0.6 to 1.4 times the JSON (traces of 15 to 64 MB), at 4 MiB up to 3.4 times."""


_KINETO_KEYS = frozenset(
    {"schemaVersion", "deviceProperties", "computeProperties", "baseTimeNanoseconds", "distributedInfo"}
)


def read_trace(source: str | os.PathLike[str] | BinaryIO, *, chunk_bytes: int = CHUNK_BYTES) -> RawTrace:
    """Read one torch.profiler trace.

    Args:
        source: a path, a folder that holds one trace, a binary stream, or "-" for standard input.
            Plain JSON and gzip are told apart by their first bytes.
        chunk_bytes: how much text to decode at a time.

    Returns:
        The trace's label and its events as read-only columns.

    Raises:
        InputError: one of its subclasses, when the input is missing, empty, broken or no such trace.
    """
    with open_source(source) as opened:
        try:
            return _read(opened, chunk_bytes)
        except InputError as error:
            error.where = f"{opened.name}, {error.where}" if error.where else opened.name
            raise


def _read(source: Source, chunk_bytes: int) -> RawTrace:
    """Sniff, walk, tabulate, label."""
    sniff.refuse_bytes(source.peek(sniff.HEAD_BYTES))
    decoder = RowDecoder()
    document: Document[Event] = Document(source.read, decoder, chunk_bytes)
    collected = RowCollector(decoder)
    for events in document.events():
        collected.take(events)
    tables = build_tables(collected)
    if not _is_trace(document, collected, tables.events):
        raise sniff.foreign(document.header, document.sample, tables.events.cats)
    return RawTrace(
        meta=_meta(source, document, collected, tables),
        events=tables.events,
        flows=tables.flows,
        memory=tables.memory,
    )


def _is_trace(document: Document[Event], collected: RowCollector, events: EventTable) -> bool:
    """Whether anything here comes from torch.profiler: a header key, an event understood, a name."""
    if not collected.count:
        return False
    if not _KINETO_KEYS.isdisjoint(document.keys) or (events.kind != EventKind.OTHER).any():
        return True
    return is_torch(events.cats, events.names)


def _meta(source: Source, document: Document[Event], collected: RowCollector, tables: Tables) -> TraceMeta:
    """The label: what the header says, and what reading met."""
    header = read_header(document.header)
    base_ns = max(header.base_ns, 0)
    features = Features(
        document.is_array,
        document.keys,
        tables.events.cats,
        collected.dated,
        tables.whole_microseconds,
        tables.first_ns,
    )
    return TraceMeta(
        source=source.name,
        sha256=source.sha256,
        input_bytes=source.input_bytes,
        json_bytes=source.json_bytes,
        compression=source.compression,
        origin_ns=base_ns + tables.first_ns,
        base_ns=header.base_ns,
        rank=header.rank,
        world_size=header.world_size,
        backend=header.backend,
        devices=header.devices,
        groups=header.groups,
        options=header.options,
        versions=header.versions,
        header_keys=tuple(sorted(set(document.keys))),
        dialect=words_of(features),
        resolution_ns=1000 if tables.whole_microseconds else 1,
        span_ns=_span(tables.events),
        event_count=collected.count,
        phases=dict(sorted(collected.phases.items())),
        dropped={reason: count for reason, count in sorted(collected.dropped.items()) if count},
        unknown_cats=dict(sorted(tables.unknown_cats.items())),
        notes=header.notes,
    )


def _span(events: EventTable) -> tuple[int, int]:
    """The profiler's own recording span, from its bookkeeping rows."""
    own = events.kind == EventKind.PROFILER
    if not own.any():
        return (NONE, NONE)
    return int(events.start_ns[own].min()), int(events.end_ns[own].max())
