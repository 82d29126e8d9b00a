"""What a step does, counted: launches, waits, copies, collectives. Counts of the same program are the same numbers.

A call is of the step in whose host window it begins, device work of the step that launched it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from stepcrit.intervals import ascending
from stepcrit.link.api import SYNCS, CallRole, call_roles
from stepcrit.link.collectives import link_collectives
from stepcrit.link.copies import ends_of
from stepcrit.link.presence import Presence, Use, presence
from stepcrit.model.arrays import BoolArray, Int64Array
from stepcrit.model.classes import WorkClass
from stepcrit.model.events import DEVICE_KINDS, EventKind
from stepcrit.model.links import Links
from stepcrit.model.reading import Reading, unknown
from stepcrit.model.steps import Step
from stepcrit.model.trace import RawTrace

CALLS: Mapping[str, frozenset[CallRole]] = {
    "kernel_launches": frozenset({CallRole.LAUNCH}),
    "graph_launches": frozenset({CallRole.GRAPH_LAUNCH}),
    "host_syncs": SYNCS,
    "cuda_mallocs": frozenset({CallRole.ALLOC}),
}
"""Counts of calls, by what the calls do."""

_HOST = ("Host", "Pageable", "Pinned")


class StepCounts:
    """The counts of one trace, step by step."""

    def __init__(self, trace: RawTrace, links: Links) -> None:
        self._trace = trace
        self._links = links
        self._roles = call_roles(trace.events)
        self._collectives = link_collectives(trace.events, links)
        self._presence: Presence = presence(trace, links)

    def of(self, step: Step) -> dict[str, Reading]:
        """Every count of one step."""
        rows = self._device_rows(step)
        return {
            **self._calls(step),
            "h2d_bytes": self._copied(rows, to_device=True),
            "d2h_bytes": self._copied(rows, to_device=False),
            "collectives": self._communication(step, rows),
            "collective_bytes": self._communicated(step, rows),
            "streams": self._streams(rows),
        }

    def device_kinds(self, step: Step) -> frozenset[str]:
        """Operators of the step that launch device work, by name."""
        events = self._trace.events
        ops = self._links.op[self._device_rows(step)]
        return frozenset(events.names[i] for i in ascending(events.name[ops[ops >= 0]]).tolist())

    def host_kinds(self, step: Step) -> frozenset[str]:
        """Operators of the step, by name."""
        events = self._trace.events
        ops = self._begun(step) & (events.kind == EventKind.CPU_OP)
        return frozenset(events.names[i] for i in ascending(events.name[ops]).tolist())

    def _calls(self, step: Step) -> dict[str, Reading]:
        events = self._trace.events
        calls = events.kind == EventKind.RUNTIME
        if not calls.any() and self._presence.use != Use.NONE:
            return dict.fromkeys(CALLS, unknown("no calls of the device's runtime were recorded"))
        roles = self._roles[calls & self._begun(step)]
        return {
            name: Reading(int(np.isin(roles, [int(role) for role in wanted]).sum()))
            for name, wanted in CALLS.items()
        }

    def _begun(self, step: Step) -> BoolArray:
        """Rows that begin in the step's host window."""
        start = self._trace.events.start_ns
        if step.is_capture:
            return np.ones(len(start), np.bool_)
        begun: BoolArray = (start >= step.host_start_ns) & (start < step.host_end_ns)
        return begun

    def _device_rows(self, step: Step) -> Int64Array:
        """Device activities that the step launched."""
        links = self._links
        if step.is_capture:
            return np.flatnonzero(self._trace.events.is_kind(*DEVICE_KINDS))
        low, high = np.searchsorted(links.issued_ns, (step.host_start_ns, step.host_end_ns), side="left")
        return links.issued[low:high]

    def _copied(self, rows: Int64Array, *, to_device: bool) -> Reading:
        events = self._trace.events
        if not self._presence.device_known:
            return unknown("the device's work was not recorded")
        copies = [row for row in rows.tolist() if events.kind[row] == EventKind.MEMCPY]
        ends = {row: ends_of(events.name_of(row)) for row in copies}
        if any(not source for source, _ in ends.values()):
            return unknown("a copy does not tell from where to where it goes")
        wanted = [
            row
            for row, (source, target) in ends.items()
            if (
                source in _HOST and target not in _HOST
                if to_device
                else target in _HOST and source not in _HOST
            )
        ]
        return _summed((int(events.nbytes[row]) for row in wanted), "a copy does not tell its size")

    def _communication(self, step: Step, rows: Int64Array) -> Reading:
        if not self._presence.device_known:
            return unknown("the device's work was not recorded")
        on_host = (self._links.work == WorkClass.COMM_HOST) & self._begun(step)
        if self._presence.use == Use.NONE and on_host.any():
            return unknown("communication ran on the host, which is not counted")
        return Reading(int((self._links.work[rows] == WorkClass.COMM).sum()))

    def _communicated(self, step: Step, rows: Int64Array) -> Reading:
        found = self._communication(step, rows)
        if found.value is None:
            return found
        inside = set(rows.tolist())
        sizes = (one.in_bytes for one in self._collectives if one.row in inside)
        return _summed(sizes, "a collective does not tell its size")

    def _streams(self, rows: Int64Array) -> Reading:
        if not self._presence.device_known:
            return unknown("the device's work was not recorded")
        return Reading(len(ascending(self._trace.events.lane[rows])))


def _summed(sizes: Iterable[int], why: str) -> Reading:
    """The sum, not known where one of them is not."""
    all_sizes = list(sizes)
    return unknown(why) if any(size < 0 for size in all_sizes) else Reading(sum(all_sizes))
