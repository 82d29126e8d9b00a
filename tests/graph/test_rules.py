"""Each dependency rule on a drawn trace in which it alone decides the path; times in µs.

In the drawings a letter pair like `la` is the call that launches activity `a`, s7 and s20 are device
queues, and a bar of dots is a wait. `~x` in a path is the gap in front of x.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from stepcrit.graph import rules as rules_module
from stepcrit.graph.build import TraceGraph, build_graph
from stepcrit.graph.path import PieceKind, critical_path
from stepcrit.graph.rules import DEVICE_RULES, RULES, Rule, apply_rules
from stepcrit.graph.rules.backpressure import FULL_DEPTH
from stepcrit.graph.scene import Rules, survey
from stepcrit.graph.schedule import check_replay, lags
from stepcrit.link.linker import link
from stepcrit.model.events import EventTable
from stepcrit.model.graph import EdgeKind, Evidence
from tests.builders import Event, event, trace

Path = list[tuple[str, int, int]]
BWD = "autograd::engine::evaluate_function: MmBackward0"
LAUNCH = "cudaLaunchKernel"
TO_PAGEABLE = "Memcpy DtoH (Device -> Pageable)"
TO_PINNED = "Memcpy DtoH (Device -> Pinned)"
FROM_PAGEABLE = "Memcpy HtoD (Pageable -> Device)"


def op(name: str, start: int, end: int, tid: int = 1) -> Event:
    return event("cpu_op", name, (start, end), (1, tid))


def note(name: str, start: int, end: int, tid: int = 1) -> Event:
    return event("user_annotation", name, (start, end), (1, tid))


def call(name: str, start: int, end: int, corr: int, tid: int = 1) -> Event:
    return event("cuda_runtime", name, (start, end), (1, tid), correlation=corr)


def kernel(name: str, start: int, end: int, corr: int, *, stream: int = 7, device: int = 0) -> Event:
    return event("kernel", name, (start, end), (device, stream), correlation=corr, stream=stream)


def copy(name: str, start: int, end: int, corr: int, stream: int = 7) -> Event:
    return event("gpu_memcpy", name, (start, end), (0, stream), correlation=corr, stream=stream)


def record(kind: str, span: tuple[int, int], corr: int, **args: Any) -> Event:
    args = {"correlation": corr, "device": 0, **args, "cuda_sync_kind": kind}
    return event("cuda_sync", kind, span, (0, 7), **args)


@dataclass(frozen=True)
class Case:
    """A drawn trace, the activity that its boundary requires, and its path with and without the rule."""

    title: str
    events: list[Event]
    path: Path
    without: Path
    sink: str = "b"
    notes: dict[str, int] = field(default_factory=dict)


class Drawn:
    """A drawn trace, built at full detail."""

    def __init__(self, events: list[Event], sink: str = "b", rules: Rules | None = None) -> None:
        raw = trace(events)
        self.events: EventTable = raw.events
        self.built: TraceGraph = build_graph(raw.events, link(raw), rules=rules, full=True)
        self.graph = self.built.graph
        self.sinks = self.built.parts_of(self.rows(sink))
        for policy in ("join", "edge"):
            check_replay(self.graph, lags(self.graph, self.built.arrivals, policy))

    def rows(self, name: str) -> list[int]:
        """Event rows of a name."""
        return [row for row in range(len(self.events)) if self.events.name_of(row) == name]

    @property
    def path(self) -> Path:
        """The critical path; neighbouring stretches of one name are one, and empty ones are left out."""
        found: Path = []
        path = critical_path(self.graph, self.built.arrivals, self.sinks)
        columns = (path.kind.tolist(), path.node.tolist(), path.start_ns.tolist(), path.end_ns.tolist())
        for kind, node, start, end in reversed(list(zip(*columns, strict=True))):
            if start == end:
                continue
            name = "~" + found[-1][0] if kind == PieceKind.GAP else self.name(node)
            after = found.pop()[2] if found and found[-1][0] == name else end // 1000
            found.append((name, start // 1000, after))
        return found[::-1]

    def name(self, node: int) -> str:
        """The name of the node's owner."""
        row = int(self.graph.row[node])
        return self.events.name_of(row) if row >= 0 else "untracked"

    def edges(self, kind: EdgeKind) -> set[tuple[str, str, Evidence]]:
        """Edges of one kind: names of both ends, and the evidence."""
        return {
            (
                self.name(int(self.graph.src[e])),
                self.name(int(self.graph.dst[e])),
                Evidence(int(self.graph.evidence[e])),
            )
            for e in np.flatnonzero(self.graph.edge_kind == kind)
        }

    @property
    def notes(self) -> dict[str, int]:
        """What building counted."""
        return dict(self.graph.notes)


# --- one case or more for every rule -----------------------------------------------------------

# host  |op    la   lb          |        b was launched long before it starts: only the order of its
# s7          [a 5..25][b 26..40]        queue says why it waited
STREAM = Case(
    "an activity waits for the one before it in its queue",
    [op("op", 0, 30), call(LAUNCH, 2, 4, 1), call("lb", 6, 8, 2), kernel("a", 5, 25, 1), kernel("b", 26, 40, 2)],
    [("op", 0, 2), (LAUNCH, 2, 4), ("~a", 4, 5), ("a", 5, 25), ("~b", 25, 26), ("b", 26, 40)],
    [("op", 0, 2), (LAUNCH, 2, 4), ("op", 4, 6), ("lb", 6, 8), ("~b", 8, 26), ("b", 26, 40)],
)  # fmt: skip

# host  |op   la lh lb    |
# s7         [a 5............30]              h starts inside a: a is split at 10, and its tail, not h,
#                 [h 10..12]    [b 31..40]    is what b waits for
OVERLAP = Case(
    "the tail of an overlapped activity delays the first activity that starts after it",
    [
        op("op", 0, 30), call("la", 2, 4, 1), call("lh", 6, 7, 2), call("lb", 8, 9, 3),
        kernel("a", 5, 30, 1), kernel("h", 10, 12, 2), kernel("b", 31, 40, 3),
    ],
    [("op", 0, 2), ("la", 2, 4), ("~a", 4, 5), ("a", 5, 30), ("~b", 30, 31), ("b", 31, 40)],
    [("op", 0, 2), ("la", 2, 4), ("op", 4, 6), ("lh", 6, 7), ("op", 7, 8), ("lb", 8, 9), ("~b", 9, 31), ("b", 31, 40)],
    notes={"queue successor starts before its predecessor ends: predecessor split": 1},
)  # fmt: skip

