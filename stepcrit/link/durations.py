"""P301, P302: activities that last longer than their queue allows.

A device queue runs in order. An activity may begin before the one before it has ended (programmatic
dependent launch, branches of one device graph, rounding: up to 13 us in public traces), but it waits for the
other's end before its own. So an activity that goes on for a millisecond after a *whole* later activity of
its queue bears an end that was never set, or set too late (ROCm, "durations sum to a thousand times").
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
from msgspec import Struct

from stepcrit.link.clock import clock_is_late
from stepcrit.link.faroff import FAR_NS, FAR_SPANS, MINORITY, are_close
from stepcrit.link.kernelnames import kernel_class
from stepcrit.link.launches import link_launches
from stepcrit.link.places import processes
from stepcrit.link.presence import Platform, platform_of
from stepcrit.link.retable import with_times
from stepcrit.link.returns import certain_launches
from stepcrit.model.arrays import BoolArray, Int32Array, Int64Array, distinct, order_of
from stepcrit.model.classes import WorkClass
from stepcrit.model.events import DEVICE_KINDS, EventKind, EventTable
from stepcrit.model.oddity import Done, Oddity
from stepcrit.model.trace import RawTrace

ODD_NS = 10_000
"""Overlap worth a word. In public traces: dependent launches 4.6 us, rounding and ROCm jitter 2.4 us."""

IMPOSSIBLE_NS = 1_000_000
"""Overlap that no jitter explains: of 1980 odd overlaps in 20 AMD traces 58 are longer (report TraceLens#694)."""

TIMES_LONGEST = 10
"""A lane that may hold several streams proves nothing by overlap: there an activity must also be this many
times longer than every sound one of its lane."""

_DEPENDENT = re.compile(r"LaunchKernelEx")
"""Calls that can ask for programmatic dependent launch."""


class _Queues(Struct, frozen=True, eq=False):
    """Device rows with the first later row of another launch in their lane.

    Attributes:
        rows: device rows that take time and have such a successor.
        after: that successor of each.
        over_ns: by how much each outlives its successor's start.
    """

    rows: Int64Array
    after: Int64Array
    over_ns: Int64Array


def cut_far_ends(trace: RawTrace) -> tuple[RawTrace, tuple[Oddity, ...]]:
    """Ends that lie as far from the recording as no row may: the row ends with the recording's last start or end."""
    events = trace.events
    own = events.is_kind(EventKind.PROFILER)
    if are_close(events, events.end_ns) or own.all():
        return trace, ()
    last_start = int(events.start_ns[~own].max())
    limit = last_start + max(FAR_NS, FAR_SPANS * last_start)
    far = ~own & (events.end_ns > limit)
    if not far.any():
        return trace, ()
    bound = int(events.end_ns[~own & ~far].max(initial=last_start))
    end = events.end_ns.copy()
    usual = _longest_of_name(events, ~far)
    on_device = events.is_kind(*DEVICE_KINDS)
    for row in np.flatnonzero(far).tolist():
        end[row] = _taken(events, row, bound, usual if on_device[row] else {})
    return _cut(trace, end, far)


def cut_past_returns(trace: RawTrace) -> tuple[RawTrace, tuple[Oddity, ...]]:
    """Ends a millisecond after the return of a call that waited for them: the row ends with that return.

    That needs no queue, so it holds for the last activity, and on lanes that merge streams. Where even the
    fastest launch seems slow the clock may be late instead: that is looked at as a whole, later.
    """
    events, launched = trace.events, certain_launches(trace)
    rows, until = launched.rows, launched.until_ns
    past = (events.end_ns[rows] > until + IMPOSSIBLE_NS) & (events.start_ns[rows] <= until)
    few = past.sum() <= max(1, MINORITY * len(rows))
    if not past.any() or not few or clock_is_late(events, launched):
        return trace, ()
    mask = np.zeros(len(events), np.bool_)
    mask[rows[past]] = True
    usual = _longest_of_name(events, ~mask)
    end = events.end_ns.copy()
    for row, bound in zip(rows[past].tolist(), until[past].tolist(), strict=True):
        end[row] = _taken(events, row, bound, usual)
    return _cut(trace, end, mask)


def cut_impossible(trace: RawTrace) -> tuple[RawTrace, tuple[Oddity, ...]]:
    """Cut activities whose end their queue refutes; tell of other overlaps that nothing allows."""
    events = trace.events
    queues = _queues(events)
    odd = queues.over_ns > ODD_NS
    if not odd.any():
        return trace, ()
    launch = link_launches(events, trace.flows)
    exclusive = platform_of(trace) == Platform.CUDA
    odd &= ~_of_two_processes(events, launch, queues)
    impossible = (
        odd & (queues.over_ns > IMPOSSIBLE_NS) & (events.end_ns[queues.after] <= events.end_ns[queues.rows])
    )
    if not exclusive:
        impossible &= _beyond_lane(events, queues, odd)
    impossible &= ~_too_many(events, queues.rows, impossible)
    told = _told(events, queues, odd & ~impossible & ~_dependent(events, launch, queues)) if exclusive else ()
    if not impossible.any():
        return trace, told
    end = events.end_ns.copy()
    rows, after = queues.rows[impossible], queues.after[impossible]
    sound = np.ones(len(events), np.bool_)
    sound[queues.rows[odd]] = False
    usual = _longest_of_name(events, sound)
    for row, successor in zip(rows.tolist(), after.tolist(), strict=True):
        end[row] = _taken(events, row, int(events.start_ns[successor]), usual)
    mask = np.zeros(len(events), np.bool_)
    mask[rows] = True
    trace, found = _cut(trace, end, mask)
    return trace, (*found, *told)


def _taken(events: EventTable, row: int, bound: int, usual: Mapping[int, int]) -> int:
    """The end of a row that had ended by `bound`; an idle queue must not make it longer than its name ever was."""
    start = int(events.start_ns[row])
    longest = usual.get(int(events.name[row]), bound - start)
    return max(start, min(bound, start + longest))


def _cut(trace: RawTrace, end: Int64Array, mask: BoolArray) -> tuple[RawTrace, tuple[Oddity, ...]]:
    """The trace with these ends, and what was cut."""
    events = trace.events
    over = np.where(mask, events.end_ns - end, -1)
    worst = int(np.argmax(over))
    found = Oddity(
        "P301", int(mask.sum()), len(events), Done.SET_RIGHT, events.name_of(worst), int(events.order[worst]),
        {
            "written_ns": int(events.end_ns[worst] - events.start_ns[worst]),
            "taken_ns": int(end[worst] - events.start_ns[worst]),
        },
    )  # fmt: skip
    return with_times(trace, events.start_ns, end), (found,)


def _told(events: EventTable, queues: _Queues, odd: BoolArray) -> tuple[Oddity, ...]:
    """Overlaps that are left as they are."""
    if not odd.any():
        return ()
    worst = int(np.argmax(np.where(odd, queues.over_ns, -1)))
    row = int(queues.rows[worst])
    looked = int(events.is_kind(*DEVICE_KINDS).sum())
    return (
        Oddity(
            "P302", int(odd.sum()), looked, Done.TOLD, events.name_of(row), int(events.order[row]),
            {"overlap_ns": int(queues.over_ns[worst])},
        ),
    )  # fmt: skip


def _queues(events: EventTable) -> _Queues:
    """Successors by lane. Activities of one launch are branches of one graph: they may overlap at will."""
    rows = np.flatnonzero(events.is_kind(*DEVICE_KINDS))
    rows = rows[events.end_ns[rows] > events.start_ns[rows]]
    rows = rows[order_of(events.lane[rows])]
    lane, launch = events.lane[rows], events.correlation[rows]
    opens = np.ones(len(rows) + 1, np.bool_)
    opens[1:-1] = (lane[1:] != lane[:-1]) | (launch[1:] != launch[:-1]) | (launch[1:] < 0)
    place = np.flatnonzero(opens)
    after = place[np.cumsum(opens[:-1])]
    has = after < len(rows)
    has[has] = lane[after[has]] == lane[has]
    rows, after = rows[has], rows[after[has]]
    return _Queues(rows, after, events.end_ns[rows] - events.start_ns[after])


def _of_two_processes(events: EventTable, launch: Int32Array, queues: _Queues) -> BoolArray:
    """Pairs that different processes launched: two queues that a merged file draws on one lane."""
    process = processes(events)
    first, second = launch[queues.rows], launch[queues.after]
    other = process[events.lane[first]] != process[events.lane[second]]
    result: BoolArray = (first >= 0) & (second >= 0) & other
    return result


def _dependent(events: EventTable, launch: Int32Array, queues: _Queues) -> BoolArray:
    """Pairs whose second was launched by a call that may let it start before the first has ended."""
    named = np.array([bool(_DEPENDENT.search(name)) for name in events.names], np.bool_)
    call = launch[queues.after]
    result: BoolArray = (call >= 0) & named[events.name[np.maximum(call, 0)]]
    return result


def _beyond_lane(events: EventTable, queues: _Queues, odd: BoolArray) -> BoolArray:
    """On lanes that may merge streams: far longer than all sound rows there.

    Communication waits for other ranks and may last for any time beside other streams.
    """
    time = events.end_ns - events.start_ns
    longest = np.zeros(len(events.lanes), np.int64)
    device = events.is_kind(*DEVICE_KINDS)
    device[queues.rows[odd]] = False
    rows = np.flatnonzero(device)
    np.maximum.at(longest, events.lane[rows], time[rows])
    beyond = time[queues.rows] > TIMES_LONGEST * np.maximum(longest[events.lane[queues.rows]], 1)
    comm = {
        i
        for i in distinct(events.name[queues.rows]).tolist()
        if kernel_class(events.names[i]) == WorkClass.COMM
    }
    waits = np.isin(events.name[queues.rows], list(comm))
    result: BoolArray = beyond & ~waits
    return result


def _too_many(events: EventTable, rows: Int64Array, impossible: BoolArray) -> BoolArray:
    """Where more than a tenth of a lane is impossible, the lane is no queue: nothing is known of its ends."""
    device = events.is_kind(*DEVICE_KINDS)
    of_lane = np.bincount(events.lane[device], minlength=len(events.lanes))
    bad = np.bincount(events.lane[rows[impossible]], minlength=len(events.lanes))
    crowded = bad > np.maximum(1, MINORITY * of_lane)
    result: BoolArray = impossible & crowded[events.lane[rows]]
    return result


def _longest_of_name(events: EventTable, sound: BoolArray) -> dict[int, int]:
    """The longest sound device row of each name."""
    rows = np.flatnonzero(sound & events.is_kind(*DEVICE_KINDS) & (events.end_ns > events.start_ns))
    longest = np.zeros(len(events.names), np.int64)
    np.maximum.at(longest, events.name[rows], events.end_ns[rows] - events.start_ns[rows])
    return {i: int(longest[i]) for i in distinct(events.name[rows]).tolist()}
