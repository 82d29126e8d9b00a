"""Record a training loop that waits for its data loader, once at full cost and once at half of it.

    python scripts/record_dataloader.py --cost-ms 4 --name dataloader_before
    python scripts/record_dataloader.py --cost-ms 2 --name dataloader_after

Needs torch: `python3 -m venv /tmp/vt && /tmp/vt/bin/pip install torch==2.13.0 numpy`.
One worker process sleeps --cost-ms per sample, BATCH samples a batch, so a batch costs BATCH times that much
(and a timer's slack each) while the training itself needs well under a millisecond: the loader sets the step.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import torch
from record_session import Plan, output_option, record, save_periods, step_periods
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

BATCH = 4
FEATURES = 32


class SlowSamples(Dataset[tuple[Tensor, Tensor]]):
    """Samples that take a known time to fetch."""

    def __init__(self, count: int, cost_ms: float) -> None:
        self.count = count
        self.cost_s = cost_ms / 1000

    def __len__(self) -> int:
        """How many samples there are."""
        return self.count

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        """One sample, after its wait."""
        time.sleep(self.cost_s)
        return torch.full((FEATURES,), index / self.count), torch.zeros(1)


def train(cost_ms: float, steps: int, after_step: Callable[[], object]) -> None:
    """Train a small network with SGD for some steps."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(SlowSamples(steps * BATCH, cost_ms), batch_size=BATCH, num_workers=1)
    for inputs, targets in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()
        after_step()


def main(options: argparse.Namespace) -> None:
    """Measure and record the loop at one cost."""
    torch.set_num_threads(1)

    def loop(steps: int, after_step: Callable[[], object]) -> None:
        train(options.cost_ms, steps, after_step)

    save_periods(step_periods(loop), options.out / f"{options.name}.measured.json")
    record(loop, Plan(), options.out / f"{options.name}.json.gz")


if __name__ == "__main__":
    parser = output_option(__doc__)
    parser.add_argument("--cost-ms", type=float, default=4.0, help="time to fetch one sample")
    parser.add_argument("--name", default="dataloader_before", help="name of the recording")
    main(parser.parse_args())