# host  |op   la  rec wait lb   |          wait 3 makes s20 wait for the event recorded by call 2 on s7;
# s7         [a 5......50]                 b starts 10 after a ended: too late for the timing rule
# s20                         [b 60..70]
WAITING = [
    op("op", 0, 40), call("la", 2, 4, 1), call("cudaEventRecord", 5, 6, 2),
    call("cudaStreamWaitEvent", 7, 8, 3), call("lb", 9, 11, 4),
    kernel("a", 5, 50, 1), kernel("b", 60, 70, 4, stream=20),
]  # fmt: skip
BY_A: Path = [("op", 0, 2), ("la", 2, 4), ("~a", 4, 5), ("a", 5, 50), ("~b", 50, 60), ("b", 60, 70)]
BY_HOST: Path = [
    ("op", 0, 2), ("la", 2, 4), ("op", 4, 5), ("cudaEventRecord", 5, 6), ("op", 6, 7),
    ("cudaStreamWaitEvent", 7, 8), ("op", 8, 9), ("lb", 9, 11), ("~b", 11, 60), ("b", 60, 70),
]  # fmt: skip


def waits(**args: int) -> Event:
    """The record of the wait call above."""
    given = {"stream": 20, "wait_on_stream": 7, "wait_on_cuda_event_record_corr_id": 2, **args}
    return record("Stream Wait Event", (7, 8), 3, **given)


EVENT = Case("a recorded event makes a queue wait for another", [*WAITING, waits()], BY_A, BY_HOST)
EVENT_NO_RECORD = Case(
    "an event whose record is unknown stands for all that its queue was given before the wait",
    [*WAITING, waits(wait_on_cuda_event_record_corr_id=-1)], BY_A, BY_HOST,
)  # fmt: skip
EVENT_NO_QUEUE = Case(
    "an event of an unknown queue stands for the queue that was given work last before the record",
    [*WAITING, waits(wait_on_stream=-1)], BY_A, BY_HOST,
)  # fmt: skip
EVENT_UNSIGNED = Case(
    "an unknown queue may be spelled as the largest unsigned number",
    [*WAITING, waits(wait_on_stream=2**32 - 1)], BY_A, BY_HOST,
)  # fmt: skip
INFERRED = Case(
    "a wait call without records is taken to wait for what had just ended",
    WAITING,
    BY_A,
    BY_HOST,
    notes={"event wait inferred from a wait call and timing": 1},
)

# host  |op  la |                 without a launch nothing says why a did not start at 0
# s7            [a 7..20]
LAUNCHED = Case(
    "an activity waits for its launch call",
    [op("op", 0, 10), call("la", 2, 4, 1), kernel("b", 7, 20, 1)],
    [("op", 0, 2), ("la", 2, 4), ("~b", 4, 7), ("b", 7, 20)],
    [("~b", 0, 7), ("b", 7, 20)],
)  # fmt: skip


def copying(name: str, called: str, span: tuple[int, int], *, to: int) -> list[Event]:
    """A kernel, then a copy by a call that may block, then the launch of b."""
    # host  |op  la  cp 6........to  (op)  lb 50..52 |      the call covers its own copy: if it blocked, the
    # s7        [a 5....30][copy]                [b 55..60] copy is what it waited for
    return [
        op("op", 0, 60), call("la", 2, 4, 1), call(called, 6, to, 2), call("lb", 50, 52, 3),
        kernel("a", 5, 30, 1), copy(name, *span, 2), kernel("b", 55, 60, 3),
    ]  # fmt: skip


def blocked(name: str, called: str) -> Case:
    """Behind a kernel, a copy that blocks its call."""
    return Case(
        f"{called} of {name} behind a kernel returns after its copy",
        copying(name, called, (31, 33), to=36),
        [
            ("op", 0, 2), ("la", 2, 4), ("~a", 4, 5), ("a", 5, 30), (f"~{name}", 30, 31), (name, 31, 33),
            (called, 33, 36), ("op", 36, 50), ("lb", 50, 52), ("~b", 52, 55), ("b", 55, 60),
        ],
        [
            ("op", 0, 2), ("la", 2, 4), ("op", 4, 6), (called, 6, 36), ("op", 36, 50), ("lb", 50, 52),
            ("~b", 52, 55), ("b", 55, 60),
        ],
    )  # fmt: skip


def idle_copy(name: str, called: str) -> list[Event]:
    """The same on an idle queue: the copy starts inside its call."""
    # host  |op  cp 6..........36  (op)  lb 50..52 |
    # s7             [copy 20..30]             [b 55..60]
    return [
        op("op", 0, 60), call(called, 6, 36, 2), call("lb", 50, 52, 3),
        copy(name, 20, 30, 2), kernel("b", 55, 60, 3),
    ]  # fmt: skip


def idle_blocked(name: str, called: str) -> Case:
    """On an idle queue, a copy that blocks by specification: host time up to its start, then the copy."""
    before, after = [("op", 0, 6)], [("op", 36, 50), ("lb", 50, 52), ("~b", 52, 55), ("b", 55, 60)]
    return Case(
        f"{called} of {name} on an idle queue returns after its copy",
        idle_copy(name, called),
        [*before, (called, 6, 20), (name, 20, 30), (called, 30, 36), *after],
        [*before, (called, 6, 36), *after],
    )


def synced(called: str, *records: Event) -> Case:
    """A synchronize call behind one kernel."""
    # host  |op  la   sync 6..........35  (op)  lb 40..42 |
    # s7        [a 5..........33]                   [b 44..50]
    return Case(
        f"{called} returns when the kernel before it has ended, {len(records)} records",
        [
            op("op", 0, 60), call("la", 2, 4, 1), call(called, 6, 35, 2), call("lb", 40, 42, 3),
            kernel("a", 5, 33, 1), kernel("b", 44, 50, 3), *records,
        ],
        [
            ("op", 0, 2), ("la", 2, 4), ("~a", 4, 5), ("a", 5, 33), (called, 33, 35), ("op", 35, 40),
            ("lb", 40, 42), ("~b", 42, 44), ("b", 44, 50),
        ],
        [
            ("op", 0, 2), ("la", 2, 4), ("op", 4, 6), (called, 6, 35), ("op", 35, 40), ("lb", 40, 42),
            ("~b", 42, 44), ("b", 44, 50),
        ],
    )  # fmt: skip


