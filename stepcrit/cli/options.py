"""Options that several commands share, with their help; and how they become `session.Options`."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from stepcrit.errors import UsageError, quoted
from stepcrit.timings import begin

if TYPE_CHECKING:
    from stepcrit.model.graph import EdgeKind
    from stepcrit.session import Options


class Format(StrEnum):
    """Output formats."""

    TEXT = "text"
    JSON = "json"
    MD = "md"
    CSV = "csv"


class BoundaryName(StrEnum):
    """Step boundaries, by name."""

    HOST = "host"
    LAUNCH = "launch"
    DEVICE = "device"
    UPDATE = "update"


PathArg = Annotated[
    str,
    typer.Argument(
        help="A trace (JSON, plain, gzip or zstd), a folder with one trace, or - for stdin.",
        show_default=False,
    ),
]
OptionalPathArg = Annotated[
    str | None,
    typer.Argument(
        help="As for analyze. Default: the trace of stepcrit.toml, else the last one analyzed.",
        show_default=False,
    ),
]
StepOpt = Annotated[
    str | None,
    typer.Option(
        "--step",
        help="Step number, label, or -1 for the last. Default: the median steady step.",
        show_default=False,
    ),
]
BoundaryOpt = Annotated[
    BoundaryName | None,
    typer.Option(
        "--boundary",
        help="When a step counts as done. Default: device, or update where an update spans several steps.",
        show_default=False,
    ),
]
StepRegexOpt = Annotated[
    str | None,
    typer.Option("--step-regex", help="Ranges whose name matches are the steps.", show_default=False),
]
OptimizerRegexOpt = Annotated[
    str | None,
    typer.Option("--optimizer-regex", help="Ranges whose name matches are the updates.", show_default=False),
]
StrictOpt = Annotated[
    bool,
    typer.Option("--strict", help="No dependency on timing alone; a partial input is an error (exit 4)."),
]
SalvageOpt = Annotated[
    bool, typer.Option("--salvage", help="Use what is left of a trace that has lost more than 5 %.")
]
LimitOpt = Annotated[
    list[str] | None,
    typer.Option(
        "--limit",
        help="Raise a limit on the input: text=32GiB, ratio=600, value=128MiB, names=1GiB, events=1000000000.",
        show_default=False,
    ),
]
FloorsOpt = Annotated[
    str,
    typer.Option(
        "--floors", help="Normal delays taken out of gaps: none, auto (learned), or launch=5us,stream=1us."
    ),
]
DeviceOnlyOpt = Annotated[
    bool, typer.Option("--device-only", help="Leave the host out: queues and recorded events only.")
]
ClassesOpt = Annotated[
    str | None,
    typer.Option(
        "--classes",
        help="A TOML file of your own rules: which names are gemm, comm, ... (see explain own-classes).",
        show_default=False,
    ),
]
TimingsOpt = Annotated[
    bool, typer.Option("--timings", help="Tell on stderr where the time went (see explain performance).")
]
FormatOpt = Annotated[
    Format | None,
    typer.Option(
        "--format", help="Output format. Default: text, or what the suffix of -o says.", show_default=False
    ),
]
JsonOpt = Annotated[bool, typer.Option("--json", help="Short for --format json.")]
OutputOpt = Annotated[
    str | None,
    typer.Option("-o", "--output", help="Write to this file instead of stdout.", show_default=False),
]


def session_options(
    *,
    boundary: BoundaryName | None = None,
    step_regex: str | None = None,
    optimizer_regex: str | None = None,
    strict: bool = False,
    floors: str = "none",
    device_only: bool = False,
    salvage: bool = False,
    limits: list[str] | None = None,
    classes: str | None = None,
    timings: bool = False,
) -> Options:
    """The options as the session takes them.

    Raises:
        UsageError: a pattern, a floor, a limit or the file of classes cannot be read.
    """
    from stepcrit.cli.classes import read_rules  # noqa: PLC0415 - numpy loads here
    from stepcrit.ingest.limits import default_limits, parse_limits  # noqa: PLC0415
    from stepcrit.link.patterns import check_pattern  # noqa: PLC0415
    from stepcrit.session import Boundary, Options, StepOptions  # noqa: PLC0415

    if timings:
        begin()
    for pattern in filter(None, (step_regex, optimizer_regex)):
        check_pattern(pattern)
    steps = StepOptions(Boundary(boundary.value) if boundary else None, step_regex, optimizer_regex)
    named = floors if floors in ("none", "auto") else parse_floors(floors)
    allowed = parse_limits(default_limits(os.environ), tuple(limits or ()))
    rules = read_rules(classes)
    return Options(steps, strict, device_only, named, salvage=salvage, limits=allowed, classes=rules)


def parse_floors(words: str) -> dict[EdgeKind, int]:
    """`launch=5us,stream=750ns` as edge kind -> ns.

    Raises:
        UsageError: an unknown edge kind, or a duration that cannot be read.
    """
    from stepcrit.graph.change import parse_duration  # noqa: PLC0415 - numpy loads here
    from stepcrit.model.graph import EdgeKind  # noqa: PLC0415

    kinds = {
        "launch": EdgeKind.LAUNCH,
        "stream": EdgeKind.STREAM,
        "event": EdgeKind.EVENT,
        "handover": EdgeKind.HANDOVER,
    }
    floors: dict[EdgeKind, int] = {}
    for part in words.split(","):
        kind, _, amount = part.partition("=")
        if kind.strip() not in kinds or not amount:
            raise UsageError(
                f"--floors cannot read {quoted(part)}",
                do=f"none, auto, or KIND=TIME with KIND one of {', '.join(kinds)}",
            )
        floors[kinds[kind.strip()]] = parse_duration(amount.strip())
    return floors
