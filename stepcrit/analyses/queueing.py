"""Queue depth and launch-to-start.

Question: does the device wait for the host, or do launches wait for the device?
Method:   depth = launched and not yet started, +1 at each launch point and -1 at each start (methods F);
          launch-to-start against the trace's own floor: its 5th percentile on an idle queue.
Needs:    launches.
Keeps:    every launch that enters the queue leaves it: the series ends at 0.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from stepcrit.graph.floors import launch_floor
from stepcrit.graph.launchpoint import launch_points
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.model.arrays import BoolArray, Int64Array, median_of, percentile_of
from stepcrit.model.graph import EdgeKind, NodeKind


class Queueing(Struct, frozen=True, eq=False):
    """Launches of one step's window, in ns.

    Attributes:
        count: launched activities that start inside the window.
        launch_to_start_ns: median; None without launches.
        p95_ns: 95th percentile; None without launches.
        floor_ns: 5th percentile over activities that found their queue idle; None below 20 of them.
        launch_bound_share: share of activities whose launch was the last thing they waited for, 0..1;
            the others waited for earlier device work. None without launches.
        max_depth: most activities launched and not yet started at one instant.
        series: (instant, depth after it) for each change of depth.
    """

    count: int
    launch_to_start_ns: int | None
    p95_ns: int | None
    floor_ns: int | None
    launch_bound_share: float | None
    max_depth: int
    series: tuple[Int64Array, Int64Array]


def analyze(view: StepGraph) -> Queueing:
    """Measure the queue in one step's window."""
    graph = view.built.graph
    points = launch_points(view.built)
    launched = np.flatnonzero((points.at_ns >= 0) & (graph.kind >= NodeKind.KERNEL))
    start = graph.start_ns[launched]
    inside = launched[(start >= view.step.start_ns) & (start < view.step.end_ns)]
    wait = graph.start_ns[inside] - points.at_ns[inside]
    floor = launch_floor(view.built)
    series = depth_series(points.at_ns[inside], graph.start_ns[inside])
    if not wait.size:
        return Queueing(0, None, None, floor, None, 0, series)
    return Queueing(
        len(inside),
        int(median_of(wait)),
        int(percentile_of(wait, 95)),
        floor,
        float(_bound_by_launch(view)[inside].mean()),
        int(series[1].max(initial=0)),
        series,
    )


def _bound_by_launch(view: StepGraph) -> BoolArray:
    """Per node, whether a launch edge binds it."""
    graph = view.built.graph
    edges = view.built.arrivals.binds & (graph.edge_kind == EdgeKind.LAUNCH)
    bound = np.zeros(len(graph), np.bool_)
    bound[graph.dst[edges]] = True
    return bound


def depth_series(launch_ns: Int64Array, start_ns: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Instants at which the depth changes, and the depth after each.

    >>> import numpy as np
    >>> at, depth = depth_series(np.array([2, 4, 6]), np.array([5, 26, 47]))
    >>> list(zip(at.tolist(), depth.tolist()))
    [(2, 1), (4, 2), (5, 1), (6, 2), (26, 1), (47, 0)]
    """
    at = np.concatenate((launch_ns, start_ns))
    change = np.concatenate((np.ones(len(launch_ns), np.int64), -np.ones(len(start_ns), np.int64)))
    instants, back = np.unique(at, return_inverse=True)
    net = np.bincount(back, weights=change, minlength=len(instants)).astype(np.int64)
    changed = net != 0
    return instants[changed].astype(np.int64), np.cumsum(net)[changed]
