"""No part is counted twice, none is negative, and sums are those of their parts."""

from __future__ import annotations

from itertools import permutations
from typing import Any

from tests.answers.drawn import call, note, op, work
from tests.builders import Event, event
from tests.known_bugs.conftest import Ask
from tests.known_bugs.written import trace

NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


def operators(data: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The rows of the ranking, by name."""
    return {row["name"]: row for row in data["operators"]}


COPY: list[Event] = [
    op("aten::to", 0, 60),
    op("aten::_to_copy", 5, 55),
    op("aten::copy_", 10, 50),
    call("cudaLaunchKernel", (20, 30), 1),
    work("copy_kernel", (40, 90), 1),
]
"""Three operators around one launch: the kernel belongs to the innermost."""


def test_b146_device_time_of_nested_operators_adds_up_to_that_of_the_device(ask: Ask) -> None:
    data = ask(COPY).data
    rows = operators(data)
    assert rows["aten::copy_"]["device_ns"] == 50_000
    assert sum(row["device_ns"] for row in rows.values()) == 50_000
    assert data["operators_total"]["device_ns"] == data["device_busy_ns"]["0"] == 50_000
    # 60 µs of the thread: 10 in to, 10 in _to_copy, 30 in copy_, 10 in the call
    assert data["operators_total"]["self_cpu_ns"] == 60_000


def test_b148_a_range_drawn_over_a_kernel_is_no_device_time(ask: Ask) -> None:
    over = event("gpu_user_annotation", "nccl:all_reduce", (40, 90), (0, 7))
    for events in ([*COPY, over], [*COPY, over, over]):
        data = ask(events).data
        assert data["device_busy_ns"] == {"0": 50_000}
        assert data["summed_ns"]["device"] == 50_000
        assert data["exposed_comm"]["comm_union_ns"] == 0


def test_b149_own_time_is_never_negative_where_a_child_outlives_its_parent(ask: Ask) -> None:
    events = [op("parent", 0, 40), op("first", 5, 30), op("child", 20, 60)]
    rows = operators(ask(events).data)
    # child owns 20 to 60, first 5 to 20, the parent 0 to 5
    assert {name: rows[name]["self_cpu_ns"] for name in ("parent", "first", "child")} == {
        "parent": 5_000, "first": 15_000, "child": 40_000,
    }  # fmt: skip


def test_b151_communication_is_shown_as_a_whole_and_as_what_nothing_hides(ask: Ask) -> None:
    """A collective from 40 to 80 beside a product from 30 to 70: 40 µs of it, 10 of them alone."""
    events = [
        op("aten::mm", 0, 20),
        call("cudaLaunchKernel", (2, 4), 1),
        call("cudaLaunchKernel", (6, 8), 2),
        work("gemm", (30, 70), 1),
        work(NCCL, (40, 80), 2, stream=20),
    ]
    comm = ask(events).data["exposed_comm"]
    assert (comm["comm_union_ns"], comm["overlapped_ns"], comm["not_overlapped_ns"]) == (
        40_000,
        30_000,
        10_000,
    )
    shown = ask(events, "analyze", "--format", "text").out
    assert "40.0" in shown
    assert "communicati" in shown
    assert ask(events).shown["explain"]["Time"] == "elapsed"


def test_b153_time_of_a_grandchild_is_nobody_elses(ask: Ask) -> None:
    events = [
        op("fused", 0, 100),
        op("child", 10, 90),
        call("cudaLaunchKernel", (12, 14), 1),
        op("grandchild", 30, 80),
        call("cudaLaunchKernel", (40, 50), 2),
        work("a", (20, 35), 1),
        work("b", (60, 95), 2),
    ]
    rows = operators(ask(events).data)
    assert {name: rows[name]["device_ns"] for name in ("fused", "child", "grandchild")} == {
        "fused": 0, "child": 15_000, "grandchild": 35_000,
    }  # fmt: skip


def test_b154_rows_that_tie_have_one_order_whatever_the_files_order_is(ask: Ask) -> None:
    """Three threads do the same at the same time under three names."""
    tied = [event("cpu_op", name, (0, 50), (1, tid)) for tid, name in enumerate(("c", "a", "b"), 1)]
    tables = []
    for order in permutations(tied):
        data = ask([*order, note("range", 0, 80)]).data
        tables.append([row["name"] for row in data["operators"]])
    assert all(table == tables[0] for table in tables)
    first, again = (ask([*tied, note("range", 0, 80)]) for _ in range(2))
    assert first.out == again.out


def test_b154_events_of_one_span_nest_alike_whatever_the_files_order_is() -> None:
    """Ids ascend as ranges begin, so the lower one is outside; without ids the name decides."""
    for ids, outer in (((7, 8), "b"), ((8, 7), "a"), ((None, None), "a")):
        both = [
            {**op(name, 0, 50), "args": {"External id": n} if n else {}}
            for name, n in zip("ba", ids, strict=True)
        ]
        for order in (both, both[::-1]):
            found = trace(order)
            assert found.raw.events.name_of(0) == outer
            assert found.links.parent.tolist() == [-1, 0]
