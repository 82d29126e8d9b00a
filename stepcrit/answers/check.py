"""`check`: do these traces keep their budgets? Each trace is judged here; the answer is written from what was found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from stepcrit.analyses.fingerprint import Difference, differences
from stepcrit.analyses.fingerprint import Level as Reach
from stepcrit.answers.data import nulls_of, plain
from stepcrit.answers.judge import Relation, Rule, judged, sort_key, worst
from stepcrit.answers.sampled import Sampled
from stepcrit.answers.words import count, name, plural, say, text
from stepcrit.model.checked import (
    Checked,
    CheckedBudget,
    CheckedTrace,
    Effect,
    Number,
    Outcome,
    Place,
    Remark,
)
from stepcrit.model.config import Manner
from stepcrit.model.section import Block, Cell, Column, Document, Input, Section, Sentence, Unit, Value
from stepcrit.model.trace import RawTrace
from stepcrit.units import bytes_text, count_text, ns_text, share_text

SHOWN_DIFFERENCES = 3
BROKEN = (Outcome.FAIL, Outcome.WARN)

NULLS = {
    "traces[].rows[].value": "the row's `why` says what the trace lacks",
    "traces[].rows[].base": "no baseline, or it lacks what the metric needs",
    "traces[].rows[].why": "value and limit say it all",
    "traces[].rows[].written_at": "the rule is one of the preset",
    "traces[].remarks[].written_at": "no line of the configuration is behind it",
    "remarks[].written_at": "no line of the configuration is behind it",
}


class Against(Struct, frozen=True):
    """What a trace is compared with.

    Attributes:
        side: the baseline; None: budgets alone.
        name: as the user knows it ("origin/main (3f2c1aa)"), "" without one.
        explain: the command that explains a difference, "" without one.
        manner: what is done where the two cannot be compared.
    """

    side: Sampled | None = None
    name: str = ""
    explain: str = ""
    manner: Manner = Manner.ERROR


def check_trace(
    path: str, rules: Sequence[Rule], now: Sampled, against: Against, remarks: Sequence[Remark] = ()
) -> CheckedTrace:
    """Judge one trace.

    Args:
        path: as the repository names it.
        rules: what applies to it.
        now: the trace.
        against: its baseline.
        remarks: what is known of it beside its content: stale, new, too large.

    Raises:
        ConfigError: a budget names a key that no trace has.
    """
    base = against.side
    relation, found = _relation(now, base, against.manner)
    rows = [row for rule in rules if (row := judged(rule, now, base, relation)) is not None]
    said = [*remarks, *_damaged(now.raw), *found]
    if not rows and not said:
        what = "no budget and no baseline says anything of this trace: nothing was judged"
        said.append(Remark("C110", Outcome.UNKNOWN, Effect.OPEN, say(what)))
    inputs = tuple(_input(side) for side in (now, base) if side is not None)
    whole = CheckedTrace(
        path,
        Outcome.PASS,
        Effect.NONE,
        against.name,
        tuple(sorted(rows, key=sort_key)),
        tuple(said),
        against.explain if base is not None and not relation.same_bytes else "",
        inputs,
    )
    return graded(whole)


def graded(trace: CheckedTrace) -> CheckedTrace:
    """The trace with the worst of its rows and remarks."""
    found = [(row.effect, row.outcome) for row in trace.rows]
    effect, outcome = worst([*found, *((remark.effect, remark.outcome) for remark in trace.remarks)])
    return replace(trace, effect=effect, outcome=outcome)


def refused(path: str, code: str, what: Sentence, remarks: Sequence[Remark] = ()) -> CheckedTrace:
    """A trace that cannot be read: the reason, and no verdict."""
    told = Remark(code, Outcome.INCONCLUSIVE, Effect.OPEN, what)
    return graded(CheckedTrace(path, Outcome.PASS, Effect.NONE, "", (), (*remarks, told)))


def effect_of(manner: Manner) -> Effect:
    """What a trace that cannot be compared, or is stale, does to the exit code."""
    return Effect.OPEN if manner == Manner.ERROR else Effect.NONE


def _damaged(raw: RawTrace) -> list[Remark]:
    """A trace that is not as it was written never passes."""
    lost = [(harm.count, str(harm.harm)) for harm in raw.meta.damage]
    lost += [(n, why) for why, n in sorted(raw.meta.dropped.items())]
    lost += [(odd.count, f"rows that cannot be true ({odd.code})") for odd in raw.oddities]
    if not lost:
        return []
    reasons = ", ".join(f"{n} × {why}" for n, why in lost[:SHOWN_DIFFERENCES])
    more = " …" if len(lost) > SHOWN_DIFFERENCES else ""
    what = say("the trace is partial or was repaired: {}{}", text(reasons), text(more))
    return [Remark("C101", Outcome.INCONCLUSIVE, Effect.OPEN, what)]


def _relation(now: Sampled, base: Sampled | None, manner: Manner) -> tuple[Relation, list[Remark]]:
    """Whether the two can be compared, and why not."""
    if base is None:
        return Relation(manner=manner), []
    if now.raw.meta.sha256 == base.raw.meta.sha256:
        return Relation(same_bytes=True, manner=manner), []
    found = [
        one
        for one in differences(base.fingerprint, now.fingerprint)
        if (one.is_known and one.level != Reach.NOTE)
        or one.level == Reach.CONFIGURATION  # a device that one side does not name may be another
    ]
    remarks = _not_comparable(found, manner)
    is_damaged = bool(_damaged(base.raw))
    if is_damaged:
        what = say("not comparable with the baseline: that one is partial or was repaired")
        remarks.append(Remark("C102", Outcome.INCONCLUSIVE, effect_of(manner), what))
    unfed = sorted(now.unfed(base))
    if unfed:
        what = say(
            "{} that launched device work in the baseline {} none here: "
            + ", ".join(["{}"] * min(len(unfed), SHOWN_DIFFERENCES))
            + "{}",
            text(f"{len(unfed)} {plural(len(unfed), 'operator')}"),
            text(plural(len(unfed), "launches", "launch")),
            *(name(each) for each in unfed[:SHOWN_DIFFERENCES]),
            text(" …" if len(unfed) > SHOWN_DIFFERENCES else ""),
        )
        remarks.append(Remark("C103", Outcome.INCONCLUSIVE, effect_of(manner), what))
    setting = not is_damaged and not any(one.level in (Reach.CAPTURE, Reach.CONFIGURATION) for one in found)
    work = not unfed and not any(one.level == Reach.WORK for one in found)
    return Relation(same_setting=setting, same_work=work, manner=manner), remarks


def _not_comparable(found: Sequence[Difference], manner: Manner) -> list[Remark]:
    outcome = Outcome.WARN if manner == Manner.WARN else Outcome.INCONCLUSIVE
    more = len(found) - SHOWN_DIFFERENCES
    remarks = [
        Remark(
            "C102",
            outcome,
            effect_of(manner),
            Sentence(f"not comparable with the baseline: {one.what.template}", one.what.values),
        )
        for one in found[:SHOWN_DIFFERENCES]
    ]
    if more > 0:
        what = say("not comparable with the baseline: {} more differences", count(more))
        remarks.append(Remark("C102", outcome, effect_of(manner), what))
    return remarks


def _input(side: Sampled) -> Input:
    meta = side.raw.meta
    return Input(meta.source, meta.sha256, meta.input_bytes)


# --- the answer --------------------------------------------------------------------------------


def answer(checked: Checked, *, show_passed: bool = False) -> Document:
    """Everything that was found, worst first."""
    told = [trace for trace in checked.traces if show_passed or not _is_quiet(trace)]
    blocks: list[Block] = [_trace_section(trace, show_passed=show_passed) for trace in told]
    quiet = [trace for trace in checked.traces if trace not in told]
    if quiet:
        blocks.append(Section("", notes=tuple(map(_quietly, quiet))))
    blocks.append(Section("", notes=tuple(_closing(checked)), topic="check"))
    data = _data(checked)
    inputs = tuple(one for trace in checked.traces for one in trace.inputs)
    return Document("check", inputs, tuple(blocks), data, (), nulls_of(data, NULLS))


COLUMNS = (
    Column("outcome", "outcome", Unit.TEXT),
    Column("metric", "metric", Unit.NAME),
    Column("value", "value", Unit.MIXED),
    Column("base", "baseline", Unit.MIXED),
    Column("allowed", "allowed", Unit.TEXT),
    Column("written_at", "written at", Unit.NAME, spare=True),
)


def _trace_section(trace: CheckedTrace, *, show_passed: bool) -> Section:
    """One trace: what did not pass, why, and how many did."""
    shown = [row for row in trace.rows if show_passed or row.outcome != Outcome.PASS]
    rest = len(trace.rows) - len(shown)
    notes = [_remark_words(remark) for remark in trace.remarks] + _reasons(shown)
    if rest:
        notes.append(
            say("pass {}{} (--show-passed)", count(rest), text(f" {plural(rest, 'other')}" if shown else ""))
        )
    if trace.explain:
        notes.append(say("explain: {}", text(trace.explain)))
    title = f"{trace.path} · {trace.outcome}" + (f" · vs {trace.baseline}" if trace.baseline else "")
    rows = tuple(_cells(row) for row in shown)
    return Section(title, COLUMNS if rows else (), rows, notes=tuple(notes))


def _is_quiet(trace: CheckedTrace) -> bool:
    """Whether there is nothing to say of a trace but that it passes."""
    return trace.outcome == Outcome.PASS and not trace.remarks


def _quietly(trace: CheckedTrace) -> Sentence:
    """One line for a trace that passes."""
    is_same = bool(trace.baseline) and not trace.explain and bool(trace.rows)
    words = "pass {}: {} {}{} (--show-passed)"
    budgets = plural(len(trace.rows), "budget")
    return say(
        words,
        name(trace.path),
        count(len(trace.rows)),
        text(budgets),
        text(", the baseline's bytes" if is_same else ""),
    )


def _reasons(rows: Sequence[CheckedBudget]) -> list[Sentence]:
    """Why each row has its outcome, and where that is written; rows with the same reason together."""
    together: dict[tuple[Outcome, Sentence], list[CheckedBudget]] = {}
    for row in rows:
        if row.why is not None:
            together.setdefault((row.outcome, row.why), []).append(row)
    return [
        Sentence(
            f"{{}} {{}}: {why.template}{{}}",
            (text(outcome), text(", ".join(row.metric for row in same)), *why.values, text(_places(same))),
        )
        for (outcome, why), same in together.items()
    ]


def _places(rows: Sequence[CheckedBudget]) -> str:
    """The lines that broken budgets stand on."""
    lines = dict.fromkeys(
        _place(row.place) for row in rows if row.outcome in BROKEN and row.place is not None
    )
    return f" ({', '.join(lines)})" if lines else ""


def _cells(row: CheckedBudget) -> tuple[Cell, ...]:
    limit = row.limit
    return (
        str(row.outcome),
        row.metric,
        None if row.value is None else Value(row.value, row.unit),
        None if row.base is None else Value(row.base, row.unit),
        limit.template.format(*(_shown(value.raw, value.unit) for value in limit.values)),
        _place(row.place),
    )


def _shown(value: Number | str | None, unit: Unit) -> str | None:
    """A number in its own unit: rows of a table have several."""
    if value is None or isinstance(value, str):
        return value
    if unit == Unit.NS:
        return ns_text(value)
    if unit == Unit.BYTES:
        return bytes_text(value)
    return share_text(value, 1) if unit == Unit.SHARE else count_text(value)


def _place(place: Place | None) -> str:
    return _written_at(place) or "preset"


def _remark_words(remark: Remark) -> Sentence:
    return Sentence(
        f"{{}} {remark.what.template} ({{}})", (text(remark.outcome), *remark.what.values, text(remark.code))
    )


def _closing(checked: Checked) -> list[Sentence]:
    """The sum of it."""
    lines = [_remark_words(remark) for remark in checked.remarks]
    lines += list(checked.notes)
    lines += [
        say(
            "tightened {}:{} {} {}: {} -> {}",
            name(t.path),
            count(t.line),
            name(t.metric),
            *map(text, (t.limit, t.old, t.new)),
        )
        for t in checked.tightened
    ]
    tally = Counter(str(trace.outcome) for trace in checked.traces)
    words = ", ".join(f"{n} {outcome}" for outcome, n in sorted(tally.items()))
    n = len(checked.traces)
    verdict = {0: _passing(tally), 1: "a budget is broken", 4: "something could not be judged"}[
        checked.exit_code
    ]
    lines.append(
        say("{} {}: {} · {}", count(n), text(plural(n, "trace")), text(words or "none"), text(verdict))
    )
    rules = checked.config or "the preset alone"
    lines.append(
        say("rules: {}{}", name(rules), name(f" · baseline: {checked.base}" if checked.base else ""))
    )
    return lines


def _passing(tally: Counter[str]) -> str:
    """What is said of exit code 0: a level or a manner can let pass what is not as it should be."""
    let_pass = {str(one) for one in (Outcome.WARN, Outcome.STALE, Outcome.INCONCLUSIVE, Outcome.UNKNOWN)}
    return "passes, with warnings" if let_pass & tally.keys() else "nothing is wrong"


def _data(checked: Checked) -> dict[str, Any]:
    return {
        "config": checked.config,
        "base": checked.base,
        "exit_code": checked.exit_code,
        "traces": [_trace_data(trace) for trace in checked.traces],
        "remarks": [_remark_data(remark) for remark in checked.remarks],
        "notes": [plain(note) for note in checked.notes],
        "tightened": [
            {
                "written_at": f"{t.path}:{t.line}",
                "metric": t.metric,
                "which": t.limit,
                "old": t.old,
                "new": t.new,
            }
            for t in checked.tightened
        ],
    }


def _trace_data(trace: CheckedTrace) -> dict[str, Any]:
    return {
        "file": trace.path,
        "outcome": str(trace.outcome),
        "effect": str(trace.effect),
        "baseline": trace.baseline,
        "explain_with": trace.explain,
        "rows": [_row_data(row) for row in trace.rows],
        "remarks": [_remark_data(remark) for remark in trace.remarks],
    }


def _row_data(row: CheckedBudget) -> dict[str, Any]:
    return {
        "metric": row.metric,
        "outcome": str(row.outcome),
        "effect": str(row.effect),
        "unit": str(row.unit),
        "value": row.value,
        "base": row.base,
        "allowed": plain(row.limit),
        "why": None if row.why is None else plain(row.why),
        "written_at": _written_at(row.place),
    }


def _remark_data(remark: Remark) -> dict[str, Any]:
    return {
        "code": remark.code,
        "outcome": str(remark.outcome),
        "effect": str(remark.effect),
        "what": plain(remark.what),
        "written_at": _written_at(remark.place),
    }


def _written_at(place: Place | None) -> str | None:
    return None if place is None else f"{place.path}:{place.line}"
