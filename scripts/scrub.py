"""Take out of a trace what says where it was recorded, and nothing that an analyzer reads.

    python scripts/scrub.py IN OUT

IN and OUT are Kineto Chrome traces (object form), gzipped or not; OUT is gzipped if its name ends in ".gz".
Needs nothing but Python. What goes: host, user and job names, trace id and trace name (every header key that
is not on KEPT), the command's name, absolute paths, process and thread numbers (small fixed ones take their
place). What stays, digit for digit: every number, ts and dur first of all. Same input, same bytes.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

Json = Any
Event = dict[str, Any]

KEPT = frozenset(
    {
        "schemaVersion",
        "deviceProperties",
        "displayTimeUnit",
        "baseTimeNanoseconds",
        "traceEvents",
        "distributedInfo",
        "record_shapes",
        "with_stack",
        "profile_memory",
        "with_flops",
        "with_modules",
        "cupti_version",
        "cuda_runtime_version",
        "cuda_driver_version",
        "hip_runtime_version",
        "hip_driver_version",
        "roctracer_version",
        "rocprofiler-sdk_version",
    }
)
# A device's pid is its index: only the pids seen with these are processes of the operating system.
HOST_CATEGORIES = frozenset(
    {"cpu_op", "user_annotation", "python_function", "cpu_instant_event", "cuda_runtime", "cuda_driver"}
)
# Far above any device index, and with room for the threads of each process.
PID_STRIDE = 1000

_PATH = re.compile(r"""(?<!\w)(?:[A-Za-z]:|\.{1,2})?(?:/[^\s/;:,()<>|"'][^/;:,()<>|"']*){2,}""")
_INSTALLED = re.compile(r".*/(?:(?:site|dist)-packages|lib/python\d[\d.]*)/")
_OWN = re.compile(r".*/(?=scripts/)")
_THREAD = re.compile(r"thread (-?\d+) \((.*)\)")
_TORCH_THREAD = re.compile(r"pt_\w+")


class Number(str):
    """A number that is not an integer, as the file spells it: a float would round a time."""

    __slots__ = ()


def scrub(trace: dict[str, Json]) -> dict[str, Json]:
    """Return `trace` without the marks of its machine; a scrubbed trace comes back equal."""
    tracks = _Tracks(trace["traceEvents"])
    header = {
        key: _without_paths(value) for key, value in trace.items() if key in KEPT and key != "traceEvents"
    }
    return header | {"traceEvents": [_scrub_event(event, tracks) for event in trace["traceEvents"]]}


def decode(text: str) -> dict[str, Json]:
    """Parse a trace; numbers with a point, an exponent or no value (NaN) stay text."""
    trace = json.loads(text, parse_float=Number, parse_constant=Number, strict=False)
    if not isinstance(trace, dict) or not isinstance(trace.get("traceEvents"), list):
        raise SystemExit('not a trace: an object with a "traceEvents" list was expected')
    return trace


def encode(trace: dict[str, Json]) -> str:
    """Write a trace, one event a line, with each number as it was spelled."""
    rows = [f"{json.dumps(key)}: {_encode(value)}" for key, value in trace.items() if key != "traceEvents"]
    events = ",\n".join(_encode(event) for event in trace["traceEvents"])
    return "{\n" + "".join(f"{row},\n" for row in rows) + f'"traceEvents": [\n{events}\n]}}\n'


def read_trace(path: Path) -> dict[str, Json]:
    """Read a trace file, gzipped or not."""
    data = path.read_bytes()
    return decode((gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode())


def write_trace(trace: dict[str, Json], path: Path) -> None:
    """Write a trace file whole or not at all; a ".gz" holds neither a time nor a name."""
    data = encode(trace).encode()
    write_whole(path, gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


def write_whole(path: Path, data: bytes) -> None:
    """Write beside `path`, then rename: a reader never meets half a file."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    scratch = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        scratch.chmod(0o644)
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)


class _Tracks:
    """Small fixed numbers for processes and threads, in order of first appearance."""

    def __init__(self, events: list[Event]) -> None:
        self.pids: dict[int, int] = {}
        self.tids: dict[tuple[int, int], int] = {}
        for event in events:
            pid = event.get("pid")
            if event.get("cat") in HOST_CATEGORIES and isinstance(pid, int) and pid > 0:
                self.pids.setdefault(pid, PID_STRIDE * (len(self.pids) + 1))
        for pid, number in self.pids.items():
            # The main thread's number is the process's; 0 is the row of the process itself.
            self.tids |= {(pid, pid): number, (pid, 0): 0}
            tids = (event["tid"] for event in events if event.get("pid") == pid and "tid" in event)
            others = dict.fromkeys(tid for tid in tids if tid not in {pid, 0})
            self.tids |= {(pid, tid): number + 1 + i for i, tid in enumerate(others)}

    def pid(self, pid: Json) -> Json:
        """The number of a process; devices and the profiler's own rows keep theirs."""
        return self.pids.get(pid, pid)

    def tid(self, pid: Json, tid: Json) -> Json:
        """The number of a thread; streams and the profiler's own rows keep theirs."""
        return self.tids.get((pid, tid), tid)


def _scrub_event(event: Event, tracks: _Tracks) -> Event:
    """One event, on its new track and without paths."""
    clean: Event = {key: _without_paths(value) for key, value in event.items()}
    pid, tid = event.get("pid"), event.get("tid")
    if pid in tracks.pids:
        clean |= {"pid": tracks.pid(pid)} | ({"tid": tracks.tid(pid, tid)} if "tid" in event else {})
    if event.get("ph") == "M" and "args" in event:
        clean["args"] |= _scrub_label(event, tracks)
    return clean


def _scrub_label(event: Event, tracks: _Tracks) -> dict[str, Json]:
    """The args of a metadata event that name the command, the process or the thread."""
    pid, args = event.get("pid"), event["args"]
    match event.get("name"):
        case "process_name":
            return {"name": "python"}
        case "process_sort_index":
            return {"sort_index": tracks.pid(args.get("sort_index"))}
        case "thread_sort_index":
            return {"sort_index": tracks.tid(pid, args.get("sort_index"))}
        case "thread_name" if found := _THREAD.fullmatch(str(args.get("name"))):
            own = found[2] if _TORCH_THREAD.fullmatch(found[2]) else "python"
            return {"name": f"thread {tracks.tid(pid, int(found[1]))} ({own})"}
    return {}


def _without_paths(value: Json) -> Json:
    """The value with each absolute path in it cut to its telling end."""
    match value:
        case Number():
            return value
        case str():
            return _PATH.sub(lambda found: _telling_end(found[0]), value)
        case dict():
            return {key: _without_paths(item) for key, item in value.items()}
        case list():
            return [_without_paths(item) for item in value]
    return value


def _telling_end(path: str) -> str:
    """What follows site-packages or the standard library's folder, or a script's path, or the last name."""
    for root in (_INSTALLED, _OWN):
        if found := root.match(path):
            return path[found.end() :]
    return path.rpartition("/")[2]


def _encode(value: Json) -> str:
    """JSON text of a value; json.dumps cannot be told to write a number as it was spelled."""
    match value:
        case Number():
            return str(value)
        case dict():
            return "{" + ", ".join(f"{json.dumps(key)}: {_encode(item)}" for key, item in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(_encode, value)) + "]"
    return json.dumps(value)


def main(arguments: list[str]) -> None:
    """Scrub IN into OUT."""
    if len(arguments) != 2:
        raise SystemExit("usage: python scripts/scrub.py IN OUT")
    source, target = map(Path, arguments)
    write_trace(scrub(read_trace(source)), target)


if __name__ == "__main__":
    main(sys.argv[1:])
