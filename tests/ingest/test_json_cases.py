r"""RFC 8259 case by case, at every place of a trace where a JSON value may stand. The cases are our own.

`GOOD` texts are JSON: read, and read as `json.loads` reads them. `BAD` texts are none: refused, or repaired with
a count, which `--strict` refuses. `FREE` texts are what the RFC leaves to the parser: no traceback is all that is asked.
"""

from __future__ import annotations

import gzip
import io
import json
from typing import Any

import pytest

from stepcrit.errors import InputError, PartialError
from stepcrit.ingest import read_trace
from stepcrit.session import Options, load

GOOD: dict[str, bytes] = {
    # numbers
    "zero": b"0", "minus zero": b"-0", "one digit": b"7", "many digits": b"1234567890", "minus": b"-12",
    "largest int64": b"9223372036854775807", "smallest int64": b"-9223372036854775808", "fraction": b"0.5",
    "fraction with zeros": b"10.000", "small fraction": b"0.000001", "exponent": b"1e3", "large E": b"1E3", "exponent plus": b"1e+3",
    "exponent minus": b"1e-3", "zero exponent": b"0e0", "exponent with leading zeros": b"1e0003", "fraction and exponent": b"1.5e2",
    "minus zero fraction": b"-0.0", "fraction of many digits": b"0.1234567890123456789", "many digits and a fraction": b"1712170339414321.487",
    # words
    "null": b"null", "true": b"true", "false": b"false",
    # strings
    "empty string": b'""', "blank": b'" "', "letters": b'"abc"', "escaped quote": rb'"a\"b"', "escaped backslash": rb'"a\\b"',
    "backslash at the end": rb'"a\\"', "two backslashes at the end": rb'"a\\\\"', "escaped slash": rb'"a\/b"', "slash": b'"a/b"',
    "short escapes": rb'"\b\f\n\r\t"', "escaped letter": rb'"\u0041"', "small hexadecimal": rb'"\u00e9"', "large hexadecimal": rb'"\u00E9"',
    "escaped zero": rb'"\u0000"', "escaped control": rb'"\u001f"', "escaped DEL": rb'"\u007f"', "DEL": b'"\x7f"', "pair of escapes": rb'"\ud83d\ude00"',
    "two pairs": rb'"\ud83d\ude00\ud83d\ude01"', "escaped line separators": rb'"\u2028\u2029"', "two bytes": '"é"'.encode(), "three bytes": '"日"'.encode(),
    "four bytes": '"😀"'.encode(), "line separators": '"\u2028\u2029"'.encode(), "last code point": '"\U0010ffff"'.encode(),
    "noncharacter": '"\uffff"'.encode(), "private use": '"\ue000"'.encode(), "byte order mark inside": '"a\ufeffb"'.encode(),
    "accent after letter": '"e\u0301"'.encode(), "from right to left": '"\u202eabc"'.encode(), "apostrophe": b'"it\'s"',
    "comment in a string": b'"/* a */ // b"', "brackets in a string": b'"[{]}"', "an event in a string": rb'"}, {\"ph\": \"X\""',
    "a list's end in a string": b'"]}"', "escapes that spell a quote": rb'"\u0022"', "escapes that spell a backslash": rb'"\u005c"',
    "backslash then quote, spelled": rb'"\u005c\u0022"', "a word in a string": b'"null"', "a number in a string": b'"1e5"', "NaN in a string": b'"NaN"',
    "long string": b'"' + b"a" * 5000 + b'"', "string of escapes": b'"' + rb"\n" * 500 + b'"', "only backslashes": b'"' + rb"\\" * 501 + b'"',
    # lists
    "empty list": b"[]", "blank list": b"[ ]", "list": b"[1,2,3]", "list of one": b"[null]", "list in a list": b"[[]]", "lists in a list": b"[[1],[2]]",
    "list of all kinds": b'[null,true,1,"a",[],{}]', "list with white space": b"[ 1 ,\t2\r,\n3 ]", "list of blanks": b"[ \t\r\n ]", "ten deep": b"[" * 10 + b"]" * 10,
    "list of strings with commas": b'["a,b","c]"]',
    # objects
    "empty object": b"{}", "blank object": b"{ }", "object": b'{"a":1}', "object of two": b'{"a":1,"b":2}', "empty key": b'{"":1}', "object in an object": b'{"a":{"b":{}}}',
    "object with white space": b'{ "a" : 1 ,\n"b"\t:\r2 }', "escaped key": rb'{"\u0061":1}', "key with a quote": rb'{"a\"b":1}', "key with a colon": b'{"a:b":1}',
    "key in another script": '{"キー":1}'.encode(), "key that looks like an event": b'{"ph":"X"}', "key of the list": b'{"traceEvents":[]}',
    "object of lists": b'{"a":[1,{"b":[2]}]}', "ten objects deep": b'{"a":' * 10 + b"1" + b"}" * 10, "object of many": b"{" + b",".join(b'"k%d":%d' % (i, i) for i in range(99)) + b"}",
}  # fmt: skip
"""Values that every parser must take, by what they are about."""

