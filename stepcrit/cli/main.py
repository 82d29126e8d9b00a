"""The door: `stepcrit VERB …`, `stepcrit trace.json`, and every error as one message and one exit code.

Only typer is imported here; numpy, pandas and networkx load inside the commands that need them.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterable
from contextlib import redirect_stdout
from importlib import import_module
from typing import Any

import typer
from typer.exceptions import TyperException

from stepcrit import kernels
from stepcrit.cli.output import ReaderGoneError, Stdout, say, tell
from stepcrit.errors import InternalError, LimitInputError, StepcritError, UsageError
from stepcrit.report.safe import safe_text
from stepcrit.timings import end

INTERRUPTED = 130
CLOSED = 141  # stdout closed by its reader: `| head`

DEBUG = "set STEPCRIT_DEBUG=1 for the traceback"
ROOT_OPTIONS = ("-h", "--help", "--version")
TRACE_SUFFIXES = (".json", ".gz")

COMMANDS = (
    "analyze",
    "critical",
    "whatif",
    "diff",
    "check",
    "doctor",
    "slim",
    "calc",
    "demo",
    "explain",
    "init",
    "schema",
)
OF_A_PATH = ("analyze", "critical", "doctor")
"""Commands whose function, named like them, takes a path, and everything else with a default."""


def _version(*, value: bool) -> None:
    """Print the version, if that is wanted; a wrong choice of kernels is told by every command."""
    running = kernels.chosen()
    if value:
        from stepcrit import __version__  # noqa: PLC0415 - reads package metadata

        say(f"stepcrit {__version__} (Python {sys.version.split()[0]}, {running} kernels)\n")
        raise typer.Exit


def root(
    *,
    version: bool = typer.Option(
        False,
        "--version",
        help="Print the version and exit.",
        callback=lambda value: _version(value=value),
        is_eager=True,
    ),
) -> None:
    """Explain what a PyTorch training step costs."""


def program(verbs: Iterable[str] = COMMANDS) -> typer.Typer:
    """The command line with these verbs; one alone is there in a fraction of the time that all take."""
    app = typer.Typer(
        name="stepcrit",
        help="Explain what a PyTorch training step costs: which durations, made shorter, would make the step shorter.",
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        add_completion=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        epilog=(
            "Examples:  stepcrit demo  |  stepcrit trace.json.gz  |  stepcrit critical trace.json --around aten::mm  |  "
            "stepcrit doctor trace.json.      "
            "Exit codes: 0 done, 1 a budget or a comparison failed, 2 wrong use, 3 no usable input, 4 partial or not judged, 5 output not written, 70 a bug of ours."
        ),
    )
    app.callback()(root)
    for verb in verbs:
        _file_of(verb).add_to(app)
    return app


def _file_of(verb: str) -> Any:
    """A command's own module."""
    return import_module(f"stepcrit.cli.{verb}")


def run(argv: list[str]) -> int:
    """Run the command line; returns the exit code (frozen: see README)."""
    code = _guarded(argv)
    for line in end():
        tell(f"{line}\n")
    return code


def _guarded(argv: list[str]) -> int:
    """The exit code, whatever happens."""
    try:
        return _call(["analyze", *argv] if _is_trace(argv) else argv or ["--help"])
    except StepcritError as error:
        return _show(error)
    except ReaderGoneError:
        return CLOSED
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the last door: a bug is told as one, never as a bare traceback
        return _show(_own(error))


def _own(error: Exception) -> StepcritError:
    """Any other error as one of ours: mostly a bug, an AssertionError being one that a check found."""
    if isinstance(error, ImportError):
        return _unloadable(error)
    if isinstance(error, MemoryError):
        return LimitInputError(
            "There is not enough memory for this trace.",
            do="Record fewer steps, or run where there is more memory (a trace needs about 0.6 times the size of its JSON text).",
        )
    if isinstance(error, AssertionError):
        return InternalError(f"a check inside stepcrit failed: {error}", do=DEBUG)
    return InternalError(f"{type(error).__name__}: {error}", do=DEBUG)


