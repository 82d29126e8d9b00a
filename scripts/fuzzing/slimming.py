"""Bytes into `stepcrit slim`: what is read of a slimmed trace is what is read of the whole one."""

from __future__ import annotations

import io

from fuzzing.judge import Target, fault
from fuzzing.reading import damaged
from stepcrit.errors import InputError, UsageError
from stepcrit.ingest import read_trace
from stepcrit.model.events import EventKind
from stepcrit.model.trace import RawTrace
from stepcrit.slimming import SlimOptions, slim_trace

ALL = SlimOptions(steps="all", salvage=True)


def check_slimming(data: bytes) -> None:
    """The same rows and the same losses before and after, and nothing to do for a second time; or a refusal."""
    try:
        before = read_trace(io.BytesIO(data), salvage=True)
        once = slim_trace(io.BytesIO(data), ALL)
    except InputError as error:
        if not error.what or error.code in ("SC000", "SC300"):
            fault(f"a refusal without a reason or a code: {error!r}")
        return
    except UsageError:
        return  # compressed, and the extra that reads it is not installed
    after = read_trace(io.BytesIO(once.data), salvage=True)
    if _rows(after) != _rows(before):
        fault(f"other rows than before: {_other(_rows(before), _rows(after))}")
    if after.meta.is_cut != before.meta.is_cut or (before.meta.damage and not after.meta.damage):
        fault("a damaged trace has become a sound one")
    if slim_trace(io.BytesIO(once.data), ALL).data != once.data:
        fault("slimmed twice, it is another trace")


def _rows(trace: RawTrace) -> list[tuple[object, ...]]:
    """Every row that is no Python frame: when, what, on which lane, with which ids."""
    events = trace.events
    kept = (events.kind != EventKind.PYTHON).nonzero()[0]
    columns = (
        events.start_ns, events.end_ns, events.kind, events.correlation, events.external_id, events.nbytes,
    )  # fmt: skip
    return list(zip(*(column[kept].tolist() for column in columns), strict=True))


def _other(before: list[tuple[object, ...]], after: list[tuple[object, ...]]) -> str:
    """The first rows that differ."""
    pairs = [pair for pair in zip(before, after, strict=False) if pair[0] != pair[1]]
    return f"{len(before)} and {len(after)} rows; {pairs[:1]}"


SLIM = Target("slim", damaged, check_slimming, bounded=500, chunk=250)
