"""The edges of the command line, by the real command: streams that fail, signals, mistyped paths, narrow screens."""

from __future__ import annotations

import fcntl
import gzip
import io
import json
import os
import pty
import shlex
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from stepcrit.cli import demo
from stepcrit.cli.main import run
from stepcrit.cli.output import Stdout
from stepcrit.errors import OutputError
from stepcrit.report.topics import all_topics, fitted, show, topic_list

ROOT = Path(__file__).parents[2]
TRACE = str(ROOT / "fixtures" / "simulated" / "item_sync.json.gz")
STEPCRIT = [sys.executable, "-m", "stepcrit"]
SPEAKING = [
    "--help",
    "--version",
    "explain",
    "analyze --help",
    "calc --help",
    "demo",
    f"analyze {TRACE} --json",
]
"""One command for each way to stdout: typer's help, a line of ours, a text, an answer."""


def shell(
    words: str, redirection: str = "", env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """A command as a shell runs it; the exit code is stepcrit's, wherever its output went."""
    line = f"{shlex.join(STEPCRIT)} {words} {redirection}; exit ${{PIPESTATUS[0]}}"
    return subprocess.run(
        ["bash", "-c", line], capture_output=True, check=False, cwd=ROOT, env={**os.environ, **(env or {})}
    )


# --- stdout and stderr that fail -------------------------------------------------------------


@pytest.mark.parametrize("words", SPEAKING)
def test_a_reader_that_is_gone_is_exit_code_141_without_a_word(words: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*STEPCRIT, *words.split()], stdout=writer, stderr=subprocess.PIPE, check=False, cwd=ROOT
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


def test_head_takes_its_line_and_stepcrit_says_nothing() -> None:
    trace = str(ROOT / "fixtures" / "recorded" / "accumulation_stacks.json.gz")
    done = shell(f"critical {trace} --full --json", "| head -1")
    assert done.returncode in (0, 141)  # 0 where the pipe took everything at once
    assert done.stderr == b""
    assert done.stdout.count(b"\n") == 1


@pytest.mark.parametrize("words", SPEAKING)
def test_a_full_device_is_exit_code_5(words: str) -> None:
    done = shell(words, "> /dev/full")
    assert done.returncode == 5
    assert done.stderr.startswith(b"error SC500: cannot write ")
    assert b"No space left on device" in done.stderr
    assert b"Exception" not in done.stderr


@pytest.mark.parametrize("words", SPEAKING)
def test_a_closed_stdout_is_exit_code_5(words: str) -> None:
    done = shell(words, ">&-")
    assert done.returncode == 5
    assert done.stderr.startswith(b"error SC500: cannot write: stdout is closed")


def test_a_file_needs_no_stdout(tmp_path: Path) -> None:
    assert shell(f"analyze {TRACE} -o {tmp_path}/a.json", ">&-").returncode == 0
    assert json.loads((tmp_path / "a.json").read_bytes())["data"]


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full"])
@pytest.mark.parametrize(
    ("words", "code"),
    [("demo", 0), ("--help", 0), ("analyse", 2), ("explain slakc", 2), ("./nosuch.json", 3)],
)
def test_a_stderr_that_fails_changes_no_exit_code(words: str, code: int, redirection: str) -> None:
    done = shell(words, redirection)
    assert (done.returncode, done.stderr) == (code, b"")
    assert bool(done.stdout) == (code == 0)


def test_both_closed_is_exit_code_5() -> None:
    assert shell("demo", ">&- 2>&-").returncode == 5


@pytest.mark.parametrize(("output", "code"), [("/dev/full", 5), ("/dev/stdout", 141)])
def test_an_output_that_is_a_device_is_treated_as_one(output: str, code: int) -> None:
    assert shell(f"analyze {TRACE} --json -o {output}", "| true").returncode == code


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


# --- signals ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_during_work_ends_it_quietly(sent: signal.Signals, code: int, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    with subprocess.Popen(
        [*STEPCRIT, "analyze", "-", "-o", str(out)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
    ) as working:
        assert working.stdin is not None
        # a pipe holds less than this: when it is written, the trace is being read
        working.stdin.write(b'{"traceEvents": [' + b" " * (1 << 20))
        working.send_signal(sent)
        out_bytes, err_bytes = working.communicate(timeout=60)
    assert (working.returncode, out_bytes, err_bytes) == (code, b"", b"")
    assert list(tmp_path.iterdir()) == []


# --- what was meant --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "argv",
    [
        ["./nosuch.json"],
        ["nosuch.json"],
        ["nosuch.JSON.GZ"],
        ["no/such"],
        ["--json", "nosuch.json"],
        ["--step", "3", "no/such"],
    ],
)
def test_a_mistyped_path_is_no_input(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(argv) == 3
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "There is no such file" in captured.err


def test_options_may_stand_before_the_path(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--json", TRACE]) == 0
    assert json.loads(capsys.readouterr().out)["data"]


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["analyse", "x.json"], "Did you mean 'analyze'?"),
        (["nosuch"], "No such command"),
        (["--json"], "No such option"),
        (["--json", "critical", TRACE], "No such option"),
        (["-o", "out.json"], "Missing argument"),
    ],
)
def test_what_is_no_path_is_wrong_use(argv: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(argv) == 2
    assert says in capsys.readouterr().err


def test_help_stays_help_whatever_follows(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help", TRACE]) == 0
    assert capsys.readouterr().out.startswith("Usage")


def test_debug_shows_the_traceback_and_keeps_exit_code_70(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import stepcrit.session  # noqa: PLC0415

    def broken(*_: object) -> None:
        raise RuntimeError("the sky \x1b[31m fell")

    monkeypatch.setattr(stepcrit.session, "read_trace", broken)
    monkeypatch.setenv("STEPCRIT_DEBUG", "1")
    assert run(["analyze", TRACE]) == 70
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert "\x1b" not in err


# --- narrow screens --------------------------------------------------------------------------


def on_a_terminal(width: int, *argv: str) -> list[str]:
    """What a terminal of this width is sent."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    env = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    with subprocess.Popen([*STEPCRIT, *argv], stdout=theirs, stderr=theirs, cwd=ROOT, env=env) as working:
        os.close(theirs)
        sent = b""
        try:
            while piece := os.read(ours, 1 << 16):
                sent += piece
        except OSError:  # Linux: the other side is closed
            pass
        os.close(ours)
    assert working.returncode == 0
    return sent.decode().splitlines()


@pytest.mark.parametrize("width", [20, 33, 60, 80, 120])
@pytest.mark.parametrize("argv", [("explain",), ("explain", "floors"), ("explain", "SC304")])
def test_explain_fits_the_terminal(
    width: int, argv: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    lines = on_a_terminal(width, *argv)
    assert max(map(len, lines)) <= width
    assert run(list(argv)) == 0
    elsewhere = capsys.readouterr().out
    assert "".join("".join(lines).split()) == "".join(elsewhere.split())
    assert (width < 80) or lines == elsewhere.splitlines()


def test_every_topic_fits_any_width_and_keeps_its_words() -> None:
    texts = [topic_list(), *(show(one.id) for one in all_topics())]
    texts += [show(entry.code) for one in all_topics() for entry in one.entries]
    for text in texts:
        assert fitted(text, 80) == text
        for width in (20, 40, 79):
            narrow = fitted(text, width)
            assert max(map(len, narrow.splitlines())) <= width
            assert "".join(narrow.split()) == "".join(text.split())


def test_a_paragraph_is_wrapped_as_one_and_rows_stay_rows() -> None:
    full = "the words of a paragraph that goes on to the end of a line of eighty columns"
    text = f"{full}\nand then some.\n\na  one\nb  two, which is a rather long row for a screen\nc  three"
    assert fitted(text, 40).splitlines() == [
        "the words of a paragraph that goes on to",
        "the end of a line of eighty columns and",
        "then some.",
        "",
        "a  one",
        "b  two, which is a rather long row for a",
        "   screen",
        "c  three",
    ]


@pytest.mark.parametrize("width", [20, 40, 80])
def test_the_hint_of_the_demo_fits_and_a_shell_takes_it(width: int) -> None:
    path = "/a folder/it's deep/" + "x" * 90 + "/demo.json.gz"
    hint = demo._hint(path, width)
    assignment = hint.partition("try:\n")[2].partition("\nstepcrit")[0]
    assert hint.count("/demo.json.gz") <= 1
    assert max(map(len, assignment.splitlines())) <= width + len("'\"'\"'")
    told = subprocess.run(
        ["bash", "-c", f'{assignment}\nprintf %s "$DEMO"'], capture_output=True, text=True, check=True
    )
    assert told.stdout == path


def test_the_demo_on_a_narrow_terminal_names_a_trace_that_can_be_read() -> None:
    lines = on_a_terminal(40, "demo")
    hint = lines[lines.index("try:") + 1 :]
    assert all(len(line) <= 40 for line in hint)
    script = "\n".join(hint[:-1]).replace("stepcrit ", shlex.join(STEPCRIT) + " ")
    done = subprocess.run(["bash", "-ec", script], capture_output=True, check=False, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, b"")


# --- ASCII -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def foreign_trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace with names that ASCII lacks."""
    text = gzip.decompress(Path(TRACE).read_bytes()).decode().replace("aten::", "“日😀”::")
    path = tmp_path_factory.mktemp("ascii") / "é.json"
    path.write_text(text, encoding="utf-8")
    return path


ASCII_SETTINGS = [{"LC_ALL": "C"}, {"LC_ALL": "POSIX"}, {"PYTHONIOENCODING": "ascii"}]


@pytest.mark.parametrize("env", ASCII_SETTINGS)
@pytest.mark.parametrize(
    "words",
    ["--help", "whatif --help", "explain", "explain numbers", "demo", "analyse·", "no/µ", "explain µ"],
)
def test_where_only_ascii_can_be_read_only_ascii_is_written(words: str, env: dict[str, str]) -> None:
    done = shell(words, env=env)
    assert done.returncode in (0, 2, 3)
    assert done.stdout.isascii()
    assert done.stderr.isascii()
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("env", ASCII_SETTINGS)
@pytest.mark.parametrize("fmt", ["text", "json", "md", "csv"])
def test_every_format_is_ascii_there(fmt: str, env: dict[str, str], foreign_trace: Path) -> None:
    done = shell(f"analyze {foreign_trace} --format {fmt}", env=env)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.isascii()


def test_json_in_ascii_is_the_same_json(foreign_trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = shell(f"analyze {foreign_trace} --json", env={"LC_ALL": "C"})
    assert run(["analyze", str(foreign_trace), "--json"]) == 0
    usual = capsys.readouterr().out
    assert not usual.isascii()
    assert json.loads(done.stdout)["data"] == json.loads(usual)["data"]


def test_a_file_is_utf_8_whatever_the_locale(foreign_trace: Path, tmp_path: Path) -> None:
    assert shell(f"analyze {foreign_trace} -o {tmp_path}/a.csv", env={"LC_ALL": "C"}).returncode == 0
    assert "日😀" in (tmp_path / "a.csv").read_text(encoding="utf-8")
