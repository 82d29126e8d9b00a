"""Pairs of simulated traces with a known change between them: what `diff` must find out by itself."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from pathlib import Path

from scripts.simulator import kineto
from scripts.simulator.change import Change, apply
from scripts.simulator.engine import simulate
from scripts.simulator.scenarios import SCENARIOS

STEPS = 10


def written(
    path: Path,
    scenario: str,
    changes: tuple[Change, ...] = (),
    params: Mapping[str, int] | None = None,
    *,
    seed: int = 1,
    rank: int = 0,
) -> str:
    """Simulate a scenario with changes really made; returns the path of one rank's trace."""
    program = SCENARIOS[scenario].program({"steps": STEPS, **(params or {})}, seed)
    for change in changes:
        program = apply(change, program)
    text = kineto.write(simulate(program), rank).text
    path.write_bytes(gzip.compress(text.encode(), mtime=0))
    return str(path)
