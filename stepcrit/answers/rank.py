"""`whatif --rank`: which one thing, made faster, would shorten the step most?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stepcrit.analyses import ranking
from stepcrit.analyses.ranking import Gains, Ranked, Ranking
from stepcrit.answers.assumed import assumed_section, assumptions
from stepcrit.answers.data import NOT_GIVEN, nulls_of
from stepcrit.answers.findings import findings
from stepcrit.answers.sure import NULLS as SURE_NULLS
from stepcrit.answers.sure import sure_data, sure_of
from stepcrit.answers.tables import TITLES
from stepcrit.answers.words import count, input_of, name, plural, saved, saving_data, say, say_settings, text
from stepcrit.graph.groups import OTHER_WORK, UNTRACKED, By
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.model.section import Cell, Column, Document, Section, Sentence, Unit

SHOWN = 10
MODEL = "order"
NULLS = {
    **NOT_GIVEN,
    **SURE_NULLS,
    "interventions[].levels_off_by_share": "half the time away saves twice as much as a quarter, and all twice as much as half",
    "interventions[].gives_way_to": "the path stays the same but for what is gone",
}


def answer(
    view: StepGraph, by: By = "op", *, top: int = SHOWN, settings: Mapping[str, Any] | None = None
) -> Document:
    """The interventions that save most, by one grouping.

    Args:
        view: the step.
        by: what one intervention may change: all of one operator, kernel, class, ...
        top: how many to tell.
        settings: options of the session, for the answer to repeat.

    Raises:
        UsageError: the trace does not record what to group by.
    """
    found = ranking.analyze(view, by, replays=top, detailed=True)
    told = [(row, row.gains) for row in found.rows if row.gains and row.gains.takes_over is not None]
    if by == "collective":  # the rest is no collective to be made faster
        told = [pair for pair in told if pair[0].name not in (OTHER_WORK, UNTRACKED)]
    sure, assumed = sure_of(view), assumptions(view)
    data = {
        "claim": "modelled",
        "step": view.step.label,
        "by": by,
        "model": MODEL,
        "interventions": [_row_data(row, gains) for row, gains in told],
        "saving_is_mean_of_periods": found.period_count,
        "looked_at": found.looked_at,
        "others_save_at_most_ns": _others_save(found, told),
        "assumptions": list(assumed),
        "trust": sure_data(sure),
        "options": dict(settings or {}),
    }
    opening = Section("", notes=tuple(say_settings(settings or {})), topic="interventions")
    blocks = (
        *([opening] if opening.notes else []),
        _section(view, found, told),
        assumed_section(assumed, sure),
    )
    return Document("whatif-rank", (input_of(view),), blocks, data, findings(view), nulls_of(data, NULLS))


def _section(view: StepGraph, found: Ranking, told: list[tuple[Ranked, Gains]]) -> Section:
    columns = (
        Column("name", found.by, Unit.NAME),
        Column("side", "side", Unit.TEXT, spare=True),
        Column("calls", "calls", Unit.COUNT, spare=True),
        Column("time_ns", "time", Unit.NS, spare=True),
        Column("critical_ns", "on path", Unit.NS),
        Column("saving_quarter_ns", "if 3/4", Unit.SAVED_NS),
        Column("saving_half_ns", "if half", Unit.SAVED_NS),
        Column("saving_free_ns", "if free", Unit.SAVED_NS),
        Column("levels_off_by_share", "levels off by", Unit.SHARE),
        Column("gives_way_to", "gives way to", Unit.NAME, spare=True),
    )
    rows = tuple(_row(row, gains) for row, gains in told)
    title = f"Ranked {TITLES[found.by]}"
    return Section(
        title, columns, rows, None, tuple(_notes(view, found, told)), "modelled", None, "interventions"
    )


def _notes(view: StepGraph, found: Ranking, told: list[tuple[Ranked, Gains]]) -> list[Sentence]:
    if found.period_count:
        of = say(
            "what a steady step gains, mean of {} periods; savings do not add up", count(found.period_count)
        )
    else:
        of = say("what {} gains, changed alone; savings do not add up", name(view.step.label))
    if not told:
        what = "no collective is" if found.by == "collective" else "nothing that could be made faster is"
        return [say(what + " on the path of {}: none would save anything alone", name(view.step.label))]
    looked = say(
        "{} {} replayed to find them: no other saves more than {}",
        count(found.looked_at),
        text(plural(found.looked_at, "name", "names")),
        saved(_others_save(found, told)),
    )
    return [of, looked]


def _others_save(found: Ranking, told: list[tuple[Ranked, Gains]]) -> int:
    """The most that a name which is not told can save."""
    least = told[-1][1].free.low_ns if told else 0
    return least if found.beyond_ns is None else found.beyond_ns


def _time_ns(row: Ranked) -> int:
    """The time that is taken away when a row is gone, in the step's window."""
    return row.device_ns if row.side == "device" else row.self_cpu_ns


def _row(row: Ranked, gains: Gains) -> tuple[Cell, ...]:
    return (
        row.name,
        row.side,
        row.calls or None,
        _time_ns(row) or None,
        row.critical_ns,
        gains.quarter.low_ns,
        gains.half.low_ns,
        gains.free.low_ns,
        None if gains.levels_off_by is None else float(gains.levels_off_by),
        gains.takes_over or None,
    )


def _row_data(row: Ranked, gains: Gains) -> dict[str, Any]:
    return {
        "name": row.name,
        "side": row.side,
        "calls": row.calls,
        "self_cpu_ns": row.self_cpu_ns,
        "device_ns": row.device_ns,
        "critical_ns": row.critical_ns,
        "saving_quarter_ns": saving_data(gains.quarter),
        "saving_half_ns": saving_data(gains.half),
        "saving_free_ns": saving_data(gains.free),
        "levels_off_by_share": None if gains.levels_off_by is None else float(gains.levels_off_by),
        "gives_way_to": gains.takes_over or None,
    }
