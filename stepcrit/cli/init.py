"""`stepcrit init`."""

from __future__ import annotations

import glob
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from stepcrit.cli.config import CONFIG, PYPROJECT, project_config
from stepcrit.cli.lookup import files_like, from_here
from stepcrit.cli.options import LimitOpt, session_options
from stepcrit.cli.output import say
from stepcrit.cli.targets import check_target
from stepcrit.errors import PartialError, UsageError, quoted

if TYPE_CHECKING:
    from stepcrit.answers.proposal import Proposed
    from stepcrit.answers.sampled import Sampled

USUAL = ("traces/**/*.json", "traces/**/*.json.gz", "traces/**/*.json.zst")
"""Where a project keeps its traces."""

STDOUT = "-"
MOST_TRACES = 200
MEBIBYTE = 1 << 20
USUAL_SIZE = 2
"""Mebibytes that a committed trace may have, where none has more today."""

OPENING = """\
# What a step may cost, for `stepcrit check`; written by `stepcrit init` from what was measured.
# Behind each limit stands what it rests on. Raise one on purpose, lower it to keep a gain
# (stepcrit check --tighten). What a metric is: stepcrit explain metrics.
schema = 1

[check]
traces = {traces}
# A git ref, such as "origin/main": the same path there is the baseline. "": budgets only.
base = {base}
# Over the baseline counts may not grow, times by 5 % and 1 % of the step. Or: structure, none.
preset = "recommended"
# Which are judged of each trace: median, worst, all, or "12-15".
steps = "median"
# Another GPU, other shapes, other profiler options: error, warn or skip.
incomparable = "error"
max_trace_size = {size}

# Newer code makes a trace stale:
# [watch]
# "traces/*" = ["train.py", "models/**"]
"""


def add_to(root: typer.Typer) -> None:
    """Make this verb known to the command line."""
    root.command("init")(init)


def init(
    traces: Annotated[
        list[str] | None,
        typer.Argument(help="Traces, or globs of them. Default: those below traces/.", show_default=False),
    ] = None,
    base: Annotated[
        str, typer.Option("--base", help="What check is to compare with, such as origin/main.")
    ] = "",
    force: Annotated[bool, typer.Option("--force", help="Replace the file that is there.")] = False,
    limit: LimitOpt = None,
    output: Annotated[
        str, typer.Option("-o", "--output", help="The file to write; - only shows it.")
    ] = CONFIG,
) -> None:
    """Write a stepcrit.toml whose budgets are today's numbers, with room for their noise.

    Examples: stepcrit init traces/rank0.json.gz; stepcrit init "traces/**/*.json.gz" --base origin/main
    """
    from stepcrit.cli.judging import sampled  # noqa: PLC0415 - numpy loads here
    from stepcrit.report.write import write_output  # noqa: PLC0415 - rich loads here

    found = _found([from_here(one) for one in traces or USUAL], is_typed=bool(traces))
    paths = sorted({path for several in found.values() for path in several})
    _check_free(output, paths, is_forced=force)
    options = session_options(limits=limit)
    read = {path: sampled(path, options, "median") for path in paths}
    text = _text(tuple(found), base, read)
    _check_kept(text, read)
    if output == STDOUT:
        say(text)
        return
    write_output(text.encode(), output)
    if not output.startswith("/dev/"):
        say(_told(output, len(paths), base))


def _found(patterns: Sequence[str], *, is_typed: bool) -> dict[str, list[str]]:
    """Each pattern that means traces, with them.

    Raises:
        UsageError: one that was typed means none, or there is none at all, or they are too many.
    """
    found = {pattern: files_like(pattern, MOST_TRACES + 1) for pattern in patterns}
    missing = [pattern for pattern, paths in found.items() if not paths]
    if missing and is_typed:
        raise UsageError(f"no trace is called {', '.join(map(quoted, missing))}", do="check the path")
    if len(missing) == len(found):
        raise UsageError(
            "there is no trace below traces/", do="name some: stepcrit init path/to/trace.json.gz"
        )
    if sum(map(len, found.values())) > MOST_TRACES:
        raise UsageError(f"more than {MOST_TRACES} traces", do="name fewer")
    for path in (*found, *(path for paths in found.values() for path in paths)):
        if not _is_text(path):
            raise UsageError("the name is not UTF-8, which TOML has to be", where=path, do="rename it")
    return {pattern: paths for pattern, paths in found.items() if paths}


