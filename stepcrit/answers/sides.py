"""One side of a comparison: its runs, each understood by itself, and what of them is set against the other side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from statistics import median

from msgspec import Struct
from msgspec.structs import replace

from stepcrit.analyses import idle, overlap, peakmemory, stepcost
from stepcrit.analyses.balance import Spent
from stepcrit.analyses.fingerprint import Fingerprint, counted_steps, fingerprint
from stepcrit.analyses.stepcost import StepCost
from stepcrit.graph.pathkeys import PathKey
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.link.presence import presence
from stepcrit.model.classes import WorkClass
from stepcrit.model.steps import Step

ENOUGH_RUNS = 3
"""From so many runs a side on, runs are compared and not steps (methods M.2)."""

IDLE_STEPS = 5
"""Of more steps so many, evenly spread, are asked why the device is idle."""


class Run(Struct, frozen=True, eq=False, dict=True):
    """One recording.

    Attributes:
        view: its representative step.
        label: what it is called; its file's name where that is "".
    """

    view: StepGraph
    label: str = ""

    @property
    def name(self) -> str:
        """What it is called."""
        return self.label or self.view.trace.meta.source

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The steps that count."""
        return counted_steps(self.view.steps)

    @cached_property
    def is_steady(self) -> bool:
        """Whether these are periods of a steady state."""
        steady = self.view.steps.steady
        return (
            steady is not None and steady.first is not None and all(s.opens_at_boundary for s in self.steps)
        )

    @cached_property
    def periods_ns(self) -> list[int]:
        """Elapsed times of the steps that count, in time order."""
        return [step.elapsed_ns for step in self.steps]

    @cached_property
    def fingerprint(self) -> Fingerprint:
        """What must be equal."""
        return fingerprint(self.view.trace, self.view.links, self.view.steps)

    @cached_property
    def cost(self) -> StepCost:
        """Its steps by key."""
        return stepcost.analyze(self.view, self.steps)

    @cached_property
    def device_known(self) -> bool:
        """Whether no device work means zero."""
        return presence(self.view.trace, self.view.links).device_known

    @cached_property
    def times_ns(self) -> dict[str, Fraction] | None:
        """What the busiest device does in a step, on average; None where that was not recorded."""
        if not self.device_known:
            return None
        events, work, found = self.view.trace.events, self.view.links.work, Counter[str]()
        for step in self.steps:
            devices = overlap.analyze(events, work, (step.start_ns, step.end_ns))
            if devices:
                one = devices[0]
                found.update({"busy": one.busy_ns, **one.partition_ns, "comm covered": one.covered_ns})
        return {name: Fraction(ns, len(self.steps)) for name, ns in found.items()}

    @cached_property
    def idle_ns(self) -> dict[str, Fraction] | None:
        """Why the busiest device is idle in a step, on average; None where that was not recorded."""
        if not self.device_known:
            return None
        every = max(1, -(-len(self.steps) // IDLE_STEPS))
        chosen, found = self.steps[::every], Counter[str]()
        for step in chosen:
            devices = overlap.analyze(
                self.view.trace.events, self.view.links.work, (step.start_ns, step.end_ns)
            )
            if devices:
                found.update(idle.analyze(replace(self.view, step=step), devices[0].device).by_cause_ns)
        return {cause: Fraction(ns, len(chosen)) for cause, ns in found.items()}

    @cached_property
    def peak_bytes(self) -> Mapping[peakmemory.Device, int]:
        """The most that was allocated in any of the steps, by (0: the host, 1: a device) and number; none if not recorded."""
        windows = [(s.start_ns, s.end_ns) for s in self.steps]
        peaks = peakmemory.analyze(self.view.trace.memory, windows)
        found: dict[peakmemory.Device, int] = {}
        for (kind, number), several in peaks.items():
            device = (min(kind, 1), number)  # platforms number their kinds of device differently
            for peak in several:
                if peak is not None:
                    found[device] = max(found.get(device, 0), peak)
        return found


class Side(Struct, frozen=True, eq=False, dict=True):
    """All recordings of one side.

    Attributes:
        runs: at least one.
    """

    runs: tuple[Run, ...]

    @property
    def first(self) -> Run:
        """The run that stands for the others where only one can be looked at."""
        return self.runs[0]

    @property
    def digests(self) -> tuple[str, ...]:
        """Of its files, sorted."""
        return tuple(sorted(run.view.trace.meta.sha256 for run in self.runs))

    @cached_property
    def periods_ns(self) -> list[int]:
        """The periods of all runs."""
        return [ns for run in self.runs for ns in run.periods_ns]

    @property
    def is_steady(self) -> bool:
        """Whether every run has a steady state."""
        return all(run.is_steady for run in self.runs)

    @property
    def run_medians_ns(self) -> list[float]:
        """The median period of each run."""
        return [float(median(run.periods_ns)) for run in self.runs]

    @cached_property
    def spent(self) -> Spent[PathKey]:
        """The steps of all runs, by key."""
        own: dict[PathKey, tuple[int, int]] = {}
        for run in self.runs:
            for key, one in run.cost.own.items():
                total, calls = own.get(key, (0, 0))
                own[key] = (total + one.total_ns, calls + one.calls)
        return Spent([run.cost.path_ns for run in self.runs], own)

    @cached_property
    def by_class(self) -> Spent[WorkClass]:
        """The steps of all runs, by class."""
        return Spent([run.cost.class_ns for run in self.runs], {})

    @cached_property
    def kernels(self) -> dict[PathKey, Counter[str]]:
        """Device time of each kernel under an operator's key."""
        found: dict[PathKey, Counter[str]] = {}
        for run in self.runs:
            for key, kernels in run.cost.kernels.items():
                found.setdefault(key, Counter()).update(kernels)
        return found

    @cached_property
    def waits(self) -> Counter[PathKey]:
        """How often each call waited for the device, over all steps of all runs."""
        found: Counter[PathKey] = Counter()
        for run in self.runs:
            found.update(run.cost.waits)
        return found

    @cached_property
    def times_ns(self) -> dict[str, int] | None:
        """As `Run.times_ns`, the mean of the runs."""
        return mean_of([run.times_ns for run in self.runs])

    @cached_property
    def idle_ns(self) -> dict[str, int] | None:
        """As `Run.idle_ns`, the mean of the runs."""
        return mean_of([run.idle_ns for run in self.runs])

    @cached_property
    def peak_bytes(self) -> dict[peakmemory.Device, int]:
        """As `Run.peak_bytes`, the most of any run."""
        found: dict[peakmemory.Device, int] = {}
        for run in self.runs:
            for device, peak in run.peak_bytes.items():
                found[device] = max(found.get(device, 0), peak)
        return found


def mean_of(several: Sequence[Mapping[str, Fraction] | None]) -> dict[str, int] | None:
    """The mean of each entry over the runs, in whole ns; None where a run has none."""
    known = [one for one in several if one is not None]
    if len(known) < len(several):
        return None
    names = dict.fromkeys(name for one in known for name in one)
    return {
        name: round(sum((one.get(name, Fraction(0)) for one in known), Fraction(0)) / len(known))
        for name in names
    }
