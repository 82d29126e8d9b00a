"""Record rank 0 of two, with a barrier after each step and without it.

    chrt -r 1 python scripts/record_barrier.py

Needs torch: `python3 -m venv /tmp/vt && /tmp/vt/bin/pip install torch==2.13.0 numpy`.
The ranks share no gradients (each trains a member of an ensemble, say), and rank 1 has twice the work: with
the barrier rank 0 goes at rank 1's pace, without it at its own.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
from record_pairs import FEATURES, ROWS, Trainer
from record_session import Loop, output_option, start_ranks
from record_turns import record_in_turns
from torch import distributed
from torch.profiler import record_function

WORLD = 2
PRODUCTS = 6


def training_loop(products: int, between_steps: Callable[[], None]) -> Loop:
    """A loop with so many matrix products of its own in each step."""

    def loop(steps: int, after_step: Callable[[], object]) -> None:
        trainer, inputs = Trainer(products), torch.randn(ROWS, FEATURES)
        distributed.barrier()  # the versions are recorded in turns, on both ranks at the same time
        for _ in range(steps):
            trainer.step(inputs)
            between_steps()
            after_step()

    return loop


def meet() -> None:
    """Wait for the other rank."""
    with record_function("meet"):
        distributed.barrier()


def go_on() -> None:
    """Wait for nobody."""


def run_rank(rank: int, store: str, out: Path) -> None:
    """Join the group and record; only what rank 0 records is kept."""
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=WORLD)
    # A core of its own for this thread, as a launcher would give it; gloo's threads have started, and stay free.
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[rank % len(cores)]})
    products = PRODUCTS * (rank + 1)
    loops = {
        "barrier_removed_before": training_loop(products, meet),
        "barrier_removed_after": training_loop(products, go_on),
    }
    with tempfile.TemporaryDirectory() as unwanted:
        record_in_turns(loops, Path(unwanted) if rank else out)
    distributed.barrier()
    distributed.destroy_process_group()


def main(options: argparse.Namespace) -> None:
    """Start the ranks."""
    start_ranks(run_rank, WORLD, options.out)


if __name__ == "__main__":
    main(output_option(__doc__).parse_args())
