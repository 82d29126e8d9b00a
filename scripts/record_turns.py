"""Record several versions of one loop in turns, so that what disturbs the machine disturbs them all alike.

Used by record_pairs.py and record_barrier.py; needs torch (see record_session.py). A turn runs every version
twice: under the profiler, where ProfilerStep gives its periods, and with a stopwatch alone. TURNS turns are a
session, and of SESSIONS sessions the steadiest is kept: the one in which the noisier version is least noisy.
Of a version's recordings in it the most typical is kept: the one whose periods stay closest to the median of
all its profiled periods, the farthest of them counting. Neither choice knows of any prediction.
"""

from __future__ import annotations

import itertools
import json
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from record_session import Loop, Plan, save_measured, save_trace, step_periods, traced

SESSIONS = 4
TURNS = 8
STEPS_PER_TURN = 24
PLAN = Plan(wait=3, warmup=2, active=7)


@dataclass(slots=True)
class Runs:
    """What the turns of one version gave: each recording with its periods, and the unprofiled periods, in ns."""

    recordings: list[tuple[list[int], bytes]] = field(default_factory=list)
    timed: list[int] = field(default_factory=list)

    @property
    def profiled(self) -> list[int]:
        """The profiled periods of all turns."""
        return [period for periods, _ in self.recordings for period in periods]

    @property
    def noise(self) -> float:
        """Half the distance of the quartiles of the profiled periods, over their median."""
        q1, median, q3 = statistics.quantiles(self.profiled, n=4, method="inclusive")
        return (q3 - q1) / 2 / median

    def typical(self) -> bytes:
        """The trace whose periods stay closest to the median of all."""
        middle = statistics.median(self.profiled)
        return min(self.recordings, key=lambda found: max(abs(ns - middle) for ns in found[0]))[1]


def record_in_turns(loops: Mapping[str, Loop], out: Path) -> None:
    """Save NAME.json.gz and NAME.measured.json for each version of a loop, by name."""
    sessions = [_session(loops) for _ in range(SESSIONS)]
    kept = min(sessions, key=lambda runs: max(run.noise for run in runs.values()))
    for name, run in kept.items():
        path = out / f"{name}.json.gz"
        save_trace(run.typical(), path)
        save_measured(run.timed, run.profiled, out / f"{name}.measured.json")


def _session(loops: Mapping[str, Loop]) -> dict[str, Runs]:
    """TURNS turns, after one that is not kept."""
    runs = {name: Runs() for name in loops}
    for turn in range(TURNS + 1):
        # To and fro, so that a machine growing slower or faster favours neither.
        for name in list(loops)[:: 1 if turn % 2 else -1]:
            trace = traced(loops[name], PLAN)
            timed = step_periods(loops[name], STEPS_PER_TURN)
            if turn:
                runs[name].recordings.append((profiled_periods(trace), trace))
                runs[name].timed += timed
    return runs


def profiled_periods(trace: bytes) -> list[int]:
    """From end to end of the recorded steps, in ns; the first two steps are left out, as stepcrit leaves them out."""
    events = json.loads(trace, parse_float=Decimal, strict=False)["traceEvents"]
    ends = sorted(_end_ns(event) for event in events if _is_step(event))
    return [after - before for before, after in itertools.pairwise(ends[1:])]


def _is_step(event: dict[str, Any]) -> bool:
    return event.get("ph") == "X" and str(event.get("name")).startswith("ProfilerStep#")


def _end_ns(event: dict[str, Any]) -> int:
    return round(1000 * (Decimal(event["ts"]) + Decimal(event["dur"])))
