"""The door: `stepcrit VERB …`, `stepcrit trace.json`, and every error as one message and one exit code.

Only typer is imported here; numpy, pandas and networkx load inside the commands that need them.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

import typer

from stepcrit.cli import analyze, critical, demo, doctor, explain
from stepcrit.errors import InternalError, StepcritError

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
app.command("doctor")(doctor.doctor)
app.command("demo")(demo.demo)
app.command("explain")(explain.explain)
COMMANDS = ("analyze", "critical", "doctor", "demo", "explain")


def _version(*, value: bool) -> None:
    if value:
        from stepcrit import __version__  # noqa: PLC0415 - reads package metadata

        typer.echo(f"stepcrit {__version__} (Python {sys.version.split()[0]})")
        raise typer.Exit


@app.callback()
def root(
    *,
    version: bool = typer.Option(False, "--version", help="Print the version and exit.", callback=lambda value: _version(value=value), is_eager=True),
) -> None:
    """Explain what a PyTorch training step costs."""


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit code."""
    sys.exit(run(list(sys.argv[1:] if argv is None else argv)))


def run(argv: list[str]) -> int:
    """Run the command line; returns the exit code (frozen: see README)."""
    if argv and argv[0] not in COMMANDS and not argv[0].startswith("--") and (argv[0] == "-" or os.path.exists(argv[0])):  # noqa: PTH110 - pathlib costs start-up time
        argv = ["analyze", *argv]
    try:
        app(args=argv, prog_name="stepcrit", standalone_mode=False)
    except StepcritError as error:
        _show(error)
        return error.exit_code
    except BrokenPipeError:
        _silence_stdout()
        return CLOSED
    except KeyboardInterrupt:
        return INTERRUPTED
    except AssertionError as error:  # a broken promise of ours, found by a check
        _show(InternalError(f"a check inside stepcrit failed: {error}"))
        return InternalError.exit_code
    except typer.Exit as done:
        return done.exit_code
    except typer.Abort:
        return INTERRUPTED
    except Exception as error:
        return _usage_or_bug(error)
    return 0


def _usage_or_bug(error: Exception) -> int:
    """Wrong use as typer words it, with exit code 2; anything else is a bug and keeps its traceback."""
    show = getattr(error, "show", None)
    if show is None:
        raise error
    show(file=sys.stderr)
    return int(getattr(error, "exit_code", 2))


def _show(error: StepcritError) -> None:
    """What, where, and what to do, on stderr."""
    from stepcrit.report.safe import safe_text  # noqa: PLC0415 - only an error needs it

    lines = [f"error {error.code}: {safe_text(error.what)}"]
    lines += [f"  where  {safe_text(error.where)}"] if error.where else []
    lines += [f"  do     {safe_text(error.do)}"] if error.do else []
    if isinstance(error, InternalError):
        lines.append("  this is a bug in stepcrit: please report it with the trace, or with its `stepcrit doctor --json`")
    sys.stderr.write("\n".join(lines) + "\n")


def _silence_stdout() -> None:
    """Keep the interpreter from complaining about a closed stdout at exit."""
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123 - lives until exit
    signal.signal(signal.SIGPIPE, signal.SIG_DFL) if hasattr(signal, "SIGPIPE") else None


if __name__ == "__main__":
    main()
