"""Rows are put on lanes by their combination of side, track and stream: by a table as by sorting."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from stepcrit.ingest import columns, lanes
from stepcrit.model.events import Side


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("few", [-(10**9), 1 << 16])
def test_every_row_has_the_number_of_its_combination_and_the_first_row_of_each_is_told(
    monkeypatch: pytest.MonkeyPatch, seed: int, few: int
) -> None:
    monkeypatch.setattr(lanes, "_FEW", few)
    dice = Random(seed)
    count = dice.choice((0, 1, 5, 300))
    sides = [dice.choice(list(Side)) for _ in range(count)]
    tracks = [dice.randrange(4) for _ in range(count)]
    streams = [dice.choice((-1, 0, 7, 2**40)) for _ in range(count)]
    first, number = lanes._distinct(
        np.array(sides, np.int8), np.array(tracks, np.int32), np.array(streams, np.int64)
    )
    keys = [
        (side, track, stream if side == Side.DEVICE else None)
        for side, track, stream in zip(sides, tracks, streams, strict=True)
    ]
    assert sorted(first.tolist()) == sorted(keys.index(key) for key in set(keys))
    assert [keys[first[place]] for place in number.tolist()] == keys


def test_columns_of_many_pieces_are_joined_in_order_whatever_the_size_of_blocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(columns, "_BLOCK_ROWS", 7)
    store = columns.ColumnStore()
    for start in range(0, 60, 4):
        store.append(
            number=np.arange(start, start + 4),
            mark=np.full(4, start % 8 == 0),
            word=np.full(4, start, np.int32),
        )
    assert store.take("number").tolist() == list(range(60))
    assert store.take("mark").dtype == np.bool_
    assert store.take("word", np.int32).tolist() == [start for start in range(0, 60, 4) for _ in range(4)]
    assert (store.take("number").tolist(), store.take("absent", np.int32).dtype) == ([], np.int32)
