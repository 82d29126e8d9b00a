"""`doctor`: what evidence the file has and lacks, what that costs, and how to record better."""

from __future__ import annotations

from collections.abc import Callable

from stepcrit.analyses.evidence import Check, State, analyze
from stepcrit.answers.data import nulls_of
from stepcrit.answers.findings import of_reading, rule_findings
from stepcrit.answers.implausible import all_oddities, implausible, implausible_data
from stepcrit.answers.words import count, name, plural, say, text
from stepcrit.link.presence import Platform, platform_of
from stepcrit.model.events import HOST_KINDS
from stepcrit.model.links import Links
from stepcrit.model.oddity import Oddity
from stepcrit.model.section import Block, Column, Document, Finding, Input, Section, Sentence, Unit, Value
from stepcrit.model.slim import SlimMark
from stepcrit.model.steps import Steps
from stepcrit.model.trace import RawTrace, TraceMeta
from stepcrit.units import count_text, ns_text, share_text

_ACTIVITIES = {
    Platform.CUDA: "[ProfilerActivity.CPU, ProfilerActivity.CUDA]",
    Platform.ROCM: "[ProfilerActivity.CPU, ProfilerActivity.CUDA],  # ROCm, too",
    Platform.XPU: "[ProfilerActivity.CPU, ProfilerActivity.XPU]",
    Platform.MTIA: "[ProfilerActivity.CPU, ProfilerActivity.MTIA]",
    Platform.OTHER: "torch.profiler.supported_activities()",
    Platform.CPU: "[ProfilerActivity.CPU]",
}
"""What to record. ROCm answers to the name of CUDA in PyTorch."""


def recipe(platform: Platform) -> tuple[str, ...]:
    """A Python program that records a trace which answers, but for the user's own loader and step."""
    cuda = platform == Platform.CUDA
    activities = _ACTIVITIES[platform]
    config = (
        "config = torch._C._profiler._ExperimentalConfig(",
        "    enable_cuda_sync_events=True)",
    )
    return (
        *(("import torch",) if "torch." in activities or cuda else ()),
        "from torch.profiler import ProfilerActivity, profile, schedule",
        *(config if cuda else ()),
        "with profile(",
        f"    activities={activities}" + ("" if "#" in activities else ","),
        "    schedule=schedule(skip_first=10, wait=1, warmup=2, active=5, repeat=1),",
        "    record_shapes=True," + (" experimental_config=config," if cuda else ""),
        '    on_trace_ready=lambda p: p.export_chrome_trace("trace.json.gz"),',
        ") as prof:",
        "    for batch in loader:  # at least 18 of them",
        "        train_step(batch)",
        "        prof.step()",
        "# with_stack=True: only in a second, short recording, it slows the host",
    )


NULLS = {
    "slim": "not slimmed by stepcrit slim",
    "damage[].first_byte": "the reader does not know where it stands",
    "damage[].first_line": "the reader does not know where it stands",
    "checks[].seen_numbers[]": "not recorded",
}
"""Why a value can be null."""


def answer(trace: RawTrace, links: Links, steps: Steps, notes: dict[str, int] | None = None) -> Document:
    """Every check on one trace.

    Args:
        trace: as read.
        links: its links.
        steps: its steps.
        notes: what building the graph dropped or clamped, when there is a graph.
    """
    checks = analyze(trace, links, steps)
    odd = all_oddities(trace, links, steps)
    meta, program = trace.meta, recipe(platform_of(trace))
    has_host = bool(trace.events.is_kind(*HOST_KINDS).any())
    blocks: tuple[Block, ...] = (
        Section("", notes=tuple(_opening(trace, steps))),
        _checks_section(checks),
        Section("Can be answered", notes=(_capabilities(checks, has_host=has_host),)),
        *_fixes(checks),
        *_reading(meta),
        *_implausible_section(odd),
        Section("How to record", notes=tuple(say("{}", text(line)) for line in program), topic="recording"),
    )
    data = {
        "checks": [
            {
                "code": c.code,
                "evidence": c.evidence,
                "state": str(c.state),
                "seen": _filled(c.seen, _raw_text),
                "seen_numbers": [v.raw for v in c.seen.values if v.unit != Unit.TEXT],
                "lost": c.lost,
                "fix": c.fix,
            }
            for c in checks
        ],
        "dialect": list(meta.dialect),
        "dropped": dict(sorted(meta.dropped.items())),
        "damage": [
            {
                "harm": harm.harm.name.lower(),
                "words": str(harm.harm),
                "count": harm.count,
                "first_byte": None if harm.first_byte < 0 else harm.first_byte,
                "first_line": None if harm.first_line < 0 else harm.first_line,
                "excerpt": harm.excerpt,
            }
            for harm in meta.damage
        ],
        "lost_share": meta.lost_share,
        "skipped": [{"name": file, "why": why} for file, why in meta.skipped],
        "unknown_categories": dict(sorted(meta.unknown_cats.items())),
        "phases": dict(sorted(meta.phases.items())),
        "implausible": implausible_data(odd),
        "graph_notes": dict(sorted((notes or {}).items())),
        "profiler_notes": list(meta.notes),
        "recipe": list(program),
        "slim": _slim_data(meta.slim),
    }
    found = tuple(
        Finding(c.code, say("{}: " + c.seen.template, text(c.evidence), *c.seen.values))
        for c in checks
        if c.state == State.WARN
    )
    found = (*found, *of_reading(meta), *rule_findings(links.rules_used))
    found += implausible(odd)
    return Document(
        "doctor",
        (Input(meta.source, meta.sha256, meta.input_bytes),),
        blocks,
        data,
        found,
        nulls_of(data, NULLS),
    )


