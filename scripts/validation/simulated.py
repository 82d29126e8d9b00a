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
from stepcrit.graph.change import Options, parse_change
from stepcrit.graph.replay import replayer
from stepcrit.model.steps import Boundary
from stepcrit.session import Trace, load
from validation.row import Outcome

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
    """One random job with one random change."""

    scenario: str
    seed: int
    rank: int
    asked: Asked
    program: Program

    @property
    def name(self) -> str:
        """What identifies it in a list."""
        return (
            f"{self.scenario} seed {self.seed} rank {self.rank}: --{self.asked.operation} {self.asked.text}"
        )


def jobs(scenario: str, count: int = JOBS_PER_FAMILY) -> Iterator[Job]:
    """Random jobs of one family; the same on every machine."""
    for seed in range(count):
        rng = Random(f"{scenario}/{seed}")
        one: Scenario = SCENARIOS[scenario]
        program = one.program(one.draw(rng), seed)
        asked = rng.choice(_changes(one, rng))
        yield Job(scenario, seed, rng.randrange(len(program.ranks)), asked, program)


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
    answer = whatif.analyze(view, [parse_change(job.asked.operation, job.asked.text)], job.asked.options)
    low, high = answer.predicted_ns
    last = replay.closing_index
    truth_ns = _truth(job, trace, last - replay.period_count, last)
    changed = sum(s.device_count + s.host_count for s in answer.applied.selections)
    # The simulator rounds before it draws a duration's luck, stepcrit after: up to 2 ns an activity.
    return Outcome(job.name, low, high, truth_ns, rounding_ns=1 + 2 * changed // len(trace.steps.all))


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
