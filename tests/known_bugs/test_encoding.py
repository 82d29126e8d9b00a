"""Names in bytes that are no UTF-8, and names that control a terminal."""

from __future__ import annotations

import pytest

from stepcrit.model.trace import Harm
from tests.answers.drawn import op
from tests.builders import event
from tests.known_bugs.conftest import Ask
from tests.known_bugs.written import loop, names, raw, spans, step, text

UNDECODABLE = "<undecodable>"


def test_b015_an_event_with_garbage_for_a_name_keeps_its_time_and_is_marked(ask: Ask) -> None:
    content = text([*loop(3), op("NAME", 400, 410)]).replace(b"NAME", b"\xfe\xed\x80\x00")
    found = raw(content)
    assert spans(found, UNDECODABLE) == [(400_000, 410_000)]
    assert {one.harm for one in found.meta.damage} == {Harm.UTF8, Harm.CONTROL}
    assert ask(content).code == 0


def test_b017_one_byte_that_is_no_utf_8_far_in_a_file_costs_no_event_and_is_placed(ask: Ask) -> None:
    """Small here: what lies before the byte only moves the window, which others test."""
    content = text([op(f"op{n}", 10 * n, 10 * n + 5) for n in range(3000)]).replace(b"op2900", b"op\xf02900")
    answer = ask(content, "doctor")
    (harm,) = answer.data["damage"]
    assert (answer.code, harm["harm"], harm["count"]) == (0, "utf8", 1)
    assert harm["first_byte"] == content.index(b"\xf0")
    assert answer.data["phases"] == {"X": 3000}
    assert spans(raw(content), "op\ufffd2900") == [(29_000_000, 29_005_000)]


CONTROLS = "".join(map(chr, range(1, 32)))


@pytest.mark.parametrize("fmt", ["text", "md", "csv"])
def test_b018_control_characters_in_a_name_reach_no_screen(ask: Ask, fmt: str) -> None:
    events = step(0)
    events[1] = op(f"config.py(0): {CONTROLS}\x7f", 10, 40)
    shown = ask(events, "analyze", "--format", fmt)
    assert shown.code == 0
    assert not set(CONTROLS + "\x7f") - {"\n", "\r"} & set(shown.out)
    assert r"config.py(0): \x01" in shown.out.replace("\\\\", "\\").replace(r"\(", "(").replace(r"\)", ")")


def test_b018_raw_control_characters_in_a_python_frame_are_kept_and_counted() -> None:
    raw_bytes = CONTROLS.encode()
    frame = event("python_function", "config.py(0): NAME", (0, 10))
    content = text([frame, op("aten::mm", 2, 8)]).replace(b"NAME", raw_bytes)
    found = raw(content)
    assert spans(found, f"config.py(0): {CONTROLS}") == [(0, 10_000)]
    assert [(one.harm, one.count) for one in found.meta.damage] == [(Harm.CONTROL, 1)]


def test_b020_any_number_of_damaged_names_is_one_name() -> None:
    events = [op(f"NAME{n}", 10 * n, 10 * n + 5) for n in range(300)]
    content = text(events)
    for n in reversed(range(300)):
        content = content.replace(f"NAME{n}".encode(), bytes([0x80 + n % 64, 0xFE, 0x80 + n // 64]), 1)
    found = raw(content)
    assert names(found) == [UNDECODABLE] * 300
    assert len(found.events.names) <= 2  # and the empty name
    assert found.meta.damage[0].harm == Harm.UTF8
    assert found.meta.damage[0].count == 300


def test_b022_bytes_that_are_no_utf_8_in_arguments_cost_no_kernel(ask: Ask) -> None:
    events = loop(3)
    for one in events:
        one["args"] = {**one.get("args", {}), "fname": "BYTES", "kname": "BYTES"}
    content = text(events).replace(b"BYTES", b"hip\xa0\xff")
    answer = ask(content)
    assert (answer.code, answer.data["elapsed_ns"]) == (0, 100_000)
    assert answer.data["summed_ns"]["device"] == 40_000
    assert answer.codes.count("L103") == 1


def test_b022_a_result_of_rocprofv3_is_refused_without_a_traceback_whatever_its_bytes(ask: Ask) -> None:
    """It is no Kineto trace, so there is no kernel of it to keep."""
    content = b'{"rocprofiler-sdk-tool": [{"metadata": {"pid": 1}, "strings": {"fname": "BYTES"}}]}'
    for name in (b"hip", b"\xa0\xff"):
        answer = ask(content.replace(b"BYTES", name))
        assert answer.code == 3
        assert answer.err.startswith("error SC30")
        assert ("rocprof" in answer.err) or name != b"hip"
