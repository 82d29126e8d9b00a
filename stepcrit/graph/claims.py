"""What rules find, before there are nodes: dependencies between rows and instants of threads.

A claim names its ends by event rows and by (lane, instant); `build` turns instants into cuts of the
thread and rows into nodes. So a rule needs to know nothing about how threads are cut.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np
from msgspec import Struct, field

from stepcrit.model.arrays import BoolArray, Int64Array
from stepcrit.model.graph import EdgeKind, Evidence


class Table:
    """Claims of a kind of which there is one for each activity: columns that rules add many rows to at once."""

    def __init__(self, *names: str) -> None:
        self._names = names
        self._added: list[Int64Array] = [np.empty((len(names), 0), np.int64)]

    def add(self, *columns: int | Int64Array) -> None:
        """Rows; a number stands for a column that is the same in each of them."""
        self._added.append(np.array(np.broadcast_arrays(*map(np.atleast_1d, columns)), np.int64))

    def keep(self, rows: BoolArray) -> None:
        """Leave out all other rows."""
        self._added = [self.all[:, rows]]

    @property
    def all(self) -> Int64Array:
        """One column below the other, in the order of the names."""
        if len(self._added) > 1:
            self._added = [np.concatenate(self._added, axis=1)]
        return self._added[0]

    def __getitem__(self, name: str) -> Int64Array:
        column: Int64Array = self.all[self._names.index(name)]
        return column


class WaitClaim(NamedTuple):
    """Host call `call` was blocked from `from_ns` until device activity `src` ended, at `until_ns`."""

    src: int
    call: int
    from_ns: int
    until_ns: int
    kind: EdgeKind
    evidence: Evidence


class ReleaseClaim(NamedTuple):
    """The thread `lane` could not go on past `at_ns` before device activity `src` had ended; it did not block."""

    src: int
    lane: int
    at_ns: int
    kind: EdgeKind
    evidence: Evidence


class HandoverClaim(NamedTuple):
    """The thread `dst_lane` was idle from `idle_ns` to `dst_ns`, until `src_lane` had reached `src_ns`."""

    src_lane: int
    src_ns: int
    dst_lane: int
    idle_ns: int
    dst_ns: int
    evidence: Evidence


class Claims(Struct):
    """Everything the rules have found so far; each rule adds to it.

    Attributes:
        device: device activity `src` must end before device activity `dst` starts.
        launch: device activity `row` could not start before `lane` reached `at_ns`.
        wait, release, handover: see there.
        notes: how often something was dropped, clamped or inferred.
    """

    device: Table = field(default_factory=lambda: Table("src", "dst", "kind", "evidence"))
    launch: Table = field(default_factory=lambda: Table("row", "lane", "at_ns"))
    wait: list[WaitClaim] = field(default_factory=list)
    release: list[ReleaseClaim] = field(default_factory=list)
    handover: list[HandoverClaim] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)
