"""Steps of a training loop: their boundaries, which of them count, and why the others do not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import overload

from msgspec import Struct


class Boundary(StrEnum):
    """The instant at which a step counts as done (methods A.1)."""

    HOST = "host"  # the Python loop is free again
    LAUNCH = "launch"  # the last launch call of the step has returned
    DEVICE = "device"  # all device work of the step is done
    UPDATE = "update"  # the optimizer's device work is done: new parameters are valid


class Step(Struct, frozen=True):
    """One step, in ns since the trace's origin.

    Attributes:
        index: position in time, from 0.
        label: as the trace names it ("ProfilerStep#12"), or what stands for it ("update 3").
        host_start_ns, host_end_ns: its window on the host.
        start_ns: the boundary of the step before it, or its own host start for the first.
        end_ns: its own boundary.
        lane: the host thread that its window lies on, -1 for the whole capture.
        device_count: device activities launched inside its window.
        update: event row of the optimizer range that ends the window's last update, -1 without one.
        opens_at_boundary: whether start_ns is the previous step's boundary, so that elapsed_ns is a period.
        is_capture: whether it is the whole recording, for want of any mark.
        used: whether it belongs to the steady sample.
        why_not: why it does not, in words.
    """

    index: int
    label: str
    host_start_ns: int
    host_end_ns: int
    start_ns: int
    end_ns: int
    lane: int
    device_count: int
    update: int
    opens_at_boundary: bool
    is_capture: bool = False
    used: bool = True
    why_not: str = ""

    @property
    def elapsed_ns(self) -> int:
        """Boundary to boundary: the period. For a first step, host start to boundary."""
        return self.end_ns - self.start_ns

    @property
    def latency_ns(self) -> int:
        """Host start to boundary: grows when the host runs ahead, without any slowdown."""
        return self.end_ns - self.host_start_ns


class Steady(Struct, frozen=True):
    """The steady window over periods (methods A.3); None where there is no steady state.

    Attributes:
        first: index of the first steady period, or None.
        median_ns: median of the steady periods (outliers included), or None.
        reference_ns, mad_ns, band_ns: median, MAD and half width from the later half of the periods.
        outliers: steady periods outside the band, by index.
    """

    first: int | None
    median_ns: float | None
    reference_ns: float
    mad_ns: float
    band_ns: float
    outliers: tuple[int, ...]


@dataclass(frozen=True, slots=True)  # no Struct: a metaclass has no room beside that of Sequence
class Steps(Sequence[Step]):
    """All steps of a trace, in time order.

    Attributes:
        all: the steps.
        source: what marks them: "ProfilerStep", "optimizer", "DataLoader" or "capture".
        boundary: the boundary that they end at.
        boundary_why: why this boundary was chosen.
        representative: index of the step that stands for the others: the median of the steady ones.
        steady: the steady window, None when there are no periods at all.
        microbatches: backward passes per update, () when there are none.
        notes: what the reader of any number per step must know.
    """

    all: tuple[Step, ...]
    source: str
    boundary: Boundary
    boundary_why: str
    representative: int
    steady: Steady | None
    microbatches: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.all)

    @overload
    def __getitem__(self, index: int) -> Step: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Step, ...]: ...
    def __getitem__(self, index: int | slice) -> Step | tuple[Step, ...]:
        return self.all[index]

    def __iter__(self) -> Iterator[Step]:
        return iter(self.all)

    def median(self) -> Step:
        """The representative step."""
        return self.all[self.representative]

    def periods(self) -> tuple[int, ...]:
        """Elapsed time of every step that opens at a boundary, in ns."""
        return tuple(s.elapsed_ns for s in self.all if s.opens_at_boundary)
