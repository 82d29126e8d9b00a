"""What evidence the file has.

Question: which questions can this trace answer, what is missing, and how is it recorded better?
Method:   one check per kind of evidence: present, missing or not applicable, counted on the trace itself.
Needs:    a linked trace.
Keeps:    "not recorded", "zero" and "not applicable" are three different outcomes.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepcrit.intervals import clip, union
from stepcrit.link.backends import BACKEND_RANGE
from stepcrit.link.collectives import link_collectives
from stepcrit.link.presence import Platform, Presence, Use, platform_of, presence
from stepcrit.model.arrays import distinct
from stepcrit.model.classes import WorkClass
from stepcrit.model.events import DEVICE_KINDS, HOST_KINDS, EventKind
from stepcrit.model.links import Links
from stepcrit.model.section import Sentence, Unit, Value
from stepcrit.model.steps import Steps
from stepcrit.model.trace import RawTrace

OVERHEAD_LIMIT = 0.05
"""Of the step. nsys-ai's limits (ecosystem.md, T305): below 5 % ok, above 10 % a warning, above 20 % a failure."""


class State(StrEnum):
    """Outcome of one check."""

    OK = "ok"
    WARN = "warn"
    MISSING = "missing"
    NOT_APPLICABLE = "n/a"


class Check(Struct, frozen=True):
    """One kind of evidence.

    Attributes:
        code: stable id (`stepcrit explain CODE`).
        evidence: what was looked for.
        state: the outcome.
        seen: what was counted.
        lost: what follows from its lack, "" where nothing is amiss.
        fix: how to record it, "" where nothing is amiss.
    """

    code: str
    evidence: str
    state: State
    seen: Sentence
    lost: str
    fix: str


class _Facts(Struct, frozen=True, eq=False):
    trace: RawTrace
    links: Links
    steps: Steps
    device_count: int
    launched_count: int
    platform: Platform
    presence: Presence


def analyze(trace: RawTrace, links: Links, steps: Steps) -> tuple[Check, ...]:
    """Run every check, in the order in which a reader should care."""
    device = trace.events.is_kind(*DEVICE_KINDS)
    launched = int((links.launch[device] >= 0).sum())
    present = presence(trace, links)
    facts = _Facts(trace, links, steps, int(device.sum()), launched, platform_of(trace), present)
    return tuple(_settled(check(facts)) for check in CHECKS)


def _settled(check: Check) -> Check:
    """Nothing is lost, and nothing to be done, where evidence is there or cannot be."""
    fine = check.state in (State.OK, State.NOT_APPLICABLE)
    return replace(check, lost="", fix="") if fine else check


def _seen(template: str, *values: int | Value) -> Sentence:
    """What was counted: plain numbers are counts."""
    return Sentence(template, tuple(v if isinstance(v, Value) else Value(v, Unit.COUNT) for v in values))


def _s(n: int) -> str:
    """The ending of a noun after a count."""
    return "" if n == 1 else "s"


_ACTIVITY = {Platform.CUDA: "CUDA", Platform.XPU: "XPU", Platform.MTIA: "MTIA"}
_DEVICE_STATES = {
    Use.RECORDED: State.OK,
    Use.NOT_RECORDED: State.MISSING,
    Use.NOT_KNOWN: State.WARN,
    Use.NONE: State.NOT_APPLICABLE,
}


