"""What a path held at a git ref: its bytes, or one clear reason why not.

A ref is resolved to its commit once; all that is read afterwards is of that commit, whatever moves meanwhile.
"""

from __future__ import annotations

import difflib
import io
import os
import re
from typing import NoReturn

from msgspec import Struct

from stepcrit.errors import (
    AbsentInputError,
    LimitInputError,
    LinkInputError,
    NoGitError,
    NoRepositoryError,
    NotFoundInputError,
    PointerInputError,
    RefError,
    ShallowError,
    quoted,
)
from stepcrit.ingest.gitrun import git
from stepcrit.ingest.limits import GIB, size_words

LARGEST = 2 * GIB
"""A file at a ref is read whole, up to this."""

SHORT = 7
NEAR = 3
POINTER = b"version https://git-lfs"

_DRIVE = re.compile(r"[A-Za-z]:[\\/]")


class NamedBytes(io.BytesIO):
    """Bytes that go by a name, to be read as an open file is."""

    def __init__(self, data: bytes, name: str) -> None:
        super().__init__(data)
        self.name = name


class Repository(Struct, frozen=True):
    """A work tree of git.

    Attributes:
        root: its top folder, links followed.
    """

    root: str

    def path_of(self, path: str) -> str:
        """A file's path as the repository names it, with "/"; the file itself may be a link, or not there.

        Raises:
            NoRepositoryError: it lies outside.
        """
        folder, name = os.path.split(os.path.abspath(path))  # noqa: PTH100 - pathlib keeps the dots
        inside = os.path.relpath(os.path.join(os.path.realpath(folder), name), self.root)  # noqa: PTH118
        if os.path.isabs(inside) or inside.split(os.sep)[0] == os.pardir:  # noqa: PTH117, PTH206
            raise NoRepositoryError(
                f"{quoted(path)} lies outside the git repository",
                where=self.root,
                do="run where it lies, or give a folder as the baseline: --base FOLDER",
            )
        return inside.replace(os.sep, "/")

    @property
    def is_shallow(self) -> bool:
        """Whether history was cut off when it was cloned."""
        return self.ask("rev-parse", "--is-shallow-repository")[1].strip() == b"true"

    def commit(self, ref: str) -> Commit:
        """The commit that a ref means now.

        Raises:
            ShallowError: it does not, and the clone has not all history.
            RefError: there is no such ref, or a tag and a branch are called so.
        """
        words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
        is_plain = bool(ref) and not ref.startswith("-") and ref.isprintable()
        code, out, _ = self.ask(*words) if is_plain else (1, b"", "")
        sha = out.decode("ascii", "replace").strip()
        if code or re.fullmatch(r"[0-9a-f]{40,64}", sha) is None:
            self._refuse(ref)
        self._check_clear(ref)
        return Commit(self, ref, sha)

    def _check_clear(self, ref: str) -> None:
        """Refuse a name that a tag and a branch share: git would take the tag, whoever made it.

        Raises:
            RefError: as said.
        """
        name = re.split(r"[~^]|@\{", ref, maxsplit=1)[0]
        called = [f"refs/{kind}/{name}" for kind in ("tags", "heads", "remotes")]
        _, out, _ = self.ask("for-each-ref", "--format=%(refname)", "--", *called)
        found = [one for one in out.decode("utf-8", "replace").split() if one in called]
        if len(found) > 1:
            raise RefError(
                f"{quoted(name)} means several: a tag and a branch, or branches here and of a remote",
                where=self.root,
                do=f"name the one that is meant: {' or '.join(found)}",
            )

    def ask(self, *words: str, settings: tuple[str, ...] = ()) -> tuple[int, bytes, str]:
        """Run git at the top folder (see `gitrun.git`)."""
        return git(self.root, *words, settings=settings)

    def _refuse(self, ref: str) -> NoReturn:
        if self.is_shallow:
            raise ShallowError(
                f"{quoted(ref)} is not in this clone: it is shallow, so it has neither other branches nor history",
                where=self.root,
                do="fetch all of it: with actions/checkout set fetch-depth: 0; by hand git fetch --unshallow",
            )
        _, out, _ = self.ask("for-each-ref", "--count=1000", "--format=%(refname:short)")
        near = difflib.get_close_matches(ref, out.decode("utf-8", "replace").split(), NEAR)
        have = f"did you mean {', '.join(near)}? " if near else ""
        raise RefError(
            f"this repository has no ref {quoted(ref)}", where=self.root, do=f"{have}see git branch --all"
        )


