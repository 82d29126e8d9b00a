"""Comparing a trace with itself shows zero everywhere; the other way round every difference turns its sign (I16)."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from stepcrit.analyses.statistics import Call
from stepcrit.answers.compared import Conclusion, compared
from stepcrit.answers.diff import document
from stepcrit.answers.diffdata import diff_data
from stepcrit.cli.main import run
from stepcrit.report.write import RENDERERS, render
from stepcrit.session import load

FIXTURES = Path(__file__).parents[2] / "fixtures"
NAMES = [
    "simulated/ddp_tail.rank0", "simulated/ddp_tail.rank1", "simulated/item_sync", "simulated/two_streams",
    "recorded/op_halved_before", "recorded/op_halved_after", "recorded/accumulation_stacks",
    "recorded/accumulation_update", "recorded/loader_hidden_before", "recorded/ddp_gloo_rank0",
]  # fmt: skip
TURNED = {
    "only in new": "only in base", "more calls": "fewer calls", "slower": "faster",
    "moved onto the path": "moved off the path",
}  # fmt: skip
TURNED |= {after: before for before, after in TURNED.items()} | {"": ""}


@pytest.fixture(scope="module")
def views() -> dict[str, Any]:
    return {name: load(FIXTURES / f"{name}.json.gz").view() for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_a_trace_and_itself_differ_in_nothing(views: dict[str, Any], name: str) -> None:
    told = compared([views[name]], [views[name]])
    data = diff_data(told)
    assert told.conclusion == Conclusion.SAME
    assert {key["delta_ns"] for key in data["path"]["keys"]} == {0}
    assert {key["own_delta_ns"] or 0 for key in data["path"]["keys"]} == {0}
    assert {one["delta_ns"] for one in data["by_class"]} == {0}
    assert (data["path"]["delta_ns"], data["periods"]["shift_ns"], data["periods"]["ratio"]) == (0, 0, 1)
    assert (data["matched"]["work"], data["kernels"], data["hypotheses"]) == ([], [], [])
    assert not any(one["is_known"] for one in data["matched"]["differences"])
    assert data["device"]["base"] == data["device"]["new"]
    assert data["peak_memory"]["base"] == data["peak_memory"]["new"]


@pytest.mark.parametrize("pair", list(itertools.combinations(NAMES, 2))[::2], ids=" ".join)
def test_the_other_way_round_every_difference_turns_its_sign(
    views: dict[str, Any], pair: tuple[str, str]
) -> None:
    a, b = (views[name] for name in pair)
    there, back = (diff_data(compared([one], [other])) for one, other in ((a, b), (b, a)))
    keys = [
        {(key["kind"], key["name"], key["inputs"], key["dtypes"]): key for key in data["path"]["keys"]}
        for data in (there, back)
    ]
    assert keys[0].keys() == keys[1].keys()
    for name, key in keys[0].items():
        other = keys[1][name]
        assert key["delta_ns"] == -other["delta_ns"]
        assert (key["base_ns"], key["new_ns"]) == (other["new_ns"], other["base_ns"])
        assert (key["own_delta_ns"] is None) == (other["own_delta_ns"] is None)
        assert (key["own_delta_ns"] or 0) == -(other["own_delta_ns"] or 0)
        assert key["how"] == TURNED[other["how"]]
    assert (
        sum(key["delta_ns"] for key in there["path"]["keys"])
        == there["path"]["delta_ns"]
        == -back["path"]["delta_ns"]
    )
    classes = [{one["class"]: one["delta_ns"] for one in data["by_class"]} for data in (there, back)]
    assert classes[0] == {name: -ns for name, ns in classes[1].items()}
    assert there["periods"]["shift_ns"] == -back["periods"]["shift_ns"]
    assert there["periods"]["p"] == pytest.approx(back["periods"]["p"])
    assert there["periods"]["a12"] == pytest.approx(1 - back["periods"]["a12"])
    mirrored = [{**one, "base": one["new"], "new": one["base"]} for one in back["matched"]["work"]]
    assert there["matched"]["work"] == mirrored
    assert [one["code"] for one in there["matched"]["differences"]] == [
        one["code"] for one in back["matched"]["differences"]
    ]
    assert (there["device"]["base"], there["device"]["new"]) == (
        back["device"]["new"],
        back["device"]["base"],
    )
    assert (there["peak_memory"]["base"], there["peak_memory"]["new"]) == (
        back["peak_memory"]["new"],
        back["peak_memory"]["base"],
    )


@pytest.mark.parametrize("pair", list(itertools.combinations(NAMES, 2))[1::9], ids=" ".join)
def test_every_format_writes_every_pair_the_same_twice(views: dict[str, Any], pair: tuple[str, str]) -> None:
    told = [compared([views[pair[0]]], [views[pair[1]]]) for _ in range(2)]
    for fmt in RENDERERS:
        first, again = (render(document(one, {}), fmt) for one in told)
        assert first == again
        assert b"because" not in first.lower()


def test_calls_that_are_verdicts_are_those_that_the_exit_code_knows() -> None:
    assert {str(call) for call in Call} <= {str(conclusion) for conclusion in Conclusion}


@pytest.mark.parametrize(
    "name", ["simulated/ddp_tail.rank0", "recorded/accumulation_stacks", "recorded/accumulation_update"]
)
def test_a_trace_and_what_slim_makes_of_it_differ_in_no_number(
    views: dict[str, Any], name: str, tmp_path: Path
) -> None:
    small = tmp_path / "small.json.gz"
    assert run(["slim", str(FIXTURES / f"{name}.json.gz"), "--steps", "all", "-o", str(small)]) == 0
    data = diff_data(compared([views[name]], [load(small).view()]))
    assert {key["delta_ns"] for key in data["path"]["keys"]} == {0}
    assert {key["own_delta_ns"] or 0 for key in data["path"]["keys"]} == {0}
    assert data["matched"]["work"] == []
    assert data["device"]["base"] == data["device"]["new"]
    assert data["peak_memory"]["base"] == data["peak_memory"]["new"]
    assert {one["code"] for one in data["matched"]["differences"] if one["is_known"]} == {"slim"}
