"""The metrics that a budget can name: short names, what-if results, and cells of `analyze --json`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial

from stepcrit.analyses import peakmemory
from stepcrit.analyses.idle import DEPENDENCY, DEVICE_SIDE, LATENCY, NOT_ASKED, ORPHAN, STREAM_GAP, TAIL
from stepcrit.answers.cells import cell
from stepcrit.answers.measured import Measured
from stepcrit.answers.metric import CLASSES, Metric, Read, UnknownMetricError, one_of
from stepcrit.errors import InputError, UsageError, quoted
from stepcrit.graph.change import Change, parse_change
from stepcrit.model.reading import Reading, unknown
from stepcrit.model.section import Unit

NOT_RECORDED = "the device's work was not recorded"
NO_DEVICE = "no device works in the step"
HOST = 0
"""The allocator's type of device that is the host."""

_WITH_SUBJECT = re.compile(r"(?P<name>\w+)(?:\{(?P<subject>.*)\})?", re.DOTALL)
CAUSES = (*CLASSES, DEPENDENCY, DEVICE_SIDE, LATENCY, NOT_ASKED, ORPHAN, STREAM_GAP, TAIL)

CHANGES = ("shrink", "speedup", "set", "add", "remove")
"""What `stepcrit whatif` can do to a selection, by the names of its options."""


def metric(name: str) -> Metric:
    """The metric that a name means.

    Raises:
        UnknownMetricError: none; with near names.
    """
    found = _WITH_SUBJECT.fullmatch(name.strip())
    if found is None:
        return cell(name, (*SHORT_NAMES, *WITH_SUBJECT))
    short, subject = found["name"], found["subject"]
    if subject is None and short in _PLAIN:
        unit, read, is_count, more_is_better = _PLAIN[short]
        return Metric(name, unit, read, is_count, more_is_better)
    if subject is not None and short in _WITH:
        key, _, word = subject.partition("=")
        for_key = _WITH[short].get(key.strip())
        if for_key is None or not word:
            have = ", ".join(f"{short}{{{each}=…}}" for each in _WITH[short])
            raise UnknownMetricError(f"{quoted(name)} is no metric", f"there is {have}")
        return Metric(name, Unit.NS, for_key(word.strip()))
    if subject is None and short in _WITH:
        have = ", ".join(f"{short}{{{each}=…}}" for each in _WITH[short])
        raise UnknownMetricError(f"{quoted(name)} needs a subject", f"there is {have}")
    return cell(name, (*SHORT_NAMES, *WITH_SUBJECT))


# --- short names -------------------------------------------------------------------------------


def _count(name: str) -> Read:
    return lambda step: step.counts[name]


def _step_time(step: Measured) -> Reading:
    return Reading(step.view.step.elapsed_ns)


def _device(step: Measured) -> Reading | None:
    """Why nothing can be said of the device; None where it can."""
    if not step.presence.device_known:
        return unknown(NOT_RECORDED)
    return None if step.devices else unknown(NO_DEVICE)


def _busy(step: Measured) -> Reading:
    return _device(step) or Reading(step.devices[0].busy_ns)


def _idle(step: Measured) -> Reading:
    return _device(step) or Reading(step.devices[0].idle_ns)


def _idle_share(step: Measured) -> Reading:
    device = _device(step)
    if device is not None or not step.devices[0].window_ns:
        return device or unknown("the step takes no time")
    return Reading(step.devices[0].idle_ns / step.devices[0].window_ns)


def _exposed(step: Measured) -> Reading:
    return _device(step) or Reading(sum(device.not_covered_ns for device in step.devices))


def _overlap(step: Measured) -> Reading:
    device = _device(step)
    comm = sum(one.comm_ns for one in step.devices)
    if device is not None or not comm:
        return device or unknown("nothing is communicated on the device")
    return Reading(sum(one.covered_ns for one in step.devices) / comm)


def _launch_bound(step: Measured) -> Reading:
    device = _device(step)
    if device is not None:
        return device
    found = step.queue.launch_bound_share
    return unknown("no activity with a launch starts in the step") if found is None else Reading(found)


def _peak_memory(step: Measured) -> Reading:
    """Of the device that held most; the host's allocator is another thing."""
    window = (step.view.step.start_ns, step.view.step.end_ns)
    peaks = peakmemory.analyze(step.view.trace.memory, [window])
    known = [peak for (kind, _), (peak,) in peaks.items() if kind != HOST and peak is not None]
    return (
        Reading(max(known))
        if known
        else unknown("no totals of a device's allocator: record with profile_memory")
    )


