"""Which activity of one step is which of another: the same name, in the same order, on the same thread or queue.

Operators, annotations and device activities must agree in name, number and order on every queue, on the
step's own thread and on every thread that launches its work; otherwise the two steps did different
things and do not compare. Runtime calls may differ (an allocator asks the device as often as it likes),
and so may marks of steps, which do no work. A thread that only runs beside the step is left out if it differs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np
from msgspec import Struct

from stepcrit.errors import quoted
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.intervals import ascending
from stepcrit.link.stepmarks import step_marks
from stepcrit.model.arrays import Int64Array, distinct
from stepcrit.model.events import EventKind
from stepcrit.model.steps import Step

Rows = tuple[Int64Array, Int64Array]
"""Event rows of one step, and their counterparts in another, one for one."""

_NUMBER = re.compile(r"\d+")


class Counterparts(Struct, frozen=True, eq=False):
    """What of one step was found again in another.

    Attributes:
        step, other: the two steps.
        device: device activities launched in the step's host window.
        threads: host lane -> operators, annotations, launch calls and blocking calls that begin in the
            window, for every thread that agrees.
    """

    step: Step
    other: Step
    device: Rows
    threads: Mapping[int, Rows]


class _InTime(Struct, frozen=True, eq=False):
    """Event rows in time order, and when they begin."""

    rows: Int64Array
    start_ns: Int64Array


class Matcher(Struct, frozen=True, eq=False):
    """Compares the steps of one capture. Made by `matcher`.

    Attributes:
        view: any step of the capture.
        note_code: per name, a number for what an annotation of that name is called.
        ranges: operators and annotations that do work.
        waits: calls of the kinds that block somewhere in the capture.
        lanes: host lanes that the graph has nodes for.
    """

    view: StepGraph
    note_code: Int64Array
    ranges: _InTime
    waits: _InTime
    lanes: tuple[int, ...]

    def match(self, step: Step, other: Step) -> Counterparts | str:
        """The counterparts of one step's work in another step, or in words why the two do not compare."""
        device = self._queues(step, other)
        if isinstance(device, str):
            return device
        launch, lane = self.view.links.launch, self.view.trace.events.lane
        calls = launch[device[0]], launch[device[1]]
        needed = {step.lane, *lane[calls[0]].tolist()}
        threads: dict[int, Rows] = {}
        for one in self.lanes:
            mine, theirs = self._on(self.ranges, step, one), self._on(self.ranges, other, one)
            again = self._again(mine, theirs)
            if again is not None:
                here = (lane[calls[0]] == one) & (lane[calls[1]] == one)
                waits = self._waits(step, other, one)
                rows = [(mine, again), (calls[0][here], calls[1][here]), waits]
                threads[one] = _joined(rows)
            elif one in needed:
                return self._words((step, mine), (other, theirs))
        return Counterparts(step, other, device, threads)

    def _queues(self, step: Step, other: Step) -> Rows | str:
        """The device activities of both steps, queue by queue."""
        mine, theirs = self._launched(step), self._launched(other)
        lane, pairs = self.view.trace.events.lane, []
        for one in ascending(np.concatenate((lane[mine], lane[theirs]))).tolist():
            a, b = mine[lane[mine] == one], theirs[lane[theirs] == one]
            again = self._again(a, b)
            if again is None:
                return self._words((step, a), (other, b))
            pairs.append((a, again))
        return _joined(pairs)

    def _launched(self, step: Step) -> Int64Array:
        """Device rows launched in a step's host window, in the order in which they start."""
        links = self.view.links
        low, high = np.searchsorted(links.issued_ns, (step.host_start_ns, step.host_end_ns), side="left")
        return np.sort(links.issued[low:high])

    def _on(self, some: _InTime, step: Step, lane: int) -> Int64Array:
        """Those of some rows that begin in a step's host window on one thread."""
        low, high = np.searchsorted(some.start_ns, (step.host_start_ns, step.host_end_ns), side="left")
        within = some.rows[low:high]
        found: Int64Array = within[self.view.trace.events.lane[within] == lane]
        return found

    def _waits(self, step: Step, other: Step, lane: int) -> Rows:
        """Blocking calls of both steps on one thread; none where they do not agree."""
        mine, theirs = self._on(self.waits, step, lane), self._on(self.waits, other, lane)
        again = self._again(mine, theirs)
        return _joined([]) if again is None else (mine, again)

    def _again(self, mine: Int64Array, theirs: Int64Array) -> Int64Array | None:
        """The n-th of each name for the n-th of that name; None where names, numbers or order differ.

        Rows that start at the same instant have no order: with a clock of microseconds, many do.
        """
        if len(mine) != len(theirs):
            return None
        code, other_code = self._code(mine), self._code(theirs)
        a, b = np.argsort(code, kind="stable"), np.argsort(other_code, kind="stable")
        if (code[a] != other_code[b]).any():
            return None
        again = np.empty_like(theirs)
        again[a] = theirs[b]
        start = self.view.trace.events.start_ns
        in_time = start[again][np.lexsort((start[again], start[mine]))]
        return None if (np.diff(in_time) < 0).any() else again

    def _code(self, rows: Int64Array) -> Int64Array:
        """A number for what each of some rows is called."""
        events = self.view.trace.events
        name = events.name[rows].astype(np.int64)
        return np.where(events.kind[rows] == EventKind.ANNOTATION, self.note_code[name], name)

    def _words(self, mine: tuple[Step, Int64Array], theirs: tuple[Step, Int64Array]) -> str:
        """The first thing in which two steps differ on one lane."""
        events = self.view.trace.events
        (step, a), (other, b) = mine, theirs
        where = events.lane_of(int((a if a.size else b)[0])).words
        codes, other_codes = self._code(a).tolist(), self._code(b).tolist()
        count, other_count = Counter(codes), Counter(other_codes)
        rows = (*a.tolist(), *b.tolist())
        for row, code in zip(rows, (*codes, *other_codes), strict=True):
            if count[code] != other_count[code]:
                name = quoted(events.name_of(row))
                return (
                    f"{name} runs {_times(count[code])} in {step.label} and {_times(other_count[code])} "
                    f"in {other.label} ({where})"
                )
        return f"{step.label} and {other.label} run the same work in another order ({where})"


def matcher(view: StepGraph) -> Matcher:
    """Look at the capture once, for all comparisons of its steps."""
    events, threads = view.trace.events, view.built.threads
    loose: dict[str, int] = {}
    # What a loop calls its annotations may count on from step to step.
    number = [loose.setdefault(_NUMBER.sub("#", name), len(loose)) for name in events.names]
    work = events.is_kind(EventKind.CPU_OP, EventKind.ANNOTATION) & ~step_marks(events)
    blocking = distinct(events.name[threads.row[threads.is_sync]])
    waits = events.is_kind(EventKind.RUNTIME) & np.isin(events.name, blocking)
    lanes = tuple(np.flatnonzero(np.diff(threads.ptr)).tolist())
    ranges, calls = (_InTime(rows, events.start_ns[rows]) for rows in map(np.flatnonzero, (work, waits)))
    return Matcher(view, len(events.names) + np.array(number, np.int64), ranges, calls, lanes)


def _joined(pairs: Iterable[Rows]) -> Rows:
    """Several pairs of columns as one."""
    none = np.empty(0, np.int64)
    mine, theirs = zip((none, none), *pairs, strict=True)
    return np.concatenate(mine), np.concatenate(theirs)


def _times(count: int) -> str:
    return {0: "never", 1: "once"}.get(count, f"{count} times")
