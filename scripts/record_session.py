"""Run one training loop twice: under the profiler for its trace, without it for its true step period.

Used by the other record_*.py scripts; needs torch and stepcrit (`pip install torch==2.13.0 .` in a venv of its own).
A loop is a function of (number of steps, what to call after each step), so that profiler and stopwatch see
the very same code.
"""

from __future__ import annotations

import argparse
import io
import itertools
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from torch import multiprocessing
from torch._C._profiler import _ExperimentalConfig
from torch.profiler import ProfilerActivity, profile, schedule

from stepcrit.report.drafts import put
from stepcrit.slimming import SlimOptions, slim

Loop = Callable[[int, Callable[[], object]], None]

RECORDED = Path(__file__).resolve().parent.parent / "fixtures" / "recorded"
SETTLING_STEPS = 10
MEASURED_STEPS = 80


def start_ranks(run_rank: Callable[[int, str, Path], None], world: int, out: Path) -> None:
    """Run `(rank, store, out)` in a process for each rank, with a store that no other process can meet."""
    with tempfile.TemporaryDirectory() as folder:
        multiprocessing.spawn(run_rank, args=(f"{folder}/store", out), nprocs=world)


@dataclass(frozen=True, slots=True)
class Plan:
    """Which steps are recorded, and with what."""

    wait: int = 1
    warmup: int = 1
    active: int = 5
    memory: bool = False
    stacks: bool = False

    @property
    def steps(self) -> int:
        """How many steps the loop has to run."""
        return self.wait + self.warmup + self.active


def output_option(doc: str) -> argparse.ArgumentParser:
    """A parser with --out, the folder that every recording goes to."""
    parser = argparse.ArgumentParser(description=doc.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=RECORDED, help="folder of the recordings")
    return parser


def record(loop: Loop, plan: Plan, path: Path) -> None:
    """Run `loop` under the profiler and save its trace, slimmed."""
    save_trace(traced(loop, plan), path)


def save_trace(trace: bytes, path: Path) -> None:
    """Save a trace with all of its steps and stacks, without what tells where it was recorded."""
    slim(io.BytesIO(trace), path, SlimOptions(steps="all", stacks=True), force=True)
    print(f"{path.name}: {path.stat().st_size} bytes")


def traced(loop: Loop, plan: Plan) -> bytes:
    """Run `loop` under the profiler and return its trace as it was written."""
    with tempfile.TemporaryDirectory() as folder:
        raw = Path(folder) / "raw.json"
        with profile(
            activities=[ProfilerActivity.CPU],
            schedule=schedule(wait=plan.wait, warmup=plan.warmup, active=plan.active, repeat=1),
            on_trace_ready=lambda finished: finished.export_chrome_trace(str(raw)),
            record_shapes=True,
            profile_memory=plan.memory,
            with_stack=plan.stacks,
            with_modules=plan.stacks,
            # Without verbose the frames are recorded, but "Call stack" is not written on the operators.
            experimental_config=_ExperimentalConfig(verbose=plan.stacks),
        ) as profiler:
            loop(plan.steps, profiler.step)
        return raw.read_bytes()


def step_periods(loop: Loop, steps: int = MEASURED_STEPS) -> list[int]:
    """The periods of `loop`, in ns, without the profiler and without the first few steps."""
    stamps: list[int] = []
    loop(SETTLING_STEPS + steps, lambda: stamps.append(time.perf_counter_ns()))
    settled = stamps[SETTLING_STEPS - 1 :]
    return [end - start for start, end in itertools.pairwise(settled)]


def save_periods(periods: list[int], path: Path) -> None:
    """Save the count, the median and the quartiles of step periods."""
    _save(summed_up(periods), path)


def save_measured(timed: list[int], profiled: list[int], path: Path) -> None:
    """The same for periods without the profiler, and under "profiled" for those with it."""
    _save({**summed_up(timed), "profiled": summed_up(profiled)}, path)


def summed_up(periods: list[int]) -> dict[str, int]:
    """Count, median and quartiles, in ns."""
    q1, median, q3 = (round(cut) for cut in statistics.quantiles(periods, n=4, method="inclusive"))
    return {"median_ns": median, "n": len(periods), "q1_ns": q1, "q3_ns": q3}


def _save(summary: Mapping[str, object], path: Path) -> None:
    text = json.dumps({**summary, "schema": 1}, indent=2, sort_keys=True)
    put((text + "\n").encode(), str(path))
    print(f"{path.name}: {summary}")
