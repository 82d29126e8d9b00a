"""A trace small enough for git, that tells of no one and answers as before."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import BinaryIO

from stepcrit.errors import UsageError
from stepcrit.report.write import write_output
from stepcrit.slimming.slimmer import Slimmed, SlimOptions, slim_trace


def slim(
    source: str | os.PathLike[str] | BinaryIO,
    out: str | os.PathLike[str] | None = None,
    options: SlimOptions | None = None,
    *,
    force: bool = False,
) -> Slimmed:
    """Make a trace small enough for git, and free of what tells where it was recorded.

    Every number of `analyze` and `whatif` for the steps that stay is the same before and after; `stepcrit explain
    slim` lists what differs.

    Args:
        source: a path, a folder with one trace, a binary stream, or "-" for stdin.
        out: where to write it, gzipped; None: nowhere, the result has the bytes.
        options: which steps, whether stacks stay, and so on.
        force: replace a file that is there.

    Returns:
        The slimmed trace (`data`), and what became of the one it was made of.

    Raises:
        InputError: the input is no usable torch.profiler trace.
        PartialError: it changed while it was read; with `strict`, it had to be repaired.
        UsageError: there are no such steps, or `out` is there already, or it is the input.
        OutputError: it could not be written.

    Example:
        stepcrit.slim("rank0.pt.trace.json.gz", "traces/rank0.json.gz").after.file_bytes
    """
    if out is not None:
        check_free(out, force=force)
        _check_other(source, out, "")
    slimmed = slim_trace(source, options or SlimOptions())
    if out is not None:
        _check_other(source, out, slimmed.source)
        write_output(slimmed.data, out)
    return slimmed


def check_free(out: str | os.PathLike[str], *, force: bool) -> None:
    """Refuse a file that is there already; a device or a pipe is no file to be lost.

    Raises:
        UsageError: see above.
    """
    path = os.fspath(out)
    if not force and os.path.isfile(path):  # noqa: PTH113 - a string is enough
        raise UsageError(
            "the output is there already", where=path, do="give another path with -o, or --force"
        )


def _check_other(source: str | os.PathLike[str] | BinaryIO, out: str | os.PathLike[str], inside: str) -> None:
    """Refuse an output that is the trace, or the one that lies `inside` the folder that was named."""
    if not isinstance(source, (str, os.PathLike)):
        return
    path = os.path.join(source, inside) if os.path.isdir(source) else source  # noqa: PTH112, PTH118
    with suppress(OSError, ValueError):
        if os.path.samefile(path, out):  # noqa: PTH121
            raise UsageError(
                "the output would overwrite the trace", where=os.fspath(out), do="give another path"
            )


__all__ = ["SlimOptions", "Slimmed", "check_free", "slim", "slim_trace"]
