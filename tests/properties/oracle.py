"""The methods' definitions (B.6, B.8) word for word: every path written out, nothing clever.

Exponential, and meant to be: it shares no algorithm with the product.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import pairwise

from stepcrit.model.graph import EdgeKind, Evidence
from tests.properties.schedules import Schedule

Chain = tuple[int, ...]
Pair = tuple[int, int]


class Oracle:
    """Arrivals, lags and all chains of one schedule, by the test's own node ids."""

    def __init__(self, schedule: Schedule) -> None:
        self.t0, self.nodes, self.sinks = schedule.t0, schedule.nodes, schedule.sinks
        self.edges: dict[Pair, tuple[Evidence, EdgeKind]] = {}
        for link in schedule.links:
            pair, reason = (link.src, link.dst), (link.evidence, link.kind)
            self.edges[pair] = min(self.edges.get(pair, reason), reason)
        self.count = len(self.nodes)
        self.preds: list[list[int]] = [[u for u, w in self.edges if w == v] for v in range(self.count)]
        floors = dict(schedule.floors)
        self.phi = {
            (u, v): min(floors.get(kind, 0), self.nodes[v].start - self.nodes[u].end)
            for (u, v), (_, kind) in self.edges.items()
        }
        ready = [max([self._arrival((u, v)) for u in self.preds[v]] or [self.t0]) for v in range(self.count)]
        self.gap = [node.start - ready[v] for v, node in enumerate(self.nodes)]
        self.binds = {(u, v): self._arrival((u, v)) == ready[v] for u, v in self.edges}
        join = schedule.policy == "join"
        self.lag = {
            (u, v): self.phi[u, v] + (self.gap[v] if join or self.binds[u, v] else 0) for u, v in self.edges
        }
        self.origin = [0 if self.preds[v] else self.gap[v] for v in range(self.count)]

    def _arrival(self, pair: Pair) -> int:
        return self.nodes[pair[0]].end + self.phi[pair]

    def chains_to(self, v: int) -> list[Chain]:
        """Every way from the origin to `v`."""
        if not self.preds[v]:
            return [(v,)]
        return [(*chain, v) for u in self.preds[v] for chain in self.chains_to(u)]

    def chains_between(self, v: int, sink: int) -> list[Chain]:
        """Every way from `v` to `sink`."""
        return list({chain[chain.index(v) :] for chain in self.chains_to(sink) if v in chain})

    @cached_property
    def chains(self) -> list[Chain]:
        """Every way from the origin to any sink."""
        return [chain for sink in self.sinks for chain in self.chains_to(sink)]

    @cached_property
    def finish(self) -> int:
        """When the boundary falls, by observation."""
        return max(self.nodes[v].end for v in self.sinks)

    @cached_property
    def critical(self) -> list[Chain]:
        """The chains that are as long as the schedule."""
        return [chain for chain in self.chains if self.t0 + self.length(chain) == self.finish]

    def length(
        self,
        chain: Chain,
        dur: Sequence[int] | None = None,
        lag: Mapping[Pair, int] | None = None,
        origin: Sequence[int] | None = None,
    ) -> int:
        """How long the origin, lags and activities of a chain take."""
        durations = [node.dur for node in self.nodes] if dur is None else dur
        delays = self.lag if lag is None else lag
        first = (self.origin if origin is None else origin)[chain[0]]
        return first + sum(durations[v] for v in chain) + sum(delays[pair] for pair in pairwise(chain))

    def tail(self, chain: Chain) -> int:
        """How long a chain takes after the end of its first activity."""
        return self.length(chain) - self.nodes[chain[0]].dur - self.origin[chain[0]]

    def finish_after(
        self,
        dur: Sequence[int] | None = None,
        lag: Mapping[Pair, int] | None = None,
        origin: Sequence[int] | None = None,
    ) -> int:
        """When the boundary would fall: the longest of all chains."""
        return self.t0 + max(self.length(chain, dur, lag, origin) for chain in self.chains)

    def without_gap(self, v: int) -> tuple[dict[Pair, int], list[int]]:
        """Lags and origin waits with the residual gap of `v` at zero: it starts when it is ready."""
        lag = {pair: self.phi[pair] if pair[1] == v else ns for pair, ns in self.lag.items()}
        return lag, [0 if u == v else ns for u, ns in enumerate(self.origin)]

    def removed_from(self, chain: Chain, dur: Sequence[int], gone: set[int]) -> int:
        """The time that new durations, and activities gone with their gap and lag, take off a chain."""
        shorter = sum(self.nodes[v].dur - dur[v] for v in chain)
        lags = sum(self.lag[u, v] for u, v in pairwise(chain) if v in gone)
        return shorter + lags + (self.origin[chain[0]] if chain[0] in gone else 0)

    def cut(self, chain: Chain, since: int) -> Chain:
        """A chain from the last activity on that had begun when the window opened."""
        begun = [i for i, v in enumerate(chain) if self.nodes[v].start <= since]
        return chain[begun[-1] if begun else 0 :]


def replay(schedule: Schedule, oracle: Oracle, dur: Sequence[int]) -> list[int]:
    """Every start under new durations, by recursion; for graphs with too many chains to write out."""
    starts: dict[int, int] = {}

    def start(v: int) -> int:
        if v not in starts:
            waits = [start(u) + dur[u] + oracle.lag[u, v] for u in oracle.preds[v]]
            starts[v] = max(waits) if waits else schedule.t0 + oracle.origin[v]
        return starts[v]

    return [start(v) for v in range(len(schedule.nodes))]
