"""One step of a trace with every number that a budget can name, each computed when it is first asked for."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from stepcrit.analyses import critical, idle, overlap, queueing, ranking, whatif
from stepcrit.answers.data import NULLS, analyze_data, not_recorded, nulls_of
from stepcrit.answers.figures import figures
from stepcrit.answers.verdict import verdict
from stepcrit.graph.change import Change
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.link.presence import Presence, presence
from stepcrit.link.stepcounts import StepCounts
from stepcrit.model.reading import Reading


class Measured:
    """One step."""

    def __init__(self, view: StepGraph, counts: StepCounts) -> None:
        self.view = view
        self._counter = counts
        self._whatif: dict[Change, whatif.WhatIf] = {}

    @cached_property
    def counts(self) -> Mapping[str, Reading]:
        """Launches, waits, copies, collectives."""
        return self._counter.of(self.view.step)

    @cached_property
    def presence(self) -> Presence:
        """What was recorded at all."""
        return presence(self.view.trace, self.view.links)

    @cached_property
    def path(self) -> critical.CriticalPath:
        """The critical path."""
        return critical.analyze(self.view)

    @cached_property
    def ops(self) -> ranking.Ranking:
        """Operators, without replaying what they would save."""
        return ranking.analyze(self.view, "op", replays=0)

    @cached_property
    def devices(self) -> tuple[overlap.DeviceTime, ...]:
        """Time of each device, busiest first."""
        window = (self.view.step.start_ns, self.view.step.end_ns)
        return overlap.analyze(self.view.trace.events, self.view.links.work, window)

    @cached_property
    def idle(self) -> idle.Idle | None:
        """Idle time of the busiest device."""
        return idle.analyze(self.view, self.devices[0].device) if self.devices else None

    @cached_property
    def queue(self) -> queueing.Queueing:
        """The launch queue."""
        return queueing.analyze(self.view)

    @cached_property
    def data(self) -> Mapping[str, Any]:
        """What `analyze --json` has under `data`."""
        return self._told[0]

    @cached_property
    def reasons(self) -> Mapping[str, str]:
        """Why a null of `data` is one, by path."""
        return self._told[1]

    @cached_property
    def _told(self) -> tuple[Mapping[str, Any], Mapping[str, str]]:
        f = figures(self.view)
        data = analyze_data(f, verdict(f), {})
        return data, nulls_of(data, {**NULLS, **not_recorded(f)})

    def changed(self, change: Change) -> whatif.WhatIf:
        """The step with one change.

        Raises:
            UsageError: the selector matches nothing.
            UnusableInputError: it cannot be replayed.
        """
        if change not in self._whatif:
            self._whatif[change] = whatif.analyze(self.view, whatif.Question((change,)))
        return self._whatif[change]
