"""Steps and their boundaries. Marks in order of preference: ProfilerStep, optimizer, DataLoader, none.

The device side of a step is what was launched inside its host window, however late it ran. Steps tile
time: each starts at the boundary of the one before, so that elapsed time is the period of the loop.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepcrit.errors import UsageError, quoted
from stepcrit.link.classify import INPUT, OPTIMIZER_STEP
from stepcrit.link.microbatch import microbatches
from stepcrit.link.steady import steady_window
from stepcrit.link.stepmarks import PROFILER_STEP, rows_named
from stepcrit.link.whole import INCOMPLETE, LOST_WORK, judge
from stepcrit.model.arrays import NONE, Int64Array, distinct
from stepcrit.model.events import DEVICE_KINDS, HOST_KINDS, EventKind, EventTable
from stepcrit.model.links import Links
from stepcrit.model.steps import Boundary, Steady, Step, Steps

CAPTURE = "whole capture"


class StepOptions(Struct, frozen=True):
    """How the user wants steps told apart; None leaves it to the trace."""

    boundary: Boundary | None = None
    step_regex: str | None = None
    optimizer_regex: str | None = None


class Window(Struct, frozen=True):
    """A host window that stands for one step."""

    label: str
    start_ns: int
    end_ns: int
    lane: int
    is_capture: bool = False


class _View(Struct, frozen=True, eq=False):
    """What finding steps looks at."""

    events: EventTable
    links: Links
    device: Int64Array  # launched device rows, by launch start
    issued_ns: Int64Array
    optimizer: Int64Array  # Optimizer.step ranges in time order


def find_steps(
    events: EventTable, links: Links, options: StepOptions | None = None, *, is_cut: bool = False
) -> Steps:
    """Find the steps of a linked trace; of a file that was cut off (`is_cut`) the last one is not whole.

    Raises:
        UsageError: the update boundary was asked for and no optimizer range is in the trace, or a
            pattern of the options matches nothing.
    """
    options = options or StepOptions()
    view = _view(events, links, options)
    windows, source = _windows(view, options)
    boundary, why = _boundary(view, windows, source, options.boundary)
    if boundary == Boundary.UPDATE and source != "optimizer" and _updates_span_steps(view, windows):
        windows, source = _optimizer_windows(view), "optimizer"
    steps = _tile(view, windows, boundary)
    steps = judge(events, links, steps, is_cut=is_cut)
    periods = [s.elapsed_ns for s in steps if s.opens_at_boundary and not s.why_not]
    steady = steady_window(periods) if periods else None
    steps = _apply_steady(steps, steady)
    counts = microbatches(events, view.optimizer)
    notes = tuple(_notes(view, steps, steady, boundary))
    if _ends_on_host(view, steps, boundary) and boundary != Boundary.UPDATE:
        boundary = Boundary.HOST
    return Steps(steps, source, boundary, why, _representative(steps), steady, counts, notes)


def _view(events: EventTable, links: Links, options: StepOptions) -> _View:
    optimizer = _optimizer_rows(events, options.optimizer_regex)
    return _View(events, links, links.issued, links.issued_ns, optimizer)


def _optimizer_rows(events: EventTable, regex: str | None) -> Int64Array:
    """Outermost Optimizer.step ranges; of several optimizers, the one that closes each cycle unless named."""
    rows = np.flatnonzero(rows_named(events, regex or OPTIMIZER_STEP))
    if regex and not rows.size:
        raise UsageError(
            f"no range matches --optimizer-regex {quoted(regex)}", do="give a pattern of a range in the trace"
        )
    if rows.size:
        last = events.name[rows[np.argmax(events.end_ns[rows])]]
        rows = rows[events.name[rows] == last]
        reach = np.maximum.accumulate(events.end_ns[rows])
        rows = rows[np.concatenate(([True], events.start_ns[rows][1:] >= reach[:-1]))]
    return rows


def _windows(view: _View, options: StepOptions) -> tuple[list[Window], str]:
    """The host windows of the steps, and what marks them."""
    if options.step_regex:
        found = _marked(view.events, options.step_regex)
        if not found:
            raise UsageError(
                f"no range matches --step-regex {quoted(options.step_regex)}",
                do="give a pattern of a range in the trace",
            )
        return found, "ranges"
    found = _marked(view.events, PROFILER_STEP)
    if found:
        return found, "ProfilerStep"
    if len(view.optimizer) > 1:
        return _optimizer_windows(view), "optimizer"
    found = _input_windows(view.events)
    if len(found) > 1:
        return found, "DataLoader"
    return [_capture(view)], "capture"


def _marked(events: EventTable, pattern: str | re.Pattern[str]) -> list[Window]:
    """Host ranges whose name matches, in time order; a range inside another of them is not a step of its own."""
    rows = np.flatnonzero(rows_named(events, pattern))
    windows: list[Window] = []
    for row in rows.tolist():
        start, end = int(events.start_ns[row]), int(events.end_ns[row])
        if end > start and not (windows and end <= windows[-1].end_ns):
            windows.append(Window(events.name_of(row), start, end, int(events.lane[row])))
    return windows


def _optimizer_windows(view: _View) -> list[Window]:
    """From the end of one update to the end of the next; the first opens with the thread."""
    events = view.events
    lane = int(events.lane[view.optimizer[0]])
    first = int(events.start_ns[events.lane == lane].min())
    ends = [first, *events.end_ns[view.optimizer].tolist()]
    return [Window(f"update {i}", a, b, lane) for i, (a, b) in enumerate(pairwise(ends), 1)]


def _input_windows(events: EventTable) -> list[Window]:
    """From one batch request to the next."""
    rows = np.flatnonzero(rows_named(events, INPUT))
    if not rows.size:
        return []
    lane = int(events.lane[rows[0]])
    rows = rows[events.lane[rows] == lane]
    starts = [*events.start_ns[rows].tolist(), _host_end(events, lane)]
    return [Window(f"batch {i}", a, b, lane) for i, (a, b) in enumerate(pairwise(starts), 1) if b > a]


def _capture(view: _View) -> Window:
    """The whole recording as one window, without the profiler's own closing synchronize."""
    events = view.events
    ops = np.flatnonzero(events.is_kind(EventKind.CPU_OP, EventKind.ANNOTATION))
    host = ops if ops.size else np.flatnonzero(events.is_kind(EventKind.RUNTIME))
    device = np.flatnonzero(events.is_kind(*DEVICE_KINDS))
    rows = np.concatenate((host, device))
    if not rows.size:
        return Window(CAPTURE, 0, 0, NONE, is_capture=True)
    lane = int(np.bincount(events.lane[host]).argmax()) if host.size else NONE
    end = _host_end(events, lane) if host.size else int(events.end_ns[device].max())
    own = np.flatnonzero(
        (events.lane == lane) & events.is_kind(*HOST_KINDS)
    )  # calls before the first operator too
    start = int(events.start_ns[np.concatenate((rows, own))].min())
    return Window(CAPTURE, start, end, lane, is_capture=True)


