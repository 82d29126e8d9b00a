"""Time and memory of stepcrit beside the limit of reading, and beside its peers: whole processes, in one run.

    python scripts/bench.py                              corpus traces (STEPCRIT_CORPUS), else fixtures
    python scripts/bench.py --scaled 100,500,2000        and traces of so many MB of JSON, made for the run
    python scripts/bench.py --hta VENV/bin/python        and HTA's load and critical path (STEPCRIT_BENCH_HTA)
    python scripts/bench.py --tracelens VENV/bin/python  and TraceLens's report (STEPCRIT_BENCH_TRACELENS)
    python scripts/bench.py --readme                     and write the table into README.md

Who is compared runs in turn (A B A B …), so that a busy spell hits everyone; medians are taken, and ratios
of one run are what to quote. `--clock cpu` counts processor time instead of elapsed time, for a machine that
others use as well. TraceLens is AMD's, from its repository: what PyPI has by that name is something else. A
peer runs once on traces above 300 MB, and not at all above 600 MB. Peers print a warning a dependency and write
more tables than stepcrit: these are ratios of time to an answer, not of identical work.
"""

from __future__ import annotations

import argparse
import gzip
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
SCALE = ROOT / "scripts" / "scale_trace.py"
MARK = re.compile(r"(<!-- bench -->\n).*?(<!-- /bench -->)", re.DOTALL)
CORPUS = (
    "param-dlrm-8rank/worker0_step_12.1694128201545.pt.trace.json.gz",
    "hta-v100-ns/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz",
    "kineto-old/nw0_list_worker0.pt.trace.json.gz",
    "tl-h100-hf/google_owlv2-large-patch14-ensemble__1016001.json.gz",
    "tl-mi300x-xdit-aiter/flux_aiter_sage_profile_trace_rank_0.json.gz",
)
SEEDS = (
    "tl-h100-hf/google_owlv2-large-patch14-ensemble__1016001.json.gz",
    "tl-mi300x-resnet-ddp-r0/resnet_act_checkpoint.json.gz",
)
"""What is repeated for large traces: both for 500 MB and less, the last, with more events a byte, above."""

BOTH_UP_TO_MB = 500
ONCE_ABOVE_MB, NEVER_ABOVE_MB = 300, 600

READ = (
    "import gzip, sys; p = sys.argv[1]; f = (gzip.open if p.endswith('gz') else open)(p, 'rb')\n"
    "while f.read(1 << 22): pass"
)
IMPORTS = "import numpy, typer, rich"
LOAD = "import sys; from stepcrit.session import load; t = load(sys.argv[1]); print(t.meta.json_bytes, t.meta.event_count)"
HTA = (
    "import sys; from hta.trace_analysis import TraceAnalysis\n"
    "t = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir='/')\n"
    "g, ok = t.critical_path_analysis(rank=0, annotation='ProfilerStep', instance_id=0)\n"
    "sys.exit(not (ok and len(g.critical_path_nodes)))"
)
TRACELENS = (
    "import sys, tempfile; from TraceLens.Reporting.generate_perf_report_pytorch import generate_perf_report_pytorch\n"
    "generate_perf_report_pytorch(profile_json_path=sys.argv[1], output_csvs_dir=tempfile.mkdtemp())"
)


@dataclass(frozen=True, slots=True)
class Contender:
    """Something that is run on a trace.

    Attributes:
        name: its column.
        command: without the trace's path.
        after: arguments behind the path.
        kernels: which of our kernels it runs with.
        is_peer: whether it is somebody else's.
    """

    name: str
    command: tuple[str, ...]
    after: tuple[str, ...] = ()
    kernels: str = ""
    is_peer: bool = False


@dataclass(frozen=True, slots=True)
class Cost:
    """What one process took."""

    seconds: float
    peak_mb: float
    said: str


def main(arguments: list[str] | None = None) -> int:
    """Measure, print the table, and write it where it is wanted."""
    options = _options(arguments)
    with tempfile.TemporaryDirectory(prefix="stepcrit-bench-", dir=options.folder) as folder:
        rows = []
        for path in chain(_given(options.traces), _scaled(options.scaled, Path(folder))):
            rows.append(row := _row(path, _contenders(options), options, Path(folder)))
            print(row, flush=True)
            if path.is_relative_to(folder):
                path.unlink()
    table = "\n".join([_machine(options), "", *HEAD, *rows])
    print(f"\n{table}")
    if options.readme:
        text = README.read_text(encoding="utf-8")
        README.write_text(MARK.sub(lambda m: f"{m[1]}{table}\n{m[2]}", text), encoding="utf-8")
    return 0


HEAD = (
    "| trace | JSON MB | events | seconds | load | analyze | rank | analyze, plain | of imports | HTA | TraceLens | events/s | plain | peak MB | of budget |",
    "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|",
)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("traces", nargs="*", type=Path)
    parser.add_argument("--scaled", default="", metavar="MB,MB", help="also traces of such sizes")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    parser.add_argument("--hta", default=os.environ.get("STEPCRIT_BENCH_HTA", ""), metavar="PYTHON")
    parser.add_argument(
        "--tracelens", default=os.environ.get("STEPCRIT_BENCH_TRACELENS", ""), metavar="PYTHON"
    )
    parser.add_argument("--folder", type=Path, help="where large traces are made")
    parser.add_argument("--readme", action="store_true", help="write the table into README.md")
    return parser.parse_args(arguments)


