"""One verdict of `check` as plain words, the same in JUnit, in a note for GitHub and in a summary."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from stepcrit.model.checked import Checked, CheckedBudget, CheckedTrace, Effect, Outcome, Place, Remark
from stepcrit.report.safe import safe_text
from stepcrit.report.values import sentence_text, value_text

GRAVEST = (Effect.FAILS, Effect.OPEN, Effect.NONE)

UNDECIDED = frozenset({Outcome.UNKNOWN, Outcome.INCONCLUSIVE, Outcome.STALE})
"""Outcomes that neither passed nor failed, where they do not change the exit code."""

WORSE_THAN_PASS = frozenset({*UNDECIDED, Outcome.WARN, Outcome.FAIL})


class Verdict(Struct, frozen=True):
    """One budget or remark in words.

    Attributes:
        name: the metric, or the code of the remark.
        outcome, effect: as judged.
        words: what was found and what was allowed; safe to print.
        place: the line of the configuration, or None.
    """

    name: str
    outcome: Outcome
    effect: Effect
    words: str
    place: Place | None


def subjects(checked: Checked) -> tuple[CheckedTrace, ...]:
    """What there are verdicts about: every trace, and the run as a whole, called after its rules, before them."""
    if not checked.remarks:
        return checked.traces
    worst = max((one.outcome for one in checked.remarks), key=list(Outcome).index)
    gravest = min((one.effect for one in checked.remarks), key=GRAVEST.index)
    return (CheckedTrace(checked.config, worst, gravest, "", (), checked.remarks), *checked.traces)


def verdicts(trace: CheckedTrace) -> list[Verdict]:
    """What was found about a trace: remarks, which hold of all of it, before rows; the gravest first."""
    found = [*map(_of_remark, trace.remarks), *map(_of_row, trace.rows)]
    order = list(Outcome)
    return sorted(found, key=lambda one: (GRAVEST.index(one.effect), -order.index(one.outcome)))


def place_text(place: Place) -> str:
    """A line of the configuration, as compilers and editors write it."""
    return f"{safe_text(place.path)}:{place.line}"


def row_words(row: CheckedBudget) -> str:
    """Value, baseline, limit and reason in one line."""
    return ", ".join(_facts(row))


def _facts(row: CheckedBudget) -> Iterator[str]:
    yield value_text(row.value, row.unit) if row.value is not None else "not known"
    if row.base is not None:
        yield f"baseline {value_text(row.base, row.unit)}"
    limit = sentence_text(row.limit)
    if limit:  # "+5.0 %" beside a baseline would read as what it grew by
        yield limit if row.base is None else f"allowed {limit}"
    if row.why is not None:
        yield sentence_text(row.why)


def _of_row(row: CheckedBudget) -> Verdict:
    return Verdict(safe_text(row.metric), row.outcome, row.effect, row_words(row), row.place)


def _of_remark(remark: Remark) -> Verdict:
    return Verdict(
        safe_text(remark.code), remark.outcome, remark.effect, sentence_text(remark.what), remark.place
    )
