"""A trace as it was read: the label on the box and the event columns, before any linking."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, field

from stepcrit.model.arrays import Int8Array, Int32Array, Int64Array
from stepcrit.model.events import EventTable
from stepcrit.model.oddity import Oddity
from stepcrit.model.slim import SlimMark


class Device(Struct, frozen=True):
    """One entry of deviceProperties. Visible devices are listed whether or not they are used."""

    id: int
    name: str
    sm_count: int = -1
    compute_major: int = -1
    compute_minor: int = -1


class ProcessGroup(Struct, frozen=True):
    """One communicator of distributedInfo.pg_config, as the writing rank sees it."""

    name: str
    description: str
    ranks: tuple[int, ...]


class Harm(StrEnum):
    """What can be wrong with the bytes of a trace; the value is the sentence for users."""

    ESCAPE = "unescaped backslash in a string, kept as a backslash"
    CONTROL = "raw line end or control character in a string, kept"
    UTF8 = "bytes that are not UTF-8, shown as \ufffd"
    SURROGATE = "half a surrogate pair, shown as \ufffd"
    QUOTE = "unescaped quotation marks in a string, kept"
    BARE = "no JSON value (NaN, Infinity, N/A), taken as null"
    NUMBER = "number in a form that JSON has not, taken as the number"
    WORD = "word without quotation marks, taken as text"
    COMMA = "stray or missing comma or bracket, set right"
    EVENT = "event that cannot be read, left out"
    SECTION = "header section that cannot be read, left out"
    HEAD = "the beginning of the document is missing; read from the first event on"
    AFTER = "text after the end of the trace, left out"
    CUT = "the text stops before its end; the events until there are kept"
    PACK_CUT = "the compressed stream stops before its end; what it held until there is kept"
    PACK_BAD = "the compressed stream is damaged; what it held until there is kept"
    PACK_AFTER = "bytes after the compressed stream, left out"

    @property
    def is_loss(self) -> bool:
        """Whether something is missing from the answer, rather than set right."""
        return self in _LOSSES

    @property
    def is_cut(self) -> bool:
        """Whether the end of the trace is missing."""
        return self in (Harm.CUT, Harm.PACK_CUT, Harm.PACK_BAD)


_LOSSES = frozenset(
    {
        Harm.EVENT, Harm.SECTION, Harm.HEAD, Harm.AFTER, Harm.CUT, Harm.PACK_CUT, Harm.PACK_BAD, Harm.PACK_AFTER,
    }
)  # fmt: skip


class Damage(Struct, frozen=True):
    """One kind of harm to the bytes of a trace.

    Attributes:
        harm: the kind.
        count: events (or places outside events) that have it.
        first_byte: where it first stands in the JSON text, -1 when that is not known.
        first_line: the line of that, from 1, or -1.
        excerpt: some of the text around it, as it stands in the file.
    """

    harm: Harm
    count: int
    first_byte: int = -1
    first_line: int = -1
    excerpt: str = ""


class TraceMeta(Struct, frozen=True):
    """What the file says about itself, and what reading it met.

    Attributes:
        source: the input's file name without its folder, or "-" for standard input.
        sha256: hex digest of the input's bytes as given (compressed if they were).
        input_bytes: size of the input as given.
        json_bytes: size of the JSON text.
        compression: "none", "gzip" or "zstd".
        origin_ns: absolute time of the trace's time 0, baseTimeNanoseconds included; the
            earliest event with a duration starts at 0.
        base_ns: baseTimeNanoseconds, or -1 when the header lacks it.
        rank, world_size: from distributedInfo, -1 when unknown.
        backend: communication backend, "" when unknown.
        devices: deviceProperties.
        groups: pg_config.
        options: profiler options that were on (record_shapes, with_stack, ...).
        versions: runtime and driver versions by header key.
        header_keys: every top-level key, sorted.
        dialect: words that date the writer, oldest evidence first.
        resolution_ns: 1000 when every time is a whole microsecond, else 1.
        span_ns: the profiler's own recording span, or (-1, -1).
        event_count: events of every phase in the file.
        phases: events by phase.
        dropped: events that could not become rows, by reason.
        unknown_cats: events with a duration whose category stepcrit does not know.
        notes: log lines the profiler left in the header (WARNING, ERROR).
        damage: what was wrong with the bytes, and was repaired or left out.
        lost_share: the part of the input that nothing could be made of, 0..1.
        skipped: other files of the folder it was found in: (name, why it is no trace).
        slim: what `stepcrit slim` did to it, or None.
    """

    source: str
    sha256: str
    input_bytes: int
    json_bytes: int
    compression: str
    origin_ns: int
    base_ns: int = -1
    rank: int = -1
    world_size: int = -1
    backend: str = ""
    devices: tuple[Device, ...] = ()
    groups: tuple[ProcessGroup, ...] = ()
    options: frozenset[str] = frozenset()
    versions: Mapping[str, str] = field(default_factory=dict)
    header_keys: tuple[str, ...] = ()
    dialect: tuple[str, ...] = ()
    resolution_ns: int = 1
    span_ns: tuple[int, int] = (-1, -1)
    event_count: int = 0
    phases: Mapping[str, int] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)
    unknown_cats: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    damage: tuple[Damage, ...] = ()
    lost_share: float = 0.0
    skipped: tuple[tuple[str, str], ...] = ()
    slim: SlimMark | None = None

    @property
    def is_cut(self) -> bool:
        """Whether the end of the file is missing; what a writer puts last, such as device work, may lack."""
        return any(damage.harm.is_cut for damage in self.damage)


class FlowTable(Struct, frozen=True, eq=False):
    """Flow arrows (phases s and f), one row each.

    Attributes:
        is_start: 1 for "s", 0 for "f", int8.
        cat: index into the event table's `cats`.
        id: the flow's id.
        ts_ns: ns since the trace's origin.
        lane: index into the event table's `lanes`, -1 when the track has no event with a duration.
    """

    is_start: Int8Array
    cat: Int32Array
    id: Int64Array
    ts_ns: Int64Array
    lane: Int32Array


class MemoryTable(Struct, frozen=True, eq=False):
    """Allocator events ("[memory]" instants), in file order.

    Attributes:
        ts_ns: ns since the trace's origin.
        nbytes: signed bytes of this event.
        allocated, reserved: totals after the event, -1 when the writer left them out.
        device_type, device: allocator's device.
    """

    ts_ns: Int64Array
    nbytes: Int64Array
    allocated: Int64Array
    reserved: Int64Array
    device_type: Int32Array
    device: Int32Array


class RawTrace(Struct, frozen=True, eq=False, weakref=True):
    """One file, read: what `ingest` hands to `link`.

    Attributes:
        meta: the label on the box.
        events, flows, memory: the tables.
        oddities: what could not be true of the file's rows, once `link.plausible` has looked at them.
    """

    meta: TraceMeta
    events: EventTable
    flows: FlowTable
    memory: MemoryTable
    oddities: tuple[Oddity, ...] = ()
