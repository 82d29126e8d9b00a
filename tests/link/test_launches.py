"""Who launched what: equal correlation, repeated correlation, and arrows where correlations are missing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stepcrit.link.launches import link_launches
from stepcrit.model.events import EventTable, Side
from stepcrit.model.trace import FlowTable
from tests.builders import table

Event = dict[str, Any]
NO_ARROWS = FlowTable(*(np.empty(0, dtype) for dtype in (np.int8, np.int32, np.int64, np.int64, np.int32)))


def call(name: str, ts: int, dur: int, *, corr: int = -1, tid: int = 1, cat: str = "cuda_runtime") -> Event:
    return {
        "cat": cat,
        "name": name,
        "ts": ts,
        "dur": dur,
        "pid": 1,
        "tid": tid,
        "args": {"correlation": corr},
    }


def device(name: str, ts: int, *, corr: int = -1, stream: int = 7, cat: str = "kernel") -> Event:
    args = {"correlation": corr, "stream": stream}
    return {"cat": cat, "name": name, "ts": ts, "dur": 5, "pid": 0, "tid": stream, "args": args}


def launches(events: EventTable, arrows: FlowTable = NO_ARROWS) -> dict[str, str | None]:
    """The name of the launch call of every device activity, None for an orphan."""
    launch = link_launches(events, arrows)
    rows = [row for row in range(len(events)) if events.lane_of(row).side == Side.DEVICE]
    assert all(launch[row] == -1 for row in range(len(events)) if row not in rows)
    return {
        events.name_of(row): events.name_of(int(launch[row])) if launch[row] >= 0 else None for row in rows
    }


def test_equal_correlation_links_a_launch_to_its_activity_whatever_the_call_is_called() -> None:
    events = table(
        [call("anythingAtAll", 1, 2, corr=9), call("other", 4, 2, corr=8), device("k", 10, corr=9)]
    )
    assert launches(events) == {"k": "anythingAtAll"}


@pytest.mark.parametrize("cat", ["kernel", "gpu_memcpy", "gpu_memset"])
def test_every_kind_of_device_work_is_linked(cat: str) -> None:
    assert launches(table([call("c", 1, 2, corr=3), device("d", 9, corr=3, cat=cat)])) == {"d": "c"}


def test_one_launch_may_own_many_activities_on_many_queues() -> None:
    events = table(
        [
            call("cudaGraphLaunch", 1, 2, corr=5),
            *(device(f"k{i}", 9 + 6 * i, corr=5, stream=i) for i in range(4)),
        ]
    )
    assert launches(events) == dict.fromkeys(("k0", "k1", "k2", "k3"), "cudaGraphLaunch")


def test_activity_without_a_call_of_its_correlation_is_an_orphan() -> None:
    assert launches(table([call("c", 1, 2, corr=3), device("k", 9, corr=4)])) == {"k": None}


def test_activity_without_a_correlation_is_an_orphan_beside_others_that_have_one() -> None:
    events = table([call("c", 1, 2, corr=3), device("k", 9, corr=3), device("lost", 15)])
    assert launches(events) == {"k": "c", "lost": None}


def test_calls_without_a_correlation_own_nothing() -> None:
    assert launches(table([call("c", 1, 2), device("k", 9, corr=0)])) == {"k": None}


def test_driver_call_inside_the_runtime_call_of_its_correlation_owns_nothing() -> None:
    events = table(
        [call("cudaLaunchKernel", 1, 6, corr=3), call("cuLaunchKernel", 2, 3, corr=3, cat="cuda_driver"), device("k", 9, corr=3)]
    )  # fmt: skip
    assert launches(events) == {"k": "cudaLaunchKernel"}


def test_driver_call_alone_launches() -> None:
    events = table([call("cuLaunchKernelEx", 2, 3, corr=3, cat="cuda_driver"), device("k", 9, corr=3)])
    assert launches(events) == {"k": "cuLaunchKernelEx"}


def test_driver_call_on_another_thread_is_no_inner_call() -> None:
    events = table(
        [call("first", 1, 6, corr=3), call("second", 2, 3, corr=3, tid=2), device("k", 9, corr=3)]
    )  # fmt: skip
    assert launches(events) == {"k": "second"}


def test_of_a_repeated_correlation_the_latest_call_before_the_activity_owns_it() -> None:
    events = table(
        [
            call("first", 1, 2, corr=3), device("k1", 5, corr=3), call("second", 20, 2, corr=3), device("k2", 25, corr=3),
            call("third", 40, 2, corr=3), device("k3", 60, corr=3),
        ]
    )  # fmt: skip
    assert launches(events) == {"k1": "first", "k2": "second", "k3": "third"}


def test_activity_before_every_call_of_its_repeated_correlation_goes_to_the_first() -> None:
    events = table([call("first", 10, 2, corr=3), call("second", 20, 2, corr=3), device("k", 9, corr=3)])
    assert launches(events) == {"k": "first"}


def test_call_that_starts_with_its_activity_owns_it() -> None:
    events = table([call("first", 1, 2, corr=3), call("second", 9, 2, corr=3), device("k", 9, corr=3)])
    assert launches(events) == {"k": "second"}


def arrows(events: EventTable, *pairs: tuple[str, str, int]) -> FlowTable:
    """Launch arrows (from, to, id), each end exactly at the start of its event."""
    row = {events.name_of(i): i for i in range(len(events))}
    ends = [(1, row[a], flow) for a, _, flow in pairs] + [(0, row[b], flow) for _, b, flow in pairs]
    return FlowTable(
        np.array([start for start, *_ in ends], np.int8),
        np.zeros(len(ends), np.int32),
        np.array([flow for *_, flow in ends], np.int64),
        np.array([events.start_ns[i] for _, i, _ in ends], np.int64),
        np.array([events.lane[i] for _, i, _ in ends], np.int32),
    )


def test_arrows_link_where_no_activity_has_a_correlation() -> None:
    events = table([call("c1", 1, 2), call("c2", 4, 2), device("k1", 9), device("k2", 20)])
    found = launches(events, arrows(events, ("c2", "k1", 17), ("c1", "k2", 18)))
    assert found == {"k1": "c2", "k2": "c1"}


def test_arrows_are_not_asked_where_any_activity_has_a_correlation() -> None:
    events = table([call("c1", 1, 2, corr=5), call("c2", 4, 2), device("k1", 9, corr=5), device("k2", 20)])
    assert launches(events, arrows(events, ("c2", "k2", 17))) == {"k1": "c1", "k2": None}


def test_arrow_that_meets_no_start_links_nothing() -> None:
    events = table([call("c", 1, 2), device("k", 9)])
    flows = arrows(events, ("c", "k", 17))
    flows.ts_ns[1] += 1
    assert launches(events, flows) == {"k": None}


def test_trace_without_device_work_has_no_launches() -> None:
    assert launches(table([call("c", 1, 2, corr=5)])) == {}
    assert launches(table([])) == {}
