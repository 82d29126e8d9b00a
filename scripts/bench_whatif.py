"""What ranking interventions costs, against one replay of the same trace.

    python scripts/bench_whatif.py                 a fixture repeated to a million events
    python scripts/bench_whatif.py trace.json.gz --events 200000

One replay is one pass over the schedule graph. Told are the events, the graph's size, the time of a replay
(median of three), how many replays the search took, and the ranking's time for each row it shows as a
multiple of one replay: the ratio is of one run on one machine, and that is what counts.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import statistics
import sys
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

from stepcrit.analyses import ranking
from stepcrit.graph.schedule import forward
from stepcrit.graph.stepgraph import StepGraph
from stepcrit.session import load

FIXTURE = Path(__file__).resolve().parent.parent / "fixtures" / "simulated" / "host_bound.json.gz"
IDS = ("correlation", "External id", "Sequence number", "Ev Idx")
STEP = "ProfilerStep#"


def main(arguments: list[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("trace", nargs="?", type=Path, default=FIXTURE)
    parser.add_argument("--events", type=int, default=1_000_000, help="repeat the trace to so many events")
    parser.add_argument("--top", type=int, default=10, help="rows of the ranking")
    options = parser.parse_args(arguments)
    text = repeated(_read(options.trace), options.events)
    view = load(io.BytesIO(text)).view()
    _ = view.segments
    graph = view.built.graph
    print(f"{len(view.trace.events)} events, {len(graph)} activities, {len(graph.src)} dependencies")
    replay = statistics.median(_seconds(lambda: _replay(view)) for _ in range(3))
    print(f"one replay: {replay:.2f} s")
    found: list[ranking.Ranking] = []
    took = _seconds(lambda: found.append(ranking.analyze(view, "op", replays=options.top, detailed=True)))
    rows = max(found[0].replayed, 1)
    print(f"ranking: {took:.1f} s for {rows} rows, {found[0].looked_at} names looked at")
    print(f"each row took {took / rows / replay:.1f} x the time of one replay")
    return 0


def repeated(trace: dict[str, Any], count: int) -> bytes:
    """The same events again and again, later each time and under other ids, until there are `count`."""
    events = trace["traceEvents"]
    timed = [e for e in events if e.get("ph") == "X"]
    first = min(e["ts"] for e in timed)
    span = max(e["ts"] + e["dur"] for e in timed) - first
    wide = 1 + max(int(e.get("args", {}).get(key, 0)) for e in timed for key in IDS)
    steps = sum(e["name"].startswith(STEP) for e in timed if e.get("cat") == "user_annotation")
    lines = []
    for i in range(-(-count // len(timed))):
        lines += [_line(_moved(e, i * span, i * wide, i * steps)) for e in (timed if i else events)]
    head = {key: value for key, value in trace.items() if key != "traceEvents"}
    return f'{_line(head)[:-1]}, "traceEvents": [\n{",".join(lines)}\n]}}'.encode()


def _moved(event: dict[str, Any], later: Decimal, ids: int, steps: int) -> dict[str, Any]:
    moved = {**event, "ts": event["ts"] + later} if "ts" in event else dict(event)
    moved["args"] = {
        key: value + ids if key in IDS and isinstance(value, int) and value >= 0 else value
        for key, value in event.get("args", {}).items()
    }
    if event.get("name", "").startswith(STEP):
        moved["name"] = f"{STEP}{int(event['name'].removeprefix(STEP)) + steps}"
    return moved


def _line(value: object) -> str:
    return json.dumps(value, default=float)


def _read(path: Path) -> dict[str, Any]:
    data = path.read_bytes()
    text = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    return dict(json.loads(text, parse_float=Decimal))


def _replay(view: StepGraph) -> None:
    forward(view.built.graph, view.built.graph.dur_ns, view.delays("join"))


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    sys.exit(main())
