"""A trace as it would be after a change, with what the change does known to the nanosecond.

Times are kept as whole nanoseconds: 0.1 µs is no float.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

FIXTURE = Path(__file__).parents[2] / "fixtures" / "simulated" / "host_bound.json.gz"
"""Five steps of 0.74 ms; the host decides, and the device idles between kernels."""

LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:%064d\nsize 31337\n" % 7

Document = dict[str, Any]
Change = Callable[[Document], None]


def trace(*changes: Change, source: Path = FIXTURE) -> bytes:
    """The bytes of a trace after changes; the same ones on every run."""
    document = json.loads(gzip.decompress(source.read_bytes()), parse_float=Decimal)
    for event in document["traceEvents"]:
        event |= {key: int(event[key] * 1000) for key in ("ts", "dur") if key in event}
    for change in changes:
        change(document)
    for event in document["traceEvents"]:
        event |= {
            key: f"<{event[key] // 1000}.{event[key] % 1000:03}>" for key in ("ts", "dur") if key in event
        }
    text = re.sub(r'"<([0-9.]+)>"', r"\1", json.dumps(document, default=str))
    return gzip.compress(text.encode(), mtime=0)


def slower(percent: int) -> Change:
    """Everything takes so much longer: every step, kernel and gap, to the rounding of a nanosecond."""

    def change(document: Document) -> None:
        events = [event for event in document["traceEvents"] if "ts" in event]
        origin = min(event["ts"] for event in events)

        def moved(at: int) -> int:
            return origin + (at - origin) * (100 + percent) // 100

        for event in events:
            if "dur" in event:
                event["dur"] = moved(event["ts"] + event["dur"]) - moved(event["ts"])
            event["ts"] = moved(event["ts"])

    return change


def one_more_launch(document: Document) -> None:
    """Each step launches one more kernel, at its very end: the launch fits in, the kernel ends the step 0.2 µs later."""
    events = document["traceEvents"]
    steps = [
        one for one in events if one["name"].startswith("ProfilerStep#") and one["cat"] == "user_annotation"
    ]
    last_id = max(event.get("args", {}).get("correlation", 0) for event in events)
    for i, step in enumerate(sorted(steps, key=lambda one: one["ts"]), start=1):
        end = step["ts"] + step["dur"]
        launch = max(
            (one for one in events if one["name"] == "cudaLaunchKernel" and one["ts"] < end),
            key=lambda one: one["ts"],
        )
        kernel = next(
            one
            for one in events
            if one.get("cat") == "kernel" and one["args"]["correlation"] == launch["args"]["correlation"]
        )
        link = {"correlation": last_id + i}
        args = {key: value for key, value in launch["args"].items() if key != "External id"}
        events.append({**launch, "ts": end - 20, "dur": 10, "args": {**args, **link}})
        after = kernel["ts"] + kernel["dur"]
        events.append({**kernel, "ts": after + 100, "dur": 100, "args": {**kernel["args"], **link}})


def other_gpu(document: Document) -> None:
    """The same numbers, said to be of another machine."""
    document["deviceProperties"][0] |= {"name": "Other GPU", "numSms": 66, "totalGlobalMem": 2**34}


def without_device(document: Document) -> None:
    """No device work: what launches launched was left out."""
    document["traceEvents"] = [
        event
        for event in document["traceEvents"]
        if event.get("cat") not in ("kernel", "gpu_memcpy", "gpu_memset")
    ]


def cut(data: bytes, keep: float) -> bytes:
    """The beginning of a file."""
    return data[: int(len(data) * keep)]
