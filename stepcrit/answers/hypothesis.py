"""What may have made the difference: keys that differ by more than the threshold and their own noise (methods M.5).

Each is a statement that can be refuted: how much putting it right would give, replayed under both gap policies, and
what would show that it is not the cause.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

from msgspec import Struct

from stepcrit.analyses import restore
from stepcrit.analyses.balance import Balance, Delta
from stepcrit.answers.sides import Run, Side
from stepcrit.graph.pathkeys import PathKey
from stepcrit.graph.replay import Saving

MOST = 3
"""So many are told."""

WORTH_TELLING = 10
"""Less than one part in so many of the whole difference is not worth a change of its own."""

LEAST_EVEN = 3
NEARLY_ALL = 0.8
"""Of so many keys so much of the time changed by one factor, within a quarter of it: a clock, not an operator."""

KIND_WORDS = {
    "device": "computing and copying on the device",
    "comm": "communication on the device",
    "host": "host time",
    "gap": "gaps between activities",
}
"""What several keys of one kind are called together."""


class Hypothesis(Struct, frozen=True):
    """One suspect.

    Attributes:
        deltas: the keys it is about: one, or several that moved together.
        name: what they are called.
        detail: shapes or bytes, "" where there are several or none.
        base_ns, new_ns: time on the critical path per step.
        moved: whether the path has more of it while its own time has not changed.
        evenly: by what share nearly all of a kind of time changed alike; None where it did not.
        waits: how often a step calls wait for the device that never do on the other side; 0 for other suspects.
        saving: what putting it right gives on the side that takes longer; None where a trace cannot tell.
    """

    deltas: tuple[Delta[PathKey], ...]
    name: str
    detail: str
    base_ns: int
    new_ns: int
    moved: bool
    evenly: float | None
    waits: float
    saving: Saving | None

    @property
    def delta_ns(self) -> int:
        """How much longer the path is by it."""
        return self.new_ns - self.base_ns


def hypotheses(balance: Balance[PathKey], base: Side, new: Side, threshold: float) -> tuple[Hypothesis, ...]:
    """The suspects, largest first; those that go the way of the whole come first.

    Single keys first; what they leave unexplained is looked for among keys of one name, then of one kind.
    """
    least = max(threshold * min(balance.base_ns, balance.new_ns), abs(balance.delta_ns) / WORTH_TELLING)
    found = _groups(balance, least)
    way = 1 if balance.delta_ns >= 0 else -1
    if abs(balance.delta_ns) >= threshold * balance.base_ns:
        found = [group for group in found if way * _sum(group) > 0]  # what went the other way did not make it
    found.sort(key=lambda group: (-way * _sum(group), repr(group[0].key)))
    waiting = _waiting(balance, base, new)
    if waiting and waiting.saving and waiting.saving.low_ns >= least:
        # Host time that lies on the path for want of a head start is what the wait does, not another suspect.
        found = [group for group in found if group[0].key.kind in ("device", "comm")]
        return (waiting, *(_hypothesis(group, base, new) for group in found[: MOST - 1]))
    return tuple(_hypothesis(group, base, new) for group in found[:MOST])


def _groups(balance: Balance[PathKey], least: float) -> list[tuple[Delta[PathKey], ...]]:
    """Keys, alone or together, whose path time differs by more than `least` and than their own noise."""
    kinds = [tuple(d for d in balance.deltas if d.key.kind == kind) for kind in ("device", "host")]
    found = [group for group in kinds if _is_even(group) and abs(_sum(group)) > max(least, _spread(group))]
    taken = {group[0].key.kind for group in found}
    for level in (_alone, _of_one_name, _of_one_kind):
        known = [group for group in found if group[0].key.kind not in taken]
        left = [
            d for d in balance.deltas if d.key.kind not in taken and not any(d in group for group in known)
        ]
        rest = balance.delta_ns - sum(_sum(group) for group in found)
        if found and abs(rest) < max(least, abs(balance.delta_ns) // 2):
            break
        found += [group for group in level(left) if abs(_sum(group)) > max(least, _spread(group))]
    return found


def _is_even(group: Sequence[Delta[PathKey]]) -> bool:
    """Whether nearly all time of several keys got longer or shorter by the same factor; not by one of them alone."""
    mine = [d for d in group if d.base.own_ns and d.new.own_ns]
    change = even_change(mine)
    if not change or len(mine) < LEAST_EVEN:
        return False
    largest = max(mine, key=lambda d: abs(d.own_ns or 0))
    for some in (mine, [d for d in mine if d is not largest]):
        whole = sum(d.base.own_ns or 0 for d in some)
        like = sum(d.base.own_ns or 0 for d in some if abs(_factor(d) - 1 - change) <= abs(change) / 4)
        if like < NEARLY_ALL * whole:
            return False
    return True


def even_change(deltas: Sequence[Delta[PathKey]]) -> float | None:
    """By how much own time grew altogether, as a share; None where there was none."""
    before, after = (sum(getattr(d, side).own_ns or 0 for d in deltas) for side in ("base", "new"))
    return float(after / before) - 1 if before else None


def _factor(delta: Delta[PathKey]) -> float:
    return float((delta.new.own_ns or 0) / (delta.base.own_ns or 1))


def _waiting(balance: Balance[PathKey], base: Side, new: Side) -> Hypothesis | None:
    """Calls that wait for the device on the longer side alone: what follows them is on the path, whatever it is."""
    longer, other = (new, base) if balance.delta_ns > 0 else (base, new)
    keys = sorted(longer.waits.keys() - other.waits.keys())
    steps = len(longer.periods_ns)
    deltas = tuple(delta for delta in balance.deltas if delta.key in keys)
    if not deltas or 2 * max(longer.waits[key] for key in keys) < steps:
        return None
    run = longer.first
    return Hypothesis(
        deltas,
        " and ".join(dict.fromkeys(key.name for key in keys)),
        "",
        sum(delta.base.path_ns for delta in deltas),
        sum(delta.new.path_ns for delta in deltas),
        moved=False,
        evenly=None,
        waits=sum(longer.waits[key] for key in keys) / steps,
        saving=restore.unwaiting(run.view, run.cost.keyed, keys),
    )


def _alone(deltas: Sequence[Delta[PathKey]]) -> Iterable[tuple[Delta[PathKey], ...]]:
    return [(delta,) for delta in deltas]


def _of_one_name(deltas: Sequence[Delta[PathKey]]) -> Iterable[tuple[Delta[PathKey], ...]]:
    groups: dict[tuple[str, str], list[Delta[PathKey]]] = {}
    for delta in deltas:
        groups.setdefault((delta.key.kind, delta.key.name), []).append(delta)
    return [tuple(group) for group in groups.values() if len(group) > 1]


def _of_one_kind(deltas: Sequence[Delta[PathKey]]) -> Iterable[tuple[Delta[PathKey], ...]]:
    groups: dict[str, list[Delta[PathKey]]] = {}
    for delta in deltas:
        groups.setdefault(delta.key.kind, []).append(delta)
    return [tuple(group) for group in groups.values() if len(group) > 1]


def _sum(group: Iterable[Delta[PathKey]]) -> int:
    return sum(delta.path_ns for delta in group)


def _spread(group: Iterable[Delta[PathKey]]) -> float:
    """Of several keys together: as if each varied by itself."""
    return math.hypot(*(delta.spread_ns for delta in group))


def _hypothesis(group: tuple[Delta[PathKey], ...], base: Side, new: Side) -> Hypothesis:
    names = {delta.key.name for delta in group}
    key = group[0].key
    own = [delta.own_ns for delta in group if delta.own_ns is not None]
    moved = bool(own) and 2 * sum(own) * (1 if _sum(group) > 0 else -1) < abs(_sum(group))
    longer = new if _sum(group) > 0 else base
    return Hypothesis(
        group,
        key.name if len(names) == 1 else KIND_WORDS[key.kind],
        key.detail if len(group) == 1 else "",
        sum(delta.base.path_ns for delta in group),
        sum(delta.new.path_ns for delta in group),
        moved,
        even_change(group) if len(names) > 1 and _is_even(group) else None,
        0,
        None if moved else _restored(group, longer.first, is_new=longer is new),
    )


def _restored(group: Sequence[Delta[PathKey]], run: Run, *, is_new: bool) -> Saving | None:
    """What the longer side saves if the keys took what they take on the other."""
    taken = {delta.key: share for delta in group if (share := _excess(delta, is_new=is_new)) > 0}
    present = set(run.cost.keyed.keys)
    known = {key: share for key, share in taken.items() if key in present}
    return restore.analyze(run.view, run.cost.keyed, known) if known else None


def _excess(delta: Delta[PathKey], *, is_new: bool) -> Fraction:
    """The share of a key's time on the longer side that the other does not have."""
    long, short = (delta.new, delta.base) if is_new else (delta.base, delta.new)
    if long.own_ns is None or short.own_ns is None:
        whole, rest = Fraction(long.path_ns), Fraction(short.path_ns)
    else:
        whole, rest = long.own_ns, short.own_ns
    return max(Fraction(0), 1 - rest / whole) if whole > 0 else Fraction(0)
