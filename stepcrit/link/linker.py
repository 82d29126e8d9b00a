"""All links of one trace, in the order in which they build on each other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stepcrit.link.classify import INPUT, OPTIMIZER_STEP, Around, classify
from stepcrit.link.launches import link_launches
from stepcrit.link.nesting import Nesting, inherit_from, nest
from stepcrit.link.operators import adopted_calls
from stepcrit.link.rules import NO_RULES, ClassRules
from stepcrit.link.source import link_source
from stepcrit.link.stepmarks import rows_named, step_marks
from stepcrit.model.arrays import BoolArray, Int32Array, Int64Array, freeze
from stepcrit.model.events import HOST_KINDS, EventKind, EventTable
from stepcrit.model.links import Links
from stepcrit.model.trace import RawTrace


def link(trace: RawTrace, rules: ClassRules = NO_RULES) -> Links:
    """Say for every event which launch, operator, module, line and class of work it belongs to.

    Raises:
        UsageError: a regular expression of the rules takes too long.
    """
    events = trace.events
    launch = link_launches(events, trace.flows)
    host = nest(events, np.flatnonzero(events.is_kind(*HOST_KINDS)), see_through=step_marks(events))
    op = _around(events.is_kind(EventKind.CPU_OP), host)
    in_optimizer = _around(rows_named(events, OPTIMIZER_STEP), host)
    in_input = _around(rows_named(events, INPUT), host)
    source = link_source(events, host)
    columns = (op, in_optimizer, source.frame, source.module)
    _adopt(columns, *adopted_calls(events, op))
    _through_launch(columns, launch)
    work, rules_used = classify(events, launch, Around(op, in_optimizer, in_input), rules)
    links = Links(
        launch,
        host.parent,
        host.depth,
        op,
        work,
        in_optimizer,
        source.frame,
        source.module,
        source.module_names,
        host.pieces,
        *_issued(events, launch),
        host.crossing_count,
        source.module_source,
        rules_used,
    )
    freeze(launch, host.parent, host.depth, work, *columns)
    return links


def _issued(events: EventTable, launch: Int32Array) -> tuple[Int64Array, Int64Array]:
    """Launched device rows and their launch times, in the order of launching."""
    rows = np.flatnonzero(launch >= 0)
    at = events.start_ns[launch[rows]]
    order = np.argsort(at, kind="stable")
    return rows[order], at[order]


def _around(wanted: BoolArray, host: Nesting) -> Int32Array:
    """For each host row the nearest of the wanted ones around it, itself included."""
    rows = np.flatnonzero(wanted)
    return inherit_from(rows, rows, host.parent)


def _adopt(columns: Sequence[Int32Array], calls: Int64Array, operators: Int64Array) -> None:
    """Calls take what they lack from the operators that they name."""
    for column in columns:
        column[calls] = np.where(column[calls] < 0, column[operators], column[calls])


def _through_launch(columns: Sequence[Int32Array], launch: Int32Array) -> None:
    """Device rows take the values of the call that launched them."""
    rows = np.flatnonzero(launch >= 0)
    for column in columns:
        column[rows] = column[launch[rows]]
