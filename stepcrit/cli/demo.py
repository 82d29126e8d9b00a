"""`stepcrit demo`."""

from __future__ import annotations

import os
import shlex

import typer

import stepcrit
from stepcrit.cli.options import Format, FormatOpt, JsonOpt, OutputOpt, session_options
from stepcrit.cli.output import Stdout, emit, tell

DEMO_TRACE = os.path.join(os.path.dirname(stepcrit.__file__), "data", "demo.json.gz")  # noqa: PTH118, PTH120 - pathlib costs start-up time


def add_to(root: typer.Typer) -> None:
    """Make this verb known to the command line."""
    root.command("demo")(demo)


def demo(fmt: FormatOpt = None, as_json: JsonOpt = False, output: OutputOpt = None) -> None:
    """Analyze a small trace that comes with stepcrit: two data-parallel ranks, a collective at the end of the step (simulated)."""
    from stepcrit.answers.analyze import answer  # noqa: PLC0415 - numpy loads here
    from stepcrit.session import load  # noqa: PLC0415

    options = session_options()
    document = answer(load(DEMO_TRACE, options).view(), settings=options.told())
    emit(document, fmt=fmt, as_json=as_json, output=output, source=DEMO_TRACE)
    if fmt in (None, Format.TEXT) and not as_json and not output:
        tell(_hint(DEMO_TRACE, Stdout.now().width))


def _hint(path: str, width: int) -> str:
    """What to type next, for a shell to take as it stands; a path wider than the screen is continued."""
    room = width - len("DEMO=''\\")
    pieces = [shlex.quote(path[i : i + room]) for i in range(0, len(path), room)]
    named = "\\\n".join(pieces)
    return f'\ntry:\nDEMO={named}\nstepcrit critical "$DEMO"\nstepcrit doctor "$DEMO"\nstepcrit explain\n'
