"""The one door to stdout and stderr, and where an answer goes: format by option or suffix, file or stdout.

Typer takes an OSError for a closed pipe and exits with 1, whatever it was. So none leaves this file: a
failed write is an OutputError, and a reader that left is a ReaderGoneError.
"""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO, cast

from stepcrit.cli.options import Format
from stepcrit.cli.targets import check_target
from stepcrit.errors import OutputError, UsageError
from stepcrit.report.drafts import write_all
from stepcrit.report.terminal import USUAL, columns
from stepcrit.timings import timed

if TYPE_CHECKING:
    from stepcrit.model.section import Document
    from stepcrit.report.github import Lines

SUFFIXES = {".json": Format.JSON, ".md": Format.MD, ".csv": Format.CSV, ".txt": Format.TEXT}
NARROWEST = 20
PACKED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")
"""How gzip and zstd begin: a trace that was asked for is no line of a log, and must stay what it is."""


class ReaderGoneError(Exception):
    """The reader of stdout closed it, as `| head` does: there is nobody left to tell."""


class Stdout:
    """Stands in for sys.stdout while a command runs: typer's words and our answers both leave by `send`.

    Attributes:
        encoding: what the stream takes; "ascii" where the locale says so, whatever Python makes of it.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = None if stream is None or stream.closed else stream
        self.encoding = _encoding(stream)
        self._lines = _runner_lines()

    @classmethod
    def now(cls) -> Stdout:
        """The stdout of the running command."""
        return sys.stdout if isinstance(sys.stdout, cls) else cls(sys.stdout)

    @property
    def width(self) -> int:
        """The columns of the terminal; 80 where it is none."""
        return max(columns(), NARROWEST) if self.isatty() else USUAL

    def isatty(self) -> bool:
        """Whether a person reads along."""
        return self._stream is not None and self._stream.isatty()

    def write(self, text: str) -> int:
        """Words in signs that the stream has.

        Raises:
            OutputError: see `send`; so ReaderGoneError.
        """
        self.send(_signs(text, self.encoding))
        return len(text)

    def flush(self) -> None:
        """Nothing is kept back."""

    def send(self, data: bytes) -> None:
        """Bytes as they are, but for lines that a CI runner would act on.

        Raises:
            OutputError: stdout is closed, or does not take them.
            ReaderGoneError: its reader closed it.
        """
        if not data:
            return
        if self._stream is None:
            raise OutputError("cannot write: stdout is closed", do="open it, or send it to a file")
        if self._lines is not None and not data.startswith(PACKED):
            data = self._lines.harmless(data)
        try:
            _put(data, self._stream)
        except BrokenPipeError:
            _hush(self._stream)
            raise ReaderGoneError from None
        except OSError as err:
            _hush(self._stream)
            raise OutputError(
                f"cannot write {len(data)} bytes: {err.strerror or err}",
                where="stdout",
                do="make room, or send it elsewhere",
            ) from err


def say(text: str) -> None:
    """Words on stdout.

    Raises:
        OutputError: see `Stdout.send`; so ReaderGoneError.
    """
    Stdout.now().write(text)


def tell(text: str) -> None:
    """Words on stderr, where it can be written: a refusal must not fail for want of a place to tell it.

    Whatever they repeat of the command line or a trace only prints.
    """
    from stepcrit.report.safe import safe_lines  # noqa: PLC0415 - most commands tell nothing

    stream: TextIO | None = sys.stderr
    if stream is None or stream.closed:
        return
    try:
        _put(_signs(safe_lines(text), _encoding(stream)), stream)
    except OSError:
        _hush(stream)


def annotate(commands: list[str]) -> None:
    """Commands of our own for a CI runner, on stderr: the only lines there that it takes for any."""
    stream: TextIO | None = sys.stderr
    if stream is None or stream.closed:
        return
    try:
        _put(_signs("".join(f"{line}\n" for line in commands), _encoding(stream)), stream)
    except OSError:
        _hush(stream)


@timed("render")
def emit(
    document: Document, *, fmt: Format | None, as_json: bool, output: str | None, source: str = ""
) -> None:
    """Render an answer and put it where the user wants it.

    Raises:
        UsageError: the output is the input, or formats contradict each other.
        OutputError: it could not be written.
        ReaderGoneError: nobody reads it any more.
    """
    from stepcrit.report.screen import Screen  # noqa: PLC0415 - rich loads here
    from stepcrit.report.write import render, write_output  # noqa: PLC0415

    if as_json and fmt not in (None, Format.JSON):
        raise UsageError(f"--json and --format {fmt} contradict each other")
    if output:
        check_target(output, source, *folder_inputs(document, source))
    suffix = os.path.splitext(output or "")[1].lower()  # noqa: PTH122 - a string is enough
    chosen = Format.JSON if as_json else fmt or SUFFIXES.get(suffix, Format.TEXT)
    if not output:
        stdout = Stdout.now()
        stdout.send(
            render(document, chosen.value, Screen.of(cast("TextIO", stdout)))
        )  # asked for its kind only
        return
    try:
        write_output(render(document, chosen.value), output)
    except BrokenPipeError as err:  # a pipe that has a name
        raise ReaderGoneError from err


def write_file(document: Document, path: str, *, source: str) -> None:
    """Write an answer as JSON beside the one that is shown.

    Raises:
        UsageError: the file is the input.
        OutputError: it could not be written.
    """
    from stepcrit.report.write import render, write_output  # noqa: PLC0415 - rich loads here

    check_target(path, source, *folder_inputs(document, source))
    try:
        write_output(render(document, Format.JSON.value), path)
    except BrokenPipeError as err:
        raise ReaderGoneError from err


def _runner_lines() -> Lines | None:
    """What breaks up commands in a log that a CI runner reads."""
    if "GITHUB_ACTIONS" not in os.environ:
        return None
    from stepcrit.report.github import Lines, is_runner  # noqa: PLC0415 - only a runner needs it

    return Lines() if is_runner(os.environ) else None


def _put(data: bytes, stream: TextIO) -> None:
    """All bytes, past the layers above the descriptor.

    Those would translate line ends, give up where it takes nothing for now, or (without a buffer, as
    PYTHONUNBUFFERED asks) leave it at what it took.
    """
    buffer = getattr(stream, "buffer", None)
    raw = getattr(buffer, "raw", buffer)
    stream.flush()
    if isinstance(raw, io.FileIO):
        write_all(raw.fileno(), data)
    elif buffer is None:
        stream.write(data.decode(stream.encoding or "utf-8", "replace"))
    else:
        buffer.write(data)
    stream.flush()


def _hush(stream: TextIO) -> None:
    """What the stream still holds goes nowhere: at exit the interpreter would fail on it once more."""
    with suppress(OSError, ValueError):  # a stream of a test has no number
        number = stream.fileno()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, number)
        os.close(nowhere)


def _encoding(stream: TextIO | None) -> str:
    """The encoding of a stream; Python writes UTF-8 under LC_ALL=C, and no one there can read it."""
    is_own = stream is sys.__stdout__ or stream is sys.__stderr__
    is_told = os.environ.get("PYTHONIOENCODING") or os.environ.get("PYTHONUTF8")
    if is_own and not is_told and os.environ.get("LC_ALL") in ("C", "POSIX"):
        return "ascii"
    return getattr(stream, "encoding", None) or "utf-8"


def _signs(text: str, encoding: str) -> bytes:
    """Words in an encoding, in ASCII where it lacks a sign."""
    try:
        return text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        from stepcrit.report.safe import ascii_text  # noqa: PLC0415 - rarely needed

        return ascii_text(text).encode("ascii")


def folder_inputs(document: Document, source: str) -> list[str]:
    """The traces that an answer was computed from, where the command line names the folder they lie in."""
    if not source or not os.path.isdir(source):  # noqa: PTH112 - a string is enough
        return []
    return [os.path.join(source, one.name) for one in document.inputs]  # noqa: PTH118
