"""A trace is read to understand which rows stay, and read again to write them anew, a chunk at a time.

Nothing that is written has been a float: numbers are the file's own text.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import closing
from typing import BinaryIO

import numpy as np
from msgspec import Struct, field

from stepcrit.errors import InternalError, PartialError
from stepcrit.ingest.limits import Limits
from stepcrit.ingest.slimmark import SLIM_KEY, counted, mark_text
from stepcrit.intervals import ascending
from stepcrit.link.plausible import make_plausible
from stepcrit.model.arrays import NONE, BoolArray, Int64Array, IntArray
from stepcrit.model.events import DEVICE_KINDS, EventKind, Side
from stepcrit.model.slim import SlimMark
from stepcrit.model.trace import Damage, RawTrace
from stepcrit.session import Options, Trace
from stepcrit.slimming.choice import Choice, choose
from stepcrit.slimming.events import EventWriter, Keeping
from stepcrit.slimming.header import identity_words, slim_header
from stepcrit.slimming.names import Names
from stepcrit.slimming.packing import Packer
from stepcrit.slimming.passes import Passes
from stepcrit.slimming.tokens import Tokens
from stepcrit.slimming.tracks import Tracks, number_tracks


class SlimOptions(Struct, frozen=True):
    """What is to stay of a trace.

    Attributes:
        steps: "all", "median", "last:3", "12", "12-15"; None: all of a few, else five around the median.
        stacks: keep Python frames and call stacks.
        anonymize: replace the user's own names of ranges, files and modules too.
        key: makes tokens equal across traces that are slimmed with it; b"": of the trace's own bytes.
        salvage: use what is left of a trace that has lost more than a twentieth.
        strict: refuse a trace that had to be repaired.
        limits: the most that is read.
    """

    steps: str | None = None
    stacks: bool = False
    anonymize: bool = False
    key: bytes = b""
    salvage: bool = False
    strict: bool = False
    limits: Limits = field(default_factory=Limits)


class Size(Struct, frozen=True):
    """How large a trace is: the file, its JSON text, its events of every phase."""

    file_bytes: int
    text_bytes: int
    events: int


class Slimmed(Struct, frozen=True):
    """A slimmed trace, and what became of the one it was made of.

    Attributes:
        data: the file's bytes.
        source: the input's name.
        rank: the rank that the trace tells, -1 when it does not.
        mark: what its header tells of it.
        steps: how many steps were asked for, and how many stay: the one before them does too.
        why: how the steps were chosen.
        before, after: sizes.
        left_out: events that were left out, by what they are.
        keys_left_out: header keys that are gone.
        replaced: distinct words that were replaced, by what they are.
        damage: what was wrong with the bytes of the input.
    """

    data: bytes
    source: str
    rank: int
    mark: SlimMark
    steps: tuple[int, int]
    why: str
    before: Size
    after: Size
    left_out: Mapping[str, int]
    keys_left_out: tuple[str, ...]
    replaced: Mapping[str, int]
    damage: tuple[Damage, ...]


def slim_trace(source: str | os.PathLike[str] | BinaryIO, options: SlimOptions) -> Slimmed:
    """Slim one trace.

    Raises:
        InputError: the input is not a usable trace.
        PartialError: it changed while it was read; with `strict`, it had to be repaired.
        UsageError: there are no such steps.
    """
    with closing(Passes(source, options.limits)) as passes:
        raw = passes.understand(salvage=options.salvage)
        _check_sound(raw, strict=options.strict)
        trace = Trace(make_plausible(raw), Options(limits=options.limits))
        choice = choose(trace, options.steps)
        header, key = passes.look()
        tokens = Tokens(options.key or key)
        names = Names(tokens, anonymous=options.anonymize, told=identity_words(header))
        gone = np.zeros(raw.meta.event_count, np.bool_)
        gone[choice.gone] = True
        ends = _ends_of(raw, gone, options)
        gone[ends] = True
        writer = EventWriter(
            _keeping(raw, trace, choice, options), tokens, names, _tracks(raw, gone, options, tokens)
        )
        mark = _mark(raw, trace, choice, options, names)
        packer = Packer()
        keys = _write(passes, packer, writer, gone, (mark, header, tokens))
    data = packer.close()
    others = {"rows of other steps": len(choice.gone), "ends of rows that go": len(ends)}
    return Slimmed(
        data,
        raw.meta.source,
        raw.meta.rank,
        mark,
        (choice.last.index - choice.first.index + 1, choice.count),
        choice.why,
        Size(raw.meta.input_bytes, raw.meta.json_bytes, raw.meta.event_count),
        Size(len(data), packer.text_bytes, packer.events),
        {**{what: n for what, n in others.items() if n}, **dict(sorted(writer.left_out.items()))},
        keys,
        dict(sorted(tokens.replaced.items())),
        raw.meta.damage,
    )


def _check_sound(raw: RawTrace, *, strict: bool) -> None:
    """Refuse a repaired trace where that is asked for; else its mark tells of it."""
    if strict and (raw.meta.damage or raw.meta.dropped):
        raise PartialError(
            "events were left out or repaired",
            where=raw.meta.source,
            do="see stepcrit doctor; without --strict the slimmed trace says so instead",
        )


def _write(
    passes: Passes,
    packer: Packer,
    writer: EventWriter,
    gone: BoolArray,
    told: tuple[SlimMark, Mapping[str, bytes], Tokens],
) -> tuple[str, ...]:
    """Write the document; returns the header keys that are gone. Keys keep their side of the events."""
    mark, final, tokens = told
    seen = 0
    packer.members({SLIM_KEY: mark_text(mark)})
    with passes.walk() as (document, chunks):
        before: dict[str, bytes] | None = None
        for chunk in chunks:
            if before is None:
                # Of a key that stands on both sides, the last value is the one that is read.
                before = {key: final[key] for key in document.header}
                packer.members(slim_header(before, tokens)[0])
                packer.open_list()
            if seen + len(chunk) > len(gone):
                raise InternalError("more events were written than had been understood")
            for position, event in enumerate(chunk, seen):
                text = None if gone[position] else writer.write(bytes(event))
                if text is not None:
                    packer.event(text)
            seen += len(chunk)
        header = document.header
    if seen != len(gone):
        raise InternalError(f"{seen} events were written where {len(gone)} had been understood")
    packer.close_list()
    after = {key: text for key, text in header.items() if key not in (before or {})}
    packer.members(slim_header(after, tokens)[0])
    return slim_header(header, tokens)[1]


def _keeping(raw: RawTrace, trace: Trace, choice: Choice, options: SlimOptions) -> Keeping:
    """What stays beside the rows. Arrows are read only where no device row has a correlation."""
    device = raw.events.is_kind(*DEVICE_KINDS)
    needs_flows = bool(device.any() and (raw.events.correlation[device] < 0).all())
    # The window is in time since the trace's origin; arrows and allocator events are told apart as the file counts.
    origin = trace.meta.origin_ns - max(trace.meta.base_ns, 0)
    low, high = choice.window_ns
    window = None if choice.is_all else (low + origin, high + origin)
    return Keeping(options.stacks, needs_flows, window)


def _stays(raw: RawTrace, gone: BoolArray, options: SlimOptions) -> BoolArray:
    """Rows that are written."""
    events = raw.events
    stays: BoolArray = ~gone[events.order]
    return stays if options.stacks else stays & ~events.is_kind(EventKind.PYTHON)


def _ends_of(raw: RawTrace, gone: BoolArray, options: SlimOptions) -> IntArray:
    """Where the E events of rows stand that are not written: each would end another row, begun before."""
    ends = raw.events.closed_by[~_stays(raw, gone, options)]
    found: IntArray = ends[ends != NONE]
    return found


def _tracks(raw: RawTrace, gone: BoolArray, options: SlimOptions, tokens: Tokens) -> Tracks:
    """New numbers for the processes and threads that still have rows."""
    events, stays = raw.events, _stays(raw, gone, options)
    used: Int64Array = ascending(events.lane[stays].astype(np.int64))
    lanes = [events.lanes[i] for i in used.tolist()]
    host = [(lane.pid, lane.tid) for lane in lanes if lane.side == Side.HOST]
    return number_tracks(host, [lane.pid for lane in lanes if lane.side != Side.HOST], tokens)


def _mark(raw: RawTrace, trace: Trace, choice: Choice, options: SlimOptions, names: Names) -> SlimMark:
    """What is told of the slimming; of an earlier one, what it told stays true."""
    old = raw.meta.slim
    is_same = choice.is_all or not choice.gone.size
    return SlimMark(
        stacks=options.stacks and (old is None or old.stacks),
        anonymous=options.anonymize or (old is not None and old.anonymous),
        steps_of=old.steps_of if old else len(trace.steps),
        first_step=names.step(old.first_step if old and is_same else choice.first.label),
        last_step=names.step(old.last_step if old and is_same else choice.last.label),
        first_ns=raw.meta.origin_ns - max(raw.meta.base_ns, 0),
        dialect=raw.meta.dialect,
        damage=counted(raw.meta.damage),
        lost_share=raw.meta.lost_share,
    )
