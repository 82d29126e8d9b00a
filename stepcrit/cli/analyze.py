"""`stepcrit analyze`."""

from __future__ import annotations

from enum import StrEnum
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


class ByName(StrEnum):
    """Groupings of the ranked table."""

    OP = "op"
    KERNEL = "kernel"
    CLASS = "class"
    MODULE = "module"
    LINE = "line"


def add_to(root: typer.Typer) -> None:
    """Make this verb known to the command line."""
    root.command("analyze")(analyze)


def analyze(
    path: PathArg,
    step: StepOpt = None,
    boundary: BoundaryOpt = None,
    by: Annotated[
        ByName, typer.Option("--by", help="What a row of the ranked table stands for.")
    ] = ByName.OP,
    stream: Annotated[
        int | None,
        typer.Option("--stream", help="Explain the idle time of this stream alone.", show_default=False),
    ] = None,
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
    """What does my step cost, why, and what next.

    Examples: stepcrit analyze trace.json.gz; stepcrit analyze trace.json --step -1 --by kernel --json
    """
    from stepcrit.answers.analyze import answer  # noqa: PLC0415 - numpy loads here
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
    view = load(path, options).view(step)
    emit(
        answer(view, by=by.value, stream=stream, settings=options.told()),
        fmt=fmt,
        as_json=as_json,
        output=output,
        source=path,
    )
    remember(path)
