"""What a runtime or driver call does, by its name: CUDA, HIP and driver spellings alike.

CUPTI suffixes (`_v7000`, `_ptsz`, `_ptds`) carry no meaning here and are cut off. Whether a call
launched something is never asked of its name: equal correlation decides that.
"""

from __future__ import annotations

import re
from enum import IntEnum

import numpy as np

from stepcrit.model.arrays import Int8Array
from stepcrit.model.events import EventKind, EventTable


class CallRole(IntEnum):
    """The roles that dependency rules ask for."""

    PLAIN = 0
    SYNC_DEVICE = 1  # blocks until everything issued before has ended
    SYNC_STREAM = 2  # blocks until one stream is empty
    SYNC_EVENT = 3  # blocks until a recorded point has passed
    STREAM_WAIT = 5  # later work of one stream waits for a recorded point
    COPY_BLOCKING = 6  # a copy call that is specified to return after the copy
    FREE = 8  # may wait for the device


_SUFFIX = re.compile(r"(_v\d+|_ptsz|_ptds)+$")
_ROLES: tuple[tuple[CallRole, re.Pattern[str]], ...] = (
    (CallRole.SYNC_DEVICE, re.compile(r"^(cuda|hip|musa|mtia)DeviceSynchronize$|^cuCtxSynchronize$")),
    (CallRole.SYNC_STREAM, re.compile(r"^(cuda|hip|cu|musa)StreamSynchronize$|^synchronizeStream$")),
    (CallRole.SYNC_EVENT, re.compile(r"^(cuda|hip|cu|musa)EventSynchronize$")),
    (CallRole.STREAM_WAIT, re.compile(r"^(cuda|hip|cu|musa)StreamWaitEvent$")),
    (
        CallRole.COPY_BLOCKING,
        re.compile(r"^cudaMemcpy(2D|3D)?$|^hipMemcpy(WithStream|2D|3D)?$|^cuMemcpy(Hto|Dto)[HD]$"),
    ),
    (CallRole.FREE, re.compile(r"^(cuda|hip)(Free|FreeHost|HostFree|HostUnregister)$")),
)


def call_role(name: str) -> CallRole:
    """The role of one call.

    >>> call_role("cudaStreamWaitEvent_v3020").name
    'STREAM_WAIT'
    """
    bare = _SUFFIX.sub("", name)
    return next((role for role, pattern in _ROLES if pattern.match(bare)), CallRole.PLAIN)


def call_roles(events: EventTable) -> Int8Array:
    """CallRole of every row (PLAIN for whatever is no runtime call)."""
    runtime = events.kind == EventKind.RUNTIME
    table = np.zeros(len(events.names), np.int8)
    for i in np.unique(events.name[runtime]).tolist():
        table[i] = call_role(events.names[i])
    roles: Int8Array = np.where(runtime, table[events.name], CallRole.PLAIN).astype(np.int8)
    return roles
