"""What a runtime or driver call does, by its name: one table for every vendor's spelling.

Names come from the CUDA and HIP runtimes and drivers, Unified Runtime and Level Zero (XPU), Ascend's AscendCL,
MUSA and MTIA. Suffixes (`_v7000`, `_ptsz`, `_ptds`) carry no meaning here. Whether a call launched something
is never asked of its name where its activity was recorded: equal correlation decides that.
"""

from __future__ import annotations

import re
from enum import IntEnum

import numpy as np

from stepcrit.model.arrays import Int8Array, distinct
from stepcrit.model.events import EventKind, EventTable


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
CALLS: tuple[tuple[CallRole, tuple[str, ...]], ...] = (
    (
        CallRole.SYNC_DEVICE,
        (
            r"(cuda|hip|musa|mtia)DeviceSynchronize|cudaThreadSynchronize|(cu|hip|mu)CtxSynchronize",
            r"aclrtSynchronizeDevice(WithTimeout)?|zeContextSystemBarrier",
        ),
    ),
    (
        CallRole.SYNC_STREAM,
        (
            r"(cuda|hip|cu|musa|mu|mtia)StreamSynchronize|synchronizeStream|aclrtSynchronizeStream(WithTimeout)?",
            r"urQueueFinish|zeCommand(Queue|ListHost)Synchronize",
        ),
    ),
    (
        CallRole.SYNC_EVENT,
        (
            r"(cuda|hip|cu|musa|mu|mtia)EventSynchronize|aclrtSynchronizeEvent(WithTimeout)?",
            r"urEventWait|ze(EventHost|FenceHost)Synchronize",
        ),
    ),
    (
        CallRole.STREAM_WAIT,
        (
            r"(cuda|hip|cu|musa|mu)StreamWaitEvent|aclrtStreamWaitEvent(WithTimeout)?|enqueueCommand waitOnEvent",
            r"urEnqueueEventsWait(WithBarrier)?(Ext)?|zeCommandListAppend(WaitOnEvents|Barrier)",
        ),
    ),
    (
        CallRole.GRAPH_LAUNCH,
        (r"(cuda|hip|cu|musa|mu)GraphLaunch", r"urEnqueueCommandBuffer(Exp)?", r"aclmdlRIExecuteAsync"),
    ),
    (
        CallRole.COPY_BLOCKING,
        (
            r"cudaMemcpy(2D|3D)?|hipMemcpy(WithStream|2D|3D)?|cuMemcpy(Hto|Dto)[HD]|hipMemcpy(HtoD|DtoH)",
            r"aclrtMemcpy",
        ),
    ),
    (
        CallRole.COPY,
        (
            r"(cuda|hip|cu|musa|mu)Memcpy\w*|(cuda|hip|cu)MemPrefetchAsync|aclrtMemcpy(2d)?Async\w*",
            r"enqueueCommand memcpy\w+|urEnqueue(USM|Mem)\w*(Memcpy\w*|Copy\w*|Read\w*|Write\w*|Prefetch)",
            r"zeCommandListAppend(MemoryCopy\w*|ImageCopy\w*|MemoryPrefetch)",
        ),
    ),
    (
        CallRole.FILL,
        (
            r"(cuda|hip|cu|musa|mu)Memset\w*|aclrtMemset(Async)?|urEnqueue(USM|Mem)\w*Fill\w*",
            r"zeCommandListAppendMemoryFill",
        ),
    ),
    (
        CallRole.LAUNCH,
        (
            r"urEnqueue(KernelLaunch\w*|CooperativeKernelLaunch\w*)|piEnqueueKernelLaunch|aclopCompileAndExecute(V2)?",
            r"zeCommandListAppendLaunch\w*|zeCommandQueueExecuteCommandLists|zeCommandListImmediateAppend\w*",
            r".*Launch(?!Attribute|Config).*|runFunction - job_prep_and_submit_for_execution|Node@launch",
        ),
    ),
    (
        CallRole.FREE,
        (
            r"(cuda|hip|musa)(Free|FreeHost|FreeArray|HostFree|HostUnregister)|cuMem(Free|FreeHost|HostUnregister)",
            r"aclrtFree(Host)?|urUSMFree|zeMemFree(Ext)?",
        ),
    ),
    (
        CallRole.ALLOC,
        (
            r"(cuda|hip|musa)(Malloc(Host|Managed|Pitch|3D|Array)?|HostAlloc|HostMalloc|HostRegister|ExtMallocWithFlags)",
            r"(cu|hip)Mem(Create|Map|Alloc|AllocHost|AllocManaged|AllocPitch|HostAlloc|HostRegister|AddressReserve)",
            r"aclrtMalloc(Host|Physical|Align32)?|urUSM(Device|Host|Shared)Alloc|zeMemAlloc(Device|Host|Shared)",
        ),
    ),
    (
        CallRole.EVENT_RECORD,
        (
            r"(cuda|hip|cu|musa|mu)EventRecord(WithFlags)?|aclrtRecordEvent|recordEvent",
            r"zeCommandListAppendSignalEvent",
        ),
    ),
    (
        CallRole.QUERY,
        (
            r"(cuda|hip|cu|musa|mu)(Event|Stream)Query|aclrtQueryEvent(Wait)?Status|zeEventQueryStatus|zeFenceQueryStatus",
        ),
    ),
)

_OWNER = r"(?:AscendCL@)?"  # as Ascend's profiler writes its calls
_SUFFIX = r"(?:_v\d+|_ptsz|_ptds)*"
_ROLES = tuple((role, re.compile(f"{_OWNER}(?:{'|'.join(words)}){_SUFFIX}")) for role, words in CALLS)


def call_role(name: str) -> CallRole:
    """The role of one call.

    >>> call_role("cudaStreamWaitEvent_v3020").name
    'STREAM_WAIT'
    """
    return next((role for role, pattern in _ROLES if pattern.fullmatch(name)), CallRole.PLAIN)


def call_roles(events: EventTable) -> Int8Array:
    """CallRole of every row (PLAIN for whatever is no runtime call)."""
    runtime = events.kind == EventKind.RUNTIME
    table = np.zeros(len(events.names), np.int8)
    for i in distinct(events.name[runtime]).tolist():
        table[i] = call_role(events.names[i])
    roles: Int8Array = np.where(runtime, table[events.name], CallRole.PLAIN).astype(np.int8)
    return roles
