"""What rules find, before there are nodes: dependencies between rows and instants of threads.

A claim names its ends by event rows and by (lane, instant); `build` turns instants into cuts of the
thread and rows into nodes. So a rule needs to know nothing about how threads are cut.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from msgspec import Struct, field

from stepcrit.model.graph import EdgeKind, Evidence


class DeviceClaim(NamedTuple):
    """Device activity `src` must end before device activity `dst` starts."""

    src: int
    dst: int
    kind: EdgeKind
    evidence: Evidence


class LaunchClaim(NamedTuple):
    """Device activity `row` could not start before `lane` reached `at_ns`."""

    row: int
    lane: int
    at_ns: int


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
    """Everything the rules have found so far; each rule adds to it."""

    device: list[DeviceClaim] = field(default_factory=list)
    launch: list[LaunchClaim] = field(default_factory=list)
    wait: list[WaitClaim] = field(default_factory=list)
    release: list[ReleaseClaim] = field(default_factory=list)
    handover: list[HandoverClaim] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)
