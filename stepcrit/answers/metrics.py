"""The metrics that a budget can name: short names, cells of `analyze --json`, and what-if results."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from stepcrit.analyses import peakmemory
from stepcrit.analyses.idle import DEPENDENCY, DEVICE_SIDE, LATENCY, NOT_ASKED, ORPHAN, STREAM_GAP, TAIL
from stepcrit.answers.measured import Measured
from stepcrit.errors import InputError, UsageError, quoted
from stepcrit.graph.change import parse_change
from stepcrit.model.classes import WorkClass
from stepcrit.model.config import Amount, Kind
from stepcrit.model.reading import Reading, unknown
from stepcrit.model.section import Unit

NOT_RECORDED = "the device's work was not recorded"
NO_DEVICE = "no device works in the step"
NEAR = 3
HOST = 0
"""The allocator's type of device that is the host."""

_WITH_SUBJECT = re.compile(r"(?P<name>\w+)(?:\{(?P<subject>.*)\})?", re.DOTALL)
_FITTING = {
    Unit.NS: (Kind.TIME,),
    Unit.BYTES: (Kind.SIZE, Kind.PLAIN),
    Unit.SHARE: (Kind.SHARE, Kind.PLAIN),
    Unit.COUNT: (Kind.PLAIN,),
}
_WORDS = {Unit.NS: "a time", Unit.BYTES: "a size", Unit.SHARE: "a share", Unit.COUNT: "a count"}

CLASSES = {work.label: work for work in WorkClass}
CAUSES = (*CLASSES, DEPENDENCY, DEVICE_SIDE, LATENCY, NOT_ASKED, ORPHAN, STREAM_GAP, TAIL)

Read = Callable[[Measured], Reading]


class UnknownMetricError(ValueError):
    """No metric is called so; `do` offers what there is."""

    def __init__(self, what: str, do: str) -> None:
        super().__init__(what)
        self.do = do


@dataclass(frozen=True, slots=True)
class Metric:
    """One number of a step.

    Attributes:
        name: as it was written.
        unit: of its value.
        read: looks it up in a step.
        is_count: whether the same program gives the same number: compared exactly where it repeats.
        more_is_better: whether it is good when it grows.
    """

    name: str
    unit: Unit
    read: Read
    is_count: bool = False
    more_is_better: bool = False

    def fits(self, amount: Amount) -> bool:
        """Whether an amount can be a limit of it; a bare 0 needs no unit."""
        return amount.kind in _FITTING[self.unit] or (amount.kind == Kind.PLAIN and not amount.number)

    @property
    def takes(self) -> str:
        """What a limit of it is, in words."""
        return _WORDS[self.unit]


def metric(name: str) -> Metric:
    """The metric that a name means.

    Raises:
        UnknownMetricError: none; with near names.
    """
    found = _WITH_SUBJECT.fullmatch(name.strip())
    if found is None:
        return _cell(name)
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
    return _cell(name)


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


def _one_of(word: str, known: tuple[str, ...], what: str) -> str:
    """A word that must be one of ours.

    Raises:
        UnknownMetricError: it is not.
    """
    if word in known:
        return word
    near = difflib.get_close_matches(word, known, NEAR)
    hint = f"did you mean {', '.join(near)}?" if near else f"there are {', '.join(dict.fromkeys(known))}"
    raise UnknownMetricError(f"{quoted(word)} is no {what}", hint)


def _on_path(word: str) -> Read:
    work = CLASSES[_one_of(word, tuple(CLASSES), "class of work")]
    return lambda step: Reading(step.path.by_class_ns.get(work, 0))


def _of_operator(word: str) -> Read:
    def read(step: Measured) -> Reading:
        found = [row.critical_ns for row in step.ops.rows if row.name == word]
        return Reading(sum(found)) if found else unknown(f"no operator is called {quoted(word)}")

    return read


def _idle_of(word: str) -> Read:
    cause = _one_of(word, CAUSES, "cause of idle time")

    def read(step: Measured) -> Reading:
        device = _device(step)
        if device is not None or step.idle is None:
            return device or unknown(NO_DEVICE)
        return Reading(step.idle.by_cause_ns.get(cause, 0))

    return read


def _if_changed(word: str) -> Read:
    selector, star, factor = word.rpartition("*")
    if not star or not selector or re.fullmatch(r"[0-9]+(\.[0-9]+)?", factor) is None:
        raise UnknownMetricError(
            f"{quoted(word)} is no what-if", "write SELECTOR*FACTOR: class:comm*0, aten::mm*0.5"
        )
    try:
        parse_change("shrink", f"{selector}={factor}")
    except UsageError as error:
        raise UnknownMetricError(error.what, error.do) from error

    def read(step: Measured) -> Reading:
        try:
            return Reading(step.after(selector, factor))
        except (
            UsageError,
            InputError,
        ) as error:  # nothing in this trace is selected, or it cannot be replayed
            return unknown(error.what)

    return read


