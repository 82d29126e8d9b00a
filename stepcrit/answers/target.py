"""`whatif --target`: what is the smallest change that makes the step as short as wanted?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stepcrit.analyses import target
from stepcrit.analyses.target import Part, Target, Way
from stepcrit.answers.assumed import assumed_section, assumptions
from stepcrit.answers.data import NOT_GIVEN, nulls_of
from stepcrit.answers.findings import findings
from stepcrit.answers.sure import NULLS as SURE_NULLS
from stepcrit.answers.sure import sure_data, sure_of
from stepcrit.answers.words import (
    count,
    input_of,
    name,
    ns,
    saving_data,
    say,
    say_settings,
    text,
)
from stepcrit.graph.groups import By
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.model.section import Block, Column, Document, Section, Sentence, Unit, Value

NULLS = {
    "together": "one name alone reaches it, or no set of names does, or the step is there already",
    "most": "the target can be reached, or nothing that was tried is on the path",
    "nothing_left_ns": "the target can be reached",
    **NOT_GIVEN,
    **SURE_NULLS,
}


def answer(
    view: StepGraph, target_ns: int, by: By = "op", *, settings: Mapping[str, Any] | None = None
) -> Document:
    """Ways to a length of the step.

    Args:
        view: the step.
        target_ns: the length that is wanted.
        by: what may change as one.
        settings: options of the session, for the answer to repeat.

    Raises:
        UsageError: the trace does not record what to group by.
    """
    found = target.analyze(view, by, target_ns)
    sure, assumed = sure_of(view), assumptions(view)
    blocks: list[Block] = [
        Section("", notes=tuple(_opening(view, found, settings or {})), topic="target"),
        *([_alone(found)] if found.alone else []),
        assumed_section(assumed, sure),
    ]
    data = {
        "claim": "modelled",
        "step": view.step.label,
        "by": by,
        "period_ns": found.period_ns,
        "mean_of_periods": found.period_count,
        "target_ns": found.target_ns,
        "alone": [_way_data(way) for way in found.alone],
        "together": _way_data(found.together) if found.together else None,
        "most": _way_data(found.most) if found.most else None,
        "nothing_left_ns": found.nothing_left_ns,
        "left": [{"name": label, "on_path_ns": n} for label, n in found.left],
        "assumptions": list(assumed),
        "trust": sure_data(sure),
        "options": dict(settings or {}),
    }
    unknown = nulls_of(data, NULLS)
    return Document("whatif-target", (input_of(view),), tuple(blocks), data, findings(view), unknown)


def _opening(view: StepGraph, found: Target, settings: Mapping[str, Any]) -> list[Sentence]:
    """The question, and the answer where it is not a table."""
    of = (
        say("mean of {} steady periods, changed in every step", count(found.period_count))
        if found.period_count
        else say("{} alone", name(view.step.label))
    )
    asked = say("the step takes {}; wanted: {}", ns(found.period_ns), ns(found.target_ns))
    return [asked, of, *_told(found), *say_settings(settings)]


def _told(found: Target) -> list[Sentence]:
    if found.target_ns >= found.period_ns:
        return [say("it is there already")]
    if found.alone:
        return []
    if found.together:
        parts, values = _in_words(found.together.parts)
        after = found.period_ns - found.together.saving.low_ns
        return [
            say("no one name is enough; the fewest that were found, replayed together:"),
            say(f"{parts}: {{}}", *values, ns(after)),
        ]
    return _out_of_reach(found)


def _out_of_reach(found: Target) -> list[Sentence]:
    """Why it cannot be reached, or was not."""
    lines = []
    nothing_left = found.nothing_left_ns or 0
    if nothing_left > found.target_ns:
        lines.append(
            say("out of reach: with every {} gone the step still takes {}", text(found.by), ns(nothing_left))
        )
    else:
        lines.append(say("no set of up to {} names was found that is enough", count(target.MOST_TOGETHER)))
    if found.most:
        parts, values = _in_words(found.most.parts)
        after = found.period_ns - found.most.saving.low_ns
        lines.append(say(f"with {parts} the step still takes {{}}", *values, ns(after)))
    if found.left:
        lines.append(
            say(
                "then its path is " + ", ".join("{} {}" for _ in found.left),
                *(value for label, n in found.left for value in (name(label), ns(n))),
            )
        )
    return lines


def _in_words(parts: tuple[Part, ...]) -> tuple[str, list[Value]]:
    """`a and b gone, c at 0.25 × its host time` with the values in their places."""
    gone = [part for part in parts if part.taken_share == 1]
    rest = [part for part in parts if part.taken_share < 1]
    words = [" and ".join(["{}"] * len(gone)) + " gone"] if gone else []
    words += ["{} at {} × its {} time"] * len(rest)
    values = [name(part.name) for part in gone]
    for part in rest:
        values += [name(part.name), text(f"{float(1 - part.taken_share):g}"), text(part.side)]
    return ", ".join(words), values


def _alone(found: Target) -> Section:
    """Names each of which is enough."""
    columns = (
        Column("name", found.by, Unit.NAME),
        Column("side", "side", Unit.TEXT),
        Column("taken_share", "taken away", Unit.SHARE),
        Column("left_factor", "left", Unit.TEXT),
        Column("saving_low_ns", "saving", Unit.SAVED_NS),
    )
    rows = tuple(
        (
            way.parts[0].name,
            way.parts[0].side,
            float(way.parts[0].taken_share),
            f"{float(1 - way.parts[0].taken_share):g} ×",
            way.saving.low_ns,
        )
        for way in found.alone
    )
    n = len(rows)
    note = (
        say("each of these {} names is enough by itself", count(n))
        if n > 1
        else say("it is enough by itself")
    )
    return Section("Enough alone", columns, rows, None, (note,), "modelled", None, "target")


def _way_data(way: Way) -> dict[str, Any]:
    return {
        "parts": [
            {"name": part.name, "side": part.side, "taken_share": float(part.taken_share)}
            for part in way.parts
        ],
        "saving_ns": saving_data(way.saving),
    }
