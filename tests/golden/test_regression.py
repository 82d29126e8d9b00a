"""The golden cases of regressions: the statistics of two samples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stepcrit.analyses.fingerprint import changes_between
from stepcrit.analyses.statistics import Call, compare, verdict
from stepcrit.link.workload import NEVER, Times, WorkKey, flops_of

CASES = {
    case["id"]: case
    for case in json.loads((Path(__file__).parent / "regression.json").read_text(encoding="utf-8"))
}


@pytest.mark.parametrize(("case", "call"), [("M01", Call.REGRESSION), ("M02", Call.NO_CHANGE)])
def test_two_samples_give_the_numbers_worked_out_by_hand(case: str, call: Call) -> None:
    given: dict[str, Any] = CASES[case]
    expect = given["expect"]
    shift = compare(given["base"], given["new"], seed=expect["boot"]["seed"])
    assert (shift.base.median_ns, shift.new.median_ns) == pytest.approx(
        (expect["median_base"], expect["median_new"]), rel=1e-12
    )
    assert shift.ratio == pytest.approx(expect["ratio"], rel=1e-12)
    assert (shift.low, shift.high) == pytest.approx(tuple(expect["boot_ci95"]), rel=1e-12)
    assert shift.resamples == expect["boot"]["B"]
    assert shift.shift_ns == pytest.approx(expect["hodges_lehmann"], rel=1e-9)
    assert (shift.u, shift.a12) == (expect["U"], expect["A12"])
    assert shift.p == pytest.approx(expect["p_exact"], rel=1e-12)
    assert shift.is_exact
    assert verdict(shift, 0.01).call == call


def _work(counts: dict[str, int]) -> dict[WorkKey, Times]:
    """The work of one step, as the case writes it: operator, shapes as 2x3,3x4, type."""
    found = {}
    for words, count in counts.items():
        name, sizes, rest = words.split(" | ")
        is_op = name.startswith("aten::")
        shapes = f"[[{sizes.replace(',', '],[').replace('x', ',')}]]" if is_op else sizes
        key = WorkKey("op", name, shapes, rest) if is_op else WorkKey("collective", name, shapes, group=rest)
        found[key] = Times(count, count, count)
    return found


def test_unmatched_work_is_told_with_its_ratio_of_operations() -> None:
    given: dict[str, Any] = CASES["M04"]
    expect = given["expect"]
    base, new = _work(given["base"]), _work(given["new"])
    (change,) = changes_between(base, new)
    assert {change.key} == _work(dict.fromkeys(expect["only_new"], 1)).keys()
    assert (change.base, change.new.total) == (NEVER, 1)
    flops = [flops_of(work, 1) for work in (base, new)]
    assert flops == [expect["flops_base"], expect["flops_new"]]
    assert flops[1] / flops[0] == pytest.approx(expect["flop_ratio"])
