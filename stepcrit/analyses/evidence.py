"""What evidence the file has.

Question: which questions can this trace answer, what is missing, and how is it recorded better?
Method:   one check per kind of evidence: present, missing or not applicable, counted on the trace itself.
Needs:    a linked trace.
Keeps:    "not recorded", "zero" and "not applicable" are three different outcomes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from stepcrit.link.collectives import link_collectives
from stepcrit.model.events import DEVICE_KINDS, HOST_KINDS, EventKind
from stepcrit.model.links import Links
from stepcrit.model.steps import Steps
from stepcrit.model.trace import RawTrace


class State(StrEnum):
    """Outcome of one check."""

    OK = "ok"
    WARN = "warn"
    MISSING = "missing"
    NOT_APPLICABLE = "n/a"


@dataclass(frozen=True, slots=True)
class Check:
    """One kind of evidence.

    Attributes:
        code: stable id (`stepcrit explain CODE`).
        evidence: what was looked for.
        state: the outcome.
        seen: what was counted, in words.
        lost: what cannot be answered, or not surely, without it.
        fix: how to record it.
    """

    code: str
    evidence: str
    state: State
    seen: str
    lost: str
    fix: str


@dataclass(frozen=True, slots=True, eq=False)
class _Facts:
    trace: RawTrace
    links: Links
    steps: Steps
    device_count: int
    launched_count: int
    cpu_only: bool


def analyze(trace: RawTrace, links: Links, steps: Steps) -> tuple[Check, ...]:
    """Run every check, in the order in which a reader should care."""
    device = trace.events.is_kind(*DEVICE_KINDS)
    launched = int((links.launch[device] >= 0).sum())
    cpu_only = not device.any() and not (trace.events.kind == EventKind.RUNTIME).any()
    facts = _Facts(trace, links, steps, int(device.sum()), launched, cpu_only)
    return tuple(check(facts) for check in CHECKS)


def _device(f: _Facts) -> Check:
    state = State.OK if f.device_count else State.NOT_APPLICABLE if f.cpu_only else State.MISSING
    return Check(
        "E101", "device activities", state, f"{f.device_count} kernels, copies and memsets",
        "everything about the device",
        "record with ProfilerActivity.CUDA; check profiler permissions and that no other profiler is attached",
    )  # fmt: skip


def _launches(f: _Facts) -> Check:
    orphans = f.device_count - f.launched_count
    seen = f"{f.launched_count} of {f.device_count} activities have their launch call"
    if not f.device_count:
        return Check("E102", "launch links", State.NOT_APPLICABLE, "no device activities", "", "")
    state = State.MISSING if not f.launched_count else State.WARN if orphans else State.OK
    return Check(
        "E102", "launch links", state, seen,
        "operator, module and line of the others; their host cause lies outside the capture",
        "record CPU and device together; begin after a warm-up and a synchronize to leave no backlog",
    )  # fmt: skip


def _sync_records(f: _Facts) -> Check:
    events = f.trace.events
    count = int((events.kind == EventKind.SYNC).sum())
    queues = len(np.unique(events.lane[events.is_kind(*DEVICE_KINDS)]))
    if not f.device_count:
        return Check("E103", "synchronization records", State.NOT_APPLICABLE, "no device activities", "", "")
    state = State.OK if count else State.NOT_APPLICABLE if queues < 2 else State.MISSING
    seen = f"{count} cuda_sync records, {queues} device queue{'s' * (queues != 1)}"
    return Check(
        "E103", "synchronization records", state, seen,
        "waits between queues are inferred from timing",
        "enable_cuda_sync_events=True in the profiler's experimental config (CUDA)",
    )  # fmt: skip


def _ops(f: _Facts) -> Check:
    count = int((f.trace.events.kind == EventKind.CPU_OP).sum())
    return Check(
        "E104", "operators", State.OK if count else State.MISSING, f"{count} operators on the host",
        "which operator launched a kernel; host time by operator",
        "record with ProfilerActivity.CPU",
    )  # fmt: skip


def _step_marks(f: _Facts) -> Check:
    count, source = len(f.steps), f.steps.source
    state = State.OK if source == "ProfilerStep" else State.WARN if source != "capture" else State.MISSING
    return Check(
        "E105", "step marks", state, f"{count} step{'s' * (count != 1)} by {source}",
        "cost per step; the whole capture is one window" if source == "capture" else "steps are told by other marks",
        "give the profiler a schedule and call prof.step() once per iteration",
    )  # fmt: skip


def _enough_steps(f: _Facts) -> Check:
    used = sum(s.used and s.opens_at_boundary for s in f.steps)
    steady = f.steps.steady is not None and f.steps.steady.first is not None and used >= 3
    return Check(
        "E106", "steady steps", State.OK if steady else State.WARN, f"{used} steps with a period, steady: {'yes' if steady else 'no'}",
        "a distribution; a single step may be an accident",
        "schedule(skip_first=10, wait=1, warmup=2, active=5): more than three recorded steps after a warm-up",
    )  # fmt: skip


def _stacks(f: _Facts) -> Check:
    frames = int((f.trace.events.kind == EventKind.PYTHON).sum())
    stacks = int((f.trace.events.stack >= 0).sum())
    state = State.OK if frames or stacks else State.MISSING
    return Check(
        "E107", "Python lines", state, f"{frames} frames, {stacks} call stacks",
        "lines of code, and what untracked host time is",
        "a second short recording with with_stack=True (it slows the host: keep it apart from timings)",
    )  # fmt: skip


def _modules(f: _Facts) -> Check:
    return Check(
        "E108", "modules or phases", State.OK if f.links.module_names else State.MISSING,
        f"{len(f.links.module_names)} names" + (f" from {f.links.module_source}" if f.links.module_source else ""),
        "cost by part of the model",
        "record_function(name) around the parts, or with_stack=True for nn.Module frames",
    )  # fmt: skip


def _collectives(f: _Facts) -> Check:
    found = link_collectives(f.trace.events, f.links)
    named = sum(bool(c.name) for c in found)
    state = State.NOT_APPLICABLE if not found else State.OK if named == len(found) else State.MISSING
    return Check(
        "E109", "collective metadata", state, f"{named} of {len(found)} communication activities name their collective",
        "bytes, groups and matching over ranks",
        "a PyTorch of 2024 or later with NCCL records them with the operators",
    )  # fmt: skip


def _memory(f: _Facts) -> Check:
    count = len(f.trace.memory.ts_ns)
    return Check(
        "E110", "memory events", State.OK if count else State.MISSING, f"{count} allocator events",
        "memory at the peak", "record with profile_memory=True",
    )  # fmt: skip


def _clock(f: _Facts) -> Check:
    events, launch = f.trace.events, f.links.launch
    rows = np.flatnonzero(launch >= 0)
    early = events.start_ns[launch[rows]] - events.start_ns[rows]
    count, worst = int((early > 0).sum()), int(early.max(initial=0))
    state = State.NOT_APPLICABLE if not rows.size else State.OK if not count else State.WARN
    seen = (
        f"{count} activities start before their launch, by up to {worst} ns"
        if count
        else "no activity starts before its launch"
    )
    return Check(
        "E111", "device clock against causality", state, seen,
        "host-device differences are off by at least that much",
        "record again after a warm-up; a newer driver re-synchronizes the clocks",
    )  # fmt: skip


def _nesting(f: _Facts) -> Check:
    rows = int(f.trace.events.is_kind(*HOST_KINDS).sum())
    count = f.links.crossing_count
    return Check(
        "E112", "nesting on threads", State.OK if not count else State.WARN, f"{count} of {rows} host ranges outlive the range around them",
        "nothing: time goes to the range that started last",
        "none needed; whole-microsecond clocks and older runtimes round",
    )  # fmt: skip


def _losses(f: _Facts) -> Check:
    dropped = sum(f.trace.meta.dropped.values())
    unknown = sum(f.trace.meta.unknown_cats.values())
    return Check(
        "E113", "events understood", State.OK if not dropped + unknown else State.WARN,
        f"{dropped} events left out or repaired, {unknown} of unknown category",
        "they are kept out of every number", "stepcrit doctor --json lists the reasons",
    )  # fmt: skip


def _overhead(f: _Facts) -> Check:
    events = f.trace.events
    rows = events.kind == EventKind.OVERHEAD
    step = f.steps.median()
    inside = rows & (events.end_ns > step.start_ns) & (events.start_ns < step.end_ns)
    spent = int((events.end_ns[inside] - events.start_ns[inside]).sum())
    state = (
        State.OK
        if rows.any() and spent * 20 <= max(step.elapsed_ns, 1)
        else State.WARN
        if rows.any()
        else State.MISSING
    )
    return Check(
        "E114", "the profiler's own cost", state,
        f"{int(rows.sum())} overhead events, {spent // 1000} µs in the chosen step" if rows.any() else "no overhead events",
        "only a lower bound of what observing costs is in any trace",
        "time the loop without the profiler as well",
    )  # fmt: skip


CHECKS: tuple[Callable[[_Facts], Check], ...] = (
    _device,
    _launches,
    _sync_records,
    _ops,
    _step_marks,
    _enough_steps,
    _stacks,
    _modules,
    _collectives,
    _memory,
    _clock,
    _nesting,
    _losses,
    _overhead,
)