def _device(f: _Facts) -> Check:
    use, has_calls = f.presence.use, bool((f.trace.events.kind == EventKind.RUNTIME).any())
    listed = len(f.trace.meta.devices)
    seen = {
        Use.RECORDED: _seen("{} kernels, copies and memsets", f.device_count),
        Use.NOT_RECORDED: _seen("no device activities, but {}", Value(f.presence.sign, Unit.TEXT)),
        Use.NOT_KNOWN: _seen(f"no device activities, no calls; {{}} device{_s(listed)} listed", listed),
        Use.NONE: _seen("no device activities" + (", no call launched any" if has_calls else "")),
    }
    if f.trace.meta.is_cut and use in (Use.NOT_RECORDED, Use.NOT_KNOWN):
        return Check(
            "E101", "device activities", State.MISSING, _seen("no device activities before the file stops"),
            "whether the device was recorded is not known: writers put its work last",
            "copy the file again in full, or record again",
        )  # fmt: skip
    how = f"record with ProfilerActivity.{_ACTIVITY.get(f.platform, 'CUDA (ROCm, too)')}"
    not_known = use == Use.NOT_KNOWN
    return Check(
        "E101", "device activities", _DEVICE_STATES[use], seen[use],
        "whether this job uses the device is not known" if not_known else "nothing can be said about the device",
        f"if it does, {how}" if not_known
        else f"{how}; check profiler permissions and that no other profiler is attached",
    )  # fmt: skip


def _launches(f: _Facts) -> Check:
    code, what = "E102", "launch links"
    if not f.device_count:
        return Check(code, what, State.NOT_APPLICABLE, _seen("no device activities"), "", "")
    seen = _seen("{} of {} activities have their launch call", f.launched_count, f.device_count)
    if not f.launched_count:
        return Check(
            code, what, State.MISSING, seen,
            "no path leads from the host to the device; analyze and critical need --device-only",
            "record CPU and device activities together",
        )  # fmt: skip
    return Check(
        code, what, State.OK if f.launched_count == f.device_count else State.WARN, seen,
        "operator, module and line of the others are unknown; their host cause lies outside the recording",
        "begin after a warm-up and a synchronize, so that no work launched earlier is left over",
    )  # fmt: skip


def _sync_records(f: _Facts) -> Check:
    events = f.trace.events
    count = int((events.kind == EventKind.SYNC).sum())
    queues = len(distinct(events.lane[events.is_kind(*DEVICE_KINDS)]))
    code, what = "E103", "synchronization records"
    if not f.device_count:
        return Check(code, what, State.NOT_APPLICABLE, _seen("no device activities"), "", "")
    state = State.OK if count else State.NOT_APPLICABLE if queues < 2 else State.MISSING
    return Check(
        code, what, state,
        _seen(f"{{}} cuda_sync record{_s(count)}, {{}} device queue{_s(queues)}", count, queues),
        "waits between queues are inferred from calls and timing",
        "enable_cuda_sync_events=True in the profiler's experimental config"
        if f.platform == Platform.CUDA
        else "none known: only the profiler for CUDA records them",
    )  # fmt: skip


def _ops(f: _Facts) -> Check:
    count = int((f.trace.events.kind == EventKind.CPU_OP).sum())
    return Check(
        "E104", "operators", State.OK if count else State.MISSING, _seen(f"{{}} operator{_s(count)} on the host", count),
        "which operator launched a kernel is unknown, and host time has no names but those of calls",
        "record with ProfilerActivity.CPU",
    )  # fmt: skip


def _step_marks(f: _Facts) -> Check:
    count, source = len(f.steps), f.steps.source
    state = State.WARN if source in ("optimizer", "DataLoader") else State.OK
    return Check(
        "E105", "step marks", State.MISSING if source == "capture" else state,
        _seen("no step marks") if source == "capture" else _seen(f"{{}} step{_s(count)} by {{}}", count, Value(source, Unit.TEXT)),
        "there is no cost per step: the whole recording is one window" if source == "capture"
        else "other marks stand in for ProfilerStep ranges",
        "give the profiler a schedule and call prof.step() once per iteration",
    )  # fmt: skip


def _enough_steps(f: _Facts) -> Check:
    used = sum(s.used and s.opens_at_boundary for s in f.steps)
    steady = f.steps.steady is not None and f.steps.steady.first is not None and used >= 3
    return Check(
        "E106", "steady steps", State.OK if steady else State.WARN,
        _seen(f"{{}} step{_s(used)} with a period, {'steady' if steady else 'not steady'}", used),
        "no distribution can be shown, and a single step may be an accident",
        "schedule(skip_first=10, wait=1, warmup=2, active=5): more than three recorded steps after a warm-up",
    )  # fmt: skip


