"""`stepcrit check` in a repository, as a team uses it: a trace is committed, something changes, and the verdict is seen.

Every scenario is seen four times: on the screen, as JSON, as JUnit XML, and as a runner of GitHub's is told.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.changed import LFS, cut, one_more_launch, other_gpu, slower, trace, without_device
from tests.e2e.repository import TRACE, Done, Repository

CONFIG = """schema = 1
[check]
traces = ["traces/*.json.gz"]
base = "main"

[watch]
"traces/*" = ["train.py"]

[budget."*"]
kernel_launches = { grow = 0 }
step_time = { max = "1 ms", grow = "5 %", grow_abs = "10 us" }
gpu_idle_share = { max = 0.9, level = "warn" }
"""
LOOSER = CONFIG.replace('grow = "5 %", grow_abs = "10 us"', 'grow = "50 %", grow_abs = "1 s"')
WITHOUT_BUDGETS = CONFIG.partition("[budget")[0].replace('base = "main"', 'base = "main"\npreset = "none"')


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A branch of a repository whose main has a trace and its budgets."""
    made = Repository.new(tmp_path / "repository")
    made.commit({"stepcrit.toml": CONFIG, "train.py": "step()\n", TRACE: trace()})
    made.git("checkout", "--quiet", "-b", "change")
    return made


@dataclass(frozen=True)
class Scenario:
    """A change and what must be said of it.

    Attributes:
        files: what the change writes; None: removed.
        code: exit code.
        rows: metrics and codes with their verdicts; of the others none is bad.
        note: kind of the note for GitHub, "" for none, and a part of its words.
        words: what the screen says.
    """

    files: Callable[[], dict[str, bytes | str | None]]
    code: int
    rows: dict[str, str]
    note: tuple[str, str]
    words: tuple[str, ...]


SCENARIOS = {
    "nothing that matters": Scenario(lambda: {"notes.md": "x"}, 0, {"step_time": "pass", "kernel_launches": "pass"}, ("", ""), ("nothing is wrong",)),
    "one more kernel launch": Scenario(
        lambda: {TRACE: trace(one_more_launch)}, 1, {"kernel_launches": "fail"},
        ("error", "kernel_launches: 24, baseline 23"), ("a budget is broken", "kernel_launches: +1, the same in every steady step"),
    ),
    "8 % slower": Scenario(
        lambda: {TRACE: trace(slower(8))}, 1, {"step_time": "fail", "kernel_launches": "pass"},
        ("error", "step_time: 802 µs, baseline 742 µs"), ("a budget is broken", "+59.4 µs (8.0 %)"),
    ),
    "3 % slower": Scenario(lambda: {TRACE: trace(slower(3))}, 0, {"step_time": "pass"}, ("", ""), ("nothing is wrong",)),
    "a fifth faster": Scenario(
        lambda: {TRACE: trace(slower(-20))}, 0, {"step_time": "improved"}, ("notice", "step_time: 594 µs"), ("improved",)
    ),
    "a damaged file": Scenario(
        lambda: {TRACE: cut(trace(), 0.99)}, 4, {"C101": "inconclusive"}, ("error", "partial"), ("something could not be judged",)
    ),
    "another GPU": Scenario(
        lambda: {TRACE: trace(other_gpu)}, 4, {"C102": "inconclusive", "step_time": "inconclusive"},
        ("error", "not comparable"), ("Other GPU",),
    ),
    "no device work any more": Scenario(
        lambda: {TRACE: trace(without_device)}, 4, {"C103": "inconclusive", "step_time": "inconclusive"},
        ("error", "not recorded in new"), ("could not be judged",),
    ),
    "slower, under looser budgets of its own": Scenario(
        lambda: {TRACE: trace(slower(8)), "stepcrit.toml": LOOSER}, 1, {"step_time": "fail"}, ("error", "step_time"),
        ("stepcrit.toml differs in this tree: judged by that of main",),
    ),
    "slower, and its budget deleted": Scenario(
        lambda: {TRACE: trace(slower(8)), "stepcrit.toml": WITHOUT_BUDGETS}, 1, {"step_time": "fail"}, ("error", "step_time"),
        ("a budget is broken",),
    ),
    "slower, and the configuration deleted": Scenario(
        lambda: {TRACE: trace(slower(8)), "stepcrit.toml": None}, 1, {"step_time": "fail"}, ("error", "step_time"), ("a budget is broken",)
    ),
    "a trace deleted": Scenario(lambda: {TRACE: None}, 4, {"C108": "inconclusive"}, ("error", "not in this tree"), ("could not be judged",)),
    "code changed after the trace": Scenario(
        lambda: {"train.py": "step()\nstep()\n"}, 4, {"C105": "stale", "step_time": "pass"}, ("error", "train.py changed 1 commit after"), ("record again",)
    ),
    "a pointer of Git LFS": Scenario(lambda: {TRACE: LFS}, 4, {"SC303": "inconclusive"}, ("error", "git lfs pull"), ("Git LFS pointer",)),
}  # fmt: skip


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_change_has_its_verdict_in_every_output(repository: Repository, name: str) -> None:
    told = SCENARIOS[name]
    repository.commit(told.files())
    base = () if (repository.folder / "stepcrit.toml").exists() else ("--base", "main")
    check_told(repository.check(*base), told, TRACE)


