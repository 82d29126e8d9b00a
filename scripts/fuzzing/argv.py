"""Command lines: every command and option there is, with right, wrong and absurd values, in process."""

from __future__ import annotations

import gzip
import io
import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any

import typer

from fuzzing import odd
from fuzzing.asking import TOML, WORDS, somewhere
from fuzzing.judge import Target, fault, sampled, strict_json
from fuzzing.seeds import job
from stepcrit.cli.main import program, run

CODES = {0, 1, 2, 3, 4, 5, 130, 141, 143}
"""Every documented exit code but the one that says we broke a promise."""

TIMED = re.compile(rb"\S+ +[\d.]+ ms +[\d.]+%$")
"""A line of --timings."""

ENCODINGS = ("utf-8", "utf-8", "ascii", "latin-1")
VALUES = {
    "--format": ("text", "json", "md", "csv"), "--boundary": ("host", "launch", "device", "update"), "--step": ("-1", "0", "1", "ProfilerStep#1", "median"),
    "--by": ("op", "kernel", "class", "module", "line", "collective"), "--floors": ("none", "auto", "launch=5us"), "--top": ("1", "10", "1000"),
    "--side": ("auto", "device", "host", "both"), "--threshold": ("1%", "0.5", "0"), "--new": ("good.json.gz", "-"), "--prediction": ("saved.json", "good.json"), "--stream": ("7", "20", "-1"), "--output": ("out.json", "out.md", "folder", "good.json", "none/out"),
    "--save": ("saved.json", "folder"), "--around": ("aten::*", "*"), "--step-regex": ("ProfilerStep", ".*", "("), "--target": ("10us", "0ns"),
    "--inject": ("*", "aten::mm"), "--model": ("free", "lanes", "queue:16", "comm:k=2", "contend"), "--shrink": ("*=0.5", "aten::mm=0"),
    "--steps": ("all", "median", "worst", "last:2", "1", "1-2", "last:0"), "--key-file": ("good.json", "empty.json"), "--max-size": ("2MB", "1kB"),
    "--speedup": ("*=2x",), "--set": ("*=1us",), "--add": ("*=1us",), "--remove": ("*", "aten::mm"),
    "--part": ("40ms", "a=40%:2"), "--of": ("100ms",), "--observed": ("1.1x",), "--op-speedup": ("2x", "inf"), "--a": ("30s+1s",), "--b": ("0s+1.2s",),
    "--at": ("50", "0"), "--bandwidth": ("3350GB/s",), "--roof": ("1000GFLOP/s",), "--intensity": ("2", "1e9"), "--gemm": ("64,64,64",), "--run": ("8,100ms", "16,60ms"),
    "--base": (".", "./folder", "", "main", "good.json", "cut.json.gz"), "--config": ("stepcrit.toml", "good.json"), "--junit": ("out.xml", "folder"),
}  # fmt: skip
"""Right values, by option; others are made from all of these and from what nobody should type."""

PLACES = (
    "good.json",
    "good.json.gz",
    "-",
    "folder",
    "cut.json.gz",
    "foreign.json",
    "empty.json",
    "two",
    "missing.json",
    "./good.json",
    "odd\u202e näme.json",
    "",
    ".",
)


def typed(dice: Random) -> bytes:
    """A word a line, after one line about the world around the command."""
    world = {
        "encoding": dice.choice(ENCODINGS),
        "toml": dice.choice((None, None, 0, 1, 2, 11, -1, -2)),
        "stdin": dice.choice(("good", "cut", "empty")),
    }
    words = _command(dice)
    for _ in range(dice.choice((0, 0, 0, 1, 2))):
        _spoil(words, dice)
    return b"".join(json.dumps(line).encode() + b"\n" for line in (world, *words))


def _command(dice: Random) -> list[str]:
    """A command with some of its options, most of them with right values."""
    path, options = dice.choice(commands())
    words = [*path]
    if (
        path
        and path[0] in ("analyze", "critical", "whatif", "check", "diff", "doctor")
        and dice.random() < 0.95
    ):
        words.append(dice.choice(("good.json", "good.json", "good.json.gz", *PLACES)))
    if path == ("init",):
        words += dice.choice(
            ([], ["good.json"], ["good.json.gz", "-o", "out.toml"], ["*"], [dice.choice(PLACES)])
        )
    if path == ("schema",):
        words += dice.choice(([], ["config"], ["whatif-rank"], [dice.choice(odd.NAMES)]))
    if path == ("explain",):
        words += dice.choice(([], ["critical-path"], ["G210"], [dice.choice(odd.NAMES)]))
    if path == ("diff",):
        words.append(dice.choice(PLACES))
    if path == ("whatif",):
        words += dice.choice(
            (
                ["--rank"],
                ["--shrink", "*=0.5"],
                ["--remove", "aten::*", "--curve"],
                ["--target", "10us"],
                ["--inject", "*"],
                [],
            )
        )
    for names, is_flag in dice.sample(options, min(len(options), dice.choice((0, 1, 1, 2, 4)))):
        words += [dice.choice(names)] if is_flag else _with_value(names, dice)
    return words