def _host_end(events: EventTable, lane: int) -> int:
    """The end of a thread's work: operators and annotations if it has any, else its calls."""
    mine = events.lane == lane
    ops = mine & events.is_kind(EventKind.CPU_OP, EventKind.ANNOTATION)
    return int(events.end_ns[ops if ops.any() else mine].max())


def _boundary(
    view: _View, windows: list[Window], source: str, asked: Boundary | None
) -> tuple[Boundary, str]:
    """The boundary to use, and why."""
    if asked == Boundary.UPDATE and not view.optimizer.size:
        raise UsageError(
            "no Optimizer.step range in this trace; the update boundary is unknown",
            do="use --boundary device or --optimizer-regex",
        )
    if asked is not None:
        return asked, "as asked for"
    if source == "ProfilerStep" and _updates_span_steps(view, windows):
        return Boundary.UPDATE, "an update spans several profiler steps"
    has_device = view.events.is_kind(*DEVICE_KINDS).any() if source == "capture" else view.device.size
    if not has_device:
        return Boundary.HOST, "no launched device work in this trace: a step ends with its host window"
    return Boundary.DEVICE, "all device work of the step is done"


def _updates_span_steps(view: _View, windows: list[Window]) -> bool:
    """Whether fewer than half of the windows hold an update while at least two updates are there."""
    ends = np.sort(view.events.end_ns[view.optimizer] - 1)
    if len(ends) < 2 or not windows:
        return False
    start = np.array([w.start_ns for w in windows])
    end = np.array([w.end_ns for w in windows])
    holds = np.searchsorted(ends, end, side="left") > np.searchsorted(ends, start, side="left")
    return int(holds.sum()) * 2 <= len(windows)


