"""What-if questions for tests: changes and options, as most of them are."""

from __future__ import annotations

from collections.abc import Sequence

from stepcrit.analyses import whatif
from stepcrit.analyses.whatif import Question, WhatIf
from stepcrit.graph.change import Change, Options
from stepcrit.graph.replay import Saving
from stepcrit.graph.stepgraph import StepGraph


def analyze(view: StepGraph, changes: Sequence[Change], options: Options | None = None) -> WhatIf:
    """The answer to changes."""
    return whatif.analyze(view, Question(tuple(changes), options))


def curve(
    view: StepGraph, changes: Sequence[Change], options: Options | None = None
) -> tuple[tuple[float, Saving], ...]:
    """Their saving curve."""
    return whatif.curve(view, Question(tuple(changes), options))
