"""Fetches of batches from a DataLoader's worker processes."""

from __future__ import annotations

import numpy as np

from stepcrit.model.arrays import Int64Array
from stepcrit.model.events import HOST_KINDS, EventTable
from stepcrit.model.links import Links

WITH_WORKERS = "_MultiProcessingDataLoaderIter.__next__"
"""Part of the range around a fetch from worker processes; a loader without workers has another name."""


def fetch_rows(events: EventTable, links: Links) -> Int64Array:
    """Event rows of the fetches, in time order.

    The same range is written twice where the loader calls itself: the outer one is the fetch.
    """
    named = np.array([WITH_WORKERS in name for name in events.names], np.bool_)
    host = events.is_kind(*HOST_KINDS)
    rows = np.flatnonzero(named[events.name] & host) if len(events) else np.empty(0, np.int64)
    outer = [row for row in rows.tolist() if not _inside_one(events, links, row, named)]
    return np.array(sorted(outer, key=lambda row: int(events.start_ns[row])), np.int64)


def _inside_one(events: EventTable, links: Links, row: int, named: np.typing.NDArray[np.bool_]) -> bool:
    parent = int(links.parent[row])
    return parent >= 0 and bool(named[events.name[parent]])