def _tile(view: _View, windows: list[Window], boundary: Boundary) -> tuple[Step, ...]:
    """Each window with its boundary; a step starts where the one before ended."""
    steps: list[Step] = []
    previous: int | None = None
    backlog = _backlog_end(view)
    for i, window in enumerate(windows):
        low, high = np.searchsorted(view.issued_ns, (window.start_ns, window.end_ns), side="left")
        rows = view.device[low:high]
        end = _instant(view, window, rows, boundary)
        # A boundary before the previous one (a step without device work) would turn time around.
        first = window.start_ns if window.is_capture or backlog >= end else max(window.start_ns, backlog)
        start = first if previous is None else previous
        end = max(end, start)
        label = window.label
        count = len(view.device) if window.is_capture else len(rows)
        place = (window.start_ns, _host_reach(view, window), start, end, window.lane)
        marks = (_update_of(view, window), previous is not None, window.is_capture)
        steps.append(Step(i, label, *place, count, *marks))
        previous = end
    return tuple(steps)


def _host_reach(view: _View, window: Window) -> int:
    """The end of the host's work in a window; that of a whole capture is all threads', not only the busiest one's."""
    if not window.is_capture:
        return window.end_ns
    ops = view.events.is_kind(EventKind.CPU_OP, EventKind.ANNOTATION)
    return int(view.events.end_ns[ops].max(initial=window.end_ns))


def _backlog_end(view: _View) -> int:
    """When the work that had been launched before the recording ended, -1 without any.

    It fills the beginning of a queue, up to the queue's first launched activity, and belongs to no step.
    """
    events = view.events
    launched = view.links.launch >= 0
    device = np.flatnonzero(events.is_kind(*DEVICE_KINDS))
    end = NONE
    for lane in distinct(events.lane[device]).tolist():
        rows = device[events.lane[device] == lane]
        first = int(np.argmax(launched[rows])) if launched[rows].any() else 0
        end = max(end, int(events.end_ns[rows[:first]].max(initial=NONE)))
    return end


def _instant(view: _View, window: Window, rows: Int64Array, boundary: Boundary) -> int:
    """When one window is done."""
    events = view.events
    if boundary == Boundary.HOST:
        return window.end_ns
    if boundary == Boundary.LAUNCH:
        return int(events.end_ns[view.links.launch[rows]].max(initial=0)) or window.end_ns
    if boundary == Boundary.UPDATE:
        update = _update_of(view, window)
        if update < 0:
            return window.end_ns
        inside = _launched_in(events, view.links, rows, update)
        return int(events.end_ns[inside].max(initial=int(events.end_ns[update])))
    if window.is_capture:
        rows = np.flatnonzero(events.is_kind(*DEVICE_KINDS))
    return int(events.end_ns[rows].max(initial=0)) or window.end_ns


def _update_of(view: _View, window: Window) -> int:
    """The last optimizer range inside a window, -1 when there is none."""
    ends = view.events.end_ns[view.optimizer]  # ascending: none of them overlaps another
    last = int(np.searchsorted(ends, window.end_ns, side="right")) - 1
    if last < 0 or view.events.start_ns[view.optimizer[last]] < window.start_ns:
        return NONE
    return int(view.optimizer[last])