def _unloadable(error: ImportError) -> StepcritError:
    """A package that is missing or broken is the installation's fault; a module of ours is our bug."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    module = error.name or str(frames[-1].f_globals["__name__"])
    package = module.partition(".")[0]
    if package == "stepcrit":
        return InternalError(f"{type(error).__name__}: {error}", do=DEBUG)
    is_missing = isinstance(error, ModuleNotFoundError)
    return UsageError(
        f"the package {package} {'is not installed' if is_missing else f'cannot be loaded: {error}'}",
        do=f"install what stepcrit needs: python -m pip install --force-reinstall {package}",
    )


def _is_trace(argv: list[str]) -> bool:
    """Whether `stepcrit trace.json …` was meant as `stepcrit analyze trace.json …`."""
    if not argv or argv[0] in COMMANDS or argv[0] in ROOT_OPTIONS:
        return False
    if argv[0] == "--":  # what follows is no option, whatever it looks like
        return len(argv) > 1 and argv[1] not in COMMANDS
    if argv[0] == "-" or not argv[0].startswith("-"):
        return _names_trace(argv[0])
    # options of `analyze` first: a path among what follows, and no command
    return any(map(_names_trace, argv)) and not any(word in COMMANDS for word in argv)


def _names_trace(word: str) -> bool:
    """Whether a word is a path, be there such a file or not: no command is spelled like one."""
    if word.startswith("-"):
        return word == "-"
    has_folder = any(sep in word for sep in (os.sep, os.altsep) if sep)
    return has_folder or word.lower().endswith(TRACE_SUFFIXES) or os.path.exists(word)  # noqa: PTH110 - pathlib costs start-up time


def _call(argv: list[str]) -> int:
    """Let typer find and call the command; wrong use is worded by typer, on stderr, with exit code 2."""
    verbs = argv[:1] if argv[0] in COMMANDS else COMMANDS
    try:
        with redirect_stdout(Stdout(sys.stdout)):
            if _is_path_alone(argv):
                result = _of_path(*argv)
            else:
                result = program(verbs)(args=argv, prog_name="stepcrit", standalone_mode=False)
    except TyperException as error:
        words = safe_text(getattr(error, "format_message", error.__str__)())  # it repeats what was typed
        context = getattr(error, "ctx", None)
        usage = context.get_usage() if context else ""
        tell(f"{usage}\nerror {UsageError.code}: {words}\n".lstrip())
        return UsageError.exit_code
    except typer.Exit as done:
        return done.exit_code
    except typer.Abort:
        return INTERRUPTED
    return result if isinstance(result, int) else 0


def _is_path_alone(argv: list[str]) -> bool:
    """Whether a path is all that a command is given, so that there are no options to read."""
    return len(argv) == 2 and argv[0] in OF_A_PATH and (argv[1] == "-" or not argv[1].startswith("-"))


def _of_path(verb: str, path: str) -> object:
    """Do what typer would, without what it loads to read options: a quarter of the time of a small trace."""
    kernels.chosen()  # as `_version` does
    return getattr(_file_of(verb), verb)(path)


def _show(error: StepcritError) -> int:
    """What, where, and what to do, on stderr; returns the exit code."""
    lines = [f"error {error.code}: {safe_text(error.what)}"]
    lines += [f"  where  {safe_text(error.where)}"] if error.where else []
    lines += [f"  do     {safe_text(error.do)}"] if error.do else []
    if isinstance(error, InternalError):
        lines.append(
            "  this is a bug in stepcrit: please report it with the trace, or with its `stepcrit doctor --json`"
        )
        if os.environ.get("STEPCRIT_DEBUG"):
            lines[:0] = [safe_text(line) for line in traceback.format_exc().splitlines()]
    tell("\n".join(lines) + "\n")
    return error.exit_code
