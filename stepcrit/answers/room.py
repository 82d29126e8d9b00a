"""`whatif --inject`: how much longer may this take before the step does?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stepcrit.analyses import room
from stepcrit.analyses.room import Room
from stepcrit.answers.assumed import assumed_section, assumptions
from stepcrit.answers.data import NOT_GIVEN, nulls_of
from stepcrit.answers.findings import findings
from stepcrit.answers.sure import NULLS as SURE_NULLS
from stepcrit.answers.sure import sure_data, sure_of
from stepcrit.answers.words import count, input_of, name, ns, plural, say, say_settings, text
from stepcrit.graph.change import Options
from stepcrit.graph.selector import Selector
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.intervals import ascending
from stepcrit.model.section import Document, Section, Sentence
from stepcrit.units import ns_text

NULLS = {
    "free_ns.low": "the boundary needs none of them",
    "free_ns.high": "the boundary needs none of them",
    **NOT_GIVEN,
    **SURE_NULLS,
}


def answer(
    view: StepGraph,
    selector: Selector,
    options: Options | None = None,
    *,
    settings: Mapping[str, Any] | None = None,
) -> Document:
    """How much a selection can grow for free, and what more costs.

    Raises:
        UsageError: the selector matches nothing, or gaps alone.
    """
    found, sure = room.analyze(view, selector, options), sure_of(view)
    assumed = assumptions(view)
    selection = found.selection
    told = (*_told(view, found), *say_settings(settings or {}))
    blocks = (
        Section("Room", notes=told, claim="modelled", topic="inject"),
        assumed_section(assumed, sure),
    )
    data = {
        "claim": "modelled",
        "step": view.step.label,
        "selector": str(selector),
        "period_ns": found.period_ns,
        "mean_of_periods": found.period_count,
        "matched": {
            "activities": selection.device_count + selection.host_count,
            "total_ns": selection.total_ns,
            "on_path_ns": selection.on_path_ns,
        },
        "free_ns": {"low": found.least.free_ns, "high": found.most.free_ns},
        "cost_per_ns": {"low": found.most.cost, "high": found.least.cost},
        "assumptions": list(assumed),
        "trust": sure_data(sure),
        "options": dict(settings or {}),
    }
    return Document("whatif-inject", (input_of(view),), blocks, data, findings(view), nulls_of(data, NULLS))


def _told(view: StepGraph, found: Room) -> list[Sentence]:
    selection = found.selection
    n = len(ascending(selection.activity))  # what is nested in an operator's call is part of it
    what = f"{n} {plural(n, 'activity', 'activities')}"
    where = (
        say(
            "in every step, until the mean of {} steady periods grows by a thousandth",
            count(found.period_count),
        )
        if found.period_count
        else say("in {} alone, until its boundary moves", name(view.step.label))
    )
    least, most = found.least.free_ns, found.most.free_ns
    subject = (text(what), name(str(found.selector)))
    if least is None:
        return [say("the {} of {} may take any time: the boundary needs none of them", *subject), where]
    if least == 0 and most == 0:
        free = say("none of the {} of {} has room: any longer, and the step gets longer", *subject)
    elif most is not None and ns_text(least) == ns_text(most):
        free = say("each of the {} of {} may take {} longer", *subject, ns(least))
    else:
        upper = ns(most) if most is not None else text("any time")
        free = say(
            "each of the {} of {} may take {} to {} longer: gaps may stay, or go with what they followed",
            *subject,
            ns(least),
            upper,
        )
    return [free, *_cost(found), where]


def _cost(found: Room) -> list[Sentence]:
    """What a µs more each costs then."""
    cost = round(1000 * found.least.cost)
    return [say("beyond that, each µs more of every one costs the step {}", ns(cost))] if cost else []