def check_told(done: Done, told: Scenario, trace_path: str) -> None:
    """Exit code, screen, JSON, JUnit, notes and summary say the same."""
    assert done.code == told.code, done.text
    for words in told.words:
        assert words in flat(done.text)
    rows = done.rows(trace_path)
    assert told.rows.items() <= rows.items(), rows
    assert ("fail" in rows.values()) == (told.code == 1)
    assert done.answer["schema"] == "stepcrit/check/1"
    assert json_rows(done, trace_path) == sorted(rows.items())
    kind, note = told.note
    assert [one.name for one in done.notes] == ([kind] if kind else [])
    assert all(note in flat(one.data) for one in done.notes)
    assert "### stepcrit check" in done.summary
    counted = re.search(r"failed: (\d+), could not be judged: (\d+)", done.summary)
    assert counted is not None
    assert (counted[1], counted[2]) == (str(int(told.code == 1)), str(int(told.code == 4)))


def flat(text: str) -> str:
    """Words without the line ends and narrow blanks of a screen."""
    return " ".join(text.split())


def json_rows(done: Done, path: str) -> list[tuple[str, str]]:
    """Metric or code and outcome as the JSON has them; of several with one name, JUnit numbers the later ones."""
    found: list[tuple[str, str]] = []
    for one in done.answer["data"]["traces"]:
        if one["file"] == path:
            told = [(row["code"], row["outcome"]) for row in one["remarks"]]
            told += [(row["metric"], row["outcome"]) for row in one["rows"]]
            for name, outcome in told:
                n = sum(name == other.partition(" (")[0] for other, _ in found)
                found.append((name if not n else f"{name} ({n + 1})", outcome))
    return sorted(found)


def test_a_new_trace_is_held_to_budgets_alone(repository: Repository) -> None:
    repository.commit({"traces/rank1.json.gz": trace()})
    told = Scenario(
        dict, 0, {"C104": "new", "step_time": "pass"}, ("notice", "budgets alone apply"), ("1 new, 1 pass",)
    )
    check_told(repository.check(), told, "traces/rank1.json.gz")


def test_a_renamed_trace_is_new_and_says_what_it_was(repository: Repository) -> None:
    repository.git("mv", TRACE, "traces/first.json.gz")
    repository.commit({})
    done = repository.check()
    assert done.rows("traces/first.json.gz")["C104"] == "new"
    assert f"it was renamed from {TRACE}" in flat(done.text)


def test_a_new_trace_over_its_budget_fails(repository: Repository) -> None:
    repository.commit({"traces/rank1.json.gz": trace(slower(40))})
    done = repository.check()
    assert done.code == 1
    assert done.rows("traces/rank1.json.gz")["step_time"] == "fail"
    (note, *_) = done.notes
    assert note.properties["file"] == "traces/rank1.json.gz"
    assert "step_time: 1.04 ms, at most 1.00 ms" in flat(note.data)


def test_a_budget_of_this_tree_is_noted_at_its_line(repository: Repository) -> None:
    repository.commit({TRACE: trace(slower(40))})
    done = repository.check("--base", "")
    assert done.code == 1
    line = CONFIG.splitlines().index('step_time = { max = "1 ms", grow = "5 %", grow_abs = "10 us" }') + 1
    assert done.notes[0].properties == {
        "file": "stepcrit.toml",
        "line": str(line),
        "title": "stepcrit fail: step_time",
    }


def test_first_budgets_judge_themselves_only_where_they_are_trusted(tmp_path: Path) -> None:
    """A change that brings its own budgets could bring any."""
    made = Repository.new(tmp_path / "repository")
    made.commit({"train.py": "step()\n"})
    made.git("checkout", "--quiet", "-b", "change")
    made.commit({"stepcrit.toml": CONFIG, TRACE: trace()})
    done = made.check()
    assert done.code == 4
    assert done.rows("stepcrit.toml") == {"C109": "inconclusive"}
    assert made.check("--trust-config").code == 0


@pytest.mark.parametrize(
    ("options", "words"), [(("--depth", "1"), "fetch-depth: 0"), (("--depth", "1", "--no-single-branch"), "")]
)
def test_a_shallow_clone_says_what_is_missing(
    repository: Repository, options: tuple[str, ...], words: str
) -> None:
    repository.commit({TRACE: trace(slower(8)), "stepcrit.toml": CONFIG.replace('"main"', '"origin/main"')})
    clone = repository.cloned("clone", *options, "--branch", "change")
    done = clone.run("check")
    if words:
        assert (done.returncode, done.stdout) == (2, "")
        assert words in flat(done.stderr)
    else:  # the tip of main is there: counts and times can be compared, but not whether code is newer
        assert done.returncode == 1
        assert "step_time" in done.stdout


def test_a_ref_that_is_not_there_is_wrong_use(repository: Repository) -> None:
    done = repository.run("check", "--base", "origin/nowhere")
    assert (done.returncode, done.stdout) == (2, "")
    assert "origin/nowhere" in done.stderr


def test_the_same_repository_gives_the_same_bytes(repository: Repository) -> None:
    repository.commit({TRACE: trace(slower(8), one_more_launch)})
    first, second = repository.check(), repository.check()
    assert (first.text, first.answer, first.summary, first.notes) == (
        second.text,
        second.answer,
        second.summary,
        second.notes,
    )


def test_nothing_is_written_that_was_not_asked_for(repository: Repository) -> None:
    repository.run("check", GITHUB_ACTIONS="true")
    assert repository.git("status", "--porcelain", "--ignored") == ""


def test_names_in_a_repository_act_on_no_runner(tmp_path: Path) -> None:
    made = Repository.new(tmp_path / "repository")
    hostile = "traces/::error::x\n::add-mask::y ##[group]z%0A.json.gz"
    made.commit({"stepcrit.toml": CONFIG, hostile: trace(slower(40))})
    done = made.check("--base", "")
    assert done.code == 1
    assert [one.name for one in done.notes] == ["error"]
    assert "::add-mask::y" not in done.summary.splitlines()
