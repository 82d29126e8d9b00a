"""Cells of `analyze --json` as metrics: a number of its data, by its path."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from stepcrit.answers.measured import Measured
from stepcrit.answers.metric import CLASSES, NEAR, Metric, UnknownMetricError, one_of
from stepcrit.errors import quoted
from stepcrit.model.reading import Reading, unknown
from stepcrit.model.section import Unit

_PART = re.compile(r"(?P<key>[^.\[\]]+)(?:\[(?P<row>[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*)\])?(?:\.|$)")
_TOPS = (
    "critical_path", "device_busy_ns", "elapsed", "elapsed_ns", "exposed_comm", "idle_by_cause_ns", "idle_by_owner_ns",
    "latency_ns", "operators", "operators_total", "overlap", "queue", "ranking", "steps", "summed_ns", "trace", "trust",
)  # fmt: skip
_OPEN = {
    "by_class_ns", "by_group_ns", "by_evidence_ns", "device_busy_ns", "idle_by_cause_ns", "idle_by_owner_ns", "overlap",
    "partition_ns", "symmetric_ns",
}  # fmt: skip
"""Tables whose keys come from the trace: one that is not there is not known, rather than wrong."""


def cell(name: str, others: tuple[str, ...]) -> Metric:
    """A number of `data`, by its path: operators[aten::mm].device_ns.

    Args:
        name: the path.
        others: what metrics are called that are no cells, to offer near ones.

    Raises:
        UnknownMetricError: it is none.
    """
    parts = _parts(name)
    if not parts or parts[0][0] not in _TOPS:
        near = difflib.get_close_matches(name, (*others, *_TOPS), NEAR, 0.5)
        hint = f"did you mean {', '.join(near)}?" if near else f"there are {', '.join(others)}"
        raise UnknownMetricError(
            f"{quoted(name)} is no metric",
            f"{hint} Or a path in `analyze --json`: see stepcrit explain metrics",
        )
    unit = _unit_of([key for key, _ in parts])
    return Metric(name, unit, partial(_read_cell, parts=parts), unit in (Unit.COUNT, Unit.BYTES))


def _parts(name: str) -> list[tuple[str, str | None]]:
    """Keys and rows of a path; empty where it is none."""
    found, at = [], 0
    while at < len(name):
        match = _PART.match(name, at)
        if match is None or not match[0]:
            return []
        found.append((match["key"], match["row"]))
        at = match.end()
    return found if not name.endswith(".") else []


def _unit_of(keys: list[str]) -> Unit:
    """The unit that the last key with one says."""
    for key in reversed(keys):
        for ending, unit in (("_ns", Unit.NS), ("_bytes", Unit.BYTES), ("_share", Unit.SHARE)):
            if key.endswith(ending):
                return unit
    return Unit.COUNT


def _read_cell(step: Measured, parts: list[tuple[str, str | None]]) -> Reading:
    """Follow a path.

    Raises:
        UnknownMetricError: a key that no trace has.
    """
    value: Any = step.data
    path, table = "", ""
    for key, row in parts:
        if value is None:
            return unknown(step.reasons.get(path, "it is not known"))
        if not isinstance(value, Mapping) or key not in value:
            return _missing(value, key, table)
        value, table = value[key], key
        path = f"{path}.{key}" if path else key
        if row is not None and value is not None:
            found = _row(value, row)
            if found is None:
                return unknown(f"{path} has no row called {quoted(row)}")
            value = found
            path += "[]" if not isinstance(value, Mapping) or "name" in value or "label" in value else ""
    if value is None:
        return unknown(step.reasons.get(path, "it is not known"))
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UnknownMetricError(f"{quoted(path)} is no number", _keys_of(value))
    return Reading(value)


def _missing(value: Any, key: str, table: str) -> Reading:
    """A key that is not there: not known in a table of names, else wrong.

    Raises:
        UnknownMetricError: wrong.
    """
    if isinstance(value, Mapping) and table in _OPEN:
        if table == "by_class_ns":
            one_of(key, tuple(CLASSES), "class of work")
            return Reading(0)  # the classes sum to the step: what is not among them has no time on the path
        return unknown(f"{table} has no {quoted(key)}")
    raise UnknownMetricError(
        f"there is no {quoted(key)} in {table or 'analyze --json'}", _keys_of(value, key)
    )


def _keys_of(value: Any, key: str = "") -> str:
    """What can follow, near names first."""
    if isinstance(value, list | tuple):
        return "name a row: operators[aten::mm].device_ns"
    if not isinstance(value, Mapping):
        return "leave out what follows it"
    near = difflib.get_close_matches(key, value, NEAR)
    return f"did you mean {', '.join(near)}?" if near else f"there are {', '.join(map(str, value))}"[:200]


def _row(value: Any, row: str) -> Any:
    """The row of a name, of a list or of a table of names; None where there is none, or several."""
    if isinstance(value, Mapping):
        return value.get(row)
    if not isinstance(value, list | tuple):
        return None
    found = [one for one in value if isinstance(one, Mapping) and row in (one.get("name"), one.get("label"))]
    return found[0] if len(found) == 1 else None
