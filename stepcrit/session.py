"""The one place that composes: a path is read, linked, cut into steps and put on its schedule graph."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from stepcrit.analyses import critical
from stepcrit.errors import PartialError, UnusableInputError, UsageError, quoted
from stepcrit.graph.build import TraceGraph, build_graph
from stepcrit.graph.export import to_networkx
from stepcrit.graph.floors import learn_floors
from stepcrit.graph.scene import Rules
from stepcrit.graph.schedule import check_replay, lags, observe
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.ingest import read_trace
from stepcrit.ingest.limits import Limits, default_limits
from stepcrit.link.fetches import fetch_rows
from stepcrit.link.linker import link
from stepcrit.link.plausible import make_plausible
from stepcrit.link.rules import NO_RULES, ClassRules
from stepcrit.link.steps import StepOptions, find_steps
from stepcrit.model.events import DEVICE_KINDS, HOST_KINDS, Side
from stepcrit.model.graph import EdgeKind, NodeKind
from stepcrit.model.links import Links
from stepcrit.model.steps import Boundary, Step, Steps
from stepcrit.model.trace import RawTrace, TraceMeta
from stepcrit.report.safe import safe_text
from stepcrit.timings import timed

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd


class Options(Struct, frozen=True):
    """How a trace is to be understood.

    Attributes:
        steps: boundary and marks of the steps.
        strict: no dependency on timing alone, and no answer from a partial input.
        device_only: leave the host out of the graph.
        floors: "none", "auto", or edge class -> ns.
        full: one host node per change of owner (more nodes, same answers).
        salvage: use what is left of a trace that has lost more than a twentieth.
        limits: the most that is read of an input; None: the defaults, which are lower in CI.
        classes: the user's own rules for classes of work.
    """

    steps: StepOptions = field(default_factory=StepOptions)
    strict: bool = False
    device_only: bool = False
    floors: str | Mapping[EdgeKind, int] = "none"
    full: bool = False
    salvage: bool = False
    limits: Limits | None = None
    classes: ClassRules = NO_RULES

    def told(self) -> dict[str, object]:
        """The options that change numbers, for an answer to repeat."""
        floors = (
            self.floors
            if isinstance(self.floors, str)
            else {k.name.lower(): ns for k, ns in self.floors.items()}
        )
        return {
            "strict": self.strict,
            "device_only": self.device_only,
            "floors": floors,
            "step_regex": self.steps.step_regex,
            "optimizer_regex": self.steps.optimizer_regex,
            "classes": f"sha256:{self.classes.digest}" if self.classes.rules else None,
        }


class Trace:
    """One trace, understood. Made by `load`; immutable; links, steps and graph are computed once, when asked for."""

    def __init__(self, raw: RawTrace, options: Options) -> None:
        self.raw = raw
        self.options = options

    @property
    def meta(self) -> TraceMeta:
        """What the file says about itself."""
        return self.raw.meta

    @cached_property
    @timed("link")
    def links(self) -> Links:
        """How its events belong together."""
        return link(self.raw, self.options.classes)

    @cached_property
    @timed("steps")
    def steps(self) -> Steps:
        """Its steps, with boundaries and with the reason why some do not count."""
        return find_steps(self.raw.events, self.links, self.options.steps, is_cut=self.meta.is_cut)

    @cached_property
    @timed("graph")
    def built(self) -> TraceGraph:
        """The schedule graph over the whole capture; replaying it unchanged is exact, or this raises.

        Raises:
            UnusableInputError: there is nothing to build a graph of, or no host to launch from.
        """
        _check_usable(self.raw, self.links, device_only=self.options.device_only)
        if self.options.device_only and self.steps.boundary in (Boundary.HOST, Boundary.LAUNCH):
            raise UsageError(
                f"the {self.steps.boundary} boundary is on the host, which --device-only leaves out",
                do="use --boundary device or update",
            )
        rules = Rules(strict=self.options.strict, device_only=self.options.device_only)
        ends = [(s.lane, at) for s in self.steps if s.lane >= 0 for at in (s.end_ns, s.host_end_ns)]
        # Every thread is cut where a window opens: what lies inside can change alone.
        threads = [i for i, lane in enumerate(self.raw.events.lanes) if lane.side == Side.HOST]
        boundaries = [*ends, *((lane, s.start_ns) for s in self.steps for lane in threads)]
        # And where a batch is asked for and got: how long that takes depends on loader workers, not on the thread.
        events = self.raw.events
        fetches = fetch_rows(events, self.links)
        for at in (events.start_ns, events.end_ns):
            boundaries += zip(events.lane[fetches].tolist(), at[fetches].tolist(), strict=True)
        built = build_graph(
            self.raw.events, self.links, rules=rules, boundaries=boundaries, full=self.options.full
        )
        built = _with_floors(built, self.options.floors)
        for policy in ("join", "edge"):
            check_replay(built.graph, lags(built.graph, built.arrivals, policy))
        return built

    def graph(self, step: str | int | None = None) -> Graph:
        """The schedule graph seen from one step.

        Args:
            step: a step's number or label as the trace writes it, an index from the end (-1 is the last),
                "median" or None for the representative.

        Raises:
            UsageError: there is no such step.
            UnusableInputError: the step takes no time.
        """
        return Graph(self.view(step))

    def view(self, step: str | int | None = None) -> StepGraph:
        """Like `graph`, without the user's face."""
        chosen = find_step(self.steps, step)
        if not chosen.elapsed_ns:
            is_all = step in (None, "median")
            raise UnusableInputError(
                "nothing in this trace takes any time"
                if is_all
                else f"{chosen.label} takes no time: the step before it ends no earlier",
                where=self.meta.source,
                do="record at least one whole step" if is_all else "ask for another step",
            )
        return StepGraph(self.raw, self.links, self.steps, chosen, self.built)

    def __repr__(self) -> str:
        return f"<stepcrit.Trace {safe_text(self.meta.source)}: {len(self.raw.events)} events, {len(self.steps)} steps>"

    def _repr_html_(self) -> str:
        from stepcrit.answers.analyze import answer  # noqa: PLC0415 - a notebook's face, not the library's
        from stepcrit.report.html import fragment  # noqa: PLC0415

        return fragment(answer(self.view()))


