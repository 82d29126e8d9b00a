"""Wherever the text is cut, and whatever surrounds the events, the same events come out."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepcrit.errors import BrokenInputError
from stepcrit.ingest import read_trace
from stepcrit.ingest.split import split, value_end, without_depth
from stepcrit.ingest.window import Window
from stepcrit.model.trace import Harm, RawTrace

Read = Callable[..., RawTrace]

# Texts that a careless splitter would cut at or count brackets in.
NASTY = ['"},{"ph":"X"', "\\", '\\"', "}\n, {", "[", "]", "{", "}", "\\u0000", "\n", "\u2028", "é😀", "},{"]
words = st.text(max_size=6) | st.sampled_from(NASTY)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | words,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(words | st.sampled_from(["ph", "name", "ts"]), inner, max_size=3)
        | st.lists(st.fixed_dictionaries({"ph": st.just("X"), "name": words}), max_size=3)
    ),
    max_leaves=8,
)
events = st.fixed_dictionaries(
    {
        "ph": st.sampled_from(["X", "X", "X", "i", "M", "C"]),
        "cat": st.sampled_from(["cpu_op", "kernel", "user_annotation"]),
        "name": words,
        "pid": st.integers(0, 3),
        "tid": st.integers(0, 3) | st.sampled_from(["stream 7", ""]),
        "ts": st.integers(1, 4 * 10**15),
        "dur": st.integers(0, 10**6),
    },
    optional={"args": st.dictionaries(words, values, max_size=4)},
)


def _compact(document: Any) -> str:
    return json.dumps(document, separators=(",", ":"))


def _unicode(document: Any) -> str:
    return json.dumps(document, ensure_ascii=False)


def _indented(document: Any) -> str:
    return json.dumps(document, indent=2)


def _kineto(document: Any) -> str:
    """Kineto's own layout: an event over several lines, odd blanks, two keys a line."""
    if isinstance(document, list):
        return "\n[\n" + ",\n".join(_kineto_event(event) for event in document) + "\n]\n"
    parts = [
        f'  "{key}": [\n' + ",\n".join(map(_kineto_event, value)) + "\n  ]"
        if key == "traceEvents"
        else f"  {json.dumps(key)}: {json.dumps(value)}"
        for key, value in document.items()
    ]
    return "\n{\n" + ",\n".join(parts) + "}"


def _kineto_event(event: dict[str, Any]) -> str:
    pairs = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in event.items()]
    return "  {\n    " + ", ".join(pairs[:2]) + "".join(f",\n    {pair}" for pair in pairs[2:]) + "\n  }"


LAYOUTS = [_compact, _unicode, _indented, _kineto]


def _plainly(text: str) -> list[tuple[Any, ...]]:
    """The reference reader: whole document, dicts, decimals."""
    document = json.loads(text, parse_float=Decimal, parse_int=Decimal)
    found = document if isinstance(document, list) else document["traceEvents"]
    rows = [
        (
            int(event["ts"] * 1000),
            -int((event["ts"] + event["dur"]) * 1000),
            order,
            event["name"],
            event["cat"],
        )
        for order, event in enumerate(found)
        if event["ph"] == "X"
    ]
    return sorted(rows)


def _columns(trace: RawTrace) -> list[tuple[Any, ...]]:
    """The same rows from a trace."""
    rows, origin = trace.events, trace.meta.origin_ns
    return [
        (start + origin, -end - origin, order, rows.names[name], rows.cats[cat])
        for start, end, order, name, cat in zip(
            rows.start_ns.tolist(), rows.end_ns.tolist(), rows.order.tolist(), rows.name.tolist(), rows.cat.tolist(),
            strict=True,
        )
    ]  # fmt: skip


@settings(deadline=None, max_examples=200)
@given(
    found=st.lists(events, min_size=1, max_size=8),
    layout=st.sampled_from(LAYOUTS),
    chunk_bytes=st.integers(1, 400),
    at=st.integers(0, 2),
    is_array=st.booleans(),
    header=st.dictionaries(words, values, max_size=3),
)
def test_any_document_reads_like_the_reference(
    *,
    found: list[dict[str, Any]],
    layout: Callable[[Any], str],
    chunk_bytes: int,
    at: int,
    is_array: bool,
    header: dict[str, Any],
) -> None:
    found = [{**found[0], "ph": "X"}, *found[1:]]  # a bare list needs one row to be known by
    header = {key: value for key, value in header.items() if key != "traceEvents"} | {"schemaVersion": 1}
    members = list(header.items())
    members.insert(min(at, len(members)), ("traceEvents", found))
    text = layout(found if is_array else dict(members))
    trace = read_trace(io.BytesIO(text.encode()), chunk_bytes=chunk_bytes)
    rows = _columns(trace)
    assert sorted(rows) == _plainly(text)
    assert [row[:2] for row in rows] == sorted(row[:2] for row in rows)
    assert trace.meta.event_count == len(found)
    assert trace.meta.json_bytes == len(text.encode())
    if not is_array:
        assert trace.meta.header_keys == tuple(sorted(dict(members)))


