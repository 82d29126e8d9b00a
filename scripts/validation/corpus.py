"""Steps of real traces predicted by each other: one row a trace with several steps, with the reason where it is refused."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from stepcrit.analyses import crossstep
from stepcrit.errors import StepcritError
from stepcrit.session import Trace, load

from .row import Row

ALL = 1_000
"""More pairs than any trace has: every step against its neighbours, not only those near the representative one."""


def rows(corpus: Path) -> list[Row]:
    """A row for every trace of the corpus that has at least two steps, in the order of its catalog.

    Args:
        corpus: folder with `catalog.tsv`, whose columns `slug` and `file` name the traces.
    """
    return [row_of(name, trace) for name, trace in _with_steps(corpus)]


def row_of(name: str, trace: Trace) -> Row:
    """One trace's row."""
    try:
        found = crossstep.analyze(trace.view(), pairs=ALL)
    except StepcritError as error:
        return Row("corpus", name, 0, None, None, None, str(error))
    note = found.why_not or ""
    if not note and not found.crossing_count:
        note = "the path stays on one thread or queue: little but its own time is added up"
    return Row(
        "corpus", name, len(found.pairs), None, found.median_error_share, found.worst_error_share, note
    )


def _with_steps(corpus: Path) -> Iterator[tuple[str, Trace]]:
    """The corpus's readable traces with more than one step."""
    with (corpus / "catalog.tsv").open(encoding="utf-8") as lines:
        names = [f"{row['slug']}/{row['file']}" for row in csv.DictReader(lines, delimiter="\t")]
    for name in names:
        try:
            trace = load(corpus / name)
        except StepcritError:  # not a trace, by design of the corpus
            continue
        if len(trace.steps) > 1:
            yield name, trace
