"""`analyze`: what does my step cost, why, what next. One screen, and everything on it as data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from stepcrit.analyses import warmup
from stepcrit.analyses.overlap import DeviceTime
from stepcrit.answers.advice import most_of
from stepcrit.answers.data import NULLS, analyze_data, facts, not_recorded
from stepcrit.answers.figures import Figures, figures
from stepcrit.answers.findings import findings
from stepcrit.answers.sure import sure_lines
from stepcrit.answers.tables import ranking_section
from stepcrit.answers.verdict import GROUP_WORDS, Verdict, verdict
from stepcrit.answers.warmup import say_warm_up
from stepcrit.answers.words import count, input_of, name, ns, plural, say, say_settings, share, text
from stepcrit.graph.groups import By
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.link.presence import Use
from stepcrit.model.classes import WorkClass
from stepcrit.model.events import Side
from stepcrit.model.section import Bar, Block, Column, Document, Section, Sentence, Unit
from stepcrit.model.steps import Boundary

SHOWN_DEVICES = 2

BOUNDARY_WORDS = {
    Boundary.DEVICE: "device boundary (all device work of the step done)",
    Boundary.HOST: "host boundary (the Python loop is free again)",
    Boundary.LAUNCH: "launch boundary (the last launch call has returned)",
    Boundary.UPDATE: "update boundary (new parameters are valid)",
}


def answer(
    view: StepGraph, *, by: By = "op", stream: int | None = None, settings: Mapping[str, Any] | None = None
) -> Document:
    """The whole answer for one step.

    Args:
        view: the step.
        by: what a row of the ranked table stands for.
        stream: explain the idle time of this stream alone.
        settings: the options that the trace was understood under (`session.Options.told`), to be repeated.
    """
    f = figures(view, by, stream)
    told = verdict(f)
    blocks: list[Block] = [
        Section("", notes=(*_opening(f), *say_settings(settings or {}))),
        _path_bar(f),
        _classes(f),
        Section("Time", notes=tuple(_time(f)), claim="observed", topic="elapsed"),
        ranking_section(f.ranking, f.presence, limit=6),
        Section("Trust", notes=tuple(sure_lines(f.sure)), claim="schedule", topic="trust"),
        *_closing(told),
    ]
    data, unknown = facts(lambda: analyze_data(f, told, settings or {}), {**NULLS, **not_recorded(f)})
    return Document("analyze", (input_of(view),), tuple(blocks), data, findings(view, f.lost), unknown)


def _opening(f: Figures) -> list[Sentence]:
    """Which file, which step, how long, and how the other steps were."""
    meta, step, steps = f.view.trace.meta, f.view.step, f.view.steps
    device = next((d.name for d in meta.devices if d.name), "")
    lines = [
        say(
            "{}{}{}",
            name(meta.source),
            text(f" · rank {meta.rank}" + (f" of {meta.world_size}" if meta.world_size > 0 else "") if meta.rank >= 0 else ""),
            name(f" · {device}" if device else ""),
        ),
        say(
            "{} takes {}, {}{}",
            name(step.label), ns(step.elapsed_ns), text(BOUNDARY_WORDS[steps.boundary]),
            text("" if step.opens_at_boundary else f", {_opens_at(f)}"),
        ),
    ]  # fmt: skip
    if steps.boundary == Boundary.UPDATE:
        lines.append(
            say(
                "an update spans {} backward passes: {}",
                count(max(steps.microbatches, default=0)),
                text(steps.boundary_why),
            )
        )
    return [*lines, *_distribution(f)]


def _opens_at(f: Figures) -> str:
    """Where a step without a boundary before it begins."""
    step = f.view.step
    if step.start_ns > step.host_start_ns:
        return "from the end of work launched before the recording"
    return "from its own start: no boundary before it"


def _distribution(f: Figures) -> list[Sentence]:
    """The steps as a distribution, start-up and warm-up apart."""
    e, steps = f.elapsed, f.view.steps
    lines = []
    if e.is_distribution and e.median_ns is not None and e.spread_share is not None:
        lines.append(
            say(
                "median of {} steady steps{} {}, from {} to {} (± {}); latency of this one {}",
                count(len(e.used)), text(_outliers(f)), ns(e.median_ns), ns(e.low_ns), ns(e.high_ns), share(e.spread_share, 1), ns(f.view.step.latency_ns),
            )
        )  # fmt: skip
    elif len(e.used) > 1 and e.median_ns is not None:
        lines.append(
            say(
                "{} periods: from {} to {}, median {}; latency of this step {}",
                count(len(e.used)), ns(e.low_ns), ns(e.high_ns), ns(e.median_ns), ns(f.view.step.latency_ns),
            )
        )  # fmt: skip
    apart = [(e.warm_up, "warm-up"), (e.set_aside, "set aside")]
    for group, word in apart:
        if group:
            first = group[0]
            lines.append(
                say(
                    "{} {} {}: {} ({}){}",
                    count(len(group)),
                    text(plural(len(group), "step")),
                    text(word),
                    name(first.label),
                    text(first.why_not),
                    text(" …" if len(group) > 1 else ""),
                )
            )
    slower = say_warm_up(warmup.analyze(f.view.trace, f.view.links, steps))
    return [*lines, *slower, *(say("{}", text(note)) for note in steps.notes)]


def _outliers(f: Figures) -> str:
    """How many of the steady steps lie outside the band."""
    steady = f.view.steps.steady
    n = len(steady.outliers) if steady is not None else 0
    return f" ({n} {plural(n, 'outlier')} among them)," if n else ""


def _path_bar(f: Figures) -> Bar:
    parts = tuple((GROUP_WORDS[g], n) for g, n in f.path.by_group_ns.items())
    return Bar("Critical path", parts, f.elapsed_ns, "schedule", "critical-path")


def _classes(f: Figures) -> Section:
    """The path by class; sums to the step."""
    rows = []
    for work, on_path in f.path.by_class_ns.items():
        rows.append(
            (
                work.label,
                work.group,
                on_path,
                on_path / f.elapsed_ns if f.elapsed_ns else None,
                _largest(f, work),
            )
        )
    columns = (
        Column("class", "class", Unit.TEXT),
        Column("group", "kind", Unit.TEXT),
        Column("critical_ns", "on path", Unit.NS),
        Column("share", "share", Unit.SHARE),
        Column("largest", "most of it", Unit.NAME),
    )
    notes = (say("{}", text(_coupling_words(f))),) if f.path.paced_by is not None else ()
    total = ("total", "", f.elapsed_ns, 1.0 if f.elapsed_ns else None, "")
    return Section(
        "What the step waits for", columns, tuple(rows), total, notes, "schedule", 8, "critical-path"
    )


def _coupling_words(f: Figures) -> str:
    """What carries the pace from one step to the next: where the path goes on before the window."""
    side = "device" if f.path.paced_by == Side.DEVICE else "host"
    return f"the {side} carries the pace: the path comes from its work of the step before"


def _largest(f: Figures, work: WorkClass) -> str:
    """The name with most path time in a class."""
    segments = f.view.segments
    mine = np.flatnonzero((segments.work == work) & (segments.row >= 0))
    return most_of(f, mine) if mine.size and work.group != "gap" else ""


def _time(f: Figures) -> list[Sentence]:
    """Elapsed beside summed time, each device's partition, idle time by cause."""
    lines = [_summed(f)]
    if f.presence.use == Use.NOT_KNOWN:
        lines.append(
            say(
                "a device is listed, but neither its work nor a call to it was recorded: what it did is not known"
            )
        )
    for device in f.devices[:SHOWN_DEVICES]:
        lines += _device_lines(device)
    if len(f.devices) > SHOWN_DEVICES:
        rest = len(f.devices) - SHOWN_DEVICES
        lines.append(say("and {} more {}", count(rest), text(plural(rest, "device"))))
    if f.idle and f.idle.idle_ns:
        causes = list(f.idle.by_cause_ns.items())[:3]
        words = ", ".join("{} {}" for _ in causes)
        values = [v for cause, n in causes for v in (text(cause), share(n, f.idle.idle_ns))]
        where = f"stream {f.stream}" if f.stream is not None else f"device {f.devices[0].device}"
        lines.append(say(f"{{}} idle {{}}: {words}", name(where), ns(f.idle.idle_ns), *values))
    return lines


