"""Record a loop with one big operator, and the same loop with that operator's size halved.

    python scripts/record_op_pair.py

Needs torch: `python3 -m venv /tmp/vt && /tmp/vt/bin/pip install torch==2.13.0 numpy`.
The operator is aten::sin over ELEMENTS floats, into a buffer made beforehand, under the annotation
"big_elementwise"; in op_pair_after it runs over half of them. All else is equal. The two loops are timed in
turns, so that a busy machine is busy for both.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import torch
from record_session import Plan, output_option, record, save_periods, step_periods
from torch import nn
from torch.profiler import record_function

ELEMENTS = 1 << 22
ROWS = 64
FEATURES = 128
ROUNDS = 4
STEPS_PER_ROUND = 20


def train(elements: int, steps: int, after_step: Callable[[], object]) -> None:
    """Train a small network beside the big operator."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(FEATURES, 4 * FEATURES), nn.ReLU(), nn.Linear(4 * FEATURES, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs, targets = torch.randn(ROWS, FEATURES), torch.zeros(ROWS, 1)
    angles, sines = torch.linspace(0, 1, elements), torch.empty(elements)
    for _ in range(steps):
        with record_function("big_elementwise"):
            torch.sin(angles, out=sines)
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()
        after_step()


def before(steps: int, after_step: Callable[[], object]) -> None:
    """The loop with the operator at full size."""
    train(ELEMENTS, steps, after_step)


def after(steps: int, after_step: Callable[[], object]) -> None:
    """The loop with the operator at half size."""
    train(ELEMENTS // 2, steps, after_step)


def main(options: argparse.Namespace) -> None:
    """Time the two loops in turns, then record each."""
    torch.set_num_threads(1)
    loops = {"op_pair_before": before, "op_pair_after": after}
    periods: dict[str, list[int]] = {name: [] for name in loops}
    for _ in range(ROUNDS):
        for name, loop in loops.items():
            periods[name] += step_periods(loop, STEPS_PER_ROUND)
    for name, loop in loops.items():
        save_periods(periods[name], options.out / f"{name}.measured.json")
        record(loop, Plan(), options.out / f"{name}.json.gz")


if __name__ == "__main__":
    main(output_option(__doc__).parse_args())
