"""Each way of decoding gives what the slowest one gives, and is taken where it should be."""

from __future__ import annotations

import io

import msgspec
import pytest
from fuzzing.twins import differences

from stepcrit import kernels
from stepcrit.ingest import decoded
from stepcrit.ingest.decoded import Event, Frames, RowDecoder, Typed
from stepcrit.ingest.reader import read_trace

FRAME = (
    '{"ph":"X","cat":"python_function","name":"f","pid":1,"tid":2,"ts":10.5,"dur":5,'
    '"args":{"Python id":3,"Python parent id":1,"Ev Idx":0}}'
)
ROW = '{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":2,"ts":10,"dur":5,"args":{"External id":7}}'

OF_FRAMES = [
    FRAME,
    FRAME.replace('"name":"f"', '"name":"Comms Id"'),
    FRAME.replace('"name":"f"', r'"name":"\"Comms Id"'),
    FRAME.replace('"name":"f"', '"name":"\\u0041\ufffd"'),
    FRAME.replace('"tid":2', '"tid":-2'),
    FRAME.replace('"tid":2', f'"tid":{2**70}'),
    FRAME.replace('"Python id":3', f'"Python id":{2**70}'),
    FRAME.replace('"Python parent id":1', '"Python parent id":null'),
    FRAME.replace('"Ev Idx":0', '"finished":true,"Python module id":4'),
    FRAME.replace("10.5", '"10.5"'),
    FRAME.replace("10.5", "1e1"),
    FRAME.replace('"name":"f"', '"name":"Comms Id","name":"f"'),
    FRAME.replace('"ts":10.5', '"ts":"Comms Id","ts":10.5'),
    FRAME.replace('"ts":10.5', '"ts":{"graph node id":1},"ts":10.5'),
]
OF_TYPED = [
    ROW,
    "{}",
    '{"ph":"M","name":"thread_name","pid":1,"tid":2,"args":{"name":"worker"}}',
    '{"ph":"i","name":"[memory]","ts":1,"pid":1,"tid":2,"args":{"Bytes":8,"Total Allocated":"9","Device Id":0}}',
    '{"ph":"s","id":7,"cat":"ac2g","ts":1,"pid":1,"tid":2}',
    ROW.replace('"args"', '"attr"'),
    ROW.replace('"External id":7', '"Collective name":"all_reduce","Group size":[2]'),
    ROW.replace('"External id":7', '"graph id":2,"graph node id":5'),
    ROW.replace("cpu_op", "cuda_sync"),
    ROW.replace('"External id":7', '"correlation":"x","stream":"0x1"'),
    ROW.replace('"External id":7', '"Input Dims":[[2,3]],"Input type":"[]","Call stack":"a;b"'),
    FRAME.replace('"Ev Idx":0', '"Trace iteration":0'),
    FRAME.replace('"Ev Idx":0', '"correlation":5'),
    FRAME.replace('"ph":"X"', '"ph":"B"'),
    FRAME.replace('"tid":2', '"tid":"2"'),
    FRAME.replace('"tid":2', '"tid":2.0'),
    FRAME.replace('"dur":5,', ""),
    FRAME.replace('"dur":5', '"dur":5,"s":"Comms Id"'),
    FRAME.replace('"dur":5', '"dur":-5'),
    FRAME.replace('"dur":5', '"dur":1e30'),
    FRAME.replace('"dur":5', '"dur":null'),
    FRAME.replace("10.5", "1e30"),
    FRAME.replace("10.5", '"Trace iteration"'),
]
OF_NONE = [
    ROW.replace('"External id":7', '"correlation":7.5'),
    ROW.replace('"External id":7', '"device":null'),
    ROW.replace('{"External id":7}', "null"),
    ROW.replace('{"External id":7}', "[]"),
    ROW.replace('"External id":7', '"graph id":"2"'),
    ROW.replace('"args"', '"attr":7,"args"'),
    '{"ph":"M","name":"thread_name","pid":1,"tid":2,"args":{"name":"worker","device":{}}}',
]


@pytest.fixture(autouse=True)
def plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(kernels.VARIABLE, kernels.PLAIN)


def loosely(text: bytes) -> list[Event]:
    """Events with arguments as text: what says what is right."""
    return msgspec.json.decode(text, type=list[Event])


@pytest.mark.parametrize("event", [*OF_FRAMES, *OF_TYPED, *OF_NONE])
@pytest.mark.parametrize("other", ["", FRAME, ROW])
def test_every_way_gives_the_same(monkeypatch: pytest.MonkeyPatch, event: str, other: str) -> None:
    events = [other, event, other.replace("10", "20")] if other else [event, event.replace("10", "20")]
    data = f'{{"schemaVersion":1,"traceEvents":[{",".join(events)}]}}'.encode()
    found = [read_trace(io.BytesIO(data), chunk_bytes=size) for size in (1 << 20, 100)]
    monkeypatch.setattr(decoded, "_decoded", loosely)
    right = read_trace(io.BytesIO(data))
    assert differences(found[0], right, "trace") == []
    assert differences(found[1], right, "trace") == []


@pytest.mark.parametrize(
    ("events", "kind"),
    [(OF_FRAMES, Frames), (OF_TYPED, Typed), (OF_NONE, list)],
    ids=["frames", "typed", "none"],
)
def test_each_event_is_decoded_in_the_fastest_way_that_takes_it(events: list[str], kind: type) -> None:
    kinds = {event: type(RowDecoder().many(event.encode(), 0, len(event.encode()))) for event in events}
    assert {event for event, found in kinds.items() if found is not kind} == set()


def test_a_chunk_gives_its_events_as_they_stand_in_the_text() -> None:
    for event, kind in ((FRAME, Frames), (ROW, Typed)):
        chunk = RowDecoder().many(event.encode(), 0, len(event))
        assert isinstance(chunk, kind)
        assert list(chunk) == loosely(f"[{event}]".encode())
        assert next(iter(chunk)) in chunk
        assert len(chunk) == 1


def test_events_that_are_read_one_by_one_date_the_writer_too() -> None:
    data = f'{{"schemaVersion":1,"traceEvents":[{FRAME},{FRAME.replace("10.5", "[]")}]}}'.encode()
    assert '"Ev Idx" (>= 2022-11)' in read_trace(io.BytesIO(data), salvage=True).meta.dialect


@pytest.mark.parametrize("word", [b"12345678", b'"Trace iteration"', b'"Ev Idx"'])
def test_a_word_is_found_at_every_place_of_a_text_of_any_length(word: bytes) -> None:
    for before in range(9):
        for after in range(9):
            assert decoded._holds(b" " * before + word + b" " * after, word)
            assert not decoded._holds(b" " * before + word[:-1] + b" " * after, word)
            assert not decoded._holds(b" " * before + word[1:] + b" " * after, word)
