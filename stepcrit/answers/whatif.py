"""`whatif`: if this took another time, how long would the step be, and how sure are we?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stepcrit.analyses import trust, whatif
from stepcrit.answers.data import NOT_GIVEN, nulls_of
from stepcrit.answers.findings import findings
from stepcrit.answers.words import (
    input_of,
    name,
    ns,
    plural,
    saved,
    saving_data,
    say,
    say_settings,
    share,
    text,
)
from stepcrit.graph.change import Applied, Change, Options
from stepcrit.graph.replay import Saving
from stepcrit.graph.select import Selection, together
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.model.classes import WorkClass
from stepcrit.model.section import Block, Cell, Column, Document, Section, Sentence, Unit, Value
from stepcrit.units import ns_text

MODEL = "order"
NULLS = {
    "changes[].amount_ns": "the change is no --set or --add",
    "changes[].factor": "the change is no --shrink or --speedup",
    **NOT_GIVEN,
    "trust.starts_explained_share": "no device activity starts in the step",
}
ASSUMPTIONS = (
    "every thread and queue keeps its recorded order and dependencies",
    "kernels keep their durations: no contention, no other clocks, no other kernel choice",
    "waiting inside collectives and for DataLoader workers stays as recorded",
)


def answer(
    view: StepGraph,
    changes: Sequence[Change],
    options: Options | None = None,
    *,
    curve: bool = False,
    settings: Mapping[str, Any] | None = None,
) -> Document:
    """The whole answer to one combination of changes; `settings` as for `analyze.answer`.

    Raises:
        UsageError: a selector matches nothing.
    """
    options = options or Options()
    result = whatif.analyze(view, changes, options)
    known = trust.analyze(view)
    points = whatif.curve(view, changes, options) if curve else ()
    blocks: list[Block] = [
        Section("", notes=(*_opening(view, result), *say_settings(settings or {})), topic="whatif"),
        _selected(view, result),
        Section("Prediction", notes=tuple(_prediction(result)), claim="modelled", topic="whatif"),
        _takes_over(view, result),
    ]
    if points:
        blocks.append(_curve_section(points))
    blocks.append(
        Section(
            "Assumed", notes=(*(say("{}", text(a)) for a in ASSUMPTIONS), _known_by(known)), topic="trust"
        )
    )
    data = {**_data(view, result, known, points), "options": dict(settings or {})}
    return Document("whatif", (input_of(view),), tuple(blocks), data, findings(view), nulls_of(data, NULLS))


def in_words(change: Change, selection: Selection, *, calls: int = 0) -> Sentence:
    """A change as a sentence: what is changed, how, and what stays.

    Args:
        change: the change.
        selection: what it is applied to.
        calls: how many launch calls change along.
    """
    counts = (
        (selection.device_count, "device activity", "device activities"),
        (selection.host_count, "host range", "host ranges"),
        (int(selection.gap_nodes.sum()), "gap", "gaps"),
        (calls, "launch call", "launch calls"),
    )
    parts = [f"{n} {plural(n, one, several)}" for n, one, several in counts if n]
    untracked = bool((selection.row < 0).any())
    if not parts and not untracked:
        return say("nothing of {} starts in this step: it changes nothing", name(str(change.selector)))
    host = bool(selection.host_count or calls) or untracked
    kept = "host" if not host else "" if selection.device_count else "device"
    rest = f"; {kept} time unchanged" if kept else ""
    how, amount = _how(change, on_device=bool(selection.device_count))
    return say(
        "the {} of {} " + how + "{}",
        text(" and ".join(parts) or "untracked stretches"),
        name(str(change.selector)),
        *amount,
        text(rest),
    )


def _how(change: Change, *, on_device: bool) -> tuple[str, tuple[Value, ...]]:
    """What becomes of the time: words, and the values in their places."""
    if change.operation == "scale":
        return "take {} × their time", (text(f"{float(change.factor):g}"),)
    if change.operation == "remove":
        return "take no time" + (", nor the gaps in front of them" if on_device else ""), ()
    return f"take {{}} {'each' if change.operation == 'set' else 'more each'}", (ns(change.amount_ns),)


def _opening(view: StepGraph, result: whatif.WhatIf) -> list[Sentence]:
    every = view.stretches
    applied = result.applied
    lines = []
    for change, selection, entries in zip(result.changes, applied.selections, applied.calls, strict=True):
        lines.append(in_words(change, selection, calls=len(np.unique(every.row[entries]))))
    if applied.production != 1:
        lines.append(
            say(
                "loader workers take {} × their time over a batch; the loop waits for what it then must",
                text(f"{float(applied.production):g}"),
            )
        )
    if result.period_count:
        return [
            *lines,
            say("in every step; compared is the mean of {} steady periods", text(str(result.period_count))),
        ]
    steady = view.steps.steady
    why = (
        "it does not stand for the steady steps" if steady and steady.first is not None else "no steady steps"
    )
    return [*lines, say("in {} alone: {}", name(view.step.label), text(why))]


def _selected(view: StepGraph, result: whatif.WhatIf) -> Section:
    """What each selector matched."""
    columns = (
        Column("selector", "selected", Unit.NAME),
        Column("activities", "activities", Unit.COUNT),
        Column("total_ns", "time in all", Unit.NS),
        Column("on_path_ns", "on path", Unit.NS),
        Column("share", "share", Unit.SHARE),
    )
    rows: list[tuple[Cell, ...]] = []
    for change, s in zip(result.changes, result.applied.selections, strict=True):
        part = s.on_path_ns / view.step.elapsed_ns if view.step.elapsed_ns else None
        rows.append((str(change.selector), s.device_count + s.host_count, s.total_ns, s.on_path_ns, part))
    label = name(view.step.label)
    if result.period_count:
        note = say("time in all: over the whole recording; on path, share: of {}", label)
    else:
        note = say("all of {}", label)
    return Section("Selected", columns, tuple(rows), None, (note,), "schedule", None, "whatif")


def _prediction(result: whatif.WhatIf) -> list[Sentence]:
    """Before, after, saving as an interval, ceiling."""
    low, high = result.predicted_ns
    saving = result.saving
    if ns_text(low) == ns_text(high):
        lines = [
            say("the step takes {} instead of {}", ns(low), ns(result.period_ns)),
            say("saving {} ({} of the step)", saved(saving.low_ns), share(saving.low_ns, result.period_ns)),
        ]
    else:
        lines = [
            say("the step takes {} to {} instead of {}", ns(low), ns(high), ns(result.period_ns)),
            say(
                "saving {} to {}: gaps may stay, or go with what they followed",
                saved(saving.low_ns),
                saved(saving.high_ns),
            ),
        ]
    lines.append(say("ceiling {}: were the selection gone altogether", saved(result.ceiling.high_ns)))
    if any(selection.total_ns for selection in result.applied.selections) and result.ceiling.high_ns == 0:
        lines.append(say("the step does not wait for what is selected: it all has slack"))
    return lines


def _takes_over(view: StepGraph, result: whatif.WhatIf) -> Section:
    """The path by class before and after."""
    before: Counter[WorkClass] = Counter()
    for work, length in zip(view.segments.work.tolist(), view.segments.length_ns.tolist(), strict=True):
        before[WorkClass(work)] += length
    after = Counter(result.after_by_class_ns)
    columns = (
        Column("class", "class", Unit.TEXT),
        Column("before_ns", "on path now", Unit.NS),
        Column("after_ns", "path then", Unit.NS),
        Column("less_ns", "less", Unit.SAVED_NS),
    )
    order = sorted(before | after, key=lambda w: (-max(before[w], after[w]), w))
    rows = tuple((w.label, before[w], after[w], before[w] - after[w]) for w in order)
    total = ("total", before.total(), after.total(), before.total() - after.total())
    note = say("the path of {} alone, with every gap kept", name(view.step.label))
    return Section("What takes over", columns, rows, total, (note,), "modelled", 8, "whatif")


def _curve_section(points: Sequence[tuple[float, Saving]]) -> Section:
    """The saving as more and more of the selection is taken away."""
    columns = (
        Column("taken_share", "taken away", Unit.SHARE),
        Column("saving_low_ns", "saving", Unit.SAVED_NS),
        Column("saving_high_ns", "at most", Unit.SAVED_NS),
    )
    rows = tuple((x, s.low_ns, s.high_ns) for x, s in points)
    return Section("Saving curve", columns, rows, None, (), "modelled", None, "whatif")


def _known_by(known: trust.Trust) -> Sentence:
    shares = {k: v for k, v in known.evidence_share.items() if v}
    words = ", ".join("{} {}" for _ in shares)
    return say(
        f"the path is known by: {words}", *(v for k, s in shares.items() for v in (text(k), share(s, 1)))
    )


def _data(
    view: StepGraph, result: whatif.WhatIf, known: trust.Trust, points: Sequence[tuple[float, Saving]]
) -> dict[str, Any]:
    low, high = result.predicted_ns
    selections = result.applied.selections
    return {
        "claim": "modelled",
        "step": view.step.label,
        "changes": [_change_data(c, s) for c, s in zip(result.changes, selections, strict=True)],
        "period_ns": result.period_ns,
        "mean_of_periods": result.period_count,
        "predicted_ns": {"low": low, "high": high},
        "saving_ns": {"low": result.saving.low_ns, "high": result.saving.high_ns},
        "ceiling_ns": result.ceiling.high_ns,
        "matched": _matched(view, result.applied),
        "takes_over": [{"class": w.label, "on_path_ns": n} for w, n in result.after_by_class_ns.items()],
        "curve": [{"taken_share": x, "saving_ns": saving_data(s)} for x, s in points],
        "model": MODEL,
        "assumptions": list(ASSUMPTIONS),
        "trust": {
            "evidence_share": known.evidence_share,
            "timing_share": known.timing_share,
            "starts_explained_share": known.starts_explained_share,
        },
    }


def _matched(view: StepGraph, applied: Applied) -> dict[str, int]:
    """Everything that changes, each activity and each stretch of time once."""
    every = together(view, applied.selections, *applied.calls)
    return {
        "activities": every.device_count + every.host_count,
        "total_ns": every.total_ns,
        "on_path_ns": every.on_path_ns,
    }


def _change_data(change: Change, selection: Selection) -> dict[str, Any]:
    return {
        "selector": str(change.selector),
        "operation": change.operation,
        "factor": float(change.factor) if change.operation == "scale" else None,
        "amount_ns": change.amount_ns if change.operation in ("set", "add") else None,
        "device_activities": selection.device_count,
        "host_ranges": selection.host_count,
        "total_ns": selection.total_ns,
        "on_path_ns": selection.on_path_ns,
    }
