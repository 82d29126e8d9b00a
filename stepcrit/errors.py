"""Every way stepcrit can refuse, as one tree; only `cli` turns them into text and exit codes.

    StepcritError                 exit code
    ├── UsageError                2   wrong option, unknown step, selector that matches nothing
    │   ├── ConfigError               a line of stepcrit.toml that says nothing, or what it cannot mean
    │   ├── NoGitError                git is not installed, or does not answer
    │   ├── NoRepositoryError         not in a git repository
    │   ├── RefError                  no such ref
    │   └── ShallowError              the clone has not the history that is asked for
    ├── InputError                3   no usable input
    │   ├── NotFoundInputError        the path does not exist or cannot be read
    │   ├── EmptyInputError           nothing in the file
    │   ├── PointerInputError         a Git LFS pointer, not the trace itself
    │   ├── BrokenInputError          not JSON, cut off, or not gzip after all
    │   ├── ForeignInputError         well-formed, but no torch.profiler trace
    │   ├── UnusableInputError        a trace without what this question needs
    │   ├── LimitInputError           it asks for more than a limit allows
    │   ├── AbsentInputError          not there at that git ref
    │   └── LinkInputError            a link, a folder or a submodule at that git ref
    ├── PartialError              4   answered only in part, and `--strict` was given
    ├── OutputError               5   the result could not be written
    └── InternalError            70   a broken promise of ours: please report it

Each error says what is wrong, where, and what to do, and carries a stable code
(`stepcrit explain CODE`).
"""

from __future__ import annotations

from typing import ClassVar


class StepcritError(Exception):
    """Base of all refusals: `what` happened, `where`, and what to `do` about it."""

    exit_code: ClassVar[int] = 70
    code: ClassVar[str] = "SC000"

    def __init__(self, what: str, *, where: str = "", do: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.do = do


class UsageError(StepcritError):
    """The question cannot be asked like this: an option, a step or a name that is not there."""

    exit_code = 2
    code = "SC200"


class ConfigError(UsageError):
    """The configuration says what nothing understands; the message has its line."""

    code = "SC201"


class NoGitError(UsageError):
    """git is needed, and is not there or does not answer."""

    code = "SC210"


class NoRepositoryError(UsageError):
    """A git ref was given where there is no git repository."""

    code = "SC211"


class RefError(UsageError):
    """The repository has no such ref."""

    code = "SC212"


class ShallowError(UsageError):
    """The clone is shallow: the ref or the history asked for was not fetched."""

    code = "SC213"


class InputError(StepcritError):
    """The input cannot be used."""

    exit_code = 3
    code = "SC300"


class NotFoundInputError(InputError):
    """The path does not exist, or may not be read."""

    code = "SC301"


class EmptyInputError(InputError):
    """The file holds no bytes."""

    code = "SC302"


class PointerInputError(InputError):
    """The file is a Git LFS pointer; the trace itself was not fetched."""

    code = "SC303"


class BrokenInputError(InputError):
    """The bytes are not the JSON or gzip they claim to be, or they stop early."""

    code = "SC304"


class ForeignInputError(InputError):
    """The JSON is sound, but it is another tool's format or holds no trace events."""

    code = "SC305"


class UnusableInputError(InputError):
    """The trace lacks the events that this question needs."""

    code = "SC306"


class LimitInputError(InputError):
    """Reading on would take more than a limit allows."""

    code = "SC307"


class AbsentInputError(InputError):
    """At that git ref there was nothing at the path."""

    code = "SC308"


class LinkInputError(InputError):
    """At that git ref the path was no regular file."""

    code = "SC309"


class PartialError(StepcritError):
    """The answer covers only part of the input, and the user asked to be strict."""

    exit_code = 4
    code = "SC400"


class OutputError(StepcritError):
    """The result could not be written."""

    exit_code = 5
    code = "SC500"


class InternalError(StepcritError):
    """A promise of stepcrit's own is broken: a bug, never the user's fault."""

    exit_code = 70
    code = "SC700"


QUOTED = 80


def quoted(typed: str) -> str:
    """What a user typed, in quotes and no longer than a line."""
    return repr(typed if len(typed) <= QUOTED else f"{typed[: QUOTED - 3]}...")
