"""Changes to a schedule: durations scaled, set, added to or removed, in exact rational steps.

Several changes combine in the order given; each sees the durations that the one before it left. The
result is new durations and, where gaps were changed or removed, new delays; edges never change here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import numpy as np

from stepcrit.errors import UsageError
from stepcrit.graph.schedule import GapPolicy, Lags, lags, without
from stepcrit.graph.select import Selection, Selector, Side, launch_entries, parse_selector, select
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.model.arrays import BoolArray, Int64Array
from stepcrit.model.graph import NodeKind

Operation = Literal["scale", "set", "add", "remove"]


@dataclass(frozen=True, slots=True)
class Change:
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


@dataclass(frozen=True, slots=True, eq=False)
class Applied:
    """What changes make of a graph.

    Attributes:
        dur_ns: durations per node.
        gap_ns: residual gaps per node.
        removed: nodes whose gap and lag went with them.
        selections: what each change matched, in order.
        changed: (node, event row, ns) by which each entry grew, as three columns.
    """

    dur_ns: Int64Array
    gap_ns: Int64Array
    removed: BoolArray
    selections: tuple[Selection, ...]
    changed: tuple[Int64Array, Int64Array, Int64Array]

    def delays(self, view: StepGraph, policy: GapPolicy) -> Lags:
        """The delays that replay uses after the changes."""
        arrivals = replace(view.built.arrivals, gap_ns=self.gap_ns)
        delays = lags(view.built.graph, arrivals, policy)
        return without(view.built.graph, delays, self.removed) if self.removed.any() else delays


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
            f"--{operation} needs SELECTOR=AMOUNT, got {text!r}",
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
    number = words.rstrip("nuµms ").strip()
    unit = words[len(number) :].strip()
    try:
        value = Fraction(number)
    except (ValueError, ZeroDivisionError):
        value = Fraction(-1)
    if unit not in _UNITS or value < 0:
        raise UsageError(f"{words!r} is not a duration", do="write a number with a unit: 750ns, 5us, 1.5ms")
    return int(value * _UNITS[unit])


_UNITS = {"ns": 1, "us": 1_000, "µs": 1_000, "ms": 1_000_000, "s": 1_000_000_000}


def _factor(operation: str, amount: str) -> Fraction:
    """What is left of the time."""
    try:
        value = Fraction(amount.removesuffix("x") if operation == "speedup" else amount)
    except (ValueError, ZeroDivisionError):
        value = Fraction(-1)
    if value < 0 or (operation == "speedup" and value == 0):
        raise UsageError(
            f"{amount!r} is no factor", do="--shrink op=0.5 (half the time), --speedup op=2x (twice as fast)"
        )
    return 1 / value if operation == "speedup" else value


def apply_changes(
    view: StepGraph,
    changes: Sequence[Change],
    *,
    side: Side = "auto",
    self_only: bool = False,
    with_launch: bool = False,
) -> Applied:
    """Apply changes to the whole capture, in order.

    Raises:
        UsageError: a selector matches nothing.
    """
    graph = view.built.graph
    dur, gap = graph.dur_ns.copy(), view.built.arrivals.gap_ns.copy()
    removed = np.zeros(len(graph), np.bool_)
    selections = []
    changed: list[tuple[Int64Array, Int64Array, Int64Array]] = []
    for change in changes:
        selection = select(view, change.selector, side=side, self_only=self_only)
        selections.append(selection)
        changed.append(_change_durations(view, change, selection, dur, with_launch=with_launch))
        if change.operation == "scale":
            gap[selection.gap_nodes] = _times(gap[selection.gap_nodes], change.factor)
        elif change.operation == "remove":
            gone = selection.node[graph.kind[selection.node] >= NodeKind.KERNEL]
            removed[gone] = True
            gap[selection.gap_nodes] = 0
    node, row, grown = (np.concatenate(column) for column in zip(*changed, strict=True))
    return Applied(dur, gap, removed, tuple(selections), (node, row, grown))


def _change_durations(
    view: StepGraph, change: Change, selection: Selection, dur: Int64Array, *, with_launch: bool
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Put the change of one selection into `dur`; returns by how much each entry grew."""
    node, row, length = selection.node, selection.row, selection.length_ns
    if with_launch and change.operation in ("scale", "remove"):
        extra = launch_entries(view, selection)
        node, row, length = (np.concatenate((a, b)) for a, b in zip((node, row, length), extra, strict=True))
    # Earlier changes may have shortened a node below what an entry says it holds.
    length = np.minimum(length, dur[node])
    grown = _after(change, row, length) - length
    np.add.at(dur, node, grown)
    np.maximum(dur, 0, out=dur)
    return node, row, grown


def _after(change: Change, row: Int64Array, length: Int64Array) -> Int64Array:
    """The new length of each entry."""
    if change.operation == "scale":
        return _times(length, change.factor)
    if change.operation == "remove":
        return np.zeros_like(length)
    # Amounts are per activity: its longest entry takes them, and when set, the others become nothing.
    after = length.copy() if change.operation == "add" else np.zeros_like(length)
    order = np.lexsort((length, row))
    last = order[np.append(row[order][1:] != row[order][:-1], True)]
    after[last] = (length[last] if change.operation == "add" else 0) + change.amount_ns
    return after


def _times(values: Int64Array, factor: Fraction) -> Int64Array:
    """Values times a fraction, rounded half up, in integers."""
    top, bottom = factor.numerator, factor.denominator
    if int(values.max(initial=0)) * top < 2**62:
        scaled: Int64Array = (2 * values * top + bottom) // (2 * bottom)
        return scaled
    return np.array([(2 * int(v) * top + bottom) // (2 * bottom) for v in values], np.int64)
