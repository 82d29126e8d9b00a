"""Ten kinds of training step, each bound by something else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random

from . import training as t
from .change import Change
from .program import DeviceOp, Loader, Node, Program
from .script import COMPUTE, Params

SIDE = 24  # a second compute stream
NS_RANGES: Mapping[str, tuple[int, int]] = {
    "layers": (2, 6),
    "gemm_ns": (5_000, 300_000),
    "pointwise_ns": (2_000, 40_000),
    "op_ns": (2_000, 15_000),
    "python_ns": (2_000, 40_000),
    "launch_ns": (2_500, 8_000),
    "submit_percent": (50, 100),
    "jitter_permille": (0, 50),
}
GEMM_CHANGE = Change("kernel", t.GEMM_BACKWARD, 50, "path")
LAUNCH_CHANGE = Change("launch", "cudaLaunchKernel", 50, "host")
HOST_CHANGE = Change("host", "aten::mm", 50, "host")


@dataclass(frozen=True, slots=True)
class Scenario:
    """A program builder with the parameters it is usually run with.

    Attributes:
        name: the word for the command line.
        decides: what sets the step length under the default parameters.
        build: parameters and seed to program.
        defaults: parameters that differ from `training.DEFAULTS`.
        ranges: what a random draw may take, for each parameter that varies.
        changes: what the truth file tells the outcome of.
    """

    name: str
    decides: str
    build: Callable[[Params, int], Program]
    defaults: Params
    changes: tuple[Change, ...]
    ranges: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def params(self, overrides: Params | None = None) -> dict[str, int]:
        """All parameters, with `overrides` on top."""
        return {**t.DEFAULTS, **self.defaults, **(overrides or {})}

    def draw(self, rng: Random) -> dict[str, int]:
        """Draw random parameters; which resource binds may differ from the defaults."""
        ranges = {**NS_RANGES, **self.ranges}
        return self.params({name: rng.randint(*bounds) for name, bounds in sorted(ranges.items())})

    def program(self, params: Params | None = None, seed: int = 0) -> Program:
        """Build the program of `params`, or of the defaults."""
        return self.build(self.params(params), seed)


def _plain_steps(params: Params, seed: int) -> Program:
    """Load, forward, backward, update; nothing but sizes decides what binds."""
    loop = t.Loop(params)
    for number in loop.numbers():
        with loop.step(number):
            loop.batch_to_device()
            loop.zero_grad()
            loop.forward()
            loop.backward()
            loop.update()
    return t.program((loop.rank(),), params, seed)


def _item_sync(params: Params, seed: int) -> Program:
    """Read the loss on the host at the end of every step."""
    loop = t.Loop(params)
    for number in loop.numbers():
        with loop.step(number):
            loop.zero_grad()
            loop.forward()
            loop.backward()
            loop.update()
            _read_loss(loop)
    return t.program((loop.rank(),), params, seed)


def _read_loss(loop: t.Loop) -> None:
    main, params = loop.main, loop.params
    main.work(params["python_ns"])
    with main.op("aten::item"), main.op("aten::_local_scalar_dense"):
        main.work(params["op_ns"])
        copy = DeviceOp("Memcpy DtoH (Device -> Pageable)", 1_600, "gpu_memcpy", bytes=4)
        main.launch(copy, COMPUTE, "cudaMemcpyAsync", blocking=True)
        main.sync("cudaStreamSynchronize", stream=COMPUTE)
    main.work(params["python_ns"])


def _two_streams(params: Params, seed: int) -> Program:
    """Fork to a second stream and join again, by events."""
    loop = t.Loop(params)
    for number in loop.numbers():
        with loop.step(number):
            loop.batch_to_device()
            loop.zero_grad()
            _fork_and_join(loop)
            loop.forward()
            loop.backward()
            loop.update()
    return t.program((loop.rank(),), params, seed)


def _fork_and_join(loop: t.Loop) -> None:
    main, params = loop.main, loop.params
    main.work(params["python_ns"])
    main.record("fork", COMPUTE)
    main.wait("fork", SIDE)
    for stream, kernel, count in ((SIDE, t.ATTENTION, params["side_kernels"]), (COMPUTE, t.GEMM, params["near_kernels"])):
        for _ in range(count):
            with main.op("aten::matmul"):
                main.work(params["op_ns"])
                main.kernel(kernel, params["branch_ns"], stream)
    main.record("join", SIDE)
    main.wait("join", COMPUTE)
    loop.simple_op("aten::add", t.POINTWISE, params["pointwise_ns"])


def _graph_step(params: Params, seed: int) -> Program:
    """Replay a captured step with two branches."""
    loop = t.Loop(params)
    for number in loop.numbers():
        with loop.step(number):
            loop.batch_to_device()
            loop.main.work(params["python_ns"])
            loop.main.graph(_captured_step(params))
            loop.main.work(params["python_ns"])
    return t.program((loop.rank(),), params, seed)


def _captured_step(params: Params) -> tuple[Node, ...]:
    """Each layer: a gemm, then attention beside two pointwise kernels, then the next layer."""
    nodes: list[Node] = []
    for _ in range(params["layers"]):
        last = (len(nodes) - 2, len(nodes) - 1) if nodes else ()
        first = len(nodes)
        nodes += [
            Node(DeviceOp(t.GEMM, params["gemm_ns"]), last),
            Node(DeviceOp(t.POINTWISE, params["pointwise_ns"]), (first,)),
            Node(DeviceOp(t.POINTWISE, params["pointwise_ns"]), (first + 1,)),
            Node(DeviceOp(t.ATTENTION, params["attention_ns"]), (first,)),
        ]
    nodes.append(Node(DeviceOp(t.UPDATE, params["pointwise_ns"]), (len(nodes) - 2, len(nodes) - 1)))
    return tuple(nodes)


def _ddp(params: Params, seed: int) -> Program:
    """Reduce gradients while the backward pass runs; the last bucket has nothing left to hide behind."""
    ranks = []
    for rank in range(params["ranks"]):
        slower = params["gemm_ns"] * (100 + params["skew_percent"] * rank) // 100
        loop = t.Loop({**params, "gemm_ns": slower})
        buckets = t.Buckets(loop)
        for number in loop.numbers():
            with loop.step(number):
                loop.batch_to_device()
                loop.zero_grad()
                with loop.main.annotation("DistributedDataParallel.forward"):
                    loop.forward()
                loop.backward(buckets.reduce, buckets.finish)
                loop.update()
        ranks.append(loop.rank())
    return t.program(tuple(ranks), params, seed)


def _accumulation(params: Params, seed: int) -> Program:
    """Update once in several profiler steps."""
    loop = t.Loop(params)
    for index, number in enumerate(loop.numbers(), start=1):
        with loop.step(number):
            loop.batch_to_device()
            loop.forward()
            loop.backward()
            if index % params["microbatches"] == 0:
                loop.update()
                loop.zero_grad()
    return t.program((loop.rank(),), params, seed)


def _dataloader(params: Params, seed: int) -> Program:
    """Wait for batches that workers cannot produce fast enough."""
    loop = t.Loop(params)
    for index, number in enumerate(loop.numbers()):
        with loop.step(number):
            with loop.main.annotation(t.NEXT):
                loop.main.work(params["op_ns"])
                loop.main.next_batch(index)
                loop.main.work(params["op_ns"])
            loop.batch_to_device()
            loop.zero_grad()
            loop.forward()
            loop.backward()
            loop.update()
    loader = Loader(params["workers"], params["prefetch"], params["produce_ns"])
    return t.program((loop.rank(loader),), params, seed)


def _full_queue(params: Params, seed: int) -> Program:
    """Launch far more than the queue takes."""
    loop = t.Loop(params)
    for number in loop.numbers():
        with loop.step(number):
            loop.main.work(params["python_ns"])
            for _ in range(params["ops"]):
                with loop.main.op("aten::_foreach_mul_"):
                    loop.main.work(params["op_ns"])
                    for _ in range(params["kernels_per_op"]):
                        loop.main.kernel(t.POINTWISE, params["pointwise_ns"])
            loop.update()
    return t.program((loop.rank(),), params, seed)


HOST_BOUND: Params = {"layers": 4, "gemm_ns": 8_000, "pointwise_ns": 3_000, "op_ns": 12_000, "python_ns": 20_000}
QUEUE: Params = {
    "queue_depth": 16,
    "pointwise_ns": 40_000,
    "op_ns": 5_000,
    "python_ns": 40_000,
    "launch_ns": 4_000,
    "ops": 12,
    "kernels_per_op": 3,
}
DDP: Params = {"ranks": 2, "skew_percent": 12, "transfer_ns": 150_000, "tail_percent": 220, "gemm_ns": 100_000}

SCENARIOS: Mapping[str, Scenario] = {
    scenario.name: scenario
    for scenario in (
        Scenario(
            "device_bound",
            "kernels in stream order; the host runs ahead",
            _plain_steps,
            {"gemm_ns": 180_000, "pointwise_ns": 20_000, "attention_ns": 90_000, "unrecorded_steps": 1},
            (GEMM_CHANGE, Change("kernel", t.POINTWISE, 50, "path"), Change("launch", "cudaLaunchKernel", 50, "slack"), HOST_CHANGE),
        ),
        Scenario(
            "host_bound",
            "operators and Python on the host; kernels are short",
            _plain_steps,
            HOST_BOUND,
            (LAUNCH_CHANGE, HOST_CHANGE, Change("kernel", t.GEMM, 50, "slack"), Change("remove_op", "aten::linear", 0, "path")),
        ),
        Scenario(
            "item_sync",
            "kernels, then the host from the awaited copy to the next launch",
            _item_sync,
            {"gemm_ns": 60_000, "submit_percent": 60},
            (
                GEMM_CHANGE,
                Change("host", "aten::addmm", 50, "slack"),
                Change("launch", "cudaLaunchKernel", 50, "host"),
                Change("remove_op", "aten::item", 0, "path", caveat="the host may then run ahead of the device"),
            ),
        ),
        Scenario(
            "two_streams",
            "the branch on the second stream, entered and left by events",
            _two_streams,
            {"layers": 1, "branch_ns": 150_000, "side_kernels": 3, "near_kernels": 2},
            (Change("kernel", t.ATTENTION, 50, "path"), Change("kernel", t.GEMM, 50, "slack"), Change("host", "aten::matmul", 50, "host")),
            {"branch_ns": (5_000, 250_000), "side_kernels": (1, 4), "near_kernels": (1, 4)},
        ),
        Scenario(
            "graph_step",
            "the longer branch inside the captured step",
            _graph_step,
            {"attention_ns": 90_000, "layers": 4},
            (
                Change("kernel", t.ATTENTION, 50, "path", caveat="edges between graph nodes are not in the trace"),
                Change("kernel", t.POINTWISE, 50, "slack", caveat="edges between graph nodes are not in the trace"),
                Change("launch", "cudaGraphLaunch", 50, "host"),
            ),
            {"attention_ns": (5_000, 200_000)},
        ),
        Scenario(
            "pdl_overlap",
            "kernels in stream order, each beginning before the one before has ended",
            _plain_steps,
            {"gemm_ns": 60_000, "pdl_ns": 2_500},
            (GEMM_CHANGE, Change("launch", "cudaLaunchKernelExC", 50, "slack"), HOST_CHANGE),
            {"pdl_ns": (500, 2_000)},
        ),
        Scenario(
            "ddp_tail",
            "the slower rank's kernels, then the last all-reduce",
            _ddp,
            DDP,
            (
                Change("transfer", t.ALL_REDUCE, 50, "path", caveat="only the transfer shrinks, not the waiting for the slower rank"),
                GEMM_CHANGE,
                Change("launch", "cuLaunchKernelEx", 50, "slack"),
                HOST_CHANGE,
            ),
            {"skew_percent": (-20, 30), "transfer_ns": (10_000, 400_000), "tail_percent": (50, 300)},
        ),
        Scenario(
            "grad_accumulation",
            "kernels of the microbatches and of the one update they share",
            _accumulation,
            {"steps": 6, "microbatches": 2, "gemm_ns": 90_000, "layers": 2},
            (GEMM_CHANGE, Change("kernel", t.UPDATE, 50, "path"), Change("launch", "cudaLaunchKernel", 50, "slack"), HOST_CHANGE),
            {"microbatches": (2, 3)},
        ),
        Scenario(
            "dataloader_bound",
            "the loader's workers",
            _dataloader,
            {"gemm_ns": 30_000, "workers": 2, "prefetch": 2, "produce_ns": 2_600_000},
            (
                Change("data", t.NEXT, 0, "path", caveat="the loader's own host work stays; only the waiting goes"),
                Change("data", t.NEXT, 50, "path", caveat="production is not in the trace; half of it is not half of the waiting"),
                GEMM_CHANGE,
                HOST_CHANGE,
            ),
            {"produce_ns": (100_000, 5_000_000), "workers": (1, 4), "prefetch": (1, 3)},
        ),
        Scenario(
            "full_queue",
            "kernels; launch calls block while the queue is full",
            _full_queue,
            QUEUE,
            (
                Change("kernel", t.POINTWISE, 50, "path"),
                Change("launch", "cudaLaunchKernel", 50, "slack", caveat="long launch calls at a full queue are device time"),
                Change("host", "aten::_foreach_mul_", 50, "host"),
            ),
            {"queue_depth": (2, 40), "ops": (6, 15), "kernels_per_op": (1, 4), "pointwise_ns": (2_000, 60_000)},
        ),
    )
}
