"""Which steps stay, and which rows the schedule graph needs of the time around them.

A step opens where the one before it ends, so that one stays whole: its device work tells the boundary, its
launches fill the queue. Of what ran still earlier stays what was in flight, with the calls that launched it;
of what came later, what had begun before the last boundary.
"""

from __future__ import annotations

import re

import numpy as np
from msgspec import Struct

from stepcrit.errors import UsageError, quoted
from stepcrit.intervals import ascending
from stepcrit.link.stepmarks import step_marks
from stepcrit.model.arrays import NONE, BoolArray, Int32Array, Int64Array, IntArray
from stepcrit.model.events import DEVICE_KINDS, EventTable, Side
from stepcrit.model.links import Links
from stepcrit.model.steps import Step, Steps
from stepcrit.session import Trace, find_step

FEW = 6
"""A trace of so many steps keeps all of them."""

KEPT = 5
"""Of a longer one stay so many around the median step: enough for a distribution."""

_RANGE = re.compile(r"(.*?\d)-(\d+)")
_LAST = re.compile(r"last:(\d{1,6})")


class Choice(Struct, frozen=True, eq=False):
    """The steps that stay.

    Attributes:
        first, last: the first and the last step that was asked for.
        count: how many steps stay, the one before them included.
        is_all: whether nothing is left out.
        why: how they were chosen, for people.
        gone: positions in the file of the rows that go, sorted.
        window_ns: the time that stays, since the trace's origin.
    """

    first: Step
    last: Step
    count: int
    is_all: bool
    why: str
    gone: Int64Array
    window_ns: tuple[int, int]


def choose(trace: Trace, asked: str | None) -> Choice:
    """Find the steps that stay and the rows that go.

    Args:
        trace: the whole trace.
        asked: "all", "median", "last:3", "12", "12-15", or None for the default.

    Raises:
        UsageError: there are no such steps.
    """
    steps = trace.steps
    low, high, why = _bounds(steps, asked, is_slim=trace.meta.slim is not None)
    opening = _opening(steps, low)
    is_all = opening == 0 and high == len(steps) - 1
    start = -(2**62) if opening == 0 else steps[opening].host_start_ns
    end = 2**62 if high == len(steps) - 1 else _end(steps[high])
    gone = np.empty(0, np.int64)
    if not is_all:
        kept = _kept(trace.raw.events, trace.links, (start, end), steps[opening : high + 1])
        # A launch in flight lies in its update, which would pass for one more step.
        earlier = [s.update for s in steps[:opening] if s.update != NONE]
        kept[earlier if steps.source == "optimizer" else []] = False
        gone = np.sort(trace.raw.events.order[~kept])
    return Choice(steps[low], steps[high], high - opening + 1, is_all, why, gone, (start, end))


def _opening(steps: Steps, low: int) -> int:
    """The step whose boundary opens the first one that was asked for.

    One that ends when the step before it does has its boundary from there, and so needs that one as well.
    """
    opening = max(low - 1, 0)
    while opening and not steps[opening].elapsed_ns:
        opening -= 1
    return opening


def _end(step: Step) -> int:
    """When a step is done, on the host and on the device."""
    return max(step.end_ns, step.host_end_ns)


def _bounds(steps: Steps, asked: str | None, *, is_slim: bool) -> tuple[int, int, str]:
    """Indices of the first and the last step, and why these."""
    count = len(steps)
    if asked is None and (is_slim or count <= FEW):
        return 0, count - 1, "all, as it is slimmed already" if is_slim else "all, as there are few (--steps)"
    if asked is None:
        low = min(max(steps.representative - KEPT // 2, 1), count - KEPT)
        return low, low + KEPT - 1, f"{KEPT} around the median one (--steps)"
    if asked == "all":
        return 0, count - 1, "as asked for"
    return *_named(steps, asked), "as asked for"


def _named(steps: Steps, asked: str) -> tuple[int, int]:
    """Indices of the steps that a user names."""
    count = len(steps)
    if last := _LAST.fullmatch(asked):
        if not 0 < int(last[1]) <= count:
            raise UsageError(f"there are no {quoted(last[1])} steps to keep", do=f"this trace has {count}")
        return count - int(last[1]), count - 1
    ends = _RANGE.fullmatch(asked)
    try:
        low, high = (find_step(steps, end).index for end in (ends.groups() if ends else (asked, asked)))
    except UsageError as error:
        raise UsageError(error.what, do=f"{error.do}; or all, median, last:3, 12-15") from error
    if low > high:
        raise UsageError(f"{quoted(asked)} ends before it begins", do="name the earlier step first")
    return low, high


def _kept(events: EventTable, links: Links, window: tuple[int, int], steps: tuple[Step, ...]) -> BoolArray:
    """The rows that stay."""
    start, end = window
    sides = np.array([lane.side for lane in events.lanes], np.int8)
    inside: BoolArray = (events.end_ns > start) & (events.start_ns < end)
    device = events.is_kind(*DEVICE_KINDS)
    launch = links.launch
    launched = np.flatnonzero(device & (launch >= 0))
    # What was issued after the window runs after it, and what was issued in it stays wherever it runs.
    inside[launched] = inside[launch[launched]] | (
        inside[launched] & (events.start_ns[launch[launched]] < end)
    )
    inside[launch[launched[inside[launched]]]] = True
    _with_parents(inside, links.parent)
    marks = np.flatnonzero(step_marks(events) & (sides[events.lane] == Side.HOST))
    own = {(s.host_start_ns, s.host_end_ns) for s in steps}
    for row in marks.tolist():
        inside[row] &= (int(events.start_ns[row]), int(events.end_ns[row])) in own
    return inside


def _with_parents(inside: BoolArray, parent: Int32Array) -> None:
    """Keep the ranges around what stays: a call belongs to its operators."""
    rows: IntArray = np.flatnonzero(inside)
    while rows.size:
        above = parent[rows]
        above = ascending(above[above != NONE])
        rows = above[~inside[above]]
        inside[rows] = True
