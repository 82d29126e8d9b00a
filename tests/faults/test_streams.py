"""F10, F11, F2: stdout, stderr and stdin that are closed, full, slow or interrupted, for every command and format."""

from __future__ import annotations

import io
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from stepcrit.cli.main import COMMANDS, run
from stepcrit.cli.output import Stdout
from stepcrit.errors import OutputError
from tests.faults.conftest import TRACE
from tests.faults.nursery import ROOT, Nursery

FORMATS = ("text", "json", "md", "csv")
ASKED: dict[str, tuple[str, ...]] = {
    "analyze": ("analyze", str(TRACE)),
    "critical": ("critical", str(TRACE)),
    "whatif": ("whatif", str(TRACE), "--shrink", "aten::mm=0.5"),
    "diff": ("diff", str(TRACE), str(TRACE)),
    "check": ("check", str(TRACE), "--base", "."),
    "doctor": ("doctor", str(TRACE)),
    "calc": ("calc", "amdahl", "--part", "40ms", "--of", "100ms", "--speedup", "2"),
    "demo": ("demo",),
}
ANSWERS = [(*words, "--format", fmt) for words in ASKED.values() for fmt in FORMATS]
SPEAKING = [
    *ANSWERS,
    ("slim", str(TRACE), "-o", "-"),
    ("init", str(TRACE), "-o", "-"),
    ("schema", "analyze"),
    ("--help",),
    ("--version",),
    ("explain",),
    ("explain", "slack"),
    ("analyze", "--help"),
]
"""Everything that speaks on stdout: typer's help, a line of ours, a text, an answer."""

REFUSED = [(("analyse",), 2), (("explain", "slakc"), 2), (("./nosuch.json",), 3)]


def test_every_command_is_asked_here() -> None:
    assert {words[0] for words in SPEAKING} >= set(COMMANDS)


# --- stdout ----------------------------------------------------------------------------------


@pytest.mark.parametrize("words", SPEAKING, ids=" ".join)
def test_a_stdout_that_fails_is_told_by_the_exit_code(nursery: Nursery, words: tuple[str, ...]) -> None:
    gone = nursery.run(*words, first=("gone_reader",))
    assert (gone.code, gone.err) == (141, b"")
    full = nursery.run(*words, stdout="/dev/full")
    assert full.code == 5
    assert full.err.startswith(b"error SC500: cannot write ")
    assert b"bytes: No space left on device\n  where  stdout\n" in full.err
    assert b"Exception" not in full.err
    closed = nursery.run(*words, closed=(1,))
    assert closed.code == 5
    assert closed.err.startswith(b"error SC500: cannot write: stdout is closed")


@pytest.mark.parametrize("name", ASKED)
def test_a_file_needs_no_stream(nursery: Nursery, tmp_path: Path, name: str) -> None:
    usual, out = tmp_path / "usual.json", tmp_path / "out.json"
    assert nursery.run(*ASKED[name], "-o", str(usual)).code == 0
    for given in (
        {"closed": (1,)},
        {"closed": (0, 1, 2)},
        {"first": ("gone_reader",)},
        {"stdout": "/dev/full", "stderr": "/dev/full"},
    ):
        out.unlink(missing_ok=True)
        assert nursery.run(*ASKED[name], "-o", str(out), **given).code == 0
        assert out.read_bytes() == usual.read_bytes()


def shell(line: str) -> subprocess.CompletedProcess[bytes]:
    """A command as a shell runs it; the exit code is stepcrit's, wherever its output went."""
    stepcrit = shlex.join([sys.executable, "-m", "stepcrit"])
    script = f"{stepcrit} {line}; exit ${{PIPESTATUS[0]}}"
    return subprocess.run(["bash", "-c", script], capture_output=True, check=False, cwd=ROOT)


def test_head_takes_its_line_and_stepcrit_says_nothing() -> None:
    trace = ROOT / "fixtures" / "recorded" / "accumulation_stacks.json.gz"
    done = shell(f"critical {trace} --full --json | head -1")
    assert done.returncode in (0, 141)  # 0 where the pipe took everything at once
    assert done.stderr == b""
    assert done.stdout.count(b"\n") == 1


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("demo | true", 141),
        ("demo >/dev/full", 5),
        ("demo >&-", 5),
        ("demo >&- 2>&- <&-", 5),
        ("analyse 2>&-", 2),
    ],
)
def test_a_real_shell_sees_the_same(line: str, code: int) -> None:
    done = shell(line)
    assert (done.returncode, done.stdout) == (code, b"")
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(("output", "code"), [("/dev/full", 5), ("/dev/stdout", 141)])
def test_an_output_that_is_a_device_is_treated_as_one(nursery: Nursery, output: str, code: int) -> None:
    assert nursery.run(*ASKED["calc"], "--json", "-o", output, first=("gone_reader",)).code == code


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_a_descriptor_is_written_to_by_its_name_and_its_name_stays(
    nursery: Nursery, tmp_path: Path, name: str
) -> None:
    out = tmp_path / "out"
    out.write_bytes(b"")
    before = [Path(link).readlink() for link in ("/dev/stdout", "/dev/fd")]
    usual = nursery.usual(*ASKED["calc"], "--json")
    done = nursery.run(*ASKED["calc"], "--json", "-o", name, stdout=str(out))
    assert (done.code, out.read_bytes()) == (0, usual.out)
    assert [Path(link).readlink() for link in ("/dev/stdout", "/dev/fd")] == before
    assert list(tmp_path.iterdir()) == [out]
    assert nursery.run(*ASKED["calc"], "-o", name, closed=(1,)).code == 5


