"""What traces are compared with: the same paths at a git ref, or in a folder; and whose rules then count."""

from __future__ import annotations

import glob
import os
from typing import TYPE_CHECKING, BinaryIO, Protocol

from msgspec import Struct

from stepcrit.cli.config import CONFIG, PYPROJECT, config_of
from stepcrit.cli.lookup import ENTRIES, files_like, is_like
from stepcrit.errors import NoGitError, NoRepositoryError, RefError, UsageError, quoted

if TYPE_CHECKING:
    from stepcrit.ingest.gitref import Commit
    from stepcrit.model.config import Config


class Baseline(Protocol):
    """Where the old traces are."""

    @property
    def name(self) -> str:
        """As the user knows it."""

    def open(self, path: str) -> str | BinaryIO | None:
        """The trace of the same path, to be read; None where there was none.

        Raises:
            StepcritError: there is something that cannot be read.
        """

    def called(self, path: str) -> str:
        """The trace of the same path, as a command would name it."""

    def gone(self, patterns: tuple[str, ...]) -> list[str]:
        """Traces that some paths or globs mean there and that are no files here any more."""


class Folder(Struct, frozen=True):
    """A folder with the same paths below it."""

    path: str

    def gone(self, patterns: tuple[str, ...]) -> list[str]:
        """Traces that some paths or globs mean below the folder and that are no files here any more.

        Raises:
            UsageError: the search goes on too long.
        """
        there = {
            os.path.relpath(path, self.path).replace(os.sep, "/")
            for pattern in patterns
            if not os.path.isabs(pattern)  # noqa: PTH117 - a string is enough
            for path in files_like(os.path.join(glob.escape(self.path), pattern), ENTRIES)  # noqa: PTH118
        }
        return sorted(path for path in there if not os.path.isfile(path))  # noqa: PTH113

    @property
    def name(self) -> str:
        """The folder."""
        return self.path

    def open(self, path: str) -> str | None:
        """The file below the folder.

        Raises:
            UsageError: the path does not lie below the folder one is in.
        """
        inside = os.path.relpath(path)
        if os.path.isabs(inside) or inside.split(os.sep)[0] == os.pardir:  # noqa: PTH117, PTH206
            raise UsageError(
                f"{quoted(path)} lies outside the folder one is in: nothing of {self.path} corresponds to it",
                do="run where the traces lie",
            )
        found = os.path.join(self.path, inside)  # noqa: PTH118
        return found if os.path.lexists(found) else None

    def called(self, path: str) -> str:
        """The file below the folder."""
        return os.path.join(self.path, os.path.relpath(path))  # noqa: PTH118


class AtRef(Struct, frozen=True):
    """A git ref."""

    commit: Commit

    @property
    def name(self) -> str:
        """The ref with its commit."""
        return f"{self.commit.ref} ({self.commit.short})"

    def open(self, path: str) -> BinaryIO | None:
        """The bytes of the same path then.

        Raises:
            StepcritError: as `Commit.read`.
        """
        inside = self.commit.repository.path_of(path)
        return self.commit.read(inside) if self.commit.has(inside) else None

    def called(self, path: str) -> str:
        """`REF:PATH`."""
        return self.commit.name(self.commit.repository.path_of(path))

    def config(self, named: str | None) -> Config | None:
        """The configuration at the ref: the file that was named, else the one that would be found here.

        What this tree has does not matter: it must not choose among those of the ref.

        Raises:
            StepcritError: it is there and cannot be read.
        """
        from stepcrit.ingest.config import LARGEST_CONFIG  # noqa: PLC0415 - msgspec loads here

        for name in (named,) if named else (CONFIG, PYPROJECT):
            inside = self.commit.repository.path_of(name)
            if self.commit.has(inside):
                data = self.commit.read(inside, LARGEST_CONFIG).getvalue()
                found = config_of(data, self.commit.name(inside))
                if found is not None:
                    return found
        return None

    def gone(self, patterns: tuple[str, ...]) -> list[str]:
        """Files that some paths or globs meant at the ref and that are no files here any more."""
        repository = self.commit.repository
        prefix = os.path.relpath(os.path.realpath(os.curdir), repository.root).replace(os.sep, "/")
        below = "" if prefix == os.curdir else f"{prefix}/"
        there = [
            path.removeprefix(below)
            for path in self.commit.files(below.rstrip("/"))
            if path.startswith(below)
        ]
        wanted = [path for path in there if any(is_like(path, pattern) for pattern in patterns)]
        # What became a folder, a pipe or a link to nowhere is not judged, so it must not stand in for a file.
        return [path for path in wanted if not os.path.isfile(path)]  # noqa: PTH113 - a string is enough


def baseline_of(word: str) -> Folder | AtRef | None:
    """What a word for a baseline means; None for "".

    In a repository a bare word is a ref, whatever folder is called so: a folder of a pull request must not stand
    in for the branch. A folder is written ./base there.

    Raises:
        StepcritError: there is no such ref, or no such folder.
    """
    from stepcrit.ingest.gitref import repository  # noqa: PLC0415 - only here

    if not word:
        return None
    is_path = word.startswith((".", "/", os.sep)) or os.path.isabs(word)  # noqa: PTH117 - a string is enough
    if is_path and not os.path.isdir(word):  # noqa: PTH112
        raise UsageError(
            f"there is no folder {quoted(word)}", do="name one, or a git ref: --base origin/main"
        )
    if is_path:
        return Folder(word)
    try:
        return AtRef(repository().commit(word))
    except (NoRepositoryError, NoGitError):
        if os.path.isdir(word):  # noqa: PTH112
            return Folder(word)
        raise
    except RefError as error:
        if os.path.isdir(word):  # noqa: PTH112
            error.do = f"if the folder of that name is meant, write ./{word}"
        raise
