"""`stepcrit whatif`."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperCommand

from stepcrit.cli.asked import Asked, answered, check
from stepcrit.cli.options import (
    BoundaryOpt,
    ClassesOpt,
    DeviceOnlyOpt,
    FloorsOpt,
    FormatOpt,
    JsonOpt,
    LimitOpt,
    OptimizerRegexOpt,
    OptionalPathArg,
    OutputOpt,
    SalvageOpt,
    StepOpt,
    StepRegexOpt,
    StrictOpt,
    TimingsOpt,
    session_options,
)
from stepcrit.cli.output import emit, tell
from stepcrit.cli.targets import check_target
from stepcrit.cli.which import remember, told, trace_meant

if TYPE_CHECKING:
    from typer._click.core import Context  # typer holds a click of its own


class InOrder(TyperCommand):
    """A command that knows in which order its options were given: click hands them over by name."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """As click does, after noting the name of each option as it comes."""
        _, _, given = self.make_parser(ctx).parse_args(args=list(args))
        ctx.meta[ORDER] = [option.name for option in given]
        return super().parse_args(ctx, args)


ORDER = "stepcrit.order"


class GroupName(StrEnum):
    """What one thing is."""

    OP = "op"
    KERNEL = "kernel"
    CLASS = "class"
    MODULE = "module"
    COLLECTIVE = "collective"
    LINE = "line"


class SideName(StrEnum):
    """Which time an operator's name means."""

    AUTO = "auto"
    DEVICE = "device"
    HOST = "host"
    BOTH = "both"


def add_to(root: typer.Typer) -> None:
    """Make this verb known to the command line."""
    root.command("whatif", cls=InOrder)(whatif)


def whatif(
    ctx: typer.Context,
    path: OptionalPathArg = None,
    shrink: Annotated[
        list[str] | None,
        typer.Option("--shrink", help="SEL=F: take F × the time (0.5: half of it).", show_default=False),
    ] = None,
    speedup: Annotated[
        list[str] | None, typer.Option("--speedup", help="SEL=2x: so many times faster.", show_default=False)
    ] = None,
    set_to: Annotated[
        list[str] | None, typer.Option("--set", help="SEL=100us: so long each.", show_default=False)
    ] = None,
    add: Annotated[
        list[str] | None,
        typer.Option("--add", help="SEL=100us: so much longer each.", show_default=False),
    ] = None,
    remove: Annotated[
        list[str] | None,
        typer.Option(
            "--remove", help="SEL: no time at all, nor the gap in front, nor its waiting.", show_default=False
        ),
    ] = None,
    side: Annotated[
        SideName,
        typer.Option(
            "--side", help="An operator's device work, host time, or both. auto: device where it has any."
        ),
    ] = SideName.AUTO,
    self_only: Annotated[
        bool, typer.Option("--self", help="Of an operator, only what it launches and runs itself.")
    ] = False,
    with_launch: Annotated[
        bool, typer.Option("--with-launch", help="The launch calls of selected device work change with it.")
    ] = False,
    curve: Annotated[
        bool, typer.Option("--curve", help="The saving as more and more of the selection is taken away.")
    ] = False,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            help="Another machine: order, free, lanes, queue:1024, comm:k=2, comm:alpha=10us,k=2, contend:1.2.",
            show_default=False,
        ),
    ] = None,
    rank: Annotated[bool, typer.Option("--rank", help="Which one thing, made faster, saves most.")] = False,
    by: Annotated[
        GroupName, typer.Option("--by", help="What one thing is, for --rank and --target.")
    ] = GroupName.OP,
    top: Annotated[int, typer.Option("--top", min=1, max=1000, help="How many rows --rank shows.")] = 10,
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            help="90ms: the smallest change that makes the step so short; with a change, how much of it.",
            show_default=False,
        ),
    ] = None,
    inject: Annotated[
        str | None,
        typer.Option(
            "--inject", help="SEL: how much longer it may take before the step does.", show_default=False
        ),
    ] = None,
    save: Annotated[
        str | None,
        typer.Option(
            "--save", help="Keep the prediction in this file, to judge it later.", show_default=False
        ),
    ] = None,
    step: StepOpt = None,
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
    """If this took another time, how long would my step be.

    A selector is an exact name or glob of an operator or kernel, or re:, class:, module:, stream:, step:, line:.

    Examples: stepcrit whatif trace.json --shrink aten::mm=0.5; stepcrit whatif trace.json --speedup class:comm=2x --curve; stepcrit whatif trace.json --rank --by kernel; stepcrit whatif trace.json --target 90ms
    """
    given = {"shrink": shrink, "speedup": speedup, "set_to": set_to, "add": add, "remove": remove}
    of_each = {name: iter(several or ()) for name, several in given.items()}
    changes = [(name.removesuffix("_to"), next(of_each[name])) for name in ctx.meta[ORDER] if name in of_each]
    asked = Asked(
        tuple(changes),
        tuple(model or ()),
        (side.value, self_only, with_launch),
        curve=curve,
        rank=top if rank else None,
        by=by.value,
        target=target,
        inject=inject,
        save=save,
        output=output,
    )
    check(asked)
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
    source, why = trace_meant(path)
    tell(told(source, why))
    for written in filter(None, (save, output)):  # both are judged before either is written
        check_target(written, source)
    document = answered(asked, source, options, step)
    emit(document, fmt=fmt, as_json=as_json, output=output, source=source)
    remember(source)
