"""`bench.py`: medians of whole processes, told as ratios; what gives no answer is said, not left out."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import bench
import pytest
from bench import Contender, Cost

COSTS = {
    "read": [Cost(1.0, 5, ""), Cost(2.0, 5, ""), Cost(9.0, 5, "")],
    "imports": [Cost(4.0, 9, "")],
    "load": [
        Cost(6.0, 50, "20000000 3000\n"),
        Cost(6.0, 50, "20000000 3000\n"),
        Cost(5.0, 50, "20000000 3000\n"),
    ],
    "analyze": [Cost(8.0, 66, ""), Cost(3.0, 99, ""), Cost(80.0, 33, "")],
    "rank": [Cost(10.0, 0, "")] * 3,
    "plain": [Cost(16.0, 0, "")] * 3,
    "HTA": [Cost(40.0, 0, "")] * 3,
    "TraceLens": [None],
}


def options(rounds: int) -> argparse.Namespace:
    return argparse.Namespace(rounds=rounds, clock="wall", hta="hta/python", tracelens="tracelens/python")


@pytest.fixture
def order(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The contenders in the order in which they ran, with made-up costs."""
    ran: list[str] = []
    costs: dict[str, Iterator[Cost | None]] = {name: cycle(some) for name, some in COSTS.items()}

    def measured(one: Contender, *_: object) -> Cost | None:
        ran.append(one.name)
        return next(costs[one.name])

    monkeypatch.setattr(bench, "_measured", measured)
    return ran


def test_a_row_tells_medians_as_ratios_and_runs_go_in_turn(order: list[str], tmp_path: Path) -> None:
    trace = tmp_path / "some.trace.json"
    trace.write_bytes(b"{}")
    row = bench._row(trace, bench._contenders(options(3)), options(3), tmp_path)
    # medians: read 2, load 6, analyze 8, rank 10, plain 16, HTA 40 s; 3 000 events in 8 and 16 s; 66 MB of 0.6 x 20 + 120
    assert row == (
        "| some | 20.0 | 3,000 | 8.00 | 3.0 | 4.0 | 5.0 | 8.0 | 2.0 | 5.0 × | no answer | 0 k | 0 k | 66 | 50% |"
    )
    ours = ["read", "imports", "load", "analyze", "rank", "plain", "HTA"]
    assert order == [*ours, "TraceLens", *ours, *ours]


def test_peers_run_once_on_large_traces_and_not_at_all_on_larger_ones(
    order: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = tmp_path / "some.json"
    trace.write_bytes(b" " * 1_000_000)
    monkeypatch.setattr(bench, "ONCE_ABOVE_MB", 0.5)
    bench._row(trace, bench._contenders(options(2)), options(2), tmp_path)
    assert order.count("HTA") == 1
    order.clear()
    monkeypatch.setattr(bench, "NEVER_ABOVE_MB", 0.5)
    row = bench._row(trace, bench._contenders(options(1)), options(1), tmp_path)
    assert "HTA" not in order
    assert row.split(" | ")[9:11] == ["–", "–"]


def test_what_fails_gives_no_answer_and_what_runs_has_a_time_a_peak_and_what_it_said(tmp_path: Path) -> None:
    runs = Contender("runs", (bench.sys.executable, "-c", "import sys; print(sys.argv[1])"))
    cost = bench._measured(runs, tmp_path, "wall", tmp_path)
    assert cost is not None
    assert (cost.said, cost.seconds > 0, cost.peak_mb > 1) == (f"{tmp_path}\n", True, True)
    fails = Contender("fails", (bench.sys.executable, "-c", "raise SystemExit(1)"))
    assert bench._measured(fails, tmp_path, "cpu", tmp_path) is None


def test_the_table_has_a_place_in_the_readme_and_its_columns_are_told() -> None:
    text = bench.README.read_text(encoding="utf-8")
    assert len(bench.MARK.findall(text)) == 1
    table = re.findall(r"^\|.*\|$", bench.MARK.search(text)[0], re.MULTILINE)  # type: ignore[index]
    assert table[0] == bench.HEAD[0]
    assert {line.count("|") for line in table} == {bench.HEAD[0].count("|")}
