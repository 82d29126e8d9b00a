"""What the budgets of a trace could be today: each number as measured, with the room that its own noise asks for."""

from __future__ import annotations

import math

from msgspec import Struct

from stepcrit.answers.judge import SIGMAS, UNSEEN
from stepcrit.answers.metric import Metric
from stepcrit.answers.metrics import STRUCTURE, metric
from stepcrit.answers.sampled import Sampled
from stepcrit.answers.words import say, text
from stepcrit.model.checked import Number
from stepcrit.model.config import Level
from stepcrit.model.section import Sentence, Unit, Value

ROOM = 0.05
"""A time has so much room at least: the next recording of the same code takes another time."""

KEPT_AT_ZERO = frozenset({"host_syncs", "cuda_mallocs", "d2h_bytes"})
"""Counts whose absence is worth keeping where a device works; of others a 0 says nothing."""

TIMES = ("step_time", "exposed_comm")
SHARES = ("gpu_idle_share",)
"""Told, but never a failure: a share moves when either of two times does."""


class Proposed(Struct, frozen=True):
    """One budget.

    Attributes:
        metric: its name.
        unit: of the limit.
        limit: the most, at least what was found.
        level: what happens where it is passed.
        why: what was found, and where the limit comes from.
    """

    metric: str
    unit: Unit
    limit: Number
    level: Level
    why: Sentence


def propose(now: Sampled) -> list[Proposed]:
    """Budgets that the trace keeps; none for what it does not know."""
    counts = [_count(now, metric(name)) for name in STRUCTURE]
    times = [_time(now, metric(name), Level.ERROR) for name in TIMES]
    shares = [_time(now, metric(name), Level.WARN) for name in SHARES]
    return [one for one in (*counts, *times, *shares) if one is not None]


def _count(now: Sampled, what: Metric) -> Proposed | None:
    """A count: exact where every steady step has the same."""
    value = now.value(what).value
    if value is None or not (value or (what.name in KEPT_AT_ZERO and _has_device(now))):
        return None
    steady = [found for step in now.steady if (found := what.read(now.measured(step)).value) is not None]
    if len(set(steady)) > 1:
        low, high = min(steady), max(value, *steady)
        why = say("{} now; from {} to {} in {} steady steps", _shown(value, what), _shown(low, what), _shown(high, what), _number(len(steady)))  # fmt: skip
        return Proposed(what.name, what.unit, high, Level.ERROR, why)
    if len(steady) > 1:
        why = say("{} now, the same in {} steady steps", _shown(value, what), _number(len(steady)))
    elif len(now.steady) > 1:
        why = say("{} now, known of no more than one step", _shown(value, what))
    else:
        why = say("{} now, of one step: whether it repeats is not known", _shown(value, what))
    return Proposed(what.name, what.unit, value, Level.ERROR, why)


def _has_device(now: Sampled) -> bool:
    """Whether a device works in the steps that are judged."""
    return bool(now.value(metric("gpu_busy")).value)


def _time(now: Sampled, what: Metric, level: Level) -> Proposed | None:
    """A time or a share of one: above what was found by a twentieth, or by what its noise asks for."""
    value = now.value(what).value
    if not value:
        return None
    scatter = now.scatter(what)
    if scatter.sigma is None:
        room, told = SIGMAS * float(UNSEEN), "of too few steps to know its noise"
        values: tuple[Value, ...] = ()
    else:
        room = max(ROOM, SIGMAS * scatter.sigma / value)
        told, values = (
            "noise {} of {} steps",
            (Value(scatter.sigma / value, Unit.SHARE), _number(scatter.count)),
        )
    limit = value * (1 + room)
    if what.unit == Unit.SHARE and limit >= 1:
        return None  # it could not be passed
    why = say(
        f"{{}} now; {told}, so {{}} more is room", _shown(value, what), *values, Value(room, Unit.SHARE)
    )
    return Proposed(what.name, what.unit, limit if what.unit == Unit.SHARE else math.ceil(limit), level, why)


def _shown(value: Number, what: Metric) -> Value:
    return Value(value, what.unit)


def _number(n: int) -> Value:
    return text(str(n))