def _with_value(names: tuple[str, ...], dice: Random) -> list[str]:
    right = next((VALUES[name] for name in names if name in VALUES), WORDS)
    value = dice.choice(right) if dice.random() < 0.8 else _word(dice)
    return dice.choice(([names[-1], value], [names[-1], value], [f"{names[-1]}={value}"]))


def _word(dice: Random) -> str:
    """Any word, but none that leads out of the folder and none that an operating system could not hand over."""
    every = [value for values in VALUES.values() for value in values]
    word = dice.choice(
        (
            dice.choice(every),
            dice.choice(WORDS),
            dice.choice(odd.NAMES),
            str(dice.choice(odd.NUMBERS)),
            "\udcff",
            "--",
            "-",
        )
    )
    return word.replace("/", "_").replace("\0", "").replace("\ud800", "\udcee")


def _spoil(words: list[str], dice: Random) -> None:
    """Leave out, double, move or add a word."""
    at = dice.randint(0, len(words))
    kind = dice.randrange(4)
    if kind == 0:
        words[at : at + 1] = []
    elif kind == 1:
        words[at:at] = words[at : at + 2]
    elif kind == 2:
        dice.shuffle(words)
    else:
        words.insert(
            at,
            dice.choice(
                (_word(dice), dice.choice(dice.choice(commands())[1] or [(("--help",), True)])[0][0])
            ),
        )


@lru_cache(maxsize=1)
def commands() -> tuple[tuple[tuple[str, ...], list[tuple[tuple[str, ...], bool]]], ...]:
    """Every command as its words, with its options as (names, is a switch)."""
    return tuple(_commands_of(typer.main.get_command(program()), ()))


def _commands_of(
    command: Any, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], list[tuple[tuple[str, ...], bool]]]]:
    options = [
        (tuple(one.opts), bool(one.is_flag)) for one in command.params if one.param_type_name == "option"
    ]
    yield path, [*options, (("-h", "--help"), True)]
    for name, inner in getattr(command, "commands", {}).items():
        yield from _commands_of(inner, (*path, name))


# --- running one -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command left."""

    code: int
    out: bytes
    told: bytes


def check_argv(data: bytes) -> None:
    """An exit code of the documented ones, no traceback, sound JSON; a sample is run twice."""
    try:
        world, *words = (json.loads(line) for line in data.splitlines())
        world["encoding"], world["toml"], world["stdin"]
    except (ValueError, KeyError, TypeError):
        return
    ran = _run(world, words)
    if ran.code not in CODES or b"Traceback" in ran.told:
        fault(f"exit code {ran.code}\n{ran.told.decode('utf-8', 'backslashreplace')[-3000:]}")
    if ran.out.startswith(b"{"):
        strict_json(ran.out)
    is_answered = ran.code in (1, 4) and "check" in words  # a verdict, which -o writes elsewhere
    if ran.code not in (0, 1) and not ran.told and not is_answered:
        fault(f"exit code {ran.code} without a word")
    if sampled(data, 8) and _untimed(_run(world, words)) != _untimed(ran):
        fault("run twice, answered twice differently")


def _untimed(ran: Ran) -> Ran:
    """What ran, without the lines of --timings: those are never the same twice."""
    lines = ran.told.splitlines(keepends=True)
    return replace(ran, told=b"".join(line for line in lines if not TIMED.match(line)))


def _run(world: Mapping[str, Any], words: list[str]) -> Ran:
    """Run in a folder of its own, with streams of its own."""
    streams = [io.TextIOWrapper(io.BytesIO(files().get(f"{world['stdin']}.json", b"")), "utf-8")]
    streams += [
        io.TextIOWrapper(io.BytesIO(), world["encoding"], errors="backslashreplace") for _ in range(2)
    ]
    before = sys.stdin, sys.stdout, sys.stderr
    with somewhere(XDG_CACHE_HOME="cache", STEPCRIT_DEBUG="1", COLUMNS="80"):
        _furnish(Path(), world["toml"])
        folder = str(Path.cwd()).encode()
        sys.stdin, sys.stdout, sys.stderr = streams
        try:
            code = run(list(words))
        finally:
            sys.stdin, sys.stdout, sys.stderr = before
    out, told = (stream.buffer.getvalue().replace(folder, b"/folder") for stream in streams[1:])
    return Ran(code, out, told)


def _furnish(folder: Path, toml: int | None) -> None:
    for name, content in files().items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    if toml is not None:
        (folder / "stepcrit.toml").write_bytes(TOML[toml])


@lru_cache(maxsize=1)
def files() -> Mapping[str, bytes]:
    """The files that a command line may name."""
    good = json.dumps(job(Random("a good trace"))).encode()
    packed = gzip.compress(good, mtime=0)
    return {
        "good.json": good, "good.json.gz": packed, "cut.json.gz": packed[: len(packed) // 2], "cut.json": good[: len(good) // 2],
        "foreign.json": b'{"nodes": [], "schema": "1"}', "empty.json": b"", "folder/one.json": good, "two/a.json": good, "two/b.json.gz": packed,
        "odd\u202e näme.json": good,
    }  # fmt: skip


ARGV = Target("argv", typed, check_argv, is_lines=True, bounded=500, chunk=250)
