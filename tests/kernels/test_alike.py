"""Plain and compiled kernels read alike: every way of writing an event, whole fixtures, cuts and borders anywhere."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzzing import twins

from stepcrit import kernels
from stepcrit.errors import LimitInputError
from stepcrit.ingest import scanned
from stepcrit.ingest.limits import Limits

pytestmark = pytest.mark.skipif(bool(kernels._absent()), reason="no compiled kernels are built here")

FIXTURES = sorted(Path(__file__).parents[2].glob("fixtures/*/*.json.gz"))
ROW = '"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":2,"ts":10,"dur":5'
SOUND = f"{{{ROW}}}"


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each piece of text decoded, whether the scanner took it."""
    taken: list[bool] = []
    decode = scanned.ScanningDecoder.many

    def many(self: scanned.ScanningDecoder, text: bytes, start: int, end: int) -> Any:
        events = decode(self, text, start, end)
        taken.append(isinstance(events, scanned.Scanned))
        return events

    monkeypatch.setattr(scanned.ScanningDecoder, "many", many)
    return taken


def document(*events: str, header: str = "") -> bytes:
    """A trace of events given as text."""
    return f'{{"schemaVersion":1,{header}"traceEvents":[{",".join(events)}]}}'.encode(
        "utf-8", "surrogatepass"
    )


def with_args(args: str) -> str:
    return f'{{{ROW},"args":{args}}}'


