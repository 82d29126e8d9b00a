"""The device of one rank: streams that run in order, events, graphs, collectives."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from .clock import Clock, Process, Signal
from .journal import Cause, Run, Span
from .program import DeviceOp, Launch

NOTHING = Cause(0, "stream")


@dataclass(slots=True, eq=False)
class Task:
    """One submission: an operation, or a graph that holds the stream as one item."""

    launch: Launch
    call: Span
    ready: Cause
    done: Signal = field(default_factory=Signal)
    last: Span | None = None  # its span that ends last


@dataclass(slots=True, eq=False)
class Mark:
    """A point in a stream: complete when all work enqueued before it is."""

    call: Span
    reached: Signal = field(default_factory=Signal)
    work: Cause = NOTHING  # the work it stands for, with its end


@dataclass(frozen=True, slots=True)
class Hold:
    """Later work of this stream waits for a mark of another."""

    mark: Mark


@dataclass(slots=True, eq=False)
class Lane:
    """One stream."""

    stream: int
    items: deque[Task | Mark | Hold] = field(default_factory=deque)
    arrival: Signal = field(default_factory=Signal)
    tail: Cause = NOTHING  # end of the latest work
    holds: list[Cause] = field(default_factory=list)
    unfinished: deque[Task] = field(default_factory=deque)


@dataclass(slots=True, eq=False)
class Meeting:
    """The kernels of one collective, as they arrive."""

    size: int
    arrived: list[Span] = field(default_factory=list)
    over: Signal = field(default_factory=Signal)


class Device:
    """Runs what one rank submits."""

    def __init__(self, rank: int, clock: Clock, run: Run, meetings: Mapping[str, Meeting]) -> None:
        self._rank = rank
        self._clock = clock
        self._run = run
        self._meetings = meetings
        self._lanes: dict[int, Lane] = {}

    def blocker(self, stream: int) -> Task | None:
        """Return the submission that must retire before `stream` takes another, if it is full."""
        queue = self._lane(stream).unfinished
        while queue and queue[0].done.at_ns is not None:
            queue.popleft()
        excess = len(queue) - self._run.program.machine.queue_depth
        return queue[excess] if excess >= 0 else None

    def submit(self, launch: Launch, call: Span, why: str) -> Task:
        """Enqueue the work of a launch call that is submitted now."""
        latency_ns = self._run.vary(
            self._run.program.machine.launch_latency_ns, f"{self._rank}/{launch.key}/latency"
        )
        task = Task(launch, call, Cause(self._clock.now + latency_ns, why, call))
        lane = self._lane(launch.stream)
        lane.unfinished.append(task)
        self._enqueue(lane, task)
        return task

    def mark(self, stream: int, call: Span) -> Mark:
        """Put a mark behind everything enqueued so far."""
        mark = Mark(call)
        self._enqueue(self._lane(stream), mark)
        return mark

    def marks(self, call: Span) -> list[Mark]:
        """Put a mark on every stream."""
        return [self.mark(stream, call) for stream in sorted(self._lanes)]

    def hold(self, stream: int, mark: Mark) -> None:
        """Let later work of `stream` wait for `mark`."""
        self._enqueue(self._lane(stream), Hold(mark))

    def is_idle(self) -> bool:
        """Whether everything submitted has ended."""
        return not any(
            lane.items or any(task.done.at_ns is None for task in lane.unfinished)
            for lane in self._lanes.values()
        )

    def _lane(self, stream: int) -> Lane:
        if stream not in self._lanes:
            self._lanes[stream] = Lane(stream)
            self._clock.start(self._serve(self._lanes[stream]))
        return self._lanes[stream]

    def _enqueue(self, lane: Lane, item: Task | Mark | Hold) -> None:
        lane.items.append(item)
        if lane.arrival.at_ns is None:
            self._clock.fire(lane.arrival)

    def _serve(self, lane: Lane) -> Process:
        """Take one item after the other, for ever."""
        while True:
            while not lane.items:
                lane.arrival = Signal()
                yield lane.arrival
            item = lane.items.popleft()
            if isinstance(item, Mark):
                self._reach(lane, item)
            elif isinstance(item, Hold):
                yield item.mark.reached
                work = item.mark.work
                latency_ns = self._run.program.machine.event_latency_ns
                lane.holds.append(Cause(work.at_ns + latency_ns, "event", work.source))
            else:
                yield from self._execute(lane, item)

    def _reach(self, lane: Lane, mark: Mark) -> None:
        mark.work = max((lane.tail, *lane.holds), key=lambda cause: cause.at_ns)
        # A mark is passed no earlier than it was put; its work may have ended long before.
        self._clock.fire_at(mark.work.at_ns, mark.reached)

    def _execute(self, lane: Lane, task: Task) -> Process:
        causes = (task.ready, self._order(lane, task), *lane.holds)
        last = max(causes, key=lambda cause: cause.at_ns)
        yield last.at_ns
        op = task.launch.nodes[0].op
        if op.collective:
            yield from self._meet(lane, task, last)
        elif len(task.launch.nodes) == 1:
            self._play(lane, task, last)
        else:
            self._play_graph(lane, task, last)
        lane.holds.clear()

    def _order(self, lane: Lane, task: Task) -> Cause:
        """When stream order lets the task begin."""
        if lane.tail.source is None:
            return NOTHING
        pdl_ns = task.launch.nodes[0].op.pdl_ns
        if pdl_ns:
            return Cause(lane.tail.at_ns - pdl_ns, "pdl", lane.tail.source)
        return Cause(lane.tail.at_ns + self._run.program.machine.stream_gap_ns, "stream", lane.tail.source)

    def _begin(self, lane: Lane, task: Task, op: DeviceOp, cause: str) -> Span:
        return self._run.add(
            Span(
                rank=self._rank,
                lane=lane.stream,
                category=op.category,
                name=op.name,
                start_ns=self._clock.now,
                correlation=task.call.correlation,
                parent=task.call,
                action=op,
                step=task.launch.step,
                cause=cause,
            )
        )

    def _bind(self, lane: Lane, task: Task, span: Span) -> None:
        """Note everything `span` had to wait for, binding or not."""
        self._run.depend(task.call, span, "launch")
        order = self._order(lane, task)
        self._run.depend(order.source, span, order.why)
        for hold in lane.holds:
            self._run.depend(hold.source, span, "event")

    def _finish(self, lane: Lane, task: Task, span: Span) -> None:
        """Let the stream go on after `span`, the last of the task to end."""
        task.last = span
        if span.end_ns >= lane.tail.at_ns:
            lane.tail = Cause(span.end_ns, "stream", span)
        self._clock.fire_at(span.end_ns, task.done)

    def _play(self, lane: Lane, task: Task, last: Cause) -> None:
        op = task.launch.nodes[0].op
        span = self._begin(lane, task, op, last.why)
        span.end_ns = span.start_ns + self._run.vary(op.ns, f"{self._rank}/{task.launch.key}")
        self._bind(lane, task, span)
        self._finish(lane, task, span)

    def _play_graph(self, lane: Lane, task: Task, last: Cause) -> None:
        """Start every node as soon as the nodes it needs have ended; branches overlap."""
        gap_ns = self._run.program.machine.node_gap_ns
        spans: list[Span] = []
        for number, node in enumerate(task.launch.nodes):
            span = self._begin(lane, task, node.op, "graph" if node.after else last.why)
            needed = [spans[index] for index in node.after]
            span.start_ns = max([span.start_ns, *(before.end_ns + gap_ns for before in needed)])
            span.end_ns = span.start_ns + self._run.vary(
                node.op.ns, f"{self._rank}/{task.launch.key}/{number}"
            )
            for before in needed:
                self._run.depend(before, span, "graph")
            if not needed:
                self._bind(lane, task, span)
            spans.append(span)
        self._finish(lane, task, max(spans, key=lambda span: span.end_ns))

    def _meet(self, lane: Lane, task: Task, last: Cause) -> Process:
        """Wait for the kernels of the other ranks, then transfer together."""
        op = task.launch.nodes[0].op
        if op.collective is None:
            raise TypeError("only collectives meet")
        meeting = self._meetings[op.collective.key]
        span = self._begin(lane, task, op, last.why)
        self._bind(lane, task, span)
        meeting.arrived.append(span)
        if len(meeting.arrived) == meeting.size:
            # The transfer is one event of the whole job: all ranks share its luck.
            transfer_ns = self._run.vary(op.ns, op.collective.key)
            self._clock.fire_at(self._clock.now + transfer_ns, meeting.over)
        yield meeting.over
        span.end_ns = self._clock.now
        span.peer_cause = meeting.arrived[-1].rank
        for peer in meeting.arrived:
            if peer is not span:
                self._run.depend(peer, span, "peer")
        self._finish(lane, task, span)