def _given(paths: list[Path]) -> list[Path]:
    """The traces of the command line; else of the corpus; else small ones that are always there."""
    if paths:
        return [path.resolve() for path in paths]
    corpus = Path(os.environ.get("STEPCRIT_CORPUS") or ROOT / "absent")
    found = [corpus / name for name in CORPUS if (corpus / name).exists()]
    return found or sorted((ROOT / "fixtures" / "simulated").glob("*.json.gz"))[:3]


def _scaled(sizes: str, folder: Path) -> Iterator[Path]:
    """Large traces, each made when its turn comes."""
    corpus = Path(os.environ.get("STEPCRIT_CORPUS") or ROOT / "absent")
    fixture = ROOT / "fixtures" / "simulated" / "host_bound.json.gz"
    for size in filter(None, sizes.split(",")):
        names = SEEDS if float(size) <= BOTH_UP_TO_MB else SEEDS[-1:]
        for seed in dict.fromkeys(found if (found := corpus / name).exists() else fixture for name in names):
            target = folder / f"{seed.name.partition('.')[0][:16]} x {size} MB.json.gz"
            # By a process of its own: a child's peak memory is at least what its parent has when it is started.
            scale = [sys.executable, SCALE, seed, "-o", target, "--megabytes", size]
            subprocess.run(scale, check=True, capture_output=True)
            yield target


def _contenders(options: argparse.Namespace) -> list[Contender]:
    ours = sys.executable
    found = [
        Contender("read", (ours, "-c", READ)),
        Contender("imports", (ours, "-c", IMPORTS)),
        Contender("load", (ours, "-c", LOAD)),
        Contender("analyze", (ours, "-m", "stepcrit", "analyze")),
        Contender("rank", (ours, "-m", "stepcrit", "whatif"), ("--rank",)),
        Contender("plain", (ours, "-m", "stepcrit", "analyze"), kernels="plain"),
    ]
    found += [Contender("HTA", (options.hta, "-c", HTA), is_peer=True)] if options.hta else []
    found += (
        [Contender("TraceLens", (options.tracelens, "-c", TRACELENS), is_peer=True)]
        if options.tracelens
        else []
    )
    return found


def _row(path: Path, contenders: list[Contender], options: argparse.Namespace, folder: Path) -> str:
    """One line of the table: read is 1, a peer counts in runs of `analyze`."""
    size_mb = _json_mb(path)
    contenders = [one for one in contenders if not one.is_peer or size_mb <= NEVER_ABOVE_MB]
    costs: dict[str, list[Cost]] = {one.name: [] for one in contenders}
    missing: set[str] = set()
    for turn in range(options.rounds):
        for one in contenders:
            if one.name in missing or (one.is_peer and turn and size_mb > ONCE_ABOVE_MB):
                continue
            cost = _measured(one, path, options.clock, folder)
            costs[one.name] += [cost] if cost else []
            missing |= set() if cost else {one.name}
    seconds = {name: statistics.median(c.seconds for c in some) for name, some in costs.items() if some}
    json_bytes, events = (int(word) for word in costs["load"][0].said.split()[-2:])
    peak = statistics.median(c.peak_mb for c in costs["analyze"])
    mb = json_bytes / 1e6
    ratios = [seconds[name] / seconds["read"] for name in ("load", "analyze", "rank", "plain")]
    start = seconds["analyze"] / seconds["imports"]
    peers = [
        f"{seconds[name] / seconds['analyze']:.1f} ×"
        if name in seconds
        else "no answer"
        if name in costs
        else "–"
        for name in ("HTA", "TraceLens")
    ]
    speed = [f"{events / seconds[name] / 1e3:,.0f} k" for name in ("analyze", "plain")]
    cells = [
        path.stem.partition(".")[0][:32], f"{mb:,.1f}", f"{events:,}", f"{seconds['analyze']:.2f}", *(f"{ratio:.1f}" for ratio in ratios),
        f"{start:.1f}", *peers, *speed, f"{peak:,.0f}", f"{peak / (0.6 * mb + 120):.0%}",
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def _json_mb(path: Path) -> float:
    """Megabytes of text, by reading all of it: a gzip file tells its size to 4 GiB only."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rb") as file:
        return sum(map(len, iter(lambda: file.read(1 << 22), b""))) / 1e6


def _measured(one: Contender, path: Path, clock: str, folder: Path) -> Cost | None:
    """Run one process to its end; None where it gives no answer."""
    env = {**os.environ, "XDG_CACHE_HOME": str(folder), "STEPCRIT_KERNELS": one.kernels}
    env.pop(
        "PYTHONDONTWRITEBYTECODE", None
    )  # pip compiles what it installs; an editable install is to have that too
    began = time.perf_counter()
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            [*one.command, str(path), *one.after], stdout=said, stderr=subprocess.DEVNULL, env=env, cwd=ROOT
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.perf_counter() - began
        said.seek(0)
        words = said.read().decode(errors="replace")
    if process.returncode:
        return None
    return Cost(
        wall if clock == "wall" else used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e6, words
    )


def _machine(options: argparse.Namespace) -> str:
    """Where the figures are from, and how to read them."""
    model = "unknown processor"
    if Path("/proc/cpuinfo").exists():
        found = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
        model = found[1].strip() if found else model
    clock = "elapsed" if options.clock == "wall" else "processor"
    return (
        f"Measured by `python scripts/bench.py` on {model}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"numpy {_numpy()}: medians of {options.rounds} runs in turn, {clock} time of whole processes."
    )


def _numpy() -> str:
    import numpy as np  # noqa: PLC0415 - its version only

    return np.__version__


if __name__ == "__main__":
    sys.exit(main())