TAKEN = [
    "{}",
    "{ }",
    '{"ph":""}',
    "\n  { " + ROW.replace(",", " ,\t").replace(":", " : ") + " } \r\n",
    # times
    *(SOUND.replace('"ts":10', f'"ts":{ts}') for ts in (
        "0", "-0", "-7", "0.5", "10.12345", "1712170339414321.487", '"1704161511420306.491"', '"7"', '"007"', "-0.5", "-3.9999", "4611686018427386.9",
        "123456789012345.123456789",
    )),
    *(SOUND.replace('"dur":5', f'"dur":{dur}') for dur in ("0", "-1", "-0.0001", "0.0009", "2305843009213693.952", '"3.5"')),
    SOUND.replace(',"dur":5', ""),
    SOUND.replace('"X"', '"B"'),
    *(SOUND.replace('"X"', f'"{phase}"') for phase in "EsfiIRMCbenNPtc("),
    '{"ph":"C"}', '{"ph":"M"}', '{"ph":"i"}',
    # words
    *(SOUND.replace('"aten::mm"', name) for name in (
        '""', "null", "7", "-7", '"7"', "18446744073709551615", "-9223372036854775807", r'"a\"b\\c\/d\b\f\n\r\t"', r'"\u00e9\u20ac"', '"é€😀"', r'"\u0000"',
        '"' + "x" * 60_000 + '"', '"\\ufffd"', '"\ufffd\ufffd"',
    )),
    SOUND.replace('"cpu_op"', "null"), SOUND.replace('"cat":"cpu_op",', ""), SOUND.replace('"pid":1', '"pid":"1"'),
    SOUND.replace('"pid":1,"tid":2,', ""), SOUND.replace('"tid":2', '"tid":"stream 7 "'), SOUND.replace('"tid":2', '"tid":null'),
    SOUND.replace('"tid":2', '"tid":-549452224'),
    # values that nobody asks for
    *(f'{{{ROW},"other":{value}}}' for value in (
        "true", "false", "null", "1.5e3", "-0.0", "1E-99", "[]", "{}", "[ ]", '[[],{"a":[{}]}]', '{"a":{"b":1},"c":[1,2]}', r'"\"Ev Idx"', '"Comms Id"',
        "[" * 63 + "]" * 63,
    )),
    f'{{{ROW},"bp":"e","s":"t","tts":1.5}}',
    f'{{{ROW},"name":"the last one counts","ts":99}}',
    # arguments
    *(with_args(f'{{"{key}":{value}}}') for key in (
        "correlation", "correlation_id", "External id", "external id", "Sequence number", "Python id", "bytes", "Bytes", "size", "stream", "sycl queue",
        "l0 queue", "device", "Total Allocated",
    ) for value in ("0", "5", "-1", '"6"', '"-1"', '"0x7f"', '""', "9223372036854775807", "9223372036854775808", "18446744073709551615", "-9223372036854775807")),
    with_args("{}"), with_args("{ }"),
    with_args('{"correlation":0,"correlation_id":4}'), with_args('{"correlation":-5,"correlation_id":4}'),
    with_args('{"External id":"-1","external id":4}'), with_args('{"External id":-1,"external id":4}'), with_args('{"External id":"x","external id":4}'),
    with_args('{"stream":-1,"sycl queue":3,"l0 queue":4}'), with_args('{"stream":"-1","sycl queue":3}'), with_args('{"sycl queue":-1,"l0 queue":4}'),
    with_args('{"bytes":-1,"Bytes":7,"size":8}'), with_args('{"bytes":"x","Bytes":7}'), with_args('{"size":8}'),
    with_args('{"stream":5,"stream":-1,"l0 queue":2}'),
    with_args('{"Call stack":"a;b","Module Hierarchy":"x.y"}'), with_args('{"Call stack":"","Module Hierarchy":"é"}'),
    *(with_args(f'{{"{key}":{value}}}') for key in ("Input Dims", "Input dims", "Input type")
      for value in ("[[2, 3],\n[]]", '"[[2,3],[]]"', "[]", '""', "null", '"[]"', "7", "true", '["float",""]', '{"a":1}', '"no list"')),
    with_args('{"Input Dims":[],"Input dims":[[1]]}'),
    with_args('{"Collective name":"allreduce","In msg nelems":5,"dtype":"é"}'), with_args('{"Collective name":""}'),
    with_args('{"graph id":3,"x":[1]}'), with_args('{"graph id":0}'), with_args('{"graph id":-3}'),
    with_args('{"Trace iteration":1,"Ev Idx":2,"Record function id":3,"graph node id":4,"Comms Id":5}'),
    SOUND.replace('"cpu_op"', '"cuda_sync"').replace("}", ',"args":{"stream":7}}'),
    f'{{{ROW},"attr":{{"correlation":5}}}}', f'{{{ROW},"attr":7,"args":{{"correlation":5}}}}',
    '{"args":{"correlation":5},"cat":"kernel","dur":2,"name":"k","ph":"X","pid":0,"tid":7,"ts":3}',
    '{"ph":"M","args":{"correlation":5},"name":"k","ph":"X","pid":0,"tid":7,"ts":3}',
    # arguments of others are not looked at
    '{"ph":"M","name":"thread_name","pid":1,"tid":2,"args":7}', '{"ph":"M","name":"thread_name","pid":1,"tid":2}',
    '{"ph":"M","name":"thread_name","pid":"1","tid":2,"args":{"name":"thread 2 (a)"}}', '{"ph":"M","name":"process_name","pid":1,"args":{"name":"python"}}',
    '{"ph":"s","id":5,"ts":1,"pid":1,"tid":2,"cat":"ac2g","args":[]}',
    # flows
    *(f'{{"ph":"s","id":{number},"ts":1,"pid":1,"tid":2,"cat":"ac2g","name":"n"}}' for number in (
        "5", "-5", '"5"', '"0x1f"', '""', "null", "18446744073709551615", "9223372036854775808", '"99999999999999999999"', '" 7 "',
    )),
    '{"ph":"f","ts":1,"pid":1,"tid":2}',
    # memory
    '{"ph":"i","name":"[memory]","ts":1,"pid":1,"tid":2,"args":{"Bytes":-512,"Total Allocated":7,"Total Reserved":8,"Device Type":1,"Device Id":0}}',
    '{"ph":"i","name":"[memory]","ts":1,"cat":"cpu_instant_event","args":{"Bytes":"12"}}',
    '{"ph":"i","name":"other","args":[1]}',
]  # fmt: skip

