"""Counts of a step are those of a hand-made step: each call in the step in which it begins, device work with its launch."""

from __future__ import annotations

from typing import Any

import pytest

from stepcrit.link.linker import link
from stepcrit.link.stepcounts import StepCounts
from stepcrit.model.reading import Reading
from stepcrit.session import Options, Trace
from tests.builders import Event, event, trace

HOST, OTHER, QUEUE, COMM = (1, 1), (1, 2), (0, 7), (0, 8)
NAMES = (
    "kernel_launches", "graph_launches", "host_syncs", "cuda_mallocs", "h2d_bytes", "d2h_bytes", "collectives",
    "collective_bytes", "streams",
)  # fmt: skip


def _steps() -> list[Event]:
    return [event("user_annotation", f"ProfilerStep#{i}", (100 * i, 100 * i + 100), HOST) for i in range(3)]


def _copy(at: int, name: str, ids: int, **args: Any) -> list[Event]:
    return [
        event("cuda_runtime", "cudaMemcpyAsync", (at, at + 1), HOST, correlation=ids),
        event("gpu_memcpy", f"Memcpy {name}", (at + 2, at + 4), QUEUE, correlation=ids, stream=7, **args),
    ]


def _kernel(
    at: int, ids: int, *, name: str = "gemm", place: tuple[int, int] = QUEUE, **args: Any
) -> list[Event]:
    return [
        event("cuda_runtime", "cudaLaunchKernel", (at, at + 1), HOST, correlation=ids),
        event("kernel", name, (at + 10, at + 120), place, correlation=ids, stream=place[1], **args),
    ]


def counts(rows: list[Event], step: int = 1) -> dict[str, Reading]:
    """The counts of one step."""
    made = Trace(trace(_steps() + rows), Options())
    return StepCounts(made.raw, made.links).of(made.steps[step])


def values(rows: list[Event], step: int = 1) -> dict[str, Any]:
    return {name: reading.value for name, reading in counts(rows, step).items()}


FULL = [
    *_kernel(105, 1), *_kernel(110, 2), *_kernel(205, 3),
    event("cuda_runtime", "cudaGraphLaunch", (120, 122), HOST, correlation=9),
    event("cuda_runtime", "cudaStreamSynchronize", (130, 131), OTHER),
    event("cuda_runtime", "cudaDeviceSynchronize", (199, 240), HOST),  # begins in step 1, ends in step 2
    event("cuda_runtime", "cudaMalloc", (140, 141), HOST),
    event("cuda_runtime", "cudaEventQuery", (142, 143), HOST),
    *_copy(150, "HtoD (Pinned -> Device)", 20, bytes=64), *_copy(155, "HtoD (Pageable -> Device)", 21, bytes=1),
    *_copy(160, "DtoH (Device -> Pageable)", 22, bytes=4), *_copy(165, "DtoD (Device -> Device)", 23, bytes=1000),
    *_kernel(170, 30, name="ncclDevKernel_AllReduce_Sum_f32", place=COMM, **{
        "Collective name": "allreduce", "In msg nelems": 10, "Out msg nelems": 10, "dtype": "Float", "Group size": 2,
    }),
]  # fmt: skip


def test_everything_in_a_step_is_counted_in_it_once() -> None:
    assert values(FULL) == {
        "kernel_launches": 3, "graph_launches": 1, "host_syncs": 2, "cuda_mallocs": 1, "h2d_bytes": 65, "d2h_bytes": 4,
        "collectives": 1, "collective_bytes": 40, "streams": 2,
    }  # fmt: skip
    assert values(FULL, 2) == dict.fromkeys(NAMES, 0) | {"kernel_launches": 1, "streams": 1}
    assert values(FULL, 0) == dict.fromkeys(NAMES, 0)


def test_a_job_without_a_device_has_none_of_it() -> None:
    assert values([event("cpu_op", "aten::mm", (110, 150), HOST)]) == dict.fromkeys(NAMES, 0)


def test_device_work_without_calls_leaves_calls_unknown() -> None:
    rows = [row for row in FULL if row["cat"] != "cuda_runtime"]
    found = counts(rows)
    assert found["host_syncs"] == Reading(None, "no calls of the device's runtime were recorded")
    assert found["kernel_launches"].value is None


def test_calls_without_device_work_leave_copies_and_collectives_unknown() -> None:
    rows = [row for row in FULL if row["cat"] == "cuda_runtime"]
    found = counts(rows)
    assert found["kernel_launches"].value == 3
    assert {name for name in NAMES if found[name].value is None} == {
        "h2d_bytes", "d2h_bytes", "collectives", "collective_bytes", "streams",
    }  # fmt: skip
    assert found["h2d_bytes"].why == "the device's work was not recorded"


@pytest.mark.parametrize(
    ("rows", "name", "why"),
    [
        (_copy(150, "HtoD (Pinned -> Device)", 20), "h2d_bytes", "a copy does not tell its size"),
        (_copy(150, "something", 20, bytes=4), "d2h_bytes", "from where to where it goes"),
        (_kernel(170, 30, name="ncclDevKernel_AllReduce_Sum_f32"), "collective_bytes", "a collective does not tell its size"),
    ],
)  # fmt: skip
def test_what_a_row_does_not_tell_makes_its_sum_unknown(rows: list[Event], name: str, why: str) -> None:
    found = counts(rows)
    assert found[name].value is None
    assert why in found[name].why


def test_communication_on_the_host_is_not_counted_as_none() -> None:
    made = counts([event("user_annotation", "gloo:all_reduce", (110, 150), HOST)])
    assert made["collectives"] == Reading(None, "communication ran on the host, which is not counted")


def test_words_of_a_communication_library_on_the_host_take_no_count_of_the_device_away() -> None:
    rows = [event("user_annotation", "gloo:all_reduce", (110, 150), HOST), *_kernel(105, 1)]
    assert values(rows)["collectives"] == 0


def test_a_capture_without_steps_is_one_step() -> None:
    made = Trace(trace(_kernel(5, 1) + _kernel(305, 2)), Options())
    found = StepCounts(made.raw, link(made.raw, made.options.classes)).of(made.steps[0])
    assert found["kernel_launches"].value == 2


def test_kinds_of_operators_are_those_of_the_step() -> None:
    rows = [
        event("cpu_op", "aten::mm", (104, 108), HOST),
        event("cpu_op", "aten::relu", (204, 208), HOST),
        *_kernel(105, 1),
    ]
    made = Trace(trace(_steps() + rows), Options())
    counter = StepCounts(made.raw, made.links)
    assert counter.host_kinds(made.steps[1]) == counter.device_kinds(made.steps[1]) == {"aten::mm"}
    assert (counter.host_kinds(made.steps[2]), counter.device_kinds(made.steps[2])) == ({"aten::relu"}, set())
