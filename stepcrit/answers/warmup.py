"""Why some steps were slower than the steady ones, in at most three sentences of the analyze screen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from stepcrit.analyses.warmup import WarmUp
from stepcrit.answers.words import count, name, ns, plural, say, text
from stepcrit.model.section import Sentence, Unit, Value

UNKNOWN = "cause not in the trace"
MOST_CAUSES = 3


def say_warm_up(found: Sequence[WarmUp]) -> tuple[Sentence, ...]:
    """The slowest step that does not count, the others of its kind, and the outliers: one sentence each."""
    early = sorted((w for w in found if not w.is_outlier and _is_worth(w)), key=lambda w: -w.elapsed_ns)
    late = [w for w in found if w.is_outlier and _is_worth(w)]
    lines = [_one(early[0])] if early else []
    if early[1:]:
        lines.append(_many(early[1:], "more step that does not count", "more steps that do not count"))
    if late:
        lines.append(_many(late, "outlier", "outliers"))
    return tuple(lines)


def _is_worth(found: WarmUp) -> bool:
    """Slower; or, where nothing is steady to compare with, with evidence of its own."""
    return found.is_slower or (found.extra_ns is None and bool(found.causes))


def _one(found: WarmUp) -> Sentence:
    """One step by its name."""
    if found.extra_ns is None:
        start, values = "{} took {}", [name(found.step), ns(found.elapsed_ns)]
    else:
        start, values = "{} is {} slower than the steady median", [name(found.step), ns(found.extra_ns)]
    return _with_causes(start, values, [found])


def _many(found: Sequence[WarmUp], one: str, more: str) -> Sentence:
    """Several steps by their number."""
    extra = [w.extra_ns for w in found if w.extra_ns is not None]
    noun = plural(len(found), one, more)
    values = [count(len(found)), text(noun)]
    if not extra:
        return _with_causes("{} {}", values, found)
    slower = "{} slower" if len(found) == 1 else "up to {} slower"
    return _with_causes(f"{{}} {{}}: {slower}", [*values, ns(max(extra))], found)


def _with_causes(start: str, values: list[Value], found: Sequence[WarmUp]) -> Sentence:
    """What lies in these steps, most first; and whether it can be all."""
    sums = sum((Counter(w.causes) for w in found), Counter[str]())
    parts = [(kind, ns(spent)) for kind, spent in sums.most_common(MOST_CAUSES)]
    grown = sum(w.grown_bytes or 0 for w in found)
    if grown:
        parts.append(("reserved memory grew by", Value(grown, Unit.BYTES)))
    if not parts:
        return say(f"{start}, {UNKNOWN}", *values)
    template = f"{start}; in {'it' if len(found) == 1 else 'them'}: " + ", ".join("{} {}" for _ in parts)
    extra = sum(max(w.extra_ns or 0, 0) for w in found)
    if 2 * sums.total() < extra:
        template += "; most of it has no cause in the trace"
    return say(template, *values, *(value for kind, amount in parts for value in (text(kind), amount)))
