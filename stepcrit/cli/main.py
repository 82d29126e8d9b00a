"""The door: `stepcrit VERB …`, `stepcrit trace.json`, and every error as one message and one exit code.

Only typer is imported here; numpy, pandas and networkx load inside the commands that need them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import typer
from typer.exceptions import TyperException

from stepcrit.cli import analyze, calc, critical, demo, doctor, explain, whatif
from stepcrit.errors import InternalError, StepcritError, UsageError

INTERRUPTED = 130
CLOSED = 141  # stdout closed by its reader: `| head`

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
        "Exit codes: 0 done, 2 wrong use, 3 no usable input, 4 partial under --strict, 5 output not written, 70 a bug of ours."
    ),
)
app.command("analyze")(analyze.analyze)
app.command("critical")(critical.critical)
app.command("whatif")(whatif.whatif)
app.command("doctor")(doctor.doctor)
app.add_typer(calc.app, name="calc")
app.command("demo")(demo.demo)
app.command("explain")(explain.explain)
COMMANDS = ("analyze", "critical", "whatif", "doctor", "calc", "demo", "explain")


def _version(*, value: bool) -> None:
    if value:
        from stepcrit import __version__  # noqa: PLC0415 - reads package metadata

        typer.echo(f"stepcrit {__version__} (Python {sys.version.split()[0]})")
        raise typer.Exit


@app.callback()
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


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit code."""
    sys.exit(run(list(sys.argv[1:] if argv is None else argv)))


def run(argv: list[str]) -> int:
    """Run the command line; returns the exit code (frozen: see README)."""
    try:
        return _call(["analyze", *argv] if _is_trace(argv) else argv or ["--help"])
    except StepcritError as error:
        _show(error)
        return error.exit_code
    except AssertionError as error:  # a broken promise of ours, found by a check
        _show(InternalError(f"a check inside stepcrit failed: {error}"))
        return InternalError.exit_code
    except BrokenPipeError:
        _silence_stdout()
        return CLOSED
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the last door: a bug is told as one, never as a bare traceback
        return _bug(error)


def _bug(error: Exception) -> int:
    """Something we did not think of: one message and exit code 70; STEPCRIT_DEBUG=1 shows where."""
    if os.environ.get("STEPCRIT_DEBUG"):
        raise error
    _show(InternalError(f"{type(error).__name__}: {error}", do="set STEPCRIT_DEBUG=1 for the traceback"))
    return InternalError.exit_code


def _is_trace(argv: list[str]) -> bool:
    """Whether `stepcrit trace.json …` was meant as `stepcrit analyze trace.json …`."""
    if not argv or argv[0] in COMMANDS:
        return False
    return argv[0] == "-" or os.path.exists(argv[0])  # noqa: PTH110 - pathlib costs start-up time


def _call(argv: list[str]) -> int:
    """Let typer find and call the command; wrong use is worded by typer, on stderr, with exit code 2."""
    try:
        result = app(args=argv, prog_name="stepcrit", standalone_mode=False)
    except TyperException as error:
        words = getattr(error, "format_message", error.__str__)()
        context = getattr(error, "ctx", None)
        usage = context.get_usage() if context else ""
        sys.stderr.write(f"{usage}\nerror {UsageError.code}: {words}\n".lstrip())
        return UsageError.exit_code
    except typer.Exit as done:
        return done.exit_code
    except typer.Abort:
        return INTERRUPTED
    return result if isinstance(result, int) else 0


def _show(error: StepcritError) -> None:
    """What, where, and what to do, on stderr."""
    from stepcrit.report.safe import safe_text  # noqa: PLC0415 - only an error needs it

    lines = [f"error {error.code}: {safe_text(error.what)}"]
    lines += [f"  where  {safe_text(error.where)}"] if error.where else []
    lines += [f"  do     {safe_text(error.do)}"] if error.do else []
    if isinstance(error, InternalError):
        lines.append(
            "  this is a bug in stepcrit: please report it with the trace, or with its `stepcrit doctor --json`"
        )
    sys.stderr.write("\n".join(lines) + "\n")


def _silence_stdout() -> None:
    """Keep the interpreter from complaining about a closed stdout at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
