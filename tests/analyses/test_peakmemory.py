"""The peak of a step is the highest total in its window, with what was held when it opened."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from stepcrit.analyses import peakmemory
from stepcrit.model.trace import MemoryTable


def _table(rows: list[tuple[int, int, int, int]]) -> MemoryTable:
    """Rows of (time, total, device type, device)."""
    at, total, kind, number = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    none = np.full(len(rows), -1, np.int64)
    return MemoryTable(at, none, total, none, kind.astype(np.int32), number.astype(np.int32))


def test_the_level_at_the_opening_counts_and_each_device_has_its_own_peak() -> None:
    table = _table([
        (5, 900, 1, 0), (15, 700, 1, 0), (25, 800, 1, 0), (35, 100, 1, 0), (31, 50, 1, 1), (12, 7, 0, -1),
    ])  # fmt: skip
    windows = [(10, 20), (20, 30), (30, 40)]
    assert peakmemory.analyze(table, windows) == {
        (0, -1): (7, 7, 7),
        (1, 0): (900, 800, 800),
        (1, 1): (None, None, 50),
    }


def test_totals_that_are_not_told_are_not_zero() -> None:
    assert peakmemory.analyze(_table([(5, -1, 1, 0)]), [(0, 10)]) == {}


def test_the_golden_peak() -> None:
    cases = json.loads((Path(__file__).parents[1] / "golden" / "regression.json").read_text(encoding="utf-8"))
    (case,) = [one for one in cases if one["id"] == "I"]
    total, rows = case["case"]["base_allocated"], []
    for one in case["case"]["events"]:
        total += one["bytes"]
        rows.append((one["ts"], total, 1, 0))
    expect = case["expect"]
    assert peakmemory.analyze(_table(rows), [(0, 100)]) == {(1, 0): (expect["peak"],)}
    around = peakmemory.analyze(
        _table(rows), [(0, expect["at"] - 1), (expect["at"] - 1, expect["at"]), (59, 60)]
    )
    assert around == {(1, 0): (1570, 1620, 1120)}  # 30 of 1120 go at the last instant
