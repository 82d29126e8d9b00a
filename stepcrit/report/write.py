"""Choosing a renderer, and putting its bytes where they belong: whole, or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from stepcrit.errors import OutputError, UsageError
from stepcrit.model.section import Document
from stepcrit.report import as_csv, as_json, markdown, text
from stepcrit.report.screen import Screen

RENDERERS: dict[str, Callable[[Document, Screen], bytes]] = {
    "text": text.render,
    "json": lambda document, _: as_json.render(document),
    "md": lambda document, _: markdown.render(document),
    "csv": lambda document, _: as_csv.render(document),
}
"""Name of the format -> renderer. Only text asks what the stream can show."""


def render(document: Document, fmt: str, screen: Screen | None = None) -> bytes:
    """A document in a format.

    Args:
        document: what to show.
        fmt: a key of RENDERERS.
        screen: what the stream can show (`Screen.of(stream)`); 80 columns of UTF-8 without colour when None.

    Raises:
        UsageError: there is no such format.
    """
    if fmt not in RENDERERS:
        raise UsageError(f"no format {fmt!r}", do=f"choose one of {', '.join(RENDERERS)}")
    return RENDERERS[fmt](document, screen or Screen())


def write_output(rendered: bytes, target: str | os.PathLike[str] | TextIO) -> None:
    """Write to a stream, or to a path: there the old file stays until the new one is whole.

    Whether the path is one of the inputs is the caller's to ask. A closed pipe is the caller's, too.

    Raises:
        OutputError: the path cannot be written; nothing was left behind.
    """
    if not isinstance(target, str | os.PathLike):
        _to_stream(rendered, target)
        return
    path = Path(target)
    try:
        _to_path(rendered, path)
    except OSError as err:
        reason = err.strerror or str(err)
        raise OutputError(
            f"cannot write {len(rendered)} bytes: {reason}",
            where=str(path),
            do="choose another path with -o, or make room",
        ) from err


def _to_stream(rendered: bytes, stream: TextIO) -> None:
    """Bytes past the text layer where there is one: it would translate line ends."""
    buffer = getattr(stream, "buffer", None)
    stream.flush()
    if buffer is None:
        stream.write(rendered.decode(stream.encoding or "utf-8", "replace"))
    else:
        buffer.write(rendered)
    stream.flush()


def _to_path(rendered: bytes, path: Path) -> None:
    """A device or a pipe is written to, never replaced; a file is replaced at once."""
    if path.exists() and not path.is_file() and not path.is_dir():
        path.write_bytes(rendered)
        return
    if path.is_dir():
        raise IsADirectoryError(None, "it is a folder")
    draft = path.with_name(f".{path.name[:100]}.{secrets.token_hex(4)}.part")
    try:
        # "x": created by us or not at all, with the permissions any new file gets here
        with draft.open("xb") as file:
            file.write(rendered)
        if path.exists():
            draft.chmod(path.stat().st_mode & 0o7777)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
