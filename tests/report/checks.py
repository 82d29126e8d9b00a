"""Verdicts of `check` for tests of what is written from them."""

from __future__ import annotations

from stepcrit.model.checked import (
    Checked,
    CheckedBudget,
    CheckedTrace,
    Effect,
    Outcome,
    Place,
    Remark,
)
from stepcrit.model.section import Sentence, Unit, Value
from tests.report.hostile import NAMES

TOML = "stepcrit.toml"


def row(
    metric: str = "host_syncs",
    outcome: Outcome = Outcome.PASS,
    effect: Effect = Effect.NONE,
    *,
    value: float | None = 2,
    line: int = 0,
) -> CheckedBudget:
    """A budget of at most one."""
    why = None if value is not None else Sentence("no synchronization records")
    place = Place(TOML, line) if line else None
    limit = Sentence("at most {}", (Value(1, Unit.COUNT),))
    return CheckedBudget(metric, outcome, effect, value, Unit.COUNT, None, limit, why, place)


def trace(
    path: str, *rows: CheckedBudget, remarks: tuple[Remark, ...] = (), explain: str = ""
) -> CheckedTrace:
    """A trace as bad as its worst row."""
    found = [*rows, *remarks]
    order, gravity = list(Outcome), (Effect.NONE, Effect.OPEN, Effect.FAILS)
    outcome = max((one.outcome for one in found), key=order.index, default=Outcome.PASS)
    effect = max((one.effect for one in found), key=gravity.index, default=Effect.NONE)
    return CheckedTrace(path, outcome, effect, "origin/main (3f2c1aa)", rows, remarks, explain)


def checked(
    *traces: CheckedTrace,
    base: str = "origin/main (3f2c1aa)",
    notes: tuple[Sentence, ...] = (),
    remarks: tuple[Remark, ...] = (),
) -> Checked:
    """A run."""
    return Checked(TOML, base, traces, notes, remarks)


def failing(path: str, line: int = 17) -> CheckedTrace:
    """A trace with one budget broken."""
    return trace(path, row("host_syncs", Outcome.FAIL, Effect.FAILS, line=line))


def every_kind() -> Checked:
    """One trace for each way in which a budget or a remark can end."""
    ends = [(outcome, effect) for outcome in Outcome for effect in Effect]
    traces = [trace(f"traces/{o}-{e}.json.gz", row(f"metric_{o}", o, e, line=3)) for o, e in ends]
    said = [
        trace(f"traces/said-{o}-{e}.json.gz", row(), remarks=(Remark("SC900", o, e, Sentence("it is so")),))
        for o, e in ends
    ]
    return checked(*traces, *said)


def hostile() -> Checked:
    """Every string that wants something, in every place that a repository or a trace can fill."""
    traces = [
        CheckedTrace(
            name,
            Outcome.FAIL,
            Effect.FAILS,
            name,
            (
                CheckedBudget(
                    name, Outcome.FAIL, Effect.FAILS, 2, Unit.COUNT, 1, Sentence("at most {}", (Value(name, Unit.NAME),)),
                    Sentence("{} waits", (Value(name, Unit.NAME),)), Place(name, 1),
                ),
                row(),
            ),
            (Remark(name, Outcome.STALE, Effect.NONE, Sentence("{}", (Value(name, Unit.TEXT),))),),
            name,
        )
        for name in NAMES
    ]  # fmt: skip
    said = tuple(
        Remark(name, Outcome.STALE, Effect.NONE, Sentence("{}", (Value(name, Unit.TEXT),))) for name in NAMES
    )
    return Checked(NAMES[0], NAMES[1], tuple(traces), (Sentence("{}", (Value(NAMES[2], Unit.TEXT),)),), said)
