"""Which process and which device a lane belongs to, as small numbers for columns."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np

from stepcrit.model.arrays import NONE, Int64Array
from stepcrit.model.events import EventTable, Side


def processes(events: EventTable) -> Int64Array:
    """The process of each lane."""
    return _numbered(lane.pid for lane in events.lanes)


def devices(events: EventTable) -> Int64Array:
    """The device of each lane, -1 for lanes that lie on none. One device has one clock."""
    on_device = np.array([lane.side == Side.DEVICE for lane in events.lanes], np.bool_)
    return np.where(on_device, _numbered((lane.pid, lane.device) for lane in events.lanes), NONE)


def beside(events: EventTable) -> Int64Array:
    """The device beside which a lane lies that is of neither host nor device (annotations, sync records), else -1."""
    device = devices(events)
    by_pid = {lane.pid: int(number) for lane, number in zip(events.lanes, device, strict=True) if number >= 0}
    found = [by_pid.get(lane.pid, NONE) if lane.side == Side.OTHER else NONE for lane in events.lanes]
    return np.array(found, np.int64)


def _numbered(values: Iterable[Hashable]) -> Int64Array:
    """Equal values get equal numbers."""
    index: dict[Hashable, int] = {}
    return np.array([index.setdefault(value, len(index)) for value in values], np.int64)
