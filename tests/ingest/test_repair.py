r"""What is meant by text that is no JSON, where it is known; nothing, where it is not."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepcrit.ingest.repair import LARGEST, repair
from stepcrit.model.trace import Harm

REPAIRED = [
    (rb'{"n":"C:\Users\new\table"}', {"n": r"C:\Users\new\table"}, {Harm.ESCAPE}),
    (rb'{"n":"C:\\Users\\x"}', {"n": r"C:\Users\x"}, set()),
    (rb'{"n":"a\"b\q"}', {"n": 'a"b\\q'}, {Harm.ESCAPE}),
    (rb'{"n":"\u12"}', {"n": r"\u12"}, {Harm.ESCAPE}),
    (rb'{"n":"C:\dir\","m":1}', {"n": "C:\\dir\\", "m": 1}, {Harm.ESCAPE}),
    (b'{"n":"a\nb\tc\x00"}', {"n": "a\nb\tc\x00"}, {Harm.CONTROL}),
    (b'{"n":"\xfe\xed\x80ok\xff"}', {"n": "\ufffdok\ufffd"}, {Harm.UTF8}),
    (b'{"n":"caf\xe9"}', {"n": "caf\ufffd"}, {Harm.UTF8}),
    ('{"n":"日本"}'.encode(), {"n": "日本"}, set()),
    (rb'{"n":"\ud83d\ude00 \ud800 \\ud800"}', {"n": "😀 \ufffd \\ud800"}, {Harm.SURROGATE}),
    (b'{"a":NaN,"b":-Infinity,"c":N/A,"d":nan,"e":inf}', dict.fromkeys("abcde"), {Harm.BARE}),
    (b'{"a":-nan(ind),"b":1}', None, set()),
    (b'{"a":,"b":}', {"a": None, "b": None}, {Harm.BARE}),
    (b'{"a":None,"b":True,"c":False}', {"a": None, "b": True, "c": False}, {Harm.BARE, Harm.NUMBER}),
    (b'{"a":+1,"b":.5,"c":1.,"d":007,"e":-.25e+2}', {"a": 1, "b": 0.5, "c": 1, "d": 7, "e": -25.0}, {Harm.NUMBER}),
    (b'{"a":0,"b":-0,"c":10.50e-3}', {"a": 0, "b": 0, "c": 0.0105}, set()),
    (b'{"dtype":Float,"m":c10.Half}', {"dtype": "Float", "m": "c10.Half"}, {Harm.WORD}),
    (b'{,"a":1,,"b":[,2,],}', {"a": 1, "b": [2]}, {Harm.COMMA}),
    (b'{"args":{, "Device":1}}', {"args": {"Device": 1}}, {Harm.COMMA}),
    (b'{"dtype":""Float""}', {"dtype": "Float"}, {Harm.QUOTE}),
    (b'{"name":"{"device": "cpu"}(12): run","ph":"X"}', {"name": '{"device": "cpu"}(12): run', "ph": "X"}, {Harm.QUOTE}),
    (b'{"ph":"X","name":"L("_t","IMPL")\n(1)"}', {"ph": "X", "name": 'L("_t","IMPL")\n(1)'}, {Harm.QUOTE, Harm.CONTROL}),
    (b'{"name" : "a"b" , "ph" : "X" }', {"name": 'a"b', "ph": "X"}, {Harm.QUOTE}),
    (b'{"name":""a"b"","ph":"X"}', {"name": '"a"b"', "ph": "X"}, {Harm.QUOTE}),
    *(
        (b'{"name":"a"b","%s":1}' % key, {"name": 'a"b', key.decode(): 1}, {Harm.QUOTE})
        for key in (b"ph", b"cat", b"pid", b"tid", b"ts", b"dur", b"args", b"id", b"bp", b"s")
    ),
    (b'{"ph":"X","name":"a"b" }\n', {"ph": "X", "name": 'a"b'}, {Harm.QUOTE}),
    (rb'{"n":"\uDCAB \uDABC \udbef"}', {"n": "\ufffd \ufffd \ufffd"}, {Harm.SURROGATE}),
    (rb'{"n":["C:\dir\"]}', {"n": ["C:\\dir\\"]}, {Harm.ESCAPE}),
    (b'{"t":std-vector<int>,"u":_a.b}', {"t": "std-vector<int>", "u": "_a.b"}, {Harm.WORD}),
    *((b'{"n":""a%sb""}' % mark, None, set()) for mark in (b"]", b"[", b"{", b"}", b",", b":")),
    (b'{"a":+1e10}', {"a": 1e10}, {Harm.NUMBER}),
    (b'{"a":+}', None, set()),
    (b'{"a":.}', None, set()),
    (b'{"ph":"f", tid": 0}', None, set()),
    (b'{"a":1 "b":2}', None, set()),
    (b'{"a":1', None, set()),
    (b'{"a":"b', None, set()),
    (b'{"a":0x1f}', None, set()),
    (b'{"a":1 2}', None, set()),
    (b'{"a":- 1}', None, set()),
    (b'{"a":[1 2,]}', None, set()),
    (b'{"a":\x0c1,}', {"a": 1}, {Harm.CONTROL, Harm.COMMA}),
    (b'{"a":1e}', None, set()),
    (b'{"a":@}', None, set()),
    (b"", None, set()),
]  # fmt: skip


@pytest.mark.parametrize(("text", "value", "harms"), REPAIRED, ids=[repr(case[0]) for case in REPAIRED])
def test_what_is_meant_is_told_and_what_was_wrong(text: bytes, value: object, harms: set[Harm]) -> None:
    made = repair(text)
    if value is None:
        assert made is None
        return
    assert made is not None
    assert json.loads(made[0]) == value
    assert made[1] == harms


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(values)
def test_sound_json_comes_back_as_it_was(value: object) -> None:
    for text in (json.dumps(value), json.dumps(value, indent=1)):
        made = repair(text.encode("utf-8", "surrogatepass"))
        if (
            made is None
        ):  # two strings side by side, no letter between: they look like one that is quoted twice
            continue
        assert json.loads(made[0]) == value
        assert not made[1]


@given(st.binary(max_size=60))
def test_whatever_comes_out_is_json(text: bytes) -> None:
    made = repair(b'{"a":' + text + b"}")
    assert made is None or isinstance(json.loads(made[0]), dict)


def test_nothing_larger_than_an_event_is_repaired() -> None:
    assert repair(b'{"a":"' + b"\n" * 100 + b'"}') is not None
    assert repair(b'{"a":"\n' + b"x" * LARGEST + b'"}') is None
