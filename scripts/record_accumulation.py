"""Record gradient accumulation: four microbatches per AdamW update, with memory, shapes and (once) stacks.

    python scripts/record_accumulation.py

Needs torch: `python3 -m venv /tmp/vt && /tmp/vt/bin/pip install torch==2.13.0 numpy`.
Three recordings of one loop: accumulation_microbatch (prof.step() after each microbatch), accumulation_update
(after each update) and accumulation_stacks (after each update, with Python frames, module frames and call
stacks).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import torch
from record_session import Plan, output_option, record, save_periods, step_periods
from torch import nn

MICROBATCHES = 4
ROWS = 64
FEATURES = 64


class Net(nn.Module):
    """Two layers with names of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(FEATURES, 2 * FEATURES)
        self.head = nn.Linear(2 * FEATURES, 1)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Predict one value per row."""
        return self.head(torch.relu(self.body(inputs)))


def train(updates: int, after_microbatch: Callable[[], object], after_update: Callable[[], object]) -> None:
    """Train with one optimizer step per MICROBATCHES backward passes."""
    torch.manual_seed(0)
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    inputs, targets = torch.randn(ROWS, FEATURES), torch.zeros(ROWS, 1)
    for _ in range(updates):
        for microbatch in range(MICROBATCHES):
            loss = nn.functional.mse_loss(model(inputs), targets) / MICROBATCHES
            loss.backward()
            if microbatch == MICROBATCHES - 1:
                optimizer.step()
                optimizer.zero_grad()
            after_microbatch()
        after_update()


def by_microbatch(steps: int, after_step: Callable[[], object]) -> None:
    """The loop, with a microbatch as the step."""
    train(steps // MICROBATCHES, after_step, lambda: None)


def by_update(steps: int, after_step: Callable[[], object]) -> None:
    """The loop, with an update as the step."""
    train(steps, lambda: None, after_step)


def main(options: argparse.Namespace) -> None:
    """Measure the loop by update, and record it three times."""
    torch.set_num_threads(1)
    out = options.out
    save_periods(step_periods(by_update), out / "accumulation_update.measured.json")
    # One whole update passes before the first recorded microbatch, so the recorded ones are two whole updates.
    microbatches = Plan(wait=1, warmup=MICROBATCHES - 1, active=2 * MICROBATCHES, memory=True)
    record(by_microbatch, microbatches, out / "accumulation_microbatch.json.gz")
    record(by_update, Plan(active=3, memory=True), out / "accumulation_update.json.gz")
    record(by_update, Plan(active=2, stacks=True), out / "accumulation_stacks.json.gz")


if __name__ == "__main__":
    main(output_option(__doc__).parse_args())