@pytest.mark.parametrize("name", ["analyze", "whatif"])
def test_a_stdout_that_takes_a_part_or_nothing_for_now_gets_everything(nursery: Nursery, name: str) -> None:
    words = (*ASKED[name], "--json")
    usual = nursery.usual(*words)
    for first in (("slow_reader",), ("short_writes", 7), ("ticking", 0.001)):
        done = nursery.run(*words, first=first)
        assert (done.code, done.out, done.err) == (0, usual.out, b"")


def test_an_unbuffered_stdout_is_not_left_at_what_it_took(tmp_path: Path) -> None:
    """With PYTHONUNBUFFERED a write may end at a full disk after some bytes, without an error."""
    out = tmp_path / "out.json"
    line = f"ulimit -f 8; {shlex.join([sys.executable, '-u', '-m', 'stepcrit', *ASKED['analyze']])} --json > {out}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, check=False, cwd=ROOT)
    assert done.returncode == 5
    assert b"bytes: File too large" in done.stderr


def test_a_stream_takes_bytes_or_text() -> None:
    raw = io.BytesIO()
    wrapped = io.TextIOWrapper(raw, "ascii")
    Stdout(wrapped).send("µ\n".encode())
    assert raw.getvalue() == "µ\n".encode()
    plain = io.StringIO()
    Stdout(plain).send(b"a\n")
    assert plain.getvalue() == "a\n"


def test_a_stream_that_was_closed_in_python_is_an_output_error() -> None:
    stream = io.StringIO()
    stream.close()
    with pytest.raises(OutputError):
        Stdout(stream).write("a")


# --- stderr ----------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [{"closed": (2,)}, {"stderr": "/dev/full"}])
def test_a_stderr_that_fails_changes_no_exit_code(nursery: Nursery, given: dict[str, object]) -> None:
    for words in (("demo",), ("--help",)):
        usual = nursery.usual(*words)
        done = nursery.run(*words, **given)
        assert (done.code, done.out, done.err) == (0, usual.out, b"")
    for words, code in REFUSED:
        done = nursery.run(*words, **given)
        assert (done.code, done.out, done.err) == (code, b"", b"")


def test_with_all_three_closed_the_exit_code_still_tells(nursery: Nursery) -> None:
    assert nursery.run("demo", closed=(0, 1, 2)).code == 5
    for words, code in REFUSED:
        assert nursery.run(*words, closed=(0, 1, 2)).code == code


# --- stdin -----------------------------------------------------------------------------------


def test_a_closed_stdin_is_no_input_and_only_where_it_is_read(nursery: Nursery) -> None:
    done = nursery.run("analyze", "-", closed=(0,))
    assert (done.code, done.out) == (3, b"")
    assert b"Standard input is closed." in done.err
    for words in (ASKED["doctor"], ("--version",)):
        assert nursery.run(*words, closed=(0,)).out == nursery.usual(*words).out


@pytest.mark.parametrize("words", [("analyze", "-", "--json"), ("doctor", "-", "--json")])
def test_a_stdin_that_has_nothing_for_now_is_waited_for(nursery: Nursery, words: tuple[str, ...]) -> None:
    usual = nursery.run(*words, stdin=str(TRACE))
    for first in (("slow_writer",), ("ticking", 0.001)):
        done = nursery.run(*words, stdin=str(TRACE), first=first)
        assert (done.code, done.err) == (0, b"")
        assert json.loads(done.out) == json.loads(usual.out)


class Spoiled(io.FileIO):
    """A file that hands out little at a time, and fails at one reading or is cut there."""

    most, fails_at, is_cut_at = 512, 0, 0
    count = 0

    def read(self, size: int | None = -1) -> bytes:
        self.count += 1
        if self.count == self.fails_at:
            raise OSError(5, os.strerror(5))
        if self.count == self.is_cut_at:
            os.truncate(str(self.name), self.tell())
        return super().read(min(self.most, size or self.most)) or b""


def given(monkeypatch: pytest.MonkeyPatch, stream: io.FileIO) -> None:
    monkeypatch.setattr("sys.stdin", type("Stdin", (), {"buffer": stream}))


def test_a_byte_at_a_time_is_the_same_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = []
    for most in (1, 2, 3, 1 << 20):
        stream = Spoiled(TRACE)
        stream.most = most
        given(monkeypatch, stream)
        assert run(["doctor", "-", "--json"]) == 0
        answers.append(capsys.readouterr().out)
        stream.close()
    assert len(set(answers)) == 1


def test_whichever_reading_fails_there_is_no_input_and_no_output(
    trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    for k in range(1, trace.stat().st_size // Spoiled.most + 2):
        stream = Spoiled(trace)
        stream.fails_at = k
        given(monkeypatch, stream)
        assert run(["doctor", "-", "-o", str(out / "a.json")]) == 3
        stream.close()
        captured = capsys.readouterr()
        assert captured.out == ""
        assert "The input cannot be read: Input/output error." in captured.err
        assert list(out.iterdir()) == []


def test_a_file_that_is_cut_while_it_is_read_is_no_whole_trace(
    trace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for k in (1, 2, 9):
        trace.write_bytes(TRACE.read_bytes())
        stream = Spoiled(trace)
        stream.is_cut_at = k
        given(monkeypatch, stream)
        told = run(["doctor", "-", "--strict"])
        stream.close()
        captured = capsys.readouterr()
        assert (told, captured.out) in [(3, ""), (4, "")]
        assert "stops before" in captured.err or "The input is empty." in captured.err
