"""`whatif --save`: a prediction as it was made, for a trace recorded after the change to judge (methods C.8)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stepcrit.answers.data import NOT_GIVEN, nulls_of
from stepcrit.answers.sure import NULLS as SURE_NULLS
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.model.section import Document

KEPT = (
    "claim",
    "step",
    "period_ns",
    "mean_of_periods",
    "predicted_ns",
    "saving_ns",
    "ceiling_ns",
    "matched",
    "model",
    "assumptions",
    "trust",
    "options",
)
"""What of the answer's data the file keeps."""


def prediction(view: StepGraph, answer: Document, asked: Mapping[str, Any]) -> Document:
    """The hypothesis, with what would refute it.

    Args:
        view: the step.
        answer: of `whatif.answer`.
        asked: the change in the words of the command line, so that it can be asked again.
    """
    data = {
        **{key: answer.data[key] for key in KEPT},
        "asked": dict(asked),
        "boundary": str(view.steps.boundary),
        "steps": [step.label for step in view.steps if step.used],
        "refuted_by": refuted_by(answer.data),
    }
    reasons = {**SURE_NULLS, **NOT_GIVEN}
    return Document("prediction", answer.inputs, (), data, answer.findings, nulls_of(data, reasons))


MEASURABLE = 100
"""A change of less than one part in so many of the step is lost in the noise of most measurements."""


def refuted_by(data: Mapping[str, Any]) -> list[str]:
    """What a trace recorded after the change would show if the prediction were wrong."""
    low, high = data["predicted_ns"]["low"], data["predicted_ns"]["high"]
    floor = data["period_ns"] - data["ceiling_ns"]
    what = "mean steady period" if data["mean_of_periods"] else "elapsed time of the same step"
    lines = [
        (
            f"the same job with this change alone made, recorded the same way: a {what} that lies, by more than its "
            f"own noise, outside {_exact(low)} to {_exact(high)}"
        ),
    ]
    if max(abs(data["saving_ns"]["low"]), abs(data["saving_ns"]["high"])) < data["period_ns"] // MEASURABLE:
        lines.append("the effect is smaller than a hundredth of the step: few measurements can tell")
    if floor < low:
        lines.append(
            f"below {_exact(floor)} it is beyond the model, which then did not explain it: look for other work, "
            "other kernels, contention that went, another boundary or other recording options"
        )
    return lines


def _exact(ns: int) -> str:
    """To the nanosecond: a hypothesis is not rounded."""
    return f"{ns / 1e6:.6f} ms"
