"""The file of `--classes`: a user's own rules for classes of work, read once and no larger than anyone writes."""

from __future__ import annotations

from pathlib import Path

from stepcrit.errors import UsageError
from stepcrit.link.rules import NO_RULES, ClassRules

LARGEST_BYTES = 2**20


def read_rules(path: str | None) -> ClassRules:
    """The rules of a file; none without one.

    Raises:
        UsageError: the file cannot be read, is no TOML, or says what no rule can.
    """
    if path is None:
        return NO_RULES
    import tomllib  # noqa: PLC0415 - where there is such a file only

    try:
        return ClassRules.parse(tomllib.loads(_text(path)))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"the file of classes is no TOML: {error}", where=path, do=DO) from error
    except RecursionError as error:
        raise UsageError("the file of classes is nested too deeply", where=path, do=DO) from error
    except UsageError as error:
        raise UsageError(error.what, where=path, do=error.do) from error


DO = "see: stepcrit explain own-classes"


def _text(path: str) -> str:
    """What is in the file.

    Raises:
        UsageError: nothing that can be read.
    """
    try:
        if not Path(path).is_file():
            raise UsageError("there is no such file of classes", do=DO)
        with Path(path).open("rb") as file:
            content = file.read(LARGEST_BYTES + 1)
        if len(content) > LARGEST_BYTES:
            raise UsageError("the file of classes is larger than 1 MiB", do=DO)
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError("the file of classes is no UTF-8 text", do=DO) from error
    except (OSError, ValueError) as error:
        raise UsageError(f"the file of classes cannot be read: {error}", do=DO) from error
