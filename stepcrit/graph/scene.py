"""What the dependency rules look at: device queues in order, who issued what when, and call roles."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from msgspec import Struct

from stepcrit.link.api import call_roles
from stepcrit.model.arrays import NONE, Int8Array, Int64Array, IntArray
from stepcrit.model.events import DEVICE_KINDS, EventKind, EventTable
from stepcrit.model.links import Links

BEFORE_CAPTURE = np.int64(-(2**62))
"""The issue time of an activity whose launch is not in the trace: before everything."""


class Rules(Struct, frozen=True):
    """What the rules may assume.

    Attributes:
        strict: no edge on timing alone.
        device_only: device queues and recorded events only; the host takes no part.
        tolerance_ns: how far a start may precede its cause and still count as simultaneous.
        timing_gap_ns, timing_near_ns: the timing rule's gap and nearness (methods B.7).
    """

    strict: bool = False
    device_only: bool = False
    tolerance_ns: int = 1_000
    timing_gap_ns: int = 20_000
    timing_near_ns: int = 5_000


class Queue(Struct, frozen=True, eq=False):
    """One device queue: rows in start order, and the same rows by the time they were issued."""

    lane: int
    rows: Int64Array
    issued: Int64Array
    issued_rows: Int64Array
    latest: Int64Array  # of issued_rows[: i + 1], the row that ends last
    reach: Int64Array  # of rows[: i + 1], the latest end

    def last_issued_before(self, at_ns: int) -> int:
        """The last activity issued before an instant, -1 when there is none."""
        i = int(np.searchsorted(self.issued, at_ns, side="left")) - 1
        return int(self.issued_rows[i]) if i >= 0 else NONE

    def last_to_end_of(self, at_ns: int) -> int:
        """Of everything issued before an instant, the activity that ends last."""
        i = int(np.searchsorted(self.issued, at_ns, side="left")) - 1
        return int(self.latest[i]) if i >= 0 else NONE

    def last_to_end_by(self, at_ns: int) -> int:
        """The last activity, in queue order, by which the queue had run through at an instant."""
        i = int(np.searchsorted(self.reach, at_ns, side="right")) - 1
        return int(self.rows[i]) if i >= 0 else NONE

    def first_issued_after(self, at_ns: int) -> int:
        """The first activity issued at or after an instant, -1 when there is none."""
        i = int(np.searchsorted(self.issued, at_ns, side="left"))
        return int(self.issued_rows[i]) if i < len(self.issued) else NONE


class Issuer(Struct, frozen=True, eq=False):
    """What one host thread issued: launch times and device rows, in issue order."""

    at_ns: Int64Array
    rows: Int64Array

    def last_before(self, at_ns: int) -> int:
        """The last activity this thread issued before an instant, -1 when there is none."""
        i = int(np.searchsorted(self.at_ns, at_ns, side="left")) - 1
        return int(self.rows[i]) if i >= 0 else NONE

    def first_after(self, at_ns: int) -> int:
        """The first activity this thread issued at or after an instant, -1 when there is none."""
        i = int(np.searchsorted(self.at_ns, at_ns, side="left"))
        return int(self.rows[i]) if i < len(self.rows) else NONE


class Scene(Struct, frozen=True, eq=False):
    """The linked trace, seen from the device queues."""

    events: EventTable
    links: Links
    rules: Rules
    device: Int64Array  # device rows by (lane, start, correlation, end)
    issue_ns: Int64Array  # per event row, when its launch call started
    queues: dict[int, Queue]
    issuers: dict[int, Issuer]  # by host lane
    roles: Int8Array
    runtime: Int64Array  # rows of runtime calls
    call_of: dict[int, int]  # correlation -> runtime call; filled only where sync records need it

    def queues_of(self, device: int) -> list[Queue]:
        """The queues of one device ordinal."""
        return [q for lane, q in self.queues.items() if self.events.lanes[lane].device == device]


def survey(events: EventTable, links: Links, rules: Rules) -> Scene:
    """Lay out the scene."""
    device = np.flatnonzero(events.is_kind(*DEVICE_KINDS))
    # Of what starts at one instant on one queue, the shorter first: only so can both have run in order.
    order = (
        device,
        events.end_ns[device],
        events.correlation[device],
        events.start_ns[device],
        events.lane[device],
    )
    device = device[np.lexsort(order)]
    issue = np.full(len(events), BEFORE_CAPTURE, np.int64)
    launched = np.flatnonzero(links.launch >= 0)
    issue[launched] = events.start_ns[links.launch[launched]]
    queues = {
        lane: _queue(lane, rows, issue, events.end_ns) for lane, rows in _by_lane(device, events.lane[device])
    }
    launched = device[links.launch[device] >= 0]
    launched = launched[np.argsort(issue[launched], kind="stable")]
    issuers = {
        lane: Issuer(issue[rows], rows)
        for lane, rows in _by_lane(launched, events.lane[links.launch[launched]])
    }
    runtime = np.flatnonzero(events.is_kind(EventKind.RUNTIME))
    return Scene(
        events,
        links,
        rules,
        device,
        issue,
        queues,
        issuers,
        call_roles(events),
        runtime,
        _call_of(events, runtime),
    )


def _by_lane(rows: Int64Array, lane: IntArray) -> Iterator[tuple[int, Int64Array]]:
    """Rows grouped by lane, in the order in which they come."""
    order = np.argsort(lane, kind="stable")
    bounds = np.flatnonzero(np.diff(lane[order])) + 1
    for group in np.split(order, bounds) if rows.size else ():
        yield int(lane[group[0]]), rows[group]


def _call_of(events: EventTable, runtime: Int64Array) -> dict[int, int]:
    """Runtime calls by correlation, if the trace has sync records to look them up for."""
    if not events.is_kind(EventKind.SYNC).any():
        return {}
    runtime = runtime[events.correlation[runtime] >= 0]
    return dict(zip(events.correlation[runtime].tolist(), runtime.tolist(), strict=True))


def _queue(lane: int, rows: Int64Array, issue: Int64Array, end_ns: Int64Array) -> Queue:
    by_issue = rows[np.argsort(issue[rows], kind="stable")]
    ends = end_ns[by_issue]
    reach = np.maximum.accumulate(ends)
    holder = np.maximum.accumulate(np.where(ends == reach, np.arange(len(rows)), 0))
    return Queue(lane, rows, issue[by_issue], by_issue, by_issue[holder], np.maximum.accumulate(end_ns[rows]))


def calls(scene: Scene, *roles: int) -> list[int]:
    """Runtime calls of the given roles, in time order."""
    found: list[int] = scene.runtime[np.isin(scene.roles[scene.runtime], np.array(roles, np.int8))].tolist()
    return found
