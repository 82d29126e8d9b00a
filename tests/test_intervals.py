"""Interval algebra against a bitmap, and the hand-worked coverage of the golden cases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepcrit.intervals import Intervals, clip, complement, covers, intersect, subtract, union
from tests.properties.schedules import PROPERTY

PARTS = json.loads((Path(__file__).parent / "golden" / "parts.json").read_text(encoding="utf-8"))
GOLDEN = [case for case in PARTS["intervals"] if "window" in case["given"]]
Pairs = list[tuple[int, int]]

LOW, HIGH = -12, 12
INSTANTS = np.arange(LOW, HIGH)
AT = st.integers(LOW, HIGH)
PAIRS = st.lists(st.tuples(AT, AT), max_size=8)  # backward and empty ones too: they cover nothing


def bits(pairs: Pairs) -> list[bool]:
    """Which unit instants any of the intervals covers."""
    return [any(a <= t < b for a, b in pairs) for t in range(LOW, HIGH)]


def as_set(pairs: Pairs) -> Intervals:
    """The product's set of some intervals."""
    return union(np.array([a for a, _ in pairs], np.int64), np.array([b for _, b in pairs], np.int64))


def check(found: Intervals, expected: list[bool]) -> None:
    """The set covers exactly these instants, in sorted pieces that are not empty and do not touch."""
    pairs = found.pairs()
    assert bits(pairs) == expected
    flat = [at for pair in pairs for at in pair]
    assert flat == sorted(set(flat))
    assert found.length == sum(expected)
    assert (found.start.dtype, found.end.dtype) == (np.int64, np.int64)


@PROPERTY
@given(PAIRS)
def test_union_covers_what_any_interval_covers(pairs: Pairs) -> None:
    check(as_set(pairs), bits(pairs))


@PROPERTY
@given(PAIRS, PAIRS)
def test_intersection_covers_what_both_cover(a: Pairs, b: Pairs) -> None:
    check(intersect(as_set(a), as_set(b)), [x and y for x, y in zip(bits(a), bits(b), strict=True)])


@PROPERTY
@given(PAIRS, PAIRS)
def test_difference_covers_what_only_the_first_covers(a: Pairs, b: Pairs) -> None:
    check(subtract(as_set(a), as_set(b)), [x and not y for x, y in zip(bits(a), bits(b), strict=True)])


@PROPERTY
@given(PAIRS, AT, AT)
def test_clip_covers_what_lies_in_the_window(pairs: Pairs, start: int, end: int) -> None:
    inside = bits([(start, end)])
    check(clip(as_set(pairs), start, end), [x and y for x, y in zip(bits(pairs), inside, strict=True)])


@PROPERTY
@given(PAIRS, AT, AT)
def test_complement_covers_what_the_set_leaves_of_the_window(pairs: Pairs, start: int, end: int) -> None:
    inside = bits([(start, end)])
    check(
        complement(as_set(pairs), start, end), [y and not x for x, y in zip(bits(pairs), inside, strict=True)]
    )


@PROPERTY
@given(PAIRS, st.permutations(INSTANTS.tolist()))
def test_instant_is_covered_from_the_start_to_just_before_the_end(pairs: Pairs, at: list[int]) -> None:
    found = covers(as_set(pairs), np.array(at, np.int64))
    expected = dict(zip(range(LOW, HIGH), bits(pairs), strict=True))
    assert found.tolist() == [expected[t] for t in at]


@PROPERTY
@given(PAIRS, PAIRS)
def test_covered_and_uncovered_parts_add_up(a: Pairs, b: Pairs) -> None:
    one, two = as_set(a), as_set(b)
    assert intersect(one, two).length + subtract(one, two).length == one.length


@PROPERTY
@given(PAIRS, PAIRS)
def test_operations_leave_their_inputs_alone(a: Pairs, b: Pairs) -> None:
    one, two = as_set(a), as_set(b)
    before = one.pairs(), two.pairs()
    for operation in (intersect, subtract):
        operation(one, two)
    clip(one, 0, 5)
    complement(one, 0, 5)
    assert (one.pairs(), two.pairs()) == before


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case["id"])
def test_coverage_is_the_hand_worked_one(case: dict[str, Any]) -> None:
    given_, expect = case["given"], case["expect"]
    start, end = given_["window"]
    compute, comm, memcpy = (clip(as_set(given_[name]), start, end) for name in ("compute", "comm", "memcpy"))
    busy = as_set([*compute.pairs(), *comm.pairs(), *memcpy.pairs()])
    assert compute.length == expect["compute"]
    assert subtract(comm, compute).length == expect["exposed_comm"]
    assert subtract(subtract(memcpy, compute), comm).length == expect["exposed_memcpy"]
    assert complement(busy, start, end).length == expect["idle"]
    assert comm.length == expect["comm_total"]
    assert intersect(comm, compute).length == expect["comm_covered"]
    parts = ("compute", "exposed_comm", "exposed_memcpy", "idle")
    assert sum(expect[part] for part in parts) == end - start == expect["window"]


def test_golden_file_holds_the_six_cases_with_a_window() -> None:
    assert [case["id"] for case in GOLDEN] == ["D01", "D02", "D03", "D04", "D05", "D06"]
