"""Verdict, evidence, what next: sentences whose every word is computed from the figures.

The verdict names the kind of work that carries the path. Each "what next" line names one intervention,
the evidence in this trace that makes it plausible, and the measurement that would disprove it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from stepcrit.analyses.ranking import ORPHAN, UNATTRIBUTED, UNTRACKED, Ranked
from stepcrit.answers.figures import Figures
from stepcrit.answers.words import count, name, ns, plural, say, share, text
from stepcrit.model.arrays import Int64Array
from stepcrit.model.classes import WorkClass
from stepcrit.model.events import DEVICE_KINDS
from stepcrit.model.section import Sentence

W = WorkClass

MAJORITY = 0.5
WORTH = 0.01
"""An intervention that could not save one percent of the step is not worth a line."""


ONE_OFF_CALLS = 4
"""Of at least so many calls, one that takes most of their time is a one-off: loading, allocating, starting up."""


@dataclass(frozen=True, slots=True)
class Next:
    """One intervention: what to try, why, what would disprove it, and the replayed saving."""

    code: str
    what: Sentence
    evidence: Sentence
    refuted: Sentence
    low_ns: int
    high_ns: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer in words."""

    code: str
    headline: Sentence
    evidence: tuple[Sentence, ...]
    next: tuple[Next, ...]


def verdict(f: Figures) -> Verdict:
    """Tell what carries the step, on what evidence, and what to try."""
    code, headline = _headline(f)
    return Verdict(code, headline, tuple(_evidence(f)), _next(f))


def _headline(f: Figures) -> tuple[str, Sentence]:
    """The kind of work with most of the path; mixed when none has a clear lead."""
    groups, total = f.path.by_group_ns, f.elapsed_ns
    top = max(groups, key=lambda g: groups[g])
    on_path = share(groups[top], total)
    if groups[top] < MAJORITY * total:
        parts = sorted(groups.items(), key=lambda item: -item[1])
        (a, a_ns), (b, b_ns) = parts[:2]
        return "mixed", say(
            "mixed: {} {} and {} {} of the critical path",
            text(a),
            share(a_ns, total),
            text(b),
            share(b_ns, total),
        )
    if top == "host":
        return _host_headline(f)
    if top == "gap":
        return "gap", say("gap-bound: {} of the critical path is delay between activities", on_path)
    words = {
        "compute": "device-bound: kernels are {} of the critical path",
        "comm": "communication-bound: collectives are {} of the critical path",
        "copy": "copy-bound: copies are {} of the critical path",
    }
    return {"compute": "device", "comm": "communication", "copy": "copy"}[top], say(words[top], on_path)


def _host_headline(f: Figures) -> tuple[str, Sentence]:
    """Host-bound, and by what."""
    total, on_path = f.elapsed_ns, share(f.path.by_group_ns["host"], f.elapsed_ns)
    host = {work: ns_ for work, ns_ in f.path.by_class_ns.items() if work.group == "host"}
    worst = max(host, key=lambda work: host[work])
    if worst == W.INPUT:
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
    if f.devices:
        busiest = f.devices[0]
        lines.append(
            say(
                "device {} runs nothing for {} ({} of the step)",
                name(busiest.device),
                ns(busiest.idle_ns),
                share(busiest.idle_ns, busiest.window_ns),
            )
        )
    if f.queue.launch_bound_share is not None:
        lines.append(
            say(
                "{} of {} device starts waited for their launch, the others for device work; launch to start: median {}, up to {} waiting",
                share(f.queue.launch_bound_share, 1), count(f.queue.count), ns(f.queue.launch_to_start_ns), count(f.queue.max_depth),
            )
        )  # fmt: skip
    lines += [
        say(
            "device {} communicates {}: {} covered by computing, {} not covered",
            name(d.device), ns(d.comm_ns), ns(d.covered_ns), ns(d.not_covered_ns),
        )
        for d in f.devices
        if d.comm_ns
    ][:2]  # fmt: skip
    if f.comm_on_path_ns:
        lines.append(
            say("communication on the path: {}{}", ns(f.comm_on_path_ns), text(_collective_words(f)))
        )
    if f.path.path_count > 1:
        lines.append(
            say(
                "{} critical paths tie: what only one of them holds saves nothing alone",
                count(f.path.path_count),
            )
        )
    return lines


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


def _next(f: Figures) -> tuple[Next, ...]:
    """The interventions with the largest replayed saving, at most three, one per kind of work."""
    found: dict[str, Next] = {}
    for row in f.ops.rows:
        if row.half is None or row.free is None or row.free.low_ns < WORTH * f.elapsed_ns:
            continue
        step = _intervention(f, row)
        if step.code not in found:
            found[step.code] = step
    gap = f.path.by_class_ns.get(W.UNEXPLAINED, 0)
    if gap > 10 * WORTH * f.elapsed_ns:
        found["record"] = _unexplained(f, gap)
    ranked = sorted(found.values(), key=lambda n: (n.code != "record", -n.low_ns, n.code))
    return tuple(ranked[:3])


