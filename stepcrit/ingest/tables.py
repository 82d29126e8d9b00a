"""Collected columns become the sorted, frozen tables of the model, in time since the origin."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import msgspec
import numpy as np
from msgspec import Struct

from stepcrit.ingest.dialect import UNKNOWN, Meaning, depends_on_name, meaning_of, meaning_of_name
from stepcrit.ingest.lanes import Placement, Track, flow_lanes, place
from stepcrit.ingest.order import Word, alphabetical, in_order
from stepcrit.ingest.pairs import pair_ends
from stepcrit.ingest.rows import RowCollector
from stepcrit.model.arrays import NONE, Int32Array, Int64Array, IntArray, freeze
from stepcrit.model.events import EventKind, EventTable, Side
from stepcrit.model.trace import FlowTable, MemoryTable

Columns: TypeAlias = dict[str, np.ndarray[Any, Any]]

_ROW_TYPES: dict[str, type[np.generic]] = {
    "order": np.int64, "start": np.int64, "duration": np.int64, "begins": np.bool_,
    "cat": np.int32, "name": np.int32, "track": np.int32, "stack": np.int32, "module": np.int32,
    "shapes": np.int32, "dtypes": np.int32,
    "correlation": np.int64, "external_id": np.int64, "python_id": np.int64, "seq": np.int64, "nbytes": np.int64,
    "stream": np.int64, "device": np.int64,
}  # fmt: skip
_OF_ARGUMENTS = (
    "stack", "module", "shapes", "dtypes", "correlation", "external_id", "python_id", "seq", "nbytes", "stream",
    "device",
)  # fmt: skip
_END_TYPES: dict[str, type[np.generic]] = {"time": np.int64, "order": np.int64, "track": np.int32}
_FLOW_TYPES: dict[str, type[np.generic]] = {
    "time": np.int64, "order": np.int64, "is_start": np.int8, "cat": np.int32, "id": np.int64, "track": np.int32,
}  # fmt: skip
_MEMORY_TYPES: dict[str, type[np.generic]] = dict.fromkeys(
    ("time", "order", "nbytes", "allocated", "reserved", "device_type", "device"), np.int64
)
_BLOCK_ROWS = 1 << 15
"""Columns are changed in place in blocks of so many rows, which stay in the processor's cache meanwhile."""

_LOST_START_NS = 3_600_000_000_000  # a device row at time 0 when the trace starts an hour later


class Tables(Struct, frozen=True, eq=False):
    """Every table of one file, and what making them showed.

    Attributes:
        events, flows, memory: the tables.
        first_ns: time 0 of the tables, in ns as the file counts (without its base).
        whole_microseconds: whether no time of a row has a fraction of a microsecond.
        unknown_cats: rows whose category is unknown, by category.
    """

    events: EventTable
    flows: FlowTable
    memory: MemoryTable
    first_ns: int
    whole_microseconds: bool
    unknown_cats: Mapping[str, int]


class _Words(Struct, frozen=True):
    """What the codes in the columns mean.

    Attributes:
        cats, names, stacks, modules, shapes, dtypes: texts, alphabetically.
        tracks: (pid, tid) by track, alphabetically.
        processes: name of each track's process, or its pid.
        labels: names of tracks.
    """

    cats: tuple[str, ...]
    names: tuple[str, ...]
    stacks: tuple[str, ...]
    modules: tuple[str, ...]
    shapes: tuple[str, ...]
    dtypes: tuple[str, ...]
    tracks: tuple[Track, ...]
    processes: tuple[str, ...]
    labels: Mapping[Track, str]


