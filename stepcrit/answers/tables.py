"""Tables that several answers share."""

from __future__ import annotations

from stepcrit.analyses.ranking import Ranked, Ranking
from stepcrit.answers.words import count, ns, say, text
from stepcrit.link.presence import Presence, Use
from stepcrit.model.section import Cell, Column, Section, Sentence, Unit

CLAIM = "observed; path, slack, drag: schedule; if …: modelled"

TITLES = {
    "op": "operators",
    "kernel": "kernels",
    "class": "classes of work",
    "module": "modules",
    "collective": "collectives",
    "line": "lines",
}


def ranking_section(ranking: Ranking, present: Presence, *, limit: int | None) -> Section:
    """A ranking as a table: only self columns, each with its total; what was not recorded has none."""
    columns = (
        Column("name", ranking.by, Unit.NAME),
        Column("calls", "calls", Unit.COUNT),
        Column("self_cpu_ns", "self CPU", Unit.NS),
        Column("device_ns", "device", Unit.NS),
        Column("critical_ns", "on path", Unit.NS),
        Column("slack_min_ns", "slack", Unit.NS),
        Column("drag_max_ns", "drag", Unit.NS, spare=True),
        Column("saving_half_ns", "if half", Unit.SAVED_NS),
        Column("saving_free_ns", "if free", Unit.SAVED_NS),
    )
    total: tuple[Cell, ...] = (
        "total",
        None,
        ranking.self_cpu_ns if present.host else None,
        ranking.device_ns if present.device_known else None,
        ranking.critical_ns,
        None,
        None,
        None,
        None,
    )
    lacking = [
        say("{}: {}", text(column), text(why))
        for column, known, why in (
            ("self CPU", present.host, Use.NOT_RECORDED),
            ("device", present.device_known, present.use),
        )
        if not known
    ]
    notes = (
        *lacking,
        say(
            "if half, if free: what {} gains, replayed for the top {}; savings do not add up",
            text("a steady step" if ranking.period_count else "this step alone"),
            count(ranking.replayed),
        ),
        *_others(ranking),
    )
    title = f"Ranked {TITLES[ranking.by]}"
    return Section(
        title, columns, tuple(_row(r) for r in ranking.rows), total, notes, CLAIM, limit, "ranking"
    )


def _others(ranking: Ranking) -> list[Sentence]:
    """Where the search for the top ones ended before it was certain."""
    if ranking.beyond_ns is None:
        return []
    words = "of many names that might save as much, {} were replayed: any other saves at most {}"
    return [say(words, count(ranking.looked_at), ns(ranking.beyond_ns))]


def _row(r: Ranked) -> tuple[Cell, ...]:
    half = r.half.low_ns if r.half else None
    free = r.free.low_ns if r.free else None
    return (
        r.name,
        r.calls or None,
        r.self_cpu_ns or None,
        r.device_ns or None,
        r.critical_ns,
        r.slack_min_ns,
        r.drag_max_ns,
        half,
        free,
    )
