"""`calc`: answers from typed numbers; each line repeats what it was computed from and how it is known."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from msgspec import Struct

from stepcrit.analyses import calculators as calc
from stepcrit.errors import UsageError
from stepcrit.model.section import Column, Document, Section, Sentence, Unit, Value
from stepcrit.units import THIN

BOUND, DECLARED, OBSERVED, MODELLED = "bound", "declared", "observed", "modelled"
AT_MOST, AT_LEAST = "<=", ">="
FLIPPED = {AT_MOST: AT_LEAST, AT_LEAST: AT_MOST, "": ""}
SIGNS = {AT_MOST: "≤ ", AT_LEAST: "≥ ", "": ""}
SHORT = 6
"""Decimals that end within so many digits are shown whole; others in four, with at least one decimal."""
TIMES = (("s", 10**9), ("ms", 10**6), ("µs", 10**3), ("ns", 1))
SERIAL_TIME = "fractions are of serial, non-overlapping wall time, and the rest is unchanged"
ONE_KERNEL = (
    "a ceiling for one kernel, not a schedule: use whatif to see whether reaching it shortens the step"
)
LEAST_BYTES = "bytes are the least traffic: each operand moves once; counted bytes go to --bytes"


class Amount(Struct, frozen=True):
    """An exact number, with the unit it is shown in.

    Attributes:
        base: in the machine unit; None when there is no such number.
        unit: the machine unit: ns, x, FLOP/s, ...
        label: what stands behind it on the screen.
        scale: machine units in one shown unit.
    """

    base: Fraction | None
    unit: str
    label: str = ""
    scale: Fraction = Fraction(1)

    @property
    def text(self) -> str:
        """For people."""
        if self.base is None:
            return "none"
        gap = THIN if self.label and self.label != "×" else ""
        return f"{number_text(self.base / self.scale)}{gap}{self.label}"


class Result(Struct, frozen=True):
    """One line: what, how much, how it is known, from what."""

    quantity: str
    value: Amount | str
    claim: str
    given: str
    sign: str = ""

    @property
    def row(self) -> tuple[str, str, str | None, str, str]:
        """Cells of the table."""
        if isinstance(self.value, str):
            return self.quantity, self.value, None, self.claim, self.given
        shown, base = self.value, self.value.base
        sign = SIGNS[self.sign] if base is not None else ""
        exact = None if base is None else calc.exact_text(base / shown.scale)
        return self.quantity, sign + shown.text, exact, self.claim, self.given

    @property
    def data(self) -> dict[str, Any]:
        """The same for machines: whole numbers stay whole, and `exact` has the fraction."""
        data: dict[str, Any] = {"quantity": self.quantity, "claim": self.claim, "given": self.given}
        if isinstance(self.value, str):
            return data | {"value": self.value, "exact": None, "unit": "word", "sign": ""}
        base = self.value.base
        exact = None if base is None else calc.exact_text(base)
        number = None if base is None else base.numerator if base.denominator == 1 else float(base)
        return data | {"value": number, "exact": exact, "unit": self.value.unit, "sign": self.sign}


class Table(Struct, frozen=True):
    """The results of one calculator, and what they rest on."""

    title: str
    results: tuple[Result, ...]
    notes: tuple[str, ...] = ()
    none: str = ""


COLUMNS = (
    Column("result", "result", Unit.TEXT),
    Column("value", "value", Unit.TEXT),
    Column("exact", "exact", Unit.TEXT),
    Column("claim", "claim", Unit.TEXT),
    Column("given", "given", Unit.TEXT),
)


def amdahl(parts: Sequence[calc.Part], whole: Fraction | None) -> Document:
    """The whole (ns; None: only fractions are known) after its parts changed.

    Raises:
        UsageError: see `calculators.amdahl`; or the whole is not above 0.
    """
    if whole is not None and whole <= 0:
        raise UsageError("the whole must be above 0", do="--of 100ms")
    found = calc.amdahl(parts)
    given = ", ".join(_part(p, whole) for p in parts)
    free = ", ".join(_part(calc.Part(p.name, p.fraction, None), whole) for p in parts)
    claim, longer = BOUND if found.sign else MODELLED, FLIPPED[found.sign]
    name, left = ("new share", share(found.left)) if whole is None else ("new time", time(found.left * whole))
    least = share(found.least) if whole is None else time(found.least * whole)
    results = [
        Result("fraction", share(found.fraction), DECLARED, given),
        Result(name, left, claim, given, longer),
        Result("speed-up", ratio(found.speedup), claim, given, found.sign),
    ]
    if any(p.speedup is not None for p in parts):
        results += [
            Result(f"{name} if free", least, BOUND, free, AT_LEAST),
            Result("ceiling", ratio(found.ceiling), BOUND, free, AT_MOST),
        ]
    why = "nothing is left of the whole" if None in (found.speedup, found.ceiling) else ""
    return _document("amdahl", Table("Amdahl", tuple(results), (SERIAL_TIME,), why))


def inverse(observed: Fraction, op_speedup: Fraction | None) -> Document:
    """Which fraction of the whole a part must have been.

    Raises:
        UsageError: see `calculators.on_path`.
    """
    found = calc.on_path(observed, op_speedup)
    given = f"part {_times(op_speedup)} as fast, whole {_times(observed)}"
    results = (Result("fraction on the path", share(found), DECLARED, given),)
    return _document("amdahl", Table("Amdahl inverse", results, (SERIAL_TIME,)))


def crossover(a: calc.Line, b: calc.Line, steps: Sequence[Fraction], *, reused: bool = False) -> Document:
    """Which of two lines is ahead after so many steps, and where they meet; `reused`: A's start-up was paid before.

    Raises:
        UsageError: see `calculators.crossover`; or a number of steps is negative.
    """
    if any(n < 0 for n in steps) or a.startup < 0:
        raise UsageError("neither a number of steps nor a start-up can be negative")
    used = calc.Line(Fraction(0), a.per_step) if reused else a
    found = calc.crossover(used, b)
    given = f"A {_line(used)}{f' ({time(a.startup).text} reused)' if reused else ''}, B {_line(b)}"
    results = [result for n in steps for result in _at(used, b, n, given)]
    results.append(Result("break-even", Amount(found.steps, "steps", "steps"), DECLARED, given))
    if found.steps is not None:
        after = Fraction(found.steps.numerator // found.steps.denominator + 1)
        results.append(Result(f"{found.later} ahead from", Amount(after, "steps", "steps"), DECLARED, given))
    notes = ["both do the same work to the same end, and every step costs the same"]
    notes += [f"A's start-up of {time(a.startup).text} is reused: left out"] if reused else []
    return _document("crossover", Table("Crossover", tuple(results), tuple(notes), found.why))


def roofline(intensities: Sequence[Fraction], bandwidth: Amount, roof: Amount) -> Document:
    """What kernels of these intensities (FLOP/B) can attain.

    Raises:
        UsageError: see `calculators.roofline`.
    """
    results: list[Result] = []
    for intensity in intensities:
        results += _under(intensity, bandwidth, roof)
    return _document("roofline", Table("Roofline", (*results, _ridge(bandwidth, roof)), (ONE_KERNEL,)))


def roofline_gemm(
    sizes: tuple[int, int, int], dtype: str, counted: Fraction | None, bandwidth: Amount, roof: Amount
) -> Document:
    """What a matrix product of M, N, K can attain; `counted` bytes by counters, None: the least there can be.

    Raises:
        UsageError: see `calculators.gemm` and `calculators.roofline`; or the bytes are not above 0.
    """
    if counted is not None and counted <= 0:
        raise UsageError("--bytes must be above 0")
    product = calc.gemm(*sizes, dtype)
    moved = product.minimal_bytes if counted is None else counted
    intensity = product.flops / moved
    found = calc.roofline(intensity, _base(bandwidth), _base(roof))
    given = f"gemm {', '.join(map(str, sizes))} {dtype}"
    ends = f"{given}, bandwidth {bandwidth.text}, roof {roof.text}"
    least = counted is None
    traffic, claim = (AT_LEAST, BOUND) if least else ("", DECLARED)
    counts = given if least else f"{given}, {calc.exact_text(moved)} bytes counted"
    results = (
        Result("operations", Amount(product.flops, "FLOP", "GFLOP", Fraction(10**9)), DECLARED, given),
        Result("bytes", Amount(moved, "B", "MB", Fraction(10**6)), claim, counts, traffic),
        Result("intensity", _intensity(intensity), claim, counts, FLIPPED[traffic]),
        *_under(intensity, bandwidth, roof),
        Result("time", time(product.flops / found.attainable * 10**9), BOUND, ends, AT_LEAST),
        _ridge(bandwidth, roof),
    )
    notes = (LEAST_BYTES, ONE_KERNEL) if least else (ONE_KERNEL,)
    return _document("roofline", Table("Roofline", results, notes))


def measured_scaling(runs: Sequence[calc.Run], *, is_strong: bool) -> Table:
    """Speed-up, efficiency and serial fraction of measured runs.

    Raises:
        UsageError: see `calculators.strong` and `calculators.weak`.
    """
    scaled = calc.strong(runs) if is_strong else calc.weak(runs)
    label, law, words = (
        ("strong", "Karp-Flatt", "speed-up") if is_strong else ("weak", "Gustafson", "scaled speed-up")
    )
    base, results = scaled[0].run, []
    for one in scaled[1:]:
        at = f"{one.run.devices} devices"
        given = f"{label}, {_run(base)}, {_run(one.run)}"
        results += [
            Result(f"{words}, {at}", ratio(one.speedup), OBSERVED, given),
            Result(f"efficiency, {at}", share(one.efficiency), OBSERVED, given),
            Result(f"{law} serial, {at}", share(one.serial), OBSERVED, given),
        ]
    held = "global batch and model" if is_strong else "work per device"
    notes = [f"{label}: every run has the same {held}; the smallest run is what the others are held against"]
    if is_strong:
        notes.append("Karp-Flatt constant: as if serial; rising: overhead grows with the devices")
    if any(one.efficiency > 1 for one in scaled):
        notes.append("an efficiency above 1 points to cache, memory or layout: look there first")
    return Table("Strong scaling" if is_strong else "Weak scaling", tuple(results), tuple(notes))


def amdahl_in_k(serial: Fraction, ks: Sequence[Fraction]) -> Table:
    """What k times the devices can give at most.

    Raises:
        UsageError: see `calculators`.
    """
    limit = calc.amdahl_limit(serial)
    words = f"serial fraction {number_text(serial)}"
    results = [
        Result(f"speed-up, k {number_text(k)}", ratio(calc.amdahl_at(serial, k)), BOUND, f"{words}, k {number_text(k)}", AT_MOST)
        for k in ks
    ]  # fmt: skip
    results.append(Result("limit", ratio(limit), BOUND, words, AT_MOST))
    none = "" if limit is not None else "nothing is serial: no limit"
    return Table("Amdahl in k", tuple(results), ("the rest divides by k without any cost",), none)


def time_to_quality(asked: calc.Quality) -> Table:
    """Steps, examples and time to the target at each batch; throughput and what it is worth.

    Raises:
        UsageError: see `calculators.time_to_quality`.
    """
    curve = f"S_min {number_text(asked.least_steps)}, B_crit {number_text(asked.critical_batch)}"
    results: list[Result] = []
    base: calc.Target | None = None
    for one in calc.time_to_quality(asked):
        at, given = f"batch {number_text(one.batch)}", f"{curve}, {_batch(one)}"
        results.append(Result(f"steps, {at}", Amount(one.steps, "steps"), DECLARED, given))
        results.append(Result(f"examples, {at}", Amount(one.steps * one.batch, "examples"), DECLARED, given))
        if one.per_step is None:
            continue
        results.append(Result(f"time, {at}", time(one.steps * one.per_step), DECLARED, given))
        if base is not None:
            at, given = f"{at} against {number_text(base.batch)}", f"{curve}, {_batch(base)}, {_batch(one)}"
            throughput, gain = calc.gains(base, one)
            results.append(Result(f"throughput, {at}", ratio(throughput), DECLARED, given))
            results.append(Result(f"speed-up, {at}", ratio(gain), DECLARED, given))
        base = base or one
    notes = ("steps = S_min (1 + B_crit / B); throughput is not time to quality",)
    return Table("Time to quality", tuple(results), notes)


def scaling(tables: Sequence[Table]) -> Document:
    """What was asked about scaling, in one answer."""
    return _document("scaling", *tables)


def time(ns: Fraction) -> Amount:
    """A duration, in the unit that leaves a number from 1 on."""
    label, scale = next(((u, n) for u, n in TIMES if abs(ns) >= n), TIMES[-1] if ns else TIMES[0])
    return Amount(ns, "ns", label, Fraction(scale))


def ratio(value: Fraction | None) -> Amount:
    """How many times; None: without bound."""
    return Amount(value, "x", "×")


def share(value: Fraction | None) -> Amount:
    """A fraction of 1."""
    return Amount(value, "share")


def number_text(value: Fraction) -> str:
    """An exact number for people: whole if it is short, else in four digits and at least one decimal.

    >>> [number_text(Fraction(n)) for n in ("80", "1.25", "5/3", "1365.333", "2/11", "1030")]
    ['80', '1.25', '1.667', '1365.3', '0.1818', '1030']
    """
    if value.denominator == 1:
        whole = f"{value.numerator:,}".replace(",", THIN)
        return whole if abs(value) >= 10_000 else str(value.numerator)
    exact = calc.exact_text(value)
    if "/" not in exact and len(exact.strip("-0.").replace(".", "")) <= SHORT:
        return exact
    near = Decimal(value.numerator) / Decimal(value.denominator)
    return f"{near:.{max(1, 3 - near.adjusted())}f}"


def _at(a: calc.Line, b: calc.Line, n: Fraction, given: str) -> list[Result]:
    """Both lines after n steps, and which is ahead."""
    at, here = f"{number_text(n)} steps", f"{given}, {number_text(n)} steps"
    left, right = a.at(n), b.at(n)
    ahead = "equal" if left == right else "A" if left < right else "B"
    return [
        Result(f"A, {at}", time(left), DECLARED, here),
        Result(f"B, {at}", time(right), DECLARED, here),
        Result(f"ahead, {at}", ahead, DECLARED, here),
    ]


def _under(intensity: Fraction, bandwidth: Amount, roof: Amount) -> tuple[Result, Result]:
    """One kernel under the roof."""
    found = calc.roofline(intensity, _base(bandwidth), _base(roof))
    given = f"intensity {_intensity(intensity).text}, bandwidth {bandwidth.text}, roof {roof.text}"
    attainable = Amount(found.attainable, roof.unit, roof.label, roof.scale)
    return (
        Result("attainable", attainable, BOUND, given, AT_MOST),
        Result("side", found.side, DECLARED, given),
    )


def _ridge(bandwidth: Amount, roof: Amount) -> Result:
    """Where memory and arithmetic allow the same."""
    given = f"bandwidth {bandwidth.text}, roof {roof.text}"
    return Result("ridge", _intensity(_base(roof) / _base(bandwidth)), DECLARED, given)


def _intensity(value: Fraction) -> Amount:
    return Amount(value, "FLOP/B", "FLOP/B")


def _base(amount: Amount) -> Fraction:
    """The number of a typed rate, which always has one."""
    return Fraction(0) if amount.base is None else amount.base


def _part(part: calc.Part, whole: Fraction | None) -> str:
    """`data 40 ms of 100 ms at 2×`."""
    how_much = number_text(part.fraction)
    if whole is not None:
        how_much = f"{time(part.fraction * whole).text} of {time(whole).text}"
    return f"{part.name} {how_much} at {_times(part.speedup)}".lstrip()


def _times(speedup: Fraction | None) -> str:
    return "inf×" if speedup is None else ratio(speedup).text


def _line(line: calc.Line) -> str:
    return f"{time(line.startup).text} + {time(line.per_step).text}/step"


def _run(run: calc.Run) -> str:
    batch = "" if run.batch is None else f" batch {number_text(run.batch)}"
    return f"{run.devices} devices{batch} {time(run.period).text}"


def _batch(one: calc.Target) -> str:
    per_step = "" if one.per_step is None else f" {time(one.per_step).text}/step"
    return f"batch {number_text(one.batch)}{per_step}"


def _document(calculator: str, *tables: Table) -> Document:
    """Tables for people, a list of results for machines."""
    results = [result.data for table in tables for result in table.results]
    why = "; ".join(table.none for table in tables if table.none)
    unknown = {"results[].value": why} if any(r["value"] is None for r in results) else {}
    data = {
        "calculator": calculator,
        "results": results,
        "notes": [words for table in tables for words in table.notes],
    }
    return Document("calc", (), tuple(_section(table) for table in tables), data, (), unknown)


def _section(table: Table) -> Section:
    """A table with what it rests on."""
    notes = [Sentence("{}", (Value(words, Unit.TEXT),)) for words in (table.none, *table.notes) if words]
    return Section(
        table.title, COLUMNS, tuple(r.row for r in table.results), notes=tuple(notes), topic="calc"
    )
