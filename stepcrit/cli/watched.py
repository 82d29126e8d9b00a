"""What is known of a trace beside its content: whether code that it is about is newer, and whether it is too large."""

from __future__ import annotations

import fnmatch
import os
from typing import TYPE_CHECKING

from stepcrit.errors import NoGitError, NoRepositoryError, NotFoundInputError, ShallowError, StepcritError
from stepcrit.model.checked import Effect, Outcome, Remark
from stepcrit.model.config import Manner
from stepcrit.model.section import Sentence, Unit, Value

if TYPE_CHECKING:
    from stepcrit.ingest.githistory import Since
    from stepcrit.model.config import Config, Watch


def too_large(config: Config, path: str) -> list[Remark]:
    """Whether a trace is larger than the configuration allows."""
    most = config.max_trace_size
    size = os.path.getsize(path) if most and os.path.isfile(path) else 0  # noqa: PTH202, PTH113 - a string is enough
    if most is None or size <= most.number:
        return []
    values = (Value(size, Unit.BYTES), Value(most.number, Unit.BYTES))
    what = Sentence("the file has {}, at most {} are allowed: make it smaller with stepcrit slim", values)
    return [Remark("C107", Outcome.FAIL, Effect.FAILS, what)]


def stale(config: Config, path: str) -> list[Remark]:
    """Whether code that [watch] says the trace is about was changed after it."""
    found = []
    for watch in config.watch:
        if fnmatch.fnmatchcase(path.replace(os.sep, "/"), watch.glob.removeprefix("./")):
            found += _stale(config.stale, path, watch)
    return found


def _stale(manner: Manner, path: str, watch: Watch) -> list[Remark]:
    from stepcrit.ingest.githistory import changed_since  # noqa: PLC0415 - only here
    from stepcrit.ingest.gitref import repository  # noqa: PLC0415

    effect = Effect.OPEN if manner == Manner.ERROR else Effect.NONE
    if manner == Manner.SKIP:
        return []
    try:
        since = changed_since(repository(), path, watch.code)
    except (NoGitError, NoRepositoryError, NotFoundInputError, ShallowError) as error:
        what = Sentence(
            "whether code is newer than this trace is not known: {}", (Value(_why(error), Unit.TEXT),)
        )
        return [Remark("C106", Outcome.UNKNOWN, effect, what, watch.place)]
    return [Remark("C105", Outcome.STALE, effect, _words(since), watch.place)] if since.files else []


def _why(error: StepcritError) -> str:
    return f"{error.what}; {error.do}" if error.do else error.what


def _words(since: Since) -> Sentence:
    more = f" and {since.files - 1} more" if since.files > 1 else ""
    when = f"{since.commits} {'commit' if since.commits == 1 else 'commits'} after this trace"
    how = when if since.commits else "in the work tree, not committed, and this trace is older"
    words = "{}{} changed {}: record again, or take it out of [watch]"
    return Sentence(words, (Value(since.path, Unit.NAME), Value(more, Unit.TEXT), Value(how, Unit.TEXT)))
