"""The golden cases of regressions: the statistics of two samples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stepcrit.analyses.statistics import Call, compare, verdict

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
