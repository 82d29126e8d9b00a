"""Which device work is missing.

Question: did the profiler lose device work, and can idle time and steps be trusted?
Method:   launches whose correlation no device row has, per kind of launch and per step; captures launch nothing.
Needs:    a linked trace with its steps.
Keeps:    without any device row the device was not recorded, which is not the same as work lost.
"""

from __future__ import annotations

from stepcrit.link.unserved import LaunchCalls, launch_calls
from stepcrit.link.whole import LOST_WORK
from stepcrit.model.arrays import BoolArray
from stepcrit.model.events import DEVICE_KINDS
from stepcrit.model.links import Links
from stepcrit.model.oddity import Done, Oddity
from stepcrit.model.steps import Steps
from stepcrit.model.trace import RawTrace

BULK = 0.10
"""Of a kind's launches. In public traces outside captures every launch owns its work, but for files that were
trimmed by hand; a recording's last launches may run after its end."""

FEW_KERNELS = 10
"""That many kernels may be left in the queue when a short recording stops."""


def analyze(trace: RawTrace, links: Links, steps: Steps) -> tuple[Oddity, ...]:
    """Launches without their work in bulk (P307 kernels, P308 graphs), and steps that lost theirs (P309)."""
    if not trace.events.is_kind(*DEVICE_KINDS).any():
        return ()
    calls = launch_calls(trace.events, links.launch)
    found = [
        _bulk("P307", trace, calls, ~calls.graph, FEW_KERNELS),
        _bulk("P308", trace, calls, calls.graph, 1),
    ]
    lost = sum(step.why_not.startswith(LOST_WORK) for step in steps)
    if lost:
        found.append(Oddity("P309", lost, len(steps), Done.PUT_ASIDE))
    return tuple(odd for odd in found if odd)


def _bulk(code: str, trace: RawTrace, calls: LaunchCalls, kind: BoolArray, least: int) -> Oddity | None:
    """One kind of launch, if enough of its calls lost their work."""
    lost, total = int((calls.lost & kind).sum()), int(kind.sum())
    if lost < max(least, BULK * total):
        return None
    row = int(calls.rows[calls.lost & kind][0])
    return Oddity(code, lost, total, Done.TOLD, trace.events.name_of(row), int(trace.events.order[row]))