def full_queue(count: int, *, until: int = 0) -> list[Event]:
    """`count` launches of kernels that take 100 each; the last call takes 190, or ends at `until`."""
    # host  |op  l1 l2 l3 ....... l960 1920.......2110 (op)  lb |    call i is [2i, 2i+1]; when l960 begins,
    # s7        [k1 4..104][k2 ..204] ... [k21 ..2104] ...      |    19 kernels have ended and 940 are waiting:
    # s20                                                 [b]        the queue is full until k21 retires
    last = 2 * count
    until = until or last + 190
    calls = [call(LAUNCH, 2 * i, 2 * i + 1, i) for i in range(1, count)]
    kernels = [kernel("k", 100 * i - 96, 100 * i + 4, i) for i in range(1, count + 1)]
    return [
        op("op", 0, until + 60), *calls, call("full", last, until, count), call("lb", until + 40, until + 42, count + 1),
        *kernels, kernel("b", until + 45, until + 90, count + 1, stream=20),
    ]  # fmt: skip


FULL = Case(
    "a launch call at a full queue returns when an earlier activity retires",
    full_queue(960),
    [
        ("op", 0, 2), (LAUNCH, 2, 3), ("~k", 3, 4), ("k", 4, 2104), ("full", 2104, 2110), ("op", 2110, 2150),
        ("lb", 2150, 2152), ("~b", 2152, 2155), ("b", 2155, 2200),
    ],
    [
        *[part for i in range(1, 960) for part in (("op", 2 * i - 1 - (i == 1), 2 * i), (LAUNCH, 2 * i, 2 * i + 1))],
        ("op", 1919, 1920), ("full", 1920, 2110), ("op", 2110, 2150), ("lb", 2150, 2152), ("~b", 2152, 2155),
        ("b", 2155, 2200),
    ],
)  # fmt: skip

# main  |fwd 0..10 |.......................| opt 62..80: lb 65..67 |     main has nothing open while
# grad                | bwd 14..60 |                                     the autograd thread runs
# s7                                                    [b 70..75]
END: Path = [("opt", 62, 65), ("lb", 65, 67), ("~b", 67, 70), ("b", 70, 75)]
OPT = [op("opt", 62, 80), call("lb", 65, 67, 1), kernel("b", 70, 75, 1)]
HANDOVER = Case(
    "the caller of backward waits for the autograd thread",
    [op("fwd", 0, 10), *OPT, op(BWD, 14, 60, tid=2)],
    [("fwd", 0, 10), (f"~{BWD}", 10, 14), (BWD, 14, 60), ("~opt", 60, 62), *END],
    [("fwd", 0, 10), ("untracked", 10, 62), *END],
)
# the same, and the autograd thread copies something back after its last backward operator: still the pass
HANDOVER_REST = Case(
    "what the autograd thread does after its last operator keeps the caller waiting",
    [op("fwd", 0, 10), *OPT, op(BWD, 14, 50, tid=2), op("back", 52, 60, tid=2)],
    [
        ("fwd", 0, 10),
        (f"~{BWD}", 10, 14),
        (BWD, 14, 50),
        ("untracked", 50, 52),
        ("back", 52, 60),
        ("~opt", 60, 62),
        *END,
    ],
    [("fwd", 0, 10), ("untracked", 10, 62), *END],
)
# the same inside an annotation of the caller: the stretch has an owner, and is waiting all the same
HANDOVER_OWNED = Case(
    "a caller that waits inside an annotation waits all the same",
    [note("train", 0, 82), op("fwd", 0, 10), *OPT, op(BWD, 14, 60, tid=2)],
    [("fwd", 0, 10), (f"~{BWD}", 10, 14), (BWD, 14, 60), ("~opt", 60, 62), *END],
    [("fwd", 0, 10), ("train", 10, 62), *END],
)
# main  |f1 0..10|.........|f2 40..50|..........| opt 80.. |     between the passes the autograd thread has
# grad             |b1 14..38|          |b2 54..78|              nothing to do: [38, 54] is no work of its own
HANDOVER_TWICE = Case(
    "the autograd thread's idle time between two passes is waiting",
    [
        op("f1", 0, 10), op("f2", 40, 50), op("opt", 80, 99), call("lb", 85, 87, 1), kernel("b", 90, 95, 1),
        op(BWD, 14, 38, tid=2), op(BWD, 54, 78, tid=2),
    ],
    [
        ("f1", 0, 10), (f"~{BWD}", 10, 14), (BWD, 14, 38), ("~f2", 38, 40), ("f2", 40, 50), (f"~{BWD}", 50, 54),
        (BWD, 54, 78), ("~opt", 78, 80), ("opt", 80, 85), ("lb", 85, 87), ("~b", 87, 90), ("b", 90, 95),
    ],
    [
        ("f1", 0, 10), ("untracked", 10, 40), ("f2", 40, 50), ("untracked", 50, 80), ("opt", 80, 85), ("lb", 85, 87),
        ("~b", 87, 90), ("b", 90, 95),
    ],
)  # fmt: skip

