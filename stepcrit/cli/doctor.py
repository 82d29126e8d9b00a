"""`stepcrit doctor`."""

from __future__ import annotations

import typer

from stepcrit.cli.options import (
    ClassesOpt,
    FormatOpt,
    JsonOpt,
    LimitOpt,
    OutputOpt,
    PathArg,
    SalvageOpt,
    StrictOpt,
    TimingsOpt,
    session_options,
)
from stepcrit.cli.output import emit


def add_to(root: typer.Typer) -> None:
    """Make this verb known to the command line."""
    root.command("doctor")(doctor)


def doctor(
    path: PathArg,
    strict: StrictOpt = False,
    salvage: SalvageOpt = False,
    limit: LimitOpt = None,
    classes: ClassesOpt = None,
    timings: TimingsOpt = False,
    fmt: FormatOpt = None,
    as_json: JsonOpt = False,
    output: OutputOpt = None,
) -> None:
    """What evidence the file has and lacks, and how to record better.

    Example: stepcrit doctor trace.json.gz
    """
    from stepcrit.answers.doctor import answer  # noqa: PLC0415 - numpy loads here
    from stepcrit.errors import UnusableInputError  # noqa: PLC0415
    from stepcrit.session import load  # noqa: PLC0415

    trace = load(
        path, session_options(strict=strict, salvage=salvage, limits=limit, classes=classes, timings=timings)
    )
    try:
        notes = dict(trace.built.graph.notes)
    except UnusableInputError:
        notes = {}  # no graph to build: the checks below say why
    emit(
        answer(trace.raw, trace.links, trace.steps, notes),
        fmt=fmt,
        as_json=as_json,
        output=output,
        source=path,
    )
