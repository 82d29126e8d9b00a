"""`check --tighten`: budgets come down to what was found, in the file as it is laid out; none is ever loosened."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import TYPE_CHECKING

from msgspec import Struct

from stepcrit.cli.config import PYPROJECT, config_of
from stepcrit.cli.lookup import read_small
from stepcrit.errors import InternalError, UsageError
from stepcrit.model.checked import Checked, CheckedBudget, Number, Outcome, Tightened
from stepcrit.model.config import Amount, Budget, Config, Level
from stepcrit.model.section import Unit

if TYPE_CHECKING:
    from stepcrit.ingest.tomlplaces import Path, Spot

ROOM = {Unit.NS: Decimal("0.05"), Unit.SHARE: Decimal("0.05"), Unit.COUNT: Decimal(0), Unit.BYTES: Decimal(0)}
"""What is left above what was found: the next recording of the same code takes another time, not other counts."""

DIGITS = 3
DAMAGED = "C101"

_QUANTITY = re.compile(r"(?P<number>[0-9][0-9_ \u202f\u00a0]*(?:\.[0-9]+)?)(?P<rest>.*)", re.DOTALL)


class _Edit(Struct, frozen=True):
    """One value to be written anew."""

    spot: Spot
    written: str
    told: Tightened


def tighten(config: Config, checked: Checked) -> tuple[Tightened, ...]:
    """Rewrite the budgets of a file that what was found is well below.

    Raises:
        UsageError: the file cannot be written to, or was changed meanwhile.
        OutputError: it could not be written.
    """
    from stepcrit.ingest.config import LARGEST_CONFIG, TOOL  # noqa: PLC0415 - msgspec loads here
    from stepcrit.ingest.tomlplaces import places  # noqa: PLC0415
    from stepcrit.report.write import write_output  # noqa: PLC0415 - rich loads here

    try:
        data = read_small(config.source, LARGEST_CONFIG)
    except OSError as error:
        raise UsageError(
            f"the budgets cannot be read: {error.strerror or error}", where=config.source
        ) from error
    if config_of(data, config.source) != config:
        raise UsageError(
            "the budgets were changed while they were judged", where=config.source, do="run again"
        )
    text = data.decode()
    top: Path = TOOL if config.source.endswith(PYPROJECT) else ()
    edits = _edits(config, checked, text, {path[len(top) :]: spot for path, spot in places(text).items()})
    if edits:
        new = _applied(text, edits)
        _check_kept(config, new)
        write_output(new.encode(), config.source)
    return tuple(edit.told for edit in edits)


def _edits(config: Config, checked: Checked, text: str, spots: Mapping[Path, Spot]) -> list[_Edit]:
    """What can come down."""
    found = []
    for budget in config.budgets:
        rows = _rows(budget, checked)
        for limit, amount in (("max", budget.max), ("min", budget.min)):
            spot = spots.get(("budget", budget.glob, budget.metric, limit))
            written = _tighter(amount, rows, limit) if amount and spot and budget.level != Level.OFF else ""
            if amount and spot and written:
                quoted = _as_written(text[spot.start : spot.end], written)
                line = text.count("\n", 0, spot.start) + 1
                told = Tightened(config.source, line, budget.metric, limit, amount.words, written)
                found.append(_Edit(spot, quoted, told))
    return found


def _rows(budget: Budget, checked: Checked) -> list[CheckedBudget]:
    """What was found of a budget; nothing where a trace of it is not whole, or lacks the metric."""
    rows = []
    for trace in checked.traces:
        mine = [row for row in trace.rows if row.place == budget.place and row.metric == budget.metric]
        if mine and any(remark.code == DAMAGED for remark in trace.remarks):
            return []
        rows += mine
    return [] if any(row.value is None or row.outcome == Outcome.FAIL for row in rows) else rows


def _tighter(amount: Amount, rows: list[CheckedBudget], limit: str) -> str:
    """The limit in the words that it was written in; "" where it would be no tighter."""
    values: list[Number] = [row.value for row in rows if row.value is not None]
    if not values:
        return ""
    is_max = limit == "max"
    worst = Decimal(repr(max(values) if is_max else min(values)))
    room = ROOM[rows[0].unit]
    wanted = worst * (1 + room if is_max else 1 - room)
    found = _QUANTITY.fullmatch(amount.words)
    if found is None or not amount.number:
        return ""
    before = Decimal(re.sub(r"[_ \u202f\u00a0]", "", found["number"]))
    scale = Decimal(repr(amount.number)) / before  # of the unit
    new = _rounded(wanted / scale, up=is_max, whole=rows[0].unit in (Unit.COUNT, Unit.BYTES) and scale == 1)
    is_tighter = new < before if is_max else new > before
    gap = found["number"][len(found["number"].rstrip()) :]
    return f"{new:f}{gap}{found['rest']}" if is_tighter else ""


def _rounded(value: Decimal, *, up: bool, whole: bool) -> Decimal:
    """A few digits, away from what was found."""
    if not value:
        return value
    places = 0 if whole else DIGITS - 1 - math.floor(value.log10())
    step = Decimal(1).scaleb(-max(places, 0))
    return value.quantize(step, ROUND_CEILING if up else ROUND_FLOOR)


def _as_written(before: str, value: str) -> str:
    """A value in the quotation marks that the old one had."""
    return f"{before[0]}{value}{before[0]}" if before[0] in "\"'" else value


def _applied(text: str, edits: list[_Edit]) -> str:
    for edit in sorted(edits, key=lambda one: -one.spot.start):
        text = text[: edit.spot.start] + edit.written + text[edit.spot.end :]
    return text


def _check_kept(config: Config, text: str) -> None:
    """Nothing is looser than before, and all else is as it was.

    Raises:
        InternalError: it is not (a bug).
    """
    new = config_of(text.encode(), config.source)
    pairs = zip(config.budgets, new.budgets if new else (), strict=False)
    is_kept = new is not None and len(new.budgets) == len(config.budgets)
    for old, now in pairs:
        is_kept &= (old.metric, old.glob, old.grow, old.level) == (now.metric, now.glob, now.grow, now.level)
        is_kept &= not (old.max and now.max) or now.max.number <= old.max.number
        is_kept &= not (old.min and now.min) or now.min.number >= old.min.number
    if not is_kept:
        raise InternalError("a budget would not be tightened but changed", where=config.source)
