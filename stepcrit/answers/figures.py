"""All results that the analyze answer is told from, computed together."""

from __future__ import annotations

from msgspec import Struct

from stepcrit.analyses import critical, elapsed, idle, lostwork, overlap, queueing, ranking
from stepcrit.answers.sure import Sure, sure_of
from stepcrit.graph.groups import By
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.link.collectives import Collective, link_collectives
from stepcrit.link.presence import Presence, Use, presence
from stepcrit.model.classes import WorkClass
from stepcrit.model.oddity import Oddity


class Figures(Struct, frozen=True, eq=False):
    """One step's results.

    Attributes:
        view: the step.
        elapsed: distribution of steps.
        path: its critical path.
        devices: time of each device, busiest first.
        idle: idle time of the busiest device (or of one of its queues), None without device work.
        queue: launch queue.
        ops: ranking by operator.
        ranking: ranking by the grouping that was asked for (may be `ops`).
        sure: evidence shares, and how well steps predict each other.
        collectives: communication activities of the capture.
        stream: the queue that `idle` is about, None for the whole device.
        presence: what the recording holds of the device and of the host.
        lost: what device work is missing.
    """

    view: StepGraph
    elapsed: elapsed.Elapsed
    path: critical.CriticalPath
    devices: tuple[overlap.DeviceTime, ...]
    idle: idle.Idle | None
    queue: queueing.Queueing
    ops: ranking.Ranking
    ranking: ranking.Ranking
    sure: Sure
    collectives: tuple[Collective, ...]
    stream: int | None
    presence: Presence
    lost: tuple[Oddity, ...]

    @property
    def cpu_only(self) -> bool:
        """Whether nothing speaks of a device, or calls were recorded and none launched work."""
        return self.presence.use == Use.NONE

    @property
    def device_not_recorded(self) -> bool:
        """Whether the job uses a device but no device work was recorded: not known, which is not zero."""
        return self.presence.use == Use.NOT_RECORDED

    @property
    def elapsed_ns(self) -> int:
        """The step's elapsed time."""
        return self.view.step.elapsed_ns

    @property
    def comm_on_path_ns(self) -> int:
        """Communication on the critical path."""
        return self.path.by_class_ns.get(WorkClass.COMM, 0)


def figures(view: StepGraph, by: By = "op", stream: int | None = None, replays: int = 10) -> Figures:
    """Compute everything the answer needs.

    Args:
        view: the step.
        by: grouping of the second ranking.
        stream: look for idle time on this queue alone.
        replays: how many names of a ranking to replay.
    """
    window = (view.step.start_ns, view.step.end_ns)
    devices = overlap.analyze(view.trace.events, view.links.work, window)
    ops = ranking.analyze(view, "op", replays=replays)
    return Figures(
        view,
        elapsed.analyze(view.steps),
        critical.analyze(view),
        devices,
        idle.analyze(view, devices[0].device, stream) if devices else None,
        queueing.analyze(view),
        ops,
        ops if by == "op" else ranking.analyze(view, by, replays=replays),
        sure_of(view),
        link_collectives(view.trace.events, view.links),
        stream,
        presence(view.trace, view.links),
        lostwork.analyze(view.trace, view.links, view.steps),
    )
