"""Critical path.

Question: which stretches, made shorter, would make the step shorter, and how sure is each dependency?
Method:   walk back over binding edges, open host stretches by owner, name gaps by their edge (methods B).
Needs:    a step on its schedule graph.
Keeps:    the parts by class, by group and by evidence each sum to the step's elapsed time, in ns.
"""

from __future__ import annotations

from msgspec import Struct

from stepcrit.errors import InternalError
from stepcrit.graph.path import MANY_PATHS, PieceKind
from stepcrit.graph.segments import Segments
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.intervals import ascending
from stepcrit.model.classes import WorkClass
from stepcrit.model.events import Side
from stepcrit.model.graph import EdgeKind, Evidence

_CLASS_LABELS = {int(work): work.label for work in WorkClass}
_EVIDENCE_LABELS = {int(evidence): evidence.name.lower() for evidence in Evidence}
_EDGE_LABELS = {int(kind): kind.name.lower() for kind in EdgeKind}


class CriticalPath(Struct, frozen=True, eq=False):
    """The answer for one step, in ns.

    Attributes:
        elapsed_ns: length of the window and of the path.
        by_class_ns: WorkClass -> time on the path, largest first.
        by_group_ns: compute, comm, copy, host, gap -> time on the path.
        by_evidence_ns: evidence of the edge through which each stretch was entered -> time; "opening"
            is time that waited for nothing in the trace.
        ties: equally late alternatives met.
        path_count: distinct critical paths.
        path_count_capped: whether there may be more.
        segments: the stretches.
        coupling: work class of the stretch at the window's opening (methods A.2).
        paced_by: where the path goes on before the window: what carries the pace from step to step. None
            where the window does not open at a boundary.
    """

    elapsed_ns: int
    by_class_ns: dict[WorkClass, int]
    by_group_ns: dict[str, int]
    by_evidence_ns: dict[str, int]
    ties: int
    path_count: int
    path_count_capped: bool
    segments: Segments
    coupling: WorkClass | None
    paced_by: Side | None


def analyze(view: StepGraph) -> CriticalPath:
    """Partition one step's elapsed time along its critical path."""
    segments = view.segments
    length = segments.length_ns
    by_class = {
        WorkClass(c): int(length[segments.work == c].sum()) for c in ascending(segments.work).tolist()
    }
    by_class = dict(sorted(by_class.items(), key=lambda item: (-item[1], item[0])))
    by_group: dict[str, int] = dict.fromkeys(("compute", "comm", "copy", "host", "gap"), 0)
    for work, ns in by_class.items():
        by_group[work.group] += ns
    names = {-1: "opening", **_EVIDENCE_LABELS}
    by_evidence = {
        names[int(e)]: int(length[segments.evidence == e].sum()) for e in ascending(segments.evidence)
    }
    elapsed = view.step.elapsed_ns
    for parts in (by_class, by_group, by_evidence):
        if sum(parts.values()) != elapsed:
            raise InternalError(f"parts of the critical path sum to {sum(parts.values())}, not {elapsed} ns")
    count = view.path.path_count
    opening = WorkClass(int(segments.work[0])) if len(segments) else None
    return CriticalPath(
        elapsed,
        by_class,
        by_group,
        by_evidence,
        view.path.ties,
        count,
        count >= MANY_PATHS,
        segments,
        opening,
        _paced_by(view),
    )


def _paced_by(view: StepGraph) -> Side | None:
    """The side of the node that the path comes from where its window opens."""
    path, graph = view.path, view.built.graph
    if not len(path) or not view.step.opens_at_boundary:
        return None
    node, edge = int(path.node[0]), int(path.edge[0])
    cut = path.kind[0] == PieceKind.NODE and graph.start_ns[node] < view.step.start_ns
    before = node if cut or edge < 0 else int(graph.src[edge])
    return view.trace.events.lanes[int(graph.lane[before])].side


def path_rows(view: StepGraph) -> list[dict[str, object]]:
    """The critical path as plain rows in time order, for data frames and JSON.

    Returns:
        One mapping per stretch: `start_ns`, `end_ns` (since the trace's origin), `length_ns`, `class`,
        `kind` ("activity" or "gap"), `name` (of a gap: what it delays), `lane`, `evidence` and `entered_by`
        (of the edge that leads into it; None where the window's opening cuts it).
    """
    segments, events = view.segments, view.trace.events
    columns = (segments.start_ns, segments.end_ns, segments.work, segments.row, segments.lane)
    edges = (segments.evidence, segments.edge_kind, segments.is_gap)
    lanes = [lane.words for lane in events.lanes]
    return [
        {
            "start_ns": start,
            "end_ns": end,
            "length_ns": end - start,
            "class": _CLASS_LABELS[work],
            "kind": "gap" if is_gap else "activity",
            "name": events.name_of(row) if row >= 0 else "",
            "lane": lanes[lane],
            "evidence": _EVIDENCE_LABELS.get(evidence),
            "entered_by": _EDGE_LABELS.get(kind),
        }
        for start, end, work, row, lane, evidence, kind, is_gap in zip(
            *(column.tolist() for column in (*columns, *edges)), strict=True
        )
    ]
