"""Steps of real traces predicted by each other: one row a trace with several steps, with the reason where it is refused."""

from __future__ import annotations

import csv
import statistics
from collections.abc import Iterator
from pathlib import Path

from stepcrit.analyses import crossstep
from stepcrit.errors import StepcritError
from stepcrit.session import Trace, load

from .row import Row

ALL = 1_000
"""More pairs than any trace has: every step against its neighbours, not only those near the representative one."""


def rows(corpus: Path) -> list[Row]:
    """A row for every folder of the corpus with traces of at least two steps, in the order of its catalog.

    Args:
        corpus: folder with `catalog.tsv`, whose columns `slug` and `file` name the traces.
    """
    found: dict[str, list[crossstep.CrossStep | str]] = {}
    for slug, trace in _with_steps(corpus):
        found.setdefault(slug, []).append(measured(trace))
    return [row_of(slug, some) for slug, some in found.items()]


def measured(trace: Trace) -> crossstep.CrossStep | str:
    """One trace's answer, or why there is none."""
    try:
        found = crossstep.analyze(trace.view(), pairs=ALL)
    except StepcritError as error:
        return error.what
    return found.why_not or found


def row_of(slug: str, found: list[crossstep.CrossStep | str]) -> Row:
    """All traces of one folder."""
    told = [one for one in found if isinstance(one, crossstep.CrossStep)]
    reasons = sorted({one for one in found if isinstance(one, str)})
    errors = [pair.error_share for one in told for pair in one.pairs]
    if not errors:
        return Row("corpus", slug, 0, None, None, None, "; ".join(reasons))
    notes = [f"{len(told)} traces"] if len(told) > 1 else []
    notes += [f"{len(found) - len(told)} not comparable"] if reasons else []
    if not any(one.crossing_count for one in told):
        notes.append("the path stays on one thread or queue: little but its own time is added up")
    return Row("corpus", slug, len(errors), None, statistics.median(errors), max(errors), "; ".join(notes))


def _with_steps(corpus: Path) -> Iterator[tuple[str, Trace]]:
    """Folder and trace of the corpus's readable traces with more than one step."""
    with (corpus / "catalog.tsv").open(encoding="utf-8") as lines:
        names = [(row["slug"], row["file"]) for row in csv.DictReader(lines, delimiter="\t")]
    for slug, file in names:
        try:
            trace = load(corpus / slug / file)
        except StepcritError:  # not a trace, by design of the corpus
            continue
        if len(trace.steps) > 1:
            yield slug, trace
