"""Changes to a schedule: durations scaled, set, added to or removed, in exact rational steps.

Several changes combine in the order given; each sees the durations that the one before it left. The
result is new durations and, where gaps were changed or removed, new delays; edges never change here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepcrit.errors import UsageError, quoted
from stepcrit.graph.input import Loop
from stepcrit.graph.marks import Side
from stepcrit.graph.parts import keep_tails
from stepcrit.graph.schedule import GapPolicy, Lags, unwaited, without
from stepcrit.graph.select import Selection, launch_entries, select, within
from stepcrit.graph.selector import Selector, parse_selector
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.model.arrays import BoolArray, Int64Array
from stepcrit.model.graph import EdgeKind

WAITS = (EdgeKind.SYNC, EdgeKind.BACKPRESSURE)
"""Edges over which a host call waits for the device."""

Operation = Literal["scale", "set", "add", "remove"]


class Change(Struct, frozen=True):
    """One change.

    Attributes:
        selector: what it applies to.
        operation: "scale" by `factor`, "set" or "add" `amount_ns` per activity, or "remove" with its gap.
        factor: for "scale", what is left: 1/2 means half the time.
        amount_ns: for "set" and "add".
    """

    selector: Selector
    operation: Operation
    factor: Fraction = Fraction(1)
    amount_ns: int = 0


class Applied(Struct, frozen=True, eq=False):
    """What changes make of a graph.

    Attributes:
        dur_ns: durations per node.
        gap_ns: residual gaps per node.
        removed: nodes whose gap and lag went with them.
        dropped: edges that nothing waits over any more: the waits of removed calls.
        selections: what each change is applied to, in order.
        calls: entries of the launch calls that change along, by change.
        production: what is left of the time that loader workers take over a batch.
        changed: (node, event row, ns) by which each entry grew, as three columns.
    """

    dur_ns: Int64Array
    gap_ns: Int64Array
    removed: BoolArray
    dropped: BoolArray
    selections: tuple[Selection, ...]
    calls: tuple[Int64Array, ...]
    production: Fraction
    changed: tuple[Int64Array, Int64Array, Int64Array]

    def delays(self, view: StepGraph, policy: GapPolicy) -> Lags:
        """The delays that replay uses after the changes."""
        arrivals = replace(view.built.arrivals, gap_ns=self.gap_ns)
        delays = view.delays(policy, arrivals)
        calls = view.launch_calls
        edges = calls.delays(calls.longer_ns(self.changed), delays.edge_ns, policy)
        delays = Lags(edges, delays.origin_ns)
        if self.removed.any():
            delays = without(view.built.graph, delays, self.removed)
        return unwaited(delays, self.dropped) if self.dropped.any() else delays


def parse_change(operation: str, text: str) -> Change:
    """A change from `SELECTOR=AMOUNT`; the last `=` splits, since C++ names hold some.

    Args:
        operation: "shrink", "speedup", "set", "add" or "remove".
        text: for "remove" the selector alone.

    Raises:
        UsageError: no amount, or one that cannot be read.

    >>> parse_change("shrink", "aten::mm=0.5").factor, parse_change("speedup", "class:gemm=2x").factor
    (Fraction(1, 2), Fraction(1, 2))
    """
    if operation == "remove":
        return Change(parse_selector(text), "remove")
    name, equals, amount = text.rpartition("=")
    if not equals or not name:
        raise UsageError(
            f"--{operation} needs SELECTOR=AMOUNT, got {quoted(text)}",
            do=f"for example --{operation} aten::mm={'2x' if operation == 'speedup' else '0.5'}",
        )
    selector = parse_selector(name)
    if operation in ("shrink", "speedup"):
        return Change(selector, "scale", factor=_factor(operation, amount))
    return Change(selector, "set" if operation == "set" else "add", amount_ns=parse_duration(amount))


def parse_duration(words: str) -> int:
    """A duration with its unit, in ns.

    >>> parse_duration("5us"), parse_duration("1.5 ms")
    (5000, 1500000)

    Raises:
        UsageError: it has no unit, or no number, or is negative.
    """
    written = words.strip().replace("\u03bc", "µ")  # the Greek letter; the other is the micro sign
    number = written.rstrip("nuµms ")
    unit = written[len(number) :].strip()
    value = parse_number(number)
    if unit not in _UNITS or value is None:
        raise UsageError(
            f"{quoted(words)} is not a duration", do="write a number with a unit: 750ns, 5us, 1.5ms"
        )
    if value * _UNITS[unit] > LONGEST_NS:
        raise UsageError(f"{quoted(words)} is too long", do="durations end at 1000000s")
    return int(value * _UNITS[unit])


LONGEST_NS = 10**15
"""No amount of time is longer, so that sums of many stay whole numbers of 64 bits."""

LARGEST_FACTOR = 10**9
"""No factor is larger, nor smaller than one over it unless 0."""

_UNITS = {"ns": 1, "us": 1_000, "µs": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_EXPONENT = re.compile(r"e([+-]?[\d_]*)$", re.IGNORECASE)


def parse_number(words: str) -> Fraction | None:
    """A number of 0 or more, exactly; None where it is none, or so long that reading it would take its time."""
    digits = words.strip()
    exponent = _EXPONENT.search(digits)
    try:
        if len(digits) > 100 or (exponent and abs(int(exponent[1])) > 100):
            return None
        value = Fraction(digits)
    except (ValueError, ZeroDivisionError):
        return None
    return value if value >= 0 else None


def _factor(operation: str, amount: str) -> Fraction:
    """What is left of the time."""
    value = parse_number(amount.removesuffix("x") if operation == "speedup" else amount)
    if value is None or (operation == "speedup" and value == 0):
        raise UsageError(
            f"{quoted(amount)} is no factor",
            do="--shrink op=0.5 (half the time), --speedup op=2x (twice as fast)",
        )
    if value and not Fraction(1, LARGEST_FACTOR) <= value <= LARGEST_FACTOR:
        raise UsageError(f"{quoted(amount)} is no factor to reckon with", do="write 0, or 1e-9 to 1e9")
    return 1 / value if operation == "speedup" else value


class Options(Struct, frozen=True):
    """How selectors are read: see `graph.select`; and whether launch calls change with what they launch."""

    side: Side = "auto"
    self_only: bool = False
    with_launch: bool = False


class Scope(Struct, frozen=True, eq=False):
    """What a change can reach.

    Attributes:
        only: nodes that may change; None for all.
        loop: fetches from loader workers: of them it is the production that changes, since the wait is
            no work of the thread.
    """

    only: BoolArray | None = None
    loop: Loop | None = None


def apply_changes(
    view: StepGraph,
    changes: Sequence[Change],
    options: Options | None = None,
    scope: Scope | None = None,
) -> Applied:
    """Apply changes to the whole capture, in order, as far as the scope lets them.

    Raises:
        UsageError: a selector matches nothing.
    """
    how = options or Options()
    found = [select(view, change.selector, side=how.side, self_only=how.self_only) for change in changes]
    for change, selection in zip(changes, found, strict=True):
        _check(change, selection, with_launch=how.with_launch)
    return put(view, changes, found, scope or Scope(), with_launch=how.with_launch)


def put(
    view: StepGraph,
    changes: Sequence[Change],
    selections: Sequence[Selection],
    scope: Scope,
    *,
    with_launch: bool = False,
) -> Applied:
    """Put each change into effect on what it selects, in order."""
    state = _State(view, scope)
    if scope.only is not None:
        selections = [within(view, selection, scope.only) for selection in selections]
    for change, selection in zip(changes, selections, strict=True):
        state.change(change, selection, with_launch=with_launch)
    return state.applied(tuple(selections))


def _check(change: Change, selection: Selection, *, with_launch: bool) -> None:
    """Refuse what cannot be meant."""
    if change.operation not in ("set", "add"):
        return
    if selection.gap_nodes.any():
        raise UsageError(
            f"{quoted(str(change.selector))} is no activity: gaps cannot be set or lengthened",
            do="gaps can be scaled and removed: --shrink, --speedup, --remove",
        )
    if with_launch and selection.device_count:
        raise UsageError(
            f"--with-launch does not go with --{change.operation}: an amount is for the selected work itself",
            do="name the launch calls in a change of their own, such as --set cudaLaunchKernel=5us",
        )


class _State:
    """Times as the changes so far have left them; every stretch of time by itself."""

    def __init__(self, view: StepGraph, scope: Scope) -> None:
        self.view = view
        self.scope = scope
        self.production = Fraction(1)
        self.length = view.stretches.length_ns.copy()
        self.gap = view.built.arrivals.gap_ns.copy()
        self.removed = np.zeros(len(view.built.graph), np.bool_)
        self.dropped = np.zeros(len(view.built.graph.src), np.bool_)
        self.gone = np.empty(0, np.int64)  # rows removed so far
        self.grown: list[tuple[Int64Array, Int64Array]] = []
        self.calls: list[Int64Array] = []

    def change(self, change: Change, selection: Selection, *, with_launch: bool) -> None:
        """Put one change into effect."""
        if change.operation == "remove":
            self._remove(selection)
        elif change.operation == "scale":
            self.gap[selection.gap_nodes] = _times(self.gap[selection.gap_nodes], change.factor)
        fetched = self._fetched(change, selection)
        entry, activity = selection.entry[~fetched], selection.activity[~fetched]
        self._put(entry, _after(change, activity, self.length[entry]))
        calls = self._calls(change, selection) if with_launch else np.empty(0, np.int64)
        self._put(calls, _after(change, calls, self.length[calls]))
        self.calls.append(calls)

    def _fetched(self, change: Change, selection: Selection) -> BoolArray:
        """Entries that are waits for loader workers, whose production the change is of then."""
        loop, row = self.scope.loop, selection.row
        scales = change.operation in ("scale", "remove")
        if loop is None or not scales or not np.isin(row, loop.rows).any():
            return np.zeros(len(row), np.bool_)
        self.production *= change.factor if change.operation == "scale" else 0
        fetched: BoolArray = (row >= 0) & loop.covers[np.maximum(row, 0)]
        return fetched

    def _calls(self, change: Change, selection: Selection) -> Int64Array:
        """Entries of the launch calls that change with what they launch.

        Where it is removed, all that a call launched must be gone, by this change or by one before.
        """
        rows = self.gone if change.operation == "remove" else selection.row
        calls = np.setdiff1d(launch_entries(self.view, rows), selection.entry)
        only = self.scope.only
        return calls if only is None else calls[only[self.view.stretches.node[calls]]]

    def _remove(self, selection: Selection) -> None:
        returns = np.flatnonzero(selection.wait_nodes[self.view.stretches.node])
        self._put(returns, np.zeros(len(returns), np.int64))
        on_device = self.view.stretches.on_device[selection.entry]
        self.removed[selection.node[on_device]] = True
        self._drop_waits(selection.wait_nodes)
        self.gap[selection.gap_nodes] = 0
        self.gone = np.union1d(self.gone, selection.row[on_device])

    def _drop_waits(self, nodes: BoolArray) -> None:
        """What is not called does not wait: the thread goes on as soon as it gets there."""
        graph = self.view.built.graph
        waits = nodes[graph.dst] & np.isin(graph.edge_kind, WAITS)
        others = np.bincount(graph.dst[~waits], minlength=len(graph)) > 0  # its thread's own order
        self.dropped |= waits & others[graph.dst]

    def _put(self, entry: Int64Array, after: Int64Array) -> None:
        self.grown.append((entry, after - self.length[entry]))
        self.length[entry] = after

    def applied(self, selections: tuple[Selection, ...]) -> Applied:
        """What it all comes to."""
        every, graph = self.view.stretches, self.view.built.graph
        none = np.empty(0, np.int64)
        entry, grown = (np.concatenate(c) for c in zip((none, none), *self.grown, strict=True))
        if self.length.sum(dtype=np.float64) + self.gap.sum(dtype=np.float64) > _MOST_NS:
            raise _too_much()
        dur = graph.dur_ns.copy()
        np.add.at(dur, every.node, self.length - every.length_ns)
        columns = (every.node[entry], every.row[entry], grown)
        dur = keep_tails(graph, np.maximum(dur, 0))
        return Applied(
            dur,
            self.gap,
            self.removed,
            self.dropped,
            selections,
            tuple(self.calls),
            self.production,
            columns,
        )


_MOST_NS = 2.0**61
"""All times together stay below this, so that sums along any path fit into 64 bits."""


def _too_much() -> UsageError:
    return UsageError("after these changes the times are too long to reckon with", do="use smaller amounts")


def _after(change: Change, activity: Int64Array, length: Int64Array) -> Int64Array:
    """The new length of each entry."""
    if change.operation == "scale":
        return _times(length, change.factor)
    if change.operation == "remove" or not length.size:
        return np.zeros_like(length)
    # Amounts are per activity: its longest entry takes them, and when set, the others become nothing.
    after = length.copy() if change.operation == "add" else np.zeros_like(length)
    order = np.lexsort((length, activity))
    last = order[np.append(activity[order][1:] != activity[order][:-1], True)]
    after[last] = (length[last] if change.operation == "add" else 0) + change.amount_ns
    return after


def _times(values: Int64Array, factor: Fraction) -> Int64Array:
    """Values times a fraction, rounded half up, in integers."""
    top, bottom = factor.numerator, factor.denominator
    if 2 * int(values.max(initial=0)) * top + 2 * bottom < 2**63:
        scaled: Int64Array = (2 * values * top + bottom) // (2 * bottom)
        return scaled
    exact = [(2 * int(v) * top + bottom) // (2 * bottom) for v in values]
    if max(exact, default=0) > _MOST_NS:
        raise _too_much()
    return np.array(exact, np.int64)
