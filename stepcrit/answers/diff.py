"""`diff`: did the step get longer, where, and what would show whether that is why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from stepcrit.analyses.balance import Delta, is_small
from stepcrit.analyses.fingerprint import Level, WorkChange
from stepcrit.answers import diffwords as words
from stepcrit.answers.compared import Asked, Compared, compared
from stepcrit.answers.data import facts
from stepcrit.answers.diffdata import NULLS, diff_data
from stepcrit.answers.findings import findings
from stepcrit.answers.words import input_of, name, ns, saved, say, say_settings, text
from stepcrit.graph.pathkeys import PathKey
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.model.section import Block, Cell, Column, Document, Finding, Section, Sentence, Unit

SHOWN_KEYS = 8
SHOWN_CLASSES = 5
SHOWN_TIMES = 8
SHOWN_WORK = 8
SHOWN_KERNELS = 3

NOT_COMPARABLE = "(host time and gaps: not comparable)"
OTHERS = "(all else)"


def answer(
    base: Sequence[StepGraph],
    new: Sequence[StepGraph],
    asked: Asked | None = None,
    *,
    settings: Mapping[str, Any] | None = None,
) -> Document:
    """The whole answer to a comparison.

    Args:
        base: each run of the base, by its representative step.
        new: likewise.
        asked: threshold, and a prediction to judge.
        settings: as for `analyze.answer`.
    """
    return document(compared(base, new, asked), settings or {})


def document(told: Compared, settings: Mapping[str, Any]) -> Document:
    """A comparison as every format writes it."""
    blocks: list[Block] = [
        Section("", notes=(*words.opening(told), *say_settings(settings)), topic="diff"),
        Section("Matched work", notes=tuple(words.comparable(told)), claim="observed", topic="matched-work"),
        *_work(told),
        Section("Ratio of the periods", notes=tuple(words.periods(told)), claim="estimate", topic="ratio"),
        _keys(told),
        _classes(told),
        _beside(told),
        *_renamed(told),
        *_judged(told),
        Section("Verdict", notes=tuple(_closing(told)), claim="schedule", topic="diff-verdict"),
    ]
    views = [run.view for side in (told.base, told.new) for run in side.runs]
    data, unknown = facts(lambda: {**diff_data(told), "options": dict(settings)}, NULLS)
    inputs = tuple(input_of(view) for view in views)
    return Document("diff", inputs, tuple(blocks), data, _findings(told), unknown)


def _findings(told: Compared) -> tuple[Finding, ...]:
    """What is odd about each input, under the side it is on."""
    found = []
    for word, side in (("base", told.base), ("new", told.new)):
        for run in side.runs:
            label = f"{word}: "
            for one in findings(run.view):
                what = Sentence(f"{{}}{one.what.template}", (text(label), *one.what.values))
                found.append(Finding(one.code, what, one.count))
    return tuple(found)


def _work(told: Compared) -> list[Section]:
    """What one side does and the other does not."""
    if not told.work_changes:
        return []
    columns = (
        Column("work", "work", Unit.NAME),
        Column("inputs", "inputs", Unit.NAME, spare=not any(c.key.shapes for c in told.work_changes)),
        Column("types", "types", Unit.NAME, spare=True),
        Column("base_times", "in base", Unit.TEXT),
        Column("new_times", "in new", Unit.TEXT),
    )
    changes = sorted(told.work_changes, key=lambda c: (-abs(c.new.total - c.base.total), c.key))
    rows = tuple(_work_row(change) for change in changes)
    notes = tuple(words.work_notes(told))
    return [Section("Other work", columns, rows, None, notes, "observed", SHOWN_WORK, "matched-work")]


def _work_row(change: WorkChange) -> tuple[Cell, ...]:
    key = change.key
    types = ", ".join(part for part in key.dtypes.strip("[]").replace('"', "").split(",") if part)
    group = f"group {key.group}" if key.group else ""
    label = key.name if key.kind != "step" else f"({key.name})"
    detail = ", ".join(part for part in (words.shown_detail(key.shapes), group) if part)
    return (label, detail, types, words.times_words(change.base), words.times_words(change.new))


def _keys(told: Compared) -> Section:
    """The difference by key; sums to the difference of the mean periods."""
    columns = (
        Column("key", "on the critical path", Unit.NAME),
        Column("kind", "kind", Unit.TEXT, spare=True),
        Column("inputs", "inputs", Unit.NAME, spare=True),
        Column("base_ns", "base", Unit.NS),
        Column("new_ns", "new", Unit.NS),
        Column("delta_ns", "difference", Unit.SAVED_NS),
        Column("own_delta_ns", "own time", Unit.SAVED_NS),
        Column("calls", "calls", Unit.TEXT, spare=True),
        Column("how", "how", Unit.TEXT),
    )
    balance = told.balance
    rows = tuple(_key_rows(told))
    total = ("total", "", "", balance.base_ns, balance.new_ns, balance.delta_ns, None, "", "")
    notes = [say("means per step; own time: on the path or off it, over all queues and threads")]
    medians = told.shift.new.median_ns - told.shift.base.median_ns
    apart = balance.delta_ns - medians
    if abs(apart) > told.asked.threshold * balance.base_ns:
        line = "medians differ by {}, means by {}: single steps weigh in the means"
        notes.append(say(line, saved(round(medians)), saved(balance.delta_ns)))
    return Section(
        "Where the difference is", columns, rows, total, tuple(notes), "schedule", SHOWN_KEYS, "path-keys"
    )


def _key_rows(told: Compared) -> Iterator[tuple[Cell, ...]]:
    """Keys that differ, largest first; then all others together."""
    refused = told.differs(Level.CAPTURE)
    shown: list[Delta[PathKey]] = []
    left: list[Delta[PathKey]] = []
    hidden: list[Delta[PathKey]] = []
    for delta in told.balance.deltas:
        if refused and delta.key.kind in ("host", "gap"):
            hidden.append(delta)
        elif is_small(delta, told.balance):
            left.append(delta)
        else:
            shown.append(delta)
    others = Counter(delta.key.name for delta in shown)
    yield from (_key_row(delta, others) for delta in shown)
    for label, group in ((NOT_COMPARABLE, hidden), (OTHERS, left)):
        if group:
            base, new = (sum(getattr(d, side).path_ns for d in group) for side in ("base", "new"))
            yield (label, "", "", base, new, new - base, None, "", f"{len(group)} keys")


def _label(key: PathKey, others: Counter[str]) -> str:
    """A key's name; where several keys are called so, with what tells them apart."""
    if key.kind == "gap":
        return f"({key.name})"
    if others[key.name] < 2:
        return key.name
    return f"{key.name} {words.shown_detail(key.detail) or f'({key.kind})'}"


