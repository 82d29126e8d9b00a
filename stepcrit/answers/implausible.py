"""What cannot be true of a trace, in sentences: how many rows, what became of them, the worst one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stepcrit.analyses import lostwork
from stepcrit.answers.words import count, name, ns, plural, say, text
from stepcrit.model.links import Links
from stepcrit.model.oddity import Oddity
from stepcrit.model.section import Finding, Sentence
from stepcrit.model.steps import Steps
from stepcrit.model.trace import RawTrace


def all_oddities(
    trace: RawTrace, links: Links, steps: Steps, lost: tuple[Oddity, ...] | None = None
) -> tuple[Oddity, ...]:
    """Those of single rows, and those of what is missing: `lost` where it is known already."""
    return (*trace.oddities, *(lostwork.analyze(trace, links, steps) if lost is None else lost))


def implausible(odd: tuple[Oddity, ...]) -> tuple[Finding, ...]:
    """A finding for each."""
    return tuple(Finding(one.code, SENTENCES[one.code](one), one.count) for one in odd)


def implausible_data(odd: tuple[Oddity, ...]) -> list[dict[str, Any]]:
    """Their numbers for JSON. A time that is not known has no key."""
    return [
        {
            "code": one.code,
            "count": one.count,
            "of_count": one.of_count,
            "done": str(one.done),
            "example": one.example,
            "place": one.order,
            **{key: value for key, value in one.ns.items() if value is not None},
        }
        for one in odd
    ]


def _duration(odd: Oddity) -> Sentence:
    return say(
        "{} {} longer than can be, cut; worst {}: {} written, {} taken",
        count(odd.count), text(plural(odd.count, "row lasts", "rows last")), name(odd.example),
        ns(odd.ns["written_ns"]), ns(odd.ns["taken_ns"]),
    )  # fmt: skip


def _overlap(odd: Oddity) -> Sentence:
    return say(
        "{} {} run beside the next of the same queue and no launch allows it; {} by {}; left as recorded",
        count(odd.count), text(plural(odd.count, "activity", "activities")), name(odd.example), ns(odd.ns["overlap_ns"]),
    )  # fmt: skip


def _far(odd: Oddity) -> Sentence:
    return say(
        "{} {} far from all others in time, put aside; {} by {}",
        count(odd.count), text(plural(odd.count, "row lies", "rows lie")), name(odd.example), ns(odd.ns["away_ns"]),
    )  # fmt: skip


def _disordered(odd: Oddity) -> Sentence:
    return say(
        "{} of {} activities start when their launch or a wait rules it out, put aside; {} by {}",
        count(odd.count), count(odd.of_count), name(odd.example), ns(odd.ns["off_ns"]),
    )  # fmt: skip


def _clock(odd: Oddity) -> Sentence:
    """A clock that was set right: by how much, and how well that is known."""
    low, high = odd.ns["low_ns"], odd.ns["high_ns"]
    moved = (name(odd.example), ns(odd.ns["offset_ns"]))
    if low is None or high is None:
        words = "clock of device {} contradicts causality: its times were moved by {}; no wait tells how much more is due"
        return say(words, *moved)
    return say(
        "clock of device {} contradicts causality: its times were moved by {} (possible: {} to {}), "
        "so times between host and device are known to {}",
        *moved, ns(low), ns(high), ns(high - low),
    )  # fmt: skip


def _no_clock(odd: Oddity) -> Sentence:
    """A clock that no constant sets right."""
    low, high = odd.ns["low_ns"], odd.ns["high_ns"]
    known = (name(odd.example), count(odd.count), count(odd.of_count))
    if high is None:
        words = "clock of device {} not set right: {} of {} activities start before their launch, by up to {}, too few for a clock"
        return say(words, *known, ns(low))
    return say(
        "clock of device {} not set right: {} of {} activities start before their launch, and no one offset fits: "
        "by launches its times lack {} or more, by waits {} or less",
        *known, ns(low), ns(high),
    )  # fmt: skip


def _kernels(odd: Oddity) -> Sentence:
    return say(
        "{} of {} kernel launches own no device work: part of it was not recorded, idle time is not reliable",
        count(odd.count), count(odd.of_count),
    )  # fmt: skip


def _graphs(odd: Oddity) -> Sentence:
    return say(
        "{} of {} graph launches own no device work: part of it was not recorded, idle time is not reliable",
        count(odd.count), count(odd.of_count),
    )  # fmt: skip


def _steps(odd: Oddity) -> Sentence:
    return say(
        "{} of {} steps lost device work: they and the steps after them are not used",
        count(odd.count),
        count(odd.of_count),
    )


def _frames(odd: Oddity) -> Sentence:
    return say(
        "{} Python {} without a return, cut to the frame around; {} by {}",
        count(odd.count), text(plural(odd.count, "frame")), name(odd.example), ns(odd.ns["cut_ns"]),
    )  # fmt: skip


def _totals(odd: Oddity) -> Sentence:
    return say(
        "{} of {} memory events have totals that cannot be: taken as not recorded",
        count(odd.count),
        count(odd.of_count),
    )


def _bytes(odd: Oddity) -> Sentence:
    return say(
        "{} of {} copies give bytes that cannot be: taken as not recorded",
        count(odd.count),
        count(odd.of_count),
    )


SENTENCES: dict[str, Callable[[Oddity], Sentence]] = {
    "P301": _duration,
    "P302": _overlap,
    "P303": _far,
    "P304": _disordered,
    "P305": _clock,
    "P306": _no_clock,
    "P307": _kernels,
    "P308": _graphs,
    "P309": _steps,
    "P310": _frames,
    "P311": _totals,
    "P312": _bytes,
}
"""Every code of what cannot be true; `stepcrit explain CODE` has the reason of each."""