CASES: dict[str, list[Case]] = {
    "stream_order": [STREAM, OVERLAP],
    "event_waits": [EVENT, EVENT_NO_RECORD, EVENT_NO_QUEUE, EVENT_UNSIGNED],
    "inferred_event_waits": [INFERRED],
    "launch_points": [LAUNCHED],
    "copy_waits": [
        blocked(TO_PAGEABLE, "cudaMemcpyAsync"),
        blocked(FROM_PAGEABLE, "cudaMemcpyAsync"),
        blocked(TO_PINNED, "cudaMemcpyAsync_v3020"),
        idle_blocked(TO_PAGEABLE, "cudaMemcpyAsync"),
        idle_blocked("CopyDeviceToHost", "hipMemcpyWithStream"),
        idle_blocked(TO_PINNED, "cudaMemcpy"),
        idle_blocked(TO_PINNED, "cudaMemcpy_v3020_ptsz"),
        idle_blocked(FROM_PAGEABLE, "cudaMemcpy_ptds"),
        idle_blocked(TO_PINNED, "cuMemcpyDtoH_v2"),
    ],
    "sync_waits": [
        *map(
            synced,
            (
                "cudaDeviceSynchronize", "cudaDeviceSynchronize_v3020", "hipDeviceSynchronize", "cuCtxSynchronize",
                "cudaStreamSynchronize", "cudaStreamSynchronize_ptsz", "cudaStreamSynchronize_v7000_ptsz",
                "hipStreamSynchronize", "cuStreamSynchronize", "cudaEventSynchronize", "hipEventSynchronize",
                "cudaFree", "hipFree", "cudaFreeHost",
            ),
        ),
        synced("cudaStreamSynchronize", record("Stream Sync", (6, 35), 2, stream=7)),
        synced("cudaDeviceSynchronize", record("Context Sync", (6, 35), 2)),
        synced("cudaEventSynchronize", record("Event Sync", (6, 35), 2, wait_on_stream=7)),
        synced("cudaEventSynchronize", record("Event Sync", (6, 35), 2, wait_on_stream=-1)),
    ],
    "back_pressure": [FULL],
    "autograd_handover": [HANDOVER, HANDOVER_REST, HANDOVER_OWNED, HANDOVER_TWICE],
}  # fmt: skip
EACH = [
    pytest.param(rule, case, id=f"{rule}: {case.title}") for rule, cases in CASES.items() for case in cases
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_rule_has_a_drawn_trace_in_which_it_alone_decides(rule: Rule) -> None:
    assert CASES.get(rule.__name__), f"draw a trace for {rule.__name__} in CASES"


def test_no_case_is_drawn_for_a_rule_that_is_gone() -> None:
    assert set(CASES) == {rule.__name__ for rule in RULES}


@pytest.mark.parametrize(("rule", "case"), EACH)
def test_path_with_the_rule_is_the_hand_worked_one(rule: str, case: Case) -> None:
    drawn = Drawn(case.events, case.sink)
    assert drawn.path == case.path, rule
    assert drawn.notes == case.notes


@pytest.mark.parametrize(("rule", "case"), EACH)
def test_path_without_the_rule_is_another_one(rule: str, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules_module, "RULES", tuple(r for r in RULES if r.__name__ != rule))
    assert Drawn(case.events, case.sink).path == case.without
    assert case.without != case.path


# --- the order of the queue --------------------------------------------------------------------


def test_successor_of_an_overlapped_activity_waits_for_its_head_only() -> None:
    drawn = Drawn(OVERLAP.events, sink="h")
    assert drawn.path == [("op", 0, 2), ("la", 2, 4), ("~a", 4, 5), ("a", 5, 10), ("h", 10, 12)]
    parts = [
        (int(drawn.graph.part[v]), int(drawn.graph.dur_ns[v])) for v in drawn.built.parts_of(drawn.rows("a"))
    ]
    assert parts == [(1, 5_000), (2, 20_000)]
    assert drawn.edges(EdgeKind.SPLIT) == {("a", "a", Evidence.ORDER)}


def test_activities_that_start_together_are_both_free_of_each_other() -> None:
    events = [op("op", 0, 20), call("la", 2, 4, 1), kernel("a", 6, 20, 1), kernel("b", 6, 16, 1)]
    assert Drawn(events).path == [("op", 0, 2), ("la", 2, 4), ("~b", 4, 6), ("b", 6, 16)]


def test_queues_of_equal_number_on_two_devices_do_not_wait_for_each_other() -> None:
    events = [
        op("op", 0, 30), call(LAUNCH, 2, 4, 1), call("lb", 6, 8, 2), kernel("a", 5, 25, 1),
        kernel("b", 26, 40, 2, device=1),
    ]  # fmt: skip
    drawn = Drawn(events)
    assert drawn.edges(EdgeKind.STREAM) == set()
    assert drawn.path == STREAM.without


# --- recorded events ---------------------------------------------------------------------------


@pytest.mark.parametrize("number", [3, 5])
def test_event_recorded_no_earlier_than_its_wait_is_rejected_and_counted(number: int) -> None:
    drawn = Drawn([*WAITING, waits(wait_on_cuda_event_record_corr_id=number)])
    assert drawn.edges(EdgeKind.EVENT) == set()
    assert drawn.path == BY_HOST
    assert drawn.notes == {"event wait names a record issued after it: rejected": 1}


@pytest.mark.parametrize(
    ("args", "evidence"),
    [
        ({}, Evidence.SYNC),
        ({"wait_on_stream": -1}, Evidence.SYNC),
        ({"wait_on_cuda_event_record_corr_id": -1}, Evidence.ORDER),
        ({"wait_on_cuda_event_record_corr_id": -1, "wait_on_stream": -1}, Evidence.ORDER),
    ],
)
def test_event_wait_is_as_sure_as_its_record(args: dict[str, int], evidence: Evidence) -> None:
    assert Drawn([*WAITING, waits(**args)]).edges(EdgeKind.EVENT) == {("a", "b", evidence)}


def test_event_stands_for_work_issued_before_its_record_only() -> None:
    # host  |op   la  rec  lx   wait lb   |     x is issued to s7 between the record and the wait
    # s7         [a 5..50][x 50..58]
    # s20                              [b 60..70]
    moved = [e for e in WAITING if e["name"] not in ("cudaStreamWaitEvent", "lb")]
    events = [
        *moved, call("lx", 6, 7, 9), kernel("x", 50, 58, 9), call("cudaStreamWaitEvent", 7, 8, 13), call("lb", 9, 11, 4),
        record("Stream Wait Event", (7, 8), 13, stream=20, wait_on_stream=7, wait_on_cuda_event_record_corr_id=2),
    ]  # fmt: skip
    assert Drawn(events).edges(EdgeKind.EVENT) == {("a", "b", Evidence.SYNC)}


def test_record_call_that_was_not_recorded_is_placed_by_its_number() -> None:
    """Activities with a smaller correlation were issued before it, whatever the calls of records show."""
    events = [e for e in WAITING if e["name"] != "cudaEventRecord"]
    assert Drawn([*events, waits()]).edges(EdgeKind.EVENT) == {("a", "b", Evidence.SYNC)}


def test_event_wait_holds_the_first_activity_issued_after_it_and_no_earlier_one() -> None:
    events = [*WAITING, waits(), call("ly", 4, 5, 8), kernel("y", 40, 41, 8, stream=20)]
    assert Drawn(events).edges(EdgeKind.EVENT) == {("a", "b", Evidence.SYNC)}


@pytest.mark.parametrize(("late", "kept"), [(1, True), (2, False)])
def test_event_wait_that_contradicts_time_is_dropped_beyond_the_tolerance(late: int, kept: bool) -> None:  # noqa: FBT001
    """Within 1 µs the source is split; beyond it the edge is dropped and counted."""
    events = [e for e in WAITING if e["name"] != "a"]
    drawn = Drawn([*events, waits(), kernel("a", 5, 60 + late, 1)])
    if kept:
        assert drawn.edges(EdgeKind.EVENT) == {("a", "b", Evidence.SYNC)}
        assert drawn.path == [("op", 0, 2), ("la", 2, 4), ("~a", 4, 5), ("a", 5, 60), ("b", 60, 70)]
    else:
        assert drawn.path == BY_HOST
        assert drawn.notes == {"event wait ends after what waited for it: edge dropped": 1}


# --- inferred event waits and the timing rule --------------------------------------------------


def test_inferred_wait_is_timing_only_and_strict_does_without() -> None:
    assert Drawn(WAITING).edges(EdgeKind.EVENT) == {("a", "b", Evidence.TIMING)}
    assert Drawn(WAITING, rules=Rules(strict=True)).path == BY_HOST


def test_any_record_in_the_trace_ends_inferring() -> None:
    events = [*WAITING, record("Stream Sync", (90, 91), 99, stream=7)]
    assert Drawn(events).edges(EdgeKind.EVENT) == set()


def test_inferred_source_was_issued_before_the_wait_call() -> None:
    """What the thread gives to another queue only after the wait cannot be what it waits for."""
    events = [e for e in WAITING if e["name"] not in ("la", "a")]
    late = [*events, call("la", 12, 13, 1), kernel("a", 14, 50, 1)]
    assert Drawn(late).edges(EdgeKind.EVENT) == set()


def bystander(copied: tuple[int, int]) -> list[Event]:
    """A wait of b for a, which ended 4 before it; c on a third queue was issued earlier and ended over `copied`."""
    # host |lc  la  wait lb |
    # s7        [a 5..........51]
    # s22  [c copied............]
    # s20                          [b 55..60]
    return [
        op("op", 0, 40), call("lc", 1, 2, 7), call("la", 2, 4, 1), call("cudaStreamWaitEvent", 8, 9, 3),
        call("lb", 9, 11, 4),
        copy("c", *copied, 7, 22), kernel("a", 5, 51, 1), kernel("b", 55, 60, 4, stream=20),
    ]  # fmt: skip


@pytest.mark.parametrize("ended", [50, 53])
def test_wait_means_what_was_issued_last_not_what_happened_to_end_last(ended: int) -> None:
    drawn = Drawn(bystander((3, ended)))
    assert drawn.edges(EdgeKind.EVENT) == {("a", "b", Evidence.TIMING)}


def test_work_issued_after_the_wait_call_does_not_hide_what_was_issued_before_it() -> None:
    """A short kernel goes to a's queue after the wait, and also ends before b starts."""
    after = [call("ld", 12, 13, 8), kernel("d", 52, 53, 8)]
    drawn = Drawn([e for e in bystander((3, 50)) if e["name"] not in ("lc", "c")] + after)
    assert drawn.edges(EdgeKind.EVENT) == {("a", "b", Evidence.TIMING)}


@pytest.mark.parametrize(
    "called", ["cudaStreamWaitEvent_v3020", "cudaStreamWaitEvent_ptsz", "hipStreamWaitEvent"]
)
def test_wait_call_is_known_by_any_of_its_names(called: str) -> None:
    events = [{**e, "name": called} if e["name"] == "cudaStreamWaitEvent" else e for e in WAITING]
    assert Drawn(events).edges(EdgeKind.EVENT) == {("a", "b", Evidence.TIMING)}


def coincidence(*, gap: int, near: int) -> list[Event]:
    """Two queues without a wait call: b starts `gap` after its launch point, `near` after a ended."""
    # host  |op   la   lb 9..11 |
    # s7         [a 5.......11+gap-near]
    # s20                               [b 11+gap..]
    return [
        op("op", 0, 40), call("la", 2, 4, 1), call("lb", 9, 11, 4),
        kernel("a", 5, 11 + gap - near, 1), kernel("b", 11 + gap, 20 + gap, 4, stream=20),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("gap", "near", "applies"),
    [(41, 2, True), (41, 0, True), (41, 5, True), (21, 5, True), (41, 6, False), (20, 2, False)],
)
def test_timing_rule_needs_a_long_gap_and_a_near_end(gap: int, near: int, applies: bool) -> None:  # noqa: FBT001
    drawn = Drawn(coincidence(gap=gap, near=near))
    on_host: Path = [
        ("op", 0, 2),
        ("la", 2, 4),
        ("op", 4, 9),
        ("lb", 9, 11),
        ("~b", 11, 11 + gap),
        ("b", 11 + gap, 20 + gap),
    ]
    on_device: Path = [("op", 0, 2), ("la", 2, 4), ("~a", 4, 5), ("a", 5, 11 + gap - near)]
    on_device += [("~b", 11 + gap - near, 11 + gap)] if near else []
    assert drawn.path == ([*on_device, ("b", 11 + gap, 20 + gap)] if applies else on_host)
    assert drawn.edges(EdgeKind.EVENT) == ({("a", "b", Evidence.TIMING)} if applies else set())
    assert drawn.notes == ({"dependency inferred from timing only": 1} if applies else {})
    assert Drawn(coincidence(gap=gap, near=near), rules=Rules(strict=True)).path == on_host


def test_timing_rule_takes_the_latest_of_the_other_queues() -> None:
    events = [*coincidence(gap=41, near=4), call("lc", 4, 5, 5), kernel("c", 6, 50, 5, stream=30)]
    assert Drawn(events).edges(EdgeKind.EVENT) == {("c", "b", Evidence.TIMING)}


def test_timing_rule_never_looks_at_another_device() -> None:
    events = [e for e in coincidence(gap=41, near=2) if e["name"] != "a"]
    assert Drawn([*events, kernel("a", 5, 50, 1, device=1)]).edges(EdgeKind.EVENT) == set()


def test_timing_rule_lets_no_two_instants_wait_for_each_other() -> None:
    """Activities of no length at one time on two queues, twice: one of each pair may wait for the other."""
    calls = [
        op("op", 0, 40),
        call("la", 2, 4, 1),
        call("lb", 5, 6, 2),
        call("lc", 7, 8, 3),
        call("ld", 9, 10, 4),
    ]
    instants = [kernel("a", 50, 50, 1), kernel("b", 50, 50, 2, stream=20)]
    instants += [kernel("c", 90, 90, 3, stream=30), kernel("d", 90, 90, 4, stream=40)]
    drawn = Drawn([*calls, *instants])
    pairs = {tuple(sorted(edge[:2])) for edge in drawn.edges(EdgeKind.EVENT)}
    assert len(drawn.edges(EdgeKind.EVENT)) == len(pairs) == 2
    assert drawn.notes == {"dependency inferred from timing only": 2}


# --- launch points -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("span", "path", "counted"),
    [
        # after the call: free to start when the call returned
        ((16, 20), [("op", 0, 8), ("lb", 8, 14), ("~b", 14, 16), ("b", 16, 20)], {}),
        # inside the call on an idle queue: the time inside the call is host time
        ((11, 20), [("op", 0, 8), ("lb", 8, 11), ("b", 11, 20)], {}),
        # 1 before the call: clamped to the activity's own start
        (
            (7, 20), [("op", 0, 7), ("b", 7, 20)],
            {"device activity starts just before its launch: launch point clamped": 1},
        ),
        # 2 before the call: causality is contradicted, the edge is dropped
        (
            (6, 20), [("~b", 0, 6), ("b", 6, 20)],
            {"device activity starts before its launch: launch edge dropped": 1},
        ),
    ],
)  # fmt: skip
def test_launch_point_depends_on_where_the_activity_starts(
    span: tuple[int, int], path: Path, counted: dict[str, int]
) -> None:
    drawn = Drawn([op("op", 0, 30), call("lb", 8, 14, 1), kernel("b", *span, 1)])
    assert drawn.path == path
    assert drawn.notes == counted


