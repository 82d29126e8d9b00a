"""What is odd about an input: every note of building, every loss of reading, with a stable code."""

from __future__ import annotations

from stepcrit.answers.words import count, say, share, text
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.model.section import Finding

CODES = {
    "device activity without a launch in the trace": "G201",
    "device activity starts before its launch: launch edge dropped": "G202",
    "device activity starts just before its launch: launch point clamped": "G203",
    "queue successor starts before its predecessor ends: predecessor split": "G204",
    "event wait names a record issued after it: rejected": "G205",
    "event wait ends after what waited for it: edge dropped": "G206",
    "awaited work ends after the call that waited for it: edge dropped": "G207",
    "awaited work ends just after the call that waited for it: clamped": "G208",
    "backward pass whose calling thread does not wait: hand-over by timing only": "G209",
    "dependency inferred from timing only": "G210",
    "cycle broken at its worst edge": "G211",
    "event wait inferred from a wait call and timing": "G213",
    "floor of launch edges: fewer than 20 samples, taken as 0": "G214",
    "floor of stream edges: fewer than 20 samples, taken as 0": "G214",
}
"""Notes of the graph's construction (methods 0.4: nothing is dropped or clamped silently)."""

TIMING_LIMIT = 0.10
"""Above this share of the path, dependencies by timing alone are worth a warning."""


def findings(view: StepGraph) -> tuple[Finding, ...]:
    """Everything a reader should know about the input before trusting a number."""
    meta, found = view.trace.meta, []
    for why, n in sorted(meta.dropped.items()):
        found.append(Finding("L101", say("{} ({}×)", text(why), count(n)), n))
    for cat, n in sorted(meta.unknown_cats.items()):
        what = say("unknown category {} ({}×): kept out of every number", text(cat), count(n))
        found.append(Finding("L102", what, n))
    for note, n in sorted(view.built.graph.notes.items()):
        found.append(Finding(CODES[note], say("{} ({}×)", text(note), count(n)), n))
    segments = view.segments
    timing = int(segments.length_ns[segments.evidence == 3].sum())
    if timing > TIMING_LIMIT * view.step.elapsed_ns:
        found.append(
            Finding(
                "G212",
                say(
                    "{} of the path is entered through timing alone; record with enable_cuda_sync_events=True to know",
                    share(timing, view.step.elapsed_ns),
                ),
            )
        )
    return tuple(found)
