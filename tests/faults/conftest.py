"""What the fault tests share: children, a trace that takes a while, and what each command is."""

from __future__ import annotations

import gzip
import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.nursery import ROOT, Nursery

TRACE = ROOT / "fixtures" / "simulated" / "item_sync.json.gz"

for _number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
    # Under nohup, or behind & in a script, they are ignored, and so they would be in every command that is started.
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.SIG_DFL if _number != signal.SIGINT else signal.default_int_handler)


@pytest.fixture(scope="session")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    """Children that have everything loaded."""
    folder = tmp_path_factory.mktemp("nursery")
    one = Nursery(folder)
    yield one
    one.close()


@pytest.fixture(scope="session")
def unloaded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    """Children that have yet to import what they need."""
    one = Nursery(tmp_path_factory.mktemp("unloaded"), loaded=False)
    yield one
    one.close()


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A trace that may be spoiled."""
    path = tmp_path / "in" / "trace.json.gz"
    path.parent.mkdir()
    path.write_bytes(TRACE.read_bytes())
    return path


@pytest.fixture(scope="session")
def long_trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same steps over and over, one after the other: enough to be caught at work."""
    document = json.loads(gzip.decompress(TRACE.read_bytes()))
    rows = document["traceEvents"]
    timed = [row for row in rows if "ts" in row]
    span = max(row["ts"] + row.get("dur", 0) for row in timed) - min(row["ts"] for row in timed) + 100
    document["traceEvents"] = [row for row in rows if "ts" not in row]
    for k in range(10):
        document["traceEvents"] += [_later(row, k, k * span) for row in timed]
    path = tmp_path_factory.mktemp("long") / "long.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def _later(row: dict[str, object], k: int, by: float) -> dict[str, object]:
    """A row some steps later, with numbers of its own."""
    args = row.get("args")
    moved = {**row, "ts": round(float(str(row["ts"])) + by, 3)}
    if isinstance(args, dict):
        own = {key: args[key] + k * 1_000_000 for key in ("correlation", "External id") if key in args}
        moved["args"] = {**args, **own}
    if "id" in row:
        moved["id"] = int(str(row["id"])) + k * 1_000_000
    return moved
