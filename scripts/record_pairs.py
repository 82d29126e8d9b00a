"""Record training loops of one process before and after a change whose size is known beforehand.

    chrt -r 1 python scripts/record_pairs.py
    chrt -r 1 python scripts/record_pairs.py --only loader_hidden op_halved

Needs torch: `python3 -m venv /tmp/vt && /tmp/vt/bin/pip install torch==2.13.0 numpy`.
Each pair differs in one number, see PAIRS. The training thread keeps one core, and helper processes (loader
worker, logger) another where there is one; `chrt` (real-time priority) keeps other programs off them, and is
of no need on a machine with nothing else to do.
"""

from __future__ import annotations

import argparse
import logging
import os
import time
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection

import torch
from record_session import Loop, output_option
from record_turns import record_in_turns
from torch import Tensor, multiprocessing, nn
from torch.profiler import record_function
from torch.utils.data import DataLoader, Dataset

ROWS = 64
FEATURES = 128
SIDE = 384
AfterStep = Callable[[], object]
CORES = sorted(os.sched_getaffinity(0))


class Trainer:
    """A small network, and matrix products that make a step as long as wanted."""

    def __init__(self, products: int = 0) -> None:
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(FEATURES, 2 * FEATURES), nn.ReLU(), nn.Linear(2 * FEATURES, 1))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.targets = torch.zeros(ROWS, 1)
        self.products = products
        self.left, self.product = torch.randn(SIDE, SIDE), torch.empty(SIDE, SIDE)

    def step(self, inputs: Tensor) -> Tensor:
        """Forward, backward, update."""
        for _ in range(self.products):
            torch.mm(self.left, self.left, out=self.product)
        self.optimizer.zero_grad()
        loss = nn.functional.mse_loss(self.model(inputs), self.targets)
        loss.backward()
        self.optimizer.step()
        return loss


class SlowBatches(Dataset[Tensor]):
    """Batches that take a known time to fetch."""

    def __init__(self, count: int, cost_ms: float) -> None:
        self.count = count
        self.cost_s = cost_ms / 1000

    def __len__(self) -> int:
        """How many batches there are."""
        return self.count

    def __getitem__(self, index: int) -> Tensor:
        """One batch, after its wait."""
        time.sleep(self.cost_s)
        return torch.full((ROWS, FEATURES), index / self.count)


def loader(products: int, cost_ms: float, steps: int, after_step: AfterStep) -> None:
    """A batch costs its worker `cost_ms`, while training goes on."""
    trainer = Trainer(products)
    batches = DataLoader(
        SlowBatches(steps, cost_ms), batch_size=None, num_workers=1, worker_init_fn=_to_other_core
    )
    for inputs in batches:
        trainer.step(inputs)
        after_step()


def one_op(elements: int, steps: int, after_step: AfterStep) -> None:
    """One operator over `elements` floats a step, with much to compute for each."""
    trainer, inputs = Trainer(), torch.randn(ROWS, FEATURES)
    counts, logs = torch.linspace(1, 9, elements), torch.empty(elements)
    for _ in range(steps):
        with record_function("big_elementwise"):
            torch.lgamma(counts, out=logs)
        trainer.step(inputs)
        after_step()


def small_ops(count: int, steps: int, after_step: AfterStep) -> None:
    """`count` operators of some ten microseconds each."""
    trainer, inputs = Trainer(), torch.randn(ROWS, FEATURES)
    image = torch.randn(1 << 17)
    for _ in range(steps):
        with record_function("augment"):
            for _ in range(count):
                image.neg_()
        trainer.step(inputs)
        after_step()


def copies(count: int, steps: int, after_step: AfterStep) -> None:
    """Copies that nobody needs, into a buffer made beforehand."""
    trainer, inputs = Trainer(6), torch.randn(ROWS, FEATURES)
    frames = torch.randn(1 << 21)
    staging = torch.zeros_like(frames)
    for _ in range(steps):
        for _ in range(count):
            with record_function("redundant_copy"):
                staging.copy_(frames)
        trainer.step(inputs)
        after_step()


def python_lines(lines: int, steps: int, after_step: AfterStep) -> None:
    """`lines` lines of a log formatted in Python."""
    trainer, inputs = Trainer(), torch.randn(ROWS, FEATURES)
    formatter = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    line = logging.LogRecord("train", logging.INFO, "train.py", 1, "loss %.6f at %d", (0.5, 1), None)
    for _ in range(steps):
        with record_function("format_log"):
            for _ in range(lines):
                formatter.format(line)
        trainer.step(inputs)
        after_step()


def logger(after_sending: Callable[[Connection], None], steps: int, after_step: AfterStep) -> None:
    """Each step sends its loss to a logging process, which takes WRITE_S to write it and answers."""
    trainer, inputs = Trainer(6), torch.randn(ROWS, FEATURES)
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=_write_losses, args=(theirs, steps))
    process.start()
    for _ in range(steps):
        loss = trainer.step(inputs)
        ours.send(float(loss.detach()))
        after_sending(ours)
        after_step()
    process.join()


def _await_answer(pipe: Connection) -> None:
    with record_function("wait_for_logger"):
        pipe.recv()


def _go_on(_: Connection) -> None:
    """The answers stay in the pipe, which has room for them all."""


def _write_losses(pipe: Connection, count: int) -> None:
    _to_other_core(0)
    for _ in range(count):
        loss = pipe.recv()
        time.sleep(WRITE_S)
        pipe.send(loss)


def _to_other_core(_: int) -> None:
    os.sched_setaffinity(0, {CORES[-1]})


WRITE_S = 0.003

PAIRS: dict[str, tuple[Loop, Loop]] = {
    # The loader stays the slower one; in the second pair training becomes the slower one.
    "loader_halved": (partial(loader, 6, 16.0), partial(loader, 6, 8.0)),
    "loader_hidden": (partial(loader, 36, 40.0), partial(loader, 36, 20.0)),
    "op_halved": (partial(one_op, 1 << 20), partial(one_op, 1 << 19)),
    "small_ops_halved": (partial(small_ops, 160), partial(small_ops, 80)),
    "copies_removed": (partial(copies, 4), partial(copies, 0)),
    "python_halved": (partial(python_lines, 1200), partial(python_lines, 600)),
    "wait_removed": (partial(logger, _await_answer), partial(logger, _go_on)),
}


def main(options: argparse.Namespace) -> None:
    """Record the pairs, one after the other."""
    torch.set_num_threads(1)
    os.sched_setaffinity(0, {CORES[0]})
    for name in options.only or PAIRS:
        before, after = PAIRS[name]
        record_in_turns({f"{name}_before": before, f"{name}_after": after}, options.out)


if __name__ == "__main__":
    parser = output_option(__doc__)
    parser.add_argument("--only", nargs="*", choices=sorted(PAIRS), help="these pairs alone")
    main(parser.parse_args())
