"""`stepcrit schema`."""

from __future__ import annotations

from typing import Annotated

import typer

from stepcrit.cli.options import OutputOpt
from stepcrit.cli.output import Stdout
from stepcrit.cli.targets import check_target
from stepcrit.errors import UsageError, quoted

CONFIG_WORDS = "stepcrit.toml, and [tool.stepcrit] of pyproject.toml"


def add_to(root: typer.Typer) -> None:
    """Make this verb known to the command line."""
    root.command("schema")(schema)


def schema(
    name: Annotated[
        str | None,
        typer.Argument(
            help="config, or what an answer says of itself: analyze of stepcrit/analyze/1. Without one: the list.",
            show_default=False,
        ),
    ] = None,
    output: OutputOpt = None,
) -> None:
    """The JSON Schema (2020-12) of the configuration, or of what a verb writes with --json.

    Examples: stepcrit schema; stepcrit schema analyze; stepcrit schema config -o stepcrit.schema.json
    """
    text = _schema_text(name) if name else _list()
    if not output:
        Stdout.now().write(text)
        return
    from stepcrit.report.write import write_output  # noqa: PLC0415 - rich loads here

    check_target(output, "")
    write_output(text.encode(), output)


def _list() -> str:
    """Every name, and what it is of."""
    from stepcrit.report.schemas.every import DATA  # noqa: PLC0415 - numpy loads here

    told = {"config": CONFIG_WORDS} | {name: words for name, (words, _) in DATA.items()}
    width = max(map(len, told)) + 2
    lines = [f"  {name:<{width}}{words}" for name, words in told.items()]
    return "\n".join(["stepcrit schema NAME: one of these", "", *lines]) + "\n"


def _schema_text(name: str) -> str:
    """A schema as JSON.

    Raises:
        UsageError: there is none of that name.
    """
    import orjson  # noqa: PLC0415 - only this needs it

    from stepcrit.report.schemas.every import DATA, DIALECT  # noqa: PLC0415
    from stepcrit.report.schemas.every import schema as of_answer  # noqa: PLC0415

    if name == "config":
        from stepcrit.ingest.config import config_schema  # noqa: PLC0415

        made = {"$schema": DIALECT, "title": "stepcrit/config/1", "description": CONFIG_WORDS}
        made |= config_schema()
    elif name in DATA:
        made = of_answer(name)
    else:
        raise UsageError(f"no schema {quoted(name)}", do=f"one of config, {', '.join(DATA)}")
    return orjson.dumps(made, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()
