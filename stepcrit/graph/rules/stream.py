"""E3: the activities of one device queue run in the order in which they start."""

from __future__ import annotations

import numpy as np

from stepcrit.graph.claims import Claims
from stepcrit.graph.scene import Scene
from stepcrit.model.arrays import Int64Array
from stepcrit.model.graph import EdgeKind, Evidence, Note

DEPENDENT_LAUNCH_NS = 5_000
"""No programmatic dependent launch in public traces begins longer before its predecessor's end (4.6 µs)."""

NODE_GAP_NS = 5_000
"""A node of a device graph starts this soon after the node it waited for, where nothing else held it."""


def stream_order(scene: Scene, claims: Claims) -> None:
    """Each activity waits for the one before it in its queue.

    Where a successor starts before its predecessor ends (programmatic dependent launch, branches of
    one graph, rounding), `build` splits the predecessor there; and what the overlapped tail still
    delays is the first later activity that starts after the tail's end. Of two branches of a graph
    neither waits for the other: a node that starts far inside the one before it, just after another node
    of its graph has ended, waited for that one.
    """
    for queue in scene.queues.values():
        rows = queue.rows
        start, end = (c[rows] for c in (scene.events.start_ns, scene.events.end_ns))
        src, evidence = rows[:-1].copy(), np.full(max(len(rows) - 1, 0), Evidence.ORDER, np.int64)
        overlaps = np.flatnonzero(end[:-1] > start[1:])
        _claim_branches(scene, claims, (rows, src, evidence), overlaps)
        # of each overlapped tail, the first that starts when it has ended
        later = np.maximum(np.searchsorted(start, end[overlaps], side="left"), overlaps + 2)
        tails, later = overlaps[later < len(rows)], later[later < len(rows)]
        order = np.argsort(np.concatenate((np.arange(len(src)), tails)), kind="stable")
        columns = (
            (src, rows[tails]),
            (rows[1:], rows[later]),
            (evidence, np.full(len(tails), Evidence.ORDER)),
        )
        src, dst, evidence = (np.concatenate(parts)[order] for parts in columns)
        claims.device.add(src, dst, EdgeKind.STREAM, evidence)


def _claim_branches(
    scene: Scene, claims: Claims, columns: tuple[Int64Array, Int64Array, Int64Array], overlaps: Int64Array
) -> None:
    """Change the claims of nodes that waited for another branch of their graph, and count overlaps.

    Args:
        scene: the scene.
        claims: where overlaps are counted.
        columns: the queue's rows, and the source and evidence of each claim but the first row's, which is none.
        overlaps: places of claims whose source ends after their target starts.
    """
    rows, src, evidence = columns
    for at in overlaps.tolist():
        other = _of_its_branch(scene, rows, at + 1)
        if other is None:
            claims.notes[Note.SPLIT] += 1
        else:
            claims.notes[Note.TIMING] += 1
            src[at], evidence[at] = other, Evidence.TIMING


def _of_its_branch(scene: Scene, rows: Int64Array, i: int) -> int | None:
    """The node of the same graph whose end explains the start of an overlapping node; None if none does."""
    events, row = scene.events, int(rows[i])
    start = int(events.start_ns[row])
    if scene.rules.strict or int(events.end_ns[rows[i - 1]]) - start <= DEPENDENT_LAUNCH_NS:
        return None
    found = None
    for other in rows[max(0, i - BRANCHES) : i].tolist():
        ended = int(events.end_ns[other])
        same_graph = events.correlation[other] == events.correlation[row] >= 0
        if same_graph and start - NODE_GAP_NS <= ended <= start:
            found = other if found is None or ended >= events.end_ns[found] else found
    return found


BRANCHES = 16
"""How many nodes back the end of another branch is looked for."""
