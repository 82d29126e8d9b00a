"""`critical`: the path itself in merged runs, the runner-up at every join, or one operation's neighbourhood."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import groupby
from typing import Any

from stepcrit.analyses import around, critical, joins
from stepcrit.answers.data import NOT_GIVEN, facts, nulls_of
from stepcrit.answers.findings import findings
from stepcrit.answers.words import (
    EDGE_WORDS,
    count,
    input_of,
    name,
    ns,
    plural,
    say,
    say_settings,
    share,
    text,
)
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.model.classes import WorkClass
from stepcrit.model.events import Side
from stepcrit.model.graph import Evidence
from stepcrit.model.section import Block, Cell, Column, Document, Section, Sentence, Unit

RUNS = 25
"""Merged runs that a terminal shows without --full: the largest ones, in time order."""

FEW_RUNS = 5
JOINS = 10

Row = dict[str, object]


NULLS = {
    "pieces[].evidence": "the window's opening cuts the stretch: what it waited for lies before",
    "pieces[].entered_by": "the window's opening cuts the stretch: what it waited for lies before",
    "shown[].slack_ns": "the boundary does not need it",
    **NOT_GIVEN,
}


def answer(view: StepGraph, *, full: bool = False, settings: Mapping[str, Any] | None = None) -> Document:
    """The path of one step and its runner-ups; `settings` as for `analyze.answer`."""
    path = critical.analyze(view)
    rivals = joins.analyze(view)
    blocks: tuple[Block, ...] = (
        Section("", notes=(*_opening(view, path), *say_settings(settings or {})), topic="critical-path"),
        _runs_section(view, full=full),
        _joins_section(view, rivals, full=full),
    )
    data, unknown = facts(lambda: _path_data(view, path, rivals, settings or {}), NULLS)
    return Document("critical", (input_of(view),), blocks, data, findings(view), unknown)


def _path_data(
    view: StepGraph, path: critical.CriticalPath, rivals: tuple[joins.Join, ...], settings: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "step": view.step.label,
        "boundary": str(view.steps.boundary),
        "claim": "schedule",
        "options": dict(settings),
        "elapsed_ns": path.elapsed_ns,
        "by_class_ns": {work.label: n for work, n in path.by_class_ns.items()},
        "by_evidence_ns": path.by_evidence_ns,
        "ties": path.ties,
        "path_count": path.path_count,
        "pieces": critical.path_rows(view),
        "joins": [_join_data(view, j) for j in rivals],
    }


def answer_around(view: StepGraph, pattern: str, settings: Mapping[str, Any] | None = None) -> Document:
    """What one operation waited for, and who waits for it."""
    found, total = around.analyze(view, pattern)
    blocks: list[Block] = [
        Section(
            "",
            notes=(
                say(
                    "{} {} of {} in {}; the {} most critical:",
                    count(total), text(plural(total, "activity", "activities")), name(pattern), name(view.step.label), count(len(found)),
                ),
                *say_settings(settings or {}),
            ),
            topic="around",
        )
    ]  # fmt: skip
    for one in found:
        blocks += _around_sections(view, one)
    data = {
        "step": view.step.label,
        "operation": pattern,
        "options": dict(settings or {}),
        "activities": total,
        "shown": [_around_data(view, a) for a in found],
    }
    return Document("critical", (input_of(view),), tuple(blocks), data, findings(view), nulls_of(data, NULLS))


def _opening(view: StepGraph, path: critical.CriticalPath) -> list[Sentence]:
    """How long, how many, how sure."""
    evidence = ", ".join("{} {}" for _ in path.by_evidence_ns)
    values = [v for kind, n in path.by_evidence_ns.items() for v in (text(kind), share(n, path.elapsed_ns))]
    how_many = (
        "at least {} critical paths"
        if path.path_count_capped
        else "{} critical " + plural(path.path_count, "path")
    )
    return [
        say(
            "critical path of {}, {} boundary: {} in {} stretches",
            name(view.step.label), text(str(view.steps.boundary)), ns(path.elapsed_ns), count(len(path.segments)),
        ),
        say(how_many + ", {} ties met; this is the one schedule that was observed", count(path.path_count), count(path.ties)),
        say(f"path evidence: {evidence}", *values),
    ]  # fmt: skip


def _runs_section(view: StepGraph, *, full: bool) -> Section:
    """The path as runs on one thread or queue (or, in full, as every stretch); together they are the step."""
    columns = (
        Column("start_ns", "from", Unit.NS),
        Column("length_ns", "for", Unit.NS),
        Column("lane", "where", Unit.NAME),
        Column("class", "class", Unit.TEXT),
        Column("name", "most of it", Unit.NAME),
        Column("stretches", "parts", Unit.COUNT),
        Column("evidence", "by", Unit.TEXT),
    )
    runs = [[row] for row in critical.path_rows(view)] if full else _runs(view)
    rows = [_run_row(view, run) for run in runs]
    longest = sorted(rows, key=lambda r: -_int(r[1]))
    shown, others = (longest, []) if full else (longest[:RUNS], longest[RUNS:])
    shown.sort(key=lambda r: _int(r[0]))
    total = (None, view.step.elapsed_ns, "total", "", "", sum(len(run) for run in runs), "")
    title = "Stretches of the path" if full else "Runs of the path"
    notes = (say("--full shows every run"),) if others else ()
    return Section(
        title, columns, (*shown, *_as_one_row(others)), total, notes, "schedule", None, "critical-path"
    )


def _as_one_row(others: list[tuple[Cell, ...]]) -> list[tuple[Cell, ...]]:
    """What is not shown run by run, so that the rows still add up to the total."""
    if not others:
        return []
    length, parts = (sum(_int(run[i]) for run in others) for i in (1, 5))
    what = f"{len(others)} shorter {plural(len(others), 'run')}"
    return [(None, length, "", "", what, parts, "")]


def _runs(view: StepGraph) -> list[list[Row]]:
    """Neighbouring stretches on one lane; communication stands apart from computing."""
    rows = [row for row in critical.path_rows(view) if row["length_ns"]]
    runs = [list(group) for _, group in groupby(rows, key=lambda r: (r["lane"], _apart(r)))]
    if len(runs) >= FEW_RUNS:
        return runs
    # A path that stays on one queue tells nothing as one run: there the class of work divides it.
    return [list(group) for _, group in groupby(rows, key=lambda r: (r["lane"], r["class"]))]


def _apart(row: Row) -> str:
    return WorkClass.COMM.label if row["class"] == WorkClass.COMM.label else ""


def _run_row(view: StepGraph, run: list[Row]) -> tuple[Cell, ...]:
    """One run: times count from the window's opening; class and name are those with most time inside it."""
    length = sum(_int(r["length_ns"]) for r in run)
    work = _most(run, "class")
    start = _int(run[0]["start_ns"]) - view.step.start_ns
    evidence = str(run[0]["evidence"] or "opening")
    where = _where(view, str(run[0]["lane"]))
    return (
        start,
        length,
        where,
        work,
        _most([r for r in run if r["class"] == work], "name"),
        len(run),
        evidence,
    )


