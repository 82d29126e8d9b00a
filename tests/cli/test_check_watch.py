"""A trace is stale when the code that it is about is not as it was; code that is as it was is no reason to record again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.checking import CONFIG, TRACE, Project, made
from tests.cli.jobs import job
from tests.ingest.gitmade import commit, run_git

WATCH = CONFIG + '[budget."*"]\nstreams = { max = 1 }\n[watch]\n"traces/*" = ["models/**", "train.py"]\n'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Project:
    found = made(tmp_path, monkeypatch, capsys)
    found.start({"train.py": "1", "models/a/b.py": "1", "README.md": "1"}, WATCH)
    return found


def change(project: Project, name: str, content: str) -> None:
    project.write({name: content})
    project.commit()


def test_a_trace_is_fresh_with_the_code_that_it_was_committed_with(project: Project) -> None:
    assert project.codes() == []
    change(project, "README.md", "2")
    assert project.codes() == []


def test_code_that_changed_after_the_trace_makes_it_stale(project: Project) -> None:
    change(project, "train.py", "2")
    change(project, "train.py", "3")
    said = project.check(code=4)
    assert f"{TRACE} · stale" in said
    assert (
        "stale train.py changed 2 commits after this trace: record again, or take it out of [watch] (C105)"
        in said
    )
    (remark,) = project.data()["traces"][0]["remarks"]
    assert remark["written_at"] == "stepcrit.toml:6"


def test_a_glob_of_two_stars_means_all_folders_below(project: Project) -> None:
    change(project, "models/a/b.py", "2")
    assert "models/a/b.py changed 1 commit after" in project.check(code=4)


def test_several_files_are_counted(project: Project) -> None:
    project.write({"models/a/b.py": "2"})
    change(project, "train.py", "2")
    assert "models/a/b.py and 1 more changed 1 commit after" in project.check(code=4)


def test_code_that_was_changed_back_is_as_it_was(project: Project) -> None:
    change(project, "train.py", "2")
    change(project, "train.py", "1")
    assert project.codes() == []


def test_recording_again_makes_it_fresh(project: Project) -> None:
    change(project, "train.py", "2")
    project.write({TRACE: job((1001,) * 6)})
    assert project.codes() == []  # not committed yet
    project.commit()
    assert project.codes() == []


def test_a_trace_that_is_not_committed_yet_is_fresh(project: Project) -> None:
    project.write({"traces/new.json.gz": job()})
    assert project.codes() == []


@pytest.mark.parametrize("file", ["train.py", "models/new.py"])
def test_code_that_is_not_committed_counts(project: Project, file: str) -> None:
    project.write({file: "2"})
    assert f"{file} changed in the work tree, not committed, and this trace is older" in project.check(code=4)


def test_code_that_came_by_a_merge_counts(project: Project) -> None:
    run_git(project.folder, "checkout", "-q", "-b", "other", "main")
    change(project, "train.py", "2")
    run_git(project.folder, "checkout", "-q", "work")
    project.write({TRACE: job((1001,) * 6)})
    project.commit()
    run_git(project.folder, "merge", "-q", "other", "-m", "merge")
    assert "train.py changed" in project.check(code=4)


@pytest.mark.parametrize(
    ("manner", "codes", "code"), [("error", ["C105"], 4), ("warn", ["C105"], 0), ("skip", [], 0)]
)
def test_its_level_can_be_chosen(project: Project, manner: str, codes: list[str], code: int) -> None:
    project.write({"stepcrit.toml": WATCH.replace("[check]", f"[check]\nstale = '{manner}'")})
    change(project, "train.py", "2")
    assert project.codes() == codes
    project.check(code=code)


def test_only_the_traces_that_are_named_are_watched(project: Project) -> None:
    project.write({"stepcrit.toml": WATCH.replace('"traces/*"', '"others/*"')})
    change(project, "train.py", "2")
    assert project.codes() == []


def test_a_shallow_clone_cannot_tell(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(project, "README.md", "2")
    run_git(tmp_path, "clone", "-q", "--depth", "1", project.folder.as_uri(), "shallow")
    monkeypatch.chdir(tmp_path / "shallow")
    said = project.check(code=4)
    assert "whether code is newer than this trace is not known: the clone is shallow" in said
    assert "fetch-depth: 0" in said
    assert "(C106)" in said


def test_nor_can_a_folder_without_history(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "plain" / "traces").mkdir(parents=True)
    for name in (TRACE, "stepcrit.toml"):
        (tmp_path / "plain" / name).write_bytes((project.folder / name).read_bytes())
    monkeypatch.chdir(tmp_path / "plain")
    assert project.codes() == ["C106"]


def test_globs_count_from_the_folder_one_is_in(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write({"sub/train.py": "1", f"sub/{TRACE}": job(), "sub/stepcrit.toml": WATCH})
    commit(project.folder)
    change(project, "train.py", "2")
    monkeypatch.chdir(project.folder / "sub")
    assert project.codes() == []
    change(project, "sub/train.py", "2")
    assert "stale train.py changed 1 commit after" in project.check(code=4)


@pytest.mark.parametrize("glob", [":(exclude)train.py", ":!train.py", "-h", "--all", "train.py\\n", ":/"])
def test_a_glob_is_never_an_option_or_magic(project: Project, glob: str) -> None:
    project.write({"stepcrit.toml": WATCH.replace('"models/**", "train.py"', f'"{glob}"')})
    change(project, "train.py", "2")
    assert project.codes() == []
