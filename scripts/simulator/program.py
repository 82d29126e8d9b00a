"""What a simulated job does: actions of host threads, and the machine they run on.

Every action that takes time has a `key`. Random variation is drawn from the key, so a changed program
meets the same luck in everything the change did not touch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Machine:
    """The delays every action is subject to."""

    launch_latency_ns: int = 4_000  # submission to earliest start
    stream_gap_ns: int = 1_000  # end of one operation to start of the next on a stream
    node_gap_ns: int = 700  # the same between nodes of one graph
    event_latency_ns: int = 1_200  # completed event to start on the waiting stream
    sync_return_ns: int = 5_000  # end of the awaited operation to return of the waiting call
    handover_ns: int = 8_000  # one thread wakes another
    queue_depth: int = 1_023  # operations a stream takes before launch calls block
    submit_percent: int = 100  # share of a launch call that lies before the submission
    jitter_permille: int = 0


@dataclass(frozen=True, slots=True)
class Collective:
    """One collective call; the ranks meet by `key`, and the data moves once all are there."""

    key: str
    name: str
    elements: int
    sequence: int
    ranks: int


@dataclass(frozen=True, slots=True)
class DeviceOp:
    """A kernel, copy or memset; for a collective `ns` is the transfer alone, without waiting."""

    name: str
    ns: int
    category: str = "kernel"
    bytes: int = 0
    pdl_ns: int = 0  # how long before its predecessor's end it may start
    collective: Collective | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """An operation of a device graph and the indices of the nodes it needs."""

    op: DeviceOp
    after: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Open:
    """A host operator or annotation begins."""

    name: str
    category: str = "cpu_op"
    sequence: int | None = None
    backward: bool = False
    collective: Collective | None = None


@dataclass(frozen=True, slots=True)
class Close:
    """The innermost open operator or annotation ends."""


@dataclass(frozen=True, slots=True)
class Work:
    """The thread computes; `owner` is the innermost open name, empty for plain Python."""

    key: str
    ns: int
    owner: str


@dataclass(frozen=True, slots=True)
class Launch:
    """A runtime call that submits one operation, or a graph of them, to a stream."""

    key: str
    nodes: tuple[Node, ...]
    stream: int
    cost_ns: int
    call: str
    step: int
    blocking: bool = False  # the call returns only after the operation (copy to pageable memory)


@dataclass(frozen=True, slots=True)
class Record:
    """`cudaEventRecord`."""

    key: str
    event: str
    stream: int
    cost_ns: int


@dataclass(frozen=True, slots=True)
class WaitEvent:
    """`cudaStreamWaitEvent`: waits for the latest record at call time."""

    key: str
    event: str
    stream: int
    cost_ns: int


@dataclass(frozen=True, slots=True)
class Sync:
    """A host wait: for one stream, for one event, or (both None) for the whole device."""

    key: str
    call: str
    cost_ns: int
    stream: int | None = None
    event: str | None = None


@dataclass(frozen=True, slots=True)
class Post:
    """Wake the thread that awaits `flag`."""

    flag: str


@dataclass(frozen=True, slots=True)
class Await:
    """Sleep until `flag` is posted."""

    flag: str


@dataclass(frozen=True, slots=True)
class NextBatch:
    """Sleep until a loader worker has produced batch `index`."""

    index: int


Action = Open | Close | Work | Launch | Record | WaitEvent | Sync | Post | Await | NextBatch


@dataclass(frozen=True, slots=True)
class Loader:
    """Worker processes that produce batches ahead of need; no trace shows them."""

    workers: int
    prefetch: int  # batches each worker may be ahead
    produce_ns: int


@dataclass(frozen=True, slots=True)
class Rank:
    """One process with its threads and its device."""

    threads: Mapping[str, tuple[Action, ...]]
    loader: Loader | None = None


@dataclass(frozen=True, slots=True)
class Recording:
    """What the simulated profiler keeps."""

    sync_records: bool = False
    flows: bool = True
    unrecorded_steps: int = 0  # steps that ran before the window opened


@dataclass(frozen=True, slots=True)
class Program:
    """A whole job, ready to run."""

    ranks: tuple[Rank, ...]
    machine: Machine = field(default_factory=Machine)
    recording: Recording = field(default_factory=Recording)
    seed: int = 0