def _most(run: list[Row], key: str) -> str:
    """The value of a column that has most time."""
    time: Counter[str] = Counter()
    for row in run:
        time[str(row[key])] += _int(row["length_ns"])
    return max(time, key=lambda value: (time[value], value))


def _where(view: StepGraph, lane: str) -> str:
    """A lane's words, without the device where there is only one."""
    devices = {one.device_label for one in view.trace.events.lanes if one.side == Side.DEVICE}
    return lane.removeprefix(f"device {next(iter(devices))} ") if len(devices) == 1 else lane


def _int(value: object) -> int:
    return int(value) if isinstance(value, int | float) else 0


def _joins_section(view: StepGraph, rivals: tuple[joins.Join, ...], *, full: bool) -> Section:
    """At each join, how far behind the next chain is: beyond that, speeding up the first buys nothing more."""
    columns = (
        Column("margin_ns", "margin", Unit.NS),
        Column("node", "activity", Unit.NAME),
        Column("binding", "waits for", Unit.NAME),
        Column("binding_kind", "by", Unit.TEXT),
        Column("runner_up", "then", Unit.NAME),
        Column("runner_up_kind", "by", Unit.TEXT),
    )
    rows = tuple(
        (
            j.margin_ns, view.node_name(j.node), view.node_name(j.binding),
            EDGE_WORDS[j.binding_kind], view.node_name(j.runner_up), EDGE_WORDS[j.runner_up_kind],
        )
        for j in rivals
    )  # fmt: skip
    notes = (
        (say("margin: how much the first may gain before the next chain takes over; closest first"),)
        if rows
        else (say("no join on the path: nothing takes over"),)
    )
    return Section(
        "Runner-up chains", columns, rows, None, notes, "schedule", None if full else JOINS, "runner-up"
    )


