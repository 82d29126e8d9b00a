"""A saved prediction is a file like any other: somebody else's, perhaps; small, and of one form."""

from __future__ import annotations

import msgspec

from stepcrit.analyses.judgement import Predicted
from stepcrit.cli.lookup import read_small
from stepcrit.errors import UsageError

LARGEST = 1 << 20
SCHEMA = "stepcrit/prediction/1"

LONGEST_NS = 2**62
SHOWN_CHANGES = 3


class _Interval(msgspec.Struct):
    low: int
    high: int


class _Change(msgspec.Struct):
    option: str
    value: str


class _Asked(msgspec.Struct):
    changes: list[_Change]


class _Data(msgspec.Struct):
    period_ns: int
    saving_ns: _Interval
    ceiling_ns: int
    boundary: str
    asked: _Asked


class _Input(msgspec.Struct):
    name: str
    sha256: str


class _Written(msgspec.Struct):
    """The parts of `whatif --save` that a judgement needs."""

    schema: str
    inputs: list[_Input]
    data: _Data


def read_prediction(path: str) -> Predicted:
    """What `whatif --save` wrote.

    Raises:
        UsageError: it cannot be read, or is no such file.
    """
    try:
        written = msgspec.json.decode(read_small(path, LARGEST), type=_Written)
    except OSError as error:
        raise _refused(path, error.strerror or str(error)) from error
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise _refused(path, why) from error
    if written.schema != SCHEMA or not written.inputs:
        raise _refused(path, f"its schema is not {SCHEMA}")
    data = written.data
    numbers = (data.period_ns, data.saving_ns.low, data.saving_ns.high, data.ceiling_ns)
    if data.saving_ns.low > data.saving_ns.high or any(abs(number) > LONGEST_NS for number in numbers):
        raise _refused(path, "its numbers cannot be meant")
    changes = [f"{change.option} {change.value}" for change in data.asked.changes[:SHOWN_CHANGES]]
    more = " …" if len(data.asked.changes) > SHOWN_CHANGES else ""
    source = written.inputs[0]
    return Predicted(
        source.sha256,
        source.name,
        data.period_ns,
        data.saving_ns.low,
        data.saving_ns.high,
        data.ceiling_ns,
        data.boundary,
        " ".join(changes) + more,
    )


def _refused(path: str, why: str) -> UsageError:
    return UsageError(
        f"this is no prediction: {why}",
        where=path,
        do="keep one with stepcrit whatif before.json --shrink aten::mm=0.5 --save prediction.json",
    )
