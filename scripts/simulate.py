"""Simulate training steps and write them as profiler traces, each with its truth.

python scripts/simulate.py list
python scripts/simulate.py write ddp_tail --seed 1 --out /tmp/traces
python scripts/simulate.py fixtures
"""

from __future__ import annotations

import argparse
import gzip
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from simulator import kineto, truth
from simulator.engine import simulate
from simulator.scenarios import SCENARIOS, Scenario
from simulator.script import Params

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures" / "simulated"


@dataclass(frozen=True, slots=True)
class Fixture:
    """A committed run: a scenario, and how it departs from its defaults."""

    name: str
    scenario: str
    overrides: Mapping[str, int] = field(default_factory=dict)
    seed: int = 1


FIXTURE_RUNS = (
    Fixture("device_bound", "device_bound"),
    Fixture("host_bound", "host_bound"),
    Fixture("item_sync", "item_sync"),
    Fixture("two_streams", "two_streams"),
    Fixture("two_streams_sync_records", "two_streams", {"sync_records": 1}),
    Fixture("graph_step", "graph_step"),
    Fixture("pdl_overlap", "pdl_overlap"),
    Fixture("ddp_tail", "ddp_tail"),
    Fixture("grad_accumulation", "grad_accumulation"),
    Fixture("dataloader_bound", "dataloader_bound"),
    Fixture("full_queue_16", "full_queue"),
    Fixture(
        "full_queue_1023",
        "full_queue",
        {"queue_depth": 1_023, "ops": 15, "kernels_per_op": 20, "flows": 0, "jitter_permille": 0},
    ),
)


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line asks."""
    options = _parser().parse_args(arguments)
    if options.verb == "list":
        for scenario in SCENARIOS.values():
            print(f"{scenario.name:18} {scenario.decides}")
        return 0
    if options.verb == "write":
        files = _render(*_requested(options))
        out = options.out
    else:
        files, out = fixtures(), FIXTURES
    for name, text in files.items():
        print(_save(out / name, text))
    return 0


def fixtures() -> dict[str, str]:
    """Return the text of every committed file, by name, before compression."""
    files: dict[str, str] = {}
    for run in FIXTURE_RUNS:
        scenario = SCENARIOS[run.scenario]
        files |= _render(run, scenario.params(run.overrides))
    return files | {"README.md": _readme()}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("list", help="name the scenarios and what decides their step length")
    verbs.add_parser("fixtures", help="write fixtures/simulated anew")
    write = verbs.add_parser("write", help="simulate one scenario")
    write.add_argument("scenario", choices=sorted(SCENARIOS))
    write.add_argument("--seed", type=int, default=1)
    write.add_argument("--out", type=Path, default=Path())
    write.add_argument("--draw", action="store_true", help="draw the parameters at random from the seed")
    write.add_argument("--ranks", type=int, help="ranks of a job with collectives (default 2)")
    return parser


def _requested(options: argparse.Namespace) -> tuple[Fixture, dict[str, int]]:
    scenario = SCENARIOS[options.scenario]
    params = scenario.draw(Random(options.seed)) if options.draw else scenario.params()
    if options.ranks and "ranks" in params:
        params["ranks"] = options.ranks
    return Fixture(scenario.name, scenario.name, seed=options.seed), params


def _render(fixture: Fixture, params: Params) -> dict[str, str]:
    """Simulate once as is and once for each change; return the files by name."""
    scenario: Scenario = SCENARIOS[fixture.scenario]
    program = scenario.program(params, fixture.seed)
    run = simulate(program)
    ranks = range(len(program.ranks))
    traces = [kineto.write(run, rank) for rank in ranks]
    outcomes = {change: truth.outcome(program, change) for change in scenario.changes}
    head = truth.heading(scenario.name, fixture.seed, params, scenario.decides)
    files = {}
    for rank, stem in enumerate(_stems(fixture.name, len(program.ranks))):
        files[f"{stem}.json.gz"] = traces[rank].text
        told = head | {"trace": f"{stem}.json.gz", "rank": rank} | truth.tell(run, rank, traces, outcomes)
        files[f"{stem}.truth.json"] = truth.render(told)
    return files


def _stems(name: str, ranks: int) -> Iterator[str]:
    yield from [name] if ranks == 1 else (f"{name}.rank{rank}" for rank in range(ranks))


def _save(path: Path, text: str) -> str:
    """Write a file, compressed without a date so that equal runs give equal bytes; return a line about it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = text.encode()
    if path.suffix == ".gz":
        data = gzip.compress(data, mtime=0)
    path.write_bytes(data)
    return f"{path.name}  {len(data)} bytes"


def _readme() -> str:
    """One line a committed file: what decides its step length, and how it was made."""
    lines = [
        "# Simulated traces",
        "",
        "Written by `python scripts/simulate.py fixtures`; nothing here was recorded on a machine. Beside each",
        "`NAME.json.gz` lies `NAME.truth.json`: steps, real dependencies and causes of the run (numbers of activities",
        "are positions in `traceEvents`), and the steps after each change, from a run with that change really made.",
        "",
        "| file | scenario, seed | departs from the scenario's defaults | what decides the step length |",
        "|---|---|---|---|",
    ]
    for run in FIXTURE_RUNS:
        scenario = SCENARIOS[run.scenario]
        departs = ", ".join(f"{key} {value}" for key, value in run.overrides.items()) or "no"
        row = f"{run.scenario}, {run.seed} | {departs} | {scenario.decides}"
        lines += [f"| `{stem}` | {row} |" for stem in _stems(run.name, scenario.params().get("ranks", 1))]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
