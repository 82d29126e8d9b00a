"""The sentences of `diff`: what was compared, how sure that is, and what may have made the difference."""

from __future__ import annotations

import re

from stepcrit.analyses.fingerprint import Level
from stepcrit.analyses.judgement import Outcome
from stepcrit.analyses.statistics import Sample
from stepcrit.answers.compared import Compared, Conclusion, Judged
from stepcrit.answers.hypothesis import Hypothesis
from stepcrit.answers.sides import Side
from stepcrit.answers.words import count, name, ns, plural, saved, say, share, text
from stepcrit.graph.replay import Saving
from stepcrit.link.workload import Times
from stepcrit.model.section import Sentence, Unit, Value
from stepcrit.units import ns_text

LEVEL_WORDS = {
    Level.CAPTURE: "recorded differently",
    Level.CONFIGURATION: "another configuration",
    Level.WORK: "other work",
    Level.NOTE: "noted",
}

_SHAPE = re.compile(r"\[([0-9,]*)\]")


def ratio(value: float | None) -> Value:
    """A ratio of two times, to four places."""
    return text("–" if value is None else f"{value:.4f}")


def opening(told: Compared) -> list[Sentence]:
    """Which files, how many steps, how long."""
    return [_side_line("base", told.base), _side_line("new ", told.new)]


def _side_line(word: str, side: Side) -> Sentence:
    steps, periods = len(side.periods_ns), side.periods_ns
    runs = f", {len(side.runs)} runs" if len(side.runs) > 1 else ""
    kind = "steady step" if side.is_steady else "step"
    device = next(iter(side.first.fingerprint.device_names or ()), "")
    return say(
        "{}  {}{}: {} {}{} of " + ("{} to {}" if len(set(periods)) > 1 else "{}"),
        text(word), name(side.first.name), name(f" · {device}" if device else ""), count(steps),
        text(plural(steps, kind)), text(runs), *map(ns, sorted({min(periods), max(periods)})),
    )  # fmt: skip


def comparable(told: Compared) -> list[Sentence]:
    """What must be equal, and is or is not."""
    lines = []
    for one in told.differences:
        what = one.what
        how = LEVEL_WORDS[one.level] if one.is_known else "cannot be compared"
        lines.append(Sentence(f"{{}}: {what.template}", (text(how), *what.values)))
    known = [one for one in told.differences if one.is_known and one.level != Level.NOTE]
    if not known:
        kinds = len(told.base.first.fingerprint.work)
        far = ", as far as is told" if any(not one.is_known for one in told.differences) else ""
        words = f"recorded alike, on the same configuration, doing the same work{far}: {{}} {{}} of it a step"
        lines.insert(0, say(words, count(kinds), text(plural(kinds, "kind"))))
    vary = max(told.base.first.fingerprint.varies, told.new.first.fingerprint.varies)
    if vary:
        lines.append(
            say(
                "{} {} from step to step: of these only what is never alike is told",
                count(vary),
                text("kind of work varies" if vary == 1 else "kinds of work vary"),
            )
        )
    return lines


def times_words(times: Times) -> str:
    """How often, as a number or a range."""
    return str(times.low) if times.low == times.high else f"{times.low}–{times.high}"


def work_notes(told: Compared) -> list[Sentence]:
    """What other work lets expect."""
    lines = []
    before, after = (side.first.fingerprint.flops for side in (told.base, told.new))
    if before and after and before != after:
        words = "matrix products of known shapes: {} FLOP a step in base, {} in new, × {}"
        lines.append(say(words, text(f"{before:.4g}"), text(f"{after:.4g}"), ratio(after / before)))
        more = "more" if after > before else "less"
        words = (
            f"up to about {{}} {more} time is to be expected of that alone, all of it where they set the pace"
        )
        much = share(abs(after - before), before)
        if after > 2 * before:  # 6581.3 % is no number to think in
            words, much = words.replace("{} more", "{} × the"), text(f"{after / before:.3g}")
        lines.append(say(words, much))
    if told.changed_work_ns is not None:
        lines.append(
            say(
                "operators that are not done equally often: {} of {} on the critical path",
                saved(told.changed_work_ns),
                saved(told.balance.delta_ns),
            )
        )
    return lines


