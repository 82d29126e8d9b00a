"""No command opens a connection, starts a program or leaves anything behind but the one small cache file.

`check` with a git ref reads the baseline by git: that one program, with a list of arguments.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main

from stepcrit.cli.main import program
from tests.ingest.gitmade import QUIET, commit, new_repository
from tests.security.hostile_trace import hostile_trace

GUARDED = """
import sys

def guard(event, args):
    if event.startswith(("socket.", "subprocess.", "os.system", "os.exec", "os.posix_spawn", "os.fork", "urllib.", "pickle.")):
        # what a caller might catch is not enough: the run ends here
        sys.stderr.write(f"forbidden: {event} {args}"); sys.stderr.flush()
        import os
        os._exit(99)

sys.addaudithook(guard)
from stepcrit.__main__ import main
main()
"""
"""The command under an audit hook: Python itself reports each attempt, however it is made."""

CACHED = "home/.cache/stepcrit/last-trace"

RUNS = (
    "analyze t.json", "analyze t.json --json", "analyze t.json --format md", "analyze t.json --format csv", "t.json",
    "critical t.json", "critical t.json --around aten::copy_", "doctor t.json", "diff t.json t.json", "slim t.json -o -", "demo", "explain", "explain slack",
    "whatif t.json --shrink aten::copy_=0.5", "whatif t.json --rank", "whatif t.json --target 900us",
    "whatif t.json --inject aten::copy_", "calc amdahl --part 40ms:2 --of 100ms", "calc crossover --a 30s+1s --b 0s+2s",
    "calc roofline --intensity 2 --bandwidth 100GB/s --roof 1TFLOP/s", "calc scaling --serial 0.05 --at 8", "init t.json -o -", "schema", "schema whatif", "schema config", "--version", "--help",
    "check t.json --base .", "check t.json --base . --json --junit t.xml",
)  # fmt: skip
WRITES = {"t.xml": "--junit"}
"""Files that an option asks for."""
ABROAD = (
    "http://169.254.169.254/latest/meta-data/", "https://example.invalid/t.json.gz", "s3://bucket/t.json", "gs://b/t.json",
    "file:///etc/passwd", "file://localhost/etc/passwd", "github://o:r@main/t.json", "simplecache::s3://b/t.json", "a::b",
    "zip://t.json::t.zip", "ssh://h/t.json", "data:application/json,{}", "//host/share/t.json", "|cat /etc/passwd",
)  # fmt: skip


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home and a folder to be in, both empty but for one trace."""
    for name in ("home", "here", "tmp"):
        (tmp_path / name).mkdir()
    (tmp_path / "here" / "t.json").write_bytes(hostile_trace().content)
    return tmp_path


def guarded(home: Path, *argv: str) -> subprocess.CompletedProcess[bytes]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("XDG_")}
    env = {**kept, "HOME": str(home / "home"), "TMPDIR": str(home / "tmp"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", GUARDED, *argv]
    return subprocess.run(command, capture_output=True, check=False, cwd=home / "here", env=env)


def tree(home: Path) -> dict[str, bytes]:
    """Every file, with its content."""
    return {p.relative_to(home).as_posix(): p.read_bytes() for p in home.rglob("*") if p.is_file()}


def test_every_command_is_run() -> None:
    names = set(typer.main.get_command(program()).commands)  # type: ignore[attr-defined]
    assert names <= {run.split()[0] for run in RUNS}


@pytest.mark.parametrize("attempt", ["socket.socket()", "subprocess.run(['true'])", "os.system('true')"])
def test_the_guard_sees_an_attempt(home: Path, attempt: str) -> None:
    code = GUARDED.replace(
        "main()", f"import os, socket, subprocess\ntry: {attempt}\nexcept BaseException: pass"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, cwd=home)
    assert (done.returncode, done.stderr[:10]) == (99, b"forbidden:")


@pytest.mark.parametrize("words", RUNS)
def test_a_command_reaches_for_nothing_and_leaves_only_the_last_path(home: Path, words: str) -> None:
    before = tree(home)
    done = guarded(home, *words.split())
    assert done.returncode == 0, done.stderr
    after = tree(home)
    remembers = words.partition(" ")[0] in ("analyze", "critical", "whatif", "t.json")
    asked_for = {f"here/{name}" for name, option in WRITES.items() if option in words}
    assert set(after) - set(before) == ({CACHED} if remembers else set()) | asked_for
    assert {name: after[name] for name in before} == before


STARTED = """
def guard(event, args):
    if event == "subprocess.Popen":
        words = args[1]
        if isinstance(words, list) and words[0].endswith("/git") and words[0].startswith("/") and words[1] == "--no-pager":
            started.append(words)
            return
"""
"""A guard that lets git be started, by its absolute path and with a list of arguments; all else is as before."""


@pytest.mark.skipif(sys.platform == "win32", reason="another name and path there")
def test_check_against_a_git_ref_starts_git_and_nothing_else(home: Path) -> None:
    here = new_repository(home / "here")
    (here / "stepcrit.toml").write_text(
        "[check]\ntraces = 't.json'\n[watch]\n'*' = 'none.py'\n", encoding="utf-8"
    )
    commit(here)
    before = tree(home)
    code = GUARDED.replace("\ndef guard(event, args):\n", "\nstarted = []\n" + STARTED, 1)
    code = code.replace("\nmain()", "\ntry: main()\nfinally: sys.stderr.write(f'started {len(started)}')")
    env = {**os.environ, **QUIET, "HOME": str(home / "home"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code, "check", "--base", "HEAD"],
        capture_output=True,
        check=False,
        cwd=here,
        env=env,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stderr.rpartition(b"started ")[2]) > 5
    assert tree(home) == before


@pytest.mark.parametrize("path", ABROAD)
@pytest.mark.parametrize("verb", ["analyze", "whatif"])
def test_a_path_that_looks_like_an_address_is_no_file(home: Path, path: str, verb: str) -> None:
    asked = [verb, path] if verb == "analyze" else [verb, path, "--rank"]
    done = guarded(home, *asked)
    assert (done.returncode, done.stdout) == (3, b"")
    assert b"SC301" in done.stderr


@pytest.mark.parametrize("path", ABROAD)
def test_nor_is_it_one_in_the_configuration(home: Path, path: str) -> None:
    (home / "here" / "stepcrit.toml").write_text(f"[check]\ntraces = ['{path}']\n", encoding="utf-8")
    done = guarded(home, "whatif", "--rank")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"names no trace that is there" in done.stderr
