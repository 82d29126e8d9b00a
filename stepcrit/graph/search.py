"""The groups of time whose shortening would save most, each by a replay, with as few replays as certainty allows.

What a group can save of a step is at most what it has of the critical path that leads there (methods 0.6,
invariant 5). So groups are replayed in the order of that bound, until the next bound is no better than
what the best ones were found to save (methods C.5).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Mapping, Sequence
from fractions import Fraction
from functools import cached_property

import numpy as np
from msgspec import Struct

from stepcrit.graph.groups import Groups
from stepcrit.graph.newpath import gaps_by_class, moved
from stepcrit.graph.parts import keep_tails
from stepcrit.graph.path import Path, PieceKind, chain
from stepcrit.graph.replay import Replayer, Variant
from stepcrit.graph.schedule import GapPolicy, Lags
from stepcrit.graph.segments import Segments
from stepcrit.graph.threads import Shares, shares
from stepcrit.model.arrays import NONE, BoolArray, Int32Array, Int64Array
from stepcrit.model.events import DEVICE_KINDS, EventTable
from stepcrit.model.graph import NodeKind

MOST_LOOKED_AT = 250
"""So many groups are replayed at most, where thousands might save alike: 60 real traces need 39."""


class Candidates(Struct, frozen=True, eq=False, dict=True):
    """Groups as things that can be shortened, on the side that carries more of the step's path.

    Attributes:
        replay: of the step.
        groups: how time is grouped.
        divided: host nodes by owner.
        critical_ns: by group, time on the step's path; `critical_device_ns`, of device activities.
        device_ns: by group, summed device time in the step's window.
    """

    replay: Replayer
    groups: Groups
    divided: Shares
    critical_ns: Int64Array
    critical_device_ns: Int64Array
    device_ns: Int64Array

    def on_device(self, key: int) -> bool:
        """Whether the group's device activities carry more of the path than its host time does."""
        return bool(self.device_ns[key]) and 2 * self.critical_device_ns[key] >= self.critical_ns[key]

    @cached_property
    def host_node(self) -> Int32Array:
        """The node of each stretch of host time."""
        return self.replay.view.built.number[self.divided.node].astype(np.int32)

    @cached_property
    def host_key(self) -> Int32Array:
        """The group of each stretch of host time."""
        owner, groups = self.divided.owner, self.groups
        key = np.where(owner >= 0, groups.of_row[np.maximum(owner, 0)], groups.untracked)
        if groups.returns < 0:
            return key
        is_return = self.replay.view.built.graph.kind[self.host_node] == NodeKind.SYNC
        return np.where(is_return, groups.returns, key)

    @cached_property
    def _host_order(self) -> _Sorted:
        return _sorted(self.host_key, len(self.groups.labels))

    @cached_property
    def _device_order(self) -> _Sorted:
        graph = self.replay.view.built.graph
        nodes = np.flatnonzero(graph.kind >= NodeKind.KERNEL)
        order, ptr = _sorted(self.groups.of_row[graph.row[nodes]], len(self.groups.labels))
        return nodes[order], ptr

    def parts(self, key: int) -> tuple[Int64Array, Int64Array]:
        """Nodes with time of the group on its side, each once, over the whole capture; and how much of each, in ns."""
        if self.on_device(key):
            mine = _mine(self._device_order, key)
            return mine, self.replay.view.built.graph.dur_ns[mine]
        mine = _mine(self._host_order, key)
        mine = self._outside_fetches(mine) if self.fetches(key) else mine
        node = self.host_node[mine]  # stretches of a node are neighbours
        first = np.flatnonzero(np.diff(node, prepend=NONE))
        length = self.divided.length_ns[mine]
        return node[first].astype(np.int64), np.add.reduceat(length, first) if first.size else length

    def fetches(self, key: int) -> bool:
        """Whether a group's host time is waiting for loader workers: how long that takes is not the host's to say."""
        loop = self.replay.loop
        if loop is None or self.on_device(key):
            return False
        return bool(np.isin(self.divided.owner[_mine(self._host_order, key)], loop.rows).any())

    def _outside_fetches(self, stretches: Int64Array) -> Int64Array:
        """Of some stretches of host time, those that do not lie in a fetch."""
        loop, owner = self.replay.loop, self.divided.owner[stretches]
        if loop is None:
            return stretches
        return stretches[(owner < 0) | ~loop.covers[np.maximum(owner, 0)]]

    def variant(self, taken: Mapping[int, Fraction]) -> Variant:
        """Groups with a share of their time taken away; of fetches from loader workers, of their production."""
        graph, production = self.replay.view.built.graph, Fraction(1)
        dur = graph.dur_ns.copy()
        delays = self.replay.delays
        for key, share in taken.items():
            nodes, part = self.parts(key)
            dur[nodes] -= part * share.numerator // share.denominator
            production *= 1 - share if self.fetches(key) else 1
            delays = self._submitted(key, share, delays)
        return Variant(keep_tails(graph, np.maximum(dur, 0, out=dur)), delays, production)

    def _submitted(
        self, key: int, share: Fraction, delays: Mapping[GapPolicy, Lags]
    ) -> Mapping[GapPolicy, Lags]:
        """The delays behind launch calls of a group whose calls get shorter."""
        if self.on_device(key):
            return delays
        mine, calls = _mine(self._host_order, key), self.replay.view.launch_calls
        less = self.divided.length_ns[mine] * share.numerator // share.denominator
        grown = (self.host_node[mine].astype(np.int64), self.divided.owner[mine].astype(np.int64), -less)
        longer = calls.longer_ns(grown)
        if not longer.any():
            return delays
        return {p: Lags(calls.delays(longer, d.edge_ns, p), d.origin_ns) for p, d in delays.items()}

    @cached_property
    def bound_ns(self) -> Int64Array:
        """By group, the most that it can save of a step: what it has of the path to the last boundary."""
        if not self.replay.period_count:
            return self.critical_ns
        built = self.replay.view.built
        end = built.graph.end_ns
        last = max(self.replay.ends[-1].tolist(), key=lambda v: int(end[v]))
        path = chain(built.graph, built.arrivals, last, since_ns=built.graph.t0_ns)
        return -(-self._time_on(path, built.graph.dur_ns, ()) // self.replay.period_count)

    def path_of(self, gone: Mapping[int, Fraction]) -> Int64Array:
        """By group, the time on the step's path when all of some groups' time is taken away, in ns."""
        now = moved(self.replay, self.variant(gone))
        found = self._time_on(now.path, now.graph.dur_ns, [k for k in gone if not self.on_device(k)])
        for work, ns in gaps_by_class(self.replay.view, now).items():
            found[self.groups.gap_of_class[work]] += ns
        return found

    def _time_on(self, path: Path, dur_ns: Int64Array, gone: Sequence[int]) -> Int64Array:
        """By group, the time on a path of nodes that take `dur_ns`; the host time of groups that are gone left out."""
        graph, found = self.replay.view.built.graph, np.zeros(len(self.groups.labels), np.int64)
        whole = path.kind == PieceKind.NODE
        nodes, length = path.node[whole], (path.end_ns - path.start_ns)[whole]
        on_device = graph.kind[nodes] >= NodeKind.KERNEL
        np.add.at(found, self.groups.of_row[graph.row[nodes[on_device]]], length[on_device])
        # A node that the window cuts has its parts in it in proportion.
        inside = np.zeros(len(graph))
        inside[nodes] = length / np.maximum(dur_ns[nodes], 1)
        mine = (inside[self.host_node] > 0) & ~np.isin(self.host_key, gone)
        part = self.divided.length_ns[mine] * inside[self.host_node[mine]]
        np.add.at(found, self.host_key[mine], part.astype(np.int64))
        return found


class Found(Struct, frozen=True):
    """A group that was replayed with no time at all.

    Attributes:
        saving_ns: what it saves at least.
        join: how much earlier the boundaries come under the conservative policy.
    """

    saving_ns: int
    join: tuple[int, int]


_Sorted = tuple[Int64Array, Int64Array]
"""Indices by group, and where each group begins among them."""


def _sorted(key: Int32Array, size: int) -> _Sorted:
    # numpy has a radix sort for short numbers
    order = np.argsort(key.astype(np.uint16) if size < 2**16 else key, kind="stable")
    return order, np.append(0, np.cumsum(np.bincount(key, minlength=size)))


def _mine(by_group: _Sorted, key: int) -> Int64Array:
    order, ptr = by_group
    return order[ptr[key] : ptr[key + 1]]


def candidates(replay: Replayer, groups: Groups) -> Candidates:
    """The groups of a view's time."""
    view = replay.view
    size = len(groups.labels)
    critical, on_device = _path_time(view.segments, groups, _is_device(view.trace.events), size)
    divided = shares(view.links.pieces, view.built.threads)
    return Candidates(replay, groups, divided, critical, on_device, _device_time(replay, groups, size))


def best(among: Candidates, count: int) -> dict[int, Found]:
    """The groups that save most when they take no time; perhaps some more.

    Args:
        among: the groups.
        count: how many of the best are wanted. Fewer come where fewer are on any path.

    Returns:
        By group, in the order in which they were replayed. Where as many as MOST_LOOKED_AT were, others may save
        more: up to `beyond_ns`.
    """
    replay = among.replay
    gaps = set(among.groups.gap_of_class.values())
    order = sorted(np.flatnonzero(among.bound_ns).tolist(), key=lambda k: (-int(among.bound_ns[k]), k))
    found: dict[int, Found] = {}
    top: list[int] = []  # the best savings so far, least first
    for key in order:
        if key in gaps:
            continue
        if len(top) >= count and (not count or among.bound_ns[key] <= top[0] or len(found) >= MOST_LOOKED_AT):
            break
        join = replay.earlier_at_least(among.variant({key: Fraction(1)}))
        found[key] = one = Found(replay.at_least(join), join)
        heapq.heappush(top, one.saving_ns) if len(top) < count else heapq.heappushpop(top, one.saving_ns)
    return found


def beyond_ns(among: Candidates, found: Collection[int]) -> int:
    """The most that any group which was not replayed can save, in ns."""
    left = among.bound_ns.copy()
    left[[*found, *among.groups.gap_of_class.values()]] = 0
    return int(left.max(initial=0))


THOUSANDTHS = 1000


def least_share(saved: Callable[[Fraction], int], needed_ns: int) -> Fraction | None:
    """The least share, in thousandths, whose taking away saves enough; None where all of it does not.

    Args:
        saved: what a share saves, in ns; never less for more.
        needed_ns: what is enough.
    """
    if saved(Fraction(1)) < needed_ns:
        return None
    low, high = -1, THOUSANDTHS  # high is enough, low is not
    while high - low > 1:
        middle = (low + high) // 2
        if saved(Fraction(middle, THOUSANDTHS)) >= needed_ns:
            high = middle
        else:
            low = middle
    return Fraction(high, THOUSANDTHS)


def _is_device(events: EventTable) -> BoolArray:
    return events.is_kind(*DEVICE_KINDS)


def _path_time(
    segments: Segments, groups: Groups, is_device: BoolArray, size: int
) -> tuple[Int64Array, Int64Array]:
    """Time on a path by group, and of it that of device activities."""
    every, on_device = np.zeros(size, np.int64), np.zeros(size, np.int64)
    key, length = groups.of_segments(segments), segments.length_ns
    np.add.at(every, key, length)
    work = (segments.row >= 0) & (segments.is_gap == 0) & is_device[np.maximum(segments.row, 0)]
    np.add.at(on_device, key[work], length[work])
    return every, on_device


def _device_time(replay: Replayer, groups: Groups, size: int) -> Int64Array:
    """Summed device time by group, in the step's window."""
    view, events = replay.view, replay.view.trace.events
    found = np.zeros(size, np.int64)
    start, end = view.step.start_ns, view.step.end_ns
    rows = np.flatnonzero(_is_device(events))
    rows = rows[(events.end_ns[rows] > start) & (events.start_ns[rows] < end)]
    length = np.minimum(events.end_ns[rows], end) - np.maximum(events.start_ns[rows], start)
    np.add.at(found, groups.of_row[rows], length)
    return found
