"""How the work grows when a trace doubles, on shapes that are hostile by construction.

    python scripts/doubling.py                    every shape, by instructions under valgrind
    python scripts/doubling.py "all nested" --events 4000

Instructions are counted, not seconds, so that a busy machine changes nothing, and what numpy and compiled
kernels do inside counts as well. Each shape is analyzed at three sizes, each twice the one before; what two
of them have in common (start-up, imports) falls out of the differences. Told is how much more the second
doubling adds than the first: 2 for linear work, 4 for quadratic. More than 2.6 is an exit code of 1.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

MOST = 2.6
Event = dict[str, Any]

RUN = (
    "import sys; from stepcrit.cli.main import run; "
    "sys.exit(run(['analyze', sys.argv[1], '--json', '-o', sys.argv[2]]))"
)


def op(at: float, dur: float, name: str = "aten::mm", tid: int = 1) -> Event:
    """An operator."""
    where = {"pid": 1, "tid": tid, "ts": at, "dur": dur}
    return {"ph": "X", "cat": "cpu_op", "name": name, **where, "args": {}}


def launch(at: float, number: int, tid: int = 1, name: str = "cudaLaunchKernel") -> Event:
    """A call of 0.2 µs that launches."""
    where = {"pid": 1, "tid": tid, "ts": at, "dur": 0.2}
    return {"ph": "X", "cat": "cuda_runtime", "name": name, **where, "args": {"correlation": number}}


def kernel(at: float, dur: float, number: int, stream: int = 7, name: str = "gemm") -> Event:
    """Device work."""
    args = {"correlation": number, "stream": stream, "device": 0}
    return {
        "ph": "X",
        "cat": "kernel",
        "name": name,
        "pid": 0,
        "tid": stream,
        "ts": at,
        "dur": dur,
        "args": args,
    }


def marks(count: int, each: float) -> Iterator[Event]:
    """So many steps in a row."""
    for i in range(count):
        where = {"pid": 1, "tid": 1, "ts": i * each, "dur": each - 0.001}
        yield {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{i}", **where, "args": {}}


def _row(n: int, *, named: bool = False, streams: int = 1, threads: int = 1) -> Iterator[Event]:
    """Operator after operator, each with a launch and a kernel."""
    for i in range(n):
        tid, stream, at = 1 + i % threads, 7 + i % streams, 4.0 * i
        yield op(at, 3, f"aten::op{i}" if named else "aten::mm", tid)
        yield launch(at + 1, i + 1, tid)
        yield kernel(at + 2, 3.5, i + 1, stream, f"gemm{i}" if named else "gemm")


def _one_instant(n: int) -> Iterator[Event]:
    for i in range(n):
        yield op(5, 7)
        yield {**launch(5, i + 1), "dur": 7}
        yield kernel(5, 7, i + 1)


def _nested(n: int) -> Iterator[Event]:
    for i in range(n):
        yield op(i, 8.0 * n - 2 * i, f"op{i % 7}")
        yield launch(n + 2.0 * i, i + 1)
        yield kernel(n + 2.0 * i + 1, 1.5, i + 1)


def _frames(n: int) -> Iterator[Event]:
    yield from _row(n // 4)
    for i in range(n):
        where = {"pid": 1, "tid": 1, "ts": i * 0.001, "dur": 8.0 * n - i * 0.002}
        ids = {"Python id": i + 1, "Python parent id": i or None}
        yield {"ph": "X", "cat": "python_function", "name": f"train.py({i}): f", **where, "args": ids}


def _crossing(n: int) -> Iterator[Event]:
    for i in range(n):
        yield op(2.0 * i, 3.0 * n)
        yield launch(2.0 * i + 1, i + 1)
        yield kernel(2.0 * i + 2, 3.0 * n, i + 1, 7 + i % 8)


def _one_queue_overlapping(n: int) -> Iterator[Event]:
    for i in range(n):
        yield launch(2.0 * i + 1, i + 1)
        yield kernel(2.0 * i + 2, 3.0 * n, i + 1)


def _synced(n: int) -> Iterator[Event]:
    for i in range(n):
        yield launch(6.0 * i, i + 1)
        yield kernel(6.0 * i + 1, 3, i + 1)
        where = {"pid": 1, "tid": 1, "ts": 6.0 * i + 0.5, "dur": 4}
        yield {"ph": "X", "cat": "cuda_runtime", "name": "cudaDeviceSynchronize", **where, "args": {}}


def _waiting(n: int) -> Iterator[Event]:
    for i in range(n):
        yield launch(6.0 * i, i + 1)
        yield kernel(6.0 * i + 1, 30, i + 1, 7 + i % 2)
        where = {"pid": 1, "tid": 1, "ts": 6.0 * i + 0.5, "dur": 0.4}
        yield {"ph": "X", "cat": "cuda_runtime", "name": "cudaStreamWaitEvent", **where, "args": {}}


def _one_correlation(n: int) -> Iterator[Event]:
    for i in range(n):
        yield launch(4.0 * i, 5)
        yield kernel(4.0 * i + 1, 3, 5)


def _one_id(n: int) -> Iterator[Event]:
    for i in range(n):
        yield {**op(4.0 * i, 1), "args": {"External id": 3}}
        call = launch(4.0 * i + 2, i + 1)
        yield {**call, "args": {**call["args"], "External id": 3}}
        yield kernel(4.0 * i + 3, 3, i + 1)


def _lost_returns(n: int) -> Iterator[Event]:
    yield from _row(n // 4)
    for i in range(n):
        where = {"pid": 1, "tid": 1, "ts": float(i), "dur": 9.0 * n - i if i % 2 else 0.5}
        yield {"ph": "X", "cat": "python_function", "name": f"train.py({i}): f", **where, "args": {}}


def _steps(n: int) -> Iterator[Event]:
    yield from marks(n // 8, 32.0)
    yield from _row(n)


def _outliving(n: int) -> Iterator[Event]:
    for i in range(n):
        yield op(10.0 * i, 5e6 + i, f"op{i}")
    yield from _row(n // 4)


LOOPED = (
    "caskcudnn",
    "fused_",
    "cub::",
    "prefillwith",
    "cutlass",
    "a::",
    "x_1",
    "Policy",
    "(1): ",
    "<a",
    ", ",
    "00",
)
"""What patterns of names look for, or may look for in each place of a name: said again and again."""


def _long_names(n: int) -> Iterator[Event]:
    yield from _row(n // 4)
    for i, word in enumerate(LOOPED):
        name = word * (8 * n // len(word))
        yield op(4.0 * n + 8 * i, 6, f"aten::{name}")
        yield launch(4.0 * n + 8 * i + 1, n + i + 1)
        yield kernel(4.0 * n + 8 * i + 2, 3, n + i + 1, name=f"void {name}")


SHAPES: dict[str, Callable[[int], Iterator[Event]]] = {
    "one stream": _row,
    "all at one instant": _one_instant,
    "all nested": _nested,
    "deep frames": _frames,
    "frames without a return": _lost_returns,
    "all crossing": _crossing,
    "one queue, all overlapping": _one_queue_overlapping,
    "all names distinct": lambda n: _row(n, named=True),
    "a thread and a queue for each": lambda n: _row(n, streams=n, threads=n),
    "a synchronize for each": _synced,
    "a wait for each": _waiting,
    "one correlation": _one_correlation,
    "one external id": _one_id,
    "many steps": _steps,
    "all outlive the first": _outliving,
    "long names": _long_names,
}


def trace(shape: str, count: int) -> bytes:
    """The JSON of a trace of a shape, whose events are in proportion to `count`."""
    return json.dumps({"schemaVersion": 1, "traceEvents": list(SHAPES[shape](count))}).encode()


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and say whether anything grew too fast."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("shapes", nargs="*", help="all by default")
    parser.add_argument("--events", type=int, default=1_000, help="the smallest of the three sizes")
    options = parser.parse_args(arguments)
    worst = 0.0
    print(f"{'shape':32} {'instructions at each size, in millions':>48} {'growth':>7}")
    for shape in options.shapes or SHAPES:
        a, b, c = (instructions(shape, options.events * times) for times in (1, 2, 4))
        growth = (c - b) / (b - a)
        worst = max(worst, growth)
        print(f"{shape:32} {a / 1e6:16,.0f}{b / 1e6:16,.0f}{c / 1e6:16,.0f} {growth:7.2f}", flush=True)
    return int(worst > MOST)


def instructions(shape: str, count: int) -> int:
    """How many instructions an analysis takes, by valgrind."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trace.json")
        path.write_bytes(trace(shape, count))
        command = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
        done = subprocess.run(
            [*command, sys.executable, "-c", RUN, str(path), str(Path(folder, "out.json"))],
            capture_output=True, text=True, check=False, env={**os.environ, "PYTHONHASHSEED": "0"},
        )  # fmt: skip
    found = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
    if done.returncode or not found:
        raise SystemExit(f"{shape}: {done.stderr[-800:]}")
    return int(found[1].replace(",", ""))


if __name__ == "__main__":
    sys.exit(main())
