"""Links as a whole: device rows take after their launch, host rows after what is around them."""

from __future__ import annotations

from typing import Any

import numpy as np

from stepcrit.link.linker import link
from stepcrit.model.links import Links
from stepcrit.model.trace import RawTrace
from tests.builders import trace

Event = dict[str, Any]


def host(name: str, start: int, end: int, cat: str = "cpu_op", *, tid: int = 1) -> Event:
    return {"cat": cat, "name": name, "ts": start, "dur": end - start, "pid": 1, "tid": tid}


def call(name: str, start: int, end: int, corr: int) -> Event:
    return {**host(name, start, end, "cuda_runtime"), "args": {"correlation": corr}}


def kernel(name: str, start: int, end: int, corr: int) -> Event:
    args = {"correlation": corr, "stream": 7}
    return {"cat": "kernel", "name": name, "ts": start, "dur": end - start, "pid": 0, "tid": 7, "args": args}


# step  |ProfilerStep#1 0..100                                                   |
# host   |aten::linear 5..40: |aten::addmm 10..30: l1 15..18|   |       |Optimizer.step 50..90: aten::add_ 55..70: l2 60..62|
# s7                                                   [k1 30..45]                                  [k2 65..75]  [lost 80..85]
def scene() -> tuple[RawTrace, Links]:
    raw = trace([
        host("ProfilerStep#1", 0, 100, "user_annotation"), host("aten::linear", 5, 40), host("aten::addmm", 10, 30),
        call("l1", 15, 18, 1), host("Optimizer.step#SGD.step", 50, 90, "user_annotation"), host("aten::add_", 55, 70),
        call("l2", 60, 62, 2), kernel("k1", 30, 45, 1), kernel("k2", 65, 75, 2), kernel("lost", 80, 85, 9),
    ])  # fmt: skip
    return raw, link(raw)


def named(raw: RawTrace, column: np.ndarray) -> dict[str, str | None]:
    """A column of rows, by name."""
    names = [raw.events.name_of(row) for row in range(len(raw.events))]
    return {
        name: names[int(row)] if row >= 0 else None for name, row in zip(names, column.tolist(), strict=True)
    }


def test_operator_of_a_row_is_the_innermost_one_and_of_device_work_the_launching_one() -> None:
    raw, links = scene()
    assert named(raw, links.op) == {
        "ProfilerStep#1": None, "aten::linear": "aten::linear", "aten::addmm": "aten::addmm", "l1": "aten::addmm",
        "Optimizer.step#SGD.step": None, "aten::add_": "aten::add_", "l2": "aten::add_",
        "k1": "aten::addmm", "k2": "aten::add_", "lost": None,
    }  # fmt: skip


def test_parents_look_through_the_step_mark() -> None:
    raw, links = scene()
    found = named(raw, links.parent)
    assert found["aten::linear"] is None
    assert (found["aten::addmm"], found["l1"]) == ("aten::linear", "aten::addmm")
    assert found["k1"] is None


def test_device_work_is_in_the_optimizer_that_launched_it() -> None:
    raw, links = scene()
    found = named(raw, links.in_optimizer)
    inside = {name for name, around in found.items() if around == "Optimizer.step#SGD.step"}
    assert inside == {"Optimizer.step#SGD.step", "aten::add_", "l2", "k2"}
    assert set(found.values()) == {None, "Optimizer.step#SGD.step"}


def test_launch_column_holds_calls_for_device_rows_only() -> None:
    raw, links = scene()
    assert {name: at for name, at in named(raw, links.launch).items() if at} == {"k1": "l1", "k2": "l2"}


def test_time_that_only_the_step_mark_covers_is_untracked() -> None:
    raw, links = scene()
    pieces = links.pieces
    owned = [
        (int(a) // 1000, int(b) // 1000, raw.events.name_of(int(row)) if row >= 0 else "untracked")
        for a, b, row in zip(pieces.start_ns, pieces.end_ns, pieces.owner, strict=True)
    ]
    assert owned == [
        (0, 5, "untracked"), (5, 10, "aten::linear"), (10, 15, "aten::addmm"), (15, 18, "l1"), (18, 30, "aten::addmm"),
        (30, 40, "aten::linear"), (40, 50, "untracked"), (50, 55, "Optimizer.step#SGD.step"), (55, 60, "aten::add_"),
        (60, 62, "l2"), (62, 70, "aten::add_"), (70, 90, "Optimizer.step#SGD.step"), (90, 100, "untracked"),
    ]  # fmt: skip


def test_ranges_that_cross_are_counted() -> None:
    assert scene()[1].crossing_count == 0
    crossing = trace([host("a", 0, 10), host("b", 5, 15), host("c", 20, 30, tid=2)])
    assert link(crossing).crossing_count == 1


def test_links_cannot_be_written_to() -> None:
    links = scene()[1]
    columns = (
        links.launch,
        links.parent,
        links.depth,
        links.op,
        links.work,
        links.in_optimizer,
        links.frame,
        links.module,
    )
    assert not any(column.flags.writeable for column in columns)


def test_empty_trace_has_empty_links() -> None:
    links = link(trace([]))
    assert len(links.launch) == len(links.pieces) == 0