def build_tables(collected: RowCollector, marked_ns: int | None = None) -> Tables:
    """Turn what was collected into tables; the collector is used up.

    Args:
        collected: the columns of a whole file.
        marked_ns: time 0 of the trace that the file was slimmed from, where it is one.

    Returns:
        The tables, with read-only arrays.
    """
    collected.finish()
    rows = {name: collected.rows.take(name, dtype) for name, dtype in _ROW_TYPES.items()}
    rows |= {name: _once_if_absent(rows[name]) for name in _OF_ARGUMENTS}
    ends = {name: collected.ends.take(name, dtype) for name, dtype in _END_TYPES.items()}
    flows = {name: collected.flows.take(name, dtype) for name, dtype in _FLOW_TYPES.items()}
    memory = {name: collected.memory.take(name, dtype) for name, dtype in _MEMORY_TYPES.items()}
    words = _words(collected, (rows, ends, flows))
    _set_ends(rows, ends, collected.dropped)
    unknown = _set_meaning(rows, words)
    _drop_lost_starts(rows, collected.dropped)
    whole = bool(len(rows["start"])) and _are_whole(rows["start"]) and _are_whole(rows["end"])
    first_ns = _first_ns(rows, flows, memory)
    is_empty = not any(map(len, (rows["start"], flows["time"], memory["time"])))
    if marked_ns is not None and (is_empty or marked_ns <= first_ns):
        first_ns = marked_ns
    _sort(rows, first_ns)
    placement = place(
        rows.pop("side"),
        rows.pop("track"),
        (rows.pop("stream"), rows.pop("device")),
        words.tracks,
        (words.labels, {pid: name for (pid, _), name in zip(words.tracks, words.processes, strict=True)}),
    )
    return Tables(
        events=_event_table(rows, placement, words, collected),
        flows=_flow_table(flows, first_ns, placement, words.cats),
        memory=_memory_table(memory, first_ns),
        first_ns=first_ns,
        whole_microseconds=whole,
        unknown_cats=unknown,
    )


def _words(collected: RowCollector, tables: tuple[Columns, ...]) -> _Words:
    """What the collector's codes mean, after numbering them anew: alphabetically."""
    cats = _renumbered(collected.cats.table, "cat", tables)
    names = _renumbered(collected.names.table, "name", tables)
    stacks = _renumbered(collected.stacks.table[1:], "stack", tables)
    modules = _renumbered(collected.modules.table[1:], "module", tables)
    shapes = _renumbered(collected.shapes.table[1:], "shapes", tables)
    dtypes = _renumbered(collected.dtypes.table[1:], "dtypes", tables)
    tracks = _renumbered(collected.tracks.table, "track", tables)
    processes = {pid: _name_in(texts) for pid, texts in collected.process_names.items()}
    return _Words(
        cats,
        names,
        stacks,
        modules,
        shapes,
        dtypes,
        tracks,
        processes=tuple(processes.get(pid) or pid for pid, _ in tracks),
        labels={track: _name_in(texts) for track, texts in collected.thread_names.items()},
    )


def _renumbered(table: Sequence[Word], column: str, tables: tuple[Columns, ...]) -> tuple[Word, ...]:
    """Words in alphabetical order, and their codes in every table that has the column; NONE stays."""
    words, number = alphabetical(table)
    number = np.append(number, np.int32(NONE))  # found under -1 as well
    for codes in [
        columns[column] for columns in tables if column in columns and not _is_once(columns[column])
    ]:
        for at in range(0, len(codes), _BLOCK_ROWS):
            block = codes[at : at + _BLOCK_ROWS]
            block[:] = number[block]
    return words