def _around_sections(view: StepGraph, one: around.Around) -> list[Block]:
    """One occurrence: itself, what it waited for, who waits."""
    graph, lanes = view.built.graph, view.trace.events.lanes
    start = int(graph.start_ns[one.node]) - view.step.start_ns
    head = say(
        "{} on {}: starts {} into the step, runs {}, gap before it {}, slack {}, drag {}",
        name(view.node_name(one.node)), name(lanes[int(graph.lane[one.node])].words), ns(start), ns(int(graph.dur_ns[one.node])),
        ns(one.gap_ns), ns(one.slack_ns if one.slack_ns >= 0 else None), ns(one.drag_ns),
    )  # fmt: skip
    return [
        Section("", notes=(head,)),
        _neighbours(view, "waited for", one.waits_for),
        _neighbours(view, "is waited for by", one.waited_by),
    ]


def _neighbours(view: StepGraph, title: str, edges: tuple[around.Neighbour, ...]) -> Section:
    columns = (
        Column("name", "activity", Unit.NAME),
        Column("lane", "where", Unit.NAME),
        Column("why", "why", Unit.TEXT),
        Column("evidence", "evidence", Unit.TEXT),
        Column("room_ns", "room", Unit.NS),
        Column("binds", "binds", Unit.TEXT),
    )
    graph, lanes = view.built.graph, view.trace.events.lanes
    rows = tuple(
        (
            view.node_name(n.node), _where(view, lanes[int(graph.lane[n.node])].words), EDGE_WORDS[n.kind],
            n.evidence.name.lower(), n.room_ns, "yes" if n.binds else "no",
        )
        for n in edges
    )  # fmt: skip
    notes = () if rows else (say("nothing in this trace"),)
    return Section(title, columns, rows, None, notes, "schedule", 8)


def _join_data(view: StepGraph, j: joins.Join) -> dict[str, Any]:
    return {
        "at_ns": j.at_ns,
        "activity": view.node_name(j.node),
        "binding": view.node_name(j.binding),
        "runner_up": view.node_name(j.runner_up),
        "margin_ns": j.margin_ns,
        "binding_kind": j.binding_kind.name.lower(),
        "runner_up_kind": j.runner_up_kind.name.lower(),
        "runner_up_evidence": Evidence(j.runner_up_evidence).name.lower(),
    }


def _around_data(view: StepGraph, one: around.Around) -> dict[str, Any]:
    graph = view.built.graph

    def edges(neighbours: tuple[around.Neighbour, ...]) -> list[dict[str, Any]]:
        return [
            {
                "name": view.node_name(n.node),
                "kind": n.kind.name.lower(),
                "evidence": n.evidence.name.lower(),
                "room_ns": n.room_ns,
                "binds": n.binds,
            }
            for n in neighbours
        ]

    row = int(graph.row[one.node])
    return {
        "name": view.node_name(one.node),
        "class": WorkClass(int(view.links.work[row])).label if row >= 0 else WorkClass.UNTRACKED.label,
        "start_ns": int(graph.start_ns[one.node]),
        "dur_ns": int(graph.dur_ns[one.node]),
        "gap_ns": one.gap_ns,
        "slack_ns": one.slack_ns if one.slack_ns >= 0 else None,
        "drag_ns": one.drag_ns,
        "waits_for": edges(one.waits_for),
        "waited_by": edges(one.waited_by),
    }