def _stacks(f: _Facts) -> Check:
    frames = int((f.trace.events.kind == EventKind.PYTHON).sum())
    stacks = int((f.trace.events.stack >= 0).sum())
    state = State.OK if frames or stacks else State.MISSING
    slimmed = f.trace.meta.slim
    return Check(
        "E107", "Python lines", state,
        _seen("left out by stepcrit slim, if there were any")
        if slimmed is not None and not slimmed.stacks
        else _seen(f"{{}} frame{_s(frames)}, {{}} call stack{_s(stacks)}", frames, stacks),
        "lines of code are unknown, and so is what untracked host time is",
        "stepcrit slim --stacks keeps what was recorded with with_stack=True"
        if slimmed is not None and not slimmed.stacks
        else "a second short recording with with_stack=True (it slows the host: keep it apart from timings)",
    )  # fmt: skip


def _modules(f: _Facts) -> Check:
    count, source = len(f.links.module_names), f.links.module_source
    seen = (
        _seen(f"{{}} name{_s(count)} from {{}}", count, Value(source, Unit.TEXT))
        if count
        else _seen("no names")
    )
    return Check(
        "E108", "modules or phases", State.OK if count else State.MISSING, seen,
        "the cost of parts of the model is unknown",
        "record_function(name) around the parts, or with_stack=True for nn.Module frames",
    )  # fmt: skip


def _collectives(f: _Facts) -> Check:
    found = link_collectives(f.trace.events, f.links)
    if not found:
        return _host_collectives(f)
    named = sum(bool(c.name) for c in found)
    state = State.OK if named == len(found) else State.WARN if named else State.MISSING
    return Check(
        "E109", "collective metadata", state,
        _seen("{} of {} communication activities name their collective", named, len(found)),
        f"bytes, groups and matching over ranks {'of the others ' * bool(named)}are unknown",
        _fix_for_unnamed(f, [c.row for c in found if not c.name]),
    )  # fmt: skip


def _fix_for_unnamed(f: _Facts, rows: list[int]) -> str:
    """What lets collectives be named, by why they are not."""
    if all(f.links.launch[row] < 0 for row in rows):
        return (
            "record CPU and device together, and synchronize first: these were launched outside the recording"
        )
    if any("Collective name" in args for args in f.trace.events.args.values()):
        return "none known: these were not called through torch.distributed, whose calls are recorded with it"
    return "a PyTorch of 2024 or later with NCCL records them with the operators"


def _host_collectives(f: _Facts) -> Check:
    """Without device work: the ranges of the backend ("gloo:all_reduce"), else the calls themselves."""
    events = f.trace.events
    rows = np.flatnonzero((f.links.work == WorkClass.COMM_HOST) & events.is_kind(*HOST_KINDS)).tolist()
    ranges = [row for row in rows if BACKEND_RANGE.match(events.name_of(row))]
    inner = ranges or [row for row in rows if not events.name_of(row).startswith("c10d::")] or rows
    named = sum(_is_named(f, row) for row in inner)
    state = State.OK if inner and named == len(inner) else State.WARN if named else State.MISSING
    return Check(
        "E109", "collective metadata", state if inner else State.NOT_APPLICABLE,
        _seen("{} of {} collectives on the host name their arguments", named, len(inner))
        if inner else _seen("no communication activities"),
        f"bytes, groups and matching over ranks {'of the others ' * bool(named)}are unknown",
        "record the device too: its collectives carry them in a PyTorch of 2024 or later"
        if f.presence.use == Use.NOT_RECORDED
        else "none known for collectives on the host",
    )  # fmt: skip


