"""Class floors: the normal delay of launch and stream edges, learned from the trace itself (methods B.6).

A floor decides which predecessor binds when two end close together. The return from a synchronize is a
node of its own here, so its edge has no delay to learn.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from stepcrit.graph.build import TraceGraph
from stepcrit.model.arrays import percentile_of
from stepcrit.model.graph import EdgeKind, Note

LONGEST_USUAL_NS = 20_000
"""A longer delay is no normal delay of its class (methods B.7)."""

PERCENTILE = 5
MIN_SAMPLES = 20
EARLY_NS = 50_000
"""A stream gap is normal only behind an activity that had been launched at least this long before."""


def learn_floors(built: TraceGraph) -> tuple[dict[EdgeKind, int], tuple[Note, ...]]:
    """Floors in ns, and a note for each class with too few samples.

    Returns:
        The floors (a class without enough samples has none) and notes.
    """
    floors, notes = {}, []
    for kind, samples in ((EdgeKind.LAUNCH, _launch_waits(built)), (EdgeKind.STREAM, _stream_gaps(built))):
        if len(samples) >= MIN_SAMPLES:
            floors[kind] = int(percentile_of(samples, PERCENTILE))
        else:
            notes.append(Note.NO_LAUNCH_FLOOR if kind == EdgeKind.LAUNCH else Note.NO_STREAM_FLOOR)
    return floors, tuple(notes)


def launch_floor(built: TraceGraph) -> int | None:
    """The trace's normal launch latency in ns; None below MIN_SAMPLES."""
    waits = _launch_waits(built)
    return int(percentile_of(waits, PERCENTILE)) if len(waits) >= MIN_SAMPLES else None


def usual_delays(built: TraceGraph, usual_gaps: Mapping[int, float]) -> dict[int, int]:
    """What an edge of each kind brings when it binds, in ns, for the conservative end of predictions.

    Args:
        built: the graph.
        usual_gaps: median residual gap by EdgeKind, from `segments.usual_gaps`; a kind without one has
            no usual delay.
    """
    graph, phi = built.graph, built.arrivals.phi_ns
    floor = {kind: int(phi[graph.edge_kind == kind].max(initial=0)) for kind in usual_gaps}
    return {kind: min(int(gap) + floor[kind], LONGEST_USUAL_NS) for kind, gap in usual_gaps.items()}


def _launch_waits(built: TraceGraph) -> np.typing.NDArray[np.int64]:
    """Start minus launch point where the queue was idle and no event was waited for."""
    graph = built.graph
    edges = np.flatnonzero(built.arrivals.binds & (graph.edge_kind == EdgeKind.LAUNCH))
    has_event = np.zeros(len(graph), np.bool_)
    has_event[graph.dst[graph.edge_kind == EdgeKind.EVENT]] = True
    edges = edges[~has_event[graph.dst[edges]]]
    waits = graph.start_ns[graph.dst[edges]] - graph.end_ns[graph.src[edges]]
    found: np.typing.NDArray[np.int64] = waits[
        waits > 0
    ]  # a start inside its own call has no latency to learn from
    return found


def _stream_gaps(built: TraceGraph) -> np.typing.NDArray[np.int64]:
    """Gaps between neighbours of a queue whose second had been launched long before."""
    graph = built.graph
    launched = np.full(len(graph), np.iinfo(np.int64).max)
    launch = np.flatnonzero(graph.edge_kind == EdgeKind.LAUNCH)
    launched[graph.dst[launch]] = graph.end_ns[graph.src[launch]]
    edges = np.flatnonzero(built.arrivals.binds & (graph.edge_kind == EdgeKind.STREAM))
    start = graph.start_ns[graph.dst[edges]]
    gaps = start - graph.end_ns[graph.src[edges]]
    found: np.typing.NDArray[np.int64] = gaps[launched[graph.dst[edges]] <= start - EARLY_NS]
    return found
