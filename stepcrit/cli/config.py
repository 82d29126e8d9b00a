"""The configuration of the project one is in: stepcrit.toml, else [tool.stepcrit] of pyproject.toml."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from stepcrit.cli.lookup import read_small
from stepcrit.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from stepcrit.model.config import Config

CONFIG = "stepcrit.toml"
PYPROJECT = "pyproject.toml"


def project_config(named: str | None = None) -> Config | None:
    """The configuration that is named, else that of the folder one is in; None where there is none.

    Raises:
        UsageError: the named file is not there.
        ConfigError: it cannot be read, or says what nothing understands.
    """
    if named is not None:
        data = _read(named)
        if data is None:
            raise UsageError(
                "there is no such configuration", where=named, do="name a file, or leave --config out"
            )
        found = config_of(data, named)
        if found is None:
            raise UsageError(
                "there is no [tool.stepcrit] in it", where=named, do="name another file, or add one"
            )
        return found
    for name in (CONFIG, PYPROJECT):
        data = _read(name)
        found = None if data is None else config_of(data, name)
        if found is not None:
            return found
    return None


def config_of(data: bytes, source: str) -> Config | None:
    """What a file of a name says; None for a pyproject.toml that does not speak of stepcrit.

    Raises:
        ConfigError: as `parse_config`.
    """
    from stepcrit.ingest.config import TOOL, has_tables, parse_config  # noqa: PLC0415 - msgspec loads here

    if os.path.basename(source.partition(":")[2] or source) != PYPROJECT:  # noqa: PTH119 - a string is enough
        return parse_config(data, source)
    return parse_config(data, source, TOOL) if has_tables(data) else None


def _read(path: str) -> bytes | None:
    """The bytes of a file, None without it.

    Raises:
        ConfigError: it cannot be read.
    """
    from stepcrit.ingest.config import LARGEST_CONFIG  # noqa: PLC0415 - msgspec loads here

    if not os.path.lexists(path):
        return None
    try:
        return read_small(path, LARGEST_CONFIG)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise ConfigError(
            f"{path} cannot be read: {why}", where=path, do="correct it, or name a trace"
        ) from error
