"""What next: one intervention a line, with the evidence in this trace and the measurement that would disprove it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from msgspec import Struct

from stepcrit.analyses import ranking
from stepcrit.analyses.ranking import Ranked
from stepcrit.answers.figures import Figures
from stepcrit.answers.words import name, ns, plural, say, share, text
from stepcrit.graph.groups import ORPHAN, UNATTRIBUTED, UNTRACKED
from stepcrit.graph.segments import pieces_within
from stepcrit.link.api import CallRole, call_role
from stepcrit.link.copies import ends_of
from stepcrit.link.presence import Platform, platform_of
from stepcrit.link.source import frame_label, python_pieces
from stepcrit.model.arrays import Int64Array, distinct
from stepcrit.model.classes import WorkClass
from stepcrit.model.events import DEVICE_KINDS
from stepcrit.model.section import Sentence

W = WorkClass

WORTH = 0.01
"""An intervention that could not save one percent of the step is not worth a line."""
SHOWN = 3
START_UP_NS = 1_000_000
"""A launch or runtime call this long, with most of its name's time, is a one-off: loading, allocating, starting up."""

ADVICE: dict[WorkClass, tuple[str, str]] = {
    W.INPUT: ("input", "fetch batches earlier: more DataLoader workers, prefetching, or a cheaper {}"),
    W.SYNC: ("sync", "take the wait out of the step: {} blocks the host until the device drains"),
    W.COMM: (
        "comm",
        "start {} earlier or smaller, or find the rank that is waited for (one trace cannot tell)",
    ),
    W.COMM_HOST: ("comm-host", "look at {} on the host: the step waits for it there"),
    W.MEMCPY: ("copy", "avoid or overlap {}: keep data on the device"),
    W.MEMSET: ("copy", "avoid {}: fewer buffers to clear"),
    W.LAUNCH: (
        "launches",
        "launch less often: fuse operators (torch.compile), or capture the step in a graph; {} carries it",
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


COPY_ADVICE = {
    "Pageable": "avoid or overlap {}: pin the host memory, keep data on the device",
    "Device": "avoid {}: work in place, keep tensors contiguous",
}
"""By an end of the copy; "Device" where both are."""


class Next(Struct, frozen=True):
    """One intervention: what to try, why, what would disprove it, and the replayed saving of half of it."""

    code: str
    what: Sentence
    evidence: Sentence
    refuted: Sentence
    low_ns: int
    high_ns: int


def what_next(f: Figures) -> tuple[Next, ...]:
    """The interventions with the largest replayed saving, at most SHOWN, one per kind of work."""
    found: dict[str, Next] = {}
    by_name = _by_name(f, _owners(f))
    for row, stretches in _candidates(f, by_name):
        if row.half is None or row.free is None or row.free.low_ns < WORTH * f.elapsed_ns:
            continue
        step = _intervention(f, row, stretches)
        found.setdefault(step.code, step)
    ranked = sorted(found.values(), key=lambda n: (-n.low_ns, n.code))
    return (*_record_first(f), *ranked)[:SHOWN]


def _candidates(f: Figures, by_name: Mapping[str, Int64Array]) -> list[tuple[Ranked, Int64Array]]:
    """Rows of the ranking by operator, each with its stretches of the path (`by_name`).

    What no operator launched goes by kernel instead, which has a name.
    """
    nameless = [row for row in f.ops.rows if row.name in (ORPHAN, UNATTRIBUTED)]
    apart = {row.name for row in nameless}
    none = np.empty(0, np.int64)
    rows = [(row, by_name.get(row.name, none)) for row in f.ops.rows if row.name not in apart]
    if any(row.critical_ns >= WORTH * f.elapsed_ns for row in nameless):
        owned = np.zeros(len(f.view.segments), np.bool_)
        owned[np.concatenate([none, *(stretches for _, stretches in rows)])] = True
        known = f.ranking if f.ranking.by == "kernel" else ranking.analyze(f.view, "kernel", replays=SHOWN)
        by_kernel = _by_name(f, f.view.segments.row)
        for row in known.rows:
            named = by_kernel.get(row.name, none)
            # A kernel of which an operator launches more than half of the path time is in that row.
            if row.side == "device" and not _mostly(f, named[owned[named]], named):
                rows.append((row, named))
    return sorted(rows, key=lambda pair: -(pair[0].free.low_ns if pair[0].free else 0))


def _mostly(f: Figures, part: Int64Array, whole: Int64Array) -> bool:
    """Whether some stretches hold more than half of the time of others."""
    length = f.view.segments.length_ns
    return bool(2 * length[part].sum() > length[whole].sum())


def _record_first(f: Figures) -> list[Next]:
    """Where evidence is missing, say how to record it before anything else."""
    steps = []
    if f.device_not_recorded:
        what = say("record the device too: stepcrit doctor says how; check profiler permissions")
        why = say("{} but no device activity: what limits the step cannot be told", text(f.presence.sign))
        steps.append(
            Next(
                "record-device",
                what,
                why,
                say("disproved if the device turns out idle at every launch"),
                0,
                0,
            )
        )
    gap = f.path.by_class_ns.get(W.UNEXPLAINED, 0)
    if gap > 10 * WORTH * f.elapsed_ns:
        what = say("record the missing evidence before changing code: stepcrit doctor says which")
        why = say(
            "{} of the path ({}) is delay that no recorded dependency explains",
            share(gap, f.elapsed_ns),
            ns(gap),
        )
        no = say(
            "disproved if a recording with {} leaves the same delay unexplained", text(_better_recording(f))
        )
        steps.append(Next("record", what, why, no, 0, 0))
    return steps


def _better_recording(f: Figures) -> str:
    """What the next recording should hold that this device's profiler can record."""
    if not f.presence.host:
        return "the host"
    return "cuda_sync events and stacks" if platform_of(f.view.trace) == Platform.CUDA else "stacks"


def _intervention(f: Figures, row: Ranked, mine: Int64Array) -> Next:
    """What to try for one row, by what kind of work its stretches of the path are."""
    work = _work_of(f, mine)
    longest = int(f.view.segments.length_ns[mine].max(initial=0))
    one_off = (
        longest >= START_UP_NS
        and 2 * longest > row.critical_ns
        and call_role(row.name) != CallRole.GRAPH_LAUNCH
    )
    if work in (W.LAUNCH, W.RUNTIME) and one_off:
        code = f"start-up: {row.name}"
        what = say("move start-up out of the step: {} has one call of {}", name(row.name), ns(longest))
    else:
        code, what = _advice(f, work, row.name, mine)
    low, high = (row.half.low_ns, row.half.high_ns) if row.half else (0, 0)
    free = row.free.low_ns if row.free else None
    beyond = free is not None and 10 * free > 11 * row.critical_ns
    evidence = say(
        "{} of the step is this on the path{}, gone it would save {}{}",
        share(row.critical_ns, f.elapsed_ns), text(f" ({row.calls} {plural(row.calls, 'call')})" if row.calls else ""),
        ns(free), text(", more than that since it paces every step beside this path too" if beyond else ""),
    )  # fmt: skip
    refuted = say(
        "disproved if halving it does not take {} off the step, timed without the profiler", ns(low)
    )
    return Next(code, what, evidence, refuted, low, high)


def _advice(f: Figures, work: WorkClass, called: str, stretches: Int64Array) -> tuple[str, Sentence]:
    """The words for one kind of work of a row."""
    it = name(called)
    if work == W.UNTRACKED:
        return "python", _python(f, stretches)
    if work == W.HOST and f.cpu_only:
        return "cpu-ops", say(
            "make {} cheaper, it computes on the CPU: threads, data type, layout, a fused kernel", it
        )
    if work in (W.LAUNCH, W.RUNTIME):
        return _call_advice(work, called)
    if work in (W.COMM, W.MEMCPY):
        return _transfer_advice(work, called, most_of(f, stretches))
    if work in ADVICE:
        code, words = ADVICE[work]
        return code, say(words, it)
    what = say("make the kernels of {} faster: precision, layout, shapes, or a fused implementation", it)
    return f"kernels: {work.label}", what


def _transfer_advice(work: WorkClass, called: str, most: str) -> tuple[str, Sentence]:
    """The words for collectives and copies: the row that is ranked, and which of its transfers is most."""
    code, words = ADVICE[work]
    if work == W.MEMCPY:
        ends = set(ends_of(most))
        sign = "Pageable" if "Pageable" in ends else "Device" if ends == {"Device"} else ""
        words = COPY_ADVICE.get(sign, words)
    what = "copies" if work == W.MEMCPY else "collectives"
    if most == called:
        return code, say(words, name(called))
    return code, say(words.replace("{}", f"the {what} of {{}} (most: {{}})"), name(called), name(most))


def _call_advice(work: WorkClass, called: str) -> tuple[str, Sentence]:
    """The words for calls into the device's driver."""
    if call_role(called) == CallRole.GRAPH_LAUNCH:
        return "graph-launch", say(
            "call {} earlier, so that launching the graph overlaps device work", name(called)
        )
    if work == W.RUNTIME:
        return f"calls: {called}", say("call {} less often in the step", name(called))
    code, words = ADVICE[work]
    return code, say(words, name(called))


def _python(f: Figures, stretches: Int64Array) -> Sentence:
    """What ran where no event was open: the Python frame, if frames were recorded."""
    segments, events = f.view.segments, f.view.trace.events
    span = (segments.start_ns[stretches], segments.end_ns[stretches])
    frames = python_pieces(events, int(span[0].min()), int(span[1].max()))
    slimmed = f.view.trace.meta.slim
    if frames is None and slimmed is not None and not slimmed.stacks:
        return say(
            "find what the host does where no event is open: ask the trace that this one was slimmed from, if it has stacks"
        )
    if frames is None:
        return say("find what the host does where no event is open: record once with with_stack=True")
    within = pieces_within(frames, segments.lane[stretches], span)
    mine = np.flatnonzero(within.owner >= 0)
    time = np.zeros(len(events.names), np.int64)
    np.add.at(time, events.name[within.owner[mine]], (within.end_ns - within.start_ns)[mine])
    spent = int(time.max(initial=0))
    if not spent:
        return say("find what the host does where no event is open: no Python frame covers it")
    frame = events.names[int(np.flatnonzero(time == spent)[-1])]  # of several, the last of the alphabet
    return say("cut the Python between operators: most of it is {} ({})", name(frame_label(frame)), ns(spent))


def _owners(f: Figures) -> Int64Array:
    """By stretch of the path, the row whose name it goes by in the ranking by operator; -1 where none."""
    segments, links = f.view.segments, f.view.links
    owner = segments.row
    # Device work goes by its operator; what has none is in no row with a name.
    op = np.where(links.launch[owner] >= 0, links.op[owner], -1)
    on_device = f.view.trace.events.is_kind(*DEVICE_KINDS)[owner]
    return np.where((owner >= 0) & on_device, op, owner)


def _by_name(f: Figures, rows: Int64Array) -> dict[str, Int64Array]:
    """The stretches of work by the name of their row, of one row for each; and those of untracked time."""
    segments, events = f.view.segments, f.view.trace.events
    work = np.flatnonzero((rows >= 0) & (segments.is_gap == 0))
    name = events.name[rows[work]]
    order = np.argsort(name, kind="stable")
    groups = np.split(work[order], np.flatnonzero(np.diff(name[order])) + 1) if work.size else []
    found = {events.name_of(int(rows[stretches[0]])): stretches for stretches in groups}
    return {**found, UNTRACKED: np.flatnonzero((segments.row < 0) & (segments.is_gap == 0))}


def _work_of(f: Figures, stretches: Int64Array) -> WorkClass:
    """The class that most of some stretches' time has; untracked time has no class of its own rows."""
    if not stretches.size:
        return W.KERNEL
    segments = f.view.segments
    time = np.bincount(segments.work[stretches], weights=segments.length_ns[stretches])
    return WorkClass(int(time.argmax()))


def most_of(f: Figures, stretches: Int64Array) -> str:
    """The name of the work that most of some stretches' time is; of several, the last of the alphabet."""
    segments, events = f.view.segments, f.view.trace.events
    name, time = events.name[segments.row[stretches]], np.zeros(len(events.names), np.int64)
    np.add.at(time, name, segments.length_ns[stretches])
    present = distinct(name)
    most: list[int] = present[time[present] == time[present].max()].tolist()
    return max(events.names[i] for i in most)
