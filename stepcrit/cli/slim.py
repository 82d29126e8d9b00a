"""`stepcrit slim`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated

import typer

from stepcrit.cli.lookup import read_small
from stepcrit.cli.options import LimitOpt, SalvageOpt, StrictOpt
from stepcrit.cli.output import ReaderGoneError, Stdout, say, tell
from stepcrit.cli.targets import check_target
from stepcrit.errors import ForeignInputError, UsageError, quoted
from stepcrit.report.safe import safe_text
from stepcrit.units import bytes_text, count_text

if TYPE_CHECKING:
    from stepcrit.ingest.limits import Limits
    from stepcrit.slimming import Slimmed

KEY_VARIABLE = "STEPCRIT_SLIM_KEY"
LEAST_KEY_BYTES = 16
LARGEST_KEY_BYTES = 1 << 16

_KINETO_NAME = re.compile(r".+_\d+(?:\.\d{10,20})?\.(?:pt\.)?trace\.json(?:\.gz)?")
"""A name that PyTorch makes of the host and the process."""

_SIZE = re.compile(r"(\d{1,9}(?:\.\d{1,6})?) ?([kKMG]i?)?B?")
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}


def add_to(root: typer.Typer) -> None:
    """Make this verb known to the command line."""
    root.command("slim")(slim)


def slim(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="TRACE",
            help="A trace, or - for stdin. With --check: any number of them.",
            show_default=False,
        ),
    ],
    output: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            help="The file to write; - for stdout. Default: NAME.slim.json.gz beside TRACE.",
            show_default=False,
        ),
    ] = None,
    steps: Annotated[
        str | None,
        typer.Option(
            "--steps",
            help="12, 12-15, last:3, median, all. Default: all of up to 6, else 5 around the median.",
            show_default=False,
        ),
    ] = None,
    stacks: Annotated[bool, typer.Option("--stacks", help="Keep Python frames and call stacks.")] = False,
    anonymize: Annotated[
        bool, typer.Option("--anonymize", help="Replace your own names of ranges, files and modules too.")
    ] = False,
    key_file: Annotated[
        str | None,
        typer.Option(
            "--key-file",
            help=f"A secret that makes tokens equal across ranks and runs (or {KEY_VARIABLE}).",
            show_default=False,
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Write nothing; exit 1 for a trace that is too large or tells of its host, user or paths.",
        ),
    ] = False,
    max_size: Annotated[
        str, typer.Option("--max-size", help="The largest file that --check lets pass.")
    ] = "2MB",
    strict: StrictOpt = False,
    salvage: SalvageOpt = False,
    limit: LimitOpt = None,
) -> int:
    """A trace small enough for git, without host, user and paths; its numbers stay.

    `stepcrit slim trace.json.gz -o traces/rank0.json.gz --steps last:3` writes the last three steps.

    Example: stepcrit slim --check trace.json.gz
    """
    from stepcrit.ingest.limits import default_limits, parse_limits  # noqa: PLC0415 - msgspec loads here

    limits = parse_limits(default_limits(os.environ), tuple(limit or ()))
    if check:
        return _check(paths, size_of(max_size), limits)
    if len(paths) != 1:
        raise UsageError(
            f"slim takes one trace, not {len(paths)}", do="slim them one by one, or --check them"
        )
    key = read_key(key_file)
    _check_output(paths[0], output, key_file, force=force)
    from stepcrit.slimming import SlimOptions, slim_trace  # noqa: PLC0415 - numpy loads here

    slimmed = slim_trace(paths[0], SlimOptions(steps, stacks, anonymize, key, salvage, strict, limits))
    target = output or default_target(paths[0], slimmed.rank)
    if not output:
        _check_output(paths[0], target, key_file, force=force)
    elif target != "-" and os.path.isdir(paths[0]):  # noqa: PTH112 - a string is enough
        check_target(target, paths[0], os.path.join(paths[0], slimmed.source))  # noqa: PTH118
    _put(slimmed.data, target)
    tell(report(slimmed, target))
    return 0


def size_of(words: str) -> int:
    """Bytes of `2MB`, `700 kB`, `1.5MiB`, `2000000`.

    Raises:
        UsageError: it cannot be read.
    """
    found = _SIZE.fullmatch(words.strip())
    if not found:
        raise UsageError(f"--max-size cannot read {quoted(words)}", do="give a size: 2MB, 700kB, 1MiB")
    return int(Decimal(found[1]) * _UNITS[(found[2] or "").lower()])


def read_key(path: str | None) -> bytes:
    """The key of a file, or of the environment; nothing where there is none.

    Raises:
        UsageError: it cannot be read, or could be guessed.
    """
    if path is None:
        key, where = os.fsencode(os.environ.get(KEY_VARIABLE, "")), KEY_VARIABLE
        if not key:
            return b""
    else:
        try:
            key, where = read_small(path, LARGEST_KEY_BYTES), path
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise UsageError(f"the key cannot be read: {why}", where=path, do="name a file") from error
    if len(key.strip()) < LEAST_KEY_BYTES:
        raise UsageError(
            f"a key of fewer than {LEAST_KEY_BYTES} bytes can be guessed",
            where=where,
            do="make one: head -c 32 /dev/urandom > slim.key (and do not commit it)",
        )
    return key.strip()


def default_target(source: str, rank: int) -> str:
    """Where the slimmed trace goes: beside the trace, under its name, unless PyTorch made that of the host's.

    Raises:
        UsageError: there is no name to make one of.
    """
    if source == "-" or os.path.isdir(source):  # noqa: PTH112 - a string is enough
        raise UsageError(
            "a trace from stdin or a folder has no name of its own", do="say where it goes: -o FILE"
        )
    folder, name = os.path.split(source)
    if _KINETO_NAME.fullmatch(name):
        stem = f"rank{rank}" if rank >= 0 else "trace"
    else:
        stem = re.sub(r"(\.pt)?(\.trace)?(\.json)?(\.gz|\.zst)?$", "", name)
    return os.path.join(folder, f"{stem.removesuffix('.slim')}.slim.json.gz")  # noqa: PTH118


def _check_output(source: str, target: str | None, key_file: str | None, *, force: bool) -> None:
    """Refuse, before any work, an output that cannot or should not be."""
    if target is None:
        default_target(source, 0)
    elif target != "-":
        check_target(target, source, *([key_file] if key_file else []))
        if os.path.isfile(target) and not force:  # noqa: PTH113 - a string is enough
            raise UsageError(
                "the output is there already", where=target, do="give another path with -o, or --force"
            )
    elif Stdout.now().isatty():
        raise UsageError(
            "a packed trace is not for a terminal", do="send it to a file: -o traces/rank0.json.gz"
        )


def _put(data: bytes, target: str) -> None:
    """The trace, whole or not at all."""
    if target == "-":
        Stdout.now().send(data)
        return
    from stepcrit.report.write import write_output  # noqa: PLC0415 - rich loads here

    try:
        write_output(data, target)
    except BrokenPipeError as error:  # a pipe that has a name
        raise ReaderGoneError from error


def report(slimmed: Slimmed, target: str) -> str:
    """What became of a trace, for stderr."""
    mark, (asked, stay) = slimmed.mark, slimmed.steps
    before, after = slimmed.before, slimmed.after
    steps = mark.first_step if asked == 1 else f"{mark.first_step} to {mark.last_step}"
    opening = {0: "", 1: ", and the one before"}.get(stay - asked, f", and {stay - asked} before")
    lines = [
        f"slim   {safe_text(slimmed.source)} -> {safe_text(target)}",
        f"steps  {safe_text(steps)} ({asked} of {mark.steps_of}{opening}): {slimmed.why}",
        "",
        f"{'':10}{'before':>12}{'after':>12}",
        *(
            f"{what:10}{old:>12}{new:>12}"
            for what, old, new in (
                ("file", bytes_text(before.file_bytes), bytes_text(after.file_bytes)),
                ("a step", "", bytes_text(after.file_bytes // stay)),
                ("text", bytes_text(before.text_bytes), bytes_text(after.text_bytes)),
                ("events", count_text(before.events), count_text(after.events)),
            )
        ),
        "",
        *_listed("left out", slimmed.left_out),
        *_listed("replaced", slimmed.replaced),
    ]
    if slimmed.keys_left_out:
        lines.append(f"header keys left out: {len(slimmed.keys_left_out)}")
    if slimmed.damage:
        harms = "; ".join(str(one.harm) for one in slimmed.damage)
        lines.append(f"damaged: {harms}. The slimmed trace says so too.")
    return "\n".join(lines).rstrip("\n") + "\n"


def _listed(what: str, counts: Mapping[str, int]) -> list[str]:
    """Counts in a line."""
    return (
        [f"{what}: " + ", ".join(f"{count_text(n)} × {name}" for name, n in counts.items())] if counts else []
    )


def _check(paths: list[str], most: int, limits: Limits) -> int:
    """Look at traces without writing; 1 where one is not fit to be committed."""
    from stepcrit.slimming.looking import look_at  # noqa: PLC0415 - msgspec loads here

    failed = looked = 0
    for path in paths:
        try:
            told = look_at(path, limits)
        except ForeignInputError as error:
            tell(f"{path}: skipped, no trace: {error.what}\n")
            continue
        looked += 1
        faults = (
            [f"{bytes_text(told.file_bytes)} is more than {bytes_text(most)}"]
            if told.file_bytes > most
            else []
        )
        if told.words:
            words = ", ".join(f"{count_text(n)} × {what}" for what, n in told.words.items())
            faults.append(f"it tells where it was recorded: {words}")
        if faults:
            failed += 1
            say(f"{safe_text(path)}: {'; '.join(faults)}\n")
    if failed:
        tell("do  stepcrit slim TRACE, and commit what it writes\n")
    else:
        say(f"{looked} {'trace' if looked == 1 else 'traces'}: small enough, without host, user or path\n")
    return 1 if failed else 0
