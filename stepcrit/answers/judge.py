"""One budget of one trace: what the number is, what it was, what was allowed, and what follows.

A limit (`max`, `min`) is about the trace alone and exact. A growth is about two recordings: counts that repeat in
every steady step are compared exactly; anything else has to pass the relative and the absolute limit and three
times its own scatter before it fails.
"""

from __future__ import annotations

from fractions import Fraction

from msgspec import Struct
from msgspec.structs import replace

from stepcrit.answers.metric import Metric, UnknownMetricError
from stepcrit.answers.metrics import metric
from stepcrit.answers.sampled import Sampled
from stepcrit.answers.words import count, say, text
from stepcrit.errors import ConfigError
from stepcrit.model.checked import CheckedBudget, Effect, Number, Outcome, Place
from stepcrit.model.config import Level, Manner
from stepcrit.model.section import Sentence, Unit, Value
from stepcrit.units import bytes_text, count_text, ns_text, share_text

SIGMAS = 3
"""A growth within so many standard deviations of the steps is none that is known."""

UNSEEN = Fraction(1, 10)
"""Of too few steps to tell, times are taken to scatter by this share: with SIGMAS, what grows by less than 30 % is
not told from noise. (Steady steps of 9 public traces scatter by 0.1 to 6 %, half of them by 1 % or less; where no
state is steady, by up to 18 %.)"""

WORST_FIRST = (
    Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.UNKNOWN, Outcome.STALE, Outcome.WARN, Outcome.IMPROVED, Outcome.NEW,
    Outcome.PASS,
)  # fmt: skip
GRAVEST = (Effect.FAILS, Effect.OPEN, Effect.NONE)


class Rule(Struct, frozen=True):
    """What applies to one metric of one trace.

    Attributes:
        metric: the metric.
        max, min: limits of the trace alone, in the metric's unit.
        grow: allowed relative growth over the baseline; None: growth is not judged.
        grow_abs: allowed absolute growth; None with `grow`: none is asked beside it.
        of_step: the absolute growth as a share of the baseline's step time, instead of `grow_abs`.
        level: what happens where it is passed.
        place: where it is written; None of a preset.
    """

    metric: Metric
    max: Number | None = None
    min: Number | None = None
    grow: Number | None = None
    grow_abs: Number | None = None
    of_step: Fraction | None = None
    level: Level = Level.ERROR
    place: Place | None = None

    @property
    def is_about_growth(self) -> bool:
        """Whether it needs a baseline."""
        return self.grow is not None or self.grow_abs is not None


class Relation(Struct, frozen=True):
    """How a trace stands to its baseline.

    Attributes:
        same_bytes: they are the same file.
        same_setting: recorded alike, on the same machine, of the same job.
        same_work: doing the same in a step.
        manner: what is done where they cannot be compared.
    """

    same_bytes: bool = False
    same_setting: bool = True
    same_work: bool = True
    manner: Manner = Manner.ERROR

    def excludes(self, *, is_exact: bool) -> bool:
        """Whether a growth cannot be judged: counts of other work can, for they are what differs."""
        return not self.same_setting or not (self.same_work or is_exact)


class _Growth(Struct, frozen=True):
    """What became of a metric."""

    outcome: Outcome
    why: Sentence | None = None


def judged(rule: Rule, now: Sampled, base: Sampled | None, relation: Relation) -> CheckedBudget | None:
    """The verdict; None where a rule of a preset has nothing to say of this trace.

    Raises:
        ConfigError: the metric names a key that no trace has.
    """
    try:
        return _judged(rule, now, base, relation)
    except UnknownMetricError as error:
        where = f"{rule.place.path}:{rule.place.line}" if rule.place else ""
        raise ConfigError(str(error), where=where, do=error.do) from error


def _judged(rule: Rule, now: Sampled, base: Sampled | None, relation: Relation) -> CheckedBudget | None:
    """As `judged`."""
    highest = _looks_high(rule, now)
    value = now.value(rule.metric, highest=highest)
    then = base.value(rule.metric, highest=highest) if base else None
    growth_only = rule.max is None and rule.min is None
    if base is None and growth_only:
        return None
    if rule.place is None and value.value is None and (then is None or then.value is None):
        return None
    row = CheckedBudget(
        rule.metric.name,
        Outcome.PASS,
        Effect.NONE,
        value.value,
        rule.metric.unit,
        then.value if then else None,
        _limit(rule, base),
        place=rule.place,
    )
    if value.value is None:
        return _with(row, rule, _Growth(Outcome.UNKNOWN, say("{}", text(value.why))))
    broken = _broken(rule, value.value)
    if broken is not None:
        return _with(row, rule, _Growth(Outcome.FAIL, broken))
    if base is None or then is None or not rule.is_about_growth:
        return row
    return _with(row, rule, _growth(rule, now, base, relation))


