"""Trust.

Question: how much of the path rests on recorded ids, how much on order or on timing alone?
Method:   path time by the evidence of the edge entering each stretch (methods 0.3); device starts whose
          residual gap is small enough to be a normal delay.
Needs:    a step on its schedule graph.
Keeps:    evidence shares sum to 1 with the opening stretch; nothing here is a guess about the cause.
"""

from __future__ import annotations

from msgspec import Struct

from stepcrit.graph.stepgraph import StepGraph
from stepcrit.intervals import ascending
from stepcrit.model.classes import WorkClass
from stepcrit.model.graph import Evidence, NodeKind

EXPLAINED_NS = 20_000


class Trust(Struct, frozen=True):
    """How well the graph explains this step; shares 0..1.

    Attributes:
        evidence_share: evidence name -> share of path time; "opening" for time that waited for nothing in the trace.
        unexplained_share: path time in gaps far above what is usual for their class.
        untracked_share: path time in which no event was open on the host.
        starts: device activities that start in the window.
        starts_explained_share: of them, those that start within EXPLAINED_NS of their latest known
            predecessor; None when there are none.
        timing_share: path time entered through timing alone.
    """

    evidence_share: dict[str, float]
    unexplained_share: float
    untracked_share: float
    starts: int
    starts_explained_share: float | None
    timing_share: float


def analyze(view: StepGraph) -> Trust:
    """Measure trust in one step's path."""
    segments = view.segments
    length, total = segments.length_ns, max(view.step.elapsed_ns, 1)
    names = {-1: "opening", **{int(e): e.name.lower() for e in Evidence}}
    shares = {
        names[int(e)]: float(length[segments.evidence == e].sum() / total)
        for e in ascending(segments.evidence)
    }
    graph = view.built.graph
    starts = (graph.kind >= NodeKind.KERNEL) & (graph.part <= 1)
    starts &= (graph.start_ns >= view.step.start_ns) & (graph.start_ns < view.step.end_ns)
    gaps = view.built.arrivals.gap_ns[starts]
    return Trust(
        shares,
        float(length[segments.work == WorkClass.UNEXPLAINED].sum() / total),
        float(length[segments.work == WorkClass.UNTRACKED].sum() / total),
        int(starts.sum()),
        float((gaps <= EXPLAINED_NS).mean()) if gaps.size else None,
        shares.get("timing", 0.0),
    )
