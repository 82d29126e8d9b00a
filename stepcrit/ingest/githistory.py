"""Whether code changed after a trace was committed: what git's history and the work tree say."""

from __future__ import annotations

import os

from msgspec import Struct

from stepcrit.errors import NotFoundInputError, ShallowError
from stepcrit.ingest.gitref import Repository, unfiltered
from stepcrit.ingest.gitrun import git


class Since(Struct, frozen=True):
    """What became of code since a trace was committed.

    Attributes:
        path: a file that changed; "" where none did.
        files: how many.
        commits: commits that touched them; 0: they are changed in the work tree alone.
    """

    path: str = ""
    files: int = 0
    commits: int = 0


def changed_since(repository: Repository, trace: str, code: tuple[str, ...]) -> Since:
    """What of some code differs from what it was when a trace was last committed.

    A trace that is itself changed, or not committed yet, is as new as the work tree. Code that was changed and
    changed back does not differ.

    Args:
        repository: that of both.
        trace: path from here.
        code: globs from here; `**` stands for folders.

    Raises:
        ShallowError: the clone has not the history.
        NotFoundInputError: git cannot tell.
    """
    here = _Here(repository)
    trace_spec = f":(literal){trace}"
    if here.names("ls-files", "--others", "-z", "--", trace_spec) or here.differs("HEAD", (trace_spec,)):
        return Since()
    sha = here.words("rev-list", "-1", "HEAD", "--", trace_spec)
    if repository.is_shallow and _is_edge(here, sha):
        raise ShallowError(
            "the clone is shallow: when the trace was committed is not known",
            where=trace,
            do="fetch all history: with actions/checkout set fetch-depth: 0; by hand git fetch --unshallow",
        )
    if not sha:
        return Since()
    globs = tuple(f":(glob){each}" for each in code)
    files = here.differs(sha, globs) + here.names(
        "ls-files", "--others", "--exclude-standard", "-z", "--", *globs
    )
    if not files:
        return Since()
    commits = here.words("rev-list", "--count", f"{sha}..HEAD", "--", *globs)
    return Since(files[0], len(files), int(commits or 0))


def _is_edge(here: _Here, sha: str) -> bool:
    """Whether a commit is one beyond which a shallow clone has nothing, so that it seems to have made every file."""
    parents = here.words("rev-list", "--parents", "-1", sha).split() if sha else []
    return len(parents) < 2


class _Here(Struct, frozen=True):
    """git in the folder one is in, so that paths count from there."""

    repository: Repository

    def ask(self, *words: str) -> bytes:
        code, out, said = git(os.curdir, *words, settings=unfiltered(self.repository), is_literal=False)
        if code:
            first = said.splitlines()[0] if said else "it gave no reason"
            raise NotFoundInputError(f"git cannot tell the history: {first}", where=words[0])
        return out

    def words(self, *words: str) -> str:
        return self.ask(*words).decode("utf-8", "replace").strip()

    def names(self, *words: str) -> list[str]:
        return [os.fsdecode(each) for each in self.ask(*words).split(b"\0") if each]

    def differs(self, since: str, specs: tuple[str, ...]) -> list[str]:
        """Files of the work tree that are not as they were."""
        plain = ("--no-ext-diff", "--no-textconv", "--no-renames", "--ignore-submodules=all", "--relative")
        return self.names("diff", *plain, "--name-only", "-z", since, "--", *specs)