def _looks_high(rule: Rule, now: Sampled) -> bool:
    """Whether of several steps the highest is judged; under two limits the end that breaks its own."""
    if rule.max is None:
        return rule.min is None and not rule.metric.more_is_better
    highest = now.value(rule.metric, highest=True).value
    return rule.min is None or (highest is not None and highest > rule.max)


def worst(outcomes: list[tuple[Effect, Outcome]]) -> tuple[Effect, Outcome]:
    """The gravest effect, and the worst outcome that has it."""
    return min(
        outcomes,
        key=lambda one: (GRAVEST.index(one[0]), WORST_FIRST.index(one[1])),
        default=(Effect.NONE, Outcome.PASS),
    )


def sort_key(row: CheckedBudget) -> tuple[int, int]:
    """Worst first."""
    return GRAVEST.index(row.effect), WORST_FIRST.index(row.outcome)


def _with(row: CheckedBudget, rule: Rule, growth: _Growth) -> CheckedBudget:
    """The row with an outcome, as its level has it."""
    outcome, is_warning = growth.outcome, rule.level == Level.WARN
    effect = {
        Outcome.FAIL: Effect.FAILS,
        Outcome.INCONCLUSIVE: Effect.OPEN,
        Outcome.UNKNOWN: Effect.OPEN,
    }.get(outcome, Effect.NONE)
    if is_warning:
        effect = Effect.NONE
        outcome = Outcome.WARN if outcome == Outcome.FAIL else outcome
    return replace(row, outcome=outcome, effect=effect, why=growth.why)


def _broken(rule: Rule, value: Number) -> Sentence | None:
    """By how much a limit of the trace alone is passed: rounded, value and limit may look alike."""
    if rule.max is not None and value > rule.max:
        size, words = _exact(value) - _exact(rule.max), "{} more than is allowed"
    elif rule.min is not None and value < rule.min:
        size, words = _exact(rule.min) - _exact(value), "{} less than has to be"
    else:
        return None
    return say(words, text(_amount(rule.metric.unit, size)))


def _growth(rule: Rule, now: Sampled, base: Sampled, relation: Relation) -> _Growth:
    """Compare with the baseline."""
    highest = not rule.metric.more_is_better  # growth is judged at its own worst, whatever limits there are
    value, then = now.value(rule.metric, highest=highest), base.value(rule.metric, highest=highest)
    if relation.same_bytes:
        return _Growth(Outcome.PASS, say("the same bytes as the baseline: nothing can have changed"))
    if then.value is None or value.value is None:
        return _Growth(Outcome.INCONCLUSIVE, say("not known of the baseline: {}", text(then.why)))
    is_exact = rule.metric.is_count and now.repeats(rule.metric) and base.repeats(rule.metric)
    if relation.excludes(is_exact=is_exact) and relation.manner != Manner.WARN:
        skipped = relation.manner == Manner.SKIP
        return _Growth(
            Outcome.PASS if skipped else Outcome.INCONCLUSIVE,
            say(
                "growth was left out: the traces cannot be compared"
                if skipped
                else "the traces cannot be compared"
            ),
        )
    delta = Fraction(value.value) - Fraction(then.value)
    allowed = _allowed(rule, base, Fraction(then.value))
    return _compared(rule, (now, base), delta, (allowed, Fraction(then.value)), is_exact=is_exact)


