"""`stepcrit critical`."""

from __future__ import annotations

from typing import Annotated

import typer

from stepcrit.cli.options import (
    BoundaryOpt,
    ClassesOpt,
    DeviceOnlyOpt,
    FloorsOpt,
    FormatOpt,
    JsonOpt,
    LimitOpt,
    OptimizerRegexOpt,
    OutputOpt,
    PathArg,
    SalvageOpt,
    StepOpt,
    StepRegexOpt,
    StrictOpt,
    TimingsOpt,
    session_options,
)
from stepcrit.cli.output import emit
from stepcrit.cli.which import remember


def add_to(root: typer.Typer) -> None:
    """Make this verb known to the command line."""
    root.command("critical")(critical)


def critical(
    path: PathArg,
    step: StepOpt = None,
    around: Annotated[
        str | None,
        typer.Option(
            "--around",
            help="Show what this operation (name or glob) waited for and who waits for it.",
            show_default=False,
        ),
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Every run and every join.")] = False,
    boundary: BoundaryOpt = None,
    strict: StrictOpt = False,
    salvage: SalvageOpt = False,
    limit: LimitOpt = None,
    floors: FloorsOpt = "none",
    device_only: DeviceOnlyOpt = False,
    step_regex: StepRegexOpt = None,
    optimizer_regex: OptimizerRegexOpt = None,
    classes: ClassesOpt = None,
    timings: TimingsOpt = False,
    fmt: FormatOpt = None,
    as_json: JsonOpt = False,
    output: OutputOpt = None,
) -> None:
    """The critical path itself, the runner-up at every join, or one operation's neighbourhood.

    Examples: stepcrit critical trace.json; stepcrit critical trace.json --around 'aten::mm'; stepcrit critical trace.json --full --format csv
    """
    from msgspec.structs import replace  # noqa: PLC0415

    from stepcrit.answers.critical import answer, answer_around  # noqa: PLC0415 - numpy loads here
    from stepcrit.session import load  # noqa: PLC0415

    options = session_options(
        boundary=boundary,
        step_regex=step_regex,
        optimizer_regex=optimizer_regex,
        strict=strict,
        floors=floors,
        device_only=device_only,
        salvage=salvage,
        limits=limit,
        classes=classes,
        timings=timings,
    )
    if around:  # one node per owner, so that every operator has its own neighbours
        options = replace(options, full=True)
    view = load(path, options).view(step)
    told = options.told()
    document = answer_around(view, around, told) if around else answer(view, full=full, settings=told)
    emit(document, fmt=fmt, as_json=as_json, output=output, source=path)
    remember(path)
