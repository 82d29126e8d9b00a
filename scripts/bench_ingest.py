"""Time `read_trace` on trace files, beside a plain `json.load` and a loop over the events.

Usage: python scripts/bench_ingest.py FILE...

Each measurement runs in a process of its own, so that its peak memory is its own. `rss` is the
peak beyond the imports, per byte of JSON. Seconds depend on the machine; the ratio of the two
readers hardly does.
"""

from __future__ import annotations

import gzip
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROUNDS = 3


def main() -> None:
    """Compare both readers on every file named."""
    print(
        f"{'file':40} {'JSON MB':>8} {'events':>8} {'MB/s':>7} {'kev/s':>7} {'rss':>5} {'json x':>7} {'its rss':>8}"
    )
    for path in sys.argv[1:]:
        ours, plain = _measure("columns", path), _measure("json", path)
        mb = ours["json_bytes"] / 1e6
        print(
            f"{Path(path).name[:40]:40} {mb:8.1f} {ours['events']:8} {mb / ours['seconds']:7.1f}"
            f" {ours['events'] / ours['seconds'] / 1e3:7.0f} {ours['rss'] / ours['json_bytes']:5.2f}"
            f" {plain['seconds'] / ours['seconds']:7.2f} {plain['rss'] / ours['json_bytes']:8.2f}"
        )


def _measure(reader: str, path: str) -> dict[str, Any]:
    """Run one reader on one file in a process of its own."""
    child = subprocess.run(
        [sys.executable, __file__, "--child", reader, path], check=True, capture_output=True, text=True
    )
    measured: dict[str, Any] = json.loads(child.stdout)
    return measured


def _child(reader: str, path: str) -> None:
    """Read `path`, and print what it took as JSON."""
    from stepcrit.ingest import read_trace  # noqa: PLC0415 - only the child may pay for it

    before = _peak()
    seconds = []
    result: dict[str, Any] = {}
    for _ in range(ROUNDS):
        start = time.perf_counter()
        if reader == "json":
            _read_plainly(path)
        else:
            meta = read_trace(path).meta
            result = {"json_bytes": meta.json_bytes, "events": meta.event_count}
        seconds.append(time.perf_counter() - start)
        result.setdefault("rss", _peak() - before)
    print(json.dumps({**result, "seconds": min(seconds)}))


def _read_plainly(path: str) -> tuple[list[Any], ...]:
    """The reader one would write first, and the fields it would keep."""
    data = Path(path).read_bytes()
    document = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    events = document if isinstance(document, list) else document["traceEvents"]
    rows = [event for event in events if event.get("ph") == "X"]
    fields = [
        (row["name"], row.get("cat"), row["pid"], row["tid"], row["ts"], row.get("dur", 0)) for row in rows
    ]
    return fields, [row.get("args", {}).get("correlation", -1) for row in rows]


def _peak() -> int:
    """Peak resident bytes of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        _child(sys.argv[2], sys.argv[3])
    else:
        main()
