"""Which rule applies to which metric of which trace: presets, laid over by the budgets of the configuration."""

from __future__ import annotations

import fnmatch
from fractions import Fraction

from msgspec.structs import replace

from stepcrit.answers.judge import Rule
from stepcrit.answers.metric import Metric, UnknownMetricError
from stepcrit.answers.metrics import STRUCTURE, metric
from stepcrit.errors import ConfigError
from stepcrit.model.checked import Number
from stepcrit.model.config import Amount, Budget, Config, Kind, Level, Preset
from stepcrit.model.section import Unit

PRESET_GROW = 0.05
PRESET_OF_STEP = Fraction(1, 100)
"""Times of the preset may grow by 5 %, and by 1 % of the step."""

PRESET_COUNTS = tuple(name for name in STRUCTURE if name not in ("streams", "peak_memory"))
"""Counts that may not grow; more streams cost nothing by themselves, and memory costs nothing until it is gone."""

PRESET_TIMES = ("step_time", "gpu_busy", "exposed_comm")


def check_metrics(config: Config) -> None:
    """Refuse budgets of no metric, or with limits that do not fit; before any trace is read.

    Raises:
        ConfigError: with the line.
    """
    for budget in config.budgets:
        _rule(budget)


def rules_for(config: Config, path: str) -> list[Rule]:
    """Every rule for one trace; a later budget takes the place of an earlier one of the same metric."""
    found = {rule.metric.name: rule for rule in preset_rules(config.preset)}
    for budget in config.budgets:
        if fnmatch.fnmatchcase(path, budget.glob.removeprefix("./")):
            rule = _rule(budget)
            usual = next(
                (one for one in preset_rules(config.preset) if one.metric.name == rule.metric.name), None
            )
            if usual is not None and not rule.is_about_growth:
                rule = replace(rule, grow=usual.grow, of_step=usual.of_step)
            found[rule.metric.name] = rule
    return [rule for rule in found.values() if rule.level != Level.OFF]


def preset_rules(preset: Preset) -> list[Rule]:
    """What a preset watches."""
    if preset == Preset.NONE:
        return []
    counts = [Rule(metric(name), grow=0) for name in PRESET_COUNTS]
    if preset == Preset.STRUCTURE:
        return counts
    return counts + [Rule(metric(name), grow=PRESET_GROW, of_step=PRESET_OF_STEP) for name in PRESET_TIMES]


def _rule(budget: Budget) -> Rule:
    """A budget as a rule.

    Raises:
        ConfigError: no such metric, or a limit that does not fit it.
    """
    try:
        found = metric(budget.metric)
    except UnknownMetricError as error:
        raise ConfigError(str(error), where=_where(budget), do=error.do) from error
    return Rule(
        found,
        _fitting(budget, found, budget.max),
        _fitting(budget, found, budget.min),
        None if budget.grow is None else budget.grow.number,
        _fitting(budget, found, budget.grow_abs),
        level=budget.level,
        place=budget.place,
    )


def _fitting(budget: Budget, found: Metric, amount: Amount | None) -> Number | None:
    """The number of a limit in the metric's unit."""
    if amount is None:
        return None
    if not found.fits(amount):
        raise ConfigError(
            f"{budget.metric} is {found.takes}, and {amount.words} is {amount.kind}",
            where=_where(budget),
            do='write it with a unit that fits: "420 ms", "64 MiB", "5 %"; counts are bare numbers',
        )
    if (
        found.unit == Unit.SHARE and amount.kind == Kind.PLAIN and amount.number > 1
    ):  # it would never be broken
        raise ConfigError(
            f"{budget.metric} is a share, and {amount.words} is over 1",
            where=_where(budget),
            do=f'write "{amount.words} %", or {amount.number / 100:g}',
        )
    return amount.number


def _where(budget: Budget) -> str:
    return f"{budget.place.path}:{budget.place.line}"
