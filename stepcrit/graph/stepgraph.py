"""The graph seen from one step: the sinks of its boundary, its critical path, slack and drag."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np
from msgspec import Struct

from stepcrit.errors import UsageError
from stepcrit.graph.build import TraceGraph
from stepcrit.graph.drag import Drag, Slack, drag, slack
from stepcrit.graph.floors import usual_delays
from stepcrit.graph.path import Path, critical_path
from stepcrit.graph.schedule import FAR, Arrivals, GapPolicy, Lags, lags
from stepcrit.graph.segments import Segments, segments_of, usual_gaps
from stepcrit.graph.stretches import Stretches, stretches_of
from stepcrit.graph.submission import LaunchCalls, launch_calls
from stepcrit.link.steps import boundary_rows
from stepcrit.model.arrays import NONE, BoolArray
from stepcrit.model.links import Links
from stepcrit.model.steps import Step, Steps
from stepcrit.model.trace import RawTrace
from stepcrit.timings import timed


class StepGraph(Struct, frozen=True, eq=False, dict=True):
    """One step of a linked trace on its schedule graph. Everything is computed once, when asked for.

    Attributes:
        trace: the trace as read.
        links: its links.
        steps: all steps.
        step: this one.
        built: the graph over the whole capture.
    """

    trace: RawTrace
    links: Links
    steps: Steps
    step: Step
    built: TraceGraph

    @cached_property
    def sinks(self) -> Mapping[int, int]:
        """Node -> the instant by which the boundary needs it (the boundary itself), in ns."""
        return dict.fromkeys(
            sinks_of(self.trace, self.links, self.steps, self.step, self.built), self.step.end_ns
        )

    @cached_property
    def previous_sinks(self) -> list[int]:
        """The nodes that the boundary of the step before requires; none for a first step."""
        if not self.step.opens_at_boundary:
            return []
        before = self.steps[self.step.index - 1]
        return sinks_of(self.trace, self.links, self.steps, before, self.built)

    @cached_property
    @timed("path")
    def path(self) -> Path:
        """The critical path, clipped to the step's window."""
        return critical_path(
            self.built.graph, self.built.arrivals, list(self.sinks), since_ns=self.step.start_ns
        )

    @cached_property
    @timed("path")
    def segments(self) -> Segments:
        """The path with host stretches told apart by owner: what every table of path time is made of."""
        return segments_of(self.links, self.built, self.path, self.usual_gaps)

    @cached_property
    def stretches(self) -> Stretches:
        """The whole capture's time by node and owner: what selectors choose from."""
        return stretches_of(self.links, self.built)

    @cached_property
    def usual_gaps(self) -> Mapping[int, float]:
        """Median residual gap by kind of edge, in ns: what `unexplained` is measured against."""
        return usual_gaps(self.built)

    def node_name(self, node: int) -> str:
        """What a node is called: its event's name, or "untracked" where no event was open."""
        row = int(self.built.graph.row[node])
        return self.trace.events.name_of(row) if row >= 0 else "untracked"

    @cached_property
    def launch_calls(self) -> LaunchCalls:
        """Which call each launch edge comes from, for changes of the call's own time."""
        return launch_calls(self.built.graph, self.links)

    @cached_property
    def usual_delays(self) -> Mapping[int, int]:
        """What an edge that comes to bind brings at least under the conservative policy, by kind, in ns."""
        return usual_delays(self.built, self.usual_gaps)

    def delays(self, policy: GapPolicy, arrivals: Arrivals | None = None) -> Lags:
        """The fixed delays that replay uses under a gap policy; of changed arrivals, if given."""
        return lags(self.built.graph, arrivals or self.built.arrivals, policy, self.usual_delays)

    @cached_property
    def slack(self) -> Slack:
        """Slack of every node against this step's boundary, under the conservative gap policy."""
        return slack(self.built.graph, self.delays("join"), self.sinks)

    @cached_property
    def drag(self) -> Drag:
        """Drag of every node on this step's boundary, under the conservative gap policy."""
        return drag(self.built.graph, self.delays("join"), self.built.arrivals.gap_ns, self.sinks)

    @cached_property
    def inside(self) -> BoolArray:
        """Nodes that run at least in part within the step's window."""
        graph = self.built.graph
        inside: BoolArray = (graph.end_ns > self.step.start_ns) & (graph.start_ns < self.step.end_ns)
        return inside

    @cached_property
    def starting(self) -> BoolArray:
        """Nodes that start within the step's window."""
        start_ns = self.built.graph.start_ns
        starting: BoolArray = (start_ns >= self.step.start_ns) & (start_ns < self.step.end_ns)
        return starting

    @cached_property
    def cut(self) -> tuple[int, ...]:
        """Nodes that begin before the window and end in it."""
        graph = self.built.graph
        across = (graph.start_ns < self.step.start_ns) & (graph.end_ns > self.step.start_ns)
        return tuple(np.flatnonzero(across).tolist())

    @cached_property
    def required(self) -> BoolArray:
        """Nodes that the boundary needs as recorded: its sinks, and all that these waited for."""
        required: BoolArray = self.slack.total_ns >= 0
        return required

    def required_after(self, delays: Lags) -> BoolArray:
        """Nodes that the boundary needs when nothing waits over some edges any more (`schedule.unwaited`)."""
        kept = delays.edge_ns > -FAR
        if kept.all():
            return self.required
        graph, needed = self.built.graph, np.zeros(len(self.built.graph), np.bool_)
        needed[list(self.sinks)] = True
        src, dst = graph.src[kept], graph.dst[kept]
        for u, v in zip(src[::-1].tolist(), dst[::-1].tolist(), strict=True):  # edges come sorted by target
            if needed[v]:
                needed[u] = True
        return needed


def sinks_of(trace: RawTrace, links: Links, steps: Steps, step: Step, built: TraceGraph) -> list[int]:
    """The nodes that a step's boundary requires.

    Raises:
        UsageError: the step has no activity that ends at its boundary.
    """
    graph, host = built.graph, NONE
    nodes = np.array(built.parts_of(boundary_rows(trace.events, links, steps, step)), np.int64)
    ends = graph.start_ns[nodes] + graph.dur_ns[nodes]
    nodes, ends = nodes[ends <= step.end_ns], ends[ends <= step.end_ns]
    found: list[int] = nodes.tolist()
    if (ends == step.end_ns).any():
        return found
    if step.lane >= 0:
        host = built.host_node_ending(step.lane, step.end_ns)
    if host < 0 or graph.start_ns[host] + graph.dur_ns[host] != step.end_ns:
        raise UsageError(
            f"step {step.label} has no work of its own before its boundary",
            do="choose another step with --step, or another --boundary",
        )
    return [*found, host]
