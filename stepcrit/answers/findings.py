"""What is odd about an input: every note of building, every loss of reading, with a stable code."""

from __future__ import annotations

from stepcrit.answers.implausible import all_oddities, implausible
from stepcrit.answers.words import count, name, plural, say, share, text
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.link.presence import Platform, platform_of
from stepcrit.model.classes import RulesUsed
from stepcrit.model.graph import EdgeKind, Evidence, Note
from stepcrit.model.oddity import Oddity
from stepcrit.model.section import Finding, Sentence
from stepcrit.model.trace import Damage, Harm, TraceMeta

CODES = {
    Note.NO_LAUNCH: "G201",
    Note.BEFORE_LAUNCH: "G202",
    Note.JUST_BEFORE_LAUNCH: "G203",
    Note.SPLIT: "G204",
    Note.LATE_RECORD: "G205",
    Note.EVENT_TOO_LATE: "G206",
    Note.WAIT_TOO_LATE: "G207",
    Note.WAIT_JUST_LATE: "G208",
    Note.NO_HANDOVER: "G209",
    Note.TIMING: "G210",
    Note.CYCLE: "G211",
    Note.INFERRED_WAIT: "G213",
    Note.NO_LAUNCH_FLOOR: "G214",
    Note.NO_STREAM_FLOOR: "G214",
    Note.NO_THREAD: "G215",
}
"""Notes of the graph's construction (methods 0.4: nothing is dropped or clamped silently)."""

SHOWN = 5
"""So many of several files are named."""

TIMING_LIMIT = 0.10
"""Above this share of the path, dependencies by timing alone are worth a warning."""


def findings(view: StepGraph, lost: tuple[Oddity, ...] | None = None) -> tuple[Finding, ...]:
    """Everything a reader should know about the input before trusting a number; `lost` if `lostwork` was asked before."""
    found = list(of_reading(view.trace.meta))
    found += implausible(all_oddities(view.trace, view.links, view.steps, lost))
    for note, n in sorted(view.built.graph.notes.items()):
        found.append(Finding(CODES[Note(note)], say("{} ({}×)", text(note), count(n)), n))
    segments = view.segments
    timing = int(segments.length_ns[segments.evidence == Evidence.TIMING].sum())
    if timing > TIMING_LIMIT * view.step.elapsed_ns:
        found.append(
            Finding(
                "G212",
                say(
                    "{} of the path is entered through timing alone; {}",
                    share(timing, view.step.elapsed_ns),
                    text(_to_know(view)),
                ),
            )
        )
    return (*found, *rule_findings(view.links.rules_used))


def rule_findings(used: RulesUsed) -> tuple[Finding, ...]:
    """What the user's own rules for classes decided in this trace, and which of them decided nothing."""
    if not used.rules:
        return ()
    n = sum(used.decided_counts)
    what = say(
        "classes of {} {} by {} {} of --classes", count(n), text(plural(n, "name")),
        count(len(used.rules)), text(plural(len(used.rules), "rule")),
    )  # fmt: skip
    found = [Finding("G220", what, n)]
    for rule, decided, matched in zip(used.rules, used.decided_counts, used.matched_counts, strict=True):
        if not decided:
            why = "metadata decides what it means" if matched else "no name of this trace is left to it"
            words = say(
                "[{}] {} {}: {}", text(rule.side), text(rule.work.label), name(rule.pattern), text(why)
            )
            found.append(Finding("G221", words))
    return tuple(found)


def of_reading(meta: TraceMeta) -> tuple[Finding, ...]:
    """What reading the file met."""
    found = [Finding(_code_of(damage.harm), _damage_words(damage), damage.count) for damage in meta.damage]
    for why, n in sorted(meta.dropped.items()):
        found.append(Finding("L101", say("{} ({}×)", text(why), count(n)), n))
    for cat, n in sorted(meta.unknown_cats.items()):
        what = say("unknown category {} ({}×): kept out of every number", text(cat), count(n))
        found.append(Finding("L102", what, n))
    if meta.skipped:
        others = ", ".join(f"{name} ({why})" for name, why in meta.skipped[:SHOWN])
        more = ", …" if len(meta.skipped) > SHOWN else ""
        what = say("not traces, in the same folder: {}{}", text(others), text(more))
        found.append(Finding("L106", what, len(meta.skipped)))
    return tuple(found)


def _code_of(harm: Harm) -> str:
    """Repaired, lost, or the input itself stops or is damaged."""
    if harm.is_cut:
        return "L105"
    return "L104" if harm.is_loss else "L103"


def _damage_words(damage: Damage) -> Sentence:
    """What was wrong, how often, and where first."""
    if damage.first_byte < 0:
        return say("{} ({}×)", text(damage.harm), count(damage.count))
    return say(
        "{} ({}×; first at byte {}, line {})",
        text(damage.harm),
        count(damage.count),
        count(damage.first_byte),
        count(damage.first_line),
    )


def _to_know(view: StepGraph) -> str:
    """How dependencies by timing become known, where a profiler can record them."""
    segments = view.segments
    timed = segments.evidence == Evidence.TIMING
    inside_graphs = timed & (segments.edge_kind == EdgeKind.STREAM)
    if 2 * segments.length_ns[inside_graphs].sum() > segments.length_ns[timed].sum():
        return "what waits for what inside a device graph is in no trace"
    if platform_of(view.trace) == Platform.CUDA:
        return "record with enable_cuda_sync_events=True to know"
    return "only the profiler for CUDA records what waits for what"
