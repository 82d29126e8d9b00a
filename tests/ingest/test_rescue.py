"""The reader of damaged text agrees with the strict one on sound text, and loses no more than it must."""

from __future__ import annotations

import io
import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepcrit.errors import BrokenInputError, InputError
from stepcrit.ingest import envelope, read_trace
from stepcrit.ingest.damage import EXCERPT_BYTES, excerpt
from stepcrit.ingest.limits import Limits
from stepcrit.model.trace import Harm, RawTrace
from tests.ingest.test_envelope import LAYOUTS, _columns, _event, events


@pytest.fixture
def all_by_rescue(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the two strict ways away, so that every event is read by the third."""

    def fails(document: Any) -> None:
        raise document._refuse.broken("not today", document._window.at)

    monkeypatch.setattr(envelope.Document, "_quick", lambda _: None)
    monkeypatch.setattr(envelope.Document, "_exact", fails)


def _read(text: str | bytes, **how: Any) -> RawTrace:
    return read_trace(io.BytesIO(text.encode() if isinstance(text, str) else text), salvage=True, **how)


@pytest.mark.usefixtures("all_by_rescue")
@settings(max_examples=150)
@given(
    found=st.lists(events, min_size=1, max_size=8),
    layout=st.sampled_from(LAYOUTS),
    chunk_bytes=st.integers(1, 400),
    is_array=st.booleans(),
)
def test_sound_text_reads_the_same_event_by_event(
    found: list[dict[str, Any]], layout: Any, chunk_bytes: int, *, is_array: bool
) -> None:
    text = layout(found if is_array else {"schemaVersion": 1, "traceEvents": found, "z": [1]})
    try:
        trace = _read(text, chunk_bytes=chunk_bytes)
    except InputError:
        assert not any(event["ph"] == "X" for event in found)
        return
    plain = [event for event in found if event["ph"] == "X"]
    assert len(_columns(trace)) == len(plain)
    assert sorted(row[3] for row in _columns(trace)) == sorted(event["name"] for event in plain)
    assert (trace.meta.event_count, trace.meta.damage, trace.meta.lost_share) == (len(found), (), 0)


TEXT = json.dumps(
    {"schemaVersion": 1, "traceEvents": [_event(n, args={"a": [{"name": n}]}) for n in range(40)]}
)


@pytest.mark.parametrize("seed", range(8))
def test_one_damaged_byte_costs_at_most_two_events(seed: int) -> None:
    chance = random.Random(seed)
    first = TEXT.index('{"ph"')
    for _ in range(40):
        place = chance.randrange(first, len(TEXT) - 2)
        byte = chance.choice(b'"\\\n{},:[]\x00\xff0a')
        damaged = TEXT.encode()[:place] + bytes([byte]) + TEXT.encode()[place + 1 :]
        meta = _read(damaged).meta
        assert meta.event_count >= 38, (place, byte)


def test_a_longer_prefix_never_holds_fewer_events() -> None:
    kept = 0
    for cut in range(60, len(TEXT), 7):
        try:
            count = _read(TEXT[:cut]).meta.event_count
        except BrokenInputError:
            count = 0
        assert count >= kept
        kept = count
    assert kept >= 39


def test_what_was_overwritten_by_another_writer_is_lost_and_no_more() -> None:
    other = TEXT[500:700]
    mixed = TEXT[:1500] + other + TEXT[1700:]
    meta = _read(mixed).meta
    whole = {row for row in range(40) if json.dumps(_event(row, args={"a": [{"name": row}]})) in mixed}
    assert meta.event_count >= len(whole)
    assert [damage.harm for damage in meta.damage] == [Harm.EVENT]


def test_an_event_that_begins_inside_a_broken_one_is_kept() -> None:
    each = [json.dumps(_event(n)) for n in range(3)]
    text = "[" + each[0] + "," + each[1][:30] + each[2] + "]"
    trace = _read(text)
    assert trace.events.names == ("op0", "op2")
    (damage,) = trace.meta.damage
    assert (damage.harm, damage.count, damage.first_byte) == (Harm.EVENT, 1, len(each[0]) + 2)
    assert trace.meta.lost_share == 30 / len(text)


@pytest.mark.parametrize("behind", [1, 1500])
def test_an_argument_that_looks_like_events_is_no_border_in_damaged_text(behind: int) -> None:
    nested = _event(1, args={"list": [{"ph": "X", "name": "no event"}] * 20})
    damaged = json.dumps(_event(0)).replace("op0", "o\np0")
    others = ",".join(json.dumps(_event(n)) for n in range(2, 2 + behind))
    trace = _read(f"[{damaged},{json.dumps(nested)},{others}]")
    assert set(trace.events.names) == {"o\np0", *(f"op{n}" for n in range(1, 2 + behind))}
    assert [(damage.harm, damage.count) for damage in trace.meta.damage] == [(Harm.CONTROL, 1)]


def test_events_after_a_damaged_bracket_are_read() -> None:
    damaged = json.dumps(_event(0, args={"list": [{"name": "a"}, {"name": "b"}]})).replace('"args"', '"args')
    text = json.dumps({"traceEvents": ["?", *(_event(n) for n in range(1, 9))], "schemaVersion": 1})
    trace = _read(text.replace('"?"', damaged))
    assert {"op1", "op8"} <= set(trace.events.names)
    assert trace.meta.header_keys == ("schemaVersion", "traceEvents")


def test_of_every_damaged_event_the_harm_is_counted_once() -> None:
    bad = json.dumps(_event(0)).replace('"op0"', r'"C:\x\y\z"').replace('"dur"', '"q": N/A, "r": NaN, "dur"')
    trace = _read(f"[{bad},{bad},{json.dumps(_event(2))}]")
    assert [(one.harm, one.count) for one in trace.meta.damage] == [(Harm.ESCAPE, 2), (Harm.BARE, 2)]


@pytest.mark.parametrize("key", ["deviceProperties", "WARNING", "traceName", "cuda_driver_version"])
@pytest.mark.parametrize("before", [True, False])
def test_a_damaged_section_costs_only_itself(key: str, *, before: bool) -> None:
    section = f'"{key}": ["a" "b"], '
    head = section if before else ""
    tail = "" if before else section
    found = ", ".join(json.dumps(_event(n)) for n in range(9))
    text = f'{{"schemaVersion": 1, {head}"traceEvents": [{found}], {tail}"baseTimeNanoseconds": 7}}'
    for chunk_bytes in (1, 60, 1 << 20):
        meta = _read(text, chunk_bytes=chunk_bytes).meta
        assert (meta.event_count, meta.base_ns) == (9, 7)
        assert [damage.harm for damage in meta.damage] == [Harm.SECTION]
        assert meta.lost_share == len('["a" "b"]') / len(text)


KNOWN_KEYS = [
    "schemaVersion",
    "deviceProperties",
    "computeProperties",
    "distributedInfo",
    "baseTimeNanoseconds",
    "displayTimeUnit",
    "traceName",
    "trace_id",
    "hostname",
    "host_name",
    "record_shapes",
    "with_stack",
    "with_flops",
    "with_modules",
    "profile_memory",
    "INFO",
    "WARNING",
    "ERROR",
    "cuda_runtime_version",
]


@pytest.mark.parametrize("key", KNOWN_KEYS)
def test_behind_a_damaged_section_the_next_known_key_is_read(key: str) -> None:
    found = ", ".join(json.dumps(_event(n)) for n in range(9))
    for space in ("", "\n  "):
        text = f'{{"traceEvents": [{found}],{space}"odd": ["a" "b"],{space}"{key}"{space}:{space}7,{space}"z": 1}}'
        assert _read(text).meta.header_keys == tuple(sorted(["traceEvents", "odd", key, "z"]))


LAST = json.dumps(_event(1, args={"x": [{"a": [{"b": 1}]}]})).replace('"op1"', '"C:\\op1"')
"""A last event that is damaged, and holds what looks like the end of a list."""


@pytest.mark.parametrize("end", ["]", " ]", "\n ]", ",]", " , ]"])
def test_a_damaged_last_event_is_read_and_what_follows_the_list_too(end: str) -> None:
    trace = _read(f'{{"traceEvents": [{json.dumps(_event(0))}, {LAST}{end}, "schemaVersion": 1}}')
    assert trace.events.names == ("C:\\op1", "op0")
    assert trace.meta.header_keys == ("schemaVersion", "traceEvents")
    harms = {damage.harm: damage.count for damage in trace.meta.damage}
    assert harms == {Harm.ESCAPE: 1, **({Harm.COMMA: 1} if "," in end else {})}


@pytest.mark.parametrize("end", ["]", ",]", "", "\n", ",", " , \n"])
def test_a_damaged_last_event_of_a_bare_list_is_read_however_the_list_ends(end: str) -> None:
    trace = _read(f"[{json.dumps(_event(0))}, {LAST}{end}")
    assert trace.events.names == ("C:\\op1", "op0")
    assert [(damage.harm, damage.count) for damage in trace.meta.damage] == [(Harm.ESCAPE, 1)]


@pytest.mark.parametrize("pad", [0, 70_000])
def test_a_text_that_stops_behind_what_looks_like_the_end_of_its_list_is_cut(pad: int) -> None:
    whole = [json.dumps(_event(0)).replace("op0", "o\np0"), json.dumps(_event(1))]
    cut = f'{{"ph": "X", "args": {{"x": [{{"a": 1}}], "b": "{"x" * pad}", "c'
    text = '{"traceEvents": [' + ", ".join([*whole, cut])
    meta = _read(text).meta
    assert meta.event_count == 2
    assert [(damage.harm, damage.first_byte) for damage in meta.damage] == [
        (Harm.CONTROL, text.index("o\np0") + 1),
        (Harm.CUT, len(text)),
    ]
    assert meta.lost_share == len(cut) / len(text)


def test_a_stray_quotation_mark_is_met_before_all_of_the_text_is_in_memory() -> None:
    found = [json.dumps(_event(n)) for n in range(4000)]
    found[1] = found[1].replace('"op1"', '"op1""')
    meta = _read(f"[{', '.join(found)}]", chunk_bytes=1000, limits=Limits(value=100_000)).meta
    assert meta.event_count >= 3999


def test_a_path_with_backslashes_in_the_header_is_repaired() -> None:
    found = ", ".join(json.dumps(_event(n)) for n in range(3))
    text = f'{{"traceEvents": [{found}], "traceName": "C:\\Users\\x.json"\n}}'
    meta = _read(text).meta
    assert [(damage.harm, damage.first_line) for damage in meta.damage] == [(Harm.ESCAPE, 1)]
    assert meta.header_keys == ("traceEvents", "traceName")
    assert meta.lost_share == 0


def test_a_header_value_is_used_as_it_was_repaired() -> None:
    found = ", ".join(json.dumps(_event(n)) for n in range(3))
    text = f'{{"traceEvents": [{found}], "distributedInfo": {{"rank": 03, "world_size": +8,}}'
    for end in ("}", ', "schemaVersion": 1}'):
        meta = _read(text + end).meta
        assert (meta.rank, meta.world_size) == (3, 8)
        assert {damage.harm for damage in meta.damage} == {Harm.COMMA, Harm.NUMBER}


@pytest.mark.parametrize("chunk_bytes", [1, 100, 1 << 20])
def test_the_second_of_two_documents_is_left_out_and_said_to_be(chunk_bytes: int) -> None:
    meta = _read(TEXT + "\n" + TEXT, chunk_bytes=chunk_bytes).meta
    assert meta.event_count == 40
    (damage,) = meta.damage
    assert (damage.harm, damage.first_byte, damage.first_line) == (Harm.AFTER, len(TEXT) + 1, 2)
    assert meta.lost_share == len(TEXT) / (2 * len(TEXT) + 1)
    with pytest.raises(BrokenInputError, match="50 % of the input cannot be used; 40 events"):
        read_trace(io.BytesIO((TEXT + "\n" + TEXT).encode()))


@pytest.mark.parametrize("head", ["", 'aten::op", "pid": 1},\n'])
def test_a_file_without_its_beginning_is_read_to_its_end(head: str) -> None:
    found = ", ".join(json.dumps(_event(n)) for n in range(9))
    text = head + found + '], "traceName": "x.json", "baseTimeNanoseconds": 7}'
    for chunk_bytes in (1, 60, 1 << 20):
        meta = _read(text, chunk_bytes=chunk_bytes).meta
        assert (meta.event_count, meta.base_ns) == (9, 7)
        assert [damage.harm for damage in meta.damage] == [Harm.HEAD]


def test_an_excerpt_begins_a_third_of_it_before_its_place_and_never_before_the_text() -> None:
    text = bytes(range(33, 127)) * 2
    assert excerpt(text, 0) == text[:EXCERPT_BYTES].decode()
    assert excerpt(text, 19) == text[:EXCERPT_BYTES].decode()
    assert excerpt(text, 50) == text[30:90].decode()
    assert excerpt(b"ab\xff", 2) == "ab\ufffd"


def test_a_sound_event_before_a_damaged_border_is_kept() -> None:
    each = [json.dumps(_event(n)) for n in range(4)]
    text = (
        "["
        + ",".join(each).replace(
            '},{"ph": "X", "cat": "cpu_op", "name": "op2"', '},["ph": "X", "name": "op2"'
        )
        + "]"
    )
    assert sorted(_read(text).events.names) == ["op0", "op1", "op3"]


def test_what_dates_the_writer_is_found_in_repaired_events_as_well() -> None:
    row = '{"ph":"X","cat":"cpu_op","name":"%s","pid":1,"tid":1,"ts":1,"dur":2,"args":{"Ev Idx":1}}'
    trace = _read('{"traceEvents":[' + row % r"C:\q" + "]}")
    assert [damage.harm for damage in trace.meta.damage] == [Harm.ESCAPE]
    assert '"Ev Idx" (>= 2022-11)' in trace.meta.dialect
