"""What a runtime or driver call does, by its name: one table for every vendor's spelling.

Names come from the CUDA and HIP runtimes and drivers, Unified Runtime and Level Zero (XPU), Ascend's AscendCL,
MUSA and MTIA. Suffixes (`_v7000`, `_ptsz`, `_ptds`) carry no meaning here. Whether a call launched something
is never asked of its name where its activity was recorded: equal correlation decides that.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import IntEnum

import numpy as np

from stepcrit.model.arrays import Int8Array, distinct, freeze
from stepcrit.model.events import EventKind, EventTable
from stepcrit.model.once import once


class CallRole(IntEnum):
    """What calls do, as dependency rules, classes and advice ask for it."""

    PLAIN = 0
    SYNC_DEVICE = 1  # blocks until everything issued before has ended
    SYNC_STREAM = 2  # blocks until one stream is empty
    SYNC_EVENT = 3  # blocks until a recorded point has passed
    LAUNCH = 4  # submits a kernel
    STREAM_WAIT = 5  # later work of one stream waits for a recorded point
    COPY_BLOCKING = 6  # a copy call that is specified to return after the copy
    COPY = 7  # another copy call
    FREE = 8  # may wait for the device
    FILL = 9  # submits a fill
    GRAPH_LAUNCH = 10  # submits a whole graph
    ALLOC = 11  # maps memory, or pins it
    EVENT_RECORD = 12  # marks a point of a stream
    QUERY = 13  # asks whether a point has passed; never blocks


LAUNCHES = frozenset(
    {CallRole.LAUNCH, CallRole.GRAPH_LAUNCH, CallRole.COPY, CallRole.COPY_BLOCKING, CallRole.FILL}
)
"""Calls that submit device work."""
SYNCS = frozenset({CallRole.SYNC_DEVICE, CallRole.SYNC_STREAM, CallRole.SYNC_EVENT})
"""Calls whose purpose is to wait for the device."""

# cuda, hip and musa name the calls of their runtimes alike; drivers and other vendors have words of their own.
CALLS: Mapping[CallRole, tuple[str, ...]] = {
    CallRole.SYNC_DEVICE: (
        "{cuda,hip,musa,mtia}DeviceSynchronize", "cudaThreadSynchronize", "{cu,hip,mu}CtxSynchronize",
        "aclrtSynchronizeDevice{,WithTimeout}", "zeContextSystemBarrier",
    ),
    CallRole.SYNC_STREAM: (
        "{cuda,hip,cu,musa,mu,mtia}StreamSynchronize", "synchronizeStream", "aclrtSynchronizeStream{,WithTimeout}",
        "urQueueFinish", "zeCommand{Queue,ListHost}Synchronize",
    ),
    CallRole.SYNC_EVENT: (
        "{cuda,hip,cu,musa,mu,mtia}EventSynchronize", "aclrtSynchronizeEvent{,WithTimeout}",
        "urEventWait", "ze{EventHost,FenceHost}Synchronize",
    ),
    CallRole.STREAM_WAIT: (
        "{cuda,hip,cu,musa,mu}StreamWaitEvent", "aclrtStreamWaitEvent{,WithTimeout}", "enqueueCommand waitOnEvent",
        "urEnqueueEventsWait{,WithBarrier}{,Ext}", "zeCommandListAppend{WaitOnEvents,Barrier}",
    ),
    CallRole.GRAPH_LAUNCH: (
        "{cuda,hip,cu,musa,mu}GraphLaunch", "urEnqueueCommandBuffer{,Exp}", "aclmdlRIExecuteAsync",
    ),
    CallRole.COPY_BLOCKING: (
        "cudaMemcpy{,2D,3D}", "hipMemcpy{,WithStream,2D,3D,HtoD,DtoH}", "cuMemcpy{Hto,Dto}{H,D}", "aclrtMemcpy",
    ),
    CallRole.COPY: (
        "{cuda,hip,cu}MemPrefetchAsync", "zeCommandListAppendMemoryPrefetch",
    ),
    CallRole.FILL: ("aclrtMemset{,Async}", "zeCommandListAppendMemoryFill"),
    CallRole.LAUNCH: (
        "piEnqueueKernelLaunch", "aclopCompileAndExecute{,V2}", "zeCommandQueueExecuteCommandLists",
        "runFunction - job_prep_and_submit_for_execution", "Node@launch",
    ),
    CallRole.FREE: (
        "{cuda,hip,musa}{Free,FreeHost,FreeArray,HostFree,HostUnregister}", "cuMem{Free,FreeHost,HostUnregister}",
        "aclrtFree{,Host}", "urUSMFree", "zeMemFree{,Ext}",
    ),
    CallRole.ALLOC: (
        "{cuda,hip,musa}Malloc{,Host,Managed,Pitch,3D,Array}",
        "{cuda,hip,musa}{HostAlloc,HostMalloc,HostRegister,ExtMallocWithFlags}",
        "{cu,hip}Mem{Create,Map,Alloc,AllocHost,AllocManaged,AllocPitch,HostAlloc,HostRegister,AddressReserve}",
        "aclrtMalloc{,Host,Physical,Align32}", "urUSM{Device,Host,Shared}Alloc", "zeMemAlloc{Device,Host,Shared}",
    ),
    CallRole.EVENT_RECORD: (
        "{cuda,hip,cu,musa,mu}EventRecord{,WithFlags}", "aclrtRecordEvent", "recordEvent",
        "zeCommandListAppendSignalEvent",
    ),
    CallRole.QUERY: (
        "{cuda,hip,cu,musa,mu}{Event,Stream}Query", "aclrtQueryEvent{,Wait}Status", "zeEventQueryStatus",
        "zeFenceQueryStatus",
    ),
}  # fmt: skip
"""Whole names; of what is in braces, each in turn."""

FAMILIES: Mapping[CallRole, str] = {
    CallRole.COPY: (
        r"(cuda|hip|cu|musa|mu)Memcpy\w*|aclrtMemcpy(2d)?Async\w*|enqueueCommand memcpy\w+"
        r"|urEnqueue(USM|Mem)\w*(Memcpy\w*|Copy\w*|Read\w*|Write\w*|Prefetch)"
        r"|zeCommandListAppend(Memory|Image)Copy\w*"
    ),
    CallRole.FILL: r"(cuda|hip|cu|musa|mu)Memset\w*|urEnqueue(USM|Mem)\w*Fill\w*",
    CallRole.LAUNCH: (
        r"urEnqueue(Cooperative)?KernelLaunch\w*|zeCommandListAppendLaunch\w*|zeCommandListImmediateAppend\w*"
        r"|.*Launch(?!Attribute|Config).*"
    ),
}
"""Patterns of names of which there are ever more, tried in this order where no whole name is known."""

_OWNER = "AscendCL@"  # as Ascend's profiler writes its calls
_LONGEST = 1000
"""A longer name is no call of a vendor's, and only costs time."""


