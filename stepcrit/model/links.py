"""What linking adds to the event table: launches, nesting, and threads cut into owned pieces."""

from __future__ import annotations

from msgspec import Struct

from stepcrit.model.arrays import BoolArray, Int8Array, Int32Array, Int64Array
from stepcrit.model.classes import RulesUsed, WorkClass


class Pieces(Struct, frozen=True, eq=False):
    """Host threads as tiles: each stretch has one owner, the innermost open event.

    Pieces of a lane touch and never overlap; they cover the lane from its first to its last event.

    Attributes:
        start_ns, end_ns: never empty; pieces are sorted by (lane, start).
        owner: event row, or -1 where no event is open (`untracked`).
        lane_ptr: pieces of lane i, an index into the event table's lanes, are lane_ptr[i]:lane_ptr[i+1].
    """

    start_ns: Int64Array
    end_ns: Int64Array
    owner: Int32Array
    lane_ptr: Int64Array

    def __len__(self) -> int:
        return len(self.start_ns)


class Links(Struct, frozen=True, eq=False, weakref=True):
    """Per event row, unless said otherwise; -1 where there is none.

    Attributes:
        launch: the runtime call that launched this device activity.
        parent: the innermost host range (op, annotation, call) open at this row's start, same thread.
        depth: nesting depth among host ranges, 0 at the top.
        op: the innermost operator at this host row, itself included; for a device row, its launch's.
        work: WorkClass of the row.
        in_optimizer: the Optimizer.step range around a host row, or around a device row's launch.
        frame: the innermost Python frame of the user's own code around the row (or its launch).
        module: index into `module_names`, for the row (or its launch).
        module_names: module labels, from nn.Module frames, hierarchies or annotations.
        pieces: the host threads, tiled.
        issued: launched device rows in the order of their launch calls (not one per row).
        issued_ns: when each of `issued` was launched.
        crossing_count: host ranges that end after the range around them does.
        module_source: where module labels come from: "nn.Module frames", "Module Hierarchy",
            "annotations" or "".
        rules_used: what the user's own rules for classes decided.
    """

    launch: Int32Array
    parent: Int32Array
    depth: Int32Array
    op: Int32Array
    work: Int8Array
    in_optimizer: Int32Array
    frame: Int32Array
    module: Int32Array
    module_names: tuple[str, ...]
    pieces: Pieces
    issued: Int64Array
    issued_ns: Int64Array
    crossing_count: int
    module_source: str
    rules_used: RulesUsed

    def is_class(self, *classes: WorkClass) -> BoolArray:
        """A mask of the rows of any of `classes`."""
        found: BoolArray = self.work == int(classes[0])  # as in EventTable.is_kind
        for each in classes[1:]:
            found |= self.work == int(each)
        return found