BAD: dict[str, bytes] = {
    # numbers
    "plus": b"+1", "leading zero": b"01", "minus and leading zero": b"-01", "two zeros": b"00", "minus alone": b"-", "plus alone": b"+", "two minuses": b"--1",
    "no digit before the point": b".5", "minus and point": b"-.5", "no digit after the point": b"1.", "point alone": b".", "two points": b"1.2.3", "no exponent": b"1e",
    "signed exponent without digits": b"1e+", "point then exponent": b"1.e1", "two exponents": b"1e1e1", "fractional exponent": b"1e1.5", "hexadecimal": b"0x10", "octal": b"0o7",
    "binary": b"0b1", "underscore": b"1_000", "letters after digits": b"1a", "digits and a minus": b"1-2", "minus then blank": b"- 1", "digits of another script": "\u0661".encode(),
    "full-width digit": "\uff11".encode(), "suffix": b"1f", "two numbers": b"1 2",
    # what programs write in place of numbers
    "NaN": b"NaN", "nan": b"nan", "minus NaN": b"-NaN", "Infinity": b"Infinity", "minus Infinity": b"-Infinity", "inf": b"inf", "minus inf": b"-inf", "N/A": b"N/A", "-nan(ind)": b"-nan(ind)",
    "1.#INF": b"1.#INF",
    # words
    "None": b"None", "True": b"True", "False": b"False", "NULL": b"NULL", "nul": b"nul", "tru": b"tru", "undefined": b"undefined", "bare word": b"abc", "truefalse": b"truefalse",
    # strings
    "apostrophes": b"'a'", "no end": b'"a', "no beginning": b'a"', "quote alone": b'"', "bare quote inside": b'"a"b"', "bad escape": rb'"\x41"', "escaped apostrophe": rb'"\'"',
    "escaped blank": rb'"\ "', "escaped zero digit": rb'"\0"', "escaped a": rb'"\a"', "path with a backslash": rb'"C:\Users\me"', "u alone": rb'"\u"', "u and one digit": rb'"\u1"',
    "u and three digits": rb'"\u123"', "u and a letter": rb'"\u12g4"', "U": rb'"\U0041"', "backslash at the end": b'"a\\', "line end inside": b'"a\nb"', "tab inside": b'"a\tb"',
    "return inside": b'"a\rb"', "zero byte inside": b'"a\0b"', "control inside": b'"a\x1fb"', "backspace inside": b'"a\x08b"', "escape sequence inside": b'"\x1b[31m"', "two strings": b'"a""b"',
    "typographic quotes": "\u201ca\u201d".encode(), "backquotes": b"`a`",
    # lists
    "comma at the end": b"[1,]", "comma at the start": b"[,1]", "two commas": b"[1,,2]", "comma alone": b"[,]", "no comma": b"[1 2]", "no comma between strings": b'["a" "b"]', "colon in a list": b"[1:2]",
    "semicolon": b"[1;2]", "not closed": b"[1", "not closed after a comma": b"[1,", "closed by a brace": b"[1}", "closed twice": b"[1]]", "bracket alone": b"[", "closing bracket alone": b"]", "key in a list": b'["a":1]',
    # objects
    "object not closed": b'{"a":1', "object not closed after its key": b'{"a"', "not closed after the colon": b'{"a":', "no value": b'{"a":}', "no colon": b'{"a" 1}', "equals": b'{"a"=1}',
    "comma for a colon": b'{"a",1}', "two colons": b'{"a"::1}', "comma at the end of an object": b'{"a":1,}', "comma at the start of an object": b'{,"a":1}', "two commas in an object": b'{"a":1,,"b":2}',
    "no comma in an object": b'{"a":1 "b":2}', "bare key": b"{a:1}", "key in apostrophes": b"{'a':1}", "number as a key": b"{1:1}", "null as a key": b"{null:1}", "list as a key": b"{[]:1}",
    "value alone": b"{1}", "closed by a bracket": b'{"a":1]', "closing brace alone": b"}", "brace alone": b"{", "object closed twice": b'{"a":1}}',
    # white space and comments
    "line comment": b"1 // a\n", "comment": b"/* a */ 1", "hash comment": b"1 # a\n", "form feed": b"\x0c1", "vertical tab": b"\x0b1", "no-break space": "\u00a01".encode(), "byte order mark": b"\xef\xbb\xbf1",
    "zero byte": b"\x001", "next line": "\u00851".encode(), "word joiner": "\u20601".encode(), "nothing": b"",
}  # fmt: skip
"""Texts that are no value, by what is wrong with them."""