class Graph:
    """The schedule graph seen from one step: the face of `StepGraph` for users of the library."""

    def __init__(self, view: StepGraph) -> None:
        self.view = view

    @property
    def step(self) -> Step:
        """The step."""
        return self.view.step

    def critical_path(self) -> CriticalPath:
        """What sets the step's length."""
        return CriticalPath(self.view)

    def slack(self) -> pd.DataFrame:
        """Slack and drag of every node in the step's window, in ns; slack -1: not needed by the boundary.

        Columns: node, name, kind, lane, start_ns, dur_ns, total_slack_ns, free_slack_ns, drag_ns.
        """
        import pandas as pd  # noqa: PLC0415 - half a second that only this needs

        view, graph = self.view, self.view.built.graph
        nodes = np.flatnonzero(view.inside)
        lanes = view.trace.events.lanes
        return pd.DataFrame(
            {
                "node": nodes,
                "name": [view.node_name(v) for v in nodes.tolist()],
                "kind": [NodeKind(k).name.lower() for k in graph.kind[nodes].tolist()],
                "lane": [lanes[i].words for i in graph.lane[nodes].tolist()],
                "start_ns": graph.start_ns[nodes],
                "dur_ns": graph.dur_ns[nodes],
                "total_slack_ns": view.slack.total_ns[nodes],
                "free_slack_ns": view.slack.free_ns[nodes],
                "drag_ns": view.drag.drag_ns[nodes],
            }
        )

    def to_networkx(self) -> nx.MultiDiGraph[int]:
        """The whole graph for networkx (see `graph.export.to_networkx`)."""
        return to_networkx(self.view)

    def __repr__(self) -> str:
        graph = self.view.built.graph
        return f"<stepcrit.Graph of {safe_text(self.step.label)}: {len(graph)} activities, {len(graph.src)} dependencies>"


class CriticalPath:
    """The critical path of one step."""

    def __init__(self, view: StepGraph) -> None:
        self.view = view
        self.result = critical.analyze(view)

    @property
    def elapsed_ns(self) -> int:
        """Length of the path: the step's elapsed time."""
        return self.result.elapsed_ns

    def by_class(self) -> dict[str, int]:
        """Time on the path by class of work, in ns; sums to `elapsed_ns`."""
        return {work.label: ns for work, ns in self.result.by_class_ns.items()}

    def to_pandas(self) -> pd.DataFrame:
        """One row per stretch of the path (see `analyses.critical.path_rows`)."""
        import pandas as pd  # noqa: PLC0415 - half a second that only this needs

        return pd.DataFrame(critical.path_rows(self.view))

    def __repr__(self) -> str:
        return f"<stepcrit.CriticalPath of {safe_text(self.view.step.label)}: {self.elapsed_ns} ns in {len(self.result.segments)} stretches>"

    def _repr_html_(self) -> str:
        from stepcrit.answers.critical import answer  # noqa: PLC0415 - a notebook's face, not the library's
        from stepcrit.report.html import fragment  # noqa: PLC0415

        return fragment(answer(self.view))


