"""F13: screens of any size and kind, and none: nothing fails, nothing is wider than the screen, no escapes where none are wanted."""

from __future__ import annotations

import fcntl
import os
import pty
import shlex
import struct
import subprocess
import sys
import termios
import threading

import pytest
from rich.cells import cell_len

from stepcrit.cli import demo
from stepcrit.cli.main import run
from stepcrit.report.topics import all_topics, fitted, show, topic_list
from tests.faults.conftest import TRACE
from tests.faults.nursery import ROOT, Done, Nursery
from tests.faults.test_streams import ASKED

ESCAPE = "\x1b"
PLAIN: dict[str, str | None] = dict.fromkeys(
    ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "COLORTERM"), None
)
SHOWING = [*ASKED.values(), ("whatif", str(TRACE), "--rank"), ("explain",), ("explain", "floors")]


def on_a_screen(
    nursery: Nursery, *argv: str, size: tuple[int, int], **env: str | None
) -> tuple[Done, list[str]]:
    """A command on a terminal of so many columns and rows; what the terminal was sent."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
    pieces: list[bytes] = []
    reader = threading.Thread(target=_read_all, args=(ours, pieces))
    reader.start()
    name = os.ttyname(theirs)
    done = nursery.run(*argv, stdout=name, env={**PLAIN, "TERM": "xterm-256color", **env})
    os.close(theirs)
    reader.join()
    os.close(ours)
    return done, b"".join(pieces).decode().splitlines()


def _read_all(descriptor: int, pieces: list[bytes]) -> None:
    try:
        while piece := os.read(descriptor, 1 << 16):
            pieces.append(piece)
    except OSError:  # Linux: the other side is closed
        pass


def without_colour(line: str) -> str:
    """What is left to see."""
    first, *rest = line.split(ESCAPE)
    return first + "".join(piece.partition("m")[2] for piece in rest)


@pytest.mark.parametrize("size", [(20, 10), (33, 5), (60, 24), (120, 50), (0, 0), (5, 2), (9999, 1)])
def test_no_line_is_wider_than_the_screen(nursery: Nursery, size: tuple[int, int]) -> None:
    width = max(size[0], 20) if size[0] else 80  # narrower ones are written to as if they had 20
    for words in SHOWING:
        done, lines = on_a_screen(nursery, *words, size=size)
        assert (words, done.code) == (words, 0)
        assert lines
        assert max(cell_len(without_colour(line)) for line in lines) <= width


@pytest.mark.parametrize(
    ("asked", "width"),
    [("20", 20), ("100", 100), *((odd, 60) for odd in ("0", "-1", "abc", "", " ", "²", "9" * 5000, "1e3"))],
)
def test_columns_is_believed_where_it_is_a_number(nursery: Nursery, asked: str, width: int) -> None:
    for words in (ASKED["analyze"], ("explain", "floors")):
        usual = on_a_screen(nursery, *words, size=(width, 24))[1]
        done, lines = on_a_screen(nursery, *words, size=(60, 24), COLUMNS=asked, LINES=asked)
        assert (done.code, done.err) == (0, b"")
        assert lines == usual


def test_colour_is_for_terminals_that_have_it(nursery: Nursery) -> None:
    words = ASKED["analyze"]

    def escapes(**env: str | None) -> bool:
        done, lines = on_a_screen(nursery, *words, size=(80, 24), **env)
        assert done.code == 0
        return any(ESCAPE in line for line in lines)

    assert escapes()
    assert not escapes(NO_COLOR="1")
    assert not escapes(TERM="dumb")
    assert not escapes(TERM="unknown")
    assert escapes(TERM="nosuch-terminal")
    assert escapes(FORCE_COLOR="1")


def test_colour_only_repeats_what_is_written(nursery: Nursery) -> None:
    coloured = on_a_screen(nursery, *ASKED["analyze"], size=(80, 24))[1]
    plain = on_a_screen(nursery, *ASKED["analyze"], size=(80, 24), NO_COLOR="1")[1]
    assert [without_colour(line).rstrip() for line in coloured] == [line.rstrip() for line in plain]


@pytest.mark.parametrize("words", SHOWING, ids=" ".join)
def test_what_is_no_terminal_is_80_wide_without_escapes(nursery: Nursery, words: tuple[str, ...]) -> None:
    usual = nursery.run(*words, env={**PLAIN, "TERM": "dumb"})
    assert usual.code == 0
    assert ESCAPE.encode() not in usual.out + usual.err
    assert max(cell_len(line) for line in usual.out.decode().splitlines()) <= 80
    for odd in ({"COLUMNS": "20"}, {"COLUMNS": "²"}, {"TERM": "xterm-256color"}, {"TERM": None}):
        done = nursery.run(*words, env={**PLAIN, **odd})
        assert (done.code, done.out, done.err) == (0, usual.out, usual.err)


def test_forced_colour_is_given_and_nowhere_in_a_file_or_for_a_machine(nursery: Nursery) -> None:
    env = {**PLAIN, "FORCE_COLOR": "1", "COLUMNS": "²"}
    assert ESCAPE.encode() in nursery.run(*ASKED["analyze"], env=env).out
    for fmt in ("json", "md", "csv"):
        assert ESCAPE.encode() not in nursery.run(*ASKED["analyze"], "--format", fmt, env=env).out


# --- explain, and the hint of the demo -------------------------------------------------------


@pytest.mark.parametrize("width", [20, 33, 60, 80, 120])
@pytest.mark.parametrize("argv", [("explain",), ("explain", "floors"), ("explain", "SC304")])
def test_explain_keeps_its_words_on_any_screen(
    nursery: Nursery, width: int, argv: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    lines = on_a_screen(nursery, *argv, size=(width, 24))[1]
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
    hint = demo._hint(demo.DEMO_TRACE, 40).splitlines()[2:]
    assert all(len(line) <= 40 for line in hint)
    stepcrit = shlex.join([sys.executable, "-m", "stepcrit"])
    script = "\n".join(hint[:-2]).replace("stepcrit critical", f"{stepcrit} critical")
    done = subprocess.run(["bash", "-ec", script], capture_output=True, check=False, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, b"")
