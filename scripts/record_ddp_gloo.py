"""Record two DDP ranks over gloo, the second with more to compute than the first.

    python scripts/record_ddp_gloo.py

Needs torch: `python3 -m venv /tmp/vt && /tmp/vt/bin/pip install torch==2.13.0 numpy`.
Each rank multiplies two SIDE x SIDE matrices COMMON times under the annotation "rank_work" before its
forward pass, and rank 1 EXTRA times more: rank 0 waits for it in the all-reduce. The loop is also timed
without the extra work (ddp_gloo_balanced.measured.json), which is what a perfectly balanced job would take.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path

import torch
from record_session import Loop, Plan, output_option, record, save_periods, start_ranks, step_periods
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import record_function

WORLD = 2
SIDE = 320
COMMON = 2
EXTRA = 4
ROWS = 16
FEATURES = 64


def training_loop(repeats: int) -> Loop:
    """A loop that trains under DDP, with `repeats` matrix products of its own in each step."""

    def loop(steps: int, after_step: Callable[[], object]) -> None:
        torch.manual_seed(0)
        model = DistributedDataParallel(
            nn.Sequential(nn.Linear(FEATURES, FEATURES), nn.ReLU(), nn.Linear(FEATURES, 1))
        )
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        inputs, targets = torch.randn(ROWS, FEATURES), torch.zeros(ROWS, 1)
        left, product = torch.randn(SIDE, SIDE), torch.empty(SIDE, SIDE)
        for _ in range(steps):
            with record_function("rank_work"):
                for _ in range(repeats):
                    torch.mm(left, left, out=product)
            optimizer.zero_grad()
            nn.functional.mse_loss(model(inputs), targets).backward()
            optimizer.step()
            after_step()

    return loop


def run_rank(rank: int, store: str, out: Path) -> None:
    """Join the group, time the balanced and the uneven loop, record the uneven one."""
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=WORLD)
    # A core of its own for this thread, as a launcher would give it: else the ranks take turns on one core, and
    # neither the work nor the waits are those of the code. Gloo's threads have started, and stay free.
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[rank % len(cores)]})
    uneven = training_loop(COMMON + EXTRA * rank)
    timed = {"ddp_gloo_balanced": step_periods(training_loop(COMMON)), "ddp_gloo": step_periods(uneven)}
    if rank == 0:
        for name, periods in timed.items():
            save_periods(periods, out / f"{name}.measured.json")
    distributed.barrier()
    record(uneven, Plan(wait=2, warmup=2), out / f"ddp_gloo_rank{rank}.json.gz")
    distributed.barrier()
    distributed.destroy_process_group()


def main(options: argparse.Namespace) -> None:
    """Start the ranks."""
    start_ranks(run_rank, WORLD, options.out)


if __name__ == "__main__":
    main(output_option(__doc__).parse_args())
