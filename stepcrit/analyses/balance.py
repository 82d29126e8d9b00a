"""Where the difference between two sets of steps lies.

Question: which keys of the critical path got longer or shorter, and do they account for the whole difference?
Method:   means over the steps, by key; both paths partition their periods, so the differences add up (methods M.4).
Needs:    the paths of the steady steps of both sides, by key.
Keeps:    base, new and difference of all keys sum to those of the mean period exactly, in whole ns; what is found
          from A to B is minus what is found from B to A.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from enum import StrEnum
from fractions import Fraction
from typing import Generic, TypeVar

import numpy as np
from msgspec import Struct

from stepcrit.errors import InternalError

POOLED_SHARE = Fraction(1, 200)
"""Keys that differ by less than this share of the longer period are shown together."""

_KEYS_AT_ONCE = 4096
"""Keys whose numbers of all steps are in memory together."""

Key = TypeVar("Key", bound=Hashable)


class How(StrEnum):
    """In what way a key differs."""

    NEW = "only in new"
    GONE = "only in base"
    MORE = "more calls"
    FEWER = "fewer calls"
    SLOWER = "slower"
    FASTER = "faster"
    ONTO = "moved onto the path"
    OFF = "moved off the path"
    NONE = ""


class Cost(Struct, frozen=True):
    """A key on one side, per step.

    Attributes:
        path_ns: mean time on the critical path, rounded so that all keys sum to the mean period.
        own_ns: mean own time, on the path or off it; None for a gap, which has none.
        calls: mean calls; None for a gap.
        spread_ns: half the distance of the quartiles of the path time over the steps (or over the runs).
    """

    path_ns: int
    own_ns: Fraction | None
    calls: Fraction | None
    spread_ns: float


class Delta(Struct, Generic[Key], frozen=True):
    """A key on both sides.

    Attributes:
        key: the key.
        base, new: per step.
        how: in what way they differ.
    """

    key: Key
    base: Cost
    new: Cost
    how: How

    @property
    def path_ns(self) -> int:
        """How much longer the critical path is by it."""
        return self.new.path_ns - self.base.path_ns

    @property
    def own_ns(self) -> int | None:
        """How much more time it takes itself."""
        if self.base.own_ns is None or self.new.own_ns is None:
            return None
        return round(self.new.own_ns) - round(self.base.own_ns)

    @property
    def spread_ns(self) -> float:
        """What the key varies by itself: the larger of both sides."""
        return max(self.base.spread_ns, self.new.spread_ns)


class Balance(Struct, Generic[Key], frozen=True):
    """All keys.

    Attributes:
        base_ns, new_ns: the mean periods.
        deltas: largest difference first.
    """

    base_ns: int
    new_ns: int
    deltas: tuple[Delta[Key], ...]

    @property
    def delta_ns(self) -> int:
        """The difference of the mean periods."""
        return self.new_ns - self.base_ns


class Spent(Struct, Generic[Key], frozen=True):
    """One side.

    Attributes:
        path_ns: runs of steps: for each step, time on its path by key.
        own: by key, (total ns, calls) over all steps; keys without own time are absent.
    """

    path_ns: Sequence[Sequence[Mapping[Key, int]]]
    own: Mapping[Key, tuple[int, int]]

    @property
    def steps(self) -> list[Mapping[Key, int]]:
        """The steps of all runs."""
        return [step for run in self.path_ns for step in run]


def analyze(base: Spent[Key], new: Spent[Key]) -> Balance[Key]:
    """Set two sides against each other.

    Raises:
        InternalError: a side has no step (a bug).
    """
    periods = [_mean_period(side) for side in (base, new)]
    keys = sorted(_keys(base) | _keys(new), key=repr)
    owned = set(base.own) | set(new.own)
    costs = [_costs(side, keys, owned) for side in (base, new)]
    pooled = POOLED_SHARE * max(periods)
    deltas = [
        Delta(key, costs[0][i], costs[1][i], _how(costs[0][i], costs[1][i])) for i, key in enumerate(keys)
    ]
    kept = [d for d in deltas if d.base.path_ns or d.new.path_ns or _own_matters(d, pooled)]
    kept.sort(key=lambda d: (-abs(d.path_ns), repr(d.key)))
    base_ns, new_ns = (round(period) for period in periods)
    if sum(d.path_ns for d in kept) != new_ns - base_ns:
        raise InternalError("the differences by key do not add up to the difference of the periods")
    return Balance(base_ns, new_ns, tuple(kept))


def is_small(delta: Delta[Key], balance: Balance[Key]) -> bool:
    """Whether a key is shown together with others: small on the path and, where it has any, in own time."""
    least = POOLED_SHARE * max(balance.base_ns, balance.new_ns)
    return abs(delta.path_ns) < least and not _own_matters(delta, least)


def _own_matters(delta: Delta[Key], least: Fraction) -> bool:
    own = delta.own_ns
    return own is not None and abs(own) >= least and own != 0


def _keys(side: Spent[Key]) -> set[Key]:
    return {key for step in side.steps for key in step} | set(side.own)


def _mean_period(side: Spent[Key]) -> Fraction:
    steps = side.steps
    if not steps:
        raise InternalError("a side without steps")
    return Fraction(sum(sum(step.values()) for step in steps), len(steps))


def _costs(side: Spent[Key], keys: Sequence[Key], owned: set[Key]) -> list[Cost]:
    """Means per step. Rounded running sums keep the whole exact."""
    steps, total = side.steps, Counter[Key]()
    for step in steps:
        total.update(step)
    running, done, costs = Fraction(0), 0, []
    for key, spread in zip(keys, _spreads(side, keys), strict=True):
        running += Fraction(total[key], len(steps))
        own = side.own.get(key, (0, 0)) if key in owned else None
        costs.append(
            Cost(
                round(running) - done,
                None if own is None else Fraction(own[0], len(steps)),
                None if own is None else Fraction(own[1], len(steps)),
                spread,
            )
        )
        done = round(running)
    return costs


def _spreads(side: Spent[Key], keys: Sequence[Key]) -> list[float]:
    """Of each key, half the distance of the quartiles over the runs, where there are three; else over the steps."""
    blocks = (keys[at : at + _KEYS_AT_ONCE] for at in range(0, len(keys), _KEYS_AT_ONCE))
    return [spread for block in blocks for spread in _spreads_of(side, block)]


def _spreads_of(side: Spent[Key], keys: Sequence[Key]) -> list[float]:
    """`_spreads` of a few keys: of each, a number a step is held."""
    runs = [[[step.get(key, 0) for step in run] for key in keys] for run in side.path_ns]
    each = [np.array(run, np.int64) for run in runs]
    values = (
        np.stack([run.mean(axis=1) for run in each]) if len(each) >= 3 else np.concatenate(each, axis=1).T
    )
    low, high = np.percentile(values, (25, 75), axis=0)
    spreads: list[float] = ((high - low) / 2).tolist()
    return spreads


def _how(base: Cost, new: Cost) -> How:
    """In what way: by presence, then calls, then own time; what is left moved."""
    path = new.path_ns - base.path_ns
    if base.own_ns is None or new.own_ns is None or base.calls is None or new.calls is None:
        return How.NONE
    before, after = base.calls, new.calls
    if not before and not base.path_ns and not base.own_ns:
        return How.NEW
    if not after and not new.path_ns and not new.own_ns:
        return How.GONE
    if before != after and abs(after - before) * 20 >= max(before, after):
        return How.MORE if after > before else How.FEWER
    own = new.own_ns - base.own_ns
    if own * path > 0 and 2 * abs(own) >= abs(path):
        return How.SLOWER if own > 0 else How.FASTER
    return How.NONE if not path else How.ONTO if path > 0 else How.OFF