def periods(told: Compared) -> list[Sentence]:
    """The statistics."""
    shift = told.shift
    unit = "run medians" if told.by_runs else "steps"
    median = say(
            "the median step takes {} instead of {} ({} boundary)",
            ns(shift.new.median_ns), ns(shift.base.median_ns), text(str(told.new.first.view.steps.boundary)),
        )  # fmt: skip
    if not told.has_interval:
        few = "ratio {}; shift {}; too few steps on a side for an interval, or for any verdict"
        return [median, say(few, ratio(shift.ratio), saved(round(shift.shift_ns)))]
    lines = [
        median,
        say(
            "ratio {}, 95 % interval {} to {}; shift {} (median of all pairs)",
            ratio(shift.ratio), ratio(shift.low), ratio(shift.high), saved(round(shift.shift_ns)),
        ),
        say(
            "a new step is longer in {} of all pairs; p {} ({} Mann-Whitney, of {} and {} {})",
            share(shift.a12, 1), text(f"{shift.p:.2g}"), text("exact" if shift.is_exact else "normal"),
            count(len(shift.base.values_ns)), count(len(shift.new.values_ns)), text(unit),
        ),
        say(
            "bootstrap of {} resamples, seed {}; {}", count(shift.resamples), text(str(shift.seed)),
            text("over runs" if told.by_runs else f"within these {len(told.base.runs) + len(told.new.runs)} runs: steps of one run share clocks, placement and heat"),
        ),
    ]  # fmt: skip
    for word, sample in (("base", shift.base), ("new", shift.new)):
        lines += _shape(word, sample)
    return lines


def _shape(word: str, sample: Sample) -> list[Sentence]:
    """What one side looks like, where it is not one steady cloud."""
    lines = []
    if sample.modes:
        modes = sample.modes
        lines.append(
            say(
                "{} has two kinds of steps, {} around {} and {} around {}, {} apart: no one median stands for them",
                text(word), count(modes.low_count), ns(modes.low_ns), count(modes.high_count), ns(modes.high_ns), ns(modes.gap_ns),
            )
        )  # fmt: skip
    if sample.drifts and sample.drift_share is not None:
        way = "longer" if sample.drift_share > 0 else "shorter"
        words = "{} drifts: each step is {} " + way + " than the one before (Theil-Sen)"
        lines.append(say(words, text(word), share(abs(sample.drift_share), 1)))
    if sample.block > 1:
        words = "steps of {} follow each other (autocorrelation {}): blocks of {} are resampled"
        lines.append(say(words, text(word), text(f"{sample.lag1:.2f}"), count(sample.block)))
    return lines


def headline(told: Compared) -> Sentence:
    """The verdict in one sentence."""
    threshold = share(told.asked.threshold, 1)
    needed = told.verdict.needed
    steps = text(f"; about {needed} steps a side would decide" if needed else "")
    number = ratio(told.shift.ratio)
    words = {
        Conclusion.SAME: say("the same recording on both sides: nothing differs"),
        Conclusion.REGRESSION: say("regression: the step takes {} × as long, beyond {}", number, threshold),
        Conclusion.IMPROVEMENT: say("improvement: the step takes {} × as long, beyond {}", number, threshold),
        Conclusion.NO_CHANGE: say("no change of {} or more: ratio {}", threshold, number),
        Conclusion.INCONCLUSIVE: say("inconclusive at {}: ratio {}{}", threshold, number, steps),
        Conclusion.TOO_FEW: say("too few steady steps for a verdict: the numbers above are all there is"),
        Conclusion.PARTIAL: say("no verdict: of {} something is lost", name(", ".join(told.partial))),
        Conclusion.WORK: say(
            "no verdict: the steps do not do the same work (see Other work); ratio {}", number
        ),
        Conclusion.CONFIGURATION: say(
            "no verdict: not the same configuration (see Matched work), so no cause can be named; ratio {}",
            number,
        ),
        Conclusion.CAPTURE: say(
            "no verdict: recorded differently (see Matched work), host times are not comparable; ratio {}",
            number,
        ),
    }
    return words[told.conclusion]


def hypothesis_words(told: Compared, one: Hypothesis) -> Sentence:
    """One suspect: what it spends, what putting it right would give, and what would refute it."""
    if one.waits:
        return _waiting_words(told, one)
    where, other = ("new", "base") if one.delta_ns > 0 else ("base", "new")
    first = say(
        f"in {where} {{}}{{}} spends {{}} more per step on the critical path ({{}} → {{}}, n = {{}} and {{}})",
        name(one.name), text(f" {shown_detail(one.detail)}" if one.detail else ""), ns(abs(one.delta_ns)),
        ns(one.base_ns), ns(one.new_ns), count(len(told.base.periods_ns)), count(len(told.new.periods_ns)),
    )  # fmt: skip
    if one.moved:
        words = "its own time has not changed: look for what covers it in {} and not in {}"
        rest = [say(words, text(other), text(where))]
    elif one.saving is None:
        words = "how much of that sets the pace is in no trace: bringing it to {} saves between 0 and {}"
        rest = [say(words, ns(one.base_ns if where == "new" else one.new_ns), ns(abs(one.delta_ns)))]
    else:
        rest = _tested(told, one, one.saving, where)
    if one.evenly is not None:
        grown = "longer" if one.evenly > 0 else "shorter"
        words = f"nearly all of it is {grown} by the same {{}}, as with another clock or load"
        rest.insert(0, say(words, share(abs(one.evenly), 1)))
    each = [first, *rest]
    return Sentence("; ".join(s.template for s in each), tuple(v for s in each for v in s.values))


