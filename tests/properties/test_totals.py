"""I1, I2, I3: classes partition the window, unions do not exceed sums, and every table adds up to what it says.

On random traces against a bitmap of microseconds, and through every answer on every fixture.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepcrit.analyses import overlap
from stepcrit.answers import analyze, critical, room, target
from stepcrit.errors import UsageError
from stepcrit.graph.change import Options as How
from stepcrit.graph.selector import Selector
from stepcrit.intervals import union
from stepcrit.model.classes import WorkClass
from stepcrit.model.events import DEVICE_KINDS, HOST_KINDS, Side
from stepcrit.model.section import Bar, Document, Section
from stepcrit.session import Trace, load
from tests.properties.crowded import crowded, row
from tests.properties.schedules import PROPERTY as FULL
from tests.variants import Written, answers, to_bytes, understood

FIXTURES = sorted((Path(__file__).parents[2] / "fixtures").glob("*/*.json.gz"))
PROPERTY = settings(FULL, max_examples=100)
CELL_NS = 1000  # random traces are in whole microseconds


@cache
def fixture(path: Path) -> Trace:
    return load(path)


# --- I1: the partition of each device's window ------------------------------------------------


@PROPERTY
@given(crowded(), st.integers(-2, 8), st.integers(0, 9))
def test_classes_partition_the_window_of_every_device_like_a_bitmap(
    trace: Written, first: int, length: int
) -> None:
    raw = understood(to_bytes(trace))
    window = (first * CELL_NS, (first + length) * CELL_NS)
    cells = np.arange(*window, CELL_NS)
    for one in overlap.analyze(raw.raw.events, raw.links.work, window):
        ran = {kind: bitmap(raw, kind, cells) for kind in ("compute", "comm", "copy")}
        compute, comm, copy = (ran[kind] for kind in ("compute", "comm", "copy"))
        assert one.partition_ns == {
            "compute": ns(compute),
            "comm alone": ns(comm & ~compute),
            "copy alone": ns(copy & ~comm & ~compute),
            "idle": ns(~compute & ~comm & ~copy),
        }
        assert sum(one.partition_ns.values()) == sum(one.symmetric_ns.values()) == window[1] - window[0]
        assert (one.covered_ns, one.not_covered_ns) == (ns(comm & compute), ns(comm & ~compute))
        assert one.busy_ns <= min(one.summed_ns, one.window_ns)


def bitmap(trace: Trace, kind: str, cells: np.typing.NDArray[np.int64]) -> np.typing.NDArray[np.bool_]:
    """In which microseconds the device did work of a kind: class by class, row by row."""
    events, work = trace.raw.events, trace.links.work
    special = {WorkClass.COMM: "comm", WorkClass.MEMCPY: "copy", WorkClass.MEMSET: "copy"}
    found = np.zeros(len(cells), np.bool_)
    for i in range(len(events)):
        if events.kind[i] in DEVICE_KINDS and special.get(WorkClass(work[i]), "compute") == kind:
            found |= (cells >= events.start_ns[i]) & (cells < events.end_ns[i])
    return found


def ns(cells: np.typing.NDArray[np.bool_]) -> int:
    return int(cells.sum()) * CELL_NS


@pytest.mark.parametrize("path", FIXTURES, ids=lambda p: p.name)
def test_classes_partition_the_window_of_every_step_of_every_fixture(path: Path) -> None:
    trace = fixture(path)
    for step in trace.steps:
        for one in overlap.analyze(trace.raw.events, trace.links.work, (step.start_ns, step.end_ns)):
            for parts in (one.partition_ns, one.symmetric_ns):
                assert min(parts.values()) >= 0
                assert sum(parts.values()) == step.elapsed_ns == one.window_ns
            assert one.busy_ns == one.window_ns - one.partition_ns["idle"] <= one.summed_ns


@PROPERTY
@given(crowded(), st.integers(0, 6), st.integers(0, 4))
def test_one_more_activity_never_makes_a_device_less_busy(trace: Written, at: int, dur: int) -> None:
    more = row("kernel", "gemm_kernel", (at, at + dur), (0, 7), stream=7, device=0)
    window = (-10 * CELL_NS, 30 * CELL_NS)
    one, other = (understood(to_bytes(t)) for t in (trace, Written(trace.header, [*trace.events, more])))
    # The earliest row is time 0 of either trace.
    late = one.meta.origin_ns - other.meta.origin_ns
    moved = (window[0] + late, window[1] + late)
    before = overlap.analyze(one.raw.events, one.links.work, window)
    after = overlap.analyze(other.raw.events, other.links.work, moved)
    old = before[0].busy_ns if before else 0
    new = after[0].busy_ns if after else 0
    assert old <= new <= old + dur * CELL_NS


# --- I2: self times ---------------------------------------------------------------------------


def own_and_covered(trace: Trace) -> list[tuple[int, int]]:
    """Per thread, the time that events own and the time that events cover, each from its own source."""
    events, pieces = trace.raw.events, trace.links.pieces
    found = []
    for i, lane in enumerate(events.lanes):
        rows = np.flatnonzero((events.lane == i) & events.is_kind(*HOST_KINDS))
        rows = (
            rows[[not events.name_of(r).startswith("ProfilerStep#") for r in rows.tolist()]]
            if len(rows)
            else rows
        )
        if lane.side == Side.HOST and len(rows):
            at = np.arange(len(pieces))
            mine = (at >= pieces.lane_ptr[i]) & (at < pieces.lane_ptr[i + 1]) & (pieces.owner >= 0)
            assert (pieces.end_ns[mine] > pieces.start_ns[mine]).all()
            owned = int((pieces.end_ns[mine] - pieces.start_ns[mine]).sum())
            found.append((owned, union(events.start_ns[rows], events.end_ns[rows]).length))
    return found  # fmt: skip


@PROPERTY
@given(crowded())
def test_self_times_of_a_thread_add_up_to_what_its_events_cover(trace: Written) -> None:
    found = own_and_covered(understood(to_bytes(trace)))
    assert found
    assert all(owned == covered for owned, covered in found)


@pytest.mark.parametrize("path", FIXTURES, ids=lambda p: p.name)
def test_self_times_add_up_on_every_fixture(path: Path) -> None:
    found = own_and_covered(fixture(path))
    assert found
    assert all(owned == covered for owned, covered in found)


# --- I3: every table --------------------------------------------------------------------------


def documents(trace: Trace) -> list[Document]:
    """Every answer there is to a trace; groupings that it does not record are left out."""
    found = [one for one in answers(trace).values() if isinstance(one, Document)]
    view, every = trace.view(), Selector("name", "*")
    for by in ("op", "kernel", "class", "module", "line"):
        try:
            found.append(analyze.answer(view, by=by))
        except UsageError:
            continue
    found.append(critical.answer(view))
    found.append(room.answer(view, every, How()))
    found.append(target.answer(view, view.step.elapsed_ns * 9 // 10, "op"))
    return found


@pytest.mark.parametrize("path", FIXTURES, ids=lambda p: p.name)
def test_every_table_and_bar_adds_up_to_its_total(path: Path) -> None:
    told = documents(fixture(path))
    totals = sum(check(block) for one in told for block in one.blocks)
    assert totals >= 2 * len(told) // 3, "tables with a total were looked at"
    for one in told:
        conserved(one)


def check(block: Section | Bar) -> int:
    """A block's sums; how many were checked."""
    if isinstance(block, Bar):
        assert sum(part for _, part in block.parts) == block.whole_ns
        return 1
    if block.total is None:
        return 0
    assert len(block.total) == len(block.columns)
    checked = 0
    for i, (column, total) in enumerate(zip(block.columns, block.total, strict=True)):
        cells = [r[i] for r in block.rows if r[i] is not None]
        if isinstance(total, int) and not isinstance(total, bool):
            assert sum(c for c in cells if isinstance(c, int)) == total, (block.title, column.key)
            checked += 1
        elif isinstance(total, float):
            assert sum(float(c) for c in cells) == pytest.approx(total, abs=1e-9), (block.title, column.key)
    return checked


def conserved(one: Document) -> None:
    """The same in the machine's answer: device and host time each go to exactly one row."""
    data = one.data
    if one.verb != "analyze":
        return
    path = data["critical_path"]
    for parts in ("by_class_ns", "by_group_ns", "by_evidence_ns"):
        assert sum(path[parts].values()) == data["elapsed_ns"]
    table = data["ranking"]
    for column in ("device_ns", "self_cpu_ns", "critical_ns"):
        cells = [r[column] for r in table["rows"]]
        assert None in (table[column], *cells) or sum(cells) == table[column]
    busy = data["overlap"] or {}
    for device, parts in busy.items():
        assert data["device_busy_ns"][device] == parts["busy_ns"]
        assert sum(parts["partition_ns"].values()) == parts["window_ns"] == data["elapsed_ns"]
    if busy and data["summed_ns"]["device"] is not None:
        assert data["summed_ns"]["device"] == sum(p["summed_ns"] for p in busy.values())
