"""F1, F2 on the writing side: whichever call fails on the way to a file, the old one stays and no draft is left."""

from __future__ import annotations

import errno
import os
import random
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stepcrit.cli.main import run
from stepcrit.cli.runner import tell_runner
from stepcrit.report import drafts
from tests.faults.conftest import TRACE
from tests.faults.nursery import Calls, Nursery, on_calls
from tests.report.checks import checked

FORMATS = ("text", "json", "md", "csv")
CALC = ("calc", "amdahl", "--part", "40ms", "--of", "100ms", "--speedup", "2")
OLD = b"what was there before\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a file that is about to be replaced."""
    made = tmp_path / "out"
    made.mkdir()
    return made


@pytest.fixture(autouse=True)
def real_calls_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drafts, "os", os)


def failing(k: int, number: int, names: list[str]) -> None:
    """Let the k-th call fail; `names` notes all of them."""

    def around(name: str, call: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        names.append(name)
        if len(names) == k:
            raise OSError(number, os.strerror(number))
        return call(*args)

    on_calls(around)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("is_old", [True, False])
@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
def test_whichever_call_fails_the_file_is_old_or_new_and_alone(
    folder: Path, capsys: pytest.CaptureFixture[str], fmt: str, number: int, *, is_old: bool
) -> None:
    out = folder / "out.txt"
    assert run([*CALC, "--format", fmt, "-o", str(out)]) == 0
    new = out.read_bytes()
    told: list[str] = []
    for k in range(1, 100):
        out.write_bytes(OLD) if is_old else out.unlink(missing_ok=True)
        names: list[str] = []
        failing(k, number, names)
        code = run([*CALC, "--format", fmt, "-o", str(out)])
        if len(names) < k:  # one call more than there are
            assert code == 0
            break
        told.append(f"{names[k - 1]} {code}")
        err = capsys.readouterr().err
        if code == 0:
            assert contents(folder) == {"out.txt": new}
            continue
        assert code == 5
        assert contents(folder) == ({"out.txt": OLD} if is_old else {})
        assert f"cannot write {len(new)} bytes: {os.strerror(number)}" in err
        assert str(out) in err
    chmod = ["chmod 5"] if is_old else []
    # at last, when the new file is in its place: a look for drafts that a killed run left
    assert told == ["stat 5", "open 5", "write 5", "close 5", *chmod, "replace 5", "scandir 0"]


@pytest.mark.parametrize("most", [1, 7, 100])
def test_a_disk_that_takes_little_at_a_time_gets_all(folder: Path, most: int) -> None:
    assert run([*CALC, "-o", str(folder / "whole.csv")]) == 0
    chance = random.Random(most)

    def short(name: str, call: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        return call(args[0], args[1][: chance.randint(1, most)]) if name == "write" else call(*args)

    on_calls(short)
    assert run([*CALC, "-o", str(folder / "parts.csv")]) == 0
    assert (folder / "parts.csv").read_bytes() == (folder / "whole.csv").read_bytes()


def test_a_file_that_takes_nothing_more_is_told_and_not_waited_for(folder: Path) -> None:
    on_calls(lambda name, call, args: 0 if name == "write" else call(*args))
    assert run([*CALC, "-o", str(folder / "out.csv")]) == 5
    assert contents(folder) == {}


@pytest.mark.parametrize("fmt", FORMATS)
def test_a_limit_on_the_size_of_files_is_a_full_disk(folder: Path, nursery: Nursery, fmt: str) -> None:
    out = folder / "out"
    command = (*CALC, "--format", fmt, "-o", str(out))
    assert nursery.run(*command).code == 0
    new = out.read_bytes()
    for limit in (0, 1, len(new) // 2, len(new) - 1):
        out.write_bytes(OLD)
        done = nursery.run(*command, limits={"RLIMIT_FSIZE": limit}, stderr="/dev/null")
        assert done.code == 5
        assert contents(folder) == {"out": OLD}
    assert nursery.run(*command, limits={"RLIMIT_FSIZE": len(new)}).code == 0
    assert contents(folder) == {"out": new}


@pytest.mark.parametrize("verb", ["analyze", "critical", "doctor", "demo"])
def test_every_verb_tells_a_full_disk(folder: Path, nursery: Nursery, verb: str) -> None:
    path = () if verb == "demo" else (str(TRACE),)
    done = nursery.run(verb, *path, "-o", str(folder / "a.json"), limits={"RLIMIT_FSIZE": 1000})
    assert done.code == 5
    assert b"bytes: File too large\n  where  " in done.err
    assert contents(folder) == {}


def test_a_prediction_that_cannot_be_saved_is_exit_code_5(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved, out = folder / "saved.json", folder / "out.json"
    command = ["whatif", str(TRACE), "--shrink", "aten::mm=0.5", "--save", str(saved), "-o", str(out)]
    assert run(command) == 0
    new = contents(folder)
    codes = []
    for k in range(1, 100):
        saved.write_bytes(OLD)
        out.unlink(missing_ok=True)
        names: list[str] = []
        failing(k, errno.ENOSPC, names)
        codes.append(run(command))
        left = contents(folder)
        if codes[-1]:
            assert codes[-1] == 5
            assert left in ({"saved.json": OLD}, {"saved.json": new["saved.json"]})
            assert "No space left on device" in capsys.readouterr().err
        else:
            assert left == new
        if len(names) < k:
            break
    # stat, open, write, close, chmod, replace of the first file and a look for drafts; the other is new;
    # then the trace is remembered, and that never fails a command
    assert codes[:13] == [5, 5, 5, 5, 5, 5, 0, 5, 5, 5, 5, 5, 0]
    assert set(codes[13:]) == {0}
    assert len(codes) > 18


def test_a_full_disk_under_the_cache_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cache = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    assert run(["doctor", str(TRACE)]) == 0
    assert not cache.exists()
    capsys.readouterr()
    assert run(["analyze", str(TRACE)]) == 0
    usual = capsys.readouterr()
    names: list[str] = []
    failing(0, errno.ENOSPC, names)
    assert run(["analyze", str(TRACE)]) == 0
    for k in range(1, len(names) + 1):
        shutil.rmtree(cache)
        failing(k, errno.ENOSPC, [])
        capsys.readouterr()
        assert run(["analyze", str(TRACE)]) == 0
        assert capsys.readouterr() == usual
        assert [path.name for path in cache.rglob("*") if path.is_file()] in ([], ["last-trace"])


def test_whatever_keeps_a_summary_from_being_added_is_told_and_what_stood_there_stays(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    summary = folder / "summary.md"
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    told = []
    for k in range(1, 100):
        summary.write_bytes(b"old")  # the last line has no end
        names: list[str] = []
        failing(k, errno.ENOSPC, names)
        tell_runner(checked())
        err = capsys.readouterr().err
        if len(names) < k:
            assert err == ""
            break
        told.append(names[k - 1])
        assert err == f"no summary for the job: {os.strerror(errno.ENOSPC)}: {summary}\n"
        assert summary.read_bytes().startswith(b"old")
    assert told == ["open", "fstat", "lseek", "read", "write", "close"]
    assert summary.read_bytes().startswith(b"old\n### stepcrit check\n")


def test_a_small_file_system_that_is_full_is_told(tmp_path: Path) -> None:
    """A real one, where a user may mount one."""
    small = tmp_path / "small"
    small.mkdir()
    stepcrit = shlex.join([sys.executable, "-m", "stepcrit", "analyze", str(TRACE)])
    script = f"""
        mount -t tmpfs -o size=16k tmpfs {small} || exit 99
        echo old > {small}/a.json
        {stepcrit} -o {small}/a.json; first=$?
        XDG_CACHE_HOME={small} PYTHONUNBUFFERED=1 {stepcrit} --json > {small}/b.json; second=$?
        echo $first $second $(ls -A {small}) $(cat {small}/a.json)
    """
    unshare = shutil.which("unshare")
    done = subprocess.run(
        [unshare or "false", "-rm", "sh", "-c", script], capture_output=True, text=True, check=False
    )
    if not unshare or done.returncode:
        pytest.skip("no file system may be mounted here")
    assert done.stdout == "5 5 a.json b.json old\n"
    assert done.stderr.count("bytes: No space left on device\n") == 2


def test_calls_that_are_made_to_fail_are_all_that_the_writer_makes() -> None:
    source = Path(drafts.__file__).read_text(encoding="utf-8")
    made = {word.partition("(")[0] for word in source.split("os.")[1:] if "(" in word.split()[0]}
    harmless = {"fspath", "fsencode", "urandom", "path.split", "path.join"}
    assert made - harmless <= set(Calls.FAILING)
