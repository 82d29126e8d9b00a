"""Which steps are whole: those that lack work, or whose beginning is not known, cannot stand for the others."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from stepcrit.link.unserved import launch_calls
from stepcrit.model.arrays import median_of
from stepcrit.model.events import EventTable
from stepcrit.model.links import Links
from stepcrit.model.steps import Step

FEW = 0.5
"""A step with less than this of the usual device work, or of the work that it launched, lacks some."""

LOST_WORK = "device work lost"
INCOMPLETE = "incomplete"
"""How the reasons begin why a step lacks work."""


def judge(events: EventTable, links: Links, steps: tuple[Step, ...], *, is_cut: bool) -> tuple[Step, ...]:
    """Name the steps that cannot stand for the others.

    Args:
        events: the event table.
        links: its links.
        steps: in time order.
        is_cut: whether the file was cut off. Writers sort by thread and kind before they sort by time, so
            that a cut takes the later steps' device work first; what is usual is then what most steps lack.
    """
    if len(steps) < 2:
        return steps
    counts = [step.device_count for step in steps]
    usual = float(max(counts)) if is_cut else median_of(np.array(counts, np.int64))
    lost = _lost_work(events, links, steps)
    judged = []
    for step, before in zip(steps, ["", *lost], strict=False):
        why = _why_not(step, usual, lost[step.index], before)
        if not why and is_cut and step is steps[-1]:
            why = f"{INCOMPLETE}: the file stops before its end"
        judged.append(replace(step, used=not why, why_not=why))
    return tuple(judged)


def _why_not(step: Step, usual: float, lost: str, lost_before: str) -> str:
    """Why a step does not count, or ""."""
    if not step.opens_at_boundary:
        return "first recorded step: no boundary before it"
    if lost:
        return lost
    if lost_before:
        return "the step before it lost device work: when this one began is not known"
    if step.elapsed_ns == 0:
        return "no work of its own before its boundary"
    if step.device_count < FEW * usual:
        return f"{INCOMPLETE}: {step.device_count} device activities, usually {usual:.0f}"
    return ""


def _lost_work(events: EventTable, links: Links, steps: tuple[Step, ...]) -> list[str]:
    """Per step why its device work counts as lost, "" where it does not: most of its launches own none.

    Where that holds for all steps the device was not recorded, which is another matter.
    """
    calls = launch_calls(events, links.launch)
    counts = [calls.between(s.host_start_ns, s.host_end_ns) for s in steps]
    if all(lost >= FEW * total for total, lost in counts):
        return [""] * len(steps)
    return [
        f"{LOST_WORK}: {lost} of {total} launches have none" if total and lost >= FEW * total else ""
        for total, lost in counts
    ]