def _event(number: int, **more: Any) -> dict[str, Any]:
    return {
        "ph": "X",
        "cat": "cpu_op",
        "name": f"op{number}",
        "pid": 1,
        "tid": 1,
        "ts": number,
        "dur": 1,
        **more,
    }


def test_every_chunk_size_gives_the_same_trace(read_text: Read) -> None:
    nested = {
        "list": [{"ph": "X", "name": "no event"}, {"ph": "X", "name": "nor this"}],
        "text": '"},{"ph":"X"',
    }
    text = _kineto({"traceEvents": [_event(n, args=nested) for n in range(6)], "schemaVersion": 1})
    whole = _columns(read_text(text))
    assert len(whole) == 6
    for chunk_bytes in range(1, len(text) + 2):
        assert _columns(read_text(text, chunk_bytes=chunk_bytes)) == whole


def test_header_lists_after_the_events_are_not_events(read_text: Read) -> None:
    devices = [{"id": n, "name": "GPU"} for n in range(4)]
    text = _indented({"traceEvents": [_event(0)], "deviceProperties": devices, "baseTimeNanoseconds": 5})
    trace = read_text(text)
    assert (len(trace.events), len(trace.meta.devices), trace.meta.base_ns) == (1, 4, 5)


def test_keys_of_an_event_may_come_in_any_order(read_text: Read) -> None:
    shuffler = random.Random(1)
    found = []
    for number in range(50):
        pairs = list(_event(number, args={"correlation": number + 1}).items())
        shuffler.shuffle(pairs)
        found.append(dict(pairs))
    trace = read_text(_compact(found), chunk_bytes=200)
    assert trace.events.correlation.tolist() == list(range(1, 51))


def test_of_a_key_given_twice_the_last_wins(read_text: Read) -> None:
    trace = read_text('[{"ph":"X","ph":"X","cat":"kernel","cat":"cpu_op","name":"a","name":"b","ts":1,"ts":2,'
                      '"args":{"correlation":1,"correlation":2}}]')  # fmt: skip
    assert trace.events.name_of(0) == "b"
    assert trace.events.correlation.tolist() == [2]
    assert trace.meta.origin_ns == 2000


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        '{{"schemaVersion":1,"traceEvents":[{}]}}',
        "\ufeff{}",
        "[{}]",
        "[{},]",
        "[{}",
        "[{},",
        " [ {} , \n",
    ],
)
def test_forms_of_the_document(read_text: Read, text: str) -> None:
    event = _compact(_event(0))
    text = text.replace("{{", "\x01").replace("}}", "\x02")
    text = text.replace("{}", event).replace("\x01", "{").replace("\x02", "}")
    if "[" not in text:
        text = text.replace(event, f'{{"traceEvents":[{event}],"schemaVersion":1}}')
    for chunk_bytes in (1, 7, 1 << 20):
        assert len(read_text(text, chunk_bytes=chunk_bytes).events) == 1


