"""`scale_trace.py`: a repeated trace stays a true one."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import scale_trace

from stepcrit.session import load

FIXTURE = Path(__file__).resolve().parents[2] / "fixtures" / "simulated" / "ddp_tail.rank0.json.gz"
HAND = {
    "schemaVersion": 1,
    "traceEvents": [
        {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "ts": 5, "args": {"name": "100 % python"}},
        {"ph": "X", "cat": "cpu_op", "name": 'a "ts": 7 50%', "pid": 1, "tid": 2, "ts": 10.125, "dur": 20.5,
         "args": {"External id": 3, "Ev Idx": 0, "Sequence number": 0}},
        {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#4", "pid": 1, "tid": 2, "ts": 9, "dur": 31,
         "args": {"External id": 4}},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 2, "ts": 12, "dur": 1,
         "args": {"correlation": 9, "cbid": 211}},
        {"ph": "s", "id": 9, "pid": 1, "tid": 2, "ts": 12, "cat": "ac2g", "name": "ac2g"},
        {"ph": "i", "name": "Record Window End", "pid": "", "tid": "", "ts": 44},
    ],
    "traceName": "hand.json",
}  # fmt: skip


def scaled(tmp_path: Path, source: Path, copies: int, name: str = "large.json") -> Path:
    target = tmp_path / name
    assert scale_trace.main([str(source), "-o", str(target), "--copies", str(copies)]) == 0
    return target


def events(path: Path) -> list[dict[str, Any]]:
    document = json.loads(gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes())
    found: list[dict[str, Any]] = document["traceEvents"]
    return found


@pytest.fixture
def hand(tmp_path: Path) -> Path:
    path = tmp_path / "hand.json"
    path.write_text(json.dumps(HAND, indent=1))
    return path


def test_a_second_copy_is_later_by_the_span_and_its_ids_count_on(hand: Path, tmp_path: Path) -> None:
    found = events(scaled(tmp_path, hand, 2))
    ops = [e for e in found if e.get("cat") == "cpu_op"]
    # from 9 µs to 40 µs, one more for the cut-off fractions, one between the copies: 33 µs; ids to 9: 10 more
    assert [e["ts"] for e in ops] == [10.125, 43.125]
    assert [e["args"] for e in ops] == [
        {"External id": 3, "Ev Idx": 0, "Sequence number": 0},
        {"External id": 13, "Ev Idx": 0, "Sequence number": 0},
    ]
    assert [e["args"]["correlation"] for e in found if e.get("cat") == "cuda_runtime"] == [9, 19]
    assert [e["id"] for e in found if e["ph"] == "s"] == [9, 19]


def test_steps_are_numbered_on_and_names_stay_as_they_are(hand: Path, tmp_path: Path) -> None:
    names = Counter(e["name"] for e in events(scaled(tmp_path, hand, 3)))
    assert names == {
        'a "ts": 7 50%': 3, "ProfilerStep#4": 1, "ProfilerStep#5": 1, "ProfilerStep#6": 1,
        "cudaLaunchKernel": 3, "ac2g": 3, "process_name": 1, "Record Window End": 1,
    }  # fmt: skip


def test_one_copy_is_the_trace_itself(hand: Path, tmp_path: Path) -> None:
    def in_some_order(found: list[dict[str, Any]]) -> list[str]:
        return sorted(json.dumps(e) for e in found)

    assert in_some_order(events(scaled(tmp_path, hand, 1))) == in_some_order(events(hand))
    assert in_some_order(events(scaled(tmp_path, FIXTURE, 1))) == in_some_order(events(FIXTURE))


def test_every_copy_has_the_same_steps_and_the_same_links(tmp_path: Path) -> None:
    one, three = load(FIXTURE), load(scaled(tmp_path, FIXTURE, 3, "large.json.gz"))
    assert len(three.steps) == 3 * len(one.steps)
    assert (three.links.launch >= 0).sum() == 3 * (one.links.launch >= 0).sum()
    lengths = [step.host_end_ns - step.host_start_ns for step in one.steps]
    assert [step.host_end_ns - step.host_start_ns for step in three.steps] == lengths * 3


def test_a_size_is_met_to_the_nearest_copy(tmp_path: Path) -> None:
    pattern = scale_trace.pattern_of(FIXTURE)
    target = tmp_path / "sized.json"
    wanted = 10 * len(pattern.text) / 1e6
    scale_trace.main([str(FIXTURE), "-o", str(target), "--megabytes", str(wanted)])
    assert abs(target.stat().st_size / 1e6 - wanted) < 0.6 * len(pattern.copy(1)) / 1e6
