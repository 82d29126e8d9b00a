"""Work classes: the words in which a step's time is told. Each piece of time has exactly one."""

from __future__ import annotations

from enum import IntEnum

from msgspec import Struct


class WorkClass(IntEnum):
    """Device work, host work, and the gaps between them; `label` is the word users see and select by."""

    GEMM = 0
    CONV = 1
    ATTENTION = 2
    NORM = 3
    REDUCTION = 4
    ELEMENTWISE = 5
    EMBEDDING = 6
    COMPILED = 7
    OPTIMIZER = 8
    KERNEL = 9
    COMM = 10
    MEMCPY = 11
    MEMSET = 12
    INPUT = 20
    OPTIMIZER_HOST = 21
    COMM_HOST = 22
    LAUNCH = 23
    SYNC = 24
    HOST = 25
    UNTRACKED = 26
    RUNTIME = 27
    LAUNCH_LATENCY = 30
    STREAM_GAP = 31
    EVENT_GAP = 32
    SYNC_RETURN = 33
    HANDOVER = 34
    UNEXPLAINED = 35
    BEFORE_FIRST = 36

    @property
    def label(self) -> str:
        """The class's name for people and selectors."""
        return _LABELS[self]

    @property
    def group(self) -> str:
        """compute, comm, copy, host or gap."""
        return _GROUPS[self]


_LABELS = {
    WorkClass.GEMM: "gemm",
    WorkClass.CONV: "conv",
    WorkClass.ATTENTION: "attention",
    WorkClass.NORM: "norm",
    WorkClass.REDUCTION: "reduction",
    WorkClass.ELEMENTWISE: "elementwise",
    WorkClass.EMBEDDING: "embedding",
    WorkClass.COMPILED: "compiled",
    WorkClass.OPTIMIZER: "optimizer",
    WorkClass.KERNEL: "other kernel",
    WorkClass.COMM: "comm",
    WorkClass.MEMCPY: "memcpy",
    WorkClass.MEMSET: "memset",
    WorkClass.INPUT: "input",
    WorkClass.OPTIMIZER_HOST: "optimizer (host)",
    WorkClass.COMM_HOST: "comm (host)",
    WorkClass.LAUNCH: "launch",
    WorkClass.SYNC: "sync",
    WorkClass.HOST: "host op",
    WorkClass.UNTRACKED: "untracked",
    WorkClass.RUNTIME: "runtime call",
    WorkClass.LAUNCH_LATENCY: "launch latency",
    WorkClass.STREAM_GAP: "stream gap",
    WorkClass.EVENT_GAP: "event gap",
    WorkClass.SYNC_RETURN: "sync return",
    WorkClass.HANDOVER: "hand-over",
    WorkClass.UNEXPLAINED: "unexplained",
    WorkClass.BEFORE_FIRST: "before first activity",
}

_GROUPS = {
    c: (
        "compute"
        if c < WorkClass.COMM
        else "comm"
        if c == WorkClass.COMM
        else "copy"
        if c < WorkClass.INPUT
        else "host"
        if c < WorkClass.LAUNCH_LATENCY
        else "gap"
    )
    for c in WorkClass
}


class ClassRule(Struct, frozen=True):
    """Names of a side that a pattern means have a class.

    Attributes:
        side: "kernels" or "host".
        work: the class.
        pattern: an exact name or glob, or "re:" and a regular expression.
    """

    side: str
    work: WorkClass
    pattern: str


class RulesUsed(Struct, frozen=True):
    """What rules did to one trace.

    Attributes:
        rules: the rules, as given.
        decided_counts: per rule, how many names have its class because of it.
        matched_counts: per rule, how many names it is the first to mean; metadata may decide their rows.
    """

    rules: tuple[ClassRule, ...]
    decided_counts: tuple[int, ...]
    matched_counts: tuple[int, ...]