class Commit(Struct, frozen=True):
    """A ref at the time it was asked for.

    Attributes:
        repository: where it is.
        ref: as it was typed.
        sha: of its commit.
    """

    repository: Repository
    ref: str
    sha: str

    @property
    def short(self) -> str:
        """The first signs of its sha."""
        return self.sha[:SHORT]

    def name(self, path: str) -> str:
        """A path at this ref, as git writes it."""
        return f"{self.ref}:{path}"

    def has(self, path: str) -> bool:
        """Whether there is anything at a path."""
        return self._entry(path) is not None

    def read(self, path: str, limit: int = LARGEST) -> NamedBytes:
        """The bytes of a file at this ref.

        Args:
            path: from the top of the repository, with "/".
            limit: the largest size that is read.

        Raises:
            AbsentInputError: there was nothing at that path then.
            LinkInputError: it was a link, a folder or a submodule.
            PointerInputError: it was a Git LFS pointer.
            LimitInputError: it is larger than the limit.
            NotFoundInputError: git cannot read it.
        """
        where = self.name(path)
        entry = self._entry(path)
        if entry is None:
            raise self._absent(path)
        mode, kind, oid, size = entry
        _check_kind(mode, kind, where)
        if size > limit:
            raise LimitInputError(
                f"The file is larger than is allowed ({size} bytes, limit {size_words(limit)}).",
                where=where,
                do="make it smaller: stepcrit slim",
            )
        code, data, said = self.repository.ask("cat-file", "blob", oid)
        if code or len(data) != size:
            raise _unreadable(said, where)
        if data.startswith(POINTER):
            raise PointerInputError(
                "This is a Git LFS pointer, not the trace it stands for.",
                where=where,
                do=f"check it out beside this one and name the folder: git worktree add ../base {self.sha[:SHORT]}, "
                "git -C ../base lfs pull, --base ../base",
            )
        return NamedBytes(data, where)

    def files(self, folder: str = "") -> list[str]:
        """Every file below a folder at this ref; none where there is no such folder."""
        below = ("--", folder) if folder else ()
        code, out, said = self.repository.ask(
            "ls-tree", "-r", "-z", "--name-only", "--full-tree", self.sha, *below
        )
        if code:
            raise _unreadable(said, self.name(folder))
        return [os.fsdecode(each) for each in out.split(b"\0") if each]

    def renamed_from(self, path: str) -> str:
        """What a file of the work tree was called at this ref, where git finds that it was renamed, and soon; else ""."""
        words = (
            "diff-index",
            "-z",
            "-M",
            "--diff-filter=R",
            "--name-status",
            "--no-ext-diff",
            "--no-textconv",
        )
        quiet = ("--ignore-submodules=all", self.sha)
        try:
            _, out, _ = self.repository.ask(*words, *quiet, settings=unfiltered(self.repository))
        except NoGitError:  # it compares many files, and this is no more than a hint
            return ""
        fields = [os.fsdecode(each) for each in out.split(b"\0")]
        return next((old for old, new in zip(fields[1::3], fields[2::3], strict=False) if new == path), "")

    def _absent(self, path: str) -> AbsentInputError:
        old = self.renamed_from(path)
        return AbsentInputError(
            f"There is no such file at {self.ref} ({self.short})"
            + (f"; it was called {old} then." if old else "."),
            where=self.name(path),
            do=f"compare with {self.name(old)}"
            if old
            else "it is new, or the path is another one: see git ls-tree -r",
        )

    def _entry(self, path: str) -> tuple[str, str, str, int] | None:
        """Mode, kind, object and size of what is at a path; None: nothing."""
        code, out, said = self.repository.ask("ls-tree", "-z", "-l", "--full-tree", self.sha, "--", path)
        if code:
            raise _unreadable(said, self.name(path))
        for line in out.split(b"\0"):
            facts, _, name = line.partition(b"\t")
            if name == os.fsencode(path):
                mode, kind, oid, size = facts.decode("ascii").split()
                return mode, kind, oid, int(size) if size.isdecimal() else 0
        return None


