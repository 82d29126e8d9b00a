"""The header is read as far as it can be believed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from stepcrit.ingest.metadata import read_header
from stepcrit.model.trace import Device, ProcessGroup, RawTrace


def _header(**values: Any) -> Any:
    return read_header({key: json.dumps(value).encode() for key, value in values.items()})


def test_an_empty_header_knows_nothing() -> None:
    header = read_header({})
    assert (header.base_ns, header.rank, header.world_size, header.backend) == (-1, -1, -1, "")
    assert (header.devices, header.groups, header.options, header.versions, header.notes) == (
        (),
        (),
        frozenset(),
        {},
        (),
    )


@pytest.mark.parametrize(
    ("text", "base"),
    [
        (b"1711964646000000000", 1711964646000000000),
        (b"1711964646000000001", 1711964646000000001),
        (b'"1711964646000000000"', 1711964646000000000),
        (b"5.0", 5),
        (b"-5", -1),
        (b"1.7e18", -1),
        (b"null", -1),
        (b"9999999999999999999", -1),
    ],
)
def test_the_base_is_read_from_its_text(text: bytes, base: int) -> None:
    assert read_header({"baseTimeNanoseconds": text}).base_ns == base


def test_devices_are_read_under_both_names() -> None:
    entry = {
        "id": 1,
        "name": "NVIDIA H100",
        "numSms": 132,
        "computeMajor": 9,
        "computeMinor": 0,
        "warpSize": 32,
    }
    expected = (Device(1, "NVIDIA H100", 132, 9, 0),)
    assert _header(deviceProperties=[entry]).devices == expected
    assert _header(computeProperties=[entry]).devices == expected


def test_unknown_device_facts_are_minus_one() -> None:
    assert _header(deviceProperties=[{"id": "x", "name": 7}, 5]).devices == (Device(-1, "7"),)


@pytest.mark.parametrize(
    ("ranks", "expected"),
    [
        ([0, 1], (0, 1)),
        ("[0, 1, 2]", (0, 1, 2)),
        ("[0, 1, ..., 31]", ()),
        ([0, "x"], ()),
        (None, ()),
        ("[]", ()),
    ],
)
def test_ranks_of_a_group_are_a_list_or_its_text(ranks: Any, expected: tuple[int, ...]) -> None:
    job = {
        "backend": "nccl",
        "rank": 3,
        "world_size": 8,
        "pg_config": [{"pg_name": "0", "pg_desc": "dp", "ranks": ranks}],
    }
    header = _header(distributedInfo=job)
    assert header.groups == (ProcessGroup("0", "dp", expected),)
    assert (header.rank, header.world_size, header.backend) == (3, 8, "nccl")


@pytest.mark.parametrize(
    "job", [None, [], "x", {"rank": None}, {"rank": -1}, {"rank": True}, {"rank": "zero"}]
)
def test_an_unusable_rank_is_unknown(job: Any) -> None:
    assert _header(distributedInfo=job).rank == -1


@pytest.mark.parametrize(
    ("rank", "number"),
    [
        (0, 0),
        (2**31 - 1, 2**31 - 1),
        (2**31, -1),
        ("3", 3),
        ("123456789", 123456789),
        ("1234567890", -1),
    ],
)
def test_a_rank_is_a_number_of_31_bits_or_its_text(rank: Any, number: int) -> None:
    assert _header(distributedInfo={"rank": rank}).rank == number


def test_options_are_those_that_were_on() -> None:
    assert _header(record_shapes=1, with_stack=0, profile_memory=True, other=1).options == {
        "record_shapes",
        "profile_memory",
    }


def test_versions_come_by_key_and_as_text() -> None:
    versions = _header(
        cuda_driver_version=12040,
        **{"rocprofiler-sdk_version": "1.0"},
        distributedInfo={"nccl_version": "2.21.5"},
    ).versions
    assert versions == {
        "cuda_driver_version": "12040",
        "rocprofiler-sdk_version": "1.0",
        "nccl_version": "2.21.5",
    }


def test_notes_are_the_warnings_and_errors() -> None:
    header = _header(WARNING=["a\n", 5, "WARNING:2026 x.cpp:1] b"], ERROR="c", INFO=["d"])
    assert header.notes == ("WARNING: a", "WARNING:2026 x.cpp:1] b", "ERROR: c")


def test_a_header_value_that_is_not_utf8_is_unknown() -> None:
    assert read_header({"distributedInfo": b'{"backend":"\xff","rank":1}'}).rank == -1


def test_header_keys_before_and_after_the_events_both_count(read_text: Callable[..., RawTrace]) -> None:
    event = '{"ph":"X","cat":"cpu_op","name":"a","ts":1,"dur":1}'
    text = (
        f'{{"with_stack":1,"traceEvents":[{event}],"distributedInfo":{{"rank":2}},"baseTimeNanoseconds":7}}'
    )
    meta = read_text(text).meta
    assert (meta.options, meta.rank, meta.base_ns) == (frozenset({"with_stack"}), 2, 7)
    assert meta.header_keys == ("baseTimeNanoseconds", "distributedInfo", "traceEvents", "with_stack")
