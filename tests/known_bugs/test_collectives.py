"""Collectives whose metadata lacks, is cut or misleads."""

from __future__ import annotations

from typing import Any

import pytest

from tests.answers.drawn import call, op, work
from tests.builders import Event
from tests.known_bugs.conftest import Ask
from tests.known_bugs.written import raw

NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*, unsigned long, ncclWork*)"
META = {
    "Collective name": "allreduce",
    "dtype": "Float",
    "In msg nelems": 1000,
    "Out msg nelems": 1000,
    "Group size": 8,
}


def step_with(kernel: dict[str, Any], record: dict[str, Any] | None = None, name: str = NCCL) -> list[Event]:
    """An operator at 0 to 40 launches a collective that runs from 50 to 90; both may carry arguments."""
    around = op("record_param_comms" if record else "c10d::allreduce_", 0, 40)
    around["args"] = {**around.get("args", {}), **(record or {})}
    work_row = work(name, (50, 90), 1)
    work_row["args"].update(kernel)
    return [around, call("cudaLaunchKernel", (10, 20), 1), work_row]


def only(ask: Ask, events: list[Event], **header: Any) -> dict[str, Any]:
    """The one collective of an answer."""
    answer = ask(events, **header)
    assert answer.code == 0
    (found,) = answer.data["exposed_comm"]["collectives"]
    assert isinstance(found, dict)
    return found


def test_b130_a_collective_without_metadata_is_communication_and_its_name_unknown(ask: Ask) -> None:
    """Nothing is matched over ranks yet: what cannot be known is null with its reason, and doctor says so."""
    answer = ask(step_with({}))
    assert answer.data["exposed_comm"]["comm_union_ns"] == 40_000
    (found,) = answer.data["exposed_comm"]["collectives"]
    assert (found["name"], found["group"], found["in_bytes"]) == (None, None, None)
    assert answer.unknown["exposed_comm.collectives[].name"] == "no collective metadata"
    assert ask(step_with({}), "doctor").check("E109")["state"] == "missing"


@pytest.mark.parametrize(
    "odd", [{"In msg nelems": "?"}, {"dtype": 7}, {"Group size": None}, {"Collective name": ["x"]}]
)
def test_b130_odd_values_of_a_record_stop_nothing(ask: Ask, odd: dict[str, Any]) -> None:
    answer = ask(step_with({}, {**META, **odd}))
    assert (answer.code, answer.data["exposed_comm"]["comm_union_ns"]) == (0, 40_000)


def test_b130_a_record_around_the_launch_names_a_kernel_without_metadata(ask: Ask) -> None:
    found = only(ask, step_with({}, META))
    assert (found["name"], found["in_bytes"], found["group_size"]) == ("allreduce", 4000, 8)


def test_b132_the_size_of_a_coalesced_collective_is_unknown_and_not_0(ask: Ask) -> None:
    events = step_with(
        {"Collective name": "allgather_into_tensor_coalesced"}, name="ncclDevKernel_AllGather_RING_LL"
    )
    events[0]["name"] = "nccl:coalesced"
    answer = ask(events)
    (found,) = answer.data["exposed_comm"]["collectives"]
    assert (found["name"], found["in_bytes"], found["out_bytes"]) == (
        "allgather_into_tensor_coalesced",
        None,
        None,
    )
    assert "exposed_comm.collectives[].in_bytes" in answer.unknown
    assert "GB/s" not in ask(events, "analyze", "--format", "text").out


@pytest.mark.parametrize("split", ["[1, 2, 3, ...]", [1, 2, 3], "[]", "[1, 2, "])
def test_b133_a_list_that_was_cut_short_costs_nothing_else(ask: Ask, split: object) -> None:
    found = only(ask, step_with({**META, "Collective name": "all_to_allv", "In split size": split}))
    assert (found["name"], found["in_bytes"]) == ("all_to_allv", 4000)


def test_b133_ranks_of_a_group_that_were_cut_short_are_unknown() -> None:
    groups = [
        {"pg_name": "0", "pg_desc": "default", "ranks": "[0, 1, 2, ...]"},
        {"pg_name": "1", "pg_desc": "tp", "ranks": "[0, 1]"},
        {"pg_name": "2", "pg_desc": "dp", "ranks": [0, 2]},
    ]
    found = raw(step_with(META), distributedInfo={"rank": 0, "world_size": 8, "pg_config": groups})
    assert [(group.name, group.ranks) for group in found.meta.groups] == [
        ("0", ()),
        ("1", (0, 1)),
        ("2", (0, 2)),
    ]


def test_b135_recorded_peers_change_no_number(ask: Ask) -> None:
    """Peers are not used: nothing proves whose numbers they are."""
    answers = []
    for peers in ({}, {"Src Rank": 0, "Dst Rank": 1}, {"Src Rank": 5, "Dst Rank": 5}):
        data = ask(step_with({**META, "Collective name": "send", **peers})).data
        data["trace"].pop("json_bytes")
        answers.append(data)
    assert answers[0] == answers[1] == answers[2]


def test_b137_a_sequence_number_may_be_there_or_not(ask: Ask) -> None:
    both = [only(ask, step_with({**META, **seq})) for seq in ({}, {"Seq": 12}, {"Seq": "x"})]
    assert both[0] == both[1] == both[2]
    assert both[0]["name"] == "allreduce"