GOOD = _compact({"schemaVersion": 1, "traceEvents": [_event(0), _event(1)], "z": [1, {"a": "b"}]})
DAMAGED = [
    (GOOD[:-1], len(GOOD) - 1, Harm.CUT, 2),
    (GOOD[:-2], len(GOOD) - 2, Harm.CUT, 2),
    (GOOD[:170], 170, Harm.CUT, 1),
    (GOOD.replace('"op1"', '"o"p1"'), GOOD.index('"op1"') + 3, Harm.QUOTE, 2),
    (GOOD.replace('"dur":1}]', '"dur":1},]'), GOOD.index('"dur":1}]') + 9, Harm.COMMA, 2),
    (GOOD.replace('1},{"ph', '1}{"ph'), GOOD.index('1},{"ph') + 2, Harm.COMMA, 2),
    (GOOD.replace('1},{"ph', '1},,{"ph'), GOOD.index('1},{"ph') + 3, Harm.COMMA, 2),
    (GOOD.replace('"ts":1', '"ts":NaN'), GOOD.index('"ts":1') + 5, Harm.BARE, 1),
    (GOOD.replace('"dur":1}]', '"dur":01}]'), GOOD.index('"dur":1}]') + 6, Harm.NUMBER, 2),
    (GOOD.replace('"op1"', "op1"), GOOD.index('"op1"'), Harm.WORD, 2),
    (GOOD.replace("op1", "o\np"), GOOD.index("op1") + 1, Harm.CONTROL, 2),
    (GOOD.replace("op1", "o\\qp"), GOOD.index("op1") + 2, Harm.ESCAPE, 2),
    (GOOD.replace("op1", "o\\ud800p"), GOOD.index("op1") + 7, Harm.SURROGATE, 2),
    (
        GOOD.replace('{"ph":"X","cat":"cpu_op","name":"op1"', '{"ph":"X"?'),
        GOOD.index("op1") - 32,
        Harm.EVENT,
        1,
    ),
    (GOOD.replace('"z":[1', '"z":[,'), GOOD.index('"z":[1') + 5, Harm.COMMA, 2),
    (GOOD.replace('"a":"b"', '"a":"b"c"'), GOOD.index('"z":') + 4, Harm.SECTION, 2),
    (GOOD.replace('"z":', '"z"'), GOOD.index('"z":') + 3, Harm.SECTION, 2),
    (GOOD.replace('"z":', "z:"), GOOD.index('"z":'), Harm.SECTION, 2),
    (GOOD + "}", len(GOOD), Harm.AFTER, 2),
    (GOOD + GOOD, len(GOOD), Harm.AFTER, 2),
    (GOOD.replace('"z":[', '"traceEvents":['), GOOD.index('"z":') + len('"traceEvents":'), Harm.SECTION, 2),
    (GOOD[GOOD.index('{"ph"') :], 0, Harm.HEAD, 2),
    ("lost," + GOOD[GOOD.index('{"ph"') :], 0, Harm.HEAD, 2),
]


@pytest.mark.parametrize(
    ("text", "offset", "harm", "rows"), DAMAGED, ids=[f"{case[2].name}-{case[1]}" for case in DAMAGED]
)
def test_damage_is_repaired_or_left_out_and_named_by_its_byte(
    read_text: Read, text: str, offset: int, harm: Harm, rows: int
) -> None:
    for chunk_bytes in (1, 50, 1 << 20):
        trace = read_text(text, chunk_bytes=chunk_bytes, salvage=True)
        assert len(trace.events) == rows
        (found,) = [damage for damage in trace.meta.damage if damage.harm == harm]
        assert (found.count, found.first_line) == (1, 1)
        assert abs(found.first_byte - offset) <= 1, found


@pytest.mark.parametrize(("text", "offset", "harm", "rows"), DAMAGED)
def test_a_trace_that_lost_more_than_a_twentieth_is_refused(
    read_text: Read, text: str, offset: int, harm: Harm, rows: int
) -> None:
    meta = read_text(text, salvage=True).meta
    if meta.lost_share <= 0.05:
        assert read_text(text).meta == meta
        return
    with pytest.raises(BrokenInputError, match=f"{100 * meta.lost_share:.0f} % of the input") as caught:
        read_text(text)
    assert f"{rows} event" in caught.value.what
    assert "--salvage" in caught.value.do
    assert abs(int(caught.value.where.split("byte ")[1].split()[0]) - offset) <= 12
    assert harm.is_loss


def test_the_part_that_is_lost_is_told_in_bytes_of_the_whole(read_text: Read) -> None:
    lost = '{"ph":"X","name"?1}'
    found = [_compact(_event(n)) for n in range(20)]
    text = "[" + ",".join([*found[:5], lost, *found[5:]]) + "]"
    meta = read_text(text).meta
    assert meta.event_count == 20
    assert meta.lost_share == len(lost) / len(text)


def test_what_is_no_json_at_all_is_refused(read_text: Read) -> None:
    for chunk_bytes in (1, 50, 1 << 20):
        with pytest.raises(BrokenInputError, match="not JSON") as caught:
            read_text("ph,name\nX,a", chunk_bytes=chunk_bytes, salvage=True)
        assert caught.value.where.startswith("-, byte 0 of the JSON text, line 1")
        assert caught.value.do


def test_the_line_is_counted_from_the_start_of_the_document(read_text: Read) -> None:
    text = _indented({"traceEvents": [_event(number) for number in range(300)]})
    broken = text.replace("op250", "op\t250")
    for chunk_bytes in (100, 1 << 20):
        (found,) = read_text(broken, chunk_bytes=chunk_bytes).meta.damage
        assert found.first_line == text[: text.index("op250")].count("\n") + 1
        assert found.first_byte == text.index("op250") + 2


