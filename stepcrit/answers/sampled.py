"""One trace as a budget sees it: the steps that are judged, and the steady ones that tell what repeats and what scatters."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from statistics import median

from msgspec import Struct

from stepcrit.analyses import elapsed
from stepcrit.analyses.fingerprint import Fingerprint, fingerprint
from stepcrit.answers.measured import Measured
from stepcrit.answers.metric import Metric
from stepcrit.errors import UsageError, quoted
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.link.stepcounts import StepCounts
from stepcrit.model.checked import Number
from stepcrit.model.links import Links
from stepcrit.model.reading import Reading
from stepcrit.model.steps import Step, Steps
from stepcrit.model.trace import RawTrace

MOST_STEPS = 12
"""So many steady steps are looked at for what repeats and what scatters, spread over all of them."""

ENOUGH = 3
"""Fewer steps do not tell how much a time scatters."""

TO_SIGMA = 1.4826
"""The median absolute deviation times this is the standard deviation, where errors are normal."""

TO_SIGMA_OF_MEAN = 1.2533
"""The same of the mean absolute deviation: where most values are equal, their median deviation is 0."""


class Scatter(Struct, frozen=True):
    """How much a metric differs between the steady steps.

    Attributes:
        sigma: a robust standard deviation, in the metric's unit; None of fewer than ENOUGH steps.
        count: of how many steps.
    """

    sigma: float | None
    count: int


class Sampled:
    """One trace, with its numbers computed when they are asked for."""

    def __init__(
        self,
        raw: RawTrace,
        links: Links,
        steps: Steps,
        view: Callable[[Step], StepGraph],
        which: str = "median",
    ) -> None:
        """Choose the steps.

        Args:
            raw: the trace as read.
            links: its links.
            steps: its steps.
            view: the schedule graph from one step.
            which: "median", "worst", "all", a step's number, or a range of them.

        Raises:
            UsageError: no step has such a number.
        """
        self.raw = raw
        self.links = links
        self.steps = steps
        self._view = view
        self._which = which
        self._counter = StepCounts(raw, links)
        self._made: dict[int, Measured] = {}
        self.chosen = self._choose(which)

    @cached_property
    def steady(self) -> tuple[Step, ...]:
        """Steady steps, at most MOST_STEPS of them; without any, those that are judged."""
        used = [s for s in self.steps if s.used and s.opens_at_boundary] or list(self.chosen)
        if len(used) <= MOST_STEPS:
            return tuple(used)
        at = {round(i * (len(used) - 1) / (MOST_STEPS - 1)) for i in range(MOST_STEPS)}
        return tuple(used[i] for i in sorted(at))

    @cached_property
    def fingerprint(self) -> Fingerprint:
        """What must be equal in another recording for the two to be compared."""
        return fingerprint(self.raw, self.links, self.steps)

    def unfed(self, base: Sampled) -> frozenset[str]:
        """Operators that run here, launched device work in the baseline, and launch none here."""
        now, then = self._counter, base._counter
        fed = frozenset().union(*(then.device_kinds(step) for step in base.chosen))
        still = frozenset().union(*(now.device_kinds(step) for step in self.chosen))
        run = frozenset().union(*(now.host_kinds(step) for step in self.chosen))
        return (fed - still) & run

    def measured(self, step: Step) -> Measured:
        """One step with its numbers."""
        if step.index not in self._made:
            self._made[step.index] = Measured(self._view(step), self._counter)
        return self._made[step.index]

    def value(self, metric: Metric, *, highest: bool = True) -> Reading:
        """The metric over the steps that are judged: of several, the highest or the lowest.

        The step time of "median" is the median of the steady periods, as `analyze` shows it.
        """
        if metric.name == "step_time" and self._which == "median":
            middle = elapsed.analyze(self.steps).median_ns
            if middle is not None:
                return Reading(round(middle))
        found = [metric.read(self.measured(step)) for step in self.chosen]
        missing = next((one for one in found if one.value is None), None)
        if missing is not None:
            return missing
        known = [one.value for one in found if one.value is not None]
        return Reading(max(known) if highest else min(known))

    def repeats(self, metric: Metric) -> bool:
        """Whether the metric is the same number in all steady steps."""
        return len(set(self._values(metric))) <= 1

    def scatter(self, metric: Metric) -> Scatter:
        """How much it differs between them."""
        values = self._values(metric)
        if len(values) < ENOUGH:
            return Scatter(None, len(values))
        middle = median(values)
        away = [abs(value - middle) for value in values]
        sigma = TO_SIGMA * median(away) or TO_SIGMA_OF_MEAN * sum(away) / len(away)
        return Scatter(sigma, len(values))

    def _values(self, metric: Metric) -> list[Number]:
        found = [metric.read(self.measured(step)).value for step in self.steady]
        return [value for value in found if value is not None]

    def _choose(self, which: str) -> tuple[Step, ...]:
        """The steps that are judged."""
        used = [step for step in self.steps if step.used and step.elapsed_ns]
        if which == "median" or not used:
            return (self.steps.median(),)
        if which == "all":
            return tuple(used)
        if which == "worst":
            return (max(used, key=lambda step: (step.elapsed_ns, -step.index)),)
        low, _, high = which.partition("-")
        wanted = range(int(low), int(high or low) + 1)
        found = tuple(step for step in self.steps if step.elapsed_ns and _number(step) in wanted)
        if not found:
            have = ", ".join(step.label for step in self.steps.all[:8])
            raise UsageError(f"no step {quoted(which)} in this trace", do=f"there are {have}")
        return found


def _number(step: Step) -> int:
    """The number in a step's label, -1 without one."""
    digits = step.label.rpartition("#")[2].rpartition(" ")[2]
    return int(digits) if digits.isdecimal() and len(digits) < 10 else -1
