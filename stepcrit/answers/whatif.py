"""`whatif`: if this took another time, how long would the step be, and how sure are we?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from stepcrit.analyses import trust, whatif
from stepcrit.answers.findings import findings
from stepcrit.answers.words import input_of, name, ns, plural, saved, saving_data, say, share, text
from stepcrit.graph.change import Change
from stepcrit.graph.replay import Saving
from stepcrit.graph.select import Selection
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.model.classes import WorkClass
from stepcrit.model.section import Block, Cell, Column, Document, Section, Sentence, Unit, Value
from stepcrit.units import ns_text

MODEL = "order"
ASSUMPTIONS = (
    "every thread and queue keeps its recorded order and dependencies",
    "kernels keep their durations: no contention, no other clocks, no other kernel choice",
    "waiting inside collectives and for DataLoader workers stays as recorded",
)


def answer(
    view: StepGraph, changes: Sequence[Change], options: whatif.Options | None = None, *, curve: bool = False
) -> Document:
    """The whole answer to one combination of changes.

    Raises:
        UsageError: a selector matches nothing.
    """
    options = options or whatif.Options()
    result = whatif.analyze(view, changes, options)
    known = trust.analyze(view)
    points = whatif.curve(view, changes, options) if curve else ()
    blocks: list[Block] = [
        Section("", notes=tuple(_opening(view, result, with_launch=options.with_launch)), topic="whatif"),
        _selected(view, result),
        Section("Prediction", notes=tuple(_prediction(view, result)), claim="modelled", topic="whatif"),
        _takes_over(view, result),
    ]
    if points:
        blocks.append(_curve_section(points))
    blocks.append(
        Section(
            "Assumed", notes=(*(say("{}", text(a)) for a in ASSUMPTIONS), _known_by(known)), topic="trust"
        )
    )
    data = _data(view, result, known, points)
    return Document("whatif", (input_of(view),), tuple(blocks), data, findings(view), {})


def in_words(change: Change, selection: Selection, *, with_launch: bool = False) -> Sentence:
    """A change as a sentence: what is changed, how, and what stays."""
    parts = []
    if selection.device_count:
        parts.append(
            f"{selection.device_count} device {plural(selection.device_count, 'activity', 'activities')}"
        )
    if selection.host_count:
        parts.append(f"{selection.host_count} host {plural(selection.host_count, 'range')}")
    if selection.gap_nodes.any():
        parts.append(f"{int(selection.gap_nodes.sum())} gaps")
    untracked = bool((selection.row < 0).any())
    host = bool(selection.host_count) or untracked or with_launch
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


def _opening(view: StepGraph, result: whatif.WhatIf, *, with_launch: bool) -> list[Sentence]:
    lines = [
        in_words(c, s, with_launch=with_launch)
        for c, s in zip(result.changes, result.applied.selections, strict=True)
    ]
    if result.period_count:
        return [
            *lines,
            say("in every step; compared is the mean of {} steady periods", text(str(result.period_count))),
        ]
    return [*lines, say("in {} alone: it does not stand for the steady steps", name(view.step.label))]


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
    note = say("time in all: over the whole recording; on path, share: of {}", name(view.step.label))
    return Section("Selected", columns, tuple(rows), None, (note,), "schedule", None, "whatif")


def _prediction(view: StepGraph, result: whatif.WhatIf) -> list[Sentence]:
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
    if not result.period_count and not _reaches(view, result.applied.selections):
        lines.append(say("nothing selected starts in {}: nothing is changed", name(view.step.label)))
    elif result.ceiling.high_ns == 0:
        lines.append(say("the step does not wait for what is selected: it all has slack"))
    return lines


def _reaches(view: StepGraph, selections: Sequence[Selection]) -> bool:
    """Whether anything selected starts in the step."""
    start = view.built.graph.start_ns
    inside = (start >= view.step.start_ns) & (start < view.step.end_ns)
    return any(bool(inside[s.node].any() or inside[s.gap_nodes].any()) for s in selections)


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
        "matched": _matched(view, selections),
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


def _matched(view: StepGraph, selections: Sequence[Selection]) -> dict[str, int]:
    """All selections together, each activity and each stretch of time once."""
    node, row, length = (
        np.concatenate([getattr(s, column) for s in selections]) for column in ("node", "row", "length_ns")
    )
    stretches = set(zip(node.tolist(), row.tolist(), length.tolist(), strict=True))
    gaps = np.logical_or.reduce([s.gap_nodes for s in selections])
    total = sum(ns for _, _, ns in stretches) + int(view.built.arrivals.gap_ns[gaps].sum())
    path = view.segments
    mine = np.where(path.is_gap == 1, gaps[path.node], np.isin(path.row, row))
    activities = len(np.unique(row[row >= 0]))
    if len(selections) == 1:
        one = selections[0]
        return {
            "activities": one.device_count + one.host_count,
            "total_ns": one.total_ns,
            "on_path_ns": one.on_path_ns,
        }
    return {"activities": activities, "total_ns": total, "on_path_ns": int(path.length_ns[mine].sum())}


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