def test_call_that_found_its_queue_busy_merely_submitted() -> None:
    """B starts inside its call, but a still ran when the call began: b was free from the call's start."""
    # host  |op  la   lb 8......20 |
    # s7        [a 5..12][b 12..20]
    events = [
        op("op", 0, 30),
        call("la", 2, 4, 1),
        call("lb", 8, 20, 2),
        kernel("a", 5, 12, 1),
        kernel("b", 12, 25, 2),
    ]
    drawn = Drawn(events)
    assert drawn.path == [("op", 0, 2), ("la", 2, 4), ("~a", 4, 5), ("a", 5, 12), ("b", 12, 25)]
    launch = np.flatnonzero(drawn.graph.edge_kind == EdgeKind.LAUNCH)
    ends = {drawn.name(int(drawn.graph.dst[e])): int(drawn.graph.end_ns[drawn.graph.src[e]]) for e in launch}
    assert ends == {"a": 4_000, "b": 8_000}


def test_activity_launched_before_the_capture_waits_for_the_origin_and_is_counted() -> None:
    drawn = Drawn([op("op", 0, 30), kernel("b", 6, 20, 77)])
    assert drawn.path == [("~b", 0, 6), ("b", 6, 20)]
    assert drawn.notes == {"device activity without a launch in the trace": 1}


