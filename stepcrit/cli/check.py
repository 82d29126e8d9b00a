"""`stepcrit check`."""

from __future__ import annotations

from typing import Annotated

import typer

from stepcrit.cli.options import (
    BoundaryOpt,
    ClassesOpt,
    Format,
    FormatOpt,
    JsonOpt,
    LimitOpt,
    OptimizerRegexOpt,
    OutputOpt,
    StepRegexOpt,
    TimingsOpt,
    session_options,
)
from stepcrit.cli.output import emit
from stepcrit.cli.runner import tell_runner


def add_to(root: typer.Typer) -> None:
    """Make this verb known to the command line."""
    root.command("check")(check)


def check(
    traces: Annotated[
        list[str] | None,
        typer.Argument(
            help="Traces, or globs of them. Default: [check] traces of the configuration.", show_default=False
        ),
    ] = None,
    config: Annotated[
        str | None,
        typer.Option(
            "--config",
            help="The budgets. Default: stepcrit.toml, or [tool.stepcrit] of pyproject.toml.",
            show_default=False,
        ),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(
            "--base",
            help='A git ref, or a folder (./base). "": budgets only. Default: [check] base.',
            show_default=False,
        ),
    ] = None,
    trust_config: Annotated[
        bool,
        typer.Option("--trust-config", help="Judge by this tree's budgets, not by those of the git ref."),
    ] = False,
    steps: Annotated[
        str | None,
        typer.Option("--steps", help="Which are judged: median, worst, all, 12, 12-15.", show_default=False),
    ] = None,
    tighten: Annotated[
        bool, typer.Option("--tighten", help="Lower this tree's budgets to what was found; shows the change.")
    ] = False,
    show_passed: Annotated[bool, typer.Option("--show-passed", help="Show what passed, too.")] = False,
    junit: Annotated[
        str | None,
        typer.Option("--junit", help="Write JUnit XML to this file as well.", show_default=False),
    ] = None,
    boundary: BoundaryOpt = None,
    step_regex: StepRegexOpt = None,
    optimizer_regex: OptimizerRegexOpt = None,
    classes: ClassesOpt = None,
    limit: LimitOpt = None,
    fmt: FormatOpt = None,
    as_json: JsonOpt = False,
    output: OutputOpt = None,
    timings: TimingsOpt = False,
) -> None:
    """Do my committed traces keep their budgets, and the step its length.

    Exit code 0: all keep them, 1: one is broken, 4: something could not be judged.

    Examples: stepcrit check; stepcrit check --base origin/main --junit stepcrit.xml; stepcrit check traces/*.json.gz --base ./before --show-passed; stepcrit check --tighten
    """
    from stepcrit.answers.check import answer  # noqa: PLC0415 - numpy loads here
    from stepcrit.cli import judging  # noqa: PLC0415
    from stepcrit.cli.checkfiles import check_files, write_junit  # noqa: PLC0415

    asked = judging.Asked(tuple(traces or ()), config, base, trust_config, judging.which_steps(steps))
    options = session_options(
        boundary=boundary,
        step_regex=step_regex,
        optimizer_regex=optimizer_regex,
        limits=limit,
        classes=classes,
        timings=timings,
    )
    rules = judging.ruled(asked)
    if tighten:
        judging.check_own(rules)
    found = judging.check(asked, rules, options)
    read = [*(trace.path for trace in found.traces), *filter(None, (config, classes))]
    check_files((output, junit), read)
    if tighten:
        found = judging.tightened(rules, found)
    if junit:
        write_junit(found, junit)
    is_table = fmt == Format.CSV or (
        fmt is None and (output or "").lower().endswith(".csv")
    )  # for a machine: every row
    emit(answer(found, show_passed=show_passed or is_table), fmt=fmt, as_json=as_json, output=output)
    tell_runner(found, *read)
    raise typer.Exit(found.exit_code)
