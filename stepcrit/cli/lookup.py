"""Files that are found rather than named, under limits: a small file is read, and a glob is followed, only so far.

A project's stepcrit.toml may be somebody else's, and what lies at its path need not be a file.
"""

from __future__ import annotations

import fnmatch
import os
import stat
from collections.abc import Iterator

from stepcrit.errors import UsageError, quoted

ENTRIES = 100_000
"""A glob looks at so many files and folders, then gives up."""

DEEPEST = 100
"""A path pattern has no more parts."""


def read_small(path: str | os.PathLike[str], limit: int, *, follow: bool = True) -> bytes:
    """The bytes of a regular file; a pipe or device is never waited for.

    Args:
        path: what to open.
        limit: the largest size.
        follow: whether the path may be a symbolic link.

    Raises:
        OSError: it cannot be read, is no regular file, or is larger.
    """
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
    number = os.open(path, flags if follow else flags | getattr(os, "O_NOFOLLOW", 0))
    with open(number, "rb") as file:  # noqa: PTH123 - a number has no path
        found = os.fstat(number)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(None, "it is no regular file")
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(None, f"it is larger than {limit} bytes")
    return data


def files_like(pattern: str, most: int) -> list[str]:
    """Files that a path or glob means, from here; of many, enough to say so. `**` follows no links.

    Raises:
        UsageError: the search goes on too long.
    """
    if "\0" in pattern:
        return []
    if os.path.isfile(pattern):  # noqa: PTH113 - a string is enough
        return [pattern]
    drive, rest = os.path.splitdrive(pattern)
    rest = rest.replace(os.sep, "/")
    root = drive + os.sep if rest.startswith("/") else drive
    parts = [part for part in rest.split("/") if part not in ("", ".")]
    if len(parts) > DEEPEST:
        raise UsageError(f"{quoted(pattern)} has more than {DEEPEST} folders", do="name one trace")
    found: set[str] = set()
    for path in _Search(pattern).under(root, tuple(parts)):
        found.add(path)
        if len(found) >= most:
            break
    return sorted(found)


def from_here(path: str) -> str:
    """A path or glob as the folder one is in has it: relative where it lies below, without `./`.

    Budgets go by such paths: whoever writes ./traces/a.json means the budgets of traces/a.json.

    >>> from_here("./traces//a.json"), from_here("../a.json"), from_here(os.path.join(os.getcwd(), "*.json"))
    ('traces/a.json', '../a.json', '*.json')
    """
    inside = os.path.relpath(path) if path else path
    if os.path.isabs(inside) or inside.split(os.sep)[0] == os.pardir:  # noqa: PTH117, PTH206
        return path
    is_winding = os.pardir in path.replace(os.sep, "/").split("/")  # where that leads depends on links
    if is_winding and not (os.path.exists(path) and _is_same(path, inside)):  # noqa: PTH110
        return path
    return inside.replace(os.sep, "/")


def _is_same(path: str, other: str) -> bool:
    return os.path.exists(other) and os.path.samefile(path, other)  # noqa: PTH110, PTH121


def is_like(path: str, pattern: str) -> bool:
    """Whether `files_like` would find a path, were there such a file.

    >>> is_like("traces/a/b.gz", "traces/**/*.gz"), is_like("traces/b.gz", "traces/**/*.gz"), is_like("a/b", "*")
    (True, True, False)
    """
    names, parts = ([each for each in whole.split("/") if each not in ("", ".")] for whole in (path, pattern))
    if path.startswith("/") != pattern.startswith("/") or max(len(parts), len(names)) > DEEPEST:
        return False
    reached = {0}  # how many parts may have been used up by the names so far
    for at, each in enumerate(names):
        is_last = at == len(names) - 1
        found: set[int] = set()
        for used in sorted(_through(reached, parts)):
            if used < len(parts) and parts[used] == "**":
                found |= {used} if not is_last and not each.startswith(".") else set()
                found |= (
                    {used + 1} if used == len(parts) - 1 and is_last and not each.startswith(".") else set()
                )
            elif used < len(parts) and _is_called(each, parts[used]):
                found.add(used + 1)
        reached = found
    return len(parts) in reached


def _through(reached: set[int], parts: list[str]) -> set[int]:
    """The same places, and those behind any `**`, which may stand for no folder."""
    found = set(reached)
    for used in sorted(reached):
        while used < len(parts) - 1 and parts[used] == "**":
            used += 1  # noqa: PLW2901 - a walk
            found.add(used)
    return found


def _is_called(name: str, glob: str) -> bool:
    """Whether a glob means a name; a hidden one only where it says so."""
    is_hidden = name.startswith(".") and not glob.startswith(".")
    return name == glob or (not is_hidden and fnmatch.fnmatchcase(name, glob))


class _Search:
    """A walk that counts what it looks at."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.looked_at = 0

    def under(self, folder: str, parts: tuple[str, ...], depth: int = 0) -> Iterator[str]:
        """Files below a folder that the parts of a pattern mean."""
        if not parts or depth > DEEPEST:
            return
        head, rest = parts[0], parts[1:]
        if head == "**":
            yield from self.under(folder, rest or ("*",), depth + 1)
            for entry in self._entries(folder, "*"):
                if entry.is_dir(follow_symlinks=False):
                    yield from self.under(_joined(folder, entry.name), parts, depth + 1)
        elif any(sign in head for sign in "*?["):
            for entry in self._entries(folder, head):
                yield from self._at(_joined(folder, entry.name), rest, depth)
        else:
            yield from self._at(_joined(folder, head), rest, depth)

    def _at(self, path: str, rest: tuple[str, ...], depth: int) -> Iterator[str]:
        if rest:
            yield from self.under(path, rest, depth + 1)
        elif os.path.isfile(path):  # noqa: PTH113 - a string is enough
            yield path

    def _entries(self, folder: str, glob: str) -> Iterator[os.DirEntry[str]]:
        """What lies in a folder and is called so; hidden names only where the glob says so."""
        try:
            with os.scandir(folder or os.curdir) as entries:
                for entry in entries:
                    self._count()
                    is_hidden = entry.name.startswith(".") and not glob.startswith(".")
                    if not is_hidden and fnmatch.fnmatchcase(entry.name, glob):
                        yield entry
        except OSError:  # no folder, or not ours to look into: nothing of it matches
            return

    def _count(self) -> None:
        self.looked_at += 1
        if self.looked_at > ENTRIES:
            raise UsageError(
                f"{quoted(self.pattern)} is not found among {ENTRIES} files and folders",
                do="name the folder more closely, or a trace on the command line",
            )


def _joined(folder: str, name: str) -> str:
    return os.path.join(folder, name)  # noqa: PTH118 - a string is enough
