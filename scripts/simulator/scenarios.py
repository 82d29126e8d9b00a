"""Ten kinds of training step, each bound by something else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random

from . import steps
from . import training as t
from .change import Change
from .program import Program
from .script import Params

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
GRAPH_CAVEAT = "edges between graph nodes are not in the trace"
SYNC_CAVEAT = "the host may then run ahead of the device"
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


HOST_BOUND: Params = {
    "layers": 4,
    "gemm_ns": 8_000,
    "pointwise_ns": 3_000,
    "op_ns": 12_000,
    "python_ns": 20_000,
}
QUEUE: Params = {
    "queue_depth": 16,
    "pointwise_ns": 40_000,
    "op_ns": 5_000,
    "python_ns": 40_000,
    "launch_ns": 4_000,
    "ops": 12,
    "kernels_per_op": 3,
}
DDP: Params = {
    "ranks": 2,
    "skew_percent": 12,
    "transfer_ns": 150_000,
    "tail_percent": 220,
    "gemm_ns": 100_000,
}

SCENARIOS: Mapping[str, Scenario] = {
    scenario.name: scenario
    for scenario in (
        Scenario(
            "device_bound",
            "kernels in stream order; the host runs ahead",
            steps.plain_steps,
            {"gemm_ns": 180_000, "pointwise_ns": 20_000, "attention_ns": 90_000, "unrecorded_steps": 1},
            (
                GEMM_CHANGE,
                Change("kernel", t.POINTWISE, 50, "path"),
                Change("launch", "cudaLaunchKernel", 50, "slack"),
                HOST_CHANGE,
            ),
        ),
        Scenario(
            "host_bound",
            "operators and Python on the host; kernels are short",
            steps.plain_steps,
            HOST_BOUND,
            (
                LAUNCH_CHANGE,
                HOST_CHANGE,
                Change("kernel", t.GEMM, 50, "slack"),
                Change("op", "aten::mm", 50, "path"),
                Change("remove_op", "aten::linear", 0, "path"),
            ),
        ),
        Scenario(
            "item_sync",
            "kernels, then the host from the awaited copy to the next launch",
            steps.item_sync,
            {"gemm_ns": 60_000, "submit_percent": 60},
            (
                GEMM_CHANGE,
                Change("host", "aten::threshold_backward", 50, "slack"),
                Change("launch", "cudaLaunchKernel", 50, "host"),
                Change("host", "aten::_local_scalar_dense", 50, "host"),
                Change("remove_sync", "", 0, "path", SYNC_CAVEAT),
                Change("remove_op", "aten::item", 0, "path", SYNC_CAVEAT),
            ),
        ),
        Scenario(
            "two_streams",
            "the branch on the second stream, entered and left by events",
            steps.two_streams,
            {"layers": 1, "branch_ns": 150_000, "side_kernels": 3, "near_kernels": 2},
            (
                Change("kernel", t.ATTENTION, 50, "path"),
                Change("kernel", t.BRANCH, 50, "slack"),
                Change("host", "aten::matmul", 50, "host"),
            ),
            {"branch_ns": (5_000, 250_000), "side_kernels": (1, 4), "near_kernels": (1, 4)},
        ),
        Scenario(
            "graph_step",
            "the longer branch inside the captured step",
            steps.graph_step,
            {"attention_ns": 90_000, "layers": 4},
            (
                Change("kernel", t.ATTENTION, 50, "path", GRAPH_CAVEAT),
                Change("kernel", t.POINTWISE, 50, "slack", GRAPH_CAVEAT),
                Change("launch", "cudaGraphLaunch", 50, "host"),
            ),
            {"attention_ns": (5_000, 200_000)},
        ),
        Scenario(
            "pdl_overlap",
            "kernels in stream order, each beginning before the one before has ended",
            steps.plain_steps,
            {"gemm_ns": 60_000, "pdl_ns": 2_500},
            (GEMM_CHANGE, Change("launch", "cudaLaunchKernelExC", 50, "slack"), HOST_CHANGE),
            {"pdl_ns": (500, 2_000)},
        ),
        Scenario(
            "ddp_tail",
            "the slower rank's kernels, then the last all-reduce",
            steps.ddp,
            DDP,
            (
                Change(
                    "transfer",
                    t.ALL_REDUCE,
                    50,
                    "path",
                    caveat="only the transfer shrinks, not the waiting for the slower rank",
                ),
                GEMM_CHANGE,
                Change("launch", "cuLaunchKernelEx", 50, "slack"),
                HOST_CHANGE,
            ),
            {"skew_percent": (-20, 30), "transfer_ns": (10_000, 400_000), "tail_percent": (50, 300)},
        ),
        Scenario(
            "grad_accumulation",
            "kernels of the microbatches and of the one update they share",
            steps.accumulation,
            {"steps": 6, "microbatches": 2, "gemm_ns": 90_000, "layers": 2},
            (
                GEMM_CHANGE,
                Change("kernel", t.UPDATE, 50, "path"),
                Change("launch", "cudaLaunchKernel", 50, "slack"),
                HOST_CHANGE,
            ),
            {"microbatches": (2, 3)},
        ),
        Scenario(
            "dataloader_bound",
            "the loader's workers",
            steps.dataloader,
            {"gemm_ns": 30_000, "workers": 1, "prefetch": 2, "produce_ns": 1_300_000},
            (
                Change(
                    "data",
                    t.NEXT,
                    0,
                    "path",
                    caveat="the loader's own host work stays; only the waiting goes",
                ),
                Change(
                    "data",
                    t.NEXT,
                    50,
                    "path",
                    caveat="production is not in the trace; half of it is not half of the waiting",
                ),
                Change("kernel", t.GEMM_BACKWARD, 50, "slack"),
                HOST_CHANGE,
            ),
            {"produce_ns": (100_000, 5_000_000), "workers": (1, 4), "prefetch": (1, 3)},
        ),
        Scenario(
            "full_queue",
            "kernels; launch calls block while the queue is full",
            steps.full_queue,
            QUEUE,
            (
                Change("kernel", t.POINTWISE, 50, "path"),
                Change(
                    "launch",
                    "cudaLaunchKernel",
                    50,
                    "slack",
                    caveat="long launch calls at a full queue are device time",
                ),
                Change("host", "aten::_foreach_mul_", 50, "host"),
            ),
            {
                "queue_depth": (2, 40),
                "ops": (6, 15),
                "kernels_per_op": (1, 4),
                "pointwise_ns": (2_000, 60_000),
            },
        ),
    )
}
