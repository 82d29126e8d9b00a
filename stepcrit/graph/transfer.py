"""Faster links: only the transfer part of a collective gets shorter, and of that not its start-up (methods C.4).

With k times the bandwidth a transfer of t goes to alpha + (t - alpha) / k. Where the start-up alpha is not
known, the answer is the range from t / k (no start-up) to t (nothing else).

How much of a collective is transfer and how much is waiting for the last peer, one rank's trace does
not say. Estimate: the shortest collective of the same (name, group, element type, bytes) in this trace
waited for nobody; what another one takes beyond that is waiting, and stays. A collective whose metadata
the trace lacks is left as it was, and counted.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

import numpy as np
from msgspec import Struct

from stepcrit.graph.models import Model
from stepcrit.graph.parts import keep_tails
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.link.collectives import Collective, link_collectives
from stepcrit.model.arrays import Int64Array
from stepcrit.model.graph import Graph, NodeKind

Series = tuple[str, str, str]
"""Collectives that differ in size alone: name, group, element type."""

MIN_EXPLAINED_SHARE = 0.9
"""A line that explains less of the differences between sizes says nothing about the start-up."""


class Fit(Struct, frozen=True):
    """Start-up and time per byte of one series, by least squares over its sizes.

    Attributes:
        alpha_ns: the start-up, at least 0.
        ns_per_byte: the slope.
        size_count: distinct sizes.
        explained_share: how much of the differences in time the sizes explain (R squared).
        clamped: whether the fit put the start-up below 0.
    """

    alpha_ns: Fraction
    ns_per_byte: Fraction
    size_count: int
    explained_share: float
    clamped: bool


class Transfer(Struct, frozen=True, eq=False):
    """What faster links make of the collectives.

    Attributes:
        low_ns, high_ns: durations per node, from "no start-up" to "all start-up" where it is unknown.
        known_count: collectives with metadata, which change.
        unknown_count: collectives without, which stay.
        once_count: of those that change, how many are the only one of their kind and size: the estimate
            takes all of such a one for transfer, whatever it waited.
        transfer_ns: sum of the transfer parts before.
        waiting_ns: sum of what was taken for waiting.
        estimated: whether transfer parts are the estimate above; False where the user declared alpha and beta.
        fits: by series, when the start-up was to be fitted.
        unfitted: series that allow no fit, and why; their start-up is unknown.
        why_not: when nothing changes, why; else "".
    """

    low_ns: Int64Array
    high_ns: Int64Array
    known_count: int
    unknown_count: int
    once_count: int
    transfer_ns: int
    waiting_ns: int
    estimated: bool
    fits: Mapping[Series, Fit]
    unfitted: Mapping[Series, str]
    why_not: str


def faster_links(view: StepGraph, model: Model, dur_ns: Int64Array | None = None) -> Transfer:
    """Durations after a change of the links, over the whole capture.

    Args:
        view: the step.
        model: a "comm" model.
        dur_ns: durations that other changes have left, one per node: of a collective that takes another time
            the transfer is as large a part as before. By default as recorded.
    """
    events = view.trace.events
    every = link_collectives(events, view.links)
    known = [one for one in every if one.name and size_of(one) >= 0]
    length = {one.row: int(events.end_ns[one.row] - events.start_ns[one.row]) for one in known}
    parts = _transfer_parts(known, length, model)
    fits, unfitted = _fits(known, parts) if model.fitted else ({}, {})
    graph = view.built.graph
    dur = graph.dur_ns if dur_ns is None else dur_ns
    low, high = dur.copy(), dur.copy()
    parts_of = _parts_by_row(graph)
    for one in known:
        nodes = parts_of[one.row]
        now = int(dur[nodes].sum())
        part = parts[one.row] * now // length[one.row] if length[one.row] else 0
        least, most = after(part, _start_up(one, part, model, fits), model.faster)
        for column, changed in ((low, least), (high, most)):
            column[nodes] = 0
            column[nodes[0]] = now - part + changed
    low, high = keep_tails(graph, low), keep_tails(graph, high)
    transfer = sum(parts.values())
    declared = model.alpha_ns is not None and model.beta is not None
    return Transfer(
        low,
        high,
        len(known),
        len(every) - len(known),
        sum(n == 1 for n in Counter(_kind(one) for one in known).values()),
        transfer,
        sum(length.values()) - transfer,
        not declared,
        fits,
        unfitted,
        _why_not(len(every), len(known)),
    )


def _parts_by_row(graph: Graph) -> dict[int, Int64Array]:
    """The device nodes of each event row, in order."""
    nodes = np.flatnonzero(graph.kind >= NodeKind.KERNEL)
    nodes = nodes[np.argsort(graph.row[nodes], kind="stable")]
    each = np.split(nodes, np.flatnonzero(np.diff(graph.row[nodes])) + 1)
    return {int(graph.row[some[0]]): some for some in each if some.size}


def size_of(one: Collective) -> int:
    """The message's bytes as bandwidth counts them: the larger of both sides, -1 when unknown."""
    return max(one.in_bytes, one.out_bytes)


