"""`stepcrit explain`."""

from __future__ import annotations

from typing import Annotated

import typer

from stepcrit.cli.output import Stdout


def add_to(root: typer.Typer) -> None:
    """Make this verb known to the command line."""
    root.command("explain")(explain)


def explain(
    topic: Annotated[
        str | None,
        typer.Argument(
            help="A term on the screen, a class, or a code. Without one: the list of topics.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """What a term or a number means, how it is computed, and what it cannot say.

    Examples: stepcrit explain; stepcrit explain critical-path; stepcrit explain G210
    """
    from stepcrit.report.topics import fitted, show, topic_list  # noqa: PLC0415 - reads the texts

    stdout = Stdout.now()
    stdout.write(fitted(show(topic) if topic else topic_list(), stdout.width) + "\n")