@pytest.mark.parametrize("chunk_bytes", [1, 64, 1 << 20])
def test_of_a_document_cut_anywhere_the_whole_events_are_kept(read_text: Read, chunk_bytes: int) -> None:
    odd = {"x": [True, None, -1.5e7, {"y": "\\", "z": 'a"}'}]}
    each = [_unicode(_event(n, args=odd)) for n in range(3)]
    text = '{"schemaVersion":1,"traceEvents":[' + ",".join(each) + '],"n":null}'
    ends = [text.index(one) + len(one) for one in each]
    for cut in range(1, len(text)):
        whole = sum(end <= cut for end in ends)
        if not whole:
            with pytest.raises(BrokenInputError, match="stops before its end") as caught:
                read_text(text[:cut], chunk_bytes=chunk_bytes, salvage=True)
            assert caught.value.where.startswith(f"-, byte {cut} of the JSON text")
            continue
        meta = read_text(text[:cut], chunk_bytes=chunk_bytes, salvage=True).meta
        assert (meta.event_count, [(d.harm, d.first_byte) for d in meta.damage]) == (whole, [(Harm.CUT, cut)])


@pytest.mark.parametrize("chunk_bytes", [1, 64, 1 << 20])
def test_a_bare_list_cut_between_events_is_whole_and_inside_one_is_not(
    read_text: Read, chunk_bytes: int
) -> None:
    text = _compact([_event(n) for n in range(3)])
    between = {place for place, mark in enumerate(text) if mark == "}"}
    for cut in range(2, len(text)):
        is_whole = cut - 1 in between or (text[cut - 1] == "," and cut - 2 in between)
        if not text[:cut].count("}"):
            with pytest.raises(BrokenInputError, match="stops before its end"):
                read_text(text[:cut], chunk_bytes=chunk_bytes, salvage=True)
            continue
        meta = read_text(text[:cut], chunk_bytes=chunk_bytes, salvage=True).meta
        assert meta.event_count == text[:cut].count("}")
        assert [damage.harm for damage in meta.damage] == ([] if is_whole else [Harm.CUT])


def test_the_byte_counts_from_the_start_of_the_document(read_text: Read) -> None:
    found = [_event(number, args={"pad": "é" * 20}) for number in range(200)]
    text = _unicode({"traceEvents": found}).encode()
    place = text.index(b"op150")
    (damage,) = read_text(text.replace(b"op150", b"op\xff50"), chunk_bytes=1000).meta.damage
    assert (damage.harm, damage.first_byte) == (Harm.UTF8, place + 2)


def test_a_trailing_comma_is_counted_wherever_a_chunk_ends(read_text: Read) -> None:
    text = GOOD.replace('"dur":1}]', '"dur":1} , ]')
    for chunk_bytes in range(1, len(text)):
        meta = read_text(text, chunk_bytes=chunk_bytes).meta
        assert [(damage.harm, damage.count) for damage in meta.damage] == [(Harm.COMMA, 1)]


def test_unescaped_windows_backslashes_are_told(read_text: Read) -> None:
    lost = GOOD.replace("op1", r"torch\profiler\profiler.py(500): step").replace('"dur":1}]', '"dur"?}]')
    with pytest.raises(BrokenInputError) as caught:
        read_text(lost)
    assert "Windows backslashes" in caught.value.do


def test_a_value_nested_beyond_recursion_costs_only_itself(read_text: Read) -> None:
    deep = "[" * 50_000 + "]" * 50_000
    first, second = _compact(_event(0)), _compact(_event(1, args={"correlation": 7, "deep": 0}))
    second = second.replace('"deep":0', f'"deep":{deep}')
    trace = read_text(f"[{first},{second}]")
    assert trace.events.correlation.tolist() == [-1, 7]
    assert list(trace.meta.dropped) == ["arguments nested too deeply, cut"]


def test_a_header_value_nested_beyond_recursion_is_unknown(read_text: Read) -> None:
    deep = "[" * 50_000 + "]" * 50_000
    trace = read_text(f'{{"deviceProperties":{deep},"traceEvents":[{_compact(_event(0))}]}}')
    assert (len(trace.events), trace.meta.devices) == (1, ())


