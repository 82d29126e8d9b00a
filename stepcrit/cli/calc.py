"""`stepcrit calc`: Amdahl, crossover, roofline and scaling from typed numbers, read as exact decimals."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from stepcrit.cli.options import FormatOpt, JsonOpt, OutputOpt
from stepcrit.cli.output import emit
from stepcrit.errors import UsageError

if TYPE_CHECKING:
    from fractions import Fraction

    from stepcrit.analyses.calculators import Line, Part, Run
    from stepcrit.answers.calc import Amount

TIMES = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9}
BYTES = {
    "B/s": 1, "kB/s": 10**3, "MB/s": 10**6, "GB/s": 10**9, "TB/s": 10**12,
    "KiB/s": 2**10, "MiB/s": 2**20, "GiB/s": 2**30, "TiB/s": 2**40,
}  # fmt: skip
FLOPS = {"FLOP/s": 1, "MFLOP/s": 10**6, "GFLOP/s": 10**9, "TFLOP/s": 10**12, "PFLOP/s": 10**15}
NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,2})?(?:/\d+)?", re.ASCII)
LONGEST = 40
WIDEST = 10**18
"""No typed number is larger, or but for zero smaller than its inverse."""


def add_to(root: typer.Typer) -> None:
    """Make this verb known to the command line."""
    app = typer.Typer(
        help="Answers from numbers alone, without a trace; every line repeats its inputs and how it is known.",
        rich_markup_mode=None,
        add_completion=False,
        epilog=(
            "Examples:  stepcrit calc amdahl --part 40ms --of 100ms --speedup 2  |  "
            "stepcrit calc crossover --a 30s+1.0s --b 0s+1.2s --at 50  |  "
            "stepcrit calc roofline --intensity 2 --bandwidth 100GB/s --roof 1000GFLOP/s  |  "
            "stepcrit calc scaling --strong --run 8,100ms --run 16,60ms"
        ),
    )
    for question in (amdahl, crossover, roofline, scaling):
        app.command()(question)
    root.add_typer(app, name="calc")


def amdahl(
    part: Annotated[
        list[str] | None,
        typer.Option(
            "--part",
            help="[NAME=]TIME[:SPEEDUP], or a fraction or percentage in place of TIME. May be repeated.",
            show_default=False,
        ),
    ] = None,
    of: Annotated[
        str | None, typer.Option("--of", help="The whole, before: 100ms.", show_default=False)
    ] = None,
    speedup: Annotated[
        str | None,
        typer.Option("--speedup", help="Of the parts that name none: 2, 1.5x, inf.", show_default=False),
    ] = None,
    observed: Annotated[
        str | None,
        typer.Option("--observed", help="Inverse: the speed-up of the whole, 1.10x.", show_default=False),
    ] = None,
    op_speedup: Annotated[
        str | None,
        typer.Option(
            "--op-speedup", help="Inverse: the speed-up of the part, 2x or inf.", show_default=False
        ),
    ] = None,
    fmt: FormatOpt = None,
    as_json: JsonOpt = False,
    output: OutputOpt = None,
) -> None:
    """What making a part faster gives at most; inverse: how much of the whole the part was.

    Examples: stepcrit calc amdahl --part 40ms --of 100ms --speedup 2; stepcrit calc amdahl --part data=40ms:inf --part opt=10ms:1.5 --of 100ms; stepcrit calc amdahl --observed 1.10x --op-speedup 2x
    """
    from stepcrit.answers import calc as answers  # noqa: PLC0415 - only the commands compute

    if observed is not None or op_speedup is not None:
        if observed is None or op_speedup is None or part or of or speedup:
            raise UsageError(
                "--observed and --op-speedup go together, and without --part",
                do="--observed 1.10x --op-speedup 2x",
            )
        document = answers.inverse(_number(_bare(observed), "--observed"), parse_speedup(op_speedup))
    else:
        whole = None if of is None else parse_time(of)
        document = answers.amdahl([parse_part(p, whole, speedup) for p in part or []], whole)
    emit(document, fmt=fmt, as_json=as_json, output=output)


def crossover(
    a: Annotated[str, typer.Option("--a", help="STARTUP+PER_STEP of A: 30s+1.0s.", show_default=False)],
    b: Annotated[str, typer.Option("--b", help="The same of B: 0s+1.2s.", show_default=False)],
    at: Annotated[
        list[str] | None,
        typer.Option("--at", help="Compare after so many steps. May be repeated.", show_default=False),
    ] = None,
    reused_startup: Annotated[
        bool, typer.Option("--reused-startup", help="A's start-up was paid before: leave it out, and say so.")
    ] = False,
    fmt: FormatOpt = None,
    as_json: JsonOpt = False,
    output: OutputOpt = None,
) -> None:
    """After how many steps a start-up has paid off.

    Examples: stepcrit calc crossover --a 30s+1.0s --b 0s+1.2s --at 50 --at 1000; stepcrit calc crossover --a 30s+1.0s --b 0s+1.2s --reused-startup
    """
    from stepcrit.answers import calc as answers  # noqa: PLC0415 - only the commands compute

    steps = [_number(n, "--at") for n in at or []]
    document = answers.crossover(parse_line(a, "--a"), parse_line(b, "--b"), steps, reused=reused_startup)
    emit(document, fmt=fmt, as_json=as_json, output=output)


def roofline(
    bandwidth: Annotated[
        str, typer.Option("--bandwidth", help="Of the memory: 3350GB/s, 3.35TB/s.", show_default=False)
    ],
    roof: Annotated[
        str, typer.Option("--roof", help="Of the arithmetic: 1000GFLOP/s, 989TFLOP/s.", show_default=False)
    ],
    intensity: Annotated[
        list[str] | None,
        typer.Option("--intensity", help="FLOP per byte of the kernel. May be repeated.", show_default=False),
    ] = None,
    gemm: Annotated[
        str | None,
        typer.Option(
            "--gemm", help="M,N,K of a matrix product, in place of --intensity.", show_default=False
        ),
    ] = None,
    dtype: Annotated[
        str, typer.Option("--dtype", help="Its elements: fp64, fp32, tf32, fp16, bf16, fp8, int8, fp4, int4.")
    ] = "bf16",
    counted: Annotated[
        str | None,
        typer.Option("--bytes", help="Bytes it moved, by counters. Default: the least.", show_default=False),
    ] = None,
    fmt: FormatOpt = None,
    as_json: JsonOpt = False,
    output: OutputOpt = None,
) -> None:
    """What one kernel can attain: the lower of memory bandwidth and arithmetic.

    Examples: stepcrit calc roofline --intensity 2 --bandwidth 100GB/s --roof 1000GFLOP/s; stepcrit calc roofline --gemm 4096,4096,4096 --dtype bf16 --bandwidth 3.35TB/s --roof 989TFLOP/s
    """
    from stepcrit.answers import calc as answers  # noqa: PLC0415 - only the commands compute

    speed, top = parse_rate(bandwidth, BYTES, "B/s"), parse_rate(roof, FLOPS, "FLOP/s")
    if bool(intensity) == bool(gemm) or (counted and not gemm):
        raise UsageError("give either --intensity or --gemm; --bytes belongs to --gemm", do="--intensity 2")
    if gemm:
        moved = None if counted is None else _number(counted, "--bytes")
        document = answers.roofline_gemm(parse_sizes(gemm), dtype.lower(), moved, speed, top)
    else:
        document = answers.roofline([_number(i, "--intensity") for i in intensity or []], speed, top)
    emit(document, fmt=fmt, as_json=as_json, output=output)


def scaling(
    is_strong: Annotated[
        bool, typer.Option("--strong", help="The runs have the same global batch and model.")
    ] = False,
    is_weak: Annotated[bool, typer.Option("--weak", help="The runs have the same work per device.")] = False,
    run: Annotated[
        list[str] | None,
        typer.Option("--run", help="DEVICES,PERIOD[,GLOBAL_BATCH]. Twice or more.", show_default=False),
    ] = None,
    serial: Annotated[
        str | None,
        typer.Option("--serial", help="Amdahl: the serial fraction, 0.05, with --at.", show_default=False),
    ] = None,
    at: Annotated[
        list[str] | None,
        typer.Option("--at", help="Amdahl: times the devices. May be repeated.", show_default=False),
    ] = None,
    least_steps: Annotated[
        str | None,
        typer.Option("--steps-min", help="Time to quality: steps at a huge batch.", show_default=False),
    ] = None,
    critical_batch: Annotated[
        str | None,
        typer.Option("--critical-batch", help="Time to quality: the critical batch.", show_default=False),
    ] = None,
    batch: Annotated[
        list[str] | None,
        typer.Option(
            "--batch", help="Time to quality: BATCH[,STEP_TIME]. May be repeated.", show_default=False
        ),
    ] = None,
    fmt: FormatOpt = None,
    as_json: JsonOpt = False,
    output: OutputOpt = None,
) -> None:
    """Efficiency and serial fraction of runs, Amdahl in the number of devices, time to quality.

    Examples: stepcrit calc scaling --strong --run 8,100ms --run 16,60ms --run 32,40ms; stepcrit calc scaling --weak --run 8,100ms --run 32,110ms; stepcrit calc scaling --serial 0.05 --at 8 --at 64; stepcrit calc scaling --steps-min 10000 --critical-batch 1024 --batch 1024,1s --batch 4096,1.25s
    """
    from stepcrit.analyses.calculators import Quality  # noqa: PLC0415 - only the commands compute
    from stepcrit.answers import calc as answers  # noqa: PLC0415

    tables = []
    if run or is_strong or is_weak:
        if is_strong == is_weak:
            raise UsageError(
                "say what the runs have in common",
                do="either --strong (same global batch) or --weak (same work per device)",
            )
        tables.append(answers.measured_scaling([parse_run(r) for r in run or []], is_strong=is_strong))
    if serial or at:
        tables.append(
            answers.amdahl_in_k(_number(serial or "", "--serial"), [_number(k, "--at") for k in at or []])
        )
    if least_steps or critical_batch or batch:
        curve = _number(least_steps or "", "--steps-min"), _number(critical_batch or "", "--critical-batch")
        tables.append(
            answers.time_to_quality(Quality(*curve, tuple(parse_batch(one) for one in batch or [])))
        )
    if not tables:
        raise UsageError(
            "nothing to compute", do="--strong --run …, --serial …, or --steps-min …; see --help"
        )
    emit(answers.scaling(tables), fmt=fmt, as_json=as_json, output=output)


def parse_time(words: str) -> Fraction:
    """A duration with its unit, exact, in ns; a bare 0 needs none.

    >>> parse_time("1.2s")
    Fraction(1200000000, 1)

    Raises:
        UsageError: it has no unit, or no number, or is negative.
    """
    number, unit = _split(words)
    if number is None or (unit not in TIMES and (unit or number)):
        raise UsageError(
            f"{words!r} is not a duration", do="write a number with a unit: 750ns, 5us, 1.5ms, 30s"
        )
    if number < 0:
        raise UsageError(f"a time cannot be negative: {words}")
    return number * TIMES.get(unit, 1)


def parse_speedup(words: str) -> Fraction | None:
    """`2`, `1.5x`, or `inf`, which is None.

    Raises:
        UsageError: it is no number, or not above 0.
    """
    if words.strip().lower() in ("inf", "infx", "infinity", "∞"):
        return None
    value = _number(_bare(words), "a speed-up")
    if value <= 0:
        raise UsageError(
            f"a speed-up must be above 0, not {words}", do="2 is twice as fast; inf takes no time"
        )
    return value


def parse_part(words: str, whole: Fraction | None, usual: str | None) -> Part:
    """`[NAME=]TIME[:SPEEDUP]`, or a fraction in place of the time.

    Raises:
        UsageError: a piece is missing or cannot be read, or a time has no whole.
    """
    from stepcrit.analyses.calculators import Part  # noqa: PLC0415 - only the commands compute

    name, _, rest = words.rpartition("=")
    amount, _, own = rest.partition(":")
    if not (own or usual):
        raise UsageError(f"no speed-up for {words!r}", do="--speedup 2, or --part NAME=40ms:2")
    return Part(name.strip(), _fraction(amount, whole), parse_speedup(own or usual or ""))


def parse_line(words: str, option: str) -> Line:
    """`STARTUP+PER_STEP`.

    Raises:
        UsageError: it is not two durations.
    """
    from stepcrit.analyses.calculators import Line  # noqa: PLC0415 - only the commands compute

    startup, plus, per_step = words.partition("+")
    if not plus:
        raise UsageError(f"{option} {words!r} is not a start-up and a time per step", do=f"{option} 30s+1.0s")
    return Line(parse_time(startup), parse_time(per_step.strip().removesuffix("/step")))


def parse_rate(words: str, units: dict[str, int], kind: str) -> Amount:
    """A rate with its unit, shown in that unit.

    Raises:
        UsageError: it has no such unit, or no number, or is not above 0.
    """
    from fractions import Fraction  # noqa: PLC0415 - only the commands compute

    from stepcrit.answers.calc import Amount  # noqa: PLC0415

    number, unit = _split(words)
    spelled = {name.lower(): name for name in units}.get(unit.lower().replace("flops", "flop/s"), "")
    if number is None or not spelled:
        raise UsageError(f"{words!r} is not a rate in {kind}", do=f"a number with one of {', '.join(units)}")
    if number <= 0:
        raise UsageError(f"a rate must be above 0: {words}")
    return Amount(number * units[spelled], kind, spelled, Fraction(units[spelled]))


def parse_sizes(words: str) -> tuple[int, int, int]:
    """`M,N,K`.

    Raises:
        UsageError: it is not three whole numbers.
    """
    sizes = [_whole(size, "--gemm") for size in words.split(",")]
    if len(sizes) != 3:
        raise UsageError(f"--gemm {words!r} is not M,N,K", do="--gemm 4096,4096,4096")
    return sizes[0], sizes[1], sizes[2]


def parse_run(words: str) -> Run:
    """`DEVICES,PERIOD[,GLOBAL_BATCH]`.

    Raises:
        UsageError: a piece is missing or cannot be read.
    """
    from stepcrit.analyses.calculators import Run  # noqa: PLC0415 - only the commands compute

    devices, *rest = words.split(",")
    if len(rest) not in (1, 2):
        raise UsageError(f"--run {words!r} is not DEVICES,PERIOD[,BATCH]", do="--run 8,100ms")
    batch = _number(rest[1], "a batch") if len(rest) == 2 else None
    return Run(_whole(devices, "--run"), parse_time(rest[0]), batch)


def parse_batch(words: str) -> tuple[Fraction, Fraction | None]:
    """`BATCH[,STEP_TIME]`.

    Raises:
        UsageError: a piece cannot be read.
    """
    batch, comma, per_step = words.partition(",")
    return _number(batch, "--batch"), parse_time(per_step) if comma else None


def _fraction(words: str, whole: Fraction | None) -> Fraction:
    """A part as a fraction of its whole."""
    number, unit = _split(words)
    if number is not None and unit in ("", "%"):
        return number / (100 if unit else 1)
    amount = parse_time(words)
    if not whole:
        raise UsageError(f"{words.strip()} of what?", do="--of 100ms, above 0")
    return amount / whole


def _bare(words: str) -> str:
    """A factor without its sign."""
    return words.strip().removesuffix("x").removesuffix("×")


def _whole(words: str, what: str) -> int:
    value = _number(words, what)
    if value.denominator != 1:
        raise UsageError(f"{what}: {words!r} is not a whole number")
    return value.numerator


def _number(words: str, what: str) -> Fraction:
    """A bare number, exact."""
    number, unit = _split(words)
    if number is None or unit:
        raise UsageError(f"{what}: {words!r} is not a number", do="a decimal or a fraction: 0.4, 2/5, 1e6")
    return number


def _split(words: str) -> tuple[Fraction | None, str]:
    """A number and what stands behind it; None where there is no number that can be used."""
    from fractions import Fraction  # noqa: PLC0415 - only the commands compute

    found = NUMBER.match(words.strip())
    if found is None or len(found[0]) > LONGEST:
        return None, words
    above, _, below = found[0].partition("/")
    if below and not int(below):
        return None, words
    value = Fraction(above) / int(below or 1)
    if value and not Fraction(1, WIDEST) <= abs(value) <= WIDEST:
        raise UsageError(f"{words!r} is too large or too small", do="between 1e-18 and 1e18")
    return value, words.strip()[found.end() :].strip()
