"""Predictions are as good as README says: a share of the random jobs is run here, the whole by `make validate`."""

from __future__ import annotations

import datetime as dt
import re
import runpy
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from scripts.simulator.scenarios import SCENARIOS
from scripts.validation.row import RESOLUTION, Outcome, Row, row_of

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "validate.py"))
ROWS = re.compile(
    r"^\| (simulated|recorded|corpus) \| (.+?) \| (\d+) \| (.+?) \| (.+?) \| (.+?) \| (.*?) \|$", re.MULTILINE
)


@cache
def published() -> dict[tuple[str, str], tuple[str, ...]]:
    """README's table: (part, family) -> predictions, inside, median, worst, note."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return {(found[0], found[1]): found[2:] for found in ROWS.findall(text)}


def percent(cell: str) -> float:
    return float(cell.removesuffix(" %")) / 100


@cache
def measured() -> tuple[Row, ...]:
    rows: list[Any] = SCRIPT["simulated"].rows(5)
    return tuple(rows)


def test_truths_lie_inside_the_predicted_intervals() -> None:
    """Fifty random jobs, each with a random change really made; the goal for all of them is 95 %."""
    whole = next(row for row in measured() if row.family == "all")
    assert whole.cases >= 40
    assert whole.inside_share is not None
    assert whole.inside_share >= 0.9
    assert whole.median_error is not None
    assert whole.median_error <= 0.01


def test_readme_publishes_what_meets_the_goals() -> None:
    cases, inside, median, _, _ = published()["simulated", "all"]
    assert int(cases) >= 500
    assert percent(inside) >= 0.95
    assert percent(median) <= 0.01
    real = [row for (part, _), row in published().items() if part == "recorded"]
    assert len(real) >= 3
    assert all(percent(row[3]) <= 0.05 for row in real)


def test_readme_names_every_family_that_was_measured() -> None:
    families = {family for part, family in published() if part == "simulated"}
    assert {row.family for row in measured()} <= families
    assert {family.partition(",")[0] for family in families} >= set(SCENARIOS)
    assert sum(part == "corpus" for part, _ in published()) >= 10
    kinds = {row.family for row in SCRIPT["recorded"].rows()}
    assert {family for part, family in published() if part == "recorded"} == kinds


def test_trace_that_cannot_be_compared_has_its_reason_beside_it() -> None:
    for (part, _), (cases, _, _, _, note) in published().items():
        assert part != "corpus" or int(cases) > 0 or note


def test_table_says_when_and_how_it_was_measured() -> None:
    rows = [
        Row("simulated", "a", 3, 2 / 3, 0.0012, 0.5, "why"),
        Row("corpus", "b", 0, None, None, None, "no steps"),
    ]
    table = SCRIPT["render"](rows, dt.date(2026, 1, 2))
    assert table.splitlines()[0] == "Measured on 2026-01-02 by `make validate`."
    assert table.splitlines()[-2:] == [
        "| simulated | a | 3 | 67 % | 0.12 % | 50.00 % | why |",
        "| corpus | b | 0 | – | – | – | no steps |",
    ]
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.search(r"Measured on 20\d\d-\d\d-\d\d by `make validate`\.", text)


@pytest.mark.parametrize(
    ("interval", "truth", "judged"),
    [
        ((90, 110), 100, (True, 0.0, 0.0)),
        ((90, 110), 110, (True, 0.0, 10 / 110)),
        ((90, 110), 120, (False, 10 / 120, 20 / 120)),
        ((90, 110), 80, (False, 10 / 80, 20 / 80)),
        ((10_000, 10_000), 10_005, (True, 5 / 10_005, 5 / 10_005)),  # what three digits cannot tell apart
        ((10_000, 10_000), 10_006, (False, 6 / 10_006, 6 / 10_006)),
    ],
)
def test_outcome_is_judged_by_its_interval(
    interval: tuple[int, int], truth: int, judged: tuple[bool, float, float]
) -> None:
    one = Outcome("x", *interval, truth)
    assert (one.inside, one.error, one.middle_error) == judged
    assert RESOLUTION == 0.0005


def test_family_is_summed_up_by_its_median_and_worst() -> None:
    some = [Outcome("x", 100, 100, truth) for truth in (100, 80, 125)]
    row = row_of("simulated", "family", some)
    assert (row.cases, row.inside_share, row.median_error, row.worst_error) == (3, 1 / 3, 0.2, 0.25)


def test_a_part_of_the_table_never_replaces_the_whole() -> None:
    before = (ROOT / "README.md").read_bytes()
    for arguments in (["--readme", "--part", "recorded"], ["--readme", "--jobs", "1"]):
        with pytest.raises(SystemExit) as stop:
            SCRIPT["main"](arguments)
        assert "--readme takes all parts" in str(stop.value)
    assert (ROOT / "README.md").read_bytes() == before
