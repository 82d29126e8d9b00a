"""Rows that get other times keep everything else that was read of them."""

from __future__ import annotations

import numpy as np

from stepcrit.link.retable import with_times
from tests.builders import event, trace


def test_every_column_follows_its_row() -> None:
    names = {"a": [[1]], "b": [[2]], "c": [[3]]}
    raw = trace([
        event("cpu_op", name, (10 * at, 10 * at + 5), (1, at), **{"Input Dims": dims, "Input type": [name]})
        for at, (name, dims) in enumerate(names.items())
    ])  # fmt: skip
    start = np.array([90, 50, 70], np.int64)
    moved = with_times(raw, start, start + 1, np.array([True, True, False])).events
    columns = {name for name in moved.__slots__ if isinstance(getattr(moved, name), np.ndarray)}
    assert {len(getattr(moved, name)) for name in columns} == {2}
    assert [moved.name_of(row) for row in (0, 1)] == ["b", "a"]
    assert [moved.shape_lists[i] for i in moved.shapes] == ["[[2]]", "[[1]]"]
    assert [moved.dtype_lists[i] for i in moved.dtypes] == ['["b"]', '["a"]']
