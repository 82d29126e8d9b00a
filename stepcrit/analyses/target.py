"""Target.

Question: what is the smallest change that makes the step as short as wanted?
Method:   each group of time alone: the least share of it that must go; where no one is enough, the group that
          saves most together with those before it is added, all but the last gone whole (methods C.6).
Needs:    a step on its schedule graph.
Keeps:    what is told reaches the target at the conservative end of the prediction; where nothing does, the
          step that is told for all groups gone is what replay gives, no sum of savings.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepcrit.graph.groups import By, group
from stepcrit.graph.replay import Saving, replayer
from stepcrit.graph.search import Candidates, best, candidates, least_share
from stepcrit.graph.stepgraph import StepGraph

LOOKED_AT = 12
"""So many groups are tried: alone those that save most, together those with most of the path that is left."""

MOST_TOGETHER = 5
"""A set of more groups is no advice."""


class Part(Struct, frozen=True):
    """One group of a change.

    Attributes:
        name: the group.
        side: "device" or "host": whose time is taken away.
        taken_share: how much of its time must go, 0..1.
    """

    name: str
    side: str
    taken_share: Fraction


class Way(Struct, frozen=True):
    """A change that reaches the target, or the most that was tried.

    Attributes:
        parts: what changes together.
        saving: of the step, in ns.
    """

    parts: tuple[Part, ...]
    saving: Saving


class Target(Struct, frozen=True):
    """Ways to a length of the step.

    Attributes:
        by: how time is grouped.
        period_ns: the step as recorded: the mean period, or the elapsed time of the step alone.
        period_count: over how many steady periods; 0: the step changed alone.
        target_ns: what is wanted.
        alone: groups each of which is enough, the one that must change least first.
        together: a set that is enough, where no group is; None where none was found.
        most: the set that was tried last, all gone, where none was found to be enough; else None.
        left: groups with most time on the path that is left then.
        nothing_left_ns: then, the step with every group gone: no set can make it shorter.
    """

    by: By
    period_ns: int
    period_count: int
    target_ns: int
    alone: tuple[Way, ...] = ()
    together: Way | None = None
    most: Way | None = None
    left: tuple[tuple[str, int], ...] = ()
    nothing_left_ns: int | None = None


def analyze(view: StepGraph, by: By, target_ns: int) -> Target:
    """Look for the smallest change.

    Raises:
        UsageError: the trace does not record what to group by.
    """
    replay = replayer(view)
    among = candidates(replay, group(view, by))
    asked = Target(by, replay.period_ns, replay.period_count, target_ns)
    needed = replay.period_ns - target_ns
    if needed <= 0:
        return asked
    found = best(among, LOOKED_AT)
    keys = sorted(found, key=lambda k: (-found[k].saving_ns, k))[:LOOKED_AT]
    alone = [way for key in keys if found[key].saving_ns >= needed for way in _enough(among, {}, key, needed)]
    if alone:
        alone.sort(key=lambda way: (way.parts[0].taken_share, way.parts[0].name))
        return replace(asked, alone=tuple(alone))
    gone = _greedy(among, needed)
    together = _closing(among, gone, needed) if gone else ()
    if together:
        return replace(asked, together=together[0])
    everything = dict.fromkeys(range(len(among.groups.labels)), Fraction(1))
    nothing_left = replay.period_ns - _saving(among, everything).high_ns
    most = _way(among, gone) if gone else None
    return replace(asked, most=most, left=_left(among, gone), nothing_left_ns=nothing_left)


def _saving(among: Candidates, taken: Mapping[int, Fraction]) -> Saving:
    return among.replay.shortened(among.replay.earlier(among.variant(taken)))[0]


def _at_least(among: Candidates, taken: Mapping[int, Fraction]) -> int:
    """The low end of the saving; of most runs the conservative policy tells it alone."""
    if among.replay.loop:
        return _saving(among, taken).low_ns
    return among.replay.at_least(among.replay.earlier_at_least(among.variant(taken)))


def _way(among: Candidates, taken: Mapping[int, Fraction]) -> Way:
    labels = among.groups.labels
    parts = tuple(
        Part(labels[k], "device" if among.on_device(k) else "host", share) for k, share in taken.items()
    )
    return Way(parts, _saving(among, taken))


def _enough(among: Candidates, gone: Mapping[int, Fraction], key: int, needed: int) -> tuple[Way, ...]:
    """The least share of a group that is enough beside others that are gone; nothing where none is."""
    share = least_share(lambda x: _at_least(among, {**gone, key: x}), needed)
    if share is None:
        return ()
    way = _way(among, {**gone, key: share})
    if way.saving.low_ns < needed:  # a mean of periods, of which the other policy gains less
        share = least_share(lambda x: _saving(among, {**gone, key: x}).low_ns, needed)
        return () if share is None else (_way(among, {**gone, key: share}),)
    return (way,)


def _greedy(among: Candidates, needed: int) -> dict[int, Fraction]:
    """Groups gone whole, each the one that saves most beside those before it, until they are enough.

    Where none saves anything beside them, several paths are equally long (golden case G05: 0 and 0, together
    20): then the one with most of the path that is left goes, and what takes over is looked at next.
    """
    gone: dict[int, Fraction] = {}
    saved = 0
    while len(gone) < MOST_TOGETHER and saved < needed:
        # What has taken over is on the path by now, though it may not have been before.
        rest = {k: _at_least(among, {**gone, k: Fraction(1)}) for k in _on_path(among, gone)}
        if not rest:
            break
        key = max(rest, key=lambda k: rest[k])  # among equals, the first: with most of the path
        gone[key], saved = Fraction(1), max(rest[key], saved)
    return _needed(among, gone, needed) if saved >= needed else gone


def _needed(among: Candidates, gone: dict[int, Fraction], needed: int) -> dict[int, Fraction]:
    """The same set without groups that the others do without."""
    for key in list(gone):
        rest = {k: share for k, share in gone.items() if k != key}
        if rest and _at_least(among, rest) >= needed:
            gone = rest
    return gone


def _on_path(among: Candidates, gone: Mapping[int, Fraction]) -> list[int]:
    """The groups with most time on the path that is left, but for gaps."""
    path, gaps = among.path_of(gone), among.groups.gap_of_class.values()
    keys = [k for k in np.flatnonzero(path).tolist() if k not in gone and k not in gaps]
    return sorted(keys, key=lambda k: (-int(path[k]), k))[:LOOKED_AT]


def _closing(among: Candidates, gone: dict[int, Fraction], needed: int) -> tuple[Way, ...]:
    """The same set with no more of the last group gone than needed; nothing where all of it is not enough."""
    *before, last = gone
    return _enough(among, dict.fromkeys(before, Fraction(1)), last, needed)


def _left(among: Candidates, gone: Mapping[int, Fraction]) -> tuple[tuple[str, int], ...]:
    """The groups with most time on the path that is left."""
    path = among.path_of(gone)
    order = sorted(np.flatnonzero(path).tolist(), key=lambda k: (-int(path[k]), k))
    return tuple((among.groups.labels[k], int(path[k])) for k in order[:3])
