"""Bytes at a git ref are those of the commit, whatever lies in the work tree; and each reason why not has its words."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stepcrit.errors import (
    AbsentInputError,
    LimitInputError,
    LinkInputError,
    NoGitError,
    NoRepositoryError,
    PointerInputError,
    RefError,
    ShallowError,
)
from stepcrit.ingest import gitrun
from stepcrit.ingest.gitref import open_ref, repository, split_ref
from tests.ingest.gitmade import commit, new_repository, run_git

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n"
AWKWARD = "traces/a b:*[é]\n.json"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with two commits; `main` is the first, `work` the second and checked out."""
    folder = new_repository(tmp_path / "repo")
    commit(
        folder, {"traces/a.json": b"old", "traces/b.json": b"b" * 500, AWKWARD: b"awkward", "lfs.gz": POINTER}
    )
    run_git(folder, "checkout", "-q", "-b", "work")
    commit(folder, {"traces/a.json": b"new"})
    (folder / "traces" / "a.json").write_bytes(b"newer")
    return folder


def test_bytes_are_those_of_the_ref(repo: Path) -> None:
    where = repository(str(repo / "traces"))
    assert where.commit("main").read("traces/a.json").read() == b"old"
    assert where.commit("work").read("traces/a.json").read() == b"new"
    assert where.commit("main").read("traces/a.json").name == "main:traces/a.json"
    assert where.commit("HEAD~1").sha == where.commit("main").sha == run_git(repo, "rev-parse", "main")


def test_names_that_git_would_read_as_patterns_are_names(repo: Path) -> None:
    at = repository(str(repo)).commit("main")
    assert at.read(AWKWARD).read() == b"awkward"
    assert AWKWARD in at.files("traces")
    assert not at.has("traces/*.json")
    assert at.files("nosuch") == []
    assert len(at.files()) == 4


def test_all_that_is_read_is_of_the_commit_that_the_ref_meant_first(repo: Path) -> None:
    at = repository(str(repo)).commit("work")
    commit(repo, {"traces/a.json": b"later"})
    assert at.read("traces/a.json").read() == b"new"


def test_a_path_counts_from_the_top_or_with_a_dot_from_here(repo: Path) -> None:
    here = str(repo / "traces")
    assert open_ref("main", "traces/a.json", folder=here).read() == b"old"
    assert open_ref("main", "./a.json", folder=here).read() == b"old"
    with pytest.raises(AbsentInputError):
        open_ref("main", "a.json", folder=here)


def test_a_path_of_the_work_tree_is_named_from_the_top(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repo / "traces")
    where = repository()
    assert where.path_of("a.json") == where.path_of("../traces/./a.json") == "traces/a.json"
    with pytest.raises(NoRepositoryError, match="outside"):
        where.path_of("../../a.json")


@pytest.mark.skipif(sys.platform == "win32", reason="no symbolic links")
def test_a_repository_reached_by_a_link_is_the_same(repo: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(repo)
    assert (
        repository(str(tmp_path / "link")).path_of(str(tmp_path / "link" / "traces" / "a.json"))
        == "traces/a.json"
    )


# --- why not ---------------------------------------------------------------------------------


def test_a_folder_outside_any_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    (tmp_path / "out").mkdir()
    with pytest.raises(NoRepositoryError, match="no git repository with a work tree"):
        repository(str(tmp_path / "out"))


def test_no_git(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(repo))
    with pytest.raises(NoGitError, match="not installed"):
        repository(str(repo))


@pytest.mark.skipif(sys.platform == "win32", reason="a script is no program there")
def test_git_in_the_folder_one_is_in_is_not_git(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (repo / "git").write_text("#!/bin/sh\ntouch ran\n", encoding="utf-8")
    (repo / "git").chmod(0o755)
    monkeypatch.chdir(repo)
    monkeypatch.setenv("PATH", os.pathsep.join(["", ".", os.environ["PATH"]]))
    assert repository().commit("main").read("traces/a.json").read() == b"old"
    assert not (repo / "ran").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="a script is no program there")
def test_git_that_does_not_answer_is_given_up(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").write_text("#!/bin/sh\nexec sleep 60\n", encoding="utf-8")
    (tmp_path / "bin" / "git").chmod(0o755)
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path / "bin"), os.environ["PATH"]]))
    monkeypatch.setattr(gitrun, "SECONDS", 0.2)
    with pytest.raises(NoGitError, match="git rev-parse did not answer"):
        repository(str(repo))


@pytest.mark.parametrize(
    "ref",
    ["nosuch", "", "-h", "--all", "a..b", "main..work", "main\n", "main:traces/a.json", "\0"],
)
def test_no_such_ref(repo: Path, ref: str) -> None:
    with pytest.raises(RefError, match="no ref"):
        repository(str(repo)).commit(ref)


@pytest.mark.parametrize(
    ("ref", "branch"),
    [
        ("main", "refs/heads/main"),
        ("main~0", "refs/heads/main"),
        ("origin/main", "refs/remotes/origin/main"),
    ],
)
def test_a_tag_called_like_a_branch_does_not_take_its_place(repo: Path, ref: str, branch: str) -> None:
    run_git(repo, "update-ref", "refs/remotes/origin/main", "main")
    where, name = repository(str(repo)), ref.partition("~")[0]
    right = where.commit(ref).sha
    run_git(repo, "tag", name, "work")
    with pytest.raises(RefError, match="means several") as refused:
        where.commit(ref)
    assert f"refs/tags/{name}" in refused.value.do
    assert branch in refused.value.do
    assert where.commit(branch).sha == right


def test_near_refs_are_offered(repo: Path) -> None:
    with pytest.raises(RefError) as caught:
        repository(str(repo)).commit("mian")
    assert caught.value.do.startswith("did you mean main?")


