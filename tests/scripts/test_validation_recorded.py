"""What real jobs took after a change that was really made is what was predicted from the trace before it."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path

import pytest

from scripts.validation import recorded
from scripts.validation.recorded import PAIRS, Pair, Result, predict, result, rows, table

GOAL = 0.05
NAMES = [pair.name for pair in PAIRS]


def pair_of(name: str) -> Pair:
    return next(pair for pair in PAIRS if pair.name == name)


@cache
def result_of(name: str) -> Result:
    return result(pair_of(name))


def allowed(name: str) -> float:
    """5 %, or the measurement's own noise where that is larger."""
    return max(GOAL, result_of(name).outcome.noise_share)


@pytest.mark.parametrize("name", NAMES)
def test_what_was_predicted_is_what_was_measured_after_the_change(name: str) -> None:
    assert result_of(name).outcome.middle_error < allowed(name)


@pytest.mark.parametrize("name", NAMES)
def test_the_change_is_one_that_a_prediction_without_it_would_miss(name: str) -> None:
    found = result_of(name)
    assert found.predicted.period_ns > (1 + 4 * GOAL) * found.outcome.truth_ns
    assert found.predicted.period_ns > (1 + 2 * allowed(name)) * found.outcome.truth_ns


@pytest.mark.parametrize("name", NAMES)
def test_without_the_profiler_the_saving_in_time_is_the_predicted_one(name: str) -> None:
    """Within 5 % of the period, though the profiler makes the steps of the trace longer."""
    assert abs(result_of(name).plain_error) < allowed(name)


@pytest.mark.parametrize("name", NAMES)
def test_a_prediction_needs_the_trace_before_and_no_other_file(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = result_of(name).predicted
    shutil.copy(pair_of(name).before, tmp_path)
    monkeypatch.setattr(recorded, "RECORDED", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [f"{name}_before.json.gz"]
    assert predict(pair_of(name)) == expected


def test_each_kind_has_one_row_and_together_they_hold_every_pair() -> None:
    found = rows()
    assert len({row.family for row in found}) == len(found) >= 5
    assert {row.part for row in found} == {"recorded"}
    assert sum(row.cases for row in found) == len(PAIRS)
    worst = {row.family: row.worst_error for row in found}
    for name in NAMES:
        assert (worst[pair_of(name).kind] or 0) >= result_of(name).outcome.middle_error
    assert all("noise" in row.note for row in found)


def test_the_readme_of_the_recordings_shows_the_table_as_it_comes_out() -> None:
    assert table() in (recorded.RECORDED / "README.md").read_text()