# --- copies ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [TO_PINNED, FROM_PAGEABLE, "Memcpy DtoD (Device -> Device)"])
def test_asynchronous_copy_on_an_idle_queue_does_not_block_its_call(name: str) -> None:
    drawn = Drawn(idle_copy(name, "cudaMemcpyAsync"))
    assert drawn.edges(EdgeKind.SYNC) == set()
    assert ("cudaMemcpyAsync", 6, 36) in drawn.path


def test_copy_from_pageable_memory_begins_to_stage_when_its_queue_is_free() -> None:
    """The call ends before its copy, yet it waited for the kernel before it: only staging is host work."""
    drawn = Drawn(copying(FROM_PAGEABLE, "cudaMemcpyAsync", (31, 33), to=32))
    assert drawn.edges(EdgeKind.SYNC) == {("a", "cudaMemcpyAsync", Evidence.ORDER)}
    assert ("cudaMemcpyAsync", 30, 32) in drawn.path
    assert ("a", 5, 30) in drawn.path


@pytest.mark.parametrize("name", [TO_PAGEABLE, TO_PINNED])
def test_call_that_returns_before_its_copy_ends_was_not_blocked(name: str) -> None:
    drawn = Drawn(copying(name, "cudaMemcpyAsync", (31, 33), to=32))
    assert drawn.edges(EdgeKind.SYNC) == set()
    assert ("cudaMemcpyAsync", 6, 32) in drawn.path


def test_copy_that_ends_with_its_call_leaves_a_return_without_length() -> None:
    drawn = Drawn(copying(TO_PAGEABLE, "cudaMemcpyAsync", (31, 36), to=36))
    assert drawn.path[-6:] == [
        ("~" + TO_PAGEABLE, 30, 31), (TO_PAGEABLE, 31, 36), ("op", 36, 50), ("lb", 50, 52), ("~b", 52, 55), ("b", 55, 60),
    ]  # fmt: skip
    assert drawn.edges(EdgeKind.SYNC) == {(TO_PAGEABLE, "cudaMemcpyAsync", Evidence.ID)}


# --- synchronize calls -------------------------------------------------------------------------


def two_queues(*extra: Event, called: str = "cudaStreamSynchronize", swapped: bool = False) -> list[Event]:
    """Two queues at work when the host synchronizes."""
    # host  |op  la lc   sync 8..........35  (op)  lb 40..42 |     a ends inside the call, c long after it;
    # s7        [a 5..........33]                                  `swapped` issues c first
    # s20          [c 7................................60]
    # s30                                             [b 44..50]
    first, second = (("lc", 3), ("la", 1)) if swapped else (("la", 1), ("lc", 3))
    return [
        op("op", 0, 60), call(first[0], 2, 3, first[1]), call(second[0], 4, 5, second[1]), call(called, 8, 35, 2),
        call("lb", 40, 42, 4), kernel("a", 6, 33, 1), kernel("c", 7, 60, 3, stream=20), kernel("b", 44, 50, 4, stream=30),
        *extra,
    ]  # fmt: skip


def test_stream_sync_of_one_busy_queue_is_order() -> None:
    assert Drawn(synced("cudaStreamSynchronize").events).edges(EdgeKind.SYNC) == {
        ("a", "cudaStreamSynchronize", Evidence.ORDER)
    }


def test_stream_sync_among_several_busy_queues_is_order_if_the_thread_had_just_issued_to_it() -> None:
    assert Drawn(two_queues(swapped=True)).edges(EdgeKind.SYNC) == {
        ("a", "cudaStreamSynchronize", Evidence.ORDER)
    }


def test_stream_sync_among_several_busy_queues_is_timing_otherwise_and_strict_drops_it() -> None:
    assert Drawn(two_queues()).edges(EdgeKind.SYNC) == {("a", "cudaStreamSynchronize", Evidence.TIMING)}
    assert Drawn(two_queues(), rules=Rules(strict=True)).edges(EdgeKind.SYNC) == set()


def test_stream_sync_record_names_its_queue_even_if_another_drains_later() -> None:
    events = [{**e, "dur": 24} if e["name"] == "c" else e for e in two_queues()]  # c now ends at 31
    plain = Drawn(events)
    assert plain.edges(EdgeKind.SYNC) == {("a", "cudaStreamSynchronize", Evidence.TIMING)}
    drawn = Drawn([*events, record("Stream Sync", (8, 35), 2, stream=20)])
    assert drawn.edges(EdgeKind.SYNC) == {("c", "cudaStreamSynchronize", Evidence.SYNC)}
    assert ("cudaStreamSynchronize", 31, 35) in drawn.path


def test_device_sync_waits_for_every_queue_that_was_busy() -> None:
    events = [{**e, "dur": 24} if e["name"] == "c" else e for e in two_queues(called="cudaDeviceSynchronize")]
    drawn = Drawn(events)
    assert drawn.edges(EdgeKind.SYNC) == {
        ("a", "cudaDeviceSynchronize", Evidence.ORDER), ("c", "cudaDeviceSynchronize", Evidence.ORDER),
    }  # fmt: skip
    assert ("a", 6, 33) in drawn.path
    assert ("cudaDeviceSynchronize", 33, 35) in drawn.path


