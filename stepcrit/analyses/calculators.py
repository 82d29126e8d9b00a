"""Arithmetic on typed numbers, without a trace: Amdahl, crossover, roofline, scaling.

Question: what does a number that somebody states allow at most, or amount to?
Method:   methods N and K, in rational numbers: nothing is rounded, so 30 / 0.2 is 150.
Needs:    numbers only.
Keeps:    Amdahl is monotone in the speed-up and never above its ceiling; both lines of a crossover are
          equal at its step.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from msgspec import Struct

from stepcrit.errors import UsageError, quoted

BITS = {
    "fp64": 64, "fp32": 32, "tf32": 32, "fp16": 16, "bf16": 16, "fp8": 8, "int8": 8, "fp4": 4, "int4": 4,
}  # fmt: skip
"""Bits of one element in memory."""
DECIMALS = 12
"""A number with more is written as a fraction."""


class Part(Struct, frozen=True):
    """A share of the wall time, and how many times faster it becomes; None: it takes no time at all."""

    name: str
    fraction: Fraction
    speedup: Fraction | None


class Amdahl(Struct, frozen=True):
    """What is left of the whole, 1 being all of it.

    Attributes:
        fraction: share of the whole that changes.
        left: the new whole.
        speedup: 1 / left; None when nothing is left.
        least: the new whole if the changed parts took no time.
        ceiling: 1 / least; None when nothing is left.
        sign: "<=" when every part gets faster (or stays), ">=" when every part gets slower, else "".
    """

    fraction: Fraction
    left: Fraction
    speedup: Fraction | None
    least: Fraction
    ceiling: Fraction | None
    sign: str


class Line(Struct, frozen=True):
    """A start-up, and what each step then costs, in ns."""

    startup: Fraction
    per_step: Fraction

    def at(self, steps: Fraction) -> Fraction:
        """The total after so many steps."""
        return self.startup + self.per_step * steps


class Crossover(Struct, frozen=True):
    """Where two lines meet.

    Attributes:
        steps: break-even, exact; None when they do not meet after the start.
        later: which is ahead beyond it ("A" or "B"), or at every step where they do not meet; "" if neither.
        why: why there is none, or "".
    """

    steps: Fraction | None
    later: str
    why: str


class Roofline(Struct, frozen=True):
    """One kernel under the roof: FLOP/s, FLOP/B; `side` is memory, ridge or compute."""

    attainable: Fraction
    ridge: Fraction
    side: str


class Gemm(Struct, frozen=True):
    """A matrix product: its operations, and its bytes when each operand moves once."""

    flops: Fraction
    minimal_bytes: Fraction


class Run(Struct, frozen=True):
    """A measured run: devices, the period of a step in ns, the global batch where it is known."""

    devices: int
    period: Fraction
    batch: Fraction | None = None


class Scaled(Struct, frozen=True):
    """A run against the smallest one.

    Attributes:
        run: the run.
        k: times the devices of the smallest.
        speedup: strong: of the step; weak: scaled by the work, which grows with k.
        efficiency: speedup / k.
        serial: Karp-Flatt (strong) or Gustafson (weak) serial fraction; None at k = 1.
    """

    run: Run
    k: Fraction
    speedup: Fraction
    efficiency: Fraction
    serial: Fraction | None


class Quality(Struct, frozen=True):
    """S_min, B_crit, and batches with the time of their step in ns where it is known."""

    least_steps: Fraction
    critical_batch: Fraction
    batches: tuple[tuple[Fraction, Fraction | None], ...]


class Target(Struct, frozen=True):
    """Steps to the target at one batch."""

    batch: Fraction
    per_step: Fraction | None
    steps: Fraction


def amdahl(parts: Sequence[Part]) -> Amdahl:
    """The whole after its parts changed.

    Raises:
        UsageError: a fraction, or their sum, is outside 0..1; or a speed-up is not above 0.
    """
    if not parts:
        raise UsageError("no part to change", do="--part 40ms --of 100ms --speedup 2")
    for part in parts:
        _check_fraction(part.fraction, part.name or "the part")
        if part.speedup is not None:
            _above_zero("the speed-up", part.speedup)
    fraction = sum((p.fraction for p in parts), Fraction(0))
    _check_fraction(fraction, "all parts together")
    least = 1 - fraction
    left = least + sum((p.fraction / p.speedup for p in parts if p.speedup is not None), Fraction(0))
    return Amdahl(fraction, left, _inverse(left), least, _inverse(least), _sign(parts))


def on_path(observed: Fraction, op_speedup: Fraction | None) -> Fraction:
    """The fraction of the whole that must have changed: Amdahl, solved for f.

    Raises:
        UsageError: a speed-up is not above 0, the part did not change, or no fraction in 0..1 explains it.
    """
    _above_zero("the observed speed-up", observed)
    if op_speedup is not None:
        _above_zero("the speed-up of the part", op_speedup)
    if op_speedup == 1:
        raise UsageError("a part that is 1 x as fast explains nothing", do="give the part's own speed-up")
    kept = Fraction(0) if op_speedup is None else 1 / op_speedup
    fraction = (1 - 1 / observed) / (1 - kept)
    if not 0 <= fraction <= 1:
        raise UsageError(
            f"that part would have to be {float(fraction):.4g} of the whole, outside 0..1: something else changed, too",
            do="compare both runs with the same boundary and the same work",
        )
    return fraction


def crossover(a: Line, b: Line) -> Crossover:
    """After how many steps both have taken the same time.

    Raises:
        UsageError: a time is negative.
    """
    for line in (a, b):
        _not_negative("a start-up", line.startup)
        _not_negative("a time per step", line.per_step)
    if a == b:
        return Crossover(None, "", "A and B are the same line")
    if a.startup == b.startup:
        ahead = "A" if a.per_step < b.per_step else "B"
        return Crossover(
            None, ahead, f"both start at once and {ahead} is faster per step: {ahead} wins for every n"
        )
    early, late = ("A", "B") if a.startup < b.startup else ("B", "A")
    gain = b.per_step - a.per_step if late == "A" else a.per_step - b.per_step
    if gain <= 0:
        why = f"{early} starts earlier and is not slower per step: {early} wins for every n"
        return Crossover(None, early, why)
    return Crossover(abs(a.startup - b.startup) / gain, late, "")


def roofline(intensity: Fraction, bandwidth: Fraction, roof: Fraction) -> Roofline:
    """What one kernel can attain.

    Args:
        intensity: FLOP per byte.
        bandwidth: bytes per second.
        roof: FLOP per second.

    Raises:
        UsageError: the intensity is negative, or a rate is not above 0.
    """
    _not_negative("the intensity", intensity)
    _above_zero("the bandwidth", bandwidth)
    _above_zero("the roof", roof)
    ridge = roof / bandwidth
    side = "ridge" if intensity == ridge else "memory" if intensity < ridge else "compute"
    return Roofline(min(intensity * bandwidth, roof), ridge, side)


def gemm(m: int, n: int, k: int, dtype: str) -> Gemm:
    """Operations and least traffic of (m x k) times (k x n).

    Raises:
        UsageError: a size is below 1, or the element type is unknown.
    """
    if min(m, n, k) < 1:
        raise UsageError(f"a matrix of {m}, {n}, {k} is empty", do="--gemm M,N,K with whole numbers from 1")
    if dtype not in BITS:
        raise UsageError(f"no element type {quoted(dtype)}", do=f"one of {', '.join(BITS)}")
    return Gemm(Fraction(2 * m * n * k), (m * k + k * n + m * n) * Fraction(BITS[dtype], 8))


def strong(runs: Sequence[Run]) -> tuple[Scaled, ...]:
    """The same work on more devices.

    Raises:
        UsageError: fewer than two runs, the same devices twice, a time not above 0, or another global batch.
    """
    base, *_ = ordered = _ordered(runs)
    batches = {run.batch for run in ordered if run.batch is not None}
    if len(batches) > 1:
        raise UsageError(_mixed(ordered), do="strong means the same global batch in every run")
    made = []
    for run in ordered:
        k = Fraction(run.devices, base.devices)
        speedup = base.period / run.period
        serial = None if k == 1 else (1 / speedup - 1 / k) / (1 - 1 / k)
        made.append(Scaled(run, k, speedup, speedup / k, serial))
    return tuple(made)


def weak(runs: Sequence[Run]) -> tuple[Scaled, ...]:
    """The same work per device on more devices.

    Raises:
        UsageError: fewer than two runs, the same devices twice, a time not above 0, or another batch per device.
    """
    base, *_ = ordered = _ordered(runs)
    shares = {run.batch / run.devices for run in ordered if run.batch is not None}
    if len(shares) > 1:
        raise UsageError(_mixed(ordered), do="weak means the same batch per device in every run")
    made = []
    for run in ordered:
        k = Fraction(run.devices, base.devices)
        speedup = k * base.period / run.period
        serial = None if k == 1 else (k - speedup) / (k - 1)
        made.append(Scaled(run, k, speedup, speedup / k, serial))
    return tuple(made)


def amdahl_at(serial: Fraction, k: Fraction) -> Fraction:
    """The most that k times the devices can give with this serial fraction.

    Raises:
        UsageError: the fraction is outside 0..1, or k is not above 0.
    """
    _check_fraction(serial, "the serial fraction")
    _above_zero("k", k)
    return 1 / (serial + (1 - serial) / k)


def amdahl_limit(serial: Fraction) -> Fraction | None:
    """The most that any number of devices can give; None: no limit.

    Raises:
        UsageError: the fraction is outside 0..1.
    """
    _check_fraction(serial, "the serial fraction")
    return _inverse(serial)


def time_to_quality(asked: Quality) -> tuple[Target, ...]:
    """What reaching the target takes, by batch: S_min (1 + B_crit / B) steps.

    Raises:
        UsageError: there is no batch, or a number is not above 0.
    """
    if not asked.batches:
        raise UsageError("no batch to compare", do="--batch 1024,1s")
    _above_zero("the least number of steps", asked.least_steps)
    _above_zero("the critical batch", asked.critical_batch)
    made = []
    for batch, per_step in sorted(asked.batches, key=lambda one: one[0]):
        _above_zero("the batch", batch)
        if per_step is not None:
            _above_zero("the time of a step", per_step)
        made.append(Target(batch, per_step, asked.least_steps * (1 + asked.critical_batch / batch)))
    return tuple(made)


def gains(base: Target, other: Target) -> tuple[Fraction, Fraction]:
    """Sample throughput and speed-up to the target against another batch, both with a known time."""
    before, after = base.per_step or Fraction(1), other.per_step or Fraction(1)
    throughput = other.batch / after / (base.batch / before)
    return throughput, base.steps * before / (other.steps * after)


def exact_text(value: Fraction) -> str:
    """All of an exact number: as a decimal where it ends soon, else as a fraction.

    >>> [exact_text(Fraction(n)) for n in ("1.25", "5/3", "-0.05", "150")]
    ['1.25', '5/3', '-0.05', '150']
    """
    for digits in range(DECIMALS + 1):
        scaled = value * 10**digits
        if scaled.denominator == 1:
            sign, all_digits = "-" * (value < 0), f"{abs(scaled.numerator):0{digits + 1}d}"
            return f"{sign}{all_digits[: len(all_digits) - digits]}{'.' * (digits > 0)}{all_digits[len(all_digits) - digits :]}"
    return str(value)


def _ordered(runs: Sequence[Run]) -> list[Run]:
    """By devices: the smallest is what the others are held against."""
    if len(runs) < 2:
        raise UsageError("scaling needs two runs or more", do="--run 8,100ms --run 16,60ms")
    for run in runs:
        _above_zero("the number of devices", Fraction(run.devices))
        _above_zero("the period of a run", run.period)
        if run.batch is not None:
            _above_zero("the batch", run.batch)
    if len({run.devices for run in runs}) < len(runs):
        raise UsageError("two runs have the same number of devices", do="keep one for each")
    return sorted(runs, key=lambda run: run.devices)


def _mixed(runs: Sequence[Run]) -> str:
    known = [run for run in runs if run.batch is not None]
    words = ", ".join(f"{run.devices} devices {run.batch}" for run in known)
    return f"global batches do not fit the label: {words}"


def _sign(parts: Sequence[Part]) -> str:
    """How the true speed-up stands to the formula's, where other work may hide a part."""
    if all(p.speedup is None or p.speedup >= 1 for p in parts):
        return "<="
    return ">=" if all(p.speedup is not None and p.speedup <= 1 for p in parts) else ""


def _inverse(value: Fraction) -> Fraction | None:
    return 1 / value if value else None


def _check_fraction(value: Fraction, what: str) -> None:
    if not 0 <= value <= 1:
        raise UsageError(
            f"{what}: the fraction {float(value):.4g} is outside 0..1", do="a part is within its whole"
        )


def _above_zero(what: str, value: Fraction) -> None:
    if value <= 0:
        raise UsageError(f"{what} must be above 0, not {float(value):.4g}")


def _not_negative(what: str, value: Fraction) -> None:
    if value < 0:
        raise UsageError(f"{what} cannot be negative: {float(value):.4g}")