@given(st.lists(values, max_size=5), st.sampled_from(LAYOUTS[:3]))
def test_split_finds_the_bounds_json_finds(found: list[Any], layout: Callable[[Any], str]) -> None:
    text = layout(found).encode()
    parts = split(text, 1, at_end=True)
    assert [json.loads(text[start:end]) for start, end in parts.bounds] == found
    assert all(text[start:end] == text[start:end].strip() for start, end in parts.bounds)
    assert (parts.closed, parts.used, parts.malformed_at) == (True, len(text), -1)


@given(st.lists(values, min_size=1, max_size=4), st.data())
def test_split_of_a_prefix_finds_a_prefix(found: list[Any], data: st.DataObject) -> None:
    text = _compact(found).encode()
    cut = data.draw(st.integers(1, len(text) - 1))
    parts = split(text[:cut], 1, at_end=False)
    assert [json.loads(text[start:end]) for start, end in parts.bounds] == found[: len(parts.bounds)]
    assert not parts.closed


@pytest.mark.parametrize(
    ("text", "end"),
    [
        (b'{"a":"}', -1),  # a string that nothing ends holds what follows
        (b'{"a":"}"', -1),
        (b'{"a":"}"}', 9),
        (b'"a\\"b"', 6),
        (b'"a\\"', -1),
        (b"[[1]] ", 5),
        (b"12 ,", 2),
        (b"12", -1),
        (b"", -1),
    ],
)
def test_the_end_of_a_value_is_known_or_minus_one(text: bytes, end: int) -> None:
    assert value_end(text, 0, at_end=False) == end


def test_a_document_that_begins_inside_its_list_has_lost_its_head_at_byte_0(read_text: Read) -> None:
    found = read_text(GOOD[GOOD.index('{"ph"') :], salvage=True).meta.damage
    (head,) = (damage for damage in found if damage.harm == Harm.HEAD)
    assert (head.count, head.first_byte, head.first_line) == (1, 0, 1)


def test_a_bare_list_with_a_zero_byte_in_a_name_is_text(read_text: Read) -> None:
    text = "[" + _compact(_event(0)).replace("op0", "o\x00p") + "]"
    assert read_text(text).events.names == ("o\x00p",)


def test_at_the_end_of_the_text_its_last_element_is_one() -> None:
    assert split(b"1, 23", 0, at_end=True).bounds == [(0, 1), (3, 5)]
    assert split(b"1, 23", 0, at_end=False).bounds == [(0, 1)]


@pytest.mark.parametrize("event", ['{"ph":', '{ "ph" :', '{\n  "ph"\n :'])
def test_a_text_without_its_head_begins_at_its_first_event(read_text: Read, event: str) -> None:
    rest = ",".join(_compact(_event(n)) for n in range(3)).replace('{"ph":', event)
    meta = read_text("lost, " + rest + "]", salvage=True).meta
    assert (meta.event_count, [damage.harm for damage in meta.damage]) == (3, [Harm.HEAD])
    assert meta.lost_share == len("lost, ") / len("lost, " + rest + "]")


def test_the_error_names_the_first_byte_that_is_wrong(read_text: Read) -> None:
    headless = GOOD[GOOD.index('{"ph"') :] + " junk" * 50
    with pytest.raises(BrokenInputError) as caught:
        read_text(headless)
    assert caught.value.where.startswith("-, byte 0 of the JSON text, line 1")
    start = '{"traceEvents":[' + _compact(_event(0))
    with pytest.raises(BrokenInputError, match="ends here, and goes on") as caught:
        read_text(start + "] , " + '{"ph":"X","name"?1},' * 5 + _compact(_event(1)) + "]}")
    assert caught.value.where.startswith(f"-, byte {len(start)} of the JSON text, line 1")


def test_the_window_reads_no_more_than_it_was_asked_for() -> None:
    source = io.BytesIO(b"x" * 1000)
    window = Window(lambda size: source.read(min(size, 7)), 50, 10_000)
    window.fill()
    # it comes in sevens, and half of what was asked for is enough: 28 of 50, then 8 are left and 21 of 42 more
    assert (len(window.text), source.tell(), window.at_end) == (28, 28, False)
    window.at = 20
    window.grow()
    assert (len(window.text), window.position) == (29, 20)
    whole = Window(io.BytesIO(b"x" * 1000).read, 50, 10_000)
    whole.fill()
    assert len(whole.text) == 50


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a":1}', '{"a":1}'),
        ('{"a":{"b":[1]},"c":[2]}', '{"a":{"b":null},"c":[2]}'),
        ('[[["[",[1]],"x"],[]]', '[[null,"x"],[]]'),
    ],
)
def test_depth_is_cut_to_null(text: str, expected: str) -> None:
    assert without_depth(text.encode(), 2) == expected.encode()