def after(transfer_ns: int, alpha_ns: Fraction | None, faster: Fraction) -> tuple[int, int]:
    """A transfer over links `faster` times as fast, in ns: (least, most); they differ where alpha is unknown.

    >>> after(50_000, Fraction(10_000), Fraction(4)), after(50_000, None, Fraction(2))
    ((20000, 20000), (25000, 50000))
    """
    if alpha_ns is None:
        scaled = _rounded(transfer_ns / faster)
        return min(scaled, transfer_ns), max(scaled, transfer_ns)
    alpha = min(alpha_ns, Fraction(transfer_ns))
    one = _rounded(alpha + (transfer_ns - alpha) / faster)
    return one, one


def _rounded(value: Fraction) -> int:
    """To whole ns, half up."""
    return int((2 * value + 1) // 2)


def _start_up(one: Collective, transfer_ns: int, model: Model, fits: Mapping[Series, Fit]) -> Fraction | None:
    """Alpha of one collective: declared, what declared beta leaves, fitted, or None."""
    if model.alpha_ns is not None:
        return Fraction(model.alpha_ns)
    if model.beta is not None:
        return max(transfer_ns - model.beta * size_of(one), Fraction(0))
    fit = fits.get(_series(one))
    return fit.alpha_ns if fit else None


def _transfer_parts(known: Sequence[Collective], length: Mapping[int, int], model: Model) -> dict[int, int]:
    """The transfer part of each collective in ns: declared by alpha and beta, else the shortest of its kind."""
    if model.alpha_ns is not None and model.beta is not None:
        alpha, beta = model.alpha_ns, model.beta
        return {one.row: min(length[one.row], _rounded(alpha + beta * size_of(one))) for one in known}
    least: dict[tuple[Series, int, int], int] = {}
    for one in known:
        least[_kind(one)] = min(least.get(_kind(one), length[one.row]), length[one.row])
    return {one.row: least[_kind(one)] for one in known}


def _kind(one: Collective) -> tuple[Series, int, int]:
    return _series(one), one.in_bytes, one.out_bytes


def _series(one: Collective) -> Series:
    return one.name, one.group, one.dtype


def _fits(
    known: Sequence[Collective], parts: Mapping[int, int]
) -> tuple[dict[Series, Fit], dict[Series, str]]:
    """A fit for each series that allows one, and why the others do not."""
    points: dict[Series, dict[int, int]] = defaultdict(dict)
    for one in known:
        sizes = points[_series(one)]
        sizes[size_of(one)] = min(sizes.get(size_of(one), parts[one.row]), parts[one.row])
    found = {series: fit(sizes.items()) for series, sizes in sorted(points.items())}
    return (
        {series: one for series, one in found.items() if isinstance(one, Fit)},
        {series: one for series, one in found.items() if isinstance(one, str)},
    )


def fit(points: Iterable[tuple[int, int]]) -> Fit | str:
    """Least squares of transfer time (ns) over size (bytes); why not, where the points allow no such line.

    >>> found = fit([(1_000_000, 30_000), (2_000_000, 40_000), (4_000_000, 60_000)])
    >>> int(found.alpha_ns), float(found.ns_per_byte)
    (20000, 0.01)
    """
    pairs = sorted(points)
    count = len(pairs)
    if len({size for size, _ in pairs}) < 2:
        return "one size only"
    mean_size, mean_ns = (Fraction(sum(column), count) for column in zip(*pairs, strict=True))
    spread = sum((size - mean_size) ** 2 for size, _ in pairs)
    slope = Fraction(sum((size - mean_size) * (ns - mean_ns) for size, ns in pairs)) / spread
    if slope <= 0:
        return "larger ones took no longer"
    share = float(slope**2 * spread / sum((ns - mean_ns) ** 2 for _, ns in pairs))
    if share < MIN_EXPLAINED_SHARE:
        return f"size explains only {share:.0%} of the differences in time"
    alpha = mean_ns - slope * mean_size
    return Fit(max(alpha, Fraction(0)), slope, count, share, alpha < 0)


def _why_not(every: int, known: int) -> str:
    if not every:
        return "no communication on the device in this trace"
    if not known:
        return (
            f"none of {every} collectives has a name and a size in this trace: their transfer part is "
            "unknown (PyTorch too old, or calls outside its process groups)"
        )
    return ""