NO_UTF8: dict[str, bytes] = {
    "lone continuation byte": b'"\x80"', "first byte without its second": b'"\xc3"', "cut after two of three": b'"\xe6\x97"', "cut after three of four": b'"\xf0\x9f\x98"',
    "overlong slash": b'"\xc0\xaf"', "overlong zero": b'"\xc0\x80"', "overlong of three": b'"\xe0\x80\xaf"', "surrogate as UTF-8": b'"\xed\xa0\x80"', "beyond the last": b'"\xf4\x90\x80\x80"',
    "five bytes": b'"\xf8\x88\x80\x80\x80"', "FE": b'"\xfe"', "FF": b'"\xff"', "Latin-1": b'"\xe9"', "UTF-16 inside": b'"\xff\xfea\0"',
}  # fmt: skip
"""Strings whose bytes are no UTF-8. Where nobody asks for the value, nobody has to see it."""

FREE: dict[str, bytes] = {
    "more than int64": b"9223372036854775808", "more than uint64": b"18446744073709551616", "a hundred digits": b"1" * 100, "5000 digits": b"1" * 5000, "overflow": b"1e400",
    "minus overflow": b"-1e400", "underflow": b"1e-400", "huge exponent": b"1e99999", "exponent of 400 digits": b"1e" + b"9" * 400, "fraction of 5000 digits": b"0." + b"1" * 5000,
    "lone high surrogate": rb'"\ud800"', "lone low surrogate": rb'"\udc00"', "surrogates the wrong way round": rb'"\ude00\ud83d"', "high surrogate then a letter": rb'"\ud800a"',
    "two high surrogates": rb'"\ud800\ud800"', "escaped noncharacter": rb'"\uffff"', "the same key twice": b'{"a":1,"a":2}', "500 deep": b"[" * 500 + b"]" * 500,
    "5000 deep": b"[" * 5000 + b"]" * 5000, "objects 5000 deep": b'{"a":' * 5000 + b"1" + b"}" * 5000, "100 000 deep and not closed": b"[" * 100_000,
}  # fmt: skip
"""Texts whose meaning the RFC leaves open."""

EVENT = b'{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":10,"dur":2}'
PLACES: dict[str, bytes] = {
    "argument": b'{"schemaVersion":1,"traceEvents":[%s,{"ph":"X","cat":"cuda_sync","name":"s","pid":1,"tid":1,"ts":5,"dur":1,"args":{"kept":@}},%s]}' % (EVENT, EVENT),
    "header": b'{"schemaVersion":1,"kept":@,"traceEvents":[%s,%s]}' % (EVENT, EVENT),
    "footer": b'{"schemaVersion":1,"traceEvents":[%s,%s],"kept":@}' % (EVENT, EVENT),
    "unknown field": b'{"schemaVersion":1,"traceEvents":[%s,{"ph":"X","cat":"cpu_op","kept":@,"name":"n","pid":1,"tid":1,"ts":5,"dur":1},%s]}' % (EVENT, EVENT),
    "element": b'{"schemaVersion":1,"traceEvents":[%s,@,%s]}' % (EVENT, EVENT),
    "bare list": b"[%s,@,%s]" % (EVENT, EVENT),
}  # fmt: skip
"""Where a value stands: @."""


