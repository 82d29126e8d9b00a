"""E3: the activities of one device queue run in the order in which they start."""

from __future__ import annotations

from stepcrit.graph.claims import Claims, DeviceClaim
from stepcrit.graph.scene import Scene
from stepcrit.model.arrays import Int64Array
from stepcrit.model.graph import EdgeKind, Evidence, Note


def stream_order(scene: Scene, claims: Claims) -> None:
    """Each activity waits for the one before it in its queue.

    Where a successor starts before its predecessor ends (programmatic dependent launch, branches of
    one graph, rounding), `build` splits the predecessor there; and what the overlapped tail still
    delays is the first later activity that starts after the tail's end.
    """
    start, end = scene.events.start_ns, scene.events.end_ns
    for queue in scene.queues.values():
        rows = queue.rows.tolist()
        for i, row in enumerate(rows[1:], 1):
            before = rows[i - 1]
            claims.device.append(DeviceClaim(before, row, EdgeKind.STREAM, Evidence.ORDER))
            if end[before] > start[row]:
                claims.notes[Note.SPLIT] += 1
                later = _first_after(rows, i + 1, start, end[before])
                if later is not None:
                    claims.device.append(DeviceClaim(before, later, EdgeKind.STREAM, Evidence.ORDER))


def _first_after(rows: list[int], i: int, start: Int64Array, end_ns: int) -> int | None:
    """The first row from position `i` on that starts at or after `end_ns`."""
    while i < len(rows) and start[rows[i]] < end_ns:
        i += 1
    return rows[i] if i < len(rows) else None
