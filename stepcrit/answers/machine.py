"""What resource models assume and found: one sentence each, with the claim that it allows (methods C.4)."""

from __future__ import annotations

from typing import Any

from stepcrit.analyses.bounds import Bounds
from stepcrit.analyses.whatif import WhatIf
from stepcrit.answers.words import count, name, ns, plural, say, share, text
from stepcrit.graph.contention import KEY, Slowdown, measure
from stepcrit.graph.models import Model
from stepcrit.graph.replay import Saving
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.graph.transfer import Transfer
from stepcrit.model.section import Sentence


def model_lines(view: StepGraph, result: WhatIf, bounds: Bounds) -> list[Sentence]:
    """Every model with its words, and what it says."""
    lines = []
    for model in result.question.models:
        lines.append(say("{} ({}): {}", text(model.name), text(model.claim), text(model.words)))
        lines += _found(view, result, bounds, model)
    if result.baseline != Saving(0, 0):
        lines.append(
            say(
                "with nothing changed this machine takes {} to {} instead of {}",
                ns(result.period_ns - result.baseline.high_ns),
                ns(result.period_ns - result.baseline.low_ns),
                ns(result.period_ns),
            )
        )
    return lines


def model_data(view: StepGraph, result: WhatIf, model: Model) -> dict[str, Any]:
    """A model for JSON."""
    found: dict[str, Any] | None = None
    if model.name == "contend" and model.slowdown is None:
        found = _slowdown_data(measure(view))
    if model.name == "comm" and result.transfer:
        found = _transfer_data(result.transfer)
    return {"name": model.name, "claim": model.claim, "assumes": model.words, "measured": found}


def _found(view: StepGraph, result: WhatIf, bounds: Bounds, model: Model) -> list[Sentence]:
    if model.name == "free" and bounds.free_ns is not None:
        return [_at_least(view, bounds, bounds.free_ns, "if what one queue holds may all run at once")]
    if model.name == "lanes":
        words = "if every queue and thread does one thing at a time: so long is {} busy"
        return [_at_least(view, bounds, bounds.busy_ns, words.format(bounds.busiest))]
    if model.name == "contend" and model.slowdown is None:
        return [_slowdown(measure(view))]
    return _transfer(result.transfer) if model.name == "comm" and result.transfer else []


def _at_least(view: StepGraph, bounds: Bounds, floor_ns: int, words: str) -> Sentence:
    """A bound of the step alone: no schedule, and the data that hides behind queue order may ask for more."""
    return say(
        "{} takes at least {} instead of {}, {}",
        name(view.step.label),
        ns(floor_ns),
        ns(bounds.elapsed_ns),
        text(words),
    )


def _slowdown(found: Slowdown) -> Sentence:
    low, high = found.quartiles
    if found.measured < 1:
        words = "beside communication compute takes {} × its time alone ({} against {} activities): nothing is slowed"
        counts = (count(found.beside_count), count(found.alone_count))
        return say(words, text(f"{found.measured:.2f}"), *counts)
    return say(
        "compute beside communication takes {} × its time alone (quartiles {} to {}; {} against {} activities of "
        f"the same {KEY})",
        text(f"{found.measured:.2f}"),
        text(f"{low:.2f}"),
        text(f"{high:.2f}"),
        count(found.beside_count),
        count(found.alone_count),
    )


def _slowdown_data(found: Slowdown) -> dict[str, Any]:
    return {
        "slowdown": None if found.slowdown is None else float(found.slowdown),
        "median_ratio": found.measured,
        "quartiles": list(found.quartiles),
        "beside_count": found.beside_count,
        "alone_count": found.alone_count,
    }


def _transfer(found: Transfer) -> list[Sentence]:
    lines = [
        say(
            "{} {} change over the whole recording: {} of their time is transfer, {} waiting for other ranks, which stays",
            count(found.known_count),
            text(plural(found.known_count, "collective")),
            ns(found.transfer_ns),
            ns(found.waiting_ns),
        )
    ]
    if found.estimated:
        words = "an estimate: the shortest collective of a kind and size is taken to have waited for nobody"
        lines.append(say(words))
        if found.once_count:
            lines.append(say("{} came only once: all of it is taken for transfer", count(found.once_count)))
    if found.unknown_count:
        lines.append(say("{} more without metadata stay as recorded", count(found.unknown_count)))
    for (what, group, dtype), fit in found.fits.items():
        lines.append(
            say(
                "start-up of {}: {}, fitted over {} sizes, which explain {} of the time",
                name(" ".join(part for part in (what, group, dtype) if part)),
                ns(round(fit.alpha_ns)),
                count(fit.size_count),
                share(fit.explained_share, 1),
            )
        )
        if fit.size_count == 2:
            lines.append(say("two sizes fit any line: take that start-up for no more than a guess"))
        if fit.clamped:
            lines.append(say("the fit put it below 0, which is taken for 0"))
    for series, why in found.unfitted.items():
        lines.append(say("start-up of {} is unknown: {}", name(" ".join(filter(None, series))), text(why)))
    return lines


def _transfer_data(found: Transfer) -> dict[str, Any]:
    return {
        "collectives": found.known_count,
        "without_metadata": found.unknown_count,
        "once": found.once_count,
        "transfer_ns": found.transfer_ns,
        "waiting_ns": found.waiting_ns,
        "is_estimate": found.estimated,
        "fits": [
            {
                "collective": what,
                "group": group,
                "dtype": dtype,
                "alpha_ns": round(fit.alpha_ns),
                "ns_per_byte": float(fit.ns_per_byte),
                "sizes": fit.size_count,
                "explained_share": fit.explained_share,
            }
            for (what, group, dtype), fit in found.fits.items()
        ],
    }
