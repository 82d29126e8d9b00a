"""`--timings`: phases on stderr that add up, and nothing where nobody asked."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stepcrit import timings
from stepcrit.cli.main import run
from stepcrit.timings import PHASES, Stopwatch, timed

TRACE = str(Path(__file__).parents[2] / "fixtures" / "simulated" / "host_bound.json.gz")
LINE = re.compile(r"^(\S+) +([\d.]+) ms +([\d.]+)%$", re.MULTILINE)


def told(text: str) -> dict[str, float]:
    return {name: float(ms) for name, ms, _ in LINE.findall(text)}


@pytest.mark.parametrize("verb", ["analyze", "critical", "doctor", "whatif"])
def test_every_verb_that_reads_a_trace_tells_phases_that_add_up(
    verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    more = ["--rank"] if verb == "whatif" else []
    assert run([verb, TRACE, *more, "--json"]) == 0
    without = capsys.readouterr()
    assert run([verb, TRACE, *more, "--json", "--timings"]) == 0
    found = capsys.readouterr()
    assert found.out == without.out
    assert told(without.err) == {}
    phases = told(found.err)
    assert list(phases) == [*PHASES, "all"]
    assert round(sum(phases[name] for name in PHASES), 1) == phases["all"]
    assert all(phases[name] > 0 for name in ("read", "link", "graph", "answer", "render"))


def test_a_command_that_fails_tells_how_far_it_came(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["analyze", "absent.json", "--timings"]) == 3
    assert list(told(capsys.readouterr().err)) == [*PHASES, "all"]
    assert run(["analyze", TRACE, "-o", "/dev/null"]) == 0
    assert told(capsys.readouterr().err) == {}


class Clock:
    """Time that goes on when told to."""

    def __init__(self) -> None:
        self.now_ns = 0

    def perf_counter_ns(self) -> int:
        return self.now_ns


def test_a_phase_does_not_count_what_a_phase_inside_of_it_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(timings, "time", clock)
    watch = Stopwatch(0)
    for after, go in (
        (7, lambda: watch.enter("read")),  # 7 of start-up
        (20, watch.leave),  # 20 of reading
        (2, lambda: watch.enter("ranking")),  # 2 of the answer
        (3, lambda: watch.enter("path")),  # 3 of ranking
        (5, watch.leave),  # 5 of the path
        (4, watch.leave),  # 4 more of ranking
        (1, lambda: None),  # 1 more of the answer
    ):
        clock.now_ns += after * 1_000_000
        go()
    assert told("\n".join(watch.lines())) == {
        **dict.fromkeys(PHASES, 0.0), "start-up": 7, "read": 20, "answer": 3, "ranking": 7, "path": 5, "all": 42,
    }  # fmt: skip


def test_printed_times_add_up_though_each_is_rounded(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(timings, "time", clock)
    watch = Stopwatch(0)
    for phase in PHASES[1:]:
        clock.now_ns += 50_001  # just over half of what is printed
        watch.enter(phase)
    lines = told("\n".join(watch.lines()))
    assert round(sum(lines[name] for name in PHASES), 1) == lines["all"] == 0.4


def test_a_function_is_not_measured_unless_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> int:
        raise AssertionError

    clock = Clock()
    monkeypatch.setattr(clock, "perf_counter_ns", fail)
    monkeypatch.setattr(timings, "time", clock)
    assert timed("read")(lambda: 5)() == 5