GIVEN_BACK = [
    "7", "null", "[]", '"x"', '{"ph":7}', '{"ph":null}', '{"ph":"XX"}', '{"ph":"é"}', r'{"ph":"\u0058"}', r'{"\u0070h":"X"}',
    *(SOUND.replace('"ts":10', f'"ts":{ts}') for ts in (
        "null", "true", '"x"', "1e3", "[1]", "99999999999999999", "4611686018427388", "4611686018427388.5", "-1152921504606847", '"+5"', '" 5 "', '"5."', '""', '"-"',
        "1.1234567890123",
    )),
    SOUND.replace('"ts":10,', ""),
    *(SOUND.replace('"dur":5', f'"dur":{dur}') for dur in ("null", '"x"', "1e3", "2305843009213693.953", "{}")),
    *(SOUND.replace('"aten::mm"', name) for name in ("true", "1.5", "[1]", "{}", r'"\ud83d\ude00"', r'"\ud800"', "18446744073709551616", "-9223372036854775808", '"' + "x" * 70_000 + '"')),
    SOUND.replace('"tid":2', '"tid":false'), SOUND.replace('"tid":2', '"tid":2.0'), SOUND.replace('"cpu_op"', r'"cuda_s\u0079nc"'),
    '{"ph":"C","id":[1]}', '{"ph":"C","id":1.5}',
    *(with_args(value) for value in ("null", "7", "[]", '"x"', r'{"stre\u0061m":1}')),
    *(with_args(f'{{"{key}":{value}}}') for key in ("correlation", "stream", "Bytes") for value in (
        "null", "true", "1.5", "1e3", "[1]", '"+5"', '"-01"', '" 5"', '"1_0"', '"٣"', r'"\u0035"', '"9999999999999999999"', "-9223372036854775809", "18446744073709551616",
        "99999999999999999999",
    )),
    with_args('{"Call stack":null}'), with_args('{"Module Hierarchy":7}'), with_args('{"Collective name":true}'), with_args('{"graph id":"3"}'),
    with_args('{"graph id":18446744073709551615}'),
    f'{{{ROW},"attr":7}}', SOUND.replace('"cpu_op"', '"cuda_sync"'),
    f'{{{ROW},"other":{"[" * 70 + "]" * 70}}}', f'{{{ROW},"other":{"9" * 70}}}', f'{{{ROW},"other":1e999}}',
    '{"ph":"E","pid":1,"tid":2}', '{"ph":"s","id":1}', '{"ph":"i","name":"[memory]","ts":1,"args":{}}', '{"ph":"i","name":"[memory]","ts":1}',
    '{"ph":"i","name":"[memory]","ts":1,"args":{"Bytes":"x"}}', '{"ph":"i","name":"[memory]","ts":1,"args":{"Bytes":1,"Device Id":null}}',
    r'{"ph":"i","name":"\u005bmemory]","ts":1,"args":{"Bytes":1}}', r'{"ph":"M","name":"thread\u005fname","pid":1,"tid":2,"args":{"name":"x"}}',
]  # fmt: skip

NO_JSON = [
    '{"ph":"X"', '{"ph":"X",}', '{"ph":"X" "ts":1}', '{"ph" "X"}', '{"ph":}', "{,}", '{"a":01}', '{"a":1.}', '{"a":.5}', '{"a":+1}', '{"a":-}', '{"a":1e}',
    '{"a":1e+}', '{"a":0x1}', '{"a":tru}', '{"a":NaN}', '{"a":Infinity}', '{"a":None}', '{"a":"\x01"}', '{"a":"\n"}', r'{"a":"\x"}', r'{"a":"\u12"}',
    r'{"a":"\u12g4"}', '{"a":[1,]}', '{"a":[,1]}', '{"a":{"b"}}', '{"a":[}', '{"a":{]', '{"a":1}}', '{"a":[1 2]}', "{'a':1}", '{"a":1},', ',{"a":1}',
    '{"a":"C:\\Users"}', "{a:1}",
]  # fmt: skip
"""What no scanner may take for JSON."""


@pytest.mark.parametrize("event", [*TAKEN, *GIVEN_BACK, *NO_JSON])
def test_an_event_comes_out_the_same(event: str) -> None:
    data = document(
        SOUND, event, SOUND.replace("aten::mm", "aten::add"), '{"ph":"f","id":1,"ts":2,"pid":1,"tid":2}'
    )
    assert twins.unlike(data) == []
    assert twins.unlike(data, salvage=True, chunk_bytes=100) == []


