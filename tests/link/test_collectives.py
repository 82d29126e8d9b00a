"""Collectives: what their own arguments say, what the record around the launch says, and what nobody says."""

from __future__ import annotations

from typing import Any

import pytest

from stepcrit.link.collectives import DTYPE_BYTES, Collective, link_collectives
from stepcrit.link.linker import link
from tests.builders import trace

Event = dict[str, Any]
ARGS = {
    "Collective name": "allreduce", "In msg nelems": 1000, "Out msg nelems": 1000, "Group size": 8, "dtype": "Float",
    "Process Group Name": "0", "Process Group Description": "default_pg",
}  # fmt: skip
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def host(cat: str, name: str, start: int, end: int, **args: Any) -> Event:
    return {"cat": cat, "name": name, "ts": start, "dur": end - start, "pid": 1, "tid": 1, "args": args}


def kernel(name: str = NCCL, start: int = 50, **args: Any) -> Event:
    args = {"correlation": 1, "stream": 20, **args}
    return {"cat": "kernel", "name": name, "ts": start, "dur": 9, "pid": 0, "tid": 20, "args": args}


def collectives(*chrome: Event) -> list[Collective]:
    raw = trace(chrome)
    return list(link_collectives(raw.events, link(raw)))


def launched(*around: Event) -> list[Event]:
    """A launch call inside other host ranges."""
    return [*around, host("cuda_runtime", "cudaLaunchKernelExC", 10, 12, correlation=1)]


def test_kernel_arguments_name_the_collective() -> None:
    (one,) = collectives(*launched(), kernel(**ARGS))
    assert one == Collective(1, "allreduce", "0", 8, 4000, 4000, "Float", "kernel")


def test_record_around_the_launch_stands_in_for_kernel_arguments() -> None:
    record = host(
        "cpu_op",
        "record_param_comms",
        5,
        20,
        **{**ARGS, "Collective name": "allgather", "Out msg nelems": 8000},
    )
    (one,) = collectives(*launched(host("cpu_op", "c10d::allgather_", 0, 30), record), kernel())
    assert (one.name, one.source, one.in_bytes, one.out_bytes) == ("allgather", "record", 4000, 32000)


def test_nearest_record_around_the_launch_counts() -> None:
    outer = host("cpu_op", "record_param_comms", 0, 30, **{**ARGS, "Collective name": "outer"})
    inner = host("cpu_op", "record_param_comms", 5, 20, **{**ARGS, "Collective name": "inner"})
    assert [one.name for one in collectives(*launched(outer, inner), kernel())] == ["inner"]


def test_record_beside_the_launch_does_not_count() -> None:
    record = host("cpu_op", "record_param_comms", 13, 20, **ARGS)
    assert [one.name for one in collectives(*launched(), record, kernel())] == [""]


def test_kernel_arguments_beat_the_record() -> None:
    record = host("cpu_op", "record_param_comms", 5, 20, **{**ARGS, "Collective name": "record"})
    assert [(one.name, one.source) for one in collectives(*launched(record), kernel(**ARGS))] == [
        ("allreduce", "kernel")
    ]


def test_collective_known_by_its_kernel_name_only_says_nothing_more() -> None:
    (one,) = collectives(*launched(), kernel())
    assert one == Collective(1, "", "", -1, -1, -1, "", "")


def test_orphan_collective_is_listed_with_its_own_arguments() -> None:
    assert [one.name for one in collectives(kernel(**ARGS))] == ["allreduce"]


def test_computing_kernels_and_host_records_are_no_collectives() -> None:
    record = host("cpu_op", "record_param_comms", 5, 20, **ARGS)
    assert collectives(*launched(record), kernel("ampere_sgemm_128x64_tn")) == []


@pytest.mark.parametrize(
    ("dtype", "size"),
    [
        ("Float", 4), ("Half", 2), ("BFloat16", 2), ("Double", 8), ("Long", 8), ("Int", 4), ("Short", 2), ("Byte", 1),
        ("Char", 1), ("Bool", 1), ("ComplexFloat", 8), ("ComplexDouble", 16), ("Float8_e4m3fn", 1), ("Float8_e5m2", 1),
    ],
)  # fmt: skip
def test_bytes_are_elements_times_the_size_of_their_type(dtype: str, size: int) -> None:
    (one,) = collectives(
        *launched(), kernel(**{**ARGS, "dtype": dtype, "In msg nelems": 10, "Out msg nelems": 80})
    )
    assert (one.in_bytes, one.out_bytes, one.dtype) == (10 * size, 80 * size, dtype)


def test_no_elements_are_no_bytes() -> None:
    (one,) = collectives(*launched(), kernel(**{**ARGS, "In msg nelems": 0}))
    assert one.in_bytes == 0


@pytest.mark.parametrize(
    "change",
    [
        {"dtype": "Mystery"},
        {"dtype": None},
        {"In msg nelems": None},
        {"In msg nelems": "many"},
        {"In msg nelems": -1},
    ],
)
def test_bytes_are_unknown_where_count_or_type_is(change: dict[str, Any]) -> None:
    (one,) = collectives(*launched(), kernel(**{**ARGS, **change}))
    assert one.in_bytes == -1


def test_group_falls_back_to_its_id() -> None:
    args = {key: value for key, value in ARGS.items() if key != "Process Group Name"}
    (one,) = collectives(*launched(), kernel(**args, **{"Process Group ID": 5}))
    assert one.group == "5"


def test_collectives_come_in_table_order() -> None:
    found = collectives(kernel(start=70, **{**ARGS, "Collective name": "second"}), kernel(**ARGS))
    assert [one.name for one in found] == ["allreduce", "second"]


def test_every_known_type_has_a_positive_size() -> None:
    assert min(DTYPE_BYTES.values()) >= 1
