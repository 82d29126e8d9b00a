"""A CI runner that reads a log.

`commands` does what GitHub's manual of workflow commands says, and what its runner does besides: blanks before "::"
do not matter, nor does case; what stands between two "::" is the command, data after them; "##[" works anywhere.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

WANTING = ("::error::x", "::add-mask::y", "##[error]z", "%0A::set-output name=a::b", "\u3000::debug::c", " \t::group::d",
           "##[group]e", "::stop-commands::f", "##vso[task.setvariable variable=PATH]g")  # fmt: skip


@dataclass(frozen=True)
class Command:
    """One command that a runner would carry out."""

    name: str
    properties: dict[str, str]
    data: str


def commands(log: str) -> list[Command]:
    """Every command in a log."""
    return [found for line in re.split(r"\r\n|\r|\n", log) if (found := command_of(line))]


def command_of(line: str) -> Command | None:
    trimmed = line.lstrip()
    head, colons, data = trimmed[2:].partition("::")
    if trimmed.startswith("::") and colons:
        name, _, listed = head.partition(" ")
        pairs = [pair.partition("=") for pair in listed.split(",") if "=" in pair]
        return Command(name.lower(), {k.strip(): unescaped(v) for k, _, v in pairs}, unescaped(data))
    old = re.search(r"##(?:vso)?\[(\w+[. ]?\w*)", line)
    return Command(old[1], {}, "") if old else None


def unescaped(text: str) -> str:
    for code, sign in (("%3A", ":"), ("%2C", ","), ("%0D", "\r"), ("%0A", "\n"), ("%25", "%")):
        text = text.replace(code, sign)
    return text
