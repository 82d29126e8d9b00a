"""The class of work of every row, against what a human reader of the name would say."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from stepcrit.link.api import CallRole, call_role
from stepcrit.link.collectives import Collective, link_collectives
from stepcrit.link.kernelnames import KERNEL_NAMES, kernel_class
from stepcrit.link.linker import link
from stepcrit.model.classes import WorkClass
from tests.builders import trace

Event = dict[str, Any]

_LINES = (Path(__file__).parent / "classes.tsv").read_text(encoding="utf-8").splitlines()
NAMES = tuple(csv.DictReader(_LINES, delimiter="\t", quoting=csv.QUOTE_NONE))
"""Names of real traces (some cut, after the part that says what it is) and what a reader says of each."""
KERNELS = [row for row in NAMES if row["kind"] == "kernel"]
CALLS = [row for row in NAMES if row["kind"] == "call"]


@pytest.mark.parametrize("row", KERNELS, ids=lambda row: row["name"][:60])
def test_kernel_is_what_a_human_reader_would_call_it(row: dict[str, str]) -> None:
    assert kernel_class(row["name"]).label == row["expected"]


@pytest.mark.parametrize("row", CALLS, ids=lambda row: row["name"])
def test_call_does_what_its_vendor_says_it_does(row: dict[str, str]) -> None:
    assert call_role(row["name"]).name.lower() == row["expected"]


def test_list_of_names_has_every_class_of_kernels_every_role_of_calls_and_no_name_twice() -> None:
    names = [(row["kind"], row["name"]) for row in NAMES]
    assert len(set(names)) == len(names)
    assert sum(not row["source"].startswith("made up") for row in NAMES) >= 450
    classes = {work.label for work in WorkClass if work < WorkClass.MEMCPY}
    assert {row["expected"] for row in KERNELS} == classes
    assert {row["expected"] for row in CALLS} == {role.name.lower() for role in CallRole}


def test_table_of_kernels_is_in_the_case_that_names_are_looked_at_in() -> None:
    """In another it would find nothing."""
    written = [text for told in KERNEL_NAMES for text in (told.words, told.pattern)]
    assert written == [text.lower() for text in written]
    assert kernel_class("AmpereBF16_GEMM") == kernel_class("ampere_bf16_gemm") == WorkClass.GEMM


def test_call_is_known_with_its_owner_and_its_suffixes() -> None:
    assert call_role("AscendCL@aclrtSynchronizeStreamWithTimeout_v2") == CallRole.SYNC_STREAM
    assert call_role("cudaMemcpy_v3020_ptds") == CallRole.COPY_BLOCKING
    assert call_role("cudaMemcpy_v") == CallRole.COPY
    assert call_role("cudaDeviceSynchronize2") == CallRole.PLAIN


def event(cat: str, name: str, span: tuple[int, int], **args: Any) -> Event:
    side = {"pid": 0, "tid": 7} if cat in ("kernel", "gpu_memcpy", "gpu_memset") else {"pid": 1, "tid": 1}
    return {"cat": cat, "name": name, "ts": span[0], "dur": span[1] - span[0], **side, "args": args}


def classes(*chrome: Event) -> dict[str, WorkClass]:
    """The class of each row by name."""
    raw = trace(chrome)
    work = link(raw).work
    return {raw.events.name_of(row): WorkClass(int(work[row])) for row in range(len(raw.events))}


def test_collective_arguments_beat_the_name() -> None:
    found = classes(
        event("kernel", "gemm_of_ours", (0, 9), **{"Collective name": "allreduce"}),
        event("kernel", "gemm", (9, 12)),
    )
    assert found == {"gemm_of_ours": WorkClass.COMM, "gemm": WorkClass.GEMM}


def collective(name: str, *chrome: Event) -> Collective:
    """The collective that a kernel of a name is."""
    raw = trace(chrome)
    found = link_collectives(raw.events, link(raw))
    (one,) = [one for one in found if raw.events.name_of(one.row) == name]
    return one


@pytest.mark.parametrize(
    "name",
    ["ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)", "ncclDevKernel_Generic_4()", "elementwise"],
)
def test_operation_of_a_collective_is_what_its_arguments_say_not_what_its_kernel_is_called(name: str) -> None:
    found = collective(
        name, event("kernel", name, (0, 9), **{"Collective name": "allreduce", "Group size": 8})
    )
    assert (found.name, found.group_size, found.source) == ("allreduce", 8, "kernel")


@pytest.mark.parametrize(
    ("name", "work"),
    [
        ("a_kernel_of_ours", WorkClass.COMM),
        ("ampere_sgemm_128x64_tn", WorkClass.GEMM),
        ("fill", WorkClass.ELEMENTWISE),
    ],
)
def test_kernel_right_under_the_record_of_a_collective_is_comm_unless_its_name_says_what_it_computes(
    name: str, work: WorkClass
) -> None:
    record = event("cpu_op", "record_param_comms", (0, 9), **{"Collective name": "allreduce"})
    calls = event("cuda_runtime", "call", (1, 2), correlation=1), event("kernel", name, (5, 9), correlation=1)
    assert classes(record, *calls)[name] == work


def test_kernel_of_an_operator_inside_the_record_of_a_collective_is_no_communication() -> None:
    found = classes(
        event("cpu_op", "record_param_comms", (0, 9), **{"Collective name": "allreduce"}),
        event("cpu_op", "aten::something", (1, 8)),
        event("cuda_runtime", "call", (2, 3), correlation=1),
        event("kernel", "a_kernel_of_ours", (5, 9), correlation=1),
    )
    assert found["a_kernel_of_ours"] == WorkClass.KERNEL


def test_kind_of_activity_beats_the_name() -> None:
    found = classes(event("gpu_memcpy", "gemm copy", (0, 9)), event("gpu_memset", "nccl memset", (9, 12)))
    assert found == {"gemm copy": WorkClass.MEMCPY, "nccl memset": WorkClass.MEMSET}


def test_what_the_optimizer_launches_is_optimizer_work_unless_it_communicates_or_copies() -> None:
    found = classes(
        event("user_annotation", "Optimizer.step#Adam.step", (0, 50)),
        event("cpu_op", "aten::mul_", (1, 40)),
        *(event("cuda_runtime", f"call{i}", (2 * i, 2 * i + 1), correlation=i) for i in range(1, 5)),
        event("cuda_runtime", "later", (60, 61), correlation=9),
        event("kernel", "void at::native::vectorized_elementwise_kernel<4>", (60, 61), correlation=1),
        event("kernel", "ncclDevKernel_AllGather_RING_LL", (61, 62), correlation=2),
        event("kernel", "by_metadata", (62, 63), correlation=3, **{"Collective name": "allgather"}),
        event("gpu_memcpy", "Memcpy DtoD", (63, 64), correlation=4),
        event("kernel", "void at::native::vectorized_elementwise_kernel<2>", (70, 71), correlation=9),
    )
    assert found["void at::native::vectorized_elementwise_kernel<4>"] == WorkClass.OPTIMIZER
    assert found["void at::native::vectorized_elementwise_kernel<2>"] == WorkClass.ELEMENTWISE
    assert found["ncclDevKernel_AllGather_RING_LL"] == found["by_metadata"] == WorkClass.COMM
    assert found["Memcpy DtoD"] == WorkClass.MEMCPY
    assert found["aten::mul_"] == found["Optimizer.step#Adam.step"] == WorkClass.OPTIMIZER_HOST


def test_host_rows_are_what_they_are_in_before_what_they_are_called() -> None:
    found = classes(
        event("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", (0, 20)),
        event("cpu_op", "aten::stack", (2, 9)),
        event("cpu_op", "aten::mm", (21, 29)),
        event("user_annotation", "Optimizer.zero_grad#SGD.zero_grad", (30, 40)),
        event("user_annotation", "nccl:all_reduce", (41, 45)),
        event("cpu_op", "c10d::allreduce_", (46, 49)),
        event("user_annotation", "gloo:broadcast", (50, 52)),
        event("cpu_op", "record_param_comms", (53, 54)),
    )
    assert found == {
        "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__": WorkClass.INPUT,
        "aten::stack": WorkClass.INPUT,
        "aten::mm": WorkClass.HOST,
        "Optimizer.zero_grad#SGD.zero_grad": WorkClass.OPTIMIZER_HOST,
        "nccl:all_reduce": WorkClass.COMM_HOST,
        "c10d::allreduce_": WorkClass.COMM_HOST,
        "gloo:broadcast": WorkClass.COMM_HOST,
        "record_param_comms": WorkClass.COMM_HOST,
    }


def test_runtime_calls_are_launches_waits_or_plain_calls() -> None:
    found = classes(
        event("cuda_runtime", "cudaLaunchKernel", (0, 2), correlation=1),
        event("cuda_runtime", "nobodyKnowsThisOne", (3, 4), correlation=2),
        event("cuda_runtime", "cudaDeviceSynchronize", (5, 6)),
        event("cuda_runtime", "hipStreamSynchronize", (7, 8)),
        event("cuda_runtime", "cudaMalloc", (9, 10)),
        event("cuda_runtime", "cudaMemcpyAsync", (11, 12)),
        event("kernel", "k", (20, 21), correlation=2),
    )
    assert found == {
        "cudaLaunchKernel": WorkClass.LAUNCH,
        "nobodyKnowsThisOne": WorkClass.LAUNCH,
        "cudaDeviceSynchronize": WorkClass.SYNC,
        "hipStreamSynchronize": WorkClass.SYNC,
        "cudaMalloc": WorkClass.RUNTIME,
        "cudaMemcpyAsync": WorkClass.LAUNCH,
        "k": WorkClass.KERNEL,
    }


def test_every_class_has_a_label_of_its_own_and_a_group() -> None:
    assert len({work.label for work in WorkClass}) == len(WorkClass)
    assert {work.group for work in WorkClass} == {"compute", "comm", "copy", "host", "gap"}


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("cudaFree_v2_ptsz_v3020", CallRole.FREE),
        ("AscendCL@aclrtFree_v1", CallRole.FREE),
        ("urEnqueueUSMPrefetch_v2", CallRole.COPY),
        ("enqueueCommand memcpy_v2", CallRole.COPY),
        ("cudaMemcpyAsync_v1_v1!", CallRole.PLAIN),
        ("cudaFree_v", CallRole.PLAIN),
        ("_v1" * 300, CallRole.PLAIN),
        ("cudaFree" + "_v1" * 300, CallRole.FREE),
        ("cudaFree" + "_v1" * 20_000, CallRole.PLAIN),  # longer than any call of a vendor's
        ("cuLaunchKernel" + "_ptsz" * 20_000, CallRole.PLAIN),
    ],
)
def test_versions_of_a_call_are_that_call_and_absurd_names_are_none(name: str, role: CallRole) -> None:
    assert call_role(name) == role