def repository(folder: str = ".") -> Repository:
    """The repository that a folder is in.

    Raises:
        NoRepositoryError: it is in none, or git will not look at it.
        NoGitError: git is not installed, or does not answer.
    """
    code, out, said = git(folder, "rev-parse", "--show-toplevel")
    root = os.fsdecode(out.removesuffix(b"\n"))
    if code or not root:
        is_owned = "dubious ownership" not in said
        raise NoRepositoryError(
            "this is no git repository with a work tree"
            if is_owned
            else "git does not trust this repository's owner",
            where=os.path.abspath(folder),  # noqa: PTH100 - pathlib keeps the dots
            do="run inside one, or give a folder as the baseline: --base FOLDER"
            if is_owned
            else "if you do: git config --global --add safe.directory FOLDER",
        )
    return Repository(os.path.realpath(root))


def split_ref(word: str) -> tuple[str, str] | None:
    """`REF:PATH` as its two parts; None where the word is a path, as where a file has that very name.

    >>> split_ref("origin/main:traces/a.json.gz"), split_ref("a.json"), split_ref("C:/a.json")
    (('origin/main', 'traces/a.json.gz'), None, None)
    """
    ref, colon, path = word.partition(":")
    if not (ref and colon and path) or path.startswith(("//", ":", "/", "\\")) or _DRIVE.match(word):
        return None
    if "\0" in word or os.path.lexists(word):  # a string is enough
        return None
    is_drive = os.name == "nt" and len(ref) == 1
    return None if is_drive else (ref, path)


def open_ref(ref: str, path: str, *, folder: str = ".", limit: int = LARGEST) -> NamedBytes:
    """The bytes of `REF:PATH`; a path that begins with "./" counts from the folder, any other from the top.

    Raises:
        StepcritError: as `repository`, `Repository.commit` and `Commit.read`.
    """
    found = repository(folder)
    inside = found.path_of(os.path.join(folder, path)) if path.startswith(("./", "../")) else path  # noqa: PTH118
    return found.commit(ref).read(inside, limit)


def unfiltered(where: Repository) -> tuple[str, ...]:
    """Settings under which no filter runs on files of the work tree."""
    _, out, _ = where.ask(
        "config", "--name-only", "-z", "--get-regexp", r"^filter\..*\.(clean|smudge|process|required)$"
    )
    names = [os.fsdecode(each) for each in out.split(b"\0") if each]
    return tuple(f"{name}={'false' if name.endswith('.required') else ''}" for name in names)


def _check_kind(mode: str, kind: str, where: str) -> None:
    """Refuse what is no regular file.

    Raises:
        LinkInputError: as said.
    """
    what = {"tree": "a folder", "commit": "a submodule"}.get(
        kind, "a symbolic link" if mode == "120000" else ""
    )
    if what:
        raise LinkInputError(
            f"This is {what} at that ref, not a trace.",
            where=where,
            do="name the file itself, as the repository has it",
        )


def _unreadable(said: str, where: str) -> NotFoundInputError:
    first = said.splitlines()[0] if said else "it gave no reason"
    return NotFoundInputError(
        f"git cannot read it: {first}",
        where=where,
        do="if the clone is partial, fetch the rest: git fetch --refetch",
    )