_WITH: Mapping[str, Mapping[str, Callable[[str], Read]]] = {
    "critical": {"class": _on_path, "op": _of_operator},
    "gpu_idle": {"cause": _idle_of},
    "step_time": {"whatif": _if_changed},
}
WITH_SUBJECT = tuple(f"{name}{{{key}=…}}" for name, keys in _WITH.items() for key in keys)
"""Metrics that need one, as the help writes them."""


# --- cells of analyze --json -------------------------------------------------------------------

_PART = re.compile(r"(?P<key>[^.\[\]]+)(?:\[(?P<row>[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*)\])?(?:\.|$)")
_TOPS = (
    "critical_path", "device_busy_ns", "elapsed", "elapsed_ns", "exposed_comm", "idle_by_cause_ns", "idle_by_owner_ns",
    "latency_ns", "operators", "operators_total", "overlap", "queue", "ranking", "steps", "summed_ns", "trace", "trust",
)  # fmt: skip
_OPEN = {
    "by_class_ns", "by_group_ns", "by_evidence_ns", "device_busy_ns", "idle_by_cause_ns", "idle_by_owner_ns", "overlap",
    "partition_ns", "symmetric_ns",
}  # fmt: skip
"""Tables whose keys come from the trace: one that is not there is not known, rather than wrong."""


def _cell(name: str) -> Metric:
    """A number of `data`, by its path: operators[aten::mm].device_ns.

    Raises:
        UnknownMetricError: it is none.
    """
    parts = _parts(name)
    if not parts or parts[0][0] not in _TOPS:
        near = difflib.get_close_matches(name, (*SHORT_NAMES, *_TOPS, *WITH_SUBJECT), NEAR, 0.5)
        hint = (
            f"did you mean {', '.join(near)}?"
            if near
            else f"there are {', '.join((*SHORT_NAMES, *WITH_SUBJECT))}"
        )
        raise UnknownMetricError(
            f"{quoted(name)} is no metric",
            f"{hint} Or a path in `analyze --json`: see stepcrit explain metrics",
        )
    unit = _unit_of([key for key, _ in parts])
    return Metric(name, unit, partial(_read_cell, parts=parts), unit in (Unit.COUNT, Unit.BYTES))


def _parts(name: str) -> list[tuple[str, str | None]]:
    """Keys and rows of a path; empty where it is none."""
    found, at = [], 0
    while at < len(name):
        match = _PART.match(name, at)
        if match is None or not match[0]:
            return []
        found.append((match["key"], match["row"]))
        at = match.end()
    return found if not name.endswith(".") else []


def _unit_of(keys: list[str]) -> Unit:
    """The unit that the last key with one says."""
    for key in reversed(keys):
        for ending, unit in (("_ns", Unit.NS), ("_bytes", Unit.BYTES), ("_share", Unit.SHARE)):
            if key.endswith(ending):
                return unit
    return Unit.COUNT


def _read_cell(step: Measured, parts: list[tuple[str, str | None]]) -> Reading:
    """Follow a path.

    Raises:
        UnknownMetricError: a key that no trace has.
    """
    value: Any = step.data
    path, table = "", ""
    for key, row in parts:
        if value is None:
            return unknown(step.reasons.get(path, "it is not known"))
        if not isinstance(value, Mapping) or key not in value:
            return _missing(value, key, table)
        value, table = value[key], key
        path = f"{path}.{key}" if path else key
        if row is not None and value is not None:
            found = _row(value, row)
            if found is None:
                return unknown(f"{path} has no row called {quoted(row)}")
            value = found
            path += "[]" if not isinstance(value, Mapping) or "name" in value or "label" in value else ""
    if value is None:
        return unknown(step.reasons.get(path, "it is not known"))
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UnknownMetricError(f"{quoted(path)} is no number", _keys_of(value))
    return Reading(value)


def _missing(value: Any, key: str, table: str) -> Reading:
    """A key that is not there: not known in a table of names, else wrong.

    Raises:
        UnknownMetricError: wrong.
    """
    if isinstance(value, Mapping) and table in _OPEN:
        if table == "by_class_ns":
            _one_of(key, tuple(CLASSES), "class of work")
            return Reading(0)  # the classes sum to the step: what is not among them has no time on the path
        return unknown(f"{table} has no {quoted(key)}")
    raise UnknownMetricError(
        f"there is no {quoted(key)} in {table or 'analyze --json'}", _keys_of(value, key)
    )


def _keys_of(value: Any, key: str = "") -> str:
    """What can follow, near names first."""
    if isinstance(value, list | tuple):
        return "name a row: operators[aten::mm].device_ns"
    if not isinstance(value, Mapping):
        return "leave out what follows it"
    near = difflib.get_close_matches(key, value, NEAR)
    return f"did you mean {', '.join(near)}?" if near else f"there are {', '.join(map(str, value))}"[:200]


def _row(value: Any, row: str) -> Any:
    """The row of a name, of a list or of a table of names; None where there is none, or several."""
    if isinstance(value, Mapping):
        return value.get(row)
    if not isinstance(value, list | tuple):
        return None
    found = [one for one in value if isinstance(one, Mapping) and row in (one.get("name"), one.get("label"))]
    return found[0] if len(found) == 1 else None