def _cases(texts: dict[str, bytes]) -> list[Any]:
    return [pytest.param(text, id=name) for name, text in texts.items()]


def _document(place: str, text: bytes) -> bytes:
    return PLACES[place].replace(b"@", text)


def _both(data: bytes) -> tuple[io.BytesIO, io.BytesIO]:
    """As it is, and packed."""
    return io.BytesIO(data), io.BytesIO(gzip.compress(data, mtime=0))


PLACE = pytest.mark.parametrize("place", PLACES)


def test_cases_are_what_they_are_said_to_be() -> None:
    """By another parser; `json` alone takes NaN, so it is told not to."""
    assert len(GOOD) + len(BAD) + len(NO_UTF8) + len(FREE) >= 150
    for text in GOOD.values():
        json.loads(text)
    assert [name for name, text in {**BAD, **NO_UTF8}.items() if _is_json(text)] == []


def _is_json(data: bytes) -> bool:
    """By the parser that everybody has. `1]],[1` is none alone, and JSON where it stands in a list of lists."""
    try:
        json.loads(data.decode(), parse_constant=_refuse)
    except ValueError:
        return False
    return True


def _refuse(word: str) -> None:
    raise ValueError(word)


@pytest.mark.parametrize("text", _cases(GOOD))
def test_argument_is_read_as_json_reads_it(text: bytes) -> None:
    expected = json.loads(text)
    for stream in _both(_document("argument", text)):
        trace = read_trace(stream)
        [arguments] = trace.events.args.values()
        assert arguments == {"kept": expected}
        assert type(arguments["kept"]) is type(expected)
        assert dict(trace.meta.dropped) == {}
        assert len(trace.events) == 3


@PLACE
@pytest.mark.parametrize("text", _cases(GOOD))
def test_sound_value_spoils_nothing_wherever_it_stands(text: bytes, place: str) -> None:
    data = _document(place, text)
    told = json.loads(data)
    events = told if isinstance(told, list) else told["traceEvents"]
    rows = [one for one in events if isinstance(one, dict) and one.get("ph") == "X" and "ts" in one]
    odd = {
        "not a JSON object": sum(not isinstance(one, dict) for one in events),
        "time is missing or no number": events.count({"ph": "X"}),
    }
    for stream in _both(data):
        trace = read_trace(stream)
        assert trace.meta.event_count == len(events)
        assert len(trace.events) == len(rows)
        assert set(trace.meta.header_keys) == (set(told) if isinstance(told, dict) else set())
        assert dict(trace.meta.dropped) == {why: count for why, count in odd.items() if count}


@pytest.mark.parametrize("text", _cases({name: text for name, text in GOOD.items() if text[:1] == b'"'}))
def test_name_is_read_as_json_reads_it(text: bytes) -> None:
    for stream in _both(b'{"schemaVersion":1,"traceEvents":[%s]}' % EVENT.replace(b'"aten::mm"', text)):
        events = read_trace(stream).events
        assert [events.names[i] for i in events.name.tolist()] == [json.loads(text)]


def _read_or_refused(data: bytes) -> list[int]:
    """Rows that are read, plain and packed, where the reader does not say why not."""
    rows: list[int] = []
    for stream in _both(data):
        try:
            rows.append(len(read_trace(stream).events))
        except InputError as error:
            assert error.what  # noqa: PT017 - which inputs are refused is not asked here
    return rows


def _check_told(data: bytes) -> None:
    """Refused with a reason, or repaired with a count: then `--strict` refuses."""
    _read_or_refused(data)
    for stream in _both(data):
        with pytest.raises((InputError, PartialError)):
            load(stream, Options(strict=True))


@PLACE
@pytest.mark.parametrize("text", _cases(BAD))
def test_what_is_no_json_is_refused_or_repaired_with_a_count(text: bytes, place: str) -> None:
    data = _document(place, text)
    if not _is_json(data):
        _check_told(data)