def _intervention(f: Figures, row: Ranked) -> Next:
    """What to try for one row of the ranking, by what kind of work it is."""
    mine = _path_of(f, row)
    work = _work_of(f, mine)
    longest = int(f.view.segments.length_ns[mine].max(initial=0))
    if work in (W.LAUNCH, W.RUNTIME) and row.calls >= ONE_OFF_CALLS and 2 * longest > row.critical_ns:
        code, what = (
            "start-up",
            say(
                "{} is one call of {}: start-up belongs before the recording, or before the loop",
                name(row.name),
                ns(longest),
            ),
        )
    else:
        code, what = _advice(work, _called(f, row, mine), on_cpu=not f.devices)
    low, high = (row.half.low_ns, row.half.high_ns) if row.half else (0, 0)
    evidence = say(
        "{} of the step is this on the path{}, gone it would save {}",
        share(row.critical_ns, f.elapsed_ns), text(f" ({row.calls} {plural(row.calls, 'call')})" if row.calls else ""),
        ns(row.free.low_ns if row.free else None),
    )  # fmt: skip
    refuted = say(
        "disproved if halving it does not take {} off the step, timed without the profiler",
        ns(low),
    )
    return Next(code, what, evidence, refuted, low, high)


def _path_of(f: Figures, row: Ranked) -> Int64Array:
    """The stretches of the path that make up a row of the ranking by operator."""
    segments, events, links = f.view.segments, f.view.trace.events, f.view.links
    owner = segments.row
    if row.name == UNTRACKED:
        return np.flatnonzero((owner < 0) & (segments.is_gap == 0))
    device = links.launch[owner] >= 0
    if row.name in (ORPHAN, UNATTRIBUTED):
        on_device = np.isin(events.kind[owner], np.array(DEVICE_KINDS, np.int8)) & (segments.is_gap == 0)
        return np.flatnonzero(on_device & (links.op[owner] < 0) & (device == (row.name == UNATTRIBUTED)))
    own = np.where(device, links.op[owner], owner)  # device work goes by its operator
    named = np.array([label == row.name for label in events.names], np.bool_)
    return np.flatnonzero((owner >= 0) & (own >= 0) & (segments.is_gap == 0) & named[events.name[own]])


def _work_of(f: Figures, stretches: Int64Array) -> WorkClass:
    """The class that most of some stretches' time has."""
    if not stretches.size:
        return W.KERNEL
    segments = f.view.segments
    time = np.bincount(segments.work[stretches], weights=segments.length_ns[stretches])
    return WorkClass(int(time.argmax()))


def _called(f: Figures, row: Ranked, stretches: Int64Array) -> str:
    """The name that says most: where the row is no operator, or only a record of one, its longest activity."""
    segments, events = f.view.segments, f.view.trace.events
    if not stretches.size or (not row.name.startswith("(") and _work_of(f, stretches) != W.COMM):
        return row.name
    longest = int(segments.row[stretches[np.argmax(segments.length_ns[stretches])]])
    return events.name_of(longest) if longest >= 0 else row.name


def _advice(work: WorkClass, called: str, *, on_cpu: bool) -> tuple[str, Sentence]:
    """One intervention per kind of work."""
    if on_cpu and work == W.HOST:
        return "cpu-ops", say(
            "make {} cheaper, it computes on the CPU: threads, data type, layout, a fused kernel",
            name(called),
        )
    it = name(called)
    if work == W.LAUNCH and "GraphLaunch" in called:
        return "graph-launch", say("call {} earlier, so that launching the graph overlaps device work", it)
    table: dict[WorkClass, tuple[str, str]] = {
        W.INPUT: ("input", "fetch batches earlier: more DataLoader workers, prefetching, or a cheaper {}"),
        W.SYNC: ("sync", "take the wait out of the step: {} blocks the host until the device drains"),
        W.COMM: ("comm", "start {} earlier, make it smaller, or give it more to overlap with"),
        W.COMM_HOST: ("comm-host", "look at {} on the host: the step waits for it there"),
        W.MEMCPY: ("copy", "avoid or overlap {}: keep data on the device, pin host memory"),
        W.MEMSET: ("copy", "avoid {}: fewer buffers to clear"),
        W.LAUNCH: (
            "launches",
            "launch less often: fuse operators (torch.compile), capture the step in a CUDA graph; {} carries it",
        ),
        W.RUNTIME: ("calls", "call {} less often in the step"),
        W.UNTRACKED: (
            "python",
            "find what Python does where no event is open: record once with with_stack=True",
        ),
        W.OPTIMIZER_HOST: (
            "optimizer",
            "make the update cheaper to launch: fused or foreach optimizer instead of {}",
        ),
        W.OPTIMIZER: (
            "optimizer-kernels",
            "make the update's kernels cheaper: fused optimizer, lower precision states; {} leads",
        ),
        W.HOST: ("host-ops", "run fewer operators on the host: fuse or compile around {}"),
    }
    if work in table:
        code, words = table[work]
        return code, say(words, it) if "{}" in words else say(words)
    what = say("make the kernels of {} faster: precision, layout, shapes, or a fused implementation", it)
    return f"kernels: {work.label}", what


def _unexplained(f: Figures, gap: int) -> Next:
    """Where the graph has no cause, say how to record one."""
    return Next(
        "record",
        say("record the missing evidence before changing code: stepcrit doctor says which"),
        say(
            "{} of the path ({}) is delay that no recorded dependency explains",
            share(gap, f.elapsed_ns),
            ns(gap),
        ),
        say("disproved if a recording with cuda_sync events and stacks leaves the same delay unexplained"),
        0,
        0,
    )
