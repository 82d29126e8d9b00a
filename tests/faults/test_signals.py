"""F3, F4: a signal ends the run at once, whatever it is doing; what stands at the output's name is whole."""

from __future__ import annotations

import os
import pty
import random
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from stepcrit.report import drafts
from tests.faults.conftest import TRACE
from tests.faults.nursery import ROOT, Nursery

ENDING = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
CALC = ("calc", "amdahl", "--part", "40ms", "--of", "100ms", "--speedup", "2", "--json", "-o")
OLD = b"what was there before\n"
AT_ONCE_S = 2
MOMENTS = 50


def test_a_signal_at_any_moment_ends_the_run_at_once_and_leaves_no_part_of_a_file(
    tmp_path: Path, nursery: Nursery, long_trace: Path
) -> None:
    out = tmp_path / "out.json"
    command = ("analyze", str(long_trace), "-o", str(out))
    undisturbed = [nursery.run(*command) for _ in range(3)]
    assert [done.code for done in undisturbed] == [0] * 3
    takes = min(done.seconds for done in undisturbed)
    whole = out.read_bytes()
    chance = random.Random(3)
    caught = 0
    for k in range(MOMENTS):
        out.write_bytes(OLD)
        number = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)[k % 3]
        done = nursery.run(*command, sent=(number, chance.uniform(0, takes)))
        left = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
        if done.code:
            # killed by it where nothing of ours ran yet
            assert done.code in (ENDING[number], -number)
            assert (done.out, done.err) == (b"", b"")
            assert left in ({"out.json": OLD}, {"out.json": whole})
            assert done.seconds < AT_ONCE_S
            caught += done.code > 0
        else:  # it was faster
            assert left == {"out.json": whole}
    assert caught > MOMENTS // 3


@pytest.mark.parametrize(("number", "code"), ENDING.items())
def test_a_signal_while_modules_load_ends_the_run_quietly(unloaded: Nursery, number: int, code: int) -> None:
    first = ("signal_at_import", number)
    chance = random.Random(number)
    # from where the package itself is found and can do something
    for k in [8, 9, 10, 12, 20, *(chance.randint(21, 350) for _ in range(2))]:
        done = unloaded.run("analyze", str(TRACE), first=(*first, k))
        assert (k, done.code, done.out, done.err) == (k, code, b"", b"")


@pytest.mark.parametrize(("number", "code"), ENDING.items())
def test_a_signal_at_exit_says_nothing(nursery: Nursery, number: int, code: int) -> None:
    usual = nursery.usual("--version")
    done = nursery.run("--version", first=("signal_at_exit", number))
    assert (done.code, done.out, done.err) == (code, usual.out, b"")


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_that_was_ignored_from_birth_is_ignored(
    nursery: Nursery, long_trace: Path, number: int
) -> None:
    done = nursery.run("analyze", str(long_trace), first=("ignoring", number), sent=(number, 0.1))
    assert (done.code, done.err) == (0, b"")
    assert done.out


def test_a_real_command_that_waits_for_its_input_is_ended(tmp_path: Path) -> None:
    """Without the nursery: the interpreter's own way in and out."""
    command = [sys.executable, "-m", "stepcrit", "analyze", "-", "-o", str(tmp_path / "out.json")]
    for number, code in ENDING.items():
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
        ) as working:
            assert working.stdin is not None
            # a pipe holds less than this: when it is written, the trace is being read
            working.stdin.write(b'{"traceEvents": [' + b" " * (1 << 20))
            working.send_signal(number)
            out, err = working.communicate(timeout=60)
        assert (working.returncode, out, err) == (code, b"", b"")
    assert list(tmp_path.iterdir()) == []


