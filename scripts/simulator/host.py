"""The host threads of one rank: operators, runtime calls, waits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from .clock import Clock, Process, Signal
from .device import Device, Mark
from .journal import Run, Span
from .program import (
    Action,
    Await,
    Close,
    Launch,
    Loader,
    NextBatch,
    Open,
    Post,
    Record,
    Sync,
    WaitEvent,
    Work,
)


@dataclass(slots=True, eq=False)
class Flag:
    """A wake-up call and the last thing the waking thread did before it."""

    posted: Signal = field(default_factory=Signal)
    source: Span | None = None


@dataclass(slots=True, eq=False)
class Thread:
    """Where one thread is."""

    name: str
    open: list[Span] = field(default_factory=list)
    last: Span | None = None  # opened or ended most recently
    woken_by: Span | None = None  # not yet followed by a span
    finished: bool = False


class Host:
    """Runs the threads of one rank against its device."""

    def __init__(self, rank: int, clock: Clock, run: Run, device: Device) -> None:
        self._rank = rank
        self._clock = clock
        self._run = run
        self._device = device
        self._correlations = count(101)
        self._flags: defaultdict[str, Flag] = defaultdict(Flag)
        self._events: dict[str, Mark] = {}
        self._produced: defaultdict[int, Signal] = defaultdict(Signal)
        self._taken: defaultdict[int, Signal] = defaultdict(Signal)
        self.threads: list[Thread] = []
        self._perform: dict[type[Action], Callable[[Thread, Any], Process]] = {
            Open: self._open,
            Close: self._close,
            Work: self._work,
            Launch: self._launch,
            Record: self._record,
            WaitEvent: self._wait_event,
            Sync: self._sync,
            Post: self._post,
            Await: self._await,
            NextBatch: self._next_batch,
        }

    def start(self) -> None:
        """Set every thread and loader worker going."""
        rank = self._run.program.ranks[self._rank]
        for name, actions in rank.threads.items():
            thread = Thread(name)
            self.threads.append(thread)
            self._clock.start(self._follow(thread, actions))
        if rank.loader:
            wanted = sum(isinstance(a, NextBatch) for actions in rank.threads.values() for a in actions)
            for worker in range(rank.loader.workers):
                self._clock.start(self._produce(rank.loader, worker, wanted))

    def _follow(self, thread: Thread, actions: tuple[Action, ...]) -> Process:
        for action in actions:
            yield from self._perform[type(action)](thread, action)
        thread.finished = True

    def _vary(self, ns: int, key: str) -> int:
        return self._run.vary(ns, f"{self._rank}/{key}")

    # -- operators and plain work

    def _begin(self, thread: Thread, span: Span) -> Span:
        self._run.add(span)
        self._run.depend(thread.woken_by, span, "hand-over")
        thread.woken_by = None
        thread.last = span
        return span

    def _open(self, thread: Thread, action: Open) -> Process:
        span = Span(self._rank, thread.name, action.category, action.name, self._clock.now, action=action)
        span.parent = thread.open[-1] if thread.open else None
        thread.open.append(self._begin(thread, span))
        yield self._clock.now

    def _close(self, thread: Thread, _: Close) -> Process:
        span = thread.open.pop()
        span.end_ns = self._clock.now
        thread.last = span
        yield self._clock.now

    def _work(self, _: Thread, action: Work) -> Process:
        yield self._clock.now + self._vary(action.ns, action.key)

    # -- runtime calls

    def _call(self, thread: Thread, action: Launch | Record | WaitEvent | Sync, name: str) -> Span:
        span = Span(self._rank, thread.name, "cuda_runtime", name, self._clock.now, action=action)
        span.correlation = next(self._correlations)
        span.parent = thread.open[-1] if thread.open else None
        return self._begin(thread, span)

    def _return(self, thread: Thread, call: Span) -> None:
        call.end_ns = self._clock.now
        thread.last = call

    def _launch(self, thread: Thread, action: Launch) -> Process:
        machine = self._run.program.machine
        call = self._call(thread, action, action.call)
        call.step = action.step
        cost_ns = self._vary(action.cost_ns, f"{action.key}/cost")
        before_ns = cost_ns * machine.submit_percent // 100
        yield call.start_ns + before_ns
        why = yield from self._wait_for_room(call, action)
        task = self._device.submit(action, call, why)
        yield self._clock.now + cost_ns - before_ns
        if action.blocking:
            yield task.done
            self._run.depend(task.last, call, "copy")
            yield (task.done.at_ns or 0) + self._vary(machine.sync_return_ns, f"{action.key}/return")
        self._return(thread, call)

    def _wait_for_room(self, call: Span, action: Launch) -> Generator[Signal | int, None, str]:
        """Block while the stream's queue is full; return what the submission waited for."""
        blocker = self._device.blocker(action.stream)
        if blocker is None:
            return "launch"
        asked_ns = self._clock.now
        yield blocker.done
        self._run.depend(blocker.last, call, "queue")
        return "queue" if self._clock.now > asked_ns else "launch"

    def _record(self, thread: Thread, action: Record) -> Process:
        call = self._call(thread, action, "cudaEventRecord")
        self._events[action.event] = self._device.mark(action.stream, call)
        yield call.start_ns + self._vary(action.cost_ns, action.key)
        self._return(thread, call)

    def _wait_event(self, thread: Thread, action: WaitEvent) -> Process:
        call = self._call(thread, action, "cudaStreamWaitEvent")
        mark = self._events.get(action.event)
        if mark is not None:  # waiting for an event that was never recorded is no wait
            call.record = mark.call
            self._device.hold(action.stream, mark)
        yield call.start_ns + self._vary(action.cost_ns, action.key)
        self._return(thread, call)

    def _sync(self, thread: Thread, action: Sync) -> Process:
        call = self._call(thread, action, action.call)
        marks = self._awaited(action, call)
        return_ns = self._vary(self._run.program.machine.sync_return_ns, f"{action.key}/return")
        until_ns = call.start_ns + self._vary(action.cost_ns, action.key)
        for mark in marks:
            yield mark.reached
            self._run.depend(mark.work.source, call, "sync")
            if mark.work.source is not None:
                until_ns = max(until_ns, mark.work.at_ns + return_ns)
        yield until_ns
        self._return(thread, call)

    def _awaited(self, action: Sync, call: Span) -> list[Mark]:
        if action.event is not None:
            mark = self._events.get(action.event)
            call.record = mark.call if mark else None
            return [mark] if mark else []
        if action.stream is not None:
            return [self._device.mark(action.stream, call)]
        return self._device.marks(call)

    # -- other threads and processes

    def _post(self, thread: Thread, action: Post) -> Process:
        flag = self._flags[action.flag]
        flag.source = thread.last
        self._clock.fire(flag.posted)
        yield self._clock.now

    def _await(self, thread: Thread, action: Await) -> Process:
        flag = self._flags[action.flag]
        yield flag.posted
        thread.woken_by = flag.source
        handover_ns = self._vary(self._run.program.machine.handover_ns, f"wake/{action.flag}")
        yield (flag.posted.at_ns or 0) + handover_ns

    def _next_batch(self, _: Thread, action: NextBatch) -> Process:
        yield self._produced[action.index]
        self._clock.fire(self._taken[action.index])

    def _produce(self, loader: Loader, worker: int, wanted: int) -> Process:
        """Produce every `workers`-th batch, never more than `prefetch` ahead of its use."""
        for index in range(worker, wanted, loader.workers):
            freed_by = index - loader.workers * loader.prefetch
            if freed_by >= 0:
                yield self._taken[freed_by]
            yield self._clock.now + self._vary(loader.produce_ns, f"batch/{index}")
            self._clock.fire(self._produced[index])