_PLAIN: Mapping[str, tuple[Unit, Read, bool, bool]] = {
    "kernel_launches": (Unit.COUNT, _count("kernel_launches"), True, False),
    "graph_launches": (Unit.COUNT, _count("graph_launches"), True, False),
    "host_syncs": (Unit.COUNT, _count("host_syncs"), True, False),
    "h2d_bytes": (Unit.BYTES, _count("h2d_bytes"), True, False),
    "d2h_bytes": (Unit.BYTES, _count("d2h_bytes"), True, False),
    "collectives": (Unit.COUNT, _count("collectives"), True, False),
    "collective_bytes": (Unit.BYTES, _count("collective_bytes"), True, False),
    "cuda_mallocs": (Unit.COUNT, _count("cuda_mallocs"), True, False),
    "streams": (Unit.COUNT, _count("streams"), True, False),
    "peak_memory": (Unit.BYTES, _peak_memory, True, False),
    "step_time": (Unit.NS, _step_time, False, False),
    "gpu_busy": (Unit.NS, _busy, False, False),
    "gpu_idle": (Unit.NS, _idle, False, False),
    "exposed_comm": (Unit.NS, _exposed, False, False),
    "gpu_idle_share": (Unit.SHARE, _idle_share, False, False),
    "launch_bound": (Unit.SHARE, _launch_bound, False, False),
    "overlap": (Unit.SHARE, _overlap, False, True),
}
SHORT_NAMES = tuple(_PLAIN)
"""Metrics without a subject."""

STRUCTURE = tuple(name for name, (_, _, is_count, _) in _PLAIN.items() if is_count)
"""Those of what a step does, rather than of how long it takes."""


# --- with a subject ----------------------------------------------------------------------------


def _on_path(word: str) -> Read:
    work = CLASSES[one_of(word, tuple(CLASSES), "class of work")]
    return lambda step: Reading(step.path.by_class_ns.get(work, 0))


def _of_operator(word: str) -> Read:
    def read(step: Measured) -> Reading:
        found = [row.critical_ns for row in step.ops.rows if row.name == word]
        return Reading(sum(found)) if found else unknown(f"no operator is called {quoted(word)}")

    return read


def _idle_of(word: str) -> Read:
    cause = one_of(word, CAUSES, "cause of idle time")

    def read(step: Measured) -> Reading:
        device = _device(step)
        if device is not None or step.idle is None:
            return device or unknown(NO_DEVICE)
        return Reading(step.idle.by_cause_ns.get(cause, 0))

    return read


Result = Callable[[Measured, Change], int]


def _after(step: Measured, change: Change) -> int:
    return step.changed(change).predicted_ns[1]


def _saved(step: Measured, change: Change) -> int:
    return step.changed(change).saving.low_ns


def _factor(result: Result, word: str) -> Read:
    """SELECTOR*FACTOR."""
    selector, star, factor = word.rpartition("*")
    if not star or not selector or re.fullmatch(r"[0-9]+(\.[0-9]+)?", factor) is None:
        raise UnknownMetricError(
            f"{quoted(word)} is no what-if", "write SELECTOR*FACTOR: class:comm*0, aten::mm*0.5"
        )
    return _if("shrink", result, f"{selector}={factor}")


def _if(option: str, result: Result, word: str) -> Read:
    """What `stepcrit whatif` says of a change, in the words of its option."""
    try:
        change = parse_change(option, word)
    except UsageError as error:
        raise UnknownMetricError(error.what, error.do) from error

    def read(step: Measured) -> Reading:
        try:
            return Reading(result(step, change))
        except (UsageError, InputError) as error:  # nothing is selected here, or it cannot be replayed
            return unknown(error.what)

    return read


def _changes(result: Result) -> dict[str, Callable[[str], Read]]:
    """The ways to name a change."""
    options: dict[str, Callable[[str], Read]] = {option: partial(_if, option, result) for option in CHANGES}
    return {"whatif": partial(_factor, result), **options}


_WITH: Mapping[str, Mapping[str, Callable[[str], Read]]] = {
    "critical": {"class": _on_path, "op": _of_operator},
    "gpu_idle": {"cause": _idle_of},
    "step_time": _changes(_after),
    "saving": _changes(_saved),
}
WITH_SUBJECT = tuple(f"{name}{{{key}=…}}" for name, keys in _WITH.items() for key in keys)
"""Metrics that need one, as the help writes them."""