def _once_if_absent(column: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A column that no row has a value in takes the memory of one NONE."""
    blocks = (column[at : at + _BLOCK_ROWS] for at in range(0, len(column), _BLOCK_ROWS))
    if not len(column) or any((block != NONE).any() for block in blocks):
        return column
    return np.broadcast_to(column[0], len(column))


def _is_once(column: np.ndarray[Any, Any]) -> bool:
    """Whether a column is one value in memory."""
    return column.strides == (0,)


def _name_in(texts: Collection[bytes]) -> str:
    """The name in the arguments of metadata events.

    Of several, the longest: "thread 57 (pt_autograd_0)" says more than "thread 57 (python)" and "Thread 57".
    Which was written last says nothing.
    """
    names = set()
    for text in texts:
        with suppress(msgspec.DecodeError, RecursionError):
            value = msgspec.json.decode(text, type=dict[str, Any]).get("name")
            names.add(value.strip() if isinstance(value, str) else "")
    return max(names, key=lambda name: (len(name), name), default="")


# --- the rows ------------------------------------------------------------------------------


def _set_ends(rows: Columns, ends: Columns, dropped: Counter[str]) -> None:
    """Give every row its end; a B that nothing ends lasts until the last time seen."""
    rows["end"] = rows["start"] + rows.pop("duration")
    begins = np.flatnonzero(rows.pop("begins"))
    rows["closed_by"] = np.broadcast_to(np.int64(NONE), len(rows["end"]))
    if not len(begins) and not len(ends["time"]):
        return
    open_rows = (rows["start"][begins], rows["order"][begins], rows["track"][begins])
    end_time, closed_by, strays = pair_ends(open_rows, (ends["time"], ends["order"], ends["track"]))
    last = int(np.concatenate((rows["end"], ends["time"])).max())
    is_open = closed_by == NONE
    rows["end"][begins] = np.where(is_open, last, end_time)
    rows["closed_by"] = rows["closed_by"].copy()
    rows["closed_by"][begins] = closed_by
    dropped.update({"B without E, ended with the trace": int(is_open.sum()), "E without B": strays})


def _set_meaning(rows: Columns, words: _Words) -> dict[str, int]:
    """Give every row its kind and side, and count the categories that tell neither."""
    by_cat = [meaning_of(cat) for cat in words.cats]
    kind, side, known = (column[rows["cat"]] for column in _meaning_columns(by_cat))
    mixed = np.array([depends_on_name(cat) for cat in words.cats], np.bool_)
    unclear = np.flatnonzero(mixed[rows["cat"]])
    if len(unclear):
        cat, name, track = (rows[column][unclear].astype(np.int64) for column in ("cat", "name", "track"))
        packed = (cat * len(words.names) + name) * len(words.tracks) + track
        _, first, group = np.unique(packed, return_index=True, return_inverse=True)
        each = [
            meaning_of_name(words.cats[cat[row]], words.names[name[row]], words.processes[track[row]])
            for row in first.tolist()
        ]
        kind[unclear], side[unclear], known[unclear] = (column[group] for column in _meaning_columns(each))
    rows["kind"], rows["side"] = kind, side
    codes, counts = np.unique(rows["cat"][~known], return_counts=True)
    return {words.cats[code]: int(count) for code, count in zip(codes.tolist(), counts.tolist(), strict=True)}


def _meaning_columns(meanings: Sequence[Meaning | None]) -> tuple[np.ndarray[Any, Any], ...]:
    """Kind, side, and whether it is known, of each meaning."""
    filled = [meaning or UNKNOWN for meaning in meanings]
    return (
        np.array([kind for kind, _ in filled], np.int8),
        np.array([side for _, side in filled], np.int8),
        np.array([meaning is not None for meaning in meanings], np.bool_),
    )


def _drop_lost_starts(rows: Columns, dropped: Counter[str]) -> None:
    """Leave out device rows at time 0: CUPTI writes 0 for a time it does not know."""
    lost = (rows["side"] == Side.DEVICE) & (rows["start"] == 0)
    if not lost.any():
        return
    others = rows["start"][~lost & (rows["kind"] != EventKind.PROFILER)]
    if not len(others) or int(others.min()) < _LOST_START_NS:
        return
    dropped["device row without a start time"] += int(lost.sum())
    for name in rows:
        rows[name] = rows[name][~lost]


def _are_whole(times: Int64Array) -> bool:
    """Whether all times are whole microseconds; where they are not, some of the first mostly tell."""
    blocks = range(0, len(times), _BLOCK_ROWS)
    return not any((times[at : at + _BLOCK_ROWS] % 1000).any() for at in blocks)


def _first_ns(rows: Columns, flows: Columns, memory: Columns) -> int:
    """Time 0: the earliest row. The profiler's own span and the metadata must not widen the window."""
    own = rows["kind"] == EventKind.PROFILER
    for times in (rows["start"][~own], rows["start"], memory["time"], flows["time"]):
        if len(times):
            return int(times.min())
    return 0


def _sort(rows: Columns, first_ns: int) -> None:
    """Put the rows in the model's order, and in time since the origin."""
    rows["start"] -= first_ns
    rows["end"] -= first_ns
    by_time = in_order(rows)
    del rows["python_id"], rows["seq"]  # they only tell which of two ranges is the outer one
    spare: Columns = {}  # a column's old place is the next one's new place: fresh memory costs more than the sorting
    for name, column in rows.items():
        if _is_once(column):
            continue
        kind = column.dtype.str
        place = spare[kind] if kind in spare else np.empty_like(column)
        rows[name] = np.take(
            column, by_time, out=place, mode="clip"
        )  # none is out of range; "raise" would copy
        spare[kind] = column


# --- the tables ----------------------------------------------------------------------------


def _event_table(rows: Columns, placement: Placement, words: _Words, collected: RowCollector) -> EventTable:
    """The event table of the sorted rows."""
    moves = np.isin(rows["kind"], (EventKind.MEMCPY, EventKind.MEMSET))
    rows["nbytes"] = _once_if_absent(np.where(moves, rows["nbytes"], NONE))
    narrow = {
        name: _narrow(rows.pop(name))
        for name in ("correlation", "external_id", "nbytes", "order", "closed_by")
    }
    columns = {
        "kind": rows["kind"], "cat": rows["cat"], "name": rows["name"],
        "start_ns": rows["start"], "end_ns": rows["end"], "lane": placement.lane,
        "stack": rows["stack"], "module": rows["module"], "shapes": rows["shapes"], "dtypes": rows["dtypes"],
        **narrow,
    }  # fmt: skip
    freeze(*columns.values())
    order = narrow["order"]
    with_arguments = np.flatnonzero(np.isin(order, np.fromiter(collected.arguments, order.dtype)))
    return EventTable(
        **columns,
        names=words.names,
        cats=words.cats,
        lanes=placement.lanes,
        stacks=words.stacks,
        modules=words.modules,
        shape_lists=words.shapes,
        dtype_lists=words.dtypes,
        args={row: collected.arguments[int(order[row])] for row in with_arguments.tolist()},
    )


def _narrow(values: Int64Array) -> IntArray:
    """The same in 32 bits each, where those are enough for all."""
    if values.min(initial=0) <= -(2**31) or values.max(initial=0) >= 2**31:
        return values
    if _is_once(values):
        return np.broadcast_to(values[:1].astype(np.int32), len(values))
    return values.astype(np.int32)


def _flow_table(flows: Columns, first_ns: int, placement: Placement, cats: tuple[str, ...]) -> FlowTable:
    """The flow table. Arrows end on the device, but for those that tie forward to backward."""
    ties_host = np.array([cat == "fwdbwd" for cat in cats], np.bool_)
    prefers_device = (flows["is_start"] == 0) & ~ties_host[flows["cat"]]
    columns = {
        "is_start": flows["is_start"], "cat": flows["cat"], "id": flows["id"],
        "ts_ns": flows["time"] - first_ns, "lane": flow_lanes(placement, flows["track"], prefers_device),
    }  # fmt: skip
    freeze(*columns.values())
    return FlowTable(**columns)


def _memory_table(memory: Columns, first_ns: int) -> MemoryTable:
    """The memory table, in file order."""
    columns = {
        "ts_ns": memory["time"] - first_ns, "nbytes": memory["nbytes"],
        "allocated": memory["allocated"], "reserved": memory["reserved"],
        "device_type": _int32(memory["device_type"]), "device": _int32(memory["device"]),
    }  # fmt: skip
    freeze(*columns.values())
    return MemoryTable(**columns)


def _int32(values: np.ndarray[Any, Any]) -> Int32Array:
    """Small numbers; what is none is NONE."""
    return np.where((values >= 0) & (values < 2**31), values, NONE).astype(np.int32)