def test_device_sync_does_not_wait_for_a_device_that_runs_on() -> None:
    events = [{**e, "pid": 1} if e["name"] == "c" else e for e in two_queues(called="cudaDeviceSynchronize")]
    assert Drawn(events).edges(EdgeKind.SYNC) == {("a", "cudaDeviceSynchronize", Evidence.ORDER)}


def test_context_sync_record_names_its_device() -> None:
    """Device 1 drains later, inside the same call; the record says that device 0 was awaited."""
    events = [
        {**e, "pid": 1, "dur": 27} if e["name"] == "c" else e
        for e in two_queues(record("Context Sync", (8, 35), 2, device=0), called="cudaDeviceSynchronize")
    ]
    assert Drawn(events).edges(EdgeKind.SYNC) == {("a", "cudaDeviceSynchronize", Evidence.SYNC)}


def test_event_sync_without_a_record_waits_for_the_last_end_inside_it_by_timing() -> None:
    events = two_queues(called="cudaEventSynchronize")
    assert Drawn(events).edges(EdgeKind.SYNC) == {("a", "cudaEventSynchronize", Evidence.TIMING)}
    assert Drawn(events, rules=Rules(strict=True)).edges(EdgeKind.SYNC) == set()


def test_event_sync_waits_for_the_work_before_its_record_not_for_the_queue() -> None:
    # host  |op  la rec ld  sync 8....35     d is given to s7 after the record: the call returns before d ends
    # s7        [a 6..33][d 33..39]
    events = [
        *two_queues(called="cudaEventSynchronize"), call("cudaEventRecord", 5, 6, 10), call("ld", 6, 7, 11),
        kernel("d", 33, 39, 11),
        record("Event Sync", (8, 35), 2, wait_on_stream=7, wait_on_cuda_event_record_corr_id=10),
    ]  # fmt: skip
    assert Drawn(events).edges(EdgeKind.SYNC) == {("a", "cudaEventSynchronize", Evidence.SYNC)}


def test_synchronize_with_nothing_to_wait_for_is_host_time() -> None:
    # host  |op  la  ......  sync 20..35 (op) lb |
    # s7        [a 5..12]                       [b]
    events = [
        op("op", 0, 60), call("la", 2, 4, 1), call("cudaDeviceSynchronize", 20, 35, 2), call("lb", 40, 42, 3),
        kernel("a", 5, 12, 1), kernel("b", 44, 50, 3),
    ]  # fmt: skip
    drawn = Drawn(events)
    assert drawn.edges(EdgeKind.SYNC) == set()
    assert ("cudaDeviceSynchronize", 20, 35) in drawn.path


@pytest.mark.parametrize(("over", "kept"), [(1, True), (2, False)])
def test_awaited_work_may_end_after_the_call_by_the_tolerance_only(over: int, kept: bool) -> None:  # noqa: FBT001
    """With a record both ends are known, so a contradiction is counted: clamped, or dropped."""
    case = synced("cudaStreamSynchronize", record("Stream Sync", (6, 35), 2, stream=7))
    drawn = Drawn([{**e, "dur": 30 + over} if e["name"] == "a" else e for e in case.events])
    if kept:
        assert drawn.path[3:5] == [("a", 5, 35), ("op", 35, 40)]
        assert drawn.notes == {"awaited work ends just after the call that waited for it: clamped": 1}
    else:
        assert drawn.path == case.without
        assert drawn.notes == {"awaited work ends after the call that waited for it: edge dropped": 1}


@pytest.mark.parametrize(("returns", "waits_"), [(63, True), (64, False)])
def test_free_counts_as_a_wait_only_if_it_returns_soon_after_the_device_drained(
    returns: int,
    waits_: bool,  # noqa: FBT001
) -> None:
    events = [
        op("op", 0, 90), call("la", 2, 4, 1), call("cudaFree", 6, returns, 2), call("lb", 70, 72, 3),
        kernel("a", 5, 33, 1), kernel("b", 75, 80, 3),
    ]  # fmt: skip
    assert Drawn(events).edges(EdgeKind.SYNC) == ({("a", "cudaFree", Evidence.TIMING)} if waits_ else set())
    assert Drawn(events, rules=Rules(strict=True)).edges(EdgeKind.SYNC) == set()


# --- a full queue ------------------------------------------------------------------------------


def test_long_call_below_the_full_depth_is_host_time() -> None:
    """870 launched, 17 of them ended: 852 outstanding."""
    assert FULL_DEPTH > 870 - 17
    drawn = Drawn(full_queue(870))
    assert drawn.edges(EdgeKind.BACKPRESSURE) == set()
    assert ("full", 1740, 1930) in drawn.path


def test_short_call_at_the_full_depth_is_host_time() -> None:
    drawn = Drawn(full_queue(960, until=1920 + 49))
    assert drawn.edges(EdgeKind.BACKPRESSURE) == set()
    assert ("full", 1920, 1969) in drawn.path