def _check_free(output: str, paths: Sequence[str], *, is_forced: bool) -> None:
    """Refuse to write over anything, but an older configuration that is to be replaced.

    Raises:
        UsageError: see above.
    """
    check_target(output, "", *paths) if output not in {CONFIG, STDOUT} else None
    if is_forced or output == STDOUT or output.startswith("/dev/"):
        return
    if os.path.lexists(output):
        raise UsageError(
            "it is there already", where=output, do="--force replaces it; -o FILE writes another"
        )
    if output == CONFIG and project_config() is not None:
        raise UsageError(
            f"{PYPROJECT} has [tool.stepcrit], and {CONFIG} would take its place",
            do="--force writes it all the same; -o FILE writes another",
        )


def _text(patterns: Sequence[str], base: str, read: Mapping[str, Sampled]) -> str:
    """The whole file."""
    from stepcrit.report.tomltext import toml_list, toml_string  # noqa: PLC0415

    largest = max(os.path.getsize(path) for path in read)  # noqa: PTH202 - a string is enough
    size = max(USUAL_SIZE, math.ceil(largest / MEBIBYTE))
    opening = OPENING.format(
        traces=toml_list(_slashed(one) for one in patterns),
        base=toml_string(base),
        size=toml_string(f"{size} MiB"),
    )
    tables = (line for path, now in read.items() for line in _table(path, now))
    return "\n".join([opening, *tables])


def _table(path: str, now: Sampled) -> Iterator[str]:
    """The budgets of one trace."""
    from stepcrit.answers.proposal import propose  # noqa: PLC0415 - numpy loads here
    from stepcrit.report.tomltext import toml_string  # noqa: PLC0415

    yield f"[budget.{toml_string(glob.escape(_slashed(path)))}]"
    yield from map(_line, propose(now))
    yield ""


def _line(one: Proposed) -> str:
    """One budget, and what it rests on."""
    from stepcrit.model.config import Level  # noqa: PLC0415
    from stepcrit.report.tomltext import amount, comment  # noqa: PLC0415
    from stepcrit.report.values import sentence_text  # noqa: PLC0415

    level = "" if one.level == Level.ERROR else f', level = "{one.level}"'
    return (
        f"{one.metric} = {{ max = {amount(one.limit, one.unit)}{level} }}  {comment(sentence_text(one.why))}"
    )


def _check_kept(text: str, read: Mapping[str, Sampled]) -> None:
    """Refuse budgets that their own traces do not keep: a check that begins by failing helps nobody.

    Raises:
        PartialError: a trace cannot be judged: it is damaged, or says nothing.
    """
    from stepcrit.answers.check import Against, check_trace  # noqa: PLC0415 - numpy loads here
    from stepcrit.answers.rules import rules_for  # noqa: PLC0415
    from stepcrit.ingest.config import parse_config  # noqa: PLC0415
    from stepcrit.model.checked import Effect  # noqa: PLC0415
    from stepcrit.report.verdicts import verdicts  # noqa: PLC0415

    config = parse_config(text.encode(), CONFIG)
    for path, now in read.items():
        found = check_trace(_slashed(path), rules_for(config, _slashed(path)), now, Against())
        if found.effect != Effect.NONE:
            worst = verdicts(found)[0]
            raise PartialError(
                f"no budget can rest on this trace: {worst.words} ({worst.name})",
                where=path,
                do="record it again, or leave it out",
            )


def _told(output: str, count: int, base: str) -> str:
    traces = f"{count} {'trace' if count == 1 else 'traces'}"
    config = "" if output == CONFIG else f" --config {output}"
    lines = [f"wrote {output}: budgets of {traces}, which keep them", f"next: stepcrit check{config}"]
    if base:
        lines.append(f"as long as {base} has none, check says that these judge themselves: --trust-config")
    return "\n".join([*lines, ""])


def _is_text(path: str) -> bool:
    """Whether a path is text: bytes in no encoding come as halves of surrogate pairs."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _slashed(path: str) -> str:
    return path.replace(os.sep, "/")