def test_control_c_on_a_terminal_leaves_it_as_it_was() -> None:
    child, terminal = pty.fork()
    if not child:
        os.chdir(ROOT)
        os.execv(sys.executable, [sys.executable, "-m", "stepcrit", "analyze", "-"])  # noqa: S606 - it needs the terminal
    before = termios.tcgetattr(terminal)
    time.sleep(1)  # to its reading; were it before, the signal would end it as well
    os.write(terminal, b"\x03")
    sent = b""
    try:
        while piece := os.read(terminal, 1000):
            sent += piece
    except OSError:  # Linux: the other side is closed
        pass
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 130
    assert sent in (b"", b"^C")
    assert termios.tcgetattr(terminal) == before
    os.close(terminal)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_signal_at_any_call_that_writes_leaves_no_draft(
    tmp_path: Path, nursery: Nursery, when: str
) -> None:
    out = tmp_path / "out.json"
    codes = []
    for k in range(1, 100):
        out.write_bytes(OLD)
        done = nursery.run(*CALC, str(out), first=("killed", when, k, signal.SIGTERM))
        codes.append(done.code)
        assert list(tmp_path.iterdir()) == [out]
        assert (done.out, done.err) == (b"", b"")
        if not done.code:
            break
    assert codes == [143] * 7 + [0]


# --- SIGKILL ---------------------------------------------------------------------------------


@pytest.mark.parametrize("is_old", [True, False])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_kill_at_any_call_leaves_the_old_file_or_the_whole_new_one(
    tmp_path: Path, nursery: Nursery, when: str, *, is_old: bool
) -> None:
    out = tmp_path / "out.json"
    assert nursery.run(*CALC, str(out)).code == 0
    whole = out.read_bytes()
    seen = []
    for k in range(1, 100):
        for path in tmp_path.iterdir():
            path.unlink()
        if is_old:
            out.write_bytes(OLD)
        code = nursery.run(*CALC, str(out), first=("killed", when, k)).code
        if code == 0:
            break
        assert code == -signal.SIGKILL
        seen.append(out.read_bytes() if out.exists() else b"")
        assert all(path == out or path.match(".out.json.*.part") for path in tmp_path.iterdir())
    before = OLD if is_old else b""
    calls = 7 if is_old else 6  # chmod, where there was a file
    in_place = 2 if when == "after" else 1  # replace, then a look for stale drafts
    assert seen == [before] * (calls - in_place) + [whole] * in_place


def test_a_kill_at_any_moment_leaves_the_old_file_or_the_whole_new_one(
    tmp_path: Path, nursery: Nursery
) -> None:
    out = tmp_path / "out.json"
    undisturbed = nursery.run(*CALC, str(out))
    whole = out.read_bytes()
    chance = random.Random(4)
    for _ in range(12):
        out.write_bytes(OLD)
        done = nursery.run(*CALC, str(out), sent=(signal.SIGKILL, chance.uniform(0, undisturbed.seconds)))
        assert done.code in (0, -signal.SIGKILL)
        assert out.read_bytes() in ((OLD, whole) if done.code else (whole,))


def test_stale_drafts_of_the_same_file_are_removed_by_the_next_write(tmp_path: Path) -> None:
    stale, fresh = tmp_path / ".out.csv.01234567.part", tmp_path / ".out.csv.89abcdef.part"
    others = [".out.csv.part", ".out.csv.0123456.part", ".other.csv.01234567.part", "out.csv.01234567.part"]
    for path in (stale, fresh, *(tmp_path / name for name in others)):
        path.write_bytes(b"half")
        if path != fresh:
            os.utime(path, (0, time.time() - drafts.STALE_S - 60))
    drafts.put(b"new", str(tmp_path / "out.csv"))
    assert {path.name for path in tmp_path.iterdir()} == {"out.csv", fresh.name, *others}


def test_a_stale_draft_that_cannot_be_removed_is_nobodys_trouble(tmp_path: Path) -> None:
    folder = tmp_path / ".out.csv.01234567.part"
    folder.mkdir()
    os.utime(folder, (0, 0))
    drafts.put(b"new", str(tmp_path / "out.csv"))
    assert (tmp_path / "out.csv").read_bytes() == b"new"
    assert folder.is_dir()
