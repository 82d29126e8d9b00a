"""Where an answer goes: format by option or suffix, to a file or to stdout."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from stepcrit.cli.options import Format
from stepcrit.errors import UsageError

if TYPE_CHECKING:
    from stepcrit.model.section import Document

SUFFIXES = {".json": Format.JSON, ".md": Format.MD, ".csv": Format.CSV, ".txt": Format.TEXT}


def emit(
    document: Document, *, fmt: Format | None, as_json: bool, output: str | None, source: str = ""
) -> None:
    """Render an answer and put it where the user wants it.

    Raises:
        UsageError: the output is the input, or formats contradict each other.
        OutputError: the file could not be written.
    """
    from stepcrit.report.screen import Screen  # noqa: PLC0415 - rich loads here
    from stepcrit.report.write import render, write_output  # noqa: PLC0415

    if as_json and fmt not in (None, Format.JSON):
        raise UsageError(f"--json and --format {fmt} contradict each other")
    if output and source and _same_file(output, source):
        raise UsageError("the output would overwrite the trace", do="give another path to -o")
    suffix = os.path.splitext(output or "")[1].lower()  # noqa: PTH122 - a string is enough
    chosen = Format.JSON if as_json else fmt or SUFFIXES.get(suffix, Format.TEXT)
    screen = None if output else Screen.of(sys.stdout)
    write_output(render(document, chosen.value, screen), output or sys.stdout)


def _same_file(a: str, b: str) -> bool:
    return os.path.exists(a) and os.path.exists(b) and os.path.samefile(a, b)  # noqa: PTH110, PTH121 - strings are enough
