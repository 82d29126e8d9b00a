"""E3: the activities of one device queue run in the order in which they start."""

from __future__ import annotations

from bisect import bisect_left

from stepcrit.graph.claims import Claims, DeviceClaim
from stepcrit.graph.scene import Scene
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
    kind, order = EdgeKind.STREAM, Evidence.ORDER
    for queue in scene.queues.values():
        rows = queue.rows.tolist()
        start, end = (c[queue.rows].tolist() for c in (scene.events.start_ns, scene.events.end_ns))
        for i, row in enumerate(rows[1:], 1):
            before = rows[i - 1]
            if end[i - 1] <= start[i]:
                claims.device.append(DeviceClaim(before, row, kind, order))
                continue
            other = _of_its_branch(scene, rows, i)
            if other is None:
                claims.notes[Note.SPLIT] += 1
                claims.device.append(DeviceClaim(before, row, kind, order))
            else:
                claims.notes[Note.TIMING] += 1
                claims.device.append(DeviceClaim(other, row, kind, Evidence.TIMING))
            later = bisect_left(start, end[i - 1], i + 1)  # the first that starts when the tail has ended
            if later < len(rows):
                claims.device.append(DeviceClaim(before, rows[later], kind, order))


def _of_its_branch(scene: Scene, rows: list[int], i: int) -> int | None:
    """The node of the same graph whose end explains the start of an overlapping node; None if none does."""
    events, row = scene.events, rows[i]
    start = int(events.start_ns[row])
    if scene.rules.strict or int(events.end_ns[rows[i - 1]]) - start <= DEPENDENT_LAUNCH_NS:
        return None
    found = None
    for other in rows[max(0, i - BRANCHES) : i]:
        ended = int(events.end_ns[other])
        same_graph = events.correlation[other] == events.correlation[row] >= 0
        if same_graph and start - NODE_GAP_NS <= ended <= start:
            found = other if found is None or ended >= events.end_ns[found] else found
    return found


BRANCHES = 16
"""How many nodes back the end of another branch is looked for."""