def _spelled(template: str) -> list[str]:
    """The names that a template stands for."""
    before, _, rest = template.partition("{")
    if not rest:
        return [before]
    choices, _, after = rest.partition("}")
    return [f"{before}{choice}{end}" for choice in choices.split(",") for end in _spelled(after)]


_KNOWN = {name: role for role, templates in CALLS.items() for one in templates for name in _spelled(one)}
_FAMILIES = tuple((role, re.compile(pattern)) for role, pattern in FAMILIES.items())
_ENDING = re.compile(r"(?:_v\d{1,9}|_ptsz|_ptds)\Z")
_LONGEST_ENDING = 11


def call_role(name: str) -> CallRole:
    """The role of one call.

    >>> call_role("cudaStreamWaitEvent_v3020").name
    'STREAM_WAIT'
    """
    own = name.removeprefix(_OWNER)
    if len(own) > _LONGEST:
        return CallRole.PLAIN
    bare = _without_version(own)
    known = _KNOWN.get(own) or _KNOWN.get(bare)
    if known is not None:
        return known
    return next((role for role, of in _FAMILIES if of.fullmatch(own) or of.fullmatch(bare)), CallRole.PLAIN)


def _without_version(name: str) -> str:
    """A name without what tells versions of one call apart: `_v2`, `_ptsz`, several of them."""
    end = len(name)
    while ending := _ENDING.search(name, max(end - _LONGEST_ENDING, 0), end):
        end = ending.start()
    return name[:end]


@once
def call_roles(events: EventTable) -> Int8Array:
    """CallRole of every row (PLAIN for whatever is no runtime call)."""
    rows = np.flatnonzero(events.is_kind(EventKind.RUNTIME))
    table = np.zeros(len(events.names), np.int8)
    for i in distinct(events.name[rows]).tolist():
        table[i] = call_role(events.names[i])
    roles = np.zeros(len(events), np.int8)
    roles[rows] = table[events.name[rows]]
    freeze(roles)
    return roles
