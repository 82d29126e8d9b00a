"""The schedule graph: activities as nodes, finish-to-start dependencies as edges with a kind and evidence.

Nodes are numbered in a topological order (every edge goes from a smaller to a larger number), so
every pass over the graph is one loop. The edge table is the truth; networkx is a view of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum, StrEnum

from msgspec import Struct

from stepcrit.model.arrays import Int8Array, Int32Array, Int64Array


class NodeKind(IntEnum):
    """What a node is (methods B.2)."""

    HOST = 0  # a stretch of a host thread
    SYNC = 1  # the part of a blocking call after the awaited work ended
    KERNEL = 2
    COPY = 3
    COLLECTIVE = 4
    TRANSFER = 5  # the transfer part of a collective, in graphs over several ranks


class EdgeKind(IntEnum):
    """Why one activity waits for another (methods B.3)."""

    THREAD = 0  # E1 program order of one host thread
    LAUNCH = 1  # E2 launch call -> device activity
    STREAM = 2  # E3 order of one device queue
    SPLIT = 3  # head -> tail of one activity that a successor overlaps (B.5)
    EVENT = 4  # E4 recorded event -> waiting queue
    SYNC = 5  # E5, E6 device activity -> the host call that waited for it
    HANDOVER = 6  # E7 host thread -> host thread
    BACKPRESSURE = 7  # E9 finished activity -> launch call that found the queue full
    PEER = 8  # E8 another rank's arrival at a collective


class Evidence(IntEnum):
    """How sure an edge is; smaller is better (methods 0.3)."""

    ID = 0  # equal correlation or flow id
    SYNC = 1  # a sync record names both ends
    ORDER = 2  # program order, queue order, thread hand-over
    TIMING = 3  # coincidence in time only
    ASSUMED = 4  # a rule the user gave


class Note(StrEnum):
    """What building the graph dropped, clamped, split or inferred; the value is the sentence for users."""

    NO_LAUNCH = "device activity without a launch in the trace"
    BEFORE_LAUNCH = "device activity starts before its launch: launch edge dropped"
    JUST_BEFORE_LAUNCH = "device activity starts just before its launch: launch point clamped"
    SPLIT = "queue successor starts before its predecessor ends: predecessor split"
    LATE_RECORD = "event wait names a record issued after it: rejected"
    EVENT_TOO_LATE = "event wait ends after what waited for it: edge dropped"
    WAIT_TOO_LATE = "awaited work ends after the call that waited for it: edge dropped"
    WAIT_JUST_LATE = "awaited work ends just after the call that waited for it: clamped"
    NO_HANDOVER = "backward pass whose calling thread does not wait: hand-over by timing only"
    TIMING = "dependency inferred from timing only"
    CYCLE = "cycle broken at its worst edge"
    INFERRED_WAIT = "event wait inferred from a wait call and timing"
    NO_LAUNCH_FLOOR = "floor of launch edges: fewer than 20 samples, taken as 0"
    NO_STREAM_FLOOR = "floor of stream edges: fewer than 20 samples, taken as 0"
    NO_THREAD = "launch from a thread that takes no time: launch edge left out"


class Graph(Struct, frozen=True, eq=False, weakref=True):
    """Node columns (length n) and edge columns (length m), all read-only.

    Attributes:
        lane: lane of the node, an index into the event table's lanes (or the caller's own).
        start_ns, dur_ns: observed start and duration.
        kind: NodeKind.
        row: event that owns the node: the device event, the blocking call, or the innermost open
            event with the largest part of a host stretch; -1 when no event was open.
        part: 0 a whole activity, 1 its head, 2 and on its later parts (B.5).
        src, dst: edges, sorted by (dst, src); src < dst always.
        edge_kind, evidence: EdgeKind and Evidence of each edge.
        dst_ptr: edges into node v are dst_ptr[v]:dst_ptr[v+1].
        t0_ns: the virtual source: nodes without predecessor wait for it.
        notes: how often building dropped, clamped or split something, by reason.
    """

    lane: Int32Array
    start_ns: Int64Array
    dur_ns: Int64Array
    kind: Int8Array
    row: Int64Array
    part: Int32Array
    src: Int64Array
    dst: Int64Array
    edge_kind: Int8Array
    evidence: Int8Array
    dst_ptr: Int64Array
    t0_ns: int
    notes: Mapping[str, int]

    def __len__(self) -> int:
        return len(self.start_ns)

    @property
    def end_ns(self) -> Int64Array:
        """Observed end of each node."""
        ends: Int64Array = self.start_ns + self.dur_ns
        return ends
