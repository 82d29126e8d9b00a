"""A row lies on a host thread (pid, tid) or on a device queue (pid, stream): its kind says which.

The track a writer draws a row on is not its lane: device rows of one stream may sit on several
tids, tids may be made up, and a container's process 1 shares its number with GPU 1.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct

from stepcrit.intervals import ascending
from stepcrit.model.arrays import NONE, BoolArray, Int8Array, Int32Array, Int64Array
from stepcrit.model.events import Lane, Side

Track = tuple[str, str]
"""pid and tid, as the trace writes them."""

_MAX_STREAM = 2**31  # above it lies 2**32 - 1, which is -1 seen through an unsigned field
_FEW, _FEW_EACH = 1 << 16, 4
_STREAM_NAME = re.compile(r"(?:stream )?(\d{1,10})\s*")


class Placement(Struct, frozen=True):
    """Where rows lie.

    Attributes:
        lane: lane of each row.
        lanes: the lanes, by first row.
        by_side: per side, the lane of each track, or -1.
    """

    lane: Int32Array
    lanes: tuple[Lane, ...]
    by_side: Mapping[Side, Int32Array]


def place(
    side: Int8Array,
    track: Int32Array,
    queue: tuple[Int64Array, Int64Array],
    tracks: Sequence[Track],
    names: tuple[Mapping[Track, str], Mapping[str, str]],
) -> Placement:
    """Give each row its lane.

    Args:
        side: Side of each row.
        track: index into `tracks` of each row.
        queue: the arguments stream and device of each row, -1 when absent.
        tracks: every (pid, tid) of the file.
        names: names of tracks, and of processes by pid, where the trace gives any.

    Returns:
        The lanes, numbered in the order of the rows.
    """
    first_rows, combination = _distinct(side, track, queue[0])
    labels, processes = names
    called = _device_names(side, track, queue[1], tracks, processes)
    numbers: dict[tuple[Side, str, int | str], int] = {}
    lanes: list[Lane] = []
    lane_of = np.zeros(len(first_rows), np.int32)
    by_side = {each: np.full(len(tracks), NONE, np.int32) for each in Side}
    for index in np.argsort(first_rows).tolist():
        row = int(first_rows[index])
        where = Side(int(side[row]))
        pid, tid = tracks[track[row]]
        stream = _stream(int(queue[0][row]), tid) if where == Side.DEVICE else NONE
        key = (where, pid, tid if stream == NONE else stream)
        if key not in numbers:
            numbers[key] = len(lanes)
            device = _device(pid, int(queue[1][row])) if where == Side.DEVICE else NONE
            shown = called.get(pid, "") if where == Side.DEVICE else ""
            lanes.append(Lane(where, pid, tid, device, stream, labels.get((pid, tid), ""), shown))
        lane_of[index] = numbers[key]
        if by_side[where][track[row]] == NONE:
            by_side[where][track[row]] = numbers[key]
    return Placement(lane_of[combination], tuple(lanes), by_side)


def _distinct(side: Int8Array, track: Int32Array, stream: Int64Array) -> tuple[Int64Array, Int64Array]:
    """First row of each combination of side, track and stream, and each row's combination."""
    on_device = np.flatnonzero(side == Side.DEVICE)
    streams, stream_code = np.unique(stream[on_device], return_inverse=True)
    packed = track.astype(np.int64) * (len(streams) + 1)
    packed[on_device] += stream_code + 1
    packed = packed * len(Side) + side
    size = int(packed.max(initial=0)) + 1
    if size > _FEW_EACH * len(packed) + _FEW:
        _, first_rows, combination = np.unique(packed, return_index=True, return_inverse=True)
        return first_rows, combination
    # By a table of all combinations there may be, where they are few: ten times faster than sorting the rows.
    first = np.full(size, NONE, np.int64)
    first[packed[::-1]] = np.arange(len(packed) - 1, -1, -1)  # of several, the last one written stays
    present = np.flatnonzero(first != NONE)
    number = np.empty(size, np.int64)
    number[present] = np.arange(len(present))
    return first[present], number[packed]


def _stream(argument: int, tid: str) -> int:
    """A stream number from the argument, else from the track ("7", "stream 7"), else -1."""
    if 0 <= argument < _MAX_STREAM:
        return argument
    match = _STREAM_NAME.fullmatch(tid)
    stream = int(match[1]) if match else NONE
    return stream if stream < _MAX_STREAM else NONE


def _device(pid: str, argument: int) -> int:
    """A device's ordinal. The pid comes first: in merged files it alone tells devices apart."""
    if pid.isdecimal() and len(pid) < 10:
        return int(pid)
    return argument if argument < _MAX_STREAM else NONE


def _device_names(
    side: Int8Array,
    track: Int32Array,
    ordinal: Int64Array,
    tracks: Sequence[Track],
    processes: Mapping[str, str],
) -> dict[str, str]:
    """What devices are called where tools that merge files have renumbered their processes, by pid.

    Such a pid is no ordinal: shown is the ordinal that the rows tell, with the process that it is of.
    """
    known = (side == Side.DEVICE) & (ordinal >= 0) & (ordinal < _MAX_STREAM)
    told: dict[str, set[int]] = {}
    pairs = ascending(track[known] * np.int64(_MAX_STREAM) + ordinal[known])
    for at, number in zip((pairs // _MAX_STREAM).tolist(), (pairs % _MAX_STREAM).tolist(), strict=True):
        told.setdefault(tracks[at][0], set()).add(number)
    one = {pid: numbers.pop() for pid, numbers in told.items() if len(numbers) == 1}
    if all(pid == str(number) or not pid.isdecimal() for pid, number in one.items()) and (
        len(set(one.values())) == len(one)
    ):
        return {}
    names = {
        pid: f"{number} ({processes[pid] if processes.get(pid, pid) != pid else f'process {pid}'})"
        for pid, number in one.items()
    }
    repeated = Counter(names.values())
    return {
        pid: shown if repeated[shown] == 1 else f"{one[pid]} (process {pid})" for pid, shown in names.items()
    }


def flow_lanes(placement: Placement, track: Int32Array, prefers_device: BoolArray) -> Int32Array:
    """The lane each end of a flow arrow touches, -1 when its track has no rows."""
    host, device, other = (placement.by_side[side][track] for side in (Side.HOST, Side.DEVICE, Side.OTHER))
    on_host = np.where(host != NONE, host, device)
    on_device = np.where(device != NONE, device, host)
    best = np.where(prefers_device, on_device, on_host)
    return np.where(best != NONE, best, other).astype(np.int32)
