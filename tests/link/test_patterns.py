"""A user's pattern ends in bounded time and memory, whatever it says."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest

from stepcrit.errors import UsageError
from stepcrit.graph.selector import Selector, matching
from stepcrit.link.linker import link
from stepcrit.link.patterns import (
    DEEPEST,
    LONGEST,
    PATTERN_SECONDS,
    check_pattern,
    found_by,
    named_like,
    near_names,
)
from stepcrit.link.stepmarks import rows_named
from stepcrit.link.steps import StepOptions, find_steps
from tests.builders import event, trace

EVIL = "^(a|a|aa)+$"
SLOW = "a" * 60 + "!"


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stepcrit.link.patterns.PATTERN_SECONDS", 0.1)


def test_the_limit_leaves_a_run_of_two_seconds_time_to_start() -> None:
    assert PATTERN_SECONDS <= 1


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("options", [StepOptions(step_regex=EVIL), StepOptions(optimizer_regex=EVIL)])
def test_a_pattern_of_steps_has_a_time_limit_that_is_named(options: StepOptions) -> None:
    raw = trace([event("user_annotation", SLOW, (0, 10)), event("cpu_op", "aten::mm", (1, 2))])
    with pytest.raises(UsageError, match=r"takes too long: it has 0\.1 s"):
        find_steps(raw.events, link(raw), options)


@pytest.mark.usefixtures("hasty")
def test_a_selector_and_a_typed_range_have_it_too() -> None:
    with pytest.raises(UsageError, match="takes too long"):
        matching((SLOW,), Selector("re", EVIL))
    with pytest.raises(UsageError, match="takes too long"):
        rows_named(trace([event("cpu_op", SLOW, (0, 1))]).events, EVIL)


@pytest.mark.parametrize("look", [lambda p: found_by((), p), lambda p: named_like((), p), check_pattern])
def test_a_pattern_without_end_is_refused_and_the_limit_named(look: Callable[[str], object]) -> None:
    look("a" * LONGEST)
    with pytest.raises(UsageError) as caught:
        look("a" * (1 << 20))
    assert caught.value.what.endswith("has 1048576 characters")
    assert len(caught.value.what) < 200
    assert str(LONGEST) in caught.value.do


def test_a_name_in_full_may_be_longer_than_a_pattern() -> None:
    name = "k" * (LONGEST * 2)
    assert matching((name, "b"), Selector("name", name)).tolist() == [True, False]


def nested(depth: int) -> str:
    return "(?:" * depth + "ab" + "){2,}" * depth


@pytest.mark.parametrize(("depth", "is_tried"), [(DEEPEST, True), (DEEPEST + 1, False)])
def test_groups_are_nested_only_so_deep(depth: int, *, is_tried: bool) -> None:
    if is_tried:
        check_pattern(nested(depth))
        return
    with pytest.raises(UsageError, match="nested too deeply") as caught:
        check_pattern(nested(depth))
    assert str(DEEPEST) in caught.value.do


def test_brackets_of_a_name_are_no_nesting() -> None:
    assert found_by(("f((((((((((x",), r"f\(\(\(\(\(\(\(\(\(\(x").all()


def test_the_worst_pattern_that_is_tried_compiles_within_a_gigabyte() -> None:
    """What one group more would triple; without a limit it takes all the memory there is."""
    plain = nested(DEEPEST).replace("{2,}", "+")
    worst = nested(DEEPEST) + plain * ((LONGEST - len(nested(DEEPEST))) // len(plain))
    limited = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (3 << 29, 3 << 29));"
        "from stepcrit.link.patterns import check_pattern; check_pattern(sys.argv[1])"
    )
    done = subprocess.run([sys.executable, "-c", limited, worst], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("glob", "found"),
    [
        ("a*", [True, True, False]),
        ("A*", [False, False, True]),
        ("a?", [False, True, False]),
        ("", [False] * 3),
    ],
)
def test_a_glob_means_whole_names_in_their_case(glob: str, found: list[bool]) -> None:
    assert named_like(("a", "ab", "AB"), glob).tolist() == found


@pytest.mark.parametrize("glob", ["*a" * 1999 + "b", "*?a" * 1300 + "b", "[a" * 1999, "*" * 3999 + "b"])
def test_a_glob_that_could_backtrack_comes_to_an_end(glob: str) -> None:
    assert not named_like(("a" * 65_536,), glob).any()


def test_near_names_come_to_an_end_among_many_long_names() -> None:
    """Compared in full, these would take hours."""
    rng = np.random.default_rng(1)
    names = tuple("".join(rng.choice(list("abcdefgh"), 100)) for _ in range(3000))
    assert near_names("zzz", (*names[:500], "zzzz", *names[500:])) == ["zzzz"]
    assert len(near_names("abcdefgh" * 200_000, tuple(name * 300 for name in names))) == 5


def test_a_name_that_holds_the_wanted_text_is_near_wherever_it_stands() -> None:
    names = (*(f"{i:0>40}" for i in range(2000)), "x" * 30 + "wanted" + "y" * 30)
    assert near_names("wanted", names) == [names[-1]]