def _device_lines(device: DeviceTime) -> list[Sentence]:
    """One device's window, by priority; and what ran at once, where anything did."""
    parts = device.partition_ns
    shares = (
        share(parts[kind], device.window_ns) for kind in ("compute", "comm alone", "copy alone", "idle")
    )
    lines = [
        say(
            "device {}: computing {}, only communicating {}, only copying {}, idle {}",
            name(device.device),
            *shares,
        )
    ]
    together = [(kind, n) for kind, n in device.symmetric_ns.items() if "+" in kind and n]
    if together:
        words = ", ".join("{} {}" for _ in together)
        values = [v for kind, n in together for v in (text(kind), share(n, device.window_ns))]
        lines.append(say(f"at the same time: {words}", *values))
    return lines


def _summed(f: Figures) -> Sentence:
    """Durations added up, and why they are not the elapsed time."""
    device = sum(d.summed_ns for d in f.devices)
    busy = sum(d.busy_ns for d in f.devices)
    host = f.ops.self_cpu_ns
    reasons = []
    if device and host:
        reasons.append("host and device work at the same time")
    if device > busy:
        reasons.append("device queues overlap")
    if len(f.devices) > 1:
        reasons.append("devices work side by side")
    if host > f.view.step.host_end_ns - f.view.step.host_start_ns:
        reasons.append("host threads work side by side")
    if device and host and f.view.step.host_end_ns <= f.view.step.start_ns:
        reasons.append("the host worked ahead, before the step's window")
    why = "; ".join(reasons) or f"one {'thread' if host else 'queue'} at a time, the rest is untracked"
    sides = (
        ns(device) if f.presence.device_known else text(f.presence.use),
        ns(host) if f.presence.host else text(Use.NOT_RECORDED),
    )
    return say(
        f"durations add up to {{}} (device{' work' * f.presence.device_known} {{}}, host {{}}), elapsed is {{}}: {{}}",
        ns(device + host), *sides, ns(f.elapsed_ns), text(why),
    )  # fmt: skip


def _closing(told: Verdict) -> list[Block]:
    """Verdict, evidence, what next: the last thing on the screen."""
    lines = [told.headline, *told.evidence]
    steps = [
        Sentence(
            f"{i}  {step.what.template}: {step.evidence.template}; {step.refuted.template}",
            (*step.what.values, *step.evidence.values, *step.refuted.values),
        )
        for i, step in enumerate(told.next, 1)
    ]
    if not steps:
        steps.append(say("nothing on the path would save 1 % of the step alone: it is spread evenly"))
    return [
        Section("Verdict", notes=tuple(lines), claim="schedule", topic="verdict"),
        Section("What next", notes=tuple(steps), claim="modelled", topic="saving"),
    ]
