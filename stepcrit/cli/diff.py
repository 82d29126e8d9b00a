"""`stepcrit diff`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperCommand

from stepcrit.cli.options import (
    BoundaryOpt,
    ClassesOpt,
    FloorsOpt,
    FormatOpt,
    JsonOpt,
    LimitOpt,
    OptimizerRegexOpt,
    OutputOpt,
    SalvageOpt,
    StepRegexOpt,
    StrictOpt,
    session_options,
)
from stepcrit.cli.output import emit, folder_inputs, tell
from stepcrit.cli.targets import STDIN, check_target
from stepcrit.errors import UsageError, quoted

if TYPE_CHECKING:
    from typer._click.core import Context  # typer holds a click of its own

    from stepcrit.analyses.judgement import Predicted
    from stepcrit.answers.sides import Run
    from stepcrit.session import Options

FAILED, OPEN = 1, 4
MOST_RUNS = 100
LARGEST_SHARE = 10
SEVERAL = ("--base", "--new")


class Runs(TyperCommand):
    """`--base a b --new c d` means `--base a --base b --new c --new d`."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Repeat the option in front of each of its files."""
        spread, option, is_first = [], "", False
        for word in args:
            if word.startswith("-") and word != STDIN:
                option, is_first = (word, True) if word in SEVERAL else ("", False)
            elif option and not is_first:
                spread.append(option)
            else:
                is_first = False
            spread.append(word)
        return super().parse_args(ctx, spread)


RunsOpt = Annotated[
    list[str] | None,
    typer.Option(
        "--base",
        help="Runs of the base: several files, from three a side on compared by run.",
        show_default=False,
    ),
]
NewRunsOpt = Annotated[
    list[str] | None, typer.Option("--new", help="Runs of what is judged.", show_default=False)
]


def add_to(root: typer.Typer) -> None:
    """Make this verb known to the command line."""
    root.command("diff", cls=Runs)(diff)


def diff(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="A B",
            help="Base and new: each a trace as for analyze, or REF:PATH as it was at a git ref.",
            show_default=False,
        ),
    ] = None,
    base: RunsOpt = None,
    new: NewRunsOpt = None,
    threshold: Annotated[
        str, typer.Option("--threshold", help="What counts as a change: 1%, or 0.01.")
    ] = "1%",
    fail: Annotated[
        bool,
        typer.Option(
            "--fail",
            help="Exit 1 on a regression, 4 where that cannot be told: inconclusive, not comparable, partial.",
        ),
    ] = False,
    prediction: Annotated[
        str | None,
        typer.Option(
            "--prediction",
            help="Judge what whatif --save kept: did the change save that?",
            show_default=False,
        ),
    ] = None,
    boundary: BoundaryOpt = None,
    strict: StrictOpt = False,
    salvage: SalvageOpt = False,
    limit: LimitOpt = None,
    floors: FloorsOpt = "none",
    step_regex: StepRegexOpt = None,
    optimizer_regex: OptimizerRegexOpt = None,
    classes: ClassesOpt = None,
    fmt: FormatOpt = None,
    as_json: JsonOpt = False,
    output: OutputOpt = None,
) -> None:
    """Did my step get longer, where, and what would show why: two traces, or runs against runs.

    Examples: stepcrit diff before.json after.json --threshold 2%; stepcrit diff --base a1.json a2.json a3.json --new b1.json b2.json b3.json --fail
    """
    before, after = _sides(paths or [], base or [], new or [])
    share = parse_share(threshold)
    options = session_options(
        boundary=boundary,
        step_regex=step_regex,
        optimizer_regex=optimizer_regex,
        strict=strict,
        floors=floors,
        salvage=salvage,
        limits=limit,
        classes=classes,
    )
    from stepcrit.answers.compared import Asked, Conclusion, compared  # noqa: PLC0415 - numpy loads here
    from stepcrit.answers.diff import document  # noqa: PLC0415

    asked = Asked(share, _prediction(prediction))
    told = compared(_runs(before, options), _runs(after, options), asked)
    answer = document(told, options.told())
    for path in (*before, *after, *([prediction] if prediction else [])) if output else ():
        check_target(str(output), path, *folder_inputs(answer, path))
    emit(answer, fmt=fmt, as_json=as_json, output=output, source=before[0])
    if fail and not told.passes:
        why = "" if told.is_told else "; one side does not tell of its configuration what the other does"
        tell(f"not passed: {told.conclusion}{why}\n")
        raise typer.Exit(FAILED if told.conclusion == Conclusion.REGRESSION else OPEN)


def _sides(paths: list[str], base: list[str], new: list[str]) -> tuple[list[str], list[str]]:
    """The files of each side.

    Raises:
        UsageError: it is not clear which file is on which side, or one side has none.
    """
    do = "stepcrit diff before.json after.json, or --base a1 a2 --new b1 b2"
    if paths and (base or new):
        raise UsageError("two traces and --base or --new contradict each other", do=do)
    if not (base or new):
        if len(paths) != 2:
            raise UsageError(f"two traces are compared, got {len(paths)}", do=do)
        base, new = paths[:1], paths[1:]
    if not (base and new):
        raise UsageError("one side has no trace", do=do)
    if max(len(base), len(new)) > MOST_RUNS:
        raise UsageError(f"more than {MOST_RUNS} runs on a side", do="choose some of them")
    if [*base, *new].count(STDIN) > 1:
        raise UsageError("stdin can be read once", do="name a file for the other side")
    return base, new


def parse_share(words: str) -> float:
    """A share, in percent or as a number.

    >>> parse_share("1%"), parse_share("0.02"), parse_share("2.5 %")
    (0.01, 0.02, 0.025)

    Raises:
        UsageError: it is none, or larger than can be meant.
    """
    from stepcrit.graph.change import parse_number  # noqa: PLC0415 - numpy loads here

    number, is_percent = words.strip().removesuffix("%"), words.strip().endswith("%")
    value = parse_number(number)
    if value is None or value > 100 * LARGEST_SHARE:
        raise UsageError(f"--threshold cannot read {quoted(words)}", do="write 1%, or 0.01")
    if not is_percent and value >= 1:  # 5 would let a step take six times as long
        raise UsageError(f"--threshold {quoted(words)} may be a share or percent", do=f"write {number}%")
    return float(value / 100 if is_percent else value)


def _runs(paths: list[str], options: Options) -> list[Run]:
    """Each file as its representative step."""
    from stepcrit.answers.sides import Run  # noqa: PLC0415 - numpy loads here
    from stepcrit.ingest.gitref import open_ref, split_ref  # noqa: PLC0415 - git is rarely asked
    from stepcrit.session import load  # noqa: PLC0415

    runs = []
    for path in paths:
        at_ref = split_ref(path)
        view = load(open_ref(*at_ref) if at_ref else path, options).view()
        runs.append(Run(view, path if at_ref else ""))
    return runs


def _prediction(path: str | None) -> Predicted | None:
    from stepcrit.cli.predicted import read_prediction  # noqa: PLC0415 - msgspec loads here

    return None if path is None else read_prediction(path)
