"""The files beside the answer of `check`: none is an input, no two are one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stepcrit.cli.output import ReaderGoneError
from stepcrit.cli.targets import check_target, same_target
from stepcrit.errors import UsageError

if TYPE_CHECKING:
    from stepcrit.model.checked import Checked


def check_files(written: Sequence[str | None], read: Sequence[str]) -> None:
    """Refuse outputs that are inputs, or the same file.

    Raises:
        UsageError: as said.
    """
    targets = [target for target in written if target]
    for target in targets:
        check_target(target, "", *read)
    if len(targets) > 1 and same_target(targets[0], targets[1]):
        raise UsageError("-o and --junit name the same file", do="give each its own")


def write_junit(checked: Checked, path: str) -> None:
    """Write the verdicts as JUnit XML.

    Raises:
        OutputError: it could not be written.
    """
    from stepcrit.report.junit import junit  # noqa: PLC0415 - only here
    from stepcrit.report.write import write_output  # noqa: PLC0415 - rich loads here

    try:
        write_output(junit(checked).encode(), path)
    except BrokenPipeError as err:
        raise ReaderGoneError from err
