"""Other vendors' exporters, and what each of them writes differently."""

from __future__ import annotations

import pytest

from stepcrit.model.events import Side
from tests.answers.drawn import op, work
from tests.builders import Event, event
from tests.known_bugs.conftest import Ask
from tests.known_bugs.written import loop, raw, spans, trace


def test_b187_times_in_quotation_marks_and_ids_of_64_bits_are_exact() -> None:
    flow = 2**53 + 1
    first: Event = {**op("aten::mm", 0, 0), "ts": "1778655624745710.848", "dur": "40.001"}
    launch = {"ph": "s", "cat": "async_npu", "name": "torch_to_npu", "id": str(flow), "pid": 1, "tid": 1}
    arrows = [
        {**launch, "ts": "1778655624745710.848"},
        {**launch, "id": flow - 1, "ts": "1778655624745711.000"},
    ]
    found = raw([first, {**op("b", 0, 0), "ts": "1778655624745710.849", "dur": "1"}, *arrows])
    assert found.meta.origin_ns == 1_778_655_624_745_710_848
    assert spans(found, "aten::mm") == [(0, 40_001)]
    assert spans(found, "b") == [(1, 1_001)]
    assert found.flows.id.tolist() == [flow, flow - 1]


QUEUES = [
    ({"stream": 3, "sycl queue": 64, "l0 queue": 5}, 3),
    ({"sycl queue": 64, "l0 queue": 5}, 64),
    ({"l0 queue": "5"}, 5),
    ({}, 9),
    ({"sycl queue": "0x55d0c0ffee00"}, 9),  # a handle is no number of a queue
]


@pytest.mark.parametrize(("arguments", "stream"), QUEUES)
def test_b189_the_queue_of_a_kernel_is_the_first_name_it_has(
    ask: Ask, arguments: dict[str, object], stream: int
) -> None:
    kernel = event("kernel", "gemm_kernel", (50, 90), (0, 9), correlation=1, **arguments)
    launch = {**event("xpu_runtime", "urEnqueueKernelLaunch", (20, 30), correlation=1)}
    events = [op("aten::mm", 10, 40), launch, kernel]
    (lane,) = (lane for lane in raw(events).events.lanes if lane.side == Side.DEVICE)
    assert (lane.device, lane.stream) == (0, stream)
    answer = ask(events)
    assert (answer.code, answer.data["device_busy_ns"]) == (0, {"0": 40_000})


def merged_queue() -> list[Event]:
    """A queue of ROCm that holds two streams: of each pair of kernels the second begins inside the first."""
    events = [op("aten::mm", 0, 60)]
    for n in range(4):
        at = 60 + 50 * (n // 2) + 10 * (n % 2)
        events += [
            event("cuda_runtime", "hipLaunchKernel", (8 * n, 8 * n + 4), correlation=n + 1),
            work(f"k{n}", (at, at + 30), n + 1, stream=n % 4 // 4),
        ]
    return events


def test_b190_kernels_of_one_hardware_queue_that_overlap_are_not_put_in_a_row(ask: Ask) -> None:
    """What the queue's order cannot say is told: overlaps are counted, and busy time is a union."""
    answer = ask(merged_queue())
    # 60 to 100 and 110 to 150
    assert answer.data["device_busy_ns"] == {"0": 80_000}
    assert answer.data["summed_ns"]["device"] == 120_000
    (split,) = (one for one in answer.shown["findings"] if one["code"] == "G204")
    assert split["count"] == 2
    found = trace(merged_queue())
    assert found.graph().critical_path().elapsed_ns == 150_000
    ends = {
        found.raw.events.name_of(row): int(found.raw.events.end_ns[row])
        for row in range(len(found.raw.events))
    }
    assert (ends["k0"], ends["k2"]) == (90_000, 140_000)


def test_b192_copies_that_all_lie_on_stream_0_hide_and_delay_nothing_by_that(ask: Ask) -> None:
    """A copy from 120 to 180 is drawn over a kernel of the same stream: it is counted once, and told."""
    events = [op("aten::mm", 0, 40)]
    rows = (
        ("hipLaunchKernel", "k", (100, 150)),
        ("hipMemcpyAsync", "Memcpy HtoD (Host -> Device)", (120, 180)),
    )
    for n, (name, what, span) in enumerate(rows, 1):
        events += [
            event("cuda_runtime", name, (8 * n, 8 * n + 4), correlation=n),
            work(what, span, n, stream=0),
        ]
    answer = ask(events)
    times = answer.data["overlap"]["0"]["partition_ns"]
    assert (times["compute"], times["copy alone"]) == (50_000, 30_000)
    assert answer.data["device_busy_ns"] == {"0": 80_000}
    assert "G204" in answer.codes


def test_b194_copies_without_a_correlation_are_one_line_and_keep_their_time(ask: Ask) -> None:
    """40 copies of 1 µs before the last step's product, which no call launched."""
    copies = [work("CopyHostToDevice Memcpy", (200 + n, 201 + n), -1, stream=3) for n in range(40)]
    answer = ask([*loop(3), *copies], "analyze", "--step", "2")
    told = [one for one in answer.shown["findings"] if one["code"] == "G201"]
    assert [one["count"] for one in told] == [40]
    assert answer.err == ""
    rows = {row["name"]: row for row in answer.data["operators"]}
    assert rows["(launched outside the trace)"]["device_ns"] == 40_000
    assert answer.data["device_busy_ns"] == {"0": 80_000}


def test_b195_a_trace_of_a_mac_is_one_of_the_cpu_alone(ask: Ask) -> None:
    """Nothing in the file tells MPS from a job without a device: what it says is that none was used."""
    events = [op("aten::mps_convolution", 0, 40), op("aten::to", 50, 60)]
    answer = ask(events)
    assert (answer.code, answer.data["boundary"], answer.data["elapsed_ns"]) == (0, "host", 60_000)
    check = ask(events, "doctor").check("E101")
    assert (check["state"], check["seen"]) == ("n/a", "no device activities")