def _launched_in(events: EventTable, links: Links, rows: Int64Array, around: int) -> Int64Array:
    """Those of some launched device rows whose launch call lies in a host range, on its thread."""
    call = links.launch[rows]
    inside = (events.start_ns[call] >= events.start_ns[around]) & (
        events.start_ns[call] < events.end_ns[around]
    )
    found: Int64Array = rows[inside & (events.lane[call] == events.lane[around])]
    return found


def boundary_rows(events: EventTable, links: Links, steps: Steps, step: Step) -> Int64Array:
    """The device activities that a step's boundary requires; none when it ends on the host."""
    if steps.boundary in (Boundary.HOST, Boundary.LAUNCH):
        return np.empty(0, np.int64)
    if step.is_capture:
        return np.flatnonzero(events.is_kind(*DEVICE_KINDS))
    low, high = np.searchsorted(links.issued_ns, (step.host_start_ns, step.host_end_ns), side="left")
    rows = links.issued[low:high]
    if steps.boundary == Boundary.UPDATE and step.update >= 0:
        return _launched_in(events, links, rows, step.update)
    return rows


def _apply_steady(steps: tuple[Step, ...], steady: Steady | None) -> tuple[Step, ...]:
    """Mark warm-up and outliers among the steps that have a period."""
    if steady is None or steady.first is None:
        return steps
    with_period = [s.index for s in steps if s.opens_at_boundary and not s.why_not]
    marked = list(steps)
    for i, index in enumerate(with_period):
        if i < steady.first:
            marked[index] = replace(
                marked[index], used=False, why_not="warm-up: before the first steady period"
            )
        elif i in steady.outliers:
            marked[index] = replace(
                marked[index], why_not="outlier: outside the steady band, kept in the sample"
            )
    return tuple(marked)


def _representative(steps: Sequence[Step]) -> int:
    """The lower median of the used steps; without one, the last step that has a period, or the first."""
    used = sorted((s for s in steps if s.used and s.elapsed_ns), key=lambda s: (s.elapsed_ns, s.index))
    if used:
        return used[(len(used) - 1) // 2].index
    lasting = [s for s in steps if s.elapsed_ns]
    lasting = [s for s in lasting if not s.why_not.startswith((INCOMPLETE, LOST_WORK))] or lasting
    with_period = [s for s in lasting if s.opens_at_boundary]
    return (with_period or lasting or list(steps))[-1].index


def _ends_on_host(view: _View, steps: tuple[Step, ...], boundary: Boundary) -> bool:
    """Whether a boundary that waits for the device falls back to the host, since nothing was launched."""
    if boundary == Boundary.DEVICE and steps[0].is_capture and view.events.is_kind(*DEVICE_KINDS).any():
        return False  # a whole capture waits for all device work, whoever launched it
    return boundary != Boundary.HOST and not view.device.size and steps[0].lane >= 0


def _notes(view: _View, steps: tuple[Step, ...], steady: Steady | None, boundary: Boundary) -> list[str]:
    """What must be said with any number per step."""
    notes = []
    used = sum(s.used and s.opens_at_boundary for s in steps)
    if len(steps) == 1:
        notes.append("one window, no distribution")
    elif steady is not None and steady.first is None and used >= 3:
        notes.append(f"no steady state: {used} periods differ too much for one to stand for the others")
    elif steady is not None and steady.first is None:
        have = "1 step has" if used == 1 else f"{used} steps have"
        notes.append(f"no steady state: 3 steady steps needed for a distribution, {have} a period")
    elif used < 3:
        notes.append(
            f"3 steady steps needed for a distribution, found {used}: single-step path shown, no interval"
        )
    if _ends_on_host(view, steps, boundary):
        notes.append("no device work with a launch: the boundary is the host's")
    return notes