@pytest.mark.parametrize(("events", "is_taken"), [(TAKEN, True), (GIVEN_BACK, False), (NO_JSON, False)])
def test_what_is_written_as_usual_is_scanned_and_the_rest_is_given_back(
    told: list[bool], events: list[str], *, is_taken: bool
) -> None:
    """A scanner that gave everything back would agree as well."""
    wrong = []
    for event in events:
        told.clear()
        twins.reading(kernels.COMPILED, document(SOUND, event, SOUND, SOUND), salvage=True)
        if (told[0] if told else False) != is_taken:
            wrong.append(event)
    assert wrong == []


def test_all_events_together_come_out_the_same_in_pieces_of_any_size() -> None:
    data = document(*TAKEN, *TAKEN)
    for size in (50, 333, 4096, 1 << 20):
        assert twins.unlike(data, chunk_bytes=size) == []


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_a_fixture_comes_out_the_same(path: Path, told: list[bool]) -> None:
    assert twins.unlike(gzip.decompress(path.read_bytes())) == []
    assert told
    assert all(told)


def small() -> bytes:
    """A small trace with a bit of everything."""
    return document(
        '{"ph":"M","name":"thread_name","pid":1,"tid":2,"args":{"name":"t"}}',
        with_args('{"Call stack":"a","stream":"0x1","x":[1,{"y":"\\u00e9"}]}'),
        SOUND.replace('"X"', '"B"').replace(',"dur":5', ""),
        SOUND.replace('"X"', '"E"').replace("10", "12.25"),
        '{"ph":"s","id":"q","ts":1,"pid":1,"tid":2,"cat":"ac2g"}',
        header='"baseTimeNanoseconds":5,',
    )


def test_a_border_between_pieces_may_lie_at_every_byte() -> None:
    data = small()
    for size in range(1, len(data) + 2):
        assert twins.unlike(data, chunk_bytes=size) == []


def test_a_text_may_be_cut_at_every_byte() -> None:
    data = small()
    for end in range(len(data)):
        assert twins.unlike(data[:end], salvage=True) == []
        assert twins.unlike(data[:end]) == []


@pytest.mark.parametrize("byte", [0x00, 0x22, 0x2C, 0x5C, 0x7D, 0x80, 0xFF])
def test_every_byte_may_be_another(byte: int) -> None:
    data = small()
    for at in range(len(data)):
        assert twins.unlike(data[:at] + bytes([byte]) + data[at + 1 :], salvage=True) == []


def test_more_names_than_are_allowed_are_refused_alike() -> None:
    names = [SOUND.replace("aten::mm", f"{number:0100}") for number in range(50)]
    data = document(*names)
    assert twins.unlike(data, limits=Limits(names=2_000)) == []
    assert twins.reading(kernels.COMPILED, data, limits=Limits(names=2_000))[0] is LimitInputError
    assert twins.unlike(data, limits=Limits(events=49)) == []


def test_a_scanner_that_has_met_too_many_words_starts_anew_and_nothing_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = []

    def readers(limits: Limits) -> Any:
        from stepcrit.kernels import _scan  # noqa: PLC0415 - it is there, see above

        decoder = scanned.ScanningDecoder(lambda: made.append(0) or _scan.Scanner())  # type: ignore[func-returns-value]
        return decoder, scanned.ScanCollector(decoder, limits.names)

    monkeypatch.setattr("stepcrit.ingest.reader.readers", readers)
    monkeypatch.setattr(scanned, "_MOST_REMEMBERED", 2_000)
    events = [SOUND.replace("aten::mm", f"{number:0100}") for number in (*range(50), *range(50), *range(25))]
    compiled = twins.reading(kernels.COMPILED, document(*events), chunk_bytes=1000)
    monkeypatch.undo()
    assert len(made) > 3
    assert (
        twins.differences(twins.reading(kernels.PLAIN, document(*events), chunk_bytes=1000), compiled) == []
    )


def test_words_made_to_collide_are_given_back_and_come_out_the_same(told: list[bool]) -> None:
    """The tables' hash is known to whoever reads the code: here, all its bits but the sum of eight bytes are moved."""
    top = [SOUND.replace("aten::mm", collision) for collision in colliding(300)]
    data = document(*top)
    assert twins.unlike(data) == []
    assert told[0] is False


