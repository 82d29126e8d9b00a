"""`whatif`: if this took another time, how long would the step be, and how sure are we?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from msgspec import Struct

from stepcrit.analyses import bounds, whatif
from stepcrit.analyses.bounds import Bounds
from stepcrit.analyses.whatif import Question
from stepcrit.answers.assumed import assumed_section, assumptions
from stepcrit.answers.data import NOT_GIVEN, nulls_of
from stepcrit.answers.findings import findings
from stepcrit.answers.machine import model_data, model_lines
from stepcrit.answers.sure import NULLS as SURE_NULLS
from stepcrit.answers.sure import Sure, sure_data, sure_of
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
from stepcrit.graph.change import Applied, Change
from stepcrit.graph.replay import Saving
from stepcrit.graph.select import Selection, together
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.intervals import ascending
from stepcrit.model.classes import WorkClass
from stepcrit.model.section import Block, Cell, Column, Document, Section, Sentence, Unit, Value
from stepcrit.units import ns_text

NULLS = {
    "changes[].amount_ns": "the change is no --set or --add",
    "changes[].factor": "the change is no --shrink or --speedup",
    "matched": "nothing is selected: only the machine changes",
    "knee_share": "the saving never levels off, or nothing is selected",
    "target": "not asked for",
    "target.taken_share": "all of the selection gone does not reach it",
    "bounds.free_ns": "--model free was not asked for",
    "models[].measured": "the model measures nothing, or was told",
    **NOT_GIVEN,
    **SURE_NULLS,
}


PLOT_WIDTH = 30
"""Cells of the longest bar of a saving curve."""


class Wanted(Struct, frozen=True):
    """What to tell beside the prediction.

    Attributes:
        curve: the saving as more and more of the selection is taken away.
        target_ns: a length of the step to be reached, or None.
    """

    curve: bool = False
    target_ns: int | None = None


class _Answer(Struct, frozen=True, eq=False):
    """Everything that is told."""

    view: StepGraph
    result: whatif.WhatIf
    bounds: Bounds
    sure: Sure
    assumed: Sequence[str]
    points: Sequence[tuple[float, Saving]]
    target_ns: int | None
    target_share: Fraction | None


def answer(
    view: StepGraph,
    question: Question,
    wanted: Wanted | None = None,
    *,
    settings: Mapping[str, Any] | None = None,
) -> Document:
    """The whole answer to one combination of changes; `settings` as for `analyze.answer`.

    Raises:
        UsageError: a selector matches nothing, or models do not go together.
        UnusableInputError: a model needs what the trace does not show.
    """
    told = _answer(view, question, wanted or Wanted())
    result = told.result
    blocks: list[Block] = [
        Section("", notes=(*_opening(view, result), *say_settings(settings or {})), topic="whatif"),
        *([_selected(view, result)] if question.changes else []),
        Section("Prediction", notes=tuple(_prediction(told)), claim="modelled", topic="whatif"),
    ]
    if question.models:
        lines = tuple(model_lines(view, result, told.bounds))
        blocks.append(Section("Models", notes=lines, topic="models"))
    if result.after_by_class_ns:
        blocks.append(_takes_over(view, result))
    if told.points:
        blocks.append(_curve_section(told.points))
    blocks.append(assumed_section(told.assumed, told.sure))
    data = {**_data(told), "options": dict(settings or {})}
    return Document("whatif", (input_of(view),), tuple(blocks), data, findings(view), nulls_of(data, NULLS))


def _answer(view: StepGraph, question: Question, wanted: Wanted) -> _Answer:
    result = whatif.analyze(view, question)
    free = any(model.name == "free" for model in question.models)
    target_share = None
    if wanted.target_ns is not None and question.changes:
        target_share = whatif.share_needed(view, question, result.period_ns - wanted.target_ns)
    return _Answer(
        view,
        result,
        bounds.analyze(view, result.asked, free=free),
        sure_of(view),
        assumptions(view, question.models),
        whatif.curve(view, question) if wanted.curve and question.changes else (),
        wanted.target_ns,
        target_share,
    )


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
    for change, selection, entries in zip(
        result.question.changes, applied.selections, applied.calls, strict=True
    ):
        lines.append(in_words(change, selection, calls=len(ascending(every.row[entries]))))
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
    for change, s in zip(result.question.changes, result.applied.selections, strict=True):
        part = s.on_path_ns / view.step.elapsed_ns if view.step.elapsed_ns else None
        rows.append((str(change.selector), s.device_count + s.host_count, s.total_ns, s.on_path_ns, part))
    label = name(view.step.label)
    if result.period_count:
        note = say("time in all: over the whole recording; on path, share: of {}", label)
    else:
        note = say("all of {}", label)
    return Section("Selected", columns, tuple(rows), None, (note,), "schedule", None, "whatif")


def _prediction(told: _Answer) -> list[Sentence]:
    """Before, after, saving as an interval, ceiling, floor."""
    result = told.result
    low, high = result.predicted_ns
    saving = result.saving
    before = ns(result.period_ns)
    lines = [
        say("the step takes {} instead of {}", ns(low), before)
        if ns_text(low) == ns_text(high)
        else say("the step takes {} to {} instead of {}", ns(low), ns(high), before)
    ]
    if ns_text(saving.low_ns) == ns_text(saving.high_ns):
        lines.append(
            say("saving {} ({} of the step)", saved(saving.low_ns), share(saving.low_ns, result.period_ns))
        )
    else:
        ends = (saved(saving.low_ns), saved(saving.high_ns))
        lines.append(say("saving {} to {}: " + _why_a_range(result), *ends))
    return lines + _limits(told) + _target(told)


def _limits(told: _Answer) -> list[Sentence]:
    """Ceiling, knee and floor."""
    result, lines = told.result, []
    if result.question.changes:
        lines.append(say("ceiling {}: were the selection gone altogether", saved(result.ceiling.high_ns)))
    elif result.transfer:
        words = "ceiling {}: were transfers no longer than their start-up"
        lines.append(say(words, saved(result.ceiling.high_ns)))
    if result.knee_share is not None:
        words = "from {} of the selection taken away on, more saves less: another path takes over"
        lines.append(say(words, share(float(result.knee_share), 1)))
    on_path = sum(s.on_path_ns for s in result.applied.selections)
    if any(s.total_ns for s in result.applied.selections) and result.ceiling.high_ns == 0:
        said = "over steady steps it hides behind other work" if on_path else "it all has slack"
        lines.append(say("the step does not get shorter without what is selected: " + said))
    if told.bounds.busy_ns:
        busy = (ns(told.bounds.busy_ns), name(told.view.step.label), text(told.bounds.busiest))
        lines.append(say("floor {} for {}: so long is {} busy with it after the change", *busy))
    return lines


def _why_a_range(result: whatif.WhatIf) -> str:
    """What the two ends of the answer differ in."""
    why = ["gaps may stay, or go with what they followed"]
    if result.question.links and result.question.links.alpha_ns is None:
        why.insert(0, "how much of a transfer is start-up is not known")
    if result.applied.production != 1:
        why.insert(0, "how far loader workers can run ahead is not in the trace")
    return "; ".join(why)


def _target(told: _Answer) -> list[Sentence]:
    """Whether a length that is wanted can be reached by this selection."""
    if told.target_ns is None:
        return []
    result, least = told.result, told.result.period_ns - told.result.ceiling.low_ns
    if told.target_ns >= result.period_ns - result.baseline.low_ns:
        return [say("target {}: the step is there already", ns(told.target_ns))]
    if told.target_share is None:
        return [
            say(
                "target {}: not reachable by this change alone; with all of the selection gone the step still takes {}",
                ns(told.target_ns),
                ns(least),
            )
        ]
    left = 1 - told.target_share
    return [
        say(
            "target {}: reached when the selection takes {} × its time",
            ns(told.target_ns),
            text(f"{float(left):g}"),
        )
    ]


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
        Column("plot", "plot", Unit.TEXT),
    )
    most = max(1, *(s.low_ns for _, s in points))
    rows = tuple((x, s.low_ns, s.high_ns, "█" * max(0, PLOT_WIDTH * s.low_ns // most)) for x, s in points)
    return Section("Saving curve", columns, rows, None, (), "modelled", None, "whatif")


def _data(told: _Answer) -> dict[str, Any]:
    view, result = told.view, told.result
    low, high = result.predicted_ns
    changes, selections = result.question.changes, result.applied.selections
    return {
        "claim": "modelled",
        "step": view.step.label,
        "changes": [_change_data(c, s) for c, s in zip(changes, selections, strict=True)],
        "period_ns": result.period_ns,
        "mean_of_periods": result.period_count,
        "predicted_ns": {"low": low, "high": high},
        "saving_ns": {"low": result.saving.low_ns, "high": result.saving.high_ns},
        "baseline_saving_ns": {"low": result.baseline.low_ns, "high": result.baseline.high_ns},
        "ceiling_ns": result.ceiling.high_ns,
        "knee_share": None if result.knee_share is None else float(result.knee_share),
        "matched": _matched(view, result.applied) if changes else None,
        "production_factor": float(result.applied.production),
        "takes_over": [{"class": w.label, "on_path_ns": n} for w, n in result.after_by_class_ns.items()],
        "curve": [{"taken_share": x, "saving_ns": saving_data(s)} for x, s in told.points],
        "target": _target_data(told),
        "bounds": {
            "elapsed_ns": told.bounds.elapsed_ns,
            "busy_ns": told.bounds.busy_ns,
            "busiest": told.bounds.busiest,
            "free_ns": told.bounds.free_ns,
        },
        "model": "+".join(model.name for model in result.question.models) or "order",
        "models": [model_data(view, result, model) for model in result.question.models],
        "assumptions": list(told.assumed),
        "trust": sure_data(told.sure),
    }


def _target_data(told: _Answer) -> dict[str, Any] | None:
    if told.target_ns is None:
        return None
    taken = None if told.target_share is None else float(told.target_share)
    return {"target_ns": told.target_ns, "taken_share": taken}


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