@pytest.mark.parametrize("text", _cases(NO_UTF8))
def test_bytes_that_are_no_utf8_are_told_where_they_are_read(text: bytes) -> None:
    _check_told(b'{"schemaVersion":1,"traceEvents":[%s]}' % EVENT.replace(b'"aten::mm"', text))
    _check_told(_document("argument", text))
    _check_told(_document("element", b'{"ph":"X","cat":%s,"ts":1,"dur":1}' % text))


@PLACE
@pytest.mark.parametrize("text", _cases(NO_UTF8))
def test_bytes_that_are_no_utf8_cost_no_traceback_anywhere(text: bytes, place: str) -> None:
    assert set(_read_or_refused(_document(place, text))) <= {2, 3}


@PLACE
@pytest.mark.parametrize("text", _cases(FREE))
def test_what_the_rfc_leaves_open_is_read_or_refused(text: bytes, place: str) -> None:
    assert set(_read_or_refused(_document(place, text))) <= {2, 3}


STRUCTURE: dict[str, bytes] = {
    "nothing": b"", "blanks": b" \n", "a number": b"1", "a string": b'"a"', "null": b"null", "a word": b"trace", "brace": b"{", "bracket": b"[", "closing brace": b"}", "closing bracket": b"]",
    "brace and bracket": b"{]", "bracket and brace": b"[}", "two objects": b"{}{}", "two lists": b"[][]", "object then comma": b"{},", "a comma first": b",{}", "key alone": b'{"traceEvents"',
    "colon alone": b'{"traceEvents":', "list begun": b'{"traceEvents":[', "event begun": b'{"traceEvents":[{', "half an event": b'{"traceEvents":[' + EVENT[:40], "one event and no end": b'{"traceEvents":[' + EVENT,
    "list without its object's end": b'{"traceEvents":[' + EVENT + b"]", "junk after the end": b'{"traceEvents":[' + EVENT + b"]}x", "zeros after the end": b'{"traceEvents":[' + EVENT + b"]}\0\0",
    "the document twice": (b'{"traceEvents":[' + EVENT + b"]}") * 2, "closed twice": b'{"traceEvents":[' + EVENT + b"]]}", "a call": b'callback({"traceEvents":[' + EVENT + b"]})",
    "an assignment": b'var t = {"traceEvents":[' + EVENT + b"]};", "one event a line": EVENT + b"\n" + EVENT, "events without a list": b'{"traceEvents":' + EVENT + b"," + EVENT + b"}",
    "two lists of events": b'{"traceEvents":[' + EVENT + b'],"traceEvents":[' + EVENT + b"]}", "UTF-16": '{"traceEvents":[]}'.encode("utf-16"), "UTF-32": '{"traceEvents":[]}'.encode("utf-32"),
    "byte order mark alone": b"\xef\xbb\xbf", "half a byte order mark": b"\xef\xbb{}", "byte order mark twice": b"\xef\xbb\xbf\xef\xbb\xbf[]",
}  # fmt: skip
"""Whole inputs that are no sound document with events."""


@pytest.mark.parametrize("data", _cases(STRUCTURE))
def test_unsound_document_is_refused_or_repaired_with_a_count(data: bytes) -> None:
    _check_told(data)


@pytest.mark.parametrize(
    ("before", "after"),
    [(b"\xef\xbb\xbf", b""), (b" \t\r\n", b""), (b"", b" \t\r\n"), (b"\xef\xbb\xbf\n", b"\n\n")],
    ids=["byte order mark", "white space before", "white space after", "all of it"],
)
def test_white_space_and_a_byte_order_mark_around_a_document_change_nothing(
    before: bytes, after: bytes
) -> None:
    for stream in _both(before + b'{"traceEvents":[' + EVENT + b"]}" + after):
        trace = read_trace(stream)
        assert (len(trace.events), dict(trace.meta.dropped)) == (1, {})


@pytest.mark.parametrize("end", [b",]", b",", b""])
def test_bare_list_may_end_in_a_comma_or_not_at_all(end: bytes) -> None:
    """The Chrome trace format says so, whatever the RFC does."""
    for stream in _both(b"[" + EVENT + end):
        assert len(read_trace(stream).events) == 1
