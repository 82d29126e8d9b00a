"""What `stepcrit check` found: a verdict for each budget of each trace, before anything is shown.

The screen, JSON, JUnit and the notes for GitHub are all written from these.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct, field

from stepcrit.model.section import Input, Sentence, Unit


class Outcome(StrEnum):
    """What became of one budget, or of a whole trace."""

    PASS = "pass"  # noqa: S105 - a verdict, no password
    IMPROVED = "improved"  # better than the budget or baseline by more than the tolerance
    NEW = "new"  # no baseline yet: budgets alone apply
    WARN = "warn"
    STALE = "stale"  # code that the trace is about is newer than it
    UNKNOWN = "unknown"  # the trace lacks what the metric needs
    INCONCLUSIVE = "inconclusive"  # partial, not comparable, or within the noise of too few steps
    FAIL = "fail"


class Effect(StrEnum):
    """What an outcome does to the exit code."""

    NONE = "none"  # exit 0
    FAILS = "fails"  # exit 1
    OPEN = "open"  # exit 4: neither passed nor failed


Number: TypeAlias = int | float


class Place(Struct, frozen=True):
    """A line of the configuration: what a reader opens to change a budget."""

    path: str
    line: int


class CheckedBudget(Struct, frozen=True):
    """One metric of one trace against its budget.

    Attributes:
        metric: as the configuration names it ("exposed_comm", "critical{class=launch}").
        outcome: the verdict of the row.
        effect: what it does to the exit code.
        value: of the trace, in `unit` (times in ns, sizes in bytes, shares 0..1); None: not known.
        unit: how value and base are to be read.
        base: of the baseline; None without one, or where it is not known there.
        limit: what was allowed, in words: "at most {}", "+{} and +{}".
        why: what decided, or why nothing could be; None where value and limit say it all.
        place: where the budget is written; None for one of a preset.
    """

    metric: str
    outcome: Outcome
    effect: Effect
    value: Number | None
    unit: Unit
    base: Number | None
    limit: Sentence
    why: Sentence | None = None
    place: Place | None = None


class CheckedTrace(Struct, frozen=True):
    """One trace against its budgets.

    Attributes:
        path: as the repository names it, with "/".
        outcome: the worst of its rows and remarks.
        effect: likewise.
        baseline: what it was compared with ("origin/main (3f2c1aa)"), or "".
        rows: one per budget, worst first.
        remarks: what holds of the trace as a whole: stale, new, not comparable, damaged, too large. Each has its
            stable code, its outcome and its effect.
        explain: the command that explains a difference, or "".
        inputs: the files that were read, for the JSON envelope.
    """

    path: str
    outcome: Outcome
    effect: Effect
    baseline: str
    rows: tuple[CheckedBudget, ...]
    remarks: tuple[Remark, ...] = ()
    explain: str = ""
    inputs: tuple[Input, ...] = ()


class Remark(Struct, frozen=True):
    """Something about a trace as a whole."""

    code: str
    outcome: Outcome
    effect: Effect
    what: Sentence
    place: Place | None = None


class Tightened(Struct, frozen=True):
    """A limit of the configuration that was lowered to what was found.

    Attributes:
        path, line: where it stands.
        metric: of the budget.
        limit: "max" or "min".
        old, new: as written.
    """

    path: str
    line: int
    metric: str
    limit: str
    old: str
    new: str


class Checked(Struct, frozen=True):
    """A whole run of `check`.

    Attributes:
        config: where the rules came from ("stepcrit.toml", "origin/main:stepcrit.toml").
        base: the baseline as named ("origin/main"), or "".
        traces: worst first.
        notes: what a reader should know, without a verdict.
        remarks: what holds of the run as a whole and has a verdict: the rules are this tree's own, a trace was
            deleted.
        tightened: limits that `--tighten` rewrote.
    """

    config: str
    base: str
    traces: tuple[CheckedTrace, ...]
    notes: tuple[Sentence, ...] = field(default=())
    remarks: tuple[Remark, ...] = ()
    tightened: tuple[Tightened, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 nothing wrong, 1 a budget failed, 4 something could not be judged and nothing failed."""
        effects = {trace.effect for trace in self.traces} | {remark.effect for remark in self.remarks}
        if Effect.FAILS in effects:
            return 1
        return 4 if Effect.OPEN in effects else 0
