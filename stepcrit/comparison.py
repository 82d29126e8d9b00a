"""Two sets of traces side by side: `stepcrit.diff` for programs and notebooks."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, BinaryIO, TypeAlias, cast

from stepcrit.answers.compared import Asked, Compared, compared
from stepcrit.answers.diff import document
from stepcrit.answers.diffdata import diff_data
from stepcrit.errors import UsageError
from stepcrit.session import Options, Trace, load

if TYPE_CHECKING:
    import pandas as pd


class Diff:
    """What became of the step between two sets of recordings. Made by `diff`."""

    def __init__(self, told: Compared) -> None:
        self.told = told

    @property
    def conclusion(self) -> str:
        """What it comes to: "regression", "improvement", "no change" and so on."""
        return str(self.told.conclusion)

    @property
    def ratio(self) -> float | None:
        """The median new period over the median base period."""
        return self.told.shift.ratio

    @property
    def interval(self) -> tuple[float | None, float | None]:
        """Of the ratio, with 95 %."""
        return self.told.shift.low, self.told.shift.high

    def to_pandas(self) -> pd.DataFrame:
        """One row per key of the critical path; `delta_ns` sums to the difference of the mean periods."""
        import pandas as pd  # noqa: PLC0415 - half a second that only this needs

        return pd.DataFrame(diff_data(self.told)["path"]["keys"])

    def __repr__(self) -> str:
        return f"<stepcrit.Diff: {self.conclusion}, ratio {self.ratio}>"

    def _repr_html_(self) -> str:
        from stepcrit.report.html import fragment  # noqa: PLC0415 - a notebook's face, not the library's

        return fragment(document(self.told, {}))


Recording: TypeAlias = "str | os.PathLike[str] | BinaryIO | Trace"


def diff(
    base: Recording | Sequence[Recording],
    new: Recording | Sequence[Recording],
    options: Options | None = None,
    *,
    threshold: float = 0.01,
) -> Diff:
    """Compare two traces, or runs of the same job against runs of another.

    Args:
        base: a path, a stream or a loaded trace; or several.
        new: likewise.
        options: how what is not loaded yet is to be understood.
        threshold: what counts as a change, as a share.

    Raises:
        StepcritError: as `load` and `Trace.graph`.
    """
    sides = []
    for side in (base, new):
        is_one = isinstance(side, (str, os.PathLike, Trace)) or hasattr(side, "read")
        several = cast("Sequence[Recording]", (side,) if is_one else side)
        traces = [one if isinstance(one, Trace) else load(one, options) for one in several]
        if not traces:
            raise UsageError("one side has no trace", do="stepcrit.diff(base, new)")
        sides.append([trace.view() for trace in traces])
    before, after = sides
    return Diff(compared(before, after, Asked(threshold)))