def _key_row(delta: Delta[PathKey], others: Counter[str]) -> tuple[Cell, ...]:
    key = delta.key
    label = _label(key, others)
    return (
        label,
        key.kind,
        words.shown_detail(key.detail),
        delta.base.path_ns,
        delta.new.path_ns,
        delta.path_ns,
        delta.own_ns,
        _calls(delta),
        str(delta.how),
    )


def _calls(delta: Delta[PathKey]) -> str:
    """Calls per step on both sides, where they differ."""
    before, after = delta.base.calls, delta.new.calls
    if before is None or after is None:
        return ""
    shown = [f"{float(n):.2f}".rstrip("0").rstrip(".") for n in (before, after)]
    return shown[0] if shown[0] == shown[1] else " → ".join(shown)


def _classes(told: Compared) -> Section:
    """The same difference by class of work."""
    columns = (
        Column("class", "class", Unit.TEXT),
        Column("base_ns", "base", Unit.NS),
        Column("new_ns", "new", Unit.NS),
        Column("delta_ns", "difference", Unit.SAVED_NS),
    )
    found = told.by_class
    refused = told.differs(Level.CAPTURE)
    hidden = [d for d in found.deltas if refused and d.key.group in ("host", "gap")]
    large = [d for d in found.deltas if not is_small(d, found) and d not in hidden]
    left = [d for d in found.deltas if d not in large and d not in hidden]
    rows: list[tuple[Cell, ...]] = [(d.key.label, d.base.path_ns, d.new.path_ns, d.path_ns) for d in large]
    for label, group in ((NOT_COMPARABLE, hidden), (OTHERS, left)):
        if group:
            base, new = (sum(getattr(d, side).path_ns for d in group) for side in ("base", "new"))
            rows.append((label, base, new, new - base))
    total = ("total", found.base_ns, found.new_ns, found.delta_ns)
    return Section("By class", columns, tuple(rows), total, (), "schedule", SHOWN_CLASSES, "path-keys")


def _beside(told: Compared) -> Section:
    """What the device did, whether or not it is on the path; and memory."""
    columns = (
        Column("what", "busiest device", Unit.TEXT),
        Column("base_ns", "base", Unit.NS),
        Column("new_ns", "new", Unit.NS),
        Column("delta_ns", "difference", Unit.SAVED_NS),
    )
    rows: list[tuple[Cell, ...]] = []
    for prefix, before, after in (
        ("", told.base.times_ns, told.new.times_ns),
        ("idle: ", told.base.idle_ns, told.new.idle_ns),
    ):
        if before is None or after is None:
            continue
        names = dict.fromkeys([*before, *after])
        each = [(f"{prefix}{one}", before.get(one, 0), after.get(one, 0)) for one in names]
        rows += [(label, was, now, now - was) for label, was, now in each if was or now]
    notes = list(words.peaks(told))
    if told.base.times_ns is None or told.new.times_ns is None:
        notes.insert(0, say("device work: not recorded on both sides"))
    elif not rows:
        notes.insert(0, say("no device work"))
    shown = columns if rows else ()
    return Section(
        "Beside the path", shown, tuple(rows), None, tuple(notes), "observed", SHOWN_TIMES, "beside"
    )


def _renamed(told: Compared) -> list[Section]:
    """Other kernels under equal operators."""
    if not told.renamed:
        return []
    lines = []
    for key, gone, come in told.renamed[:SHOWN_KERNELS]:
        before, after = told.base.kernels[key], told.new.kernels[key]
        steps = (len(told.base.periods_ns), len(told.new.periods_ns))
        detail = words.shown_detail(key.detail)
        lines.append(
            say(
                "{}{}: kernel {} → {}; its device work {} → {} a step",
                name(key.name), text(f" {detail}" if detail else ""), name(gone[0]), name(come[0]),
                ns(before.total() / steps[0]), ns(after.total() / steps[1]),
            )
        )  # fmt: skip
    rest = len(told.renamed) - SHOWN_KERNELS
    if rest > 0:
        lines.append(say("and {} more operators with other kernels", text(str(rest))))
    return [Section("Other kernels", notes=tuple(lines), claim="observed", topic="other-kernels")]


def _judged(told: Compared) -> list[Section]:
    judged = told.judged
    if judged is None:
        return []
    notes = tuple(words.judged_words(told, judged))
    return [Section("Prediction", notes=notes, claim="estimate", topic="judgement")]


def _closing(told: Compared) -> list[Sentence]:
    """The verdict, and what may have made the difference."""
    lines = [words.headline(told)]
    for i, one in enumerate(told.hypotheses, 1):
        said = words.hypothesis_words(told, one)
        lines.append(Sentence(f"{i}  {said.template}", said.values))
    return lines