def colliding(count: int) -> list[str]:
    """Names of 16 bytes (quotation mark included) that the scanner's hash takes for one another."""
    multiplier, start, mask = 0xFF51AFD7ED558CCD, 0x9E3779B97F4A7C15, 2**64 - 1
    found: list[str] = []
    goal = None
    number = 0
    while len(found) < count:
        first = b'"' + b"%07d" % number
        number += 1
        state = ((start ^ 18) ^ int.from_bytes(first, "little")) * multiplier & mask
        state ^= state >> 32
        goal = state ^ int.from_bytes(b"abcdefgh", "little") if goal is None else goal
        second = (goal ^ state).to_bytes(8, "little")
        if all(0x20 <= byte < 0x7F and byte not in b'"\\' for byte in second):
            found.append((first[1:] + second + b"z").decode())
    return found


def test_columns_hold_what_was_kept_and_nothing_else() -> None:
    from stepcrit.kernels import _scan  # noqa: PLC0415 - it is there, see above

    scanner = _scan.Scanner()
    flow = b'{"ph":"s","id":"q","ts":1,"pid":1,"tid":2,"cat":"ac2g"}'

    def scan(text: bytes) -> object:
        return scanner.scan(text, 0, len(text), lambda _table, word: len(word))

    def column(name: str) -> list[int]:
        return np.frombuffer(scanner.take()[name], np.int64).tolist()  # type: ignore[no-any-return]

    scan(b",".join([SOUND.encode()] * 2000))
    scan(SOUND.encode())
    scanner.keep(70)
    assert scan(b"no event") is None
    scanner.keep(80)
    scan(SOUND.encode() + b"," + SOUND.encode())
    scanner.keep(90)
    scan(SOUND.encode())
    assert column("rows.order") == [70, 90, 91]
    assert column("rows.order") == []
    scan(flow + b"," + flow)
    scanner.set_flow_id(1, -7)
    for at in (-1, 2):
        with pytest.raises(IndexError):
            scanner.set_flow_id(at, 0)
    scanner.keep(0)
    assert column("flows.id") == [0, -7]


def test_a_scanner_in_use_cannot_be_used() -> None:
    from stepcrit.kernels import _scan  # noqa: PLC0415 - it is there, see above

    scanner = _scan.Scanner()

    def uses(_table: int, _word: bytes) -> int:
        for call in (lambda: scanner.keep(0), lambda: scanner.set_flow_id(0, 0), scanner.take):
            with pytest.raises(RuntimeError):
                call()
        return 0

    assert scanner.scan(SOUND.encode(), 0, len(SOUND), uses)


def test_line_ends_are_counted_alike() -> None:
    from stepcrit.kernels import _scan  # noqa: PLC0415 - it is there, see above

    for size in (0, 1, 239, 240, 241, 5000):
        for text in (b"\n" * size, b"a\n\x0b" * size, b"\x8a" * size):
            for end in (-1, 0, size, size + 1, 9 * size):
                assert _scan.line_ends(text, end) == text[: max(end, 0)].count(b"\n")


def test_a_scanned_piece_gives_its_events_to_who_asks() -> None:
    from stepcrit.kernels import _scan  # noqa: PLC0415 - it is there, see above

    events = scanned.ScanningDecoder(_scan.Scanner).many(SOUND.encode(), 0, len(SOUND))
    assert isinstance(events, scanned.Scanned)
    [event] = events
    assert (event.name, bytes(event.ts), len(events), event in events) == ("aten::mm", b"10", 1, True)


def test_every_column_is_compared() -> None:
    """The comparison itself can fail: a value, a type, a word, a note."""
    one = twins.reading(kernels.COMPILED, small())
    other = twins.reading(
        kernels.COMPILED, small().replace(b'"ts":10', b'"ts":11').replace(b"aten::mm", b"aten::md")
    )
    found = " ".join(twins.differences(one, other))
    assert ".events.end_ns" in found
    assert ".events.names" in found
    assert twins.differences(np.zeros(2, np.int32), np.zeros(2, np.int64))
    assert twins.differences(1, 1.0)
