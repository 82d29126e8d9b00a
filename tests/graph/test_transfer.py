"""Faster links: the shortest of a kind is transfer, the rest waits; start-up declared, fitted or unknown."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from stepcrit.graph.models import Model, parse_model
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.graph.transfer import Fit, Transfer, after, faster_links, fit
from stepcrit.session import Options, Trace
from tests.builders import event, trace

HOST = (1, 1)
MEGA = 1_000_000
Row = tuple[str, int, int]
"""Collective, elements of four bytes in millions (-1: without metadata), µs."""

KINDS: list[Row] = [("allreduce", 1, 50), ("allreduce", 1, 70), ("allreduce", 2, 90), ("broadcast", 1, 40)]


def view_of(rows: list[Row]) -> StepGraph:
    """Collectives one after the other in one queue."""
    chrome: list[dict[str, Any]] = [event("cpu_op", "op", (0, 10 * len(rows) + 1), HOST)]
    free = 0
    for i, (name, mega, us) in enumerate(rows):
        chrome.append(
            event("cuda_runtime", "cudaLaunchKernel", (10 * i, 10 * i + 1), HOST, correlation=i + 1)
        )
        free = max(free, 10 * i + 1)
        known = {"Collective name": name, "In msg nelems": mega * MEGA, "Out msg nelems": mega * MEGA}
        group = {"dtype": "Float", "Process Group Name": "0", "Group size": 2}
        args = known | group if mega >= 0 else {}
        chrome.append(
            event(
                "kernel", "ncclDevKernel_Sum", (free, free + us), (0, 7), correlation=i + 1, stream=7, **args
            )
        )
        free += us
    return Trace(trace(chrome), Options()).view()


def lengths(view: StepGraph, dur_ns: np.typing.NDArray[np.int64]) -> list[float]:
    """New lengths of the device activities, in µs, in order."""
    built, events = view.built, view.trace.events
    rows = [r for r in range(len(events)) if events.name_of(r) == "ncclDevKernel_Sum"]
    return [float(dur_ns[built.first_node[r] : built.last_node[r] + 1].sum()) / 1000 for r in rows]


def changed(rows: list[Row], words: str) -> tuple[Transfer, list[float], list[float]]:
    view = view_of(rows)
    found = faster_links(view, parse_model(words))
    return found, lengths(view, found.low_ns), lengths(view, found.high_ns)


def test_only_the_transfer_shrinks_and_what_was_waited_stays() -> None:
    """Of the second all-reduce 20 were waiting: with no start-up it goes from 50 + 20 to 25 + 20."""
    found, low, high = changed(KINDS, "comm:k=2")
    assert low == [25, 45, 45, 20]
    assert high == [50, 70, 90, 40]  # with nothing but start-up
    assert (found.known_count, found.unknown_count, found.once_count) == (4, 0, 2)
    assert (found.transfer_ns, found.waiting_ns) == (230_000, 20_000)
    assert found.estimated
    assert not found.why_not


def test_declared_start_up_stays_whole() -> None:
    _, low, high = changed(KINDS, "comm:alpha=10us,k=4")
    assert low == high == [20, 40, 30, 17.5]


def test_start_up_longer_than_a_transfer_leaves_it_as_it_was() -> None:
    _, low, high = changed(KINDS, "comm:alpha=45us,k=1e6")
    assert low == high == [45, 65, 45, 40]


def test_time_per_byte_alone_says_what_start_up_the_transfer_had() -> None:
    """4 MB at 10 µs a MB are 40 of the 50: start-up 10; the broadcast has none."""
    found, low, high = changed(KINDS, "comm:beta=10us/MB,k=2")
    assert low == high == [30, 50, 50, 20]
    assert found.estimated


def test_start_up_and_time_per_byte_together_leave_nothing_to_estimate() -> None:
    """All-reduces of 4 MB transfer for 5 + 40; what they took beyond that waited: 5 and 25."""
    found, low, high = changed(KINDS, "comm:alpha=5us,beta=10us/MB,k=2")
    assert low == high == [30, 50, 50, 22.5]  # 5 + 40/2 and the wait; the broadcast's 40 are 5 + 35
    assert not found.estimated
    assert (found.transfer_ns, found.waiting_ns) == (45_000 + 45_000 + 85_000 + 40_000, 35_000)


def test_start_up_is_fitted_by_series_and_unknown_where_it_cannot_be() -> None:
    """All-reduces: 4 MB in 50, 8 MB in 90: 10 a MB, and 10 of start-up. Broadcasts have one size."""
    found, low, high = changed(KINDS, "comm:alpha=fit,k=2")
    assert found.fits == {
        ("allreduce", "0", "Float"): Fit(Fraction(10_000), Fraction(1, 100), 2, 1.0, clamped=False)
    }
    assert found.unfitted == {("broadcast", "0", "Float"): "one size only"}
    assert low == [30, 50, 50, 20]
    assert high == [30, 50, 50, 40]


def test_slower_links_make_it_longer() -> None:
    _, low, high = changed([("allreduce", 1, 50)], "comm:k=0.5")
    assert (low, high) == ([50], [100])


def test_collectives_without_metadata_stay_and_are_counted() -> None:
    found, low, high = changed([("allreduce", 1, 50), ("", -1, 30)], "comm:alpha=0us,k=2")
    assert low == high == [25, 30]
    assert (found.known_count, found.unknown_count) == (1, 1)
    assert not found.why_not


@pytest.mark.parametrize(
    ("rows", "why"), [([("", -1, 30), ("", -1, 20)], "none of 2 collectives"), ([], "no communication")]
)
def test_result_says_why_nothing_changes(rows: list[Row], why: str) -> None:
    view = view_of(rows)
    found = faster_links(view, parse_model("comm:k=2"))
    assert why in found.why_not
    assert (found.low_ns == view.built.graph.dur_ns).all()
    assert (found.high_ns == view.built.graph.dur_ns).all()


def test_activity_that_a_wait_split_shrinks_as_a_whole() -> None:
    """The collective [1, 51] is split at 41 by what overlaps it, and keeps the overlap."""
    args = {"Collective name": "allreduce", "In msg nelems": MEGA, "Out msg nelems": MEGA, "dtype": "Float"}
    chrome = [
        event("cpu_op", "op", (0, 4), HOST),
        event("cuda_runtime", "cudaLaunchKernel", (0, 1), HOST, correlation=1),
        event("cuda_runtime", "cudaLaunchKernel", (2, 3), HOST, correlation=2),
        event("kernel", "ncclDevKernel_Sum", (1, 51), (0, 7), correlation=1, stream=7, **args),
        event("kernel", "next", (41, 60), (0, 7), correlation=2, stream=7),
    ]
    view = Trace(trace(chrome), Options()).view()
    row = view.trace.events.names.index("ncclDevKernel_Sum")
    parts = view.built.graph.row == view.trace.events.name.tolist().index(row)
    assert sorted(view.built.graph.dur_ns[parts].tolist()) == [10_000, 40_000]
    found = faster_links(view, Model("comm", faster=Fraction(2), alpha_ns=0))
    assert found.low_ns[parts].tolist() == [15_000, 10_000]


@pytest.mark.parametrize(
    ("points", "why"),
    [
        ([], "one size only"),
        ([(5, 10)], "one size only"),
        ([(1, 10), (2, 10)], "no longer"),
        ([(1, 10), (2, 9)], "no longer"),
        ([(1, 10), (2, 40), (3, 20), (4, 30)], "size explains only 16%"),
    ],
)
def test_points_without_a_rising_line_have_no_fit(points: list[tuple[int, int]], why: str) -> None:
    found = fit(points)
    assert isinstance(found, str)
    assert why in found


def test_start_up_below_nothing_is_taken_for_nothing_and_said() -> None:
    found = fit([(2, 10), (3, 20)])  # the line passes 0 at a size of 1
    assert isinstance(found, Fit)
    assert (found.alpha_ns, found.ns_per_byte, found.clamped) == (0, 10, True)


def test_whole_nanoseconds_are_rounded_half_up() -> None:
    assert after(5, Fraction(0), Fraction(2)) == (3, 3)
    assert after(4, Fraction(1, 2), Fraction(1)) == (4, 4)
