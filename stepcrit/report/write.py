"""Choosing a renderer, and putting its bytes where they belong: whole, or not at all."""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Callable

from stepcrit.errors import OutputError, UsageError
from stepcrit.model.section import Document
from stepcrit.report import text
from stepcrit.report.drafts import put
from stepcrit.report.safe import ascii_text, visible
from stepcrit.report.screen import Screen


def _json(document: Document, screen: Screen) -> bytes:
    from stepcrit.report import as_json  # noqa: PLC0415 - only the format that is asked for loads

    return _as_taken(as_json.render(document), screen, _json_escaped)


def _markdown(document: Document, screen: Screen) -> bytes:
    from stepcrit.report import markdown  # noqa: PLC0415

    return _as_taken(markdown.render(document), screen, ascii_text)


def _csv(document: Document, screen: Screen) -> bytes:
    from stepcrit.report import as_csv  # noqa: PLC0415

    return _as_taken(as_csv.render(document), screen, _escaped)


RENDERERS: dict[str, Callable[[Document, Screen], bytes]] = {
    "text": text.render,
    "json": _json,
    "md": _markdown,
    "csv": _csv,
}
"""Name of the format -> renderer. Only text asks for the width; the others are UTF-8 but where ASCII is asked."""

_FOREIGN = re.compile(r"[^\x00-\x7f]+")


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


def write_output(rendered: bytes, target: str | os.PathLike[str]) -> None:
    """Write to a path: the old file stays until the new one is whole.

    Whether the path is one of the inputs is the caller's to ask. A closed pipe is the caller's, too.

    Raises:
        OutputError: the path cannot be written; nothing was left behind.
    """
    path = os.fspath(target)
    try:
        put(rendered, path)
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as err:  # ValueError: no path at all, such as one with a NUL in it
        reason = getattr(err, "strerror", None) or str(err)
        raise OutputError(
            f"cannot write {len(rendered)} bytes: {reason}",
            where=path,
            do="choose another path with -o, or make room",
        ) from err


def _as_taken(rendered: bytes, screen: Screen, in_ascii: Callable[[str], str]) -> bytes:
    """A machine's format in UTF-8, or in ASCII for a stream that takes nothing else."""
    if rendered.isascii() or not _is_ascii(screen.encoding):
        return rendered
    return in_ascii(rendered.decode()).encode("ascii")


def _is_ascii(encoding: str) -> bool:
    try:
        return codecs.lookup(encoding).name == "ascii"
    except LookupError:
        return True


def _json_escaped(document: str) -> str:
    """The same JSON in ASCII: other characters only stand inside strings."""
    import json  # noqa: PLC0415 - rarely needed

    return _FOREIGN.sub(lambda found: json.dumps(found[0])[1:-1], document)


def _escaped(cells: str) -> str:
    """Escapes alone: a sign spelled out as a quotation mark would end a cell."""
    return _FOREIGN.sub(lambda found: "".join(map(visible, found[0])), cells)