def load(source: str | os.PathLike[str] | BinaryIO, options: Options | None = None) -> Trace:
    """Read a trace and understand it.

    Args:
        source: a path (plain, gzip or zstd), a folder with one trace, a binary stream, or "-" for stdin.
        options: boundary, strictness and so on.

    Raises:
        InputError: the input is not a usable torch.profiler trace; the message says what it is.
        PartialError: with `strict`, the reader had to repair or leave out something, or rows that cannot be true
            are in the file; or the file changed meanwhile.
        UsageError: the input is compressed with zstd, which needs an extra.
    """
    options = options or Options()
    limits = options.limits or default_limits(os.environ)
    raw = timed("link")(make_plausible)(
        timed("read")(read_trace)(source, limits=limits, salvage=options.salvage)
    )
    _check_extent(raw)
    lost = [(harm.count, str(harm.harm)) for harm in raw.meta.damage]
    lost += [(n, why) for why, n in sorted(raw.meta.dropped.items())]
    if options.strict and lost:
        reasons = ", ".join(f"{n} {why}" for n, why in lost)
        raise PartialError(
            f"events were left out or repaired: {reasons}",
            where=raw.meta.source,
            do="without --strict the answer says so instead",
        )
    if options.strict and raw.oddities:
        codes = ", ".join(f"{odd.code} ({odd.count})" for odd in raw.oddities)
        raise PartialError(
            f"rows cannot be true: {codes}",
            where=raw.meta.source,
            do="see stepcrit doctor; without --strict the answer says what became of them",
        )
    return Trace(raw, options)


def find_step(steps: Steps, wanted: str | int | None) -> Step:
    """The step that a user means.

    Raises:
        UsageError: no step is called that; the error lists what there is.
    """
    if wanted is None or wanted == "median":
        return steps.median()
    text = str(wanted)
    for step in steps:
        if text in (step.label, step.label.partition("#")[2], step.label.rpartition(" ")[2]):
            return step
    if text.lstrip("-").isdigit() and text.startswith("-") and len(steps) >= -int(text):
        return steps[int(text)]
    have = ", ".join(s.label for s in steps.all[:8]) + (" …" if len(steps) > 8 else "")
    raise UsageError(f"no step {quoted(text)} in this trace", do=f"there are {len(steps)}: {have}")


_LONGEST_NS = 2**60
"""36 years. What spans more is no recording, and sums of its times need not fit into 64 bits."""


def _check_extent(raw: RawTrace) -> None:
    """Refuse what spans years."""
    events = raw.events
    extent_ns = int(events.end_ns.max(initial=0)) - int(events.start_ns.min(initial=0))
    if extent_ns > _LONGEST_NS:
        raise UnusableInputError(
            f"its rows span {extent_ns / 31_557_600e9:.0f} years, which no recording does",
            where=raw.meta.source,
            do="record again, or correct the times that its rows are written with",
        )


def _check_usable(raw: RawTrace, links: Links, *, device_only: bool) -> None:
    """Refuse where a path would be invented."""
    events = raw.events
    device = events.is_kind(*DEVICE_KINDS)
    if device_only and not device.any():
        raise UnusableInputError(
            "no device activities in this trace", where=raw.meta.source, do="leave out --device-only"
        )
    if not device.any() and not events.is_kind(*HOST_KINDS).any():
        raise UnusableInputError(
            "no operators, calls or device activities in this trace",
            where=raw.meta.source,
            do="record CPU and device activities",
        )
    if device.any() and not device_only and not (links.launch[device] >= 0).any():
        raise UnusableInputError(
            "no launch information: device-only trace; the path cannot leave the device (streams and sync records only)",
            where=raw.meta.source,
            do="use --device-only, or record CPU and device activities together",
        )


def _with_floors(built: TraceGraph, floors: str | Mapping[EdgeKind, int]) -> TraceGraph:
    """The same graph with arrivals read under class floors."""
    if floors == "none":
        return built
    notes: tuple[str, ...] = ()
    if isinstance(floors, str):
        floors, notes = learn_floors(built)
    graph = replace(built.graph, notes={**built.graph.notes, **dict.fromkeys(notes, 1)})
    return replace(built, graph=graph, arrivals=observe(graph, floors))


__all__ = [
    "Boundary",
    "CriticalPath",
    "Graph",
    "Options",
    "StepOptions",
    "Trace",
    "find_step",
    "load",
]
