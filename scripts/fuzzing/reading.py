"""Bytes into the reader: damaged traces, plain and packed."""

from __future__ import annotations

import gzip
import io
import zlib
from random import Random

import numpy as np
from backports import zstd

from fuzzing.judge import Target, fault, sampled
from fuzzing.mutate import broken, changed
from fuzzing.seeds import seed_trace, text_of
from stepcrit.errors import InputError
from stepcrit.ingest import read_trace
from stepcrit.model.trace import RawTrace

CHUNKS = (61, 700, 1 << 20)
"""Sizes of the pieces that a text is read in."""


def damaged(dice: Random) -> bytes:
    """The text of a trace with odd values and broken bytes."""
    return broken(text_of(changed(seed_trace(dice), dice), dice), dice)


def check_reading(data: bytes) -> None:
    """A trace whose tables hold together, or a refusal that says what is wrong; the same in pieces of any size."""
    told = outcome(data, CHUNKS[-1])
    sizes = CHUNKS[:-1] if sampled(data, 16) and len(data) < 20_000 else CHUNKS[1:-1]
    for size in sizes:
        other = outcome(data, size)
        if other != told:
            fault(f"read in pieces of {size} bytes: {other}\nread in one: {told}")


def outcome(data: bytes, chunk_bytes: int) -> str:
    """What reading makes of some bytes, in one line."""
    try:
        trace = read_trace(io.BytesIO(data), chunk_bytes=chunk_bytes, salvage=True)
    except InputError as error:
        if not error.what or error.code in ("SC000", "SC300"):
            fault(f"a refusal without a reason or a code: {error!r}")
        return error.code
    _check_tables(trace)
    events, dropped = trace.events, dict(trace.meta.dropped)
    digest = zlib.crc32(
        events.start_ns.tobytes() + events.end_ns.tobytes() + events.name.tobytes() + events.lane.tobytes()
    )
    return f"{trace.meta.event_count} events, {len(events)} rows {digest:x}, {len(trace.flows.id)} flows, {dropped}"


def _check_tables(trace: RawTrace) -> None:
    """What every later room relies on."""
    events = trace.events
    if (events.end_ns < events.start_ns).any():
        fault("a row ends before it starts")
    if (np.diff(events.start_ns) < 0).any():
        fault("rows are not in order of time")
    for name, codes, words in (
        ("name", events.name, events.names),
        ("cat", events.cat, events.cats),
        ("lane", events.lane, events.lanes),
    ):
        if len(codes) and not 0 <= int(codes.min()) <= int(codes.max()) < len(words):
            fault(f"column {name} names what is not there")
    if not all(isinstance(count, int) and count > 0 for count in trace.meta.dropped.values()):
        fault(f"counts of what was dropped: {trace.meta.dropped}")


def packed(dice: Random) -> bytes:
    """A gzip or zstd stream of a trace, whole or broken."""
    text = text_of(seed_trace(dice), dice) if dice.random() < 0.6 else damaged(dice)
    return dice.choice((_plain, _members, _cut, _flipped, _bad_sum, _junk, _twice, _bomb, _odd_header))(
        text, dice
    )


def _plain(text: bytes, dice: Random) -> bytes:
    if dice.random() < 0.3:
        return zstd.compress(text, dice.choice((1, 3, 9)))
    return gzip.compress(text, dice.choice((0, 1, 9)), mtime=0)


def _members(text: bytes, dice: Random) -> bytes:
    at = sorted(dice.randint(0, len(text)) for _ in range(dice.randint(1, 4)))
    return b"".join(_plain(text[a:b], dice) for a, b in zip([0, *at], [*at, len(text)], strict=True))


def _cut(text: bytes, dice: Random) -> bytes:
    whole = _plain(text, dice)
    return whole[: dice.choice((2, 9, 10, 11, len(whole) - 1, len(whole) - 8, dice.randint(0, len(whole))))]


def _flipped(text: bytes, dice: Random) -> bytes:
    made = bytearray(_plain(text, dice))
    for _ in range(dice.randint(1, 5)):
        made[dice.randrange(len(made))] ^= 1 << dice.randrange(8)
    return bytes(made)


def _bad_sum(text: bytes, dice: Random) -> bytes:
    made = bytearray(_plain(text, dice))
    made[-dice.randint(1, 8)] ^= 0x55
    return bytes(made)


def _junk(text: bytes, dice: Random) -> bytes:
    return _plain(text, dice) + dice.choice(
        (b"\0" * 512, b"junk", b"\x1f\x8b", b"\x1f\x8b\x08\0", text[:50], b"\n")
    )


def _twice(text: bytes, dice: Random) -> bytes:
    return _plain(_plain(text, dice), dice)


def _bomb(text: bytes, dice: Random) -> bytes:
    """Much of one byte: before the trace, within a name, or instead."""
    unit = dice.choice((b" ", b"\n", b"[", b"\0", b"a", b'{"a":', b"1"))
    much = unit * dice.choice((10_000, 200_000 if unit in (b"[", b'{"a":') else 2_000_000))
    at = text.find(b'"name":"') + 8
    return _plain(dice.choice((much + text, text[:at] + much + text[at:], much, text + much)), dice)


def _odd_header(text: bytes, dice: Random) -> bytes:
    whole = _plain(text, dice)
    return whole[:3] + bytes([dice.randrange(256)]) + whole[4:]


READER = Target("reader", damaged, check_reading, bounded=2000, chunk=500)
PACKED = Target("packed", packed, check_reading, bounded=700, chunk=350)