def test_a_shallow_clone_says_how_to_fetch(repo: Path, tmp_path: Path) -> None:
    run_git(tmp_path, "clone", "-q", "--depth", "1", "--branch", "work", repo.as_uri(), "shallow")
    where = repository(str(tmp_path / "shallow"))
    assert where.is_shallow
    assert where.commit("origin/work").read("traces/a.json").read() == b"new"
    with pytest.raises(ShallowError) as caught:
        where.commit("origin/main")
    assert "fetch-depth: 0" in caught.value.do
    assert not repository(str(repo)).is_shallow


def test_a_path_that_is_new_is_said_to_be(repo: Path) -> None:
    with pytest.raises(AbsentInputError, match=r"no such file at main \([0-9a-f]{7}\)\.$"):
        repository(str(repo)).commit("main").read("traces/c.json")


def test_a_path_that_was_renamed_is_said_to_have_been(repo: Path) -> None:
    run_git(repo, "mv", "traces/b.json", "traces/c.json")
    with pytest.raises(AbsentInputError, match=r"it was called traces/b\.json then") as caught:
        repository(str(repo)).commit("main").read("traces/c.json")
    assert caught.value.do == "compare with main:traces/b.json"


def test_a_search_for_renames_that_takes_long_is_given_up(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = repository(str(repo)).commit("main")
    really = gitrun.subprocess.run

    def run(command: list[str], **how: object) -> object:
        if "diff-index" in command:
            raise subprocess.TimeoutExpired(command, 1)
        return really(command, **how)  # type: ignore[call-overload]

    monkeypatch.setattr(gitrun.subprocess, "run", run)
    assert at.renamed_from("traces/c.json") == ""


def test_a_pointer_of_lfs_is_no_trace(repo: Path) -> None:
    with pytest.raises(PointerInputError) as caught:
        repository(str(repo)).commit("main").read("lfs.gz")
    assert "lfs pull, --base" in caught.value.do
    assert caught.value.where == "main:lfs.gz"


def test_a_file_over_the_limit_is_not_read(repo: Path) -> None:
    at = repository(str(repo)).commit("main")
    assert len(at.read("traces/b.json", 500).read()) == 500
    with pytest.raises(LimitInputError, match="500 bytes, limit 499"):
        at.read("traces/b.json", 499)


@pytest.mark.skipif(sys.platform == "win32", reason="no symbolic links")
def test_links_folders_and_submodules_are_no_files(repo: Path) -> None:
    (repo / "link.json").symlink_to("/etc/passwd")
    run_git(repo, "update-index", "--add", "--cacheinfo", f"160000,{run_git(repo, 'rev-parse', 'HEAD')},sub")
    run_git(repo, "add", "link.json")
    run_git(repo, "commit", "-q", "-m", "links")
    at = repository(str(repo)).commit("HEAD")
    for path, what in {"link.json": "a symbolic link", "traces": "a folder", "sub": "a submodule"}.items():
        with pytest.raises(LinkInputError, match=what):
            at.read(path)


# --- REF:PATH --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "word",
    [
        "a.json", ":a.json", "main:", "C:\\x.json", "C:/x.json", "http://h/a.json", "s3://b/t.json", "a::b", "-",
        "zip://t.json::t.zip", "file:///etc/passwd", "main:/abs.json", "a\0:b",
    ],
)  # fmt: skip
def test_a_word_that_is_no_ref_with_a_path(word: str) -> None:
    assert split_ref(word) is None


def test_a_file_of_that_very_name_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert split_ref("main:a.json") == ("main", "a.json")
    (tmp_path / "main:a.json").touch()
    assert split_ref("main:a.json") is None


# --- nothing but git runs ----------------------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason="a script is no program there")
@pytest.mark.parametrize("driver", ["x", "a=b", "a.b"])
def test_no_program_that_the_repository_names_is_run(repo: Path, tmp_path: Path, driver: str) -> None:
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n", encoding="utf-8")
    trap.chmod(0o755)
    for name in ("core.fsmonitor", "core.pager", "diff.external", "core.sshCommand", "credential.helper"):
        run_git(repo, "config", name, str(trap))
    run_git(repo, "config", "pager.diff-index", "true")
    run_git(repo, "config", "core.hooksPath", str(tmp_path / "hooks"))
    for name in ("clean", "smudge", "process"):
        run_git(repo, "config", f"filter.{driver}.{name}", str(trap))
    run_git(repo, "config", f"filter.{driver}.required", "true")
    run_git(repo, "config", f"diff.{driver}.textconv", str(trap))
    (tmp_path / "hooks").mkdir()
    (tmp_path / "hooks" / "post-index-change").symlink_to(trap)
    (repo / ".gitattributes").write_text(f"* filter={driver} diff={driver}\n", encoding="utf-8")
    at = repository(str(repo)).commit("main")
    assert at.read("traces/a.json").read() == b"old"
    (repo / "traces" / "a.json").write_bytes(b"new")  # as long as before: only its content tells
    assert at.renamed_from("traces/c.json") == ""
    with pytest.raises(RefError):
        repository(str(repo)).commit("nosuch")
    assert not (tmp_path / "ran").exists()


def test_the_trap_would_have_been_sprung(repo: Path, tmp_path: Path) -> None:
    if sys.platform == "win32":
        pytest.skip("a script is no program there")
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n", encoding="utf-8")
    trap.chmod(0o755)
    subprocess.run(
        ["git", "-c", f"core.fsmonitor={trap}", "status"], cwd=repo, capture_output=True, check=False
    )
    assert (tmp_path / "ran").exists()
