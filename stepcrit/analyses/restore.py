"""What putting a difference right would give.

Question: if some keys took as long as on the other side, how much shorter would this side's step be?
Method:   its durations scaled in every step and the capture replayed under both gap policies (methods C, M.5).
Needs:    a step on its schedule graph, and the share of each key's time that is to go.
Keeps:    nothing taken away saves nothing; never less than nothing is saved.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fractions import Fraction

import numpy as np

from stepcrit.errors import UsageError
from stepcrit.graph.change import WAITS, Change, Scope, apply_changes
from stepcrit.graph.pathkeys import Keyed, PathKey
from stepcrit.graph.replay import POLICIES, Replayer, Saving, Variant, replayer
from stepcrit.graph.schedule import unwaited
from stepcrit.graph.search import candidates
from stepcrit.graph.selector import Selector
from stepcrit.graph.stepgraph import StepGraph


def analyze(view: StepGraph, found: Keyed, taken: Mapping[PathKey, Fraction]) -> Saving | None:
    """The saving per step when a share of some keys' time is gone; None where a trace cannot tell.

    Args:
        view: the step; where it stands for the steady steps, all of them change.
        found: the trace's keys.
        taken: what is to go of each, 0 to 1; either gaps or keys of other kinds.

    Returns:
        None for waits on loader workers (how much of one is production is in no trace), and for gaps that
        no edge made.
    """
    replay = replayer(view)
    gaps = [key for key in taken if key.kind == "gap"]
    if gaps:
        variant = _shorter_gaps(view, replay, {key: taken[key] for key in gaps})
        return None if variant is None else _read(replay, variant)
    among = candidates(replay, found.groups)
    numbers = {number: taken[key] for number, key in enumerate(found.keys) if key in taken}
    if any(among.fetches(number) for number in numbers):
        return None
    return _read(replay, among.variant(numbers))


def unwaiting(view: StepGraph, found: Keyed, keys: Collection[PathKey]) -> Saving:
    """The saving per step when some calls no longer wait for the device, but take the time that is their own."""
    replay, graph = replayer(view), view.built.graph
    numbers = [number for number, key in enumerate(found.keys) if key in keys]
    called = (graph.row >= 0) & np.isin(found.groups.of_row[np.maximum(graph.row, 0)], numbers)
    waits = called[graph.dst] & np.isin(graph.edge_kind, WAITS)
    others = np.bincount(graph.dst[~waits], minlength=len(graph)) > 0  # its thread's own order
    dropped = waits & others[graph.dst]
    delays = {policy: unwaited(view.delays(policy), dropped) for policy in POLICIES}
    return _read(replay, Variant(graph.dur_ns, delays))


def _shorter_gaps(view: StepGraph, replay: Replayer, taken: Mapping[PathKey, Fraction]) -> Variant | None:
    """Every gap of some classes, by what is left of it."""
    changes = tuple(Change(Selector("class", key.name), "scale", 1 - share) for key, share in taken.items())
    try:
        applied = apply_changes(view, changes, None, Scope(loop=replay.loop))
    except UsageError:  # a class of gaps on the path of which no node has a residual
        return None
    return Variant(applied.dur_ns, {policy: applied.delays(view, policy) for policy in POLICIES})


def _read(replay: Replayer, variant: Variant) -> Saving:
    (saving,) = replay.shortened(replay.earlier(variant))
    return saving
