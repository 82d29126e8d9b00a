"""Which class of work a row is. Metadata first (kind, collective arguments, ranges around it), names last."""

from __future__ import annotations

import re

import numpy as np
from msgspec import Struct

from stepcrit.link.api import LAUNCHES, SYNCS, CallRole, call_roles
from stepcrit.link.backends import BACKEND_RANGE
from stepcrit.link.kernelnames import kernel_class
from stepcrit.link.rules import NO_RULES, ClassRules
from stepcrit.link.stepmarks import rows_named
from stepcrit.model.arrays import NONE, BoolArray, Int8Array, Int32Array, Int64Array, distinct
from stepcrit.model.classes import RulesUsed, WorkClass
from stepcrit.model.events import EventKind, EventTable

INPUT = re.compile(r"enumerate\(DataLoader\)|DataLoader.*__next__")
OPTIMIZER_STEP = re.compile(r"^Optimizer\.step#")
_HOST_RANGES = (
    (BACKEND_RANGE, WorkClass.COMM_HOST),
    (re.compile(r"^c10d::|^record_param_comms"), WorkClass.COMM_HOST),
    (re.compile(r"^Optimizer\.(step|zero_grad)#"), WorkClass.OPTIMIZER_HOST),
)


class Around(Struct, frozen=True, eq=False):
    """What rows lie in; device rows in what their launch does. -1: in nothing of the kind.

    Attributes:
        op: the innermost operator.
        optimizer: the Optimizer.step range.
        input: the DataLoader range (host rows only).
    """

    op: Int32Array
    optimizer: Int32Array
    input: Int32Array


def classify(
    events: EventTable, launch: Int32Array, around: Around, rules: ClassRules = NO_RULES
) -> tuple[Int8Array, RulesUsed]:
    """WorkClass of every row, and what the user's rules decided of it.

    Args:
        events: the table.
        launch: from `link_launches`.
        around: what each row lies in.
        rules: a user's own.

    Raises:
        UsageError: a rule's regular expression takes too long.
    """
    work, given = np.full(len(events), WorkClass.HOST, np.int8), _given(events, rules)
    kernels = np.flatnonzero(events.is_kind(EventKind.KERNEL))
    work[kernels] = _classes_of_names(events, kernels)[events.name[kernels]]
    given.apply(work, kernels)
    plain = kernels[(around.optimizer[kernels] >= 0) & (work[kernels] != int(WorkClass.COMM))]
    work[plain] = WorkClass.OPTIMIZER
    carries = _collective_rows(events)
    work[kernels[carries[kernels]]] = WorkClass.COMM
    # Right under the record of a collective, not under an operator that copies into its buffer. The record is
    # not the kernel's own: a name that says what the kernel computes is believed.
    unknown = kernels[(work[kernels] == int(WorkClass.KERNEL)) & (around.op[kernels] >= 0)]
    work[unknown[carries[around.op[unknown]]]] = WorkClass.COMM
    work[events.is_kind(EventKind.MEMCPY)] = WorkClass.MEMCPY
    work[events.is_kind(EventKind.MEMSET)] = WorkClass.MEMSET
    _classify_host(events, work, around, given)
    _classify_calls(events, work, launch, given)
    if not rules.rules:
        return work, RulesUsed((), (), ())
    carries &= events.is_kind(EventKind.KERNEL)
    return work, given.used(events, work, _by_metadata(work, launch, around, carries))


class _Given(Struct, frozen=True, eq=False):
    """Per row the rule that means its name, NONE where none does; without rules, of no row."""

    rules: ClassRules
    of_row: Int64Array

    def apply(self, work: Int8Array, rows: Int64Array) -> None:
        """Give some rows the class of their rule, where they have one."""
        if not self.rules.rules:
            return
        mine = rows[self.of_row[rows] >= 0]
        classes = np.array([rule.work for rule in self.rules.rules], np.int8)
        work[mine] = classes[self.of_row[mine]]

    def used(self, events: EventTable, work: Int8Array, by_metadata: BoolArray) -> RulesUsed:
        """How many names each rule decided, and means."""
        decided, matched = [], []
        for i, rule in enumerate(self.rules.rules):
            mine = self.of_row == i
            matched.append(len(distinct(events.name[mine])))
            decided.append(len(distinct(events.name[mine & ~by_metadata & (work == rule.work)])))
        return RulesUsed(self.rules.rules, tuple(decided), tuple(matched))


def _given(events: EventTable, rules: ClassRules) -> _Given:
    """The rule of each row; asked once per distinct name."""
    if not rules.rules:
        return _Given(rules, np.empty(0, np.int64))
    of_row = np.full(len(events), NONE, np.int64)
    rows = {
        "kernels": events.is_kind(EventKind.KERNEL),
        "operators": events.is_kind(EventKind.CPU_OP, EventKind.ANNOTATION),
        "calls": events.is_kind(EventKind.RUNTIME),
    }
    asked = {kind: np.isin(np.arange(len(events.names)), events.name[mine]) for kind, mine in rows.items()}
    for mine, of_name in zip(rows.values(), rules.of_names(events.names, asked), strict=True):
        of_row[mine] = of_name[events.name[mine]]
    return _Given(rules, of_row)


def _by_metadata(work: Int8Array, launch: Int32Array, around: Around, carries: BoolArray) -> BoolArray:
    """Rows whose class no name decides, a user's no more than ours."""
    updates = np.isin(work, (WorkClass.OPTIMIZER, WorkClass.OPTIMIZER_HOST))
    found: BoolArray = (
        carries | ((around.optimizer >= 0) & updates) | ((around.input >= 0) & (work == WorkClass.INPUT))
    )
    found[launch[launch >= 0]] = True
    return found


def _classes_of_names(events: EventTable, kernels: Int64Array) -> Int8Array:
    """One class per interned name that any kernel has."""
    table = np.full(len(events.names), WorkClass.KERNEL, np.int8)
    for i in distinct(events.name[kernels]).tolist():
        table[i] = kernel_class(events.names[i])
    return table


def _collective_rows(events: EventTable) -> BoolArray:
    """Rows that carry collective arguments: on a kernel they beat any name."""
    carries = np.zeros(len(events), np.bool_)
    carries[[row for row, args in events.args.items() if "Collective name" in args]] = True
    return carries


def _classify_host(events: EventTable, work: Int8Array, around: Around, given: _Given) -> None:
    """Host rows: where they are decides before what they are called."""
    host = np.flatnonzero(events.is_kind(EventKind.CPU_OP, EventKind.ANNOTATION))
    for pattern, meant in _HOST_RANGES:
        work[rows_named(events, pattern)] = meant
    given.apply(work, host)
    work[host[around.optimizer[host] >= 0]] = WorkClass.OPTIMIZER_HOST
    work[host[around.input[host] >= 0]] = WorkClass.INPUT


def _classify_calls(events: EventTable, work: Int8Array, launch: Int32Array, given: _Given) -> None:
    """Runtime calls: those that own device work launch it, the rest by what their name says."""
    runtime = np.flatnonzero(events.is_kind(EventKind.RUNTIME))
    of_role = np.full(len(CallRole), WorkClass.RUNTIME, np.int8)
    of_role[list(LAUNCHES)] = WorkClass.LAUNCH
    of_role[list(SYNCS)] = WorkClass.SYNC
    work[runtime] = of_role[call_roles(events)[runtime]]
    given.apply(work, runtime)
    work[launch[launch >= 0]] = WorkClass.LAUNCH
