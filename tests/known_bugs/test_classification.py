"""What is communication, what computes, and what is neither."""

from __future__ import annotations

import pytest

from stepcrit.model.classes import WorkClass
from tests.answers.drawn import call, op, work
from tests.builders import Event, event
from tests.known_bugs.conftest import Ask
from tests.known_bugs.written import loop, row_of, trace

NAMES = (
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*, unsigned long, ncclWork*)",
    "ncclKernel_AllReduce_RING_LL_Sum_half(ncclWorkElem)",
    "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t",
    "ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)",
    "rccl_main_kernel",
    "mscclKernel_Sum_half_Simple_0",
    "void nvshmem_all_reduce_kernel<float>",
    "NCCLDEVKERNEL_BROADCAST_RING_LL",
)
GEMM = "ampere_fp16_s16816gemm_fp16_128x64_tn"


def scene(kernel: str) -> list[Event]:
    """A product from 30 to 70 and beside it, from 50 to 90, another kernel; both launched from 0 to 20."""
    return [
        op("aten::mm", 0, 20),
        call("cudaLaunchKernel", (2, 4), 1),
        call("cudaLaunchKernel", (6, 8), 2),
        work(GEMM, (30, 70), 1),
        work(kernel, (50, 90), 2, stream=20),
    ]


@pytest.mark.parametrize("name", NAMES)
def test_b138_kernels_of_communication_libraries_are_communication(name: str) -> None:
    found = trace(scene(name))
    assert WorkClass(int(found.links.work[row_of(found.raw, name)])) == WorkClass.COMM
    assert WorkClass(int(found.links.work[row_of(found.raw, GEMM)])) == WorkClass.GEMM


def test_b140_without_communication_nothing_is_divided_by_it(ask: Ask) -> None:
    """The device was recorded and did not communicate: that is 0, not unknown, and never NaN."""
    answer = ask(loop(3))
    comm = answer.data["exposed_comm"]
    assert (comm["comm_union_ns"], comm["overlapped_ns"], comm["not_overlapped_ns"]) == (0, 0, 0)
    shown = ask(loop(3), "analyze", "--format", "text")
    assert (answer.code, shown.code) == (0, 0)
    assert "nan" not in (answer.out + shown.out).lower()
    assert ask(loop(3), "doctor").check("E109")["state"] == "n/a"
    lacking = [one for one in loop(3) if one["cat"] != "kernel"]
    assert ask(lacking).data["exposed_comm"] is None


def test_b141_every_answer_means_the_same_rows_by_communication(ask: Ask) -> None:
    events = scene(NAMES[0])
    data = ask(events).data
    assert data["exposed_comm"]["comm_union_ns"] == 40_000
    assert data["overlap"]["0"]["partition_ns"]["comm alone"] == 20_000
    assert data["critical_path"]["by_class_ns"]["comm"] == 40_000
    assert ask(events, "doctor").check("E109")["seen_numbers"] == [0, 1]
    assert ask(events, "whatif", "--shrink", "class:comm=0.5").code == 0


def test_b143_metadata_names_the_collective_and_not_its_kernel(ask: Ask) -> None:
    for kernel in ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t", "some_kernel_nobody_knows"):
        events = scene(kernel)
        events[-1]["args"].update({"Collective name": "allreduce", "dtype": "Float", "In msg nelems": 10})
        (found,) = ask(events).data["exposed_comm"]["collectives"]
        assert (found["name"], found["in_bytes"]) == ("allreduce", 40)


def test_b145_sync_rows_neither_compute_nor_hide_communication(ask: Ask) -> None:
    """Of the collective from 50 to 90 the product hides 20 µs, however long the sync row beside it is."""
    kinds = {"cuda_sync_kind": "Context Sync", "device": 0, "stream": -1}
    sync = event("cuda_sync", "Context Sync", (25, 90), (0, 20), **kinds)
    data = ask([*scene(NAMES[0]), sync]).data
    assert data["exposed_comm"]["overlapped_ns"] == 20_000
    assert data["exposed_comm"]["not_overlapped_ns"] == 20_000
    assert data["overlap"]["0"]["partition_ns"]["compute"] == 40_000
    assert data["device_busy_ns"] == {"0": 60_000}