def _waiting_words(told: Compared, one: Hypothesis) -> Sentence:
    """A suspect that makes the host wait, so that what follows lies on the path."""
    where, other = ("new", "base") if told.balance.delta_ns > 0 else ("base", "new")
    words = f"in {where} {{}} waits for the device {{}} × a step, in {other} never: what the host does next is then on the path"
    first = say(words, name(one.name), text(f"{one.waits:.3g}"))
    if one.saving is None:
        return first
    rest = f"if it is the cause, {where} without the waiting saves {{}} to {{}} per step"
    refuted = "refuted if, at the same work, the period then stays above {} × base"
    long_ns = (told.shift.new if where == "new" else told.shift.base).median_ns
    bound = (long_ns - one.saving.low_ns) / told.shift.base.median_ns + told.asked.threshold
    values = (ns(one.saving.low_ns), ns(one.saving.high_ns), ratio(bound))
    return Sentence(f"{first.template}; {rest}; {refuted}", (*first.values, *values))


def _tested(told: Compared, one: Hypothesis, saving: Saving, where: str) -> list[Sentence]:
    """What to do to find out, and what would refute it."""
    base_ns = told.shift.base.median_ns
    long_ns, target = (told.shift.new.median_ns, one.base_ns) if where == "new" else (base_ns, one.new_ns)
    bound = (long_ns - saving.low_ns) / base_ns + told.asked.threshold if base_ns else None
    change = "restoring it to {}" if where == "new" else "the same change in base alone, bringing it to {},"
    low, high = saving.low_ns, saving.high_ns
    amount = (ns(low),) if ns_text(low) == ns_text(high) else (ns(low), ns(high))
    words = f"if it is the cause, {change} saves {' to '.join('{}' for _ in amount)} per step"
    refuted = "refuted if, at the same work, the period then stays above {} × base, or if it gets there and the period does not follow"
    return [say(words, ns(target), *amount), say(refuted, ratio(bound))]


def _beyond(told: Compared) -> Sentence:
    """What else may have made the step shorter (methods C.8); other recording options are judged before."""
    work, kernels = len(told.work_changes), len(told.renamed)
    found = (
        f"{work} {plural(work, 'kind')} of other work" if work else "no other work",
        f"other kernels under {kernels} {plural(kernels, 'operator')}" if kernels else "no other kernels",
    )
    return say(
        "the model did not explain it; found beside it: {}, and {}; recorded alike, to the same boundary; "
        "contention that is gone cannot be seen",
        *map(text, found),
    )


def judged_words(told: Compared, judged: Judged) -> list[Sentence]:
    """A prediction and what came of it."""
    p = judged.predicted
    lines = [say("predicted for {}", name(p.asked))] if p.asked else []
    lines += [
        say("predicted saving {} to {}, ceiling {}", saved(p.low_ns), saved(p.high_ns), saved(p.ceiling_ns)),
        say("observed saving {} to {} (95 %)", saved(round(judged.low_ns)), saved(round(judged.high_ns))),
    ]
    if not judged.is_of_base:
        lines.append(say("the prediction was made from another file than base: {}", name(p.source)))
    if judged.outcome is None:
        return [*lines, say("not judged: {}", text(judged.why_not))]
    if judged.apart_ns:
        words = "{}: the intervals miss each other by {}, {} of the period it was made for"
        lines.append(
            say(words, text(judged.outcome), ns(judged.apart_ns), share(judged.apart_ns, p.period_ns))
        )
    else:
        lines.append(say("{}", text(judged.outcome)))
    if judged.outcome == Outcome.BEYOND:
        lines.append(_beyond(told))
    return lines


def shown_detail(detail: str) -> str:
    """Shapes and bytes as people write them.

    >>> shown_detail("[[64,256],[256],[]]"), shown_detail("1024"), shown_detail("")
    ('64×256, 256', '1024 bytes', '')
    """
    if detail.isdecimal():
        return f"{detail} bytes"
    sizes = _SHAPE.findall(detail)
    return ", ".join(size.replace(",", "×") for size in sizes if size)


def peaks(told: Compared) -> list[Sentence]:
    """Peak memory by device, or that it was not recorded."""
    lines = []
    before, after = told.base.peak_bytes, told.new.peak_bytes
    for kind, number in sorted(before.keys() & after.keys()):
        where = f"device {number}" if kind else "the host"
        pair = (Value(after[kind, number], Unit.BYTES), Value(before[kind, number], Unit.BYTES))
        lines.append(say("peak memory on {}: {} instead of {}", text(where), *pair))
    if not lines:
        sides = [word for word, side in (("base", before), ("new", after)) if not side]
        words = "not recorded in {} (profile_memory)" if sides else "of other devices in base and in new{}"
        lines.append(say(f"peak memory: {words}", text(" and ".join(sides))))
    return lines
