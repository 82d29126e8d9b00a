"""Which class of work a row is. Metadata first (kind, collective arguments, ranges around it), names last."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from stepcrit.link.api import LAUNCHES, SYNCS, call_roles
from stepcrit.link.backends import BACKEND_RANGE
from stepcrit.link.kernelnames import kernel_class
from stepcrit.model.arrays import BoolArray, Int8Array, Int64Array
from stepcrit.model.classes import WorkClass
from stepcrit.model.events import EventKind, EventTable

INPUT = re.compile(r"enumerate\(DataLoader\)|DataLoader.*__next__")
OPTIMIZER_STEP = re.compile(r"^Optimizer\.step#")
_OPTIMIZER_ANY = re.compile(r"^Optimizer\.(step|zero_grad)#")
_COMM_HOST = re.compile(r"^c10d::|^record_param_comms")


@dataclass(frozen=True, slots=True, eq=False)
class Around:
    """What rows lie in; device rows in what their launch does. -1: in nothing of the kind.

    Attributes:
        op: the innermost operator.
        optimizer: the Optimizer.step range.
        input: the DataLoader range (host rows only).
    """

    op: Int64Array
    optimizer: Int64Array
    input: Int64Array


def classify(events: EventTable, launch: Int64Array, around: Around) -> Int8Array:
    """WorkClass of every row.

    Args:
        events: the table.
        launch: from `link_launches`.
        around: what each row lies in.
    """
    work = np.full(len(events), WorkClass.HOST, np.int8)
    kernels = events.is_kind(EventKind.KERNEL)
    by_name = _classes_of_names(events, kernels)
    work[kernels] = by_name[events.name[kernels]]
    plain = kernels & (around.optimizer >= 0) & (work != WorkClass.COMM)
    work[plain] = WorkClass.OPTIMIZER
    carries = _collective_rows(events)
    work[kernels & carries] = WorkClass.COMM
    # Right under the record of a collective, not under an operator that copies into its buffer. The record is
    # not the kernel's own: a name that says what the kernel computes is believed.
    work[(work == WorkClass.KERNEL) & (around.op >= 0) & carries[around.op]] = WorkClass.COMM
    work[events.is_kind(EventKind.MEMCPY)] = WorkClass.MEMCPY
    work[events.is_kind(EventKind.MEMSET)] = WorkClass.MEMSET
    _classify_host(events, work, around)
    _classify_calls(events, work, launch)
    return work


def _classes_of_names(events: EventTable, kernels: BoolArray) -> Int8Array:
    """One class per interned name that any kernel has."""
    table = np.full(len(events.names), WorkClass.KERNEL, np.int8)
    for i in np.unique(events.name[kernels]).tolist():
        table[i] = kernel_class(events.names[i])
    return table


def _collective_rows(events: EventTable) -> BoolArray:
    """Rows that carry collective arguments: on a kernel they beat any name."""
    carries = np.zeros(len(events), np.bool_)
    carries[[row for row, args in events.args.items() if "Collective name" in args]] = True
    return carries


def _classify_host(events: EventTable, work: Int8Array, around: Around) -> None:
    """Host rows: where they are decides before what they are called."""
    host = events.is_kind(EventKind.CPU_OP, EventKind.ANNOTATION)
    comm = _named(events, lambda name: bool(BACKEND_RANGE.match(name) or _COMM_HOST.match(name)))
    work[host & comm] = WorkClass.COMM_HOST
    updates = _named(events, lambda name: bool(_OPTIMIZER_ANY.match(name)))
    work[host & ((around.optimizer >= 0) | updates)] = WorkClass.OPTIMIZER_HOST
    work[host & (around.input >= 0)] = WorkClass.INPUT


def _classify_calls(events: EventTable, work: Int8Array, launch: Int64Array) -> None:
    """Runtime calls: those that own device work launch it, the rest by what their name says."""
    roles, runtime = call_roles(events), events.is_kind(EventKind.RUNTIME)
    work[runtime] = WorkClass.RUNTIME
    work[np.isin(roles, list(LAUNCHES))] = WorkClass.LAUNCH
    work[np.isin(roles, list(SYNCS))] = WorkClass.SYNC
    work[launch[launch >= 0]] = WorkClass.LAUNCH


def _named(events: EventTable, test: Callable[[str], bool]) -> BoolArray:
    """Rows whose name passes a test; asked once per distinct name."""
    passes = np.array([test(name) for name in events.names], np.bool_)
    return passes[events.name] if len(events) else np.zeros(0, np.bool_)
