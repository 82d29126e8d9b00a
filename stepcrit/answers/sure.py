"""How sure an answer is: what the path rests on, and how well the steps of this trace predict each other."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from stepcrit.analyses import crossstep, trust
from stepcrit.answers.words import count, plural, say, share, text
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.model.section import Sentence

NULLS = {
    "trust.starts_explained_share": "no device activity starts in the window",
    "trust.cross_step.median_error_share": "steps could not be compared: see trust.cross_step.why_not",
    "trust.cross_step.worst_error_share": "steps could not be compared: see trust.cross_step.why_not",
    "trust.cross_step.matched_share": "steps could not be compared: see trust.cross_step.why_not",
    "trust.cross_step.why_not": "steps could be compared",
}
"""Why values of the trust block can be null."""


class Sure(Struct, frozen=True):
    """Evidence of the path, and the model's own error on this trace."""

    trust: trust.Trust
    steps: crossstep.CrossStep


def sure_of(view: StepGraph) -> Sure:
    """Measure both."""
    return Sure(trust.analyze(view), crossstep.analyze(view))


def sure_lines(sure: Sure) -> list[Sentence]:
    """What an answer says of it."""
    return [_path(sure.trust), _steps(sure.steps)]


def sure_data(sure: Sure) -> dict[str, Any]:
    """The trust block of an answer's JSON."""
    known, steps = sure.trust, sure.steps
    return {
        "evidence_share": known.evidence_share,
        "unexplained_share": known.unexplained_share,
        "untracked_share": known.untracked_share,
        "timing_share": known.timing_share,
        "starts": known.starts,
        "starts_explained_share": known.starts_explained_share,
        "replay_error_ns": 0,
        "cross_step": {
            "median_error_share": steps.median_error_share,
            "worst_error_share": steps.worst_error_share,
            "matched_share": steps.matched_share,
            "crossing_count": steps.crossing_count,
            "why_not": steps.why_not,
            "pairs": [
                {
                    "graph": pair.graph,
                    "durations": pair.durations,
                    "predicted_ns": pair.predicted_ns,
                    "measured_ns": pair.measured_ns,
                }
                for pair in steps.pairs
            ],
        },
    }


def _path(known: trust.Trust) -> Sentence:
    shares = {k: v for k, v in known.evidence_share.items() if v}
    words = ", ".join("{} {}" for _ in shares)
    values = [v for k, s in shares.items() for v in (text(k), share(s, 1))]
    if known.starts_explained_share is None:
        return say(f"the path is known by: {words}; its replay is exact", *values)
    return say(
        f"the path is known by: {words}; {{}} of {{}} device starts explained; its replay is exact",
        *values,
        share(known.starts_explained_share, 1),
        count(known.starts),
    )


def _steps(steps: crossstep.CrossStep) -> Sentence:
    if steps.median_error_share is None or steps.worst_error_share is None:
        return say("how well steps predict each other is not known: {}", text(steps.why_not or ""))
    found = (
        share(steps.median_error_share, 1),
        share(steps.worst_error_share, 1),
        count(len(steps.pairs)),
        text(plural(len(steps.pairs), "pair")),
    )
    words = "steps predict each other to {} in the median, {} at worst ({} {})"
    if not steps.crossing_count:
        words += "; the path keeps to one queue or thread, so that says little about dependencies"
    return say(words, *found)
