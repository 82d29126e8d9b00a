"""A trace file becomes a `RawTrace`, or one clear reason why not."""

from __future__ import annotations

import os
from typing import BinaryIO

from msgspec.structs import replace

from stepcrit.errors import BrokenInputError, EmptyInputError, InputError
from stepcrit.ingest import sniff
from stepcrit.ingest.decoded import Event
from stepcrit.ingest.dialect import Features, is_torch, words_of
from stepcrit.ingest.envelope import Document
from stepcrit.ingest.limits import Limits, over
from stepcrit.ingest.metadata import read_header
from stepcrit.ingest.rows import RowCollector
from stepcrit.ingest.scanned import readers
from stepcrit.ingest.slimmark import SLIM_KEY, read_mark, with_marked
from stepcrit.ingest.source import Source, open_source
from stepcrit.ingest.tables import Tables, build_tables
from stepcrit.model.arrays import NONE
from stepcrit.model.events import EventKind, EventTable
from stepcrit.model.slim import SlimMark
from stepcrit.model.trace import Harm, RawTrace, TraceMeta

CHUNK_BYTES = 1 << 20
"""Text decoded at a time. 256 KiB to 8 MiB are equally fast, but the plain form's structs of a chunk take eight
times its text."""

LOSS_LIMIT = 0.05
"""A trace that has lost a larger part is read only where that is asked for."""

_WAS_DAMAGED = "The trace that this one was slimmed from was damaged."

_KINETO_KEYS = frozenset(
    {"schemaVersion", "deviceProperties", "computeProperties", "baseTimeNanoseconds", "distributedInfo"}
)


def read_trace(
    source: str | os.PathLike[str] | BinaryIO,
    *,
    chunk_bytes: int = CHUNK_BYTES,
    limits: Limits = Limits(),  # noqa: B008 - frozen
    salvage: bool = False,
) -> RawTrace:
    """Read one torch.profiler trace.

    Text that is no JSON is repaired where its meaning is clear; events that cannot be read are left out. What
    was done is told by `meta.damage`.

    Args:
        source: a path, a folder that holds one trace, a binary stream, or "-" for standard input.
            Plain JSON, gzip and zstd are told apart by their first bytes.
        chunk_bytes: how much text to decode at a time.
        limits: the most that may be read.
        salvage: use what is left of a trace that has lost more than LOSS_LIMIT of its text.

    Returns:
        The trace's label and its events as read-only columns.

    Raises:
        InputError: one of its subclasses, when the input is missing, empty, broken or no such trace.
        PartialError: the file was changed while it was read.
        UsageError: it is compressed with zstd, which an extra reads that is not installed.
    """
    with open_source(source, limits) as opened:
        try:
            return _read(opened, chunk_bytes, limits, salvage=salvage)
        except InputError as error:
            error.where = f"{opened.name}, {error.where}" if error.where else opened.name
            raise


def _read(source: Source, chunk_bytes: int, limits: Limits, *, salvage: bool) -> RawTrace:
    """Sniff, walk, tabulate, label."""
    head = source.peek(sniff.HEAD_BYTES)
    if source.log.error and not head:
        raise _holds_nothing(source, source.log.error)
    sniff.refuse_bytes(head)
    decoder, collected = readers(limits)
    document: Document[Event] = Document(source.read, decoder, chunk_bytes, source.log, limits)
    for events in document.events():
        collected.take(events)
        if collected.count > limits.events:
            raise over("events", "There are more events than are allowed", limits.events)
    if source.log.error and not collected.count:
        is_known = sniff.form_of_keys(document.keys)
        raise sniff.foreign(dict.fromkeys(document.keys, b""), b"", ()) if is_known else source.log.error
    mark = read_mark(document.header.get(SLIM_KEY))
    tables = build_tables(collected, mark.first_ns if mark else None)
    if not _is_trace(document, collected, tables.events):
        raise sniff.foreign(document.header, document.sample, tables.events.cats)
    lost_share = max(_lost_share(source), mark.lost_share if mark else 0.0)
    if lost_share > LOSS_LIMIT and not salvage:
        raise _too_much(source, lost_share, collected.count)
    return RawTrace(
        meta=_slimmed(_meta(source, document, collected, tables, lost_share), mark),
        events=tables.events,
        flows=tables.flows,
        memory=tables.memory,
    )


def _holds_nothing(source: Source, error: BrokenInputError) -> InputError:
    """The error about a compressed stream that gives no text at all."""
    if source.log.has(Harm.PACK_CUT):
        return EmptyInputError(
            f"The {source.compression} stream stops before it holds anything.",
            do="Check that the trace was written and copied in full.",
        )
    return error


def _lost_share(source: Source) -> float:
    """The part of the input that nothing came of: of its text, or of its bytes where they would not unpack."""
    of_text = source.log.lost_bytes / max(source.json_bytes, 1)
    return max(of_text, source.log.lost_input_bytes / max(source.input_bytes, 1))


def _too_much(source: Source, lost_share: float, count: int) -> BrokenInputError:
    """The error about a trace that has lost too much."""
    cause = source.log.error
    found = source.log.found
    what = cause.what if cause else f"The input is damaged: {found[0].harm}." if found else _WAS_DAMAGED
    kept = f"{count:,} event{'' if count == 1 else 's'} can be read".replace(",", " ")
    advice = f"{cause.do} " if cause and cause.do else ""
    return BrokenInputError(
        f"{what} {100 * lost_share:.0f} % of the input cannot be used; {kept}.",
        where=cause.where if cause else "",
        do=f"{advice}To use what is left: --salvage.",
    )


def _is_trace(document: Document[Event], collected: RowCollector, events: EventTable) -> bool:
    """Whether anything here comes from torch.profiler: a header key, an event understood, a name."""
    if not collected.count:
        return False
    if not _KINETO_KEYS.isdisjoint(document.keys) or (events.kind != EventKind.OTHER).any():
        return True
    return is_torch(events.cats, events.names)


def _meta(
    source: Source, document: Document[Event], collected: RowCollector, tables: Tables, lost_share: float
) -> TraceMeta:
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
        damage=source.log.found,
        lost_share=lost_share,
        skipped=source.skipped,
    )


def _slimmed(meta: TraceMeta, mark: SlimMark | None) -> TraceMeta:
    """The label of a slimmed trace: what it was made from had damage and words that it no longer shows."""
    if mark is None:
        return meta
    return replace(meta, slim=mark, damage=with_marked(meta.damage, mark), dialect=mark.dialect)


def _span(events: EventTable) -> tuple[int, int]:
    """The profiler's own recording span, from its bookkeeping rows."""
    own = events.kind == EventKind.PROFILER
    if not own.any():
        return (NONE, NONE)
    return int(events.start_ns[own].min()), int(events.end_ns[own].max())
