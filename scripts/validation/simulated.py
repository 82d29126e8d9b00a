"""Predictions against the simulator: random jobs, each with a random change really made."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

from simulator import kineto, truth
from simulator.change import Change as Made
from simulator.engine import simulate
from simulator.program import Program
from simulator.scenarios import SCENARIOS, Scenario

from stepcrit.analyses import whatif
from stepcrit.analyses.whatif import Question
from stepcrit.graph.change import Options, parse_change
from stepcrit.graph.replay import replayer
from stepcrit.model.steps import Boundary
from stepcrit.session import Trace, load

from .row import Outcome, Row, row_of

JOBS_PER_FAMILY = 60
PERCENTS = (0, 25, 50, 75, 90, 120, 150)
DATA_PERCENTS = (25, 50, 75)


@dataclass(frozen=True, slots=True)
class Asked:
    """A change in the simulator's terms and in the user's."""

    made: Made
    operation: str
    text: str
    options: Options


@dataclass(frozen=True, slots=True)
class Job:
    """One random job with one random change, seen by one of its ranks."""

    scenario: str
    seed: int
    rank: int
    asked: Asked
    program: Program
    slower: bool

    @property
    def name(self) -> str:
        """What identifies it in a list."""
        return (
            f"{self.scenario} seed {self.seed} rank {self.rank}: --{self.asked.operation} {self.asked.text}"
        )

    @property
    def family(self) -> str:
        """Its line of the table: whether others wait for a rank decides what its trace can tell."""
        if len(self.program.ranks) == 1:
            return self.scenario
        return (
            f"{self.scenario}, the rank waited for" if self.slower else f"{self.scenario}, a rank that waits"
        )


def rows(count: int = JOBS_PER_FAMILY) -> list[Row]:
    """Every family's row, and one for all."""
    every: dict[str, list[Outcome]] = {}
    unsteady = 0
    for scenario in SCENARIOS:
        for job in jobs(scenario, count):
            found = outcome(job)
            unsteady += found is None
            every.setdefault(job.family, []).extend([found] if found else [])
    table = [row_of(PART, family, found, NOTES.get(family, "")) for family, found in every.items() if found]
    note = f"{unsteady} more jobs have no steady steps to compare" if unsteady else ""
    for name, left_out in (("all", ""), ("all but ranks that wait", WAITING)):
        some = [one for family, found in every.items() if family != left_out for one in found]
        table.append(row_of(PART, name, some, note))
    return table


PART = "simulated"
LONGER = {"grad_accumulation": {"steps": 15}}
"""Scenarios whose usual run holds too few steps to be steady: several microbatches are one update."""

WAITING = "ddp_tail, a rank that waits"
NOTES = {
    WAITING: "said on screen: what a change does on other ranks is not in one rank's trace",
    "two_streams": "said on screen: waits that delayed nothing are not in a trace without sync records",
    "dataloader_bound": "said on screen: how far workers are ahead is not in a trace, which makes it an interval",
    "full_queue": "said on screen: the depth of a queue that never filled is not in a trace",
}
"""Where the model is known not to hold, and that the answer says so."""


def jobs(scenario: str, count: int = JOBS_PER_FAMILY) -> Iterator[Job]:
    """Random jobs of one family; the same on every machine."""
    for seed in range(count):
        rng = Random(f"{scenario}/{seed}")
        one: Scenario = SCENARIOS[scenario]
        params = {**one.draw(rng), **LONGER.get(scenario, {})}
        program = one.program(params, seed)
        asked = rng.choice(_changes(one, rng))
        rank = rng.randrange(len(program.ranks))
        slower = (rank == 0) == (params.get("skew_percent", 0) < 0)
        yield Job(scenario, seed, rank, asked, program, slower)


def _changes(scenario: Scenario, rng: Random) -> list[Asked]:
    """Every kind of change that the family knows, each by a random amount."""
    asked = []
    for made in scenario.changes:
        percent = rng.choice(DATA_PERCENTS if made.what == "data" else PERCENTS)
        one = made if made.what.startswith("remove") else replace(made, percent=percent)
        asked.append(_as_asked(one))
    return asked


def _as_asked(made: Made) -> Asked:
    """How a user says it."""
    if made.what in SELECTORS:
        operation, selector, options = SELECTORS[made.what]
    else:
        operation, selector, options = "shrink", made.name, OWN.get(made.what, Options())
    selector = selector or made.name
    text = selector if operation == "remove" else f"{selector}={made.percent / 100:g}"
    return Asked(made, operation, text, options)


OWN = {
    "host": Options(side="host", self_only=True),
    "op": Options(side="both", self_only=True),
}
"""Changes of an operator's own time, without what is nested in it."""

SELECTORS = {
    "transfer": ("shrink", "class:comm", Options()),
    "data": ("shrink", "class:input", Options()),
    "remove_op": ("remove", "", Options(side="both")),
    "remove_sync": ("remove", "class:sync", Options()),
}
"""Changes that are not said by a name and a factor."""


def outcome(job: Job) -> Outcome | None:
    """Prediction from the trace before, and the mean period of the same steps after; None without steady steps."""
    trace = trace_of(job)
    view = trace.view()
    replay = replayer(view)
    if not replay.period_count:
        return None
    change = parse_change(job.asked.operation, job.asked.text)
    answer = whatif.analyze(view, Question((change,), job.asked.options))
    low, high = answer.predicted_ns
    last = replay.closing_index
    return Outcome(job.name, low, high, _truth(job, trace, last - replay.period_count, last))


def trace_of(job: Job) -> Trace:
    """What the profiler of one rank recorded of the unchanged job."""
    return load(io.BytesIO(kineto.write(simulate(job.program), job.rank).text.encode()))


def _truth(job: Job, trace: Trace, first: int, last: int) -> int:
    """The mean period from one step's boundary to another's, after the change was really made."""
    rows = truth.outcome(job.program, job.asked.made)[job.rank]
    if trace.steps.boundary == Boundary.UPDATE:
        ends = [row["update_end_ns"] for row in rows if row["update_end_ns"] is not None]
    else:
        ends = [row["device_end_ns"] for row in rows]
    return int(ends[last] - ends[first]) // (last - first)
