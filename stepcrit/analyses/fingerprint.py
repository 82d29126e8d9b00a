"""What two recordings must have in common.

Question: may the steps of these two recordings be compared, and what differs that would explain a difference?
Method:   how they were recorded, on what, and the multiset of work in each steady step (methods M.1), in this order.
Needs:    a linked trace with its steps; shapes and types of inputs where they were recorded.
Keeps:    what one side does not tell is neither equal nor different: it is said. Work that varies between the
          steps of one side is a range, and ranges that meet do not differ.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from enum import IntEnum
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from stepcrit.intervals import ascending
from stepcrit.link.presence import Use, platform_of, presence
from stepcrit.link.products import is_product
from stepcrit.link.workload import NEVER, Times, WorkKey, flops_of, work_of
from stepcrit.model.events import DEVICE_KINDS, HOST_KINDS, EventKind
from stepcrit.model.links import Links
from stepcrit.model.section import Sentence, Unit, Value
from stepcrit.model.steps import Step, Steps
from stepcrit.model.trace import RawTrace

_Told: TypeAlias = str | None
"""In words; None where one side does not tell."""

UNTOLD = "not told"
_QUOTED = re.compile(r'"([^"]*)"')


class Level(IntEnum):
    """How far a difference reaches, in the order of triage."""

    CAPTURE = 0  # host times cannot be compared
    CONFIGURATION = 1  # another job or machine: no cause can be named
    WORK = 2  # the steps do not do the same
    NOTE = 3  # may itself be the change that is judged: told, and nothing else


class Fingerprint(Struct, frozen=True):
    """What of a recording must be equal in another one for their steps to be compared.

    Attributes:
        capture: option or kind of event -> whether it was recorded; None: not known.
        device_names: model of each device with work, sorted; None where the trace does not name them.
        platform: whose devices.
        use: what the trace holds of the device.
        world_size, rank: -1 unknown.
        backend: "" unknown.
        product_dtypes: element types of matrix products; None where types were not recorded.
        boundary, marks: what ends a step, and what marks it.
        versions: of runtime, driver and libraries, as far as the header tells.
        step_count: steps that the work was counted over.
        work: how often each kind of work is done in a step.
        has_shapes, has_dtypes: whether operators carry them.
        slim: what slimming left of the trace, in a word; "" where it was not slimmed.
    """

    capture: Mapping[str, bool | None]
    device_names: tuple[str, ...] | None
    platform: str
    use: Use
    world_size: int
    rank: int
    backend: str
    product_dtypes: tuple[str, ...] | None
    boundary: str
    marks: str
    versions: Mapping[str, str]
    step_count: int
    work: Mapping[WorkKey, Times]
    has_shapes: bool
    has_dtypes: bool
    slim: str

    @property
    def flops(self) -> int | None:
        """Of matrix products in a step, on average; None without any whose shapes were recorded."""
        return flops_of(self.work, self.step_count)

    @property
    def varies(self) -> int:
        """Kinds of work that are not done equally often in every step."""
        return sum(times.low != times.high for times in self.work.values())


class Difference(Struct, frozen=True):
    """One thing that differs, or of which one side does not tell.

    Attributes:
        level: how far it reaches.
        code: what it is, stable: "capture.with_stack".
        what: both sides in words.
        is_known: whether both sides tell; if not, they may be equal.
    """

    level: Level
    code: str
    what: Sentence
    is_known: bool = True


class WorkChange(Struct, frozen=True):
    """Work that is not done equally often on both sides; NEVER: not at all."""

    key: WorkKey
    base: Times
    new: Times


def fingerprint(trace: RawTrace, links: Links, steps: Steps) -> Fingerprint:
    """Take the fingerprint of a recording, over its steady steps."""
    meta, events = trace.meta, trace.events
    counted = counted_steps(steps)
    work = work_of(trace, links, counted)
    has_shapes, has_dtypes = bool((events.shapes >= 0).any()), bool((events.dtypes >= 0).any())
    return Fingerprint(
        capture=_capture(trace),
        device_names=_device_names(trace),
        platform=str(platform_of(trace)),
        use=presence(trace, links).use,
        world_size=meta.world_size,
        rank=meta.rank,
        backend=meta.backend.casefold(),
        product_dtypes=_product_dtypes(work) if has_dtypes else None,
        boundary=str(steps.boundary),
        marks=steps.source,
        versions=dict(sorted(meta.versions.items())),
        step_count=len(counted),
        work=work,
        has_shapes=has_shapes,
        has_dtypes=has_dtypes,
        slim="" if meta.slim is None else meta.slim.level,
    )


def counted_steps(steps: Steps) -> tuple[Step, ...]:
    """The steady steps; without any, the one that stands for all."""
    return tuple(step for step in steps if step.used and step.opens_at_boundary) or (steps.median(),)


# --- capture and configuration ------------------------------------------------------------------


def _capture(trace: RawTrace) -> dict[str, bool | None]:
    """What was recorded: by the events themselves, else by the options of the header.

    What is not there was not recorded, but in a trace that was slimmed: there stacks may have been left out.
    """
    events, options = trace.events, trace.meta.options
    seen = {
        "with_stack": bool((events.kind == EventKind.PYTHON).any() or (events.stack >= 0).any()),
        "record_shapes": bool((events.shapes >= 0).any()),
        "profile_memory": bool(len(trace.memory.ts_ns)),
        "with_modules": bool((events.module >= 0).any()),
        "with_flops": False,
        "synchronization records": bool((events.kind == EventKind.SYNC).any()),
        "host activities": bool(events.is_kind(*HOST_KINDS).any()),
        "device activities": bool(events.is_kind(*DEVICE_KINDS).any()),
    }
    slim = trace.meta.slim
    may_lack = (
        slim is not None and not slim.stacks and not options
    )  # a writer that tells options tells all that were on
    left_out = {"with_stack", "with_modules"} if may_lack else set()
    return {
        key: True if found or key in options else None if key in left_out else False
        for key, found in seen.items()
    }


def _device_names(trace: RawTrace) -> tuple[str, ...] | None:
    """The model of each device that did something."""
    events = trace.events
    lanes = [events.lanes[i] for i in ascending(events.lane[events.is_kind(*DEVICE_KINDS)]).tolist()]
    used = {lane.device_label: lane.device for lane in lanes}
    named = {device.id: device.name for device in trace.meta.devices if device.name}
    if not used:
        return ()
    if not named:
        return None
    models = set(named.values())
    only = next(iter(models)) if len(models) == 1 else ""
    names = [named.get(number, only) for number in used.values()]
    return tuple(sorted(names)) if all(names) else None


def _product_dtypes(work: Mapping[WorkKey, Times]) -> tuple[str, ...]:
    """Element types that matrices are multiplied in."""
    found = {
        dtype
        for key in work
        if is_product(key.name) and key.dtypes
        for dtype in _QUOTED.findall(key.dtypes)
        if dtype not in ("", "Scalar", "ScalarList", "TensorList")
    }
    return tuple(sorted(found))


# --- two fingerprints ------------------------------------------------------------------------------


def differences(base: Fingerprint, new: Fingerprint) -> tuple[Difference, ...]:
    """Everything that differs or cannot be compared, in the order of triage."""
    return (*_in_capture(base, new), *_in_configuration(base, new), *_in_work(base, new), *_notes(base, new))


def work_changes(base: Fingerprint, new: Fingerprint) -> tuple[WorkChange, ...]:
    """Work that is not done equally often, by key; shapes and types count where both sides have them."""
    has_shapes, has_dtypes = base.has_shapes and new.has_shapes, base.has_dtypes and new.has_dtypes
    before, after = (_as_told(one.work, shapes=has_shapes, dtypes=has_dtypes) for one in (base, new))
    return changes_between(before, after)


def changes_between(base: Mapping[WorkKey, Times], new: Mapping[WorkKey, Times]) -> tuple[WorkChange, ...]:
    """Keys whose counts do not meet, in order."""
    pairs = ((key, base.get(key, NEVER), new.get(key, NEVER)) for key in sorted(base.keys() | new.keys()))
    return tuple(WorkChange(*pair) for pair in pairs if not pair[1].meets(pair[2]))


def _as_told(work: Mapping[WorkKey, Times], *, shapes: bool, dtypes: bool) -> dict[WorkKey, Times]:
    """Work of operators under what both sides tell of them. Sums of ranges are ranges."""
    found: dict[WorkKey, Times] = {}
    for key, times in work.items():
        if key.kind == "op":
            key = replace(key, shapes=key.shapes if shapes else "", dtypes=key.dtypes if dtypes else "")  # noqa: PLW2901
        found[key] = found.get(key, NEVER).plus(times)
    return found


def _in_capture(base: Fingerprint, new: Fingerprint) -> list[Difference]:
    """What was recorded."""
    found = []
    for key, before in base.capture.items():
        after = new.capture[key]
        if before != after:
            words = {True: "recorded", False: "not recorded", None: "not known"}
            what = _both(key, words[before], words[after])
            found.append(
                Difference(
                    Level.CAPTURE, f"capture.{key.replace(' ', '_')}", what, None not in (before, after)
                )
            )
    return found


def _in_configuration(base: Fingerprint, new: Fingerprint) -> list[Difference]:
    """The job and the machine. Where one side multiplies no matrices at all, its work differs, not its types."""
    each: list[tuple[str, str, _Told, _Told]] = [
        ("boundary", "steps end at the boundary", base.boundary, new.boundary),
        ("marks", "steps are marked by", base.marks, new.marks),
        ("platform", "platform", base.platform, new.platform),
        ("devices", "devices with work", _listed(base.device_names), _listed(new.device_names)),
        ("world_size", "world size", _number(base.world_size), _number(new.world_size)),
        ("rank", "rank", _number(base.rank), _number(new.rank)),
        ("backend", "backend", base.backend or None, new.backend or None),
        (
            "product_dtypes",
            "matrices are multiplied in",
            _listed(base.product_dtypes),
            _listed(new.product_dtypes),
        ),
    ]
    return [
        Difference(
            Level.CONFIGURATION,
            code,
            _both(words, before or UNTOLD, after or UNTOLD),
            None not in (before, after),
        )
        for code, words, before, after in each
        if before != after and not (code == "product_dtypes" and "none" in (before, after))
    ]


def _in_work(base: Fingerprint, new: Fingerprint) -> list[Difference]:
    """What a step does."""
    found = []
    for code, words, before, after in (
        ("shapes", "shapes of inputs", base.has_shapes, new.has_shapes),
        ("dtypes", "types of inputs", base.has_dtypes, new.has_dtypes),
    ):
        told = ["recorded" if one else "not recorded" for one in (before, after)]
        if before != after:
            found.append(Difference(Level.WORK, f"work.{code}", _both(words, *told), is_known=False))
        elif not before:
            what = Sentence(f"{words}: not recorded on either side")
            found.append(Difference(Level.WORK, f"work.{code}", what, is_known=False))
    changes = work_changes(base, new)
    if changes:
        kinds = "kind of work is" if len(changes) == 1 else "kinds of work are"
        what = Sentence(f"{{}} {kinds} not done equally often in a step", (Value(len(changes), Unit.COUNT),))
        found.append(Difference(Level.WORK, "work.counts", what))
    return found


def _notes(base: Fingerprint, new: Fingerprint) -> list[Difference]:
    """What may be the very change that is judged."""
    found = [
        Difference(Level.NOTE, f"version.{key}", _both(key, *pair))
        for key in sorted(base.versions.keys() & new.versions.keys())
        if (pair := (base.versions[key], new.versions[key])) and pair[0] != pair[1]
    ]
    if base.step_count != new.step_count:
        counts = [str(base.step_count), str(new.step_count)]
        found.append(Difference(Level.NOTE, "steps", _both("steps that count", *counts)))
    if base.slim != new.slim:
        words = [f"slimmed ({one.slim})" if one.slim else "as recorded" for one in (base, new)]
        found.append(Difference(Level.NOTE, "slim", _both("the trace is", *words)))
    return found


def _both(what: str, base: str, new: str) -> Sentence:
    return Sentence(
        "{}: {} in base, {} in new", (Value(what, Unit.TEXT), Value(base, Unit.NAME), Value(new, Unit.NAME))
    )


def _listed(names: tuple[str, ...] | None) -> _Told:
    """Names in words: "2 × H100"; None where they are not told."""
    if names is None:
        return None
    counts = Counter(names)
    return ", ".join(f"{n} × {name}" if n > 1 else name for name, n in sorted(counts.items())) or "none"


def _number(value: int) -> _Told:
    return str(value) if value >= 0 else None