def _is_named(f: _Facts, row: int) -> bool:
    """Whether a collective's range or a call around it carries its arguments."""
    while row >= 0:
        if "Collective name" in f.trace.events.args.get(row, {}):
            return True
        row = int(f.links.parent[row])
    return False


def _memory(f: _Facts) -> Check:
    count = len(f.trace.memory.ts_ns)
    return Check(
        "E110", "memory events", State.OK if count else State.MISSING, _seen(f"{{}} allocator event{_s(count)}", count),
        "memory at the peak is unknown", "record with profile_memory=True",
    )  # fmt: skip


def _clock(f: _Facts) -> Check:
    events, launch = f.trace.events, f.links.launch
    rows = np.flatnonzero(launch >= 0)
    early = events.start_ns[launch[rows]] - events.start_ns[rows]
    count, worst = int((early > 0).sum()), int(early.max(initial=0))
    moved = [odd for odd in f.trace.oddities if odd.code == "P305"]
    state = State.NOT_APPLICABLE if not rows.size else State.OK if not count + len(moved) else State.WARN
    if not rows.size:
        seen = _seen("no launch links")
    elif moved:
        by = max(abs(odd.ns["offset_ns"] or 0) for odd in moved)
        seen = _seen(
            "{} started too early; device times moved by up to {}",
            sum(o.count for o in moved),
            Value(by, Unit.NS),
        )
    elif not count:
        seen = _seen("no activity starts before its launch")
    else:
        words = "activity starts before its" if count == 1 else "activities start before their"
        seen = _seen(f"{{}} {words} launch, by up to {{}}", count, Value(worst, Unit.NS))
    return Check(
        "E111", "device clock against causality", state, seen,
        "differences between host and device times are off by at least that much",
        "record again after a warm-up; a newer driver re-synchronizes the clocks",
    )  # fmt: skip


def _nesting(f: _Facts) -> Check:
    rows = int(f.trace.events.is_kind(*HOST_KINDS).sum())
    count = f.links.crossing_count
    return Check(
        "E112", "nesting on threads", State.WARN if count else State.OK if rows else State.NOT_APPLICABLE,
        _seen("{} of {} host ranges end after the range around them", count, rows)
        if rows else _seen("no host ranges"),
        "nothing is lost: time goes to the range that started last",
        "none needed; whole-microsecond clocks and older runtimes round",
    )  # fmt: skip


def _losses(f: _Facts) -> Check:
    meta = f.trace.meta
    dropped = sum(meta.dropped.values()) + sum(one.count for one in meta.damage if not one.harm.is_cut)
    unknown = sum(meta.unknown_cats.values())
    stops = "; the file stops early" if meta.is_cut else ""
    return Check(
        "E113", "events understood", State.WARN if dropped + unknown or stops else State.OK,
        _seen(f"{{}} event{_s(dropped)} left out or repaired, {{}} of unknown category{stops}", dropped, unknown),
        "what was left out is in no number; what was repaired is", "none needed; the reasons are below, by their L code",
    )  # fmt: skip


def _overhead(f: _Facts) -> Check:
    events = f.trace.events
    rows = np.flatnonzero(events.kind == EventKind.OVERHEAD)
    code, what, fix = "E114", "the profiler's own cost", "time the loop without the profiler as well"
    if not rows.size:
        lost = "what recording costs is unknown (a trace holds a lower bound at best)"
        return Check(code, what, State.MISSING, _seen("no overhead events"), lost, fix)
    step = f.steps.median()
    spent = clip(union(events.start_ns[rows], events.end_ns[rows]), step.start_ns, step.end_ns).length
    share = spent / step.elapsed_ns if step.elapsed_ns else 0.0
    return Check(
        code, what, State.OK if share <= OVERHEAD_LIMIT else State.WARN,
        _seen(
            f"{{}} overhead event{_s(rows.size)}, {{}} ({{}}) of the chosen step",
            rows.size, Value(spent, Unit.NS), Value(share, Unit.SHARE),
        ),
        "times are longer than without the profiler, by this much at least", fix,
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
