"""`doctor`: what evidence the file has and lacks, what that costs, and how to record better."""

from __future__ import annotations

from stepcrit.analyses.evidence import Check, State, analyze
from stepcrit.answers.words import count, name, say, text
from stepcrit.model.links import Links
from stepcrit.model.section import Block, Column, Document, Finding, Input, Section, Sentence, Unit
from stepcrit.model.steps import Steps
from stepcrit.model.trace import RawTrace

RECIPE = (
    "config = torch._C._profiler._ExperimentalConfig(",
    "    enable_cuda_sync_events=True)",
    "with torch.profiler.profile(",
    "    activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],",
    "    schedule=schedule(skip_first=10, wait=1, warmup=2, active=5, repeat=1),",
    "    record_shapes=True, experimental_config=config,",
    '    on_trace_ready=lambda p: p.export_chrome_trace("trace.json.gz"),',
    ") as prof:",
    "    for batch in loader: train_step(batch); prof.step()",
    "(with_stack=True only in a second, short recording: it slows the host)",
)


def answer(trace: RawTrace, links: Links, steps: Steps, notes: dict[str, int] | None = None) -> Document:
    """Every check on one trace.

    Args:
        trace: as read.
        links: its links.
        steps: its steps.
        notes: what building the graph dropped or clamped, when there is a graph.
    """
    checks = analyze(trace, links, steps)
    meta = trace.meta
    blocks: tuple[Block, ...] = (
        Section("", notes=tuple(_opening(trace, steps))),
        _checks_section(checks),
        Section("Can be answered", notes=(_capabilities(checks),)),
        *_fixes(checks),
        Section("How to record", notes=tuple(say("{}", text(line)) for line in RECIPE), topic="recording"),
    )
    data = {
        "checks": [
            {
                "code": c.code,
                "evidence": c.evidence,
                "state": str(c.state),
                "seen": c.seen,
                "lost": c.lost,
                "fix": c.fix,
            }
            for c in checks
        ],
        "dialect": list(meta.dialect),
        "dropped": dict(sorted(meta.dropped.items())),
        "unknown_categories": dict(sorted(meta.unknown_cats.items())),
        "phases": dict(sorted(meta.phases.items())),
        "graph_notes": dict(sorted((notes or {}).items())),
        "profiler_notes": list(meta.notes),
        "recipe": list(RECIPE),
    }
    found = tuple(
        Finding(c.code, say("{}: {}", text(c.evidence), text(c.seen)))
        for c in checks
        if c.state == State.WARN
    )
    return Document("doctor", (Input(meta.source, meta.sha256, meta.input_bytes),), blocks, data, found, {})


def _opening(trace: RawTrace, steps: Steps) -> list[Sentence]:
    meta = trace.meta
    lines = [
        say(
            "{}: {} events, {} steps by {}",
            name(meta.source),
            count(meta.event_count),
            count(len(steps)),
            text(steps.source),
        ),
    ]
    if meta.dialect:
        lines.append(say("written by: {}", text("; ".join(meta.dialect))))
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
    return Section(
        "Evidence", columns, tuple((c.code, c.evidence, str(c.state), c.seen) for c in checks), topic="doctor"
    )


def _capabilities(checks: tuple[Check, ...]) -> Sentence:
    """One line: what this file can answer."""
    state = {c.code: c.state for c in checks}
    able = [
        (
            "critical path",
            state["E104"] == State.OK or state["E101"] == State.OK,
            "inferred waits" if state["E103"] == State.MISSING else "",
        ),
        ("distribution of steps", state["E106"] == State.OK, ""),
        ("modules", state["E108"] == State.OK, ""),
        ("lines", state["E107"] == State.OK, ""),
        ("bytes of collectives", state["E109"] == State.OK, ""),
        ("memory", state["E110"] == State.OK, ""),
    ]
    words = [
        f"{what} {'yes' if yes else 'no'}" + (f" ({how})" if how and yes else "") for what, yes, how in able
    ]
    return say("{}", text(" · ".join(words)))


def _fixes(checks: tuple[Check, ...]) -> list[Section]:
    """What is missing, what it costs, how to get it."""
    lines = []
    for c in checks:
        if c.state in (State.MISSING, State.WARN):
            lines.append(say("{} {}: without it: {}", text(c.code), text(c.evidence), text(c.lost)))
            lines.append(say("     {}", text(c.fix)))
    return [Section("Missing", notes=tuple(lines))] if lines else []
