"""Names to group all time of a capture by: operators, kernels, classes, modules, collectives, lines of code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from msgspec import Struct

from stepcrit.errors import UsageError
from stepcrit.graph.segments import Segments
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.link.collectives import link_collectives
from stepcrit.link.source import frame_label, user_line
from stepcrit.model.arrays import NONE, Int32Array, Int64Array
from stepcrit.model.classes import WorkClass
from stepcrit.model.events import DEVICE_KINDS

By = Literal["op", "kernel", "class", "module", "collective", "line"]

ORPHAN = "(launched outside the trace)"
UNATTRIBUTED = "(unattributed)"
UNTRACKED = "(untracked)"
HOST = "(host)"
OTHER_WORK = "(no collective)"


class Groups(Struct, frozen=True, eq=False):
    """Per event row, an index into `labels`; the last labels are not from the trace.

    Attributes:
        by: what the labels are.
        labels: one a group.
        of_row: group of each event row.
        untracked: group of host time in which no event was open.
        returns: group of the returns of blocking calls, -1 where they belong to their call's group.
        gap_of_class: group of each class of gaps.
    """

    by: By
    labels: list[str]
    of_row: Int32Array
    untracked: int
    returns: int
    gap_of_class: dict[int, int]

    def of_segments(self, segments: Segments) -> Int64Array:
        """The group of each stretch of a path: of its owner's row, or of its kind of gap."""
        key = np.where(segments.row >= 0, self.of_row[segments.row], self.untracked)
        if self.returns >= 0:
            key = np.where(segments.work == WorkClass.SYNC, self.returns, key)
        gaps = np.zeros(max(WorkClass) + 1, np.int64)
        gaps[list(self.gap_of_class)] = list(self.gap_of_class.values())
        return np.where(segments.is_gap, gaps[segments.work], key)


def group(view: StepGraph, by: By) -> Groups:
    """A label for every row, and for what is no row.

    Raises:
        UsageError: the trace does not record what to group by.
    """
    label_of: dict[By, Callable[[StepGraph], tuple[list[str], Int32Array]]] = {
        "op": _by_op,
        "kernel": _by_kernel,
        "class": _by_class,
        "module": _by_module,
        "collective": _by_collective,
        "line": _by_line,
    }
    labels, of_row = label_of[by](view)
    untracked = len(labels)
    labels.append(UNTRACKED)
    gaps = {}
    for work in WorkClass:
        if work.group == "gap":
            gaps[int(work)] = len(labels)
            labels.append(f"({work.label})")
    return Groups(by, labels, of_row, untracked, int(WorkClass.SYNC) if by == "class" else NONE, gaps)


def _by_op(view: StepGraph) -> tuple[list[str], Int32Array]:
    """Device rows under the operator that launched them, host rows under their own name."""
    events, links = view.trace.events, view.links
    labels = [*events.names, ORPHAN, UNATTRIBUTED]
    orphan, unattributed = len(events.names), len(events.names) + 1
    key = events.name.copy()
    device = np.flatnonzero(events.is_kind(*DEVICE_KINDS))
    op = links.op[device]
    by_op = np.where(op >= 0, events.name[op], unattributed)
    key[device] = np.where(links.launch[device] >= 0, by_op, orphan)
    return labels, key


def _by_kernel(view: StepGraph) -> tuple[list[str], Int32Array]:
    """Device rows under their own name; all host time in one row."""
    events = view.trace.events
    device = events.is_kind(*DEVICE_KINDS)
    return [*events.names, HOST], np.where(device, events.name, len(events.names)).astype(np.int32)


def _by_class(view: StepGraph) -> tuple[list[str], Int32Array]:
    """Rows under their class of work."""
    labels = ["" for _ in range(max(WorkClass) + 1)]
    for work in WorkClass:
        labels[work] = work.label
    return labels, view.links.work.astype(np.int32)


def _by_module(view: StepGraph) -> tuple[list[str], Int32Array]:
    """Rows under the module that was running."""
    links = view.links
    if not links.module_names:
        raise UsageError(
            "no modules in this trace: no nn.Module frames and no annotations of the user's own",
            do="record with with_stack=True, or put record_function(name) around the parts of the model",
        )
    none = len(links.module_names)
    key = np.where(links.module >= 0, links.module, none).astype(np.int32)
    return [*links.module_names, "(no module)"], key


def _by_collective(view: StepGraph) -> tuple[list[str], Int32Array]:
    """Communication on the device under its operation and process group; where none is known, its kernel."""
    events = view.trace.events
    collectives = link_collectives(events, view.links)
    if not collectives:
        raise UsageError("no collectives on the device in this trace", do="group by op, kernel or class")
    named = {
        c.row: f"{c.name} in group {c.group}" if c.name and c.group else c.name or events.name_of(c.row)
        for c in collectives
    }
    labels = sorted(set(named.values()))
    number = {label: i for i, label in enumerate(labels)}
    key = np.full(len(events), len(labels), np.int32)
    for row, label in named.items():
        key[row] = number[label]
    return [*labels, OTHER_WORK], key


def _by_line(view: StepGraph) -> tuple[list[str], Int32Array]:
    """Rows under the innermost line of the user's own code."""
    events, links = view.trace.events, view.links
    if (links.frame >= 0).any():
        used, back = np.unique(events.name[links.frame[links.frame >= 0]], return_inverse=True)
        key = np.full(len(events), len(used), np.int32)
        key[links.frame >= 0] = back
        return [*(frame_label(events.names[i]) for i in used.tolist()), "(no line)"], key
    if (events.stack >= 0).any() and view.trace.events.stacks:
        return _by_call_stack(view)
    raise UsageError("no Python lines in this trace", do="record with with_stack=True")


def _by_call_stack(view: StepGraph) -> tuple[list[str], Int32Array]:
    """Rows under the innermost frame of the user's own code in the operator's recorded call stack."""
    events, links = view.trace.events, view.links
    stack = np.where(links.op >= 0, events.stack[np.maximum(links.op, 0)], NONE)
    none = len(events.stacks)
    lines = [user_line(text) or "(no line)" for text in events.stacks]
    labels = sorted({*lines, "(no line)"})
    key = np.array([*(labels.index(line) for line in lines), labels.index("(no line)")], np.int32)
    return labels, key[np.where(stack >= 0, stack, none)]
