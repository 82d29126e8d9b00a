"""Shapes and types of inputs are columns: lists that say the same are one, what is no list is absent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stepcrit.model.trace import RawTrace

Read = Callable[..., RawTrace]


def _op(ts: int = 10, **fields: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": "cpu_op", "name": "op", "pid": 1, "tid": 1, "ts": ts, "dur": 5, **fields}


def _lists(trace: RawTrace) -> list[tuple[str | None, str | None]]:
    events = trace.events
    return [
        (
            events.shape_lists[shape] if shape >= 0 else None,
            events.dtype_lists[dtype] if dtype >= 0 else None,
        )
        for shape, dtype in zip(events.shapes.tolist(), events.dtypes.tolist(), strict=True)
    ]


def test_shapes_and_types_are_kept_once_however_they_are_written(read_text: Read) -> None:
    ways = [
        '"Input Dims": [[64, 3], []], "Input type": ["float", "Scalar"]',
        '"Input Dims":[[64,3],[]],"Input type":["float","Scalar"]',
        '"Input dims": [\n [64,\n 3], [ ] ], "Input type": "[\\"float\\", \\"Scalar\\"]"',
        '"Input Dims": [[64, 4], []]',
    ]
    rows = [
        f'{{"ph":"X","cat":"cpu_op","name":"op","pid":1,"tid":1,"ts":{at},"dur":1,"args":{{{way}}}}}'
        for at, way in enumerate(ways)
    ]
    trace = read_text(f'{{"schemaVersion":1,"traceEvents":[{",".join(rows)}]}}')
    assert _lists(trace) == [("[[64,3],[]]", '["float","Scalar"]')] * 3 + [("[[64,4],[]]", None)]
    assert (len(trace.events.shape_lists), len(trace.events.dtype_lists)) == (2, 1)
    assert trace.meta.dropped == {}


@pytest.mark.parametrize("nothing", [None, [], "", "[]"])
def test_a_list_of_nothing_is_none(read: Read, nothing: Any) -> None:
    trace = read([_op(args={"Input Dims": nothing, "Input type": nothing}), _op(args={})])
    assert _lists(trace) == [(None, None)] * 2
    assert trace.meta.dropped == {}


@pytest.mark.parametrize("lie", [7, "8x8", {"0": [2]}, True, "7", '"\\"'])
def test_what_is_no_list_is_absent_and_counted(read: Read, lie: Any) -> None:
    sound = _op(1, args={"Input Dims": [[2]], "Input type": ["float"]})
    trace = read([sound, _op(2, args={"Input Dims": lie, "Input type": ["int"], "correlation": []}), sound])
    assert _lists(trace)[1] == ("[[2]]", '["float"]')
    assert _lists(trace)[2] == (None, '["int"]')
    assert trace.meta.dropped['argument "Input Dims" is unusable, taken as absent'] == 1


def test_rows_of_the_same_times_are_ordered_by_their_shapes_whatever_the_order_of_the_file(
    read: Read,
) -> None:
    rows = [_op(args={"Input Dims": [[size]]}) for size in (3, 1, 2)]
    found = [_lists(read(order)) for order in (rows, rows[::-1], [rows[1], rows[0], rows[2]])]
    assert found == [[("[[1]]", None), ("[[2]]", None), ("[[3]]", None)]] * 3