def _slim_data(mark: SlimMark | None) -> dict[str, object] | None:
    """What was done to a slimmed trace."""
    if mark is None:
        return None
    return {
        "level": mark.level,
        "steps_before": mark.steps_of,
        "first_step": mark.first_step,
        "last_step": mark.last_step,
    }


def _slim_words(mark: SlimMark) -> Sentence:
    """The same for people."""
    steps = text(
        mark.first_step if mark.first_step == mark.last_step else f"{mark.first_step} to {mark.last_step}"
    )
    return say(
        "slimmed: {} of {} {} ({})",
        steps, count(mark.steps_of), text(plural(mark.steps_of, "step")), text(mark.level),
    )  # fmt: skip


def _opening(trace: RawTrace, steps: Steps) -> list[Sentence]:
    meta = trace.meta
    lines = [
        say(
            "{}: {} {}, {}",
            name(meta.source),
            count(meta.event_count),
            text(plural(meta.event_count, "event")),
            text(_steps_words(steps)),
        ),
    ]
    if meta.dialect:
        lines.append(say("written by: {}", text("; ".join(meta.dialect))))
    if meta.slim:
        lines.append(_slim_words(meta.slim))
    if meta.options:
        lines.append(say("recorded with: {}", text(", ".join(sorted(meta.options)))))
    return lines


def _checks_section(checks: tuple[Check, ...]) -> Section:
    columns = (
        Column("code", "code", Unit.TEXT),
        Column("evidence", "evidence", Unit.TEXT),
        Column("state", "state", Unit.TEXT),
        Column("seen", "seen", Unit.TEXT),
    )
    rows = tuple((c.code, c.evidence, str(c.state), _filled(c.seen, _words)) for c in checks)
    return Section("Evidence", columns, rows, topic="doctor")


def _implausible_section(odd: tuple[Oddity, ...]) -> list[Section]:
    """What cannot be true of the file's rows, and what became of it; no section where all can."""
    columns = (
        Column("code", "code", Unit.TEXT),
        Column("count", "rows", Unit.COUNT),
        Column("of_count", "of", Unit.COUNT),
        Column("done", "done", Unit.TEXT),
        Column("example", "worst", Unit.NAME),
    )
    rows = tuple((one.code, one.count, one.of_count, str(one.done), one.example) for one in odd)
    return [Section("Cannot be true", columns, rows, topic="plausibility")] if odd else []


def _steps_words(steps: Steps) -> str:
    """How many steps, and what marks them."""
    if steps.source == "capture":
        return "no step marks"
    return f"{count_text(len(steps))} {plural(len(steps), 'step')} by {steps.source}"


def _filled(seen: Sentence, spell: Callable[[Value], str]) -> str:
    """A check's sentence as one string: a table's cell holds no sentence."""
    return seen.template.format(*(spell(value) for value in seen.values))


def _words(value: Value) -> str:
    """A number as it is shown everywhere else."""
    if value.raw is None or isinstance(value.raw, str):
        return str(value.raw)
    if value.unit == Unit.SHARE:
        return share_text(value.raw, 1)
    return ns_text(value.raw) if value.unit == Unit.NS else count_text(value.raw)


def _raw_text(value: Value) -> str:
    """A number unrounded, for machines."""
    return f"{value.raw} ns" if value.unit == Unit.NS else str(value.raw)


def _reading(meta: TraceMeta) -> list[Section]:
    """How much of the file could not be used; what was wrong with it is among the findings."""
    lines = []
    if meta.lost_share:
        lines.append(say("{} of the input could not be used", Value(meta.lost_share, Unit.SHARE)))
    if meta.is_cut:
        lines.append(say("how much a file that stops early once held is not known, and not in that share"))
    if not lines:
        return []
    return [Section("The file", notes=tuple(lines), topic="salvage")]


ABLE = {State.OK: "yes", State.WARN: "no", State.MISSING: "no", State.NOT_APPLICABLE: "n/a"}


def _capabilities(checks: tuple[Check, ...], *, has_host: bool) -> Sentence:
    """One line: what this file can answer. No: not recorded. n/a: there is nothing to be recorded."""
    state = {c.code: c.state for c in checks}
    asked = (
        ("distribution of steps", "E106"),
        ("modules", "E108"),
        ("lines", "E107"),
        ("bytes of collectives", "E109"),
        ("memory", "E110"),
    )
    able = {code: "in part" if (code, s) == ("E109", State.WARN) else ABLE[s] for code, s in state.items()}
    words = (_path_words(state, has_host=has_host), *(f"{what} {able[code]}" for what, code in asked))
    return say("{}", text(" · ".join(words)))


def _path_words(state: dict[str, State], *, has_host: bool) -> str:
    """Whether there is a critical path, and over what."""
    if state["E101"] != State.OK:
        if not has_host:
            return "critical path no"
        return "critical path yes" + (" (host only)" if state["E101"] != State.NOT_APPLICABLE else "")
    if state["E102"] == State.MISSING:
        return "critical path with --device-only"
    return "critical path yes" + (" (inferred waits)" if state["E103"] == State.MISSING else "")


def _fixes(checks: tuple[Check, ...]) -> list[Section]:
    """What is missing or odd, what follows from that, and how to record it."""
    lines = []
    for c in checks:
        if c.lost:
            without = "without it: " if c.state == State.MISSING else ""
            lines.append(say("{} {}: {}{}", text(c.code), text(c.evidence), text(without), text(c.lost)))
            lines.append(say("     {}", text(c.fix)))
    return [Section("Missing or odd", notes=tuple(lines))] if lines else []
