"""How much of a path a terminal shows: runs, stretches of few runs, and joins."""

from __future__ import annotations

import pytest

from stepcrit.answers.critical import answer
from stepcrit.model.section import Section
from stepcrit.report.screen import Screen
from stepcrit.report.text import render
from tests.answers.drawn import Event, call, op, view_of, words, work


def ping_pong(trips: int, *, tail: bool = False) -> list[Event]:
    """Host and device by turns, 20 a trip; with `tail` a collective follows the last kernel on its queue."""
    # host  |op 1|launch 2|sync ...17..|op 1|launch 2|            one run for each side and trip: 2 * trips;
    # s7                  [k ..... 16]               [k ..... 16] communication is a run of its own
    chrome: list[Event] = []
    for i in range(trips):
        at = 20 * i
        chrome += [op("op", at, at + 1), call("cudaLaunchKernel", (at + 1, at + 3), i + 1)]
        chrome.append(work("k", (at + 3, at + 19), i + 1))
        if i < trips - 1:
            chrome.append(call("cudaStreamSynchronize", (at + 3, at + 20), 1000 + i))
    end = 20 * trips - 1
    last = [
        call("cudaLaunchKernel", (end - 9, end - 8), 999),
        work("ncclDevKernel_AllReduce", (end, end + 5), 999),
    ]
    return chrome + last * tail


def section(chrome: list[Event], start: str, *, full: bool = False) -> Section:
    blocks = answer(view_of(chrome), full=full).blocks
    (found,) = [block for block in blocks if isinstance(block, Section) and block.title.startswith(start)]
    return found


@pytest.mark.parametrize(("trips", "tail", "left_out"), [(12, True, []), (13, False, ["1"])])
def test_a_terminal_shows_the_25_longest_runs_in_time_order(
    trips: int, left_out: list[str], *, tail: bool
) -> None:
    """12 trips and a tail are 25 runs, 13 trips are 26; the first host run, 3 long, is the shortest."""
    found = section(ping_pong(trips, tail=tail), "Runs")
    runs, rest = found.rows[:25], found.rows[25:]
    assert [row[4] for row in rest] == [f"{number} shorter run" for number in left_out]
    assert [row[1] for row in rest] == [3_000 for _ in left_out]
    assert [words(note) for note in found.notes] == ["--full shows every run" for _ in left_out]
    starts = [int(str(row[0])) for row in runs]
    assert starts == sorted(starts)
    assert starts[0] == (3_000 if left_out else 0)


@pytest.mark.parametrize(
    ("tail", "classes"),
    [
        # five runs are told as runs, each by the class that most of it is
        (True, ["launch", "other kernel", "launch", "other kernel", "comm"]),
        # four are few: the host's are divided by class
        (False, ["host op", "launch", "other kernel", "sync", "host op", "launch", "other kernel"]),
    ],
)
def test_fewer_than_five_runs_are_divided_by_class(classes: list[str], *, tail: bool) -> None:
    assert [row[3] for row in section(ping_pong(2, tail=tail), "Runs").rows] == classes


@pytest.mark.parametrize(
    ("kernels", "rest"), [(11, []), (12, ["… and 1 more row"]), (13, ["… and 2 more rows"])]
)
def test_a_terminal_shows_the_ten_closest_joins(kernels: int, rest: list[str]) -> None:
    """Every kernel but the first waited for the one before it and, before that, for its launch."""
    # host  |l1 l2 l3 ... |
    # s7                     [k1][k2][k3] ...
    chrome = [op("op", 0, 100)]
    for i in range(kernels):
        chrome.append(call("cudaLaunchKernel", (2 * i, 2 * i + 1), i + 1))
        chrome.append(work("k", (50 + 10 * i, 60 + 10 * i), i + 1))
    screen = render(answer(view_of(chrome)), Screen()).decode().partition("Runner-up")[2]
    assert [line.strip() for line in screen.splitlines() if "more row" in line] == rest
    assert "more row" not in render(answer(view_of(chrome), full=True), Screen()).decode()
    assert len(section(chrome, "Runner-up").rows) == kernels - 1
