"""Files of hand-written JSON: unescaped strings, bare words, stray commas, lists and other formats."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stepcrit.link.collectives import link_collectives
from stepcrit.model.trace import Harm
from tests.answers.drawn import call, op, work
from tests.known_bugs.conftest import Ask
from tests.known_bugs.written import loop, names, raw, spans, step, text, trace

WINDOWS = rb"C:\Users\user\python\lib"


def damaged(events: bytes, find: bytes, put: bytes) -> bytes:
    """Text with one thing in place of another that it surely holds."""
    assert find in events
    return events.replace(find, put)


def test_b001_windows_paths_are_read_with_their_backslashes(ask: Ask) -> None:
    content = damaged(text([*loop(3), op("PATH", 400, 410)]), b'"PATH"', b'"' + WINDOWS + b'"')
    found = raw(content)
    (harm,) = found.meta.damage
    assert (harm.harm, harm.count) == (Harm.ESCAPE, 1)
    # the first of its backslashes that is no escape, or the letter after it
    assert harm.first_byte - content.index(rb"\Users") in (0, 1)
    assert names(found)[-1] == WINDOWS.decode()
    answer = ask(content)
    assert (answer.code, answer.codes.count("L103")) == (0, 1)
    assert ask(content, "analyze", "--strict").code == 4


def test_b001_windows_paths_in_a_call_stack_do_not_cost_the_operator() -> None:
    stack = rb"D:\dir\new\train.py(3): step"  # \n alone is JSON
    content = damaged(text([{**op("aten::mm", 0, 10), "args": {"Call stack": "STACK"}}]), b"STACK", stack)
    found = raw(content)
    assert found.events.stacks == (stack.decode(),)
    assert spans(found, "aten::mm") == [(0, 10_000)]


def test_b003_a_bare_n_a_is_null_and_a_name_of_n_a_stays_a_name() -> None:
    content = damaged(text([op("N/A", 0, 10), op("x", 20, 30)]), b'"name": "x"', b'"name": "x", "y": N/A')
    found = raw(content)
    assert names(found) == ["N/A", "x"]
    assert [(one.harm, one.count) for one in found.meta.damage] == [(Harm.BARE, 1)]


def test_b004_a_rank_with_raw_backslashes_keeps_its_rank_and_is_read_like_the_others(ask: Ask) -> None:
    """One file is one rank: each is read by itself, and its own answer says what was wrong with it."""
    for rank, name in enumerate((b"plain", WINDOWS)):
        content = damaged(
            text([*loop(3), op("PATH", 400, 410)], distributedInfo={"rank": rank, "world_size": 2}),
            b"PATH",
            name,
        )
        answer = ask(content)
        assert (answer.code, answer.data["trace"]["rank"]) == (0, rank)
        assert answer.codes.count("L103") == rank


def test_b006_a_bad_escape_at_the_end_of_a_large_file_is_placed(ask: Ask) -> None:
    """Byte, line and excerpt place it; a damaged event has no number of its own."""
    lines = [json.dumps({"ph": "X", **op(f"op{n}", 10 * n, 10 * n + 5)}).encode() for n in range(2000)]
    lines[-10] = damaged(lines[-10], b'"op1990"', b'"' + WINDOWS + b'"')
    content = b"[\n" + b",\n".join(lines) + b"]"
    answer = ask(content, "doctor")
    (harm,) = answer.data["damage"]
    assert content.index(WINDOWS) <= harm["first_byte"] < content.index(WINDOWS) + len(WINDOWS)
    assert harm["first_byte"] > 0.99 * len(content)
    assert harm["first_line"] == 1992  # the bracket has line 1, the first event line 2
    assert len(harm["excerpt"]) <= 60
    assert r"\Users" in harm["excerpt"]
    assert answer.data["phases"] == {"X": 2000}


def test_b008_quotation_marks_inside_a_name_do_not_end_the_trace(ask: Ask) -> None:
    """The event is kept with its whole name, where dropping it would do: a name ends where another key begins."""
    name = '{"device": "cpu"}(12): run'
    content = damaged(text([*loop(3), op("NAME", 400, 410)]), b"NAME", name.encode())
    found = raw(content)
    assert [(one.harm, one.count) for one in found.meta.damage] == [(Harm.QUOTE, 1)]
    assert spans(found, name) == [(400_000, 410_000)]
    assert ask(content).code == 0


@pytest.mark.parametrize("fmt", ["text", "md", "csv"])
def test_b009_source_code_as_a_name_is_shown_on_one_line(ask: Ask, fmt: str) -> None:
    name = '_x = Library("_t","IMPL")\n(1): <module>'
    events = step(0)
    events[1] = op("NAME", 10, 40)
    content = damaged(text(events), b"NAME", name.encode())
    assert name in names(raw(content))
    shown = ask(content, "analyze", "--format", fmt)
    assert shown.code == 0
    assert "\n(1)" not in shown.out
    assert r"\x0a(1)" in shown.out.replace("\\\\", "\\").replace(r"\(", "(")


@pytest.mark.parametrize("comes_first", [True, False])
def test_b011_a_broken_section_of_log_lines_costs_no_event(ask: Ask, *, comes_first: bool) -> None:
    events = json.dumps([{"ph": "X", **event} for event in loop(3)]).encode()
    info = b'"INFO": ["stage "warm-up" took 3 s", {"a": ]'
    parts = [info, b'"traceEvents": ' + events]
    content = b'{"schemaVersion": 1, ' + b", ".join(parts if comes_first else parts[::-1]) + b"}"
    found = raw(content)
    assert len(found.events) == 12
    assert {one.harm for one in found.meta.damage} <= {Harm.SECTION, Harm.AFTER, Harm.HEAD}
    assert found.meta.damage
    assert ask(content).data["elapsed_ns"] == 100_000


def test_b013_line_ends_and_tabs_in_a_string_are_kept_and_counted() -> None:
    content = damaged(text([op("AB", 0, 10), op("c", 20, 30)]), b"AB", b"A\n\tB")
    found = raw(content)
    assert names(found) == ["A\n\tB", "c"]
    assert [(one.harm, one.count) for one in found.meta.damage] == [(Harm.CONTROL, 1)]


@pytest.mark.parametrize("written", [b"Float", b'"Float"', rb'"\"Float\""'])
@pytest.mark.parametrize("elements", [b"1024", b'"1024"'])
def test_b014_arguments_mean_the_same_quoted_twice_once_or_not_at_all(
    written: bytes, elements: bytes
) -> None:
    arguments = {"Collective name": "allreduce", "dtype": "TYPE", "In msg nelems": "COUNT"}
    kernel = work("ncclDevKernel_AllReduce", (30, 90), 1)
    kernel["args"].update(arguments)
    content = text([op("aten::mm", 0, 40), call("cudaLaunchKernel", (10, 20), 1), kernel])
    found = trace(damaged(damaged(content, b'"TYPE"', written), b'"COUNT"', elements))
    (collective,) = link_collectives(found.raw.events, found.links)
    assert (collective.name, collective.dtype, collective.in_bytes) == ("allreduce", "Float", 4096)


def test_b023_a_key_without_its_opening_quote_costs_one_arrow_at_most(ask: Ask) -> None:
    arrow = {"ph": "f", "cat": "ac2g", "name": "ac2g", "id": 1, "pid": 0, "tid": 7, "ts": 50}
    content = damaged(text([*loop(10), arrow]), b'"tid": 7, "ts": 50}', b'tid": 7, "ts": 50}')
    found = raw(content)
    assert len(found.events) == 40
    assert sum(one.count for one in found.meta.damage) == 1
    assert ask(content).data["elapsed_ns"] == 100_000


def test_b025_a_comma_around_nothing_is_passed_over_and_the_event_kept() -> None:
    content = damaged(text([{**op("a", 0, 10), "args": {"Device": 1}}]), b'{"Device"', b'{ , "Device"')
    empty = damaged(text([{**op("a", 0, 10), "args": {}}]), b'"args": {}', b'"args": {, }')
    for each in (content, empty):
        found = raw(each)
        assert spans(found, "a") == [(0, 10_000)]
        assert [(one.harm, one.count) for one in found.meta.damage] == [(Harm.COMMA, 1)]


@pytest.mark.parametrize("word", [b"N/A", b"nan", b"NaN", b"inf", b"-inf"])
def test_b026_a_bandwidth_that_is_no_number_costs_nothing_else(word: bytes) -> None:
    copy = work("Memcpy HtoD", (0, 10), 1)
    copy["args"].update({"bytes": 0, "memory bandwidth (GB/s)": "?"})
    found = raw(damaged(text([copy]), b'"?"', word))
    assert spans(found, "Memcpy HtoD") == [(0, 10_000)]
    assert int(found.events.nbytes[0]) == 0
    assert [(one.harm, one.count) for one in found.meta.damage] == [(Harm.BARE, 1)]


def test_b028_no_number_in_arguments_is_null_and_as_a_time_costs_the_event() -> None:
    events = [op("a", 0, 10), op("b", 20, 30), op("c", 40, 50), {**op("d", 60, 70), "args": {"x": "?"}}]
    content = damaged(damaged(text(events), b'"ts": 20', b'"ts": NaN'), b'"?"', b"-Infinity")
    content = damaged(content, b'"ts": 40, "dur": 10', b'"ts": 40, "dur": Infinity')
    found = raw(content)
    assert names(found) == ["a", "d"]
    assert sum(found.meta.dropped.values()) == 2
    assert [(one.harm, one.count) for one in found.meta.damage] == [(Harm.BARE, 3)]


def test_b030_a_bare_list_of_the_old_profiler_is_read_and_called_what_it_is(ask: Ask) -> None:
    content = json.dumps(
        [
            {
                "name": "aten::mul",
                "ph": "X",
                "ts": 5 * n,
                "dur": 4,
                "tid": 1,
                "pid": "CPU functions",
                "args": {},
            }
            for n in range(3)
        ]
    ).encode()
    answer = ask(content, "doctor")
    assert answer.code == 0
    assert "array form" in answer.data["dialect"]
    assert (answer.check("E101")["state"], answer.check("E104")["seen_numbers"]) == ("n/a", [3])


def test_b031_an_execution_trace_is_called_one(ask: Ask) -> None:
    content = b'{"schema": "1.1.1-chakra", "pid": 1, "nodes": [{"id": 2, "name": "aten::mm"}]}'
    answer = ask(content)
    assert answer.code == 3
    assert "execution trace" in answer.err
    half = content.replace(b'"aten::mm"', b'"aten::mm')
    assert ask(half).code == 3


def test_b031_no_refusal_shows_a_traceback(ask: Ask, tmp_path: Path) -> None:
    for content in (b'{"schema": "1.0", "nodes": [{', b"{", b"[1, 2", b'{"nodes"'):
        answer = ask(content)
        assert (answer.code, "Traceback" in answer.err) == (3, False)
        assert answer.err.startswith("error SC3")
    assert ask(tmp_path / "missing.json").code == 3