def _compared(
    rule: Rule,
    sides: tuple[Sampled, Sampled],
    delta: Fraction,
    of: tuple[Fraction, Fraction],
    *,
    is_exact: bool,
) -> _Growth:
    """A change against what is allowed and what scatter explains."""
    allowed, before = of
    worse = -delta if rule.metric.more_is_better else delta
    if is_exact:
        steps = min(side.scatter(rule.metric).count for side in sides)
        repeats = (
            "the same in every steady step" if steps > 1 else "of one step: whether it repeats is not known"
        )
        told = say(f"{{}}, {repeats}", _change(rule.metric.unit, delta))
        if worse > allowed:
            return _Growth(Outcome.FAIL, told)
        return _Growth(Outcome.IMPROVED if -worse > allowed else Outcome.PASS, told if delta else None)
    noise, words = _noise(rule.metric, sides, before)
    told = Sentence(f"{{}} ({{}}){'; varies between steps' if rule.metric.is_count else ''}; {words.template}", (
        _change(rule.metric.unit, delta), _relative(delta, before), *words.values,
    ))  # fmt: skip
    is_sure = abs(delta) > SIGMAS * noise
    if worse > allowed:
        return _Growth(Outcome.FAIL if is_sure else Outcome.INCONCLUSIVE, told)
    return _Growth(Outcome.IMPROVED if -worse > allowed and is_sure else Outcome.PASS, told)


def _allowed(rule: Rule, base: Sampled, before: Fraction) -> Fraction:
    """The growth that passes neither limit alone: the larger of both."""
    relative = _exact(rule.grow) * before if rule.grow is not None else Fraction(0)
    return max(relative, _absolute(rule, base) or Fraction(0))


def _absolute(rule: Rule, base: Sampled) -> Fraction | None:
    """The absolute growth that is allowed."""
    if rule.of_step is not None:
        step_ns = base.value(metric("step_time")).value
        return rule.of_step * Fraction(step_ns or 0) if rule.metric.unit == Unit.NS else None
    return None if rule.grow_abs is None else _exact(rule.grow_abs)


def _noise(metric: Metric, sides: tuple[Sampled, Sampled], before: Fraction) -> tuple[Fraction, Sentence]:
    """One standard deviation, of the side that scatters more; and in words."""
    found = [side.scatter(metric) for side in sides]
    known = [one for one in found if one.sigma is not None]
    if not known:
        n = max(one.count for one in found)
        words = "too few steps to tell noise (n={}), taken as ±{}"
        return UNSEEN * before, say(words, count(n), Value(float(UNSEEN), Unit.SHARE))
    most = max(known, key=lambda one: one.sigma or 0)
    sigma = Fraction(most.sigma or 0)
    shown = _relative(sigma, before) if before else text(_amount(metric.unit, sigma))
    return sigma, say("noise ±{} (n={})", shown, count(most.count))


def _limit(rule: Rule, base: Sampled | None) -> Sentence:
    """What is allowed, in words."""
    unit = rule.metric.unit
    parts = [("at most {}", rule.max, unit), ("at least {}", rule.min, unit)]
    if base is not None and rule.is_about_growth:
        absolute = _absolute(rule, base)
        sign = "-" if rule.metric.more_is_better else "+"
        if not rule.grow and not absolute:
            parts.append((f"no {'drop' if rule.metric.more_is_better else 'growth'}{{}}", "", Unit.TEXT))  # type: ignore[arg-type]
        else:
            parts.append((f"{sign}{{}}", rule.grow or None, Unit.SHARE))
            parts.append((f"{sign}{{}}", None if not absolute else _plain(absolute, unit), unit))
    told = [(words, Value(value, of)) for words, value, of in parts if value is not None]
    return Sentence(", ".join(words for words, _ in told), tuple(value for _, value in told))


def _change(unit: Unit, delta: Fraction) -> Value:
    """A change with its sign."""
    return text(f"{'-' if delta < 0 else '+' if delta else ''}{_amount(unit, abs(delta))}")


def _amount(unit: Unit, size: Fraction) -> str:
    """A difference in a unit, in words."""
    number = _plain(size, unit)
    if unit == Unit.NS:
        return ns_text(number)
    if unit == Unit.BYTES:
        return bytes_text(number)
    if unit == Unit.SHARE:  # a difference of shares is no share of anything
        return share_text(number, 1).replace("%", "points")
    return count_text(number)


def _relative(delta: Fraction, before: Fraction) -> Value:
    """A change as a share of what was before, with its sign where it has one."""
    if not before:
        return text("from 0")
    share = delta / before
    shown = f"{float(abs(share) * 100):.1f} %"
    return text(f"{'-' if share < 0 else ''}{shown}")


def _plain(number: Fraction, unit: Unit) -> Number:
    return float(number) if unit == Unit.SHARE else round(number)


def _exact(number: Number) -> Fraction:
    """A number as it was written: 0.29 is 29/100."""
    return Fraction(repr(number)) if isinstance(number, float) else Fraction(number)
