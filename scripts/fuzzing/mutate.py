"""Sound traces made unsound: as values (fields, events, header) and as bytes (what writing and copying breaks)."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from random import Random

from fuzzing import odd
from fuzzing.seeds import Event, Trace

LONGEST = 200_000
"""No input is longer: what is slow on this much is slow."""

FIELDS = ("ph", "cat", "name", "pid", "tid", "ts", "dur", "id", "args", "attr", "bp", "s")
ARGUMENTS = (
    "correlation", "correlation_id", "External id", "external id", "Sequence number", "bytes", "Bytes", "size", "stream", "device",
    "Call stack", "Module Hierarchy", "Collective name", "graph id", "Total Allocated", "Device Type", "Process Group Ranks", "name",
    "In msg nelems", "Group size", "dtype", "Process Group Name", "wait_on_stream", "event_id", "labels", "sort_index",
)  # fmt: skip
HEADERS = (
    "schemaVersion", "deviceProperties", "distributedInfo", "baseTimeNanoseconds", "displayTimeUnit", "traceName", "record_shapes",
    "with_stack", "cuda_runtime_version", "trace_id", "otherData", "computeProperties", "traceEvents",
)  # fmt: skip

# --- as values -----------------------------------------------------------------------------------


def _any_event(trace: Trace, dice: Random) -> Event:
    events = trace["traceEvents"]
    event = dice.choice(events) if events else {}
    return event if isinstance(event, dict) else {}


def _change_field(trace: Trace, dice: Random) -> None:
    _any_event(trace, dice)[dice.choice(FIELDS)] = odd.value(dice)


def _change_argument(trace: Trace, dice: Random) -> None:
    arguments = _any_event(trace, dice).get("args")
    if isinstance(arguments, dict):
        arguments[dice.choice(ARGUMENTS)] = odd.value(dice)


def _drop_field(trace: Trace, dice: Random) -> None:
    event = _any_event(trace, dice)
    if event:
        event.pop(dice.choice(list(event)))


def _change_phase(trace: Trace, dice: Random) -> None:
    _any_event(trace, dice)["ph"] = dice.choice(odd.PHASES)


def _change_category(trace: Trace, dice: Random) -> None:
    _any_event(trace, dice)["cat"] = dice.choice(odd.CATEGORIES)


def _change_time(trace: Trace, dice: Random) -> None:
    _any_event(trace, dice)[dice.choice(("ts", "dur"))] = odd.time_us(dice)


def _no_event(trace: Trace, dice: Random) -> None:
    events = trace["traceEvents"]
    events.insert(dice.randint(0, len(events)), odd.value(dice))


def _repeat_events(trace: Trace, dice: Random) -> None:
    events = trace["traceEvents"]
    start = dice.randrange(len(events) + 1)
    events.extend(copy.deepcopy(events[start : start + 20]))


def _shuffle_events(trace: Trace, dice: Random) -> None:
    dice.shuffle(trace["traceEvents"])


def _drop_header(trace: Trace, dice: Random) -> None:
    trace.pop(dice.choice([key for key in trace if key != "traceEvents"] or ["schemaVersion"]), None)


def _change_header(trace: Trace, dice: Random) -> None:
    trace[dice.choice(HEADERS[:-1])] = odd.value(dice)


VALUE_CHANGES: tuple[Callable[[Trace, Random], None], ...] = (
    _change_field, _change_field, _change_argument, _change_argument, _drop_field, _change_phase, _change_category, _change_time,
    _no_event, _repeat_events, _shuffle_events, _drop_header, _change_header,
)  # fmt: skip


def changed(trace: Trace, dice: Random) -> Trace:
    """A trace of which some values are others."""
    made = copy.deepcopy(trace)
    for _ in range(dice.choice((0, 1, 1, 2, 3, 8))):
        dice.choice(VALUE_CHANGES)(made, dice)
    return made


# --- as bytes --------------------------------------------------------------------------------------


def _spot(text: bytes, dice: Random) -> tuple[int, int]:
    start = dice.randint(0, len(text))
    return start, min(len(text), start + dice.choice((1, 1, 2, 8, 64, 1000)))


def _flip(text: bytes, dice: Random) -> bytes:
    made = bytearray(text)
    for _ in range(dice.choice((1, 1, 3, 10))):
        if made:
            made[dice.randrange(len(made))] ^= 1 << dice.randrange(8)
    return bytes(made)


def _cut(text: bytes, dice: Random) -> bytes:
    return text[: dice.randint(0, len(text))]


def _hole(text: bytes, dice: Random) -> bytes:
    start, end = _spot(text, dice)
    return text[:start] + text[end:]


def _zeros(text: bytes, dice: Random) -> bytes:
    start, end = _spot(text, dice)
    return text[:start] + b"\0" * (end - start) + text[end:]


def _doubled(text: bytes, dice: Random) -> bytes:
    start, end = _spot(text, dice)
    return text[:end] + text[start:]


def _interleaved(text: bytes, dice: Random) -> bytes:
    """Two writers at once: blocks of the text among its own later ones."""
    size = dice.choice((64, 512, 4096))
    blocks = [text[i : i + size] for i in range(0, len(text), size)]
    at, other = (dice.randrange(len(blocks) + 1) for _ in range(2))
    return b"".join(blocks[:at] + blocks[other : other + 2] + blocks[at:])


def _inserted(text: bytes, dice: Random) -> bytes:
    at = dice.randint(0, len(text))
    return text[:at] + dice.choice((*_MARKS, *odd.TEXTS)) + text[at:]


_MARKS = (
    b"\0", b"\x01", b"\x1f", b"\n", b"\r\n", b"\x7f", b"\x80", b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x80",
    b"\\", b"\\u", b"\\u12", b"\\ud83d", b'"', b'\\"', b"'", b",", b",,", b":", b"{", b"}", b"[", b"]", b"}{", b"][", b"},", b"[{", b"}]",
    b'"traceEvents":[', b'"ph":"X"', b'}, {"ph":',
)  # fmt: skip
_VALUE = re.compile(rb'(?<=:)\s*(?:-?\d[\d.eE+-]*|"[^"\\]*"|true|false|null)')
_PLACES = {"value": _VALUE, "comma": re.compile(rb","), "quote": re.compile(rb'"'), "mark": re.compile(rb"[\[\]{}:]"),
           "key": re.compile(rb'"[A-Za-z ]+"(?=\s*:)'), "event": re.compile(rb"\},\s*\{")}  # fmt: skip


def _place(text: bytes, dice: Random, kind: str) -> tuple[int, int]:
    """One of the first places of a kind after a spot, or an empty one."""
    match = _PLACES[kind].search(text, dice.randint(0, len(text))) or _PLACES[kind].search(text)
    return match.span() if match else (len(text), len(text))


def _other_value(text: bytes, dice: Random) -> bytes:
    start, end = _place(text, dice, "value")
    return text[:start] + dice.choice(odd.TEXTS) + text[end:]


def _other_mark(text: bytes, dice: Random) -> bytes:
    start, end = _place(text, dice, dice.choice(("comma", "quote", "mark")))
    return (
        text[:start]
        + dice.choice((b"", b"", b",", b",,", b'"', b":", b"}", b"]", b"{", b"[", b" "))
        + text[end:]
    )


def _path_in_name(text: bytes, dice: Random) -> bytes:
    r"""What a writer without escaping makes of a Windows path or of a quote: "C:\users\x"."""
    _, at = _place(text, dice, "quote")
    return (
        text[:at]
        + dice.choice((b"C:\\users\\new", b'say "hi"', b"\\", b"tab\there", b"a\\", b"\x08"))
        + text[at:]
    )


def _key_again(text: bytes, dice: Random) -> bytes:
    start, end = _place(text, dice, "key")
    return text[:start] + text[start:end] + b":" + dice.choice(odd.TEXTS[:30]) + b"," + text[start:]


def _document_again(text: bytes, dice: Random) -> bytes:
    return text + dice.choice((b"", b"\n", b",", b"\0")) + text[: dice.choice((1, 10, len(text)))]


def _glued(text: bytes, dice: Random) -> bytes:
    start, end = _place(text, dice, "event")
    return text[:start] + dice.choice((b"}{", b"}\n{", b"},,{", b"}],[{", b", {", b"}, ")) + text[end:]


def _wrapped(text: bytes, dice: Random) -> bytes:
    before, after = dice.choice(
        (
            (b"\xef\xbb\xbf", b""),
            (b"[", b"]"),
            (b"(", b");"),
            (b"\n\n ", b" \n"),
            (b'{"a":', b"}"),
            (b"", b","),
            (b"", b"]"),
            (b"x=", b""),
        )
    )
    return before + text + after


def _other_encoding(text: bytes, dice: Random) -> bytes:
    return text.decode("utf-8", "replace").encode(
        dice.choice(("utf-16", "utf-16-le", "latin-1", "utf-32")), "replace"
    )


TEXT_CHANGES: tuple[Callable[[bytes, Random], bytes], ...] = (
    _flip, _cut, _hole, _zeros, _doubled, _interleaved, _inserted, _inserted, _other_value, _other_value, _other_mark, _other_mark,
    _path_in_name, _key_again, _document_again, _glued, _wrapped, _other_encoding,
)  # fmt: skip


def broken(text: bytes, dice: Random) -> bytes:
    """A text of which some bytes are others."""
    for _ in range(dice.choice((0, 1, 1, 1, 2, 4))):
        text = dice.choice(TEXT_CHANGES)(text, dice)
    return text[:LONGEST]
