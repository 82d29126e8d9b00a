"""Repeat a trace until it is large: later each time, under other ids, so that it stays a true trace.

    python scripts/scale_trace.py trace.json.gz -o large.json --megabytes 500
    python scripts/scale_trace.py trace.json -o large.json.gz --copies 4

Shifted are times, the ids that link events (correlation, External id, flow ids and what else counts on),
and the numbers of ProfilerStep marks. All other text is the trace's own, down to its blanks, so events are
as long, and read as slowly, as they really are. Names stay as few as they were, and copies are alike: a
real trace of that size has more names and packs less well.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedWriter
from pathlib import Path
from typing import Any

IDS = (
    "correlation", "correlation_id", "External id", "external id", "Ev Idx", "Record function id",
    "Sequence number", "Python id", "Python parent id", "cid", "wait_on_cuda_event_record_corr_id", "id",
)  # fmt: skip
"""`id` is a flow's: an argument of that name counts on as well, and links nothing."""
TIMES = ("ts", "external ts")
NUMBER = re.compile(rb'("(?:%s)"\s*:\s*)(\d+)(?=[.,\s}])' % b"|".join(key.encode() for key in (*IDS, *TIMES)))
"""A key inside of a string would have its quotes escaped."""
STEP = re.compile(rb"ProfilerStep#(\d+)")
ONCE = {"M", "i", "I", "R"}
"""Phases that are told once: names of lanes, the window's bounds. Allocator events are repeated all the same."""
BLANK = re.compile(r"[\s,]*")


@dataclass(frozen=True, slots=True)
class Pattern:
    """One copy of the repeated events, with a %d for each number that moves.

    Attributes:
        head: the file up to its first event.
        once: events told once, in front.
        text: the repeated events.
        first: each number in the first copy.
        step: how much it grows from copy to copy.
        tail: the file after its last event.
    """

    head: bytes
    once: bytes
    text: bytes
    first: tuple[int, ...]
    step: tuple[int, ...]
    tail: bytes

    def copy(self, number: int) -> bytes:
        """The events of one copy."""
        moved = (a + number * b for a, b in zip(self.first, self.step, strict=True))
        return self.text % tuple(moved)


def main(arguments: list[str] | None = None) -> int:
    """Write the large trace and say how large it became."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("trace", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True, help="packed if it ends in .gz")
    size = parser.add_mutually_exclusive_group(required=True)
    size.add_argument("--megabytes", type=float, help="so many megabytes of JSON, to the nearest copy")
    size.add_argument("--copies", type=int)
    options = parser.parse_args(arguments)
    pattern = pattern_of(options.trace)
    copies = options.copies or copies_for(pattern, options.megabytes)
    written = scale(pattern, copies, options.output)
    print(f"{options.output}: {copies} copies, {written / 1e6:.1f} MB of JSON")
    return 0


def scale(pattern: Pattern, copies: int, output: Path) -> int:
    """Write so many copies; the bytes of JSON."""
    opened = gzip.open if output.suffix == ".gz" else open
    written = 0
    with opened(output, "wb") as file:
        for part in _parts(pattern, copies):
            written += _put(file, part)
    return written


def copies_for(pattern: Pattern, megabytes: float) -> int:
    """How many copies come nearest to a size."""
    fixed = len(pattern.head) + len(pattern.once) + len(pattern.tail)
    return max(1, round((megabytes * 1e6 - fixed) / len(pattern.copy(1))))


def pattern_of(path: Path) -> Pattern:
    """Cut a trace into what is told once and what is repeated."""
    data = path.read_bytes()
    text = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode()
    start = _first_event(text)
    once: list[str] = []
    repeated: list[str] = []
    extents: list[tuple[int, int]] = []
    end = start
    for event, piece, after in _events(text, start):
        end = after
        is_once = event.get("ph") in ONCE and event.get("name") != "[memory]"
        (once if is_once else repeated).append(piece)
        if event.get("ph") == "X" and event.get("cat") != "Trace":
            extents.append((int(event["ts"]), int(event["ts"] + event.get("dur", 0)) + 1))
    span = max(end for _, end in extents) - min(begin for begin, _ in extents) + 1
    body = ",\n  ".join(repeated).encode()
    front = "".join(piece + ",\n  " for piece in once).encode()
    return _holes(body, span, (text[:start].encode(), front, text[end:].encode()))


def _holes(body: bytes, span: int, around: tuple[bytes, bytes, bytes]) -> Pattern:
    """Make a %d of each number that moves."""
    ids = [int(m[2]) for m in NUMBER.finditer(body) if not _is_time(m)]
    marks = sorted({int(m[1]) for m in STEP.finditer(body)}) or [0]
    wide, steps = max(ids, default=0) + 1, marks[-1] - marks[0] + 1
    first: list[int] = []
    grows: list[int] = []

    def number(found: re.Match[bytes]) -> bytes:
        value = int(found[2])
        first.append(value)
        grows.append(span if _is_time(found) else wide if value else 0)  # id 0 is none
        return found[1] + b"%d"

    def mark(found: re.Match[bytes]) -> bytes:
        first.append(int(found[1]))
        grows.append(steps)
        return b"ProfilerStep#%d"

    def either(found: re.Match[bytes]) -> bytes:
        return mark(STEP.match(found[0]) or found) if found[0][:1] == b"P" else number(found)

    both = re.compile(NUMBER.pattern + b"|ProfilerStep#\\d+")
    text = both.sub(either, body.replace(b"%", b"%%"))
    return Pattern(around[0], around[1], text, tuple(first), tuple(grows), around[2])


def _is_time(found: re.Match[bytes]) -> bool:
    return found[1].split(b'"')[1].decode() in TIMES


def _first_event(text: str) -> int:
    """Where the first event begins."""
    key = re.search(r'"traceEvents"\s*:\s*\[\s*', text)
    begin = key or re.match(r"\s*\[\s*", text)
    if begin is None:
        raise SystemExit("no list of events")
    return begin.end()


def _events(text: str, at: int) -> Iterator[tuple[dict[str, Any], str, int]]:
    """Each event, its text, and where it ends."""
    decoder = json.JSONDecoder()
    while text[at] != "]":
        event, end = decoder.raw_decode(text, at)
        yield event, text[at:end], end
        at = BLANK.match(text, end).end()  # type: ignore[union-attr]


def _parts(pattern: Pattern, copies: int) -> Iterator[bytes]:
    yield pattern.head + pattern.once
    for number in range(copies):
        yield (b",\n  " if number else b"") + pattern.copy(number)
    yield pattern.tail


def _put(file: gzip.GzipFile | BufferedWriter, part: bytes) -> int:
    file.write(part)
    return len(part)


if __name__ == "__main__":
    sys.exit(main())