def full_from_1990(until: int, each: int) -> list[Event]:
    """Kernels of `each`, of which one ends at 2004; at 1990, when the queue is full, a call begins."""
    # host  |op  l1 l2 ... l959 |     full 1990...until|lb |      with 100 each 19 kernels have ended by 1990,
    # s7     ......][k ........2004][k .....................      with 250 each 7: 940 or 952 are waiting
    first = 2004 - each * (2004 // each)
    calls = [call(LAUNCH, 2 * i, 2 * i + 1, i) for i in range(1, 960)]
    kernels = [kernel("k", first + each * (i - 1), first + each * i, i) for i in range(1, 961)]
    return [
        op("op", 0, until + 60), *calls, call("full", 1990, until, 960), call("lb", until + 40, until + 42, 961),
        *kernels, kernel("b", until + 45, until + 90, 961, stream=20),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("until", "each", "blocked"),
    [
        (2040, 100, True),  # a call of 50 was blocked
        (2039, 100, False),  # one of 49 was not, in any way that matters
        (2104, 250, True),  # it returned 100 after a kernel ended
        (2105, 250, False),  # later is not for that reason
    ],
)
def test_a_call_was_blocked_by_a_full_queue_if_long_and_back_soon(
    until: int, each: int, *, blocked: bool
) -> None:
    edges = {("k", "full", Evidence.ORDER)} if blocked else set()
    assert Drawn(full_from_1990(until, each)).edges(EdgeKind.BACKPRESSURE) == edges


def test_call_at_a_full_queue_that_saw_nothing_retire_is_host_time() -> None:
    """From 1920 to 1990 some kernel must end for the call to have waited for it; the only one ends at 2004."""
    assert Drawn(full_queue(960, until=1990)).edges(EdgeKind.BACKPRESSURE) == set()


# --- hand-over ---------------------------------------------------------------------------------


def test_backward_on_the_callers_own_thread_hands_nothing_over() -> None:
    drawn = Drawn([op("fwd", 0, 10), *OPT, op(BWD, 14, 60)])
    assert drawn.edges(EdgeKind.HANDOVER) == set()
    assert drawn.path == [("fwd", 0, 10), ("untracked", 10, 14), (BWD, 14, 60), ("untracked", 60, 62), *END]


def test_caller_that_works_on_beside_backward_hands_over_by_timing_only_and_is_counted() -> None:
    # main  |fwd 0..10 |      |other 30..40|      | opt 62..       nobody waits: the pass follows what the
    # grad                | bwd 14..60 |                           caller did by then, and nothing waits for it
    events = [op("fwd", 0, 10), op("other", 30, 40), *OPT, op(BWD, 14, 60, tid=2)]
    drawn = Drawn(events)
    assert {evidence for *_, evidence in drawn.edges(EdgeKind.HANDOVER)} == {Evidence.TIMING}
    assert drawn.path == [
        ("fwd", 0, 10),
        ("untracked", 10, 30),
        ("other", 30, 40),
        ("untracked", 40, 62),
        *END,
    ]
    assert drawn.notes == {"backward pass whose calling thread does not wait: hand-over by timing only": 1}
    assert Drawn(events, rules=Rules(strict=True)).edges(EdgeKind.HANDOVER) == set()


def test_caller_that_evaluates_a_backward_operator_of_its_own_still_waits() -> None:
    # main  |fwd 0..10 |.......|bwd' 30..35|.........| opt 62..     the engine lends the caller's thread to
    # grad                | bwd 14....................60 |          CPU operators of the same pass
    drawn = Drawn([op("fwd", 0, 10), op(f"{BWD}Cpu", 30, 35), *OPT, op(BWD, 14, 60, tid=2)])
    assert drawn.path == [("fwd", 0, 10), (f"~{BWD}", 10, 14), (BWD, 14, 60), ("~opt", 60, 62), *END]
    assert drawn.notes == {}


def test_thread_of_another_process_is_never_the_caller() -> None:
    events = [{**e, "pid": 2} if e["name"] == BWD else e for e in HANDOVER.events]
    assert Drawn(events).edges(EdgeKind.HANDOVER) == set()


# --- rules as a whole --------------------------------------------------------------------------


def test_device_only_uses_queues_and_recorded_events_and_no_host() -> None:
    drawn = Drawn([*WAITING, waits()], rules=Rules(device_only=True))
    assert drawn.path == [("a", 5, 50), ("~b", 50, 60), ("b", 60, 70)]
    assert set(drawn.graph.edge_kind.tolist()) == {EdgeKind.EVENT}


def test_device_rules_are_rules_that_keep_their_order() -> None:
    assert [rule for rule in RULES if rule in DEVICE_RULES] == list(DEVICE_RULES)


@pytest.mark.parametrize(
    "case", [case for cases in CASES.values() for case in cases[:1]], ids=lambda case: case.title
)
def test_rules_only_name_rows_and_instants_of_the_trace(case: Case) -> None:
    raw = trace(case.events)
    scene = survey(raw.events, link(raw), Rules())
    claims = apply_rules(scene)
    device = set(scene.device.tolist())
    assert {*claims.device["src"].tolist(), *claims.device["dst"].tolist()} <= device
    assert set(claims.launch["row"].tolist()) <= device
    for wait in claims.wait:
        assert wait.src in device
        start, end = int(raw.events.start_ns[wait.call]), int(raw.events.end_ns[wait.call])
        assert start <= wait.from_ns <= wait.until_ns <= end


@pytest.mark.parametrize(
    "case", [case for cases in CASES.values() for case in cases], ids=lambda case: case.title
)
def test_merging_host_nodes_leaves_device_time_on_the_path_alone(case: Case) -> None:
    raw = trace(case.events)
    spans: list[list[tuple[int, int]]] = []
    for full in (True, False):
        built = build_graph(raw.events, link(raw), full=full)
        rows = [row for row in range(len(raw.events)) if raw.events.name_of(row) == case.sink]
        path = critical_path(built.graph, built.arrivals, built.parts_of(rows))
        device = np.array(
            [raw.events.lanes[lane].device >= 0 for lane in built.graph.lane[path.node]], np.bool_
        )
        device &= path.kind == PieceKind.NODE
        spans.append(list(zip(path.start_ns[device].tolist(), path.end_ns[device].tolist(), strict=True)))
    assert spans[0] == spans[1]


# graph   |   g 10..20, then b 21..31 beside a 21..61, c 32..52 after b, d 63..80 after both: one launch, one queue
def branches(*, a_ends: int = 61, graph: bool = True, strict: bool = False) -> Drawn:
    correlation = [1, 1, 1, 1, 1] if graph else [1, 2, 3, 4, 5]
    spans = {"g": (10, 20), "b": (21, 31), "a": (21, a_ends), "c": (32, 52), "d": (63, 80)}
    parts = zip(spans.items(), correlation, strict=True)
    drawn = [
        op("op", 0, 8),
        *(call("cudaGraphLaunch", 1 + i, 2 + i, i) for i in sorted({*correlation})),
        *(kernel(name, *span, corr) for (name, span), corr in parts),
    ]
    return Drawn(drawn, rules=Rules(strict=strict))


def test_node_of_a_graph_waits_for_its_own_branch_and_not_for_the_middle_of_another() -> None:
    assert branches().edges(EdgeKind.STREAM) == {
        ("g", "b", Evidence.ORDER),
        ("g", "a", Evidence.TIMING),
        ("b", "c", Evidence.ORDER),
        ("c", "d", Evidence.ORDER),
        ("a", "d", Evidence.ORDER),
    }


@pytest.mark.parametrize(
    "drawn",
    [
        pytest.param(branches(a_ends=37), id="overlap of 5: a dependent launch may do that"),
        pytest.param(branches(graph=False), id="launched one by one: a queue keeps their order"),
        pytest.param(branches(strict=True), id="strict: nothing rests on timing alone"),
    ],
)
def test_otherwise_an_overlapping_activity_waits_for_the_one_before_it_in_its_queue(drawn: Drawn) -> None:
    edges = drawn.edges(EdgeKind.STREAM)
    assert ("a", "c", Evidence.ORDER) in edges
    assert not any(evidence == Evidence.TIMING and v == "c" for _, v, evidence in edges)
