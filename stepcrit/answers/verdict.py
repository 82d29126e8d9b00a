"""Verdict and evidence: sentences whose every word is computed from the figures.

The verdict names the kind of work that carries the path; the evidence tells the same in other quantities.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepcrit.answers.advice import Next, what_next
from stepcrit.answers.figures import Figures
from stepcrit.answers.words import count, name, ns, say, share, text
from stepcrit.intervals import intersect, union
from stepcrit.model.classes import WorkClass
from stepcrit.model.events import EventKind, Side
from stepcrit.model.section import Sentence

MAJORITY = 0.5
NOTICEABLE = 0.01
"""Of the step: less overhead of the profiler is not worth a line."""


GROUP_WORDS = {"compute": "kernels", "comm": "communication", "copy": "copies", "host": "host", "gap": "gaps"}
HEADLINES = {
    "compute": ("device", "device-bound: kernels are {} of the critical path"),
    "comm": ("communication", "communication-bound: collectives are {} of the critical path"),
    "copy": ("copy", "copy-bound: copies are {} of the critical path"),
    "gap": ("gap", "gap-bound: {} of the critical path is delay between activities"),
}


class Verdict(Struct, frozen=True):
    """The answer in words."""

    code: str
    headline: Sentence
    evidence: tuple[Sentence, ...]
    next: tuple[Next, ...]


def verdict(f: Figures) -> Verdict:
    """Tell what carries the step, on what evidence, and what to try."""
    code, headline = _headline(f)
    if f.view.trace.meta.is_cut:
        headline = replace(headline, template=f"in what is left of the file, {headline.template}")
    return Verdict(code, headline, tuple(_evidence(f)), what_next(f))


def _headline(f: Figures) -> tuple[str, Sentence]:
    """The kind of work with most of the path; mixed when none has a clear lead."""
    groups, total = f.path.by_group_ns, f.elapsed_ns
    top, second = sorted(groups, key=lambda g: -groups[g])[:2]
    if groups[top] < MAJORITY * total:
        parts = (
            text(GROUP_WORDS[top]),
            share(groups[top], total),
            text(GROUP_WORDS[second]),
            share(groups[second], total),
        )
        return "mixed", say("mixed: {} {} and {} {} of the critical path", *parts)
    if top == "host":
        return _host_headline(f)
    code, words = HEADLINES[top]
    return code, say(words, share(groups[top], total))


def _host_headline(f: Figures) -> tuple[str, Sentence]:
    """Host-bound, and by what."""
    total, on_path = f.elapsed_ns, share(f.path.by_group_ns["host"], f.elapsed_ns)
    host = {work: ns_ for work, ns_ in f.path.by_class_ns.items() if work.group == "host"}
    worst = max(host, key=lambda work: host[work])
    if worst == WorkClass.INPUT and worst == next(iter(f.path.by_class_ns)):
        return "input", say(
            "input-bound: waiting for the next batch is {} of the critical path", share(host[worst], total)
        )
    return "host", say(
        "host-bound: the host is {} of the critical path, most of it {} ({})",
        on_path,
        text(worst.label),
        share(host[worst], total),
    )


def _evidence(f: Figures) -> list[Sentence]:
    """What the verdict rests on, in other quantities than the path."""
    lines = []
    if f.view.trace.meta.is_cut:
        lines.append(
            say("the file stops early, and writers put device work last: what is missing is in no number")
        )
    if f.devices:
        lost = f.view.trace.meta.is_cut or any(odd.code != "P309" for odd in f.lost)
        busiest = f.devices[0]
        idle = (ns(busiest.idle_ns), share(busiest.idle_ns, busiest.window_ns))
        words = "device {} runs nothing for {} ({} of the step)"
        if lost:
            words = "device {} runs nothing that was recorded for {} ({} of the step); work is missing"
        lines.append(say(words, name(busiest.device), *idle))
    elif f.device_not_recorded:
        lines.append(say("{}: what it did is not known", text(_no_device(f))))
    lines += [*_queue(f), *_communication(f), *_pace(f), *_overhead(f)]
    if f.path.path_count > 1:
        lines.append(
            say(
                "{} critical paths tie: what only one of them holds saves nothing alone",
                count(f.path.path_count),
            )
        )
    return lines


def _no_device(f: Figures) -> str:
    """Why there is nothing of the device."""
    is_cut = f.view.trace.meta.is_cut
    return "no device work is in what is left of the file" if is_cut else "the device was not recorded"


def _queue(f: Figures) -> list[Sentence]:
    """Which side the device starts waited for."""
    q = f.queue
    if q.launch_bound_share is None:
        return []
    template = (
        "{} of {} device starts waited for their launch last; launch to start: median {}, up to {} waiting"
    )
    return [
        say(
            template,
            share(q.launch_bound_share, 1),
            count(q.count),
            ns(q.launch_to_start_ns),
            count(q.max_depth),
        )
    ]


def _communication(f: Figures) -> list[Sentence]:
    """Two different statements: geometry by device, and what is on the path."""
    template = "device {} communicates {}: {} covered by computing, {} not covered"
    lines = [
        say(template, name(d.device), ns(d.comm_ns), ns(d.covered_ns), ns(d.not_covered_ns))
        for d in f.devices
        if d.comm_ns
    ][:2]
    if f.comm_on_path_ns:
        words = text(_collective_words(f))
        lines.append(
            say(
                "communication on the path: {}{}; waiting for other ranks and transfer undivided",
                ns(f.comm_on_path_ns),
                words,
            )
        )
    return lines


def _pace(f: Figures) -> list[Sentence]:
    """Where the host carries the pace, the device's part of the path overlaps the next step."""
    on_device = sum(f.path.by_group_ns[g] for g in ("compute", "comm", "copy"))
    if not (f.path.paced_by == Side.HOST and on_device > NOTICEABLE * 10 * f.elapsed_ns):
        return []
    return [
        say(
            "the device's {} of the path ends this step beside the next one: less of it need not mean a shorter period",
            share(on_device, f.elapsed_ns),
        )
    ]


def _overhead(f: Figures) -> list[Sentence]:
    """The profiler's own work beside host stretches of the path."""
    segments, events = f.view.segments, f.view.trace.events
    rows = events.is_kind(EventKind.OVERHEAD)
    host = np.array([lane.side == Side.HOST for lane in events.lanes], np.bool_)[segments.lane]
    spent = intersect(
        union(events.start_ns[rows], events.end_ns[rows]),
        union(segments.start_ns[host], segments.end_ns[host]),
    ).length
    if spent < NOTICEABLE * f.elapsed_ns:
        return []
    return [
        say(
            "the profiler's own work lies beside {} of the path: without it those host stretches are shorter",
            share(spent, f.elapsed_ns),
        )
    ]


def _collective_words(f: Figures) -> str:
    """Which collectives the step ran, where metadata names them."""
    start, end = f.view.trace.events.start_ns, f.view.trace.events.end_ns
    window = f.view.step
    named = Counter(
        c.name
        for c in f.collectives
        if c.name and end[c.row] > window.start_ns and start[c.row] < window.end_ns
    )
    return "".join(f"; {n} {what}" for what, n in named.most_common(3))
