"""Which call launched what, and which operator made the call."""

from __future__ import annotations

import pytest

import stepcrit as sc
from stepcrit.link.collectives import link_collectives
from tests.answers.drawn import call, note, op, work
from tests.builders import Event, event
from tests.known_bugs.conftest import Ask
from tests.known_bugs.written import row_of, trace

LAUNCH = "cudaLaunchKernel"


def operator(found: sc.Trace, name: str) -> str:
    """The operator of a row, by name."""
    row = int(found.links.op[row_of(found.raw, name)])
    return found.raw.events.name_of(row) if row >= 0 else ""


def identified(made: Event, number: int) -> Event:
    """The event with an External id."""
    return {**made, "args": {**made.get("args", {}), "External id": number}}


def launcher(found: sc.Trace, name: str) -> str:
    """The call that launched a row, by name."""
    row = int(found.links.launch[row_of(found.raw, name)])
    return found.raw.events.name_of(row) if row >= 0 else ""


def test_b086_an_external_id_is_never_taken_for_a_correlation() -> None:
    unrelated = identified(op("aten::unrelated", 0, 10), 7)
    around = identified(op("aten::mm", 20, 60), 3)
    found = trace(
        [unrelated, around, identified(call(LAUNCH, (30, 40), 7), 3), identified(work("k", (50, 90), 7), 3)]
    )
    assert (operator(found, "k"), launcher(found, "k")) == ("aten::mm", LAUNCH)
    # not even where the call itself carries the other's id: what is around it counts first
    found = trace([unrelated, around, identified(call(LAUNCH, (30, 40), 7), 7), work("k", (50, 90), 7)])
    assert operator(found, "k") == "aten::mm"


def test_b088_a_call_without_an_external_id_belongs_to_the_operator_around_it() -> None:
    outer, inner = identified(op("aten::linear", 0, 60), 1), identified(op("aten::mm", 10, 40), 2)
    found = trace([outer, inner, call(LAUNCH, (20, 30), 9), work("k", (50, 90), 9)])
    assert operator(found, "k") == "aten::mm"


@pytest.mark.parametrize("none", [0, -1])
def test_b089_a_correlation_of_0_links_nothing_to_anything(ask: Ask, none: int) -> None:
    collectives = [work(f"ncclKernel{n}", (100 + 10 * n, 105 + 10 * n), none, stream=9) for n in range(50)]
    known = [op("aten::mm", 0, 40), call(LAUNCH, (10, 20), 5), work("k", (30, 90), 5)]
    events = [*known, call("hipMemcpyAsync", (25, 28), none), *collectives]
    found = trace(events)
    assert [launcher(found, f"ncclKernel{n}") for n in range(50)] == [""] * 50
    assert launcher(found, "k") == LAUNCH
    answer = ask(events)
    assert answer.code == 0
    # 60 µs of the product, and 50 times 5 µs
    assert answer.data["device_busy_ns"] == {"0": 310_000}
    (told,) = (one for one in answer.shown["findings"] if one["code"] == "G201")
    assert told["count"] == 50


@pytest.mark.parametrize("unknown", [-1, 0, None])
def test_b091_a_wait_without_its_record_waits_for_the_named_stream(unknown: int | None) -> None:
    """Stream 7 works from 30 to 90; stream 20 waits for it, and goes on at 95."""
    arguments = {"cuda_sync_kind": "Stream Wait Event", "stream": 20, "wait_on_stream": 7, "device": 0}
    if unknown is not None:
        arguments["wait_on_cuda_event_record_corr_id"] = unknown
    found = trace(
        [
            op("aten::mm", 0, 70),
            call(LAUNCH, (10, 20), 1),
            work("first", (30, 90), 1),
            call("cudaStreamWaitEvent", (30, 35), 2),
            event("cuda_sync", "Stream Wait Event", (31, 32), (0, 20), correlation=2, **arguments),
            call("hipLaunchKernel", (40, 50), 3),
            work("second", (95, 120), 3, stream=20),
        ]
    )
    path = found.graph().critical_path()
    rows = path.to_pandas()
    # to 10 the operator, to 20 the call, to 30 its latency, to 90 the first, to 95 the wait's own, to 120 the second
    assert path.elapsed_ns == 120_000
    assert set(rows["name"]) >= {"first", "second"}
    assert int(rows[(rows["name"] == "first") & (rows["kind"] == "activity")]["length_ns"].sum()) == 60_000
    # the record tells the stream, the order of the calls what of it is meant: it is no guess by timing
    assert set(rows[rows["entered_by"] == "event"]["evidence"]) == {"order"}


def test_b093_a_collective_belongs_to_the_record_around_its_launch_and_the_operator_inside_it() -> None:
    """Chosen: arguments from the nearest record_param_comms, the operator by what is innermost; ids decide nothing."""
    arguments = {"Collective name": "allreduce", "dtype": "Float", "In msg nelems": 1000, "Group size": 8}
    comm = identified(op("record_param_comms", 5, 90), 17)
    comm["args"].update(arguments)
    found = trace(
        [
            identified(op("c10d::allreduce_", 0, 100), 17),
            comm,
            identified(note("nccl:all_reduce", 10, 80), 18),
            identified(call(LAUNCH, (20, 30), 4), 17),
            identified(work("ncclDevKernel_AllReduce_Sum_f32_RING_LL", (40, 200), 4), 17),
        ]
    )
    (collective,) = link_collectives(found.raw.events, found.links)
    assert (collective.name, collective.in_bytes, collective.group_size) == ("allreduce", 4000, 8)
    assert collective.source == "record"
    assert operator(found, "ncclDevKernel_AllReduce_Sum_f32_RING_LL") == "record_param_comms"


def test_b094_any_call_launches_what_has_its_correlation(ask: Ask) -> None:
    driver = {**call("cuSomethingNew", (20, 30), 77), "cat": "cuda_driver"}
    events = [op("aten::mm", 0, 40), driver, work("k", (50, 90), 77)]
    assert launcher(trace(events), "k") == "cuSomethingNew"
    data = ask(events).data
    assert data["queue"]["launched"] == 1
    assert data["critical_path"]["by_class_ns"]["launch"] == 10_000
    assert data["critical_path"]["by_class_ns"]["launch latency"] == 20_000
