"""The one screen of `analyze`: how many devices it shows, and where it says that a step begins."""

from __future__ import annotations

import pytest

from stepcrit.answers.analyze import answer
from stepcrit.answers.data import analyze_data
from stepcrit.model.section import Section
from stepcrit.report.write import render
from tests.answers.drawn import Event, call, note, op, view_of, words, work


def lines(chrome: list[Event], title: str) -> list[str]:
    blocks = answer(view_of(chrome)).blocks
    (section,) = [block for block in blocks if isinstance(block, Section) and block.title == title]
    return [words(line) for line in section.notes]


@pytest.mark.parametrize(
    ("count", "rest"), [(1, []), (2, []), (3, ["and 1 more device"]), (4, ["and 2 more devices"])]
)
def test_two_devices_are_shown_and_the_rest_are_counted(count: int, rest: list[str]) -> None:
    # host  |op 0..2 |l0 2..3|l1 3..4| ...
    # dev i                  [3+i ...... 50]
    chrome = [op("op", 0, 2)]
    for i in range(count):
        chrome.append(call("cudaLaunchKernel", (2 + i, 3 + i), i + 1))
        chrome.append(work("gemm", (3 + i, 50), i + 1, device=i))
    said = lines(chrome, "Time")
    shown = [line.partition(":")[0] for line in said if ": computing" in line]
    assert shown == [f"device {i}" for i in range(count)][:2]
    assert [line for line in said if "more device" in line] == rest


@pytest.mark.parametrize(
    ("until", "opens"),
    [
        (10, "from its own start: no boundary before it"),  # over as the step begins
        (11, "from the end of work launched before the recording"),
    ],
)
def test_a_first_step_says_where_it_begins(until: int, opens: str) -> None:
    """Its own start, unless work of which no launch was recorded still runs then."""
    # host    |step 10..40: call 12..14|
    # s7   [old ..until]       [k 14.....60]
    chrome = [
        note("ProfilerStep#1", 10, 40), call("cudaLaunchKernel", (12, 14), 1), work("k", (14, 60), 1),
        work("old", (0, until), 9),
    ]  # fmt: skip
    assert lines(chrome, "")[1].endswith(f", {opens}")


def test_the_screen_is_told_without_its_data_and_the_data_with_its_nulls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # host  |op 0...9 |
    made: list[str] = []
    usual = analyze_data
    monkeypatch.setattr(
        "stepcrit.answers.analyze.analyze_data", lambda *args: made.append("data") or usual(*args)
    )
    told = answer(view_of([op("op", 0, 9)]))
    render(told, "text")
    assert made == []
    assert told.data["elapsed_ns"] == 9_000
    assert told.unknown is not None
    assert told.unknown["exposed_comm"] == "no device work in the window"
    assert made == ["data"]
