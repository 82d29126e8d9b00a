"""Write the actions of one host thread as one would write the training loop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from .program import (
    Action,
    Await,
    Close,
    Collective,
    DeviceOp,
    Launch,
    NextBatch,
    Node,
    Open,
    Post,
    Record,
    Sync,
    WaitEvent,
    Work,
)

Params = Mapping[str, int]
COMPUTE = 7  # the number CUDA traces show for the default stream
EVENT_CALL_NS = 1_500
ENTER_NS, LEAVE_NS = 400, 250  # of an operator or annotation


class Script:
    """The actions of one thread, in order."""

    def __init__(self, thread: str, params: Params) -> None:
        self.actions: list[Action] = []
        self.params = params
        self.step = -1
        self._thread = thread
        self._open: list[str] = []
        self._uses: Counter[str] = Counter()

    @contextmanager
    def op(self, name: str, sequence: int | None = None, *, backward: bool = False) -> Iterator[None]:
        """Be inside an operator."""
        with self._inside(Open(name, "cpu_op", sequence, backward)):
            yield

    @contextmanager
    def annotation(self, name: str) -> Iterator[None]:
        """Be inside a `record_function` range."""
        with self._inside(Open(name, "user_annotation")):
            yield

    @contextmanager
    def communication(self, collective: Collective) -> Iterator[None]:
        """Be inside the record of a communication call."""
        with self._inside(Open("record_param_comms", collective=collective)):
            yield

    def work(self, ns: int) -> None:
        """Compute on the host."""
        owner = self._open[-1] if self._open else ""
        # Inside a step but outside any operator is plain Python: the annotation does not do it.
        owner = "" if owner.startswith("ProfilerStep#") else owner
        self.actions.append(Work(self._key(f"work/{owner}"), ns, owner))

    def kernel(self, name: str, ns: int, stream: int = COMPUTE) -> None:
        """Launch a kernel; programmatic dependent launch has its own call."""
        pdl_ns = self.params["pdl_ns"]
        call = "cudaLaunchKernelExC" if pdl_ns else "cudaLaunchKernel"
        self.launch(DeviceOp(name, ns, pdl_ns=pdl_ns), stream, call)

    def launch(self, op: DeviceOp, stream: int, call: str, *, blocking: bool = False) -> None:
        """Launch any device operation."""
        self._submit((Node(op),), stream, call, blocking=blocking)

    def graph(self, nodes: tuple[Node, ...]) -> None:
        """Launch a device graph."""
        self._submit(nodes, COMPUTE, "cudaGraphLaunch", blocking=False)

    def copy_to_device(self, ns: int, stream: int = COMPUTE) -> None:
        """Copy a batch from pinned memory without waiting."""
        op = DeviceOp("Memcpy HtoD (Pinned -> Device)", ns, "gpu_memcpy", bytes=ns * 20)
        self.launch(op, stream, "cudaMemcpyAsync")

    def record(self, event: str, stream: int) -> None:
        """Record an event."""
        self.actions.append(Record(self._key(f"record/{event}"), event, stream, EVENT_CALL_NS))

    def wait(self, event: str, stream: int) -> None:
        """Let a stream wait for an event."""
        self.actions.append(WaitEvent(self._key(f"wait/{event}"), event, stream, EVENT_CALL_NS))

    def sync(self, call: str, stream: int | None = None, event: str | None = None) -> None:
        """Wait on the host."""
        self.actions.append(Sync(self._key(call), call, self.params["launch_ns"], stream, event))

    def post(self, flag: str) -> None:
        """Wake another thread."""
        self.actions.append(Post(flag))

    def sleep(self, flag: str) -> None:
        """Sleep until another thread wakes this one."""
        self.actions.append(Await(flag))

    def next_batch(self, index: int) -> None:
        """Sleep until a batch is there."""
        self.actions.append(NextBatch(index))

    @contextmanager
    def _inside(self, opened: Open) -> Iterator[None]:
        self.actions.append(opened)
        self._open.append(opened.name)
        # Calling in and out takes time in every real trace; without it, nested operators would be equal intervals.
        self.work(ENTER_NS)
        yield
        self.work(LEAVE_NS)
        self._open.pop()
        self.actions.append(Close())

    def _submit(self, nodes: tuple[Node, ...], stream: int, call: str, *, blocking: bool) -> None:
        key = self._key(f"{call}/{nodes[0].op.name}")
        self.actions.append(Launch(key, nodes, stream, self.params["launch_ns"], call, self.step, blocking))

    def _key(self, name: str) -> str:
        """Name an action by what it is and its how-many-th in its step, not by its place in the program."""
        stem = f"{self._thread}/{self.step}/{name}"
        self._uses[stem] += 1
        return f"{stem}/{self._uses[stem]}"
