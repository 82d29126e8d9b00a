"""Calculators: the seeds exactly, the golden cases, and what must hold for any numbers."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepcrit.analyses.calculators import (
    Line,
    Part,
    Quality,
    Run,
    amdahl,
    amdahl_at,
    amdahl_limit,
    crossover,
    exact_text,
    gains,
    gemm,
    on_path,
    roofline,
    strong,
    time_to_quality,
    weak,
)
from stepcrit.errors import UsageError

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parents[1] / "golden" / "calculators.json").read_text())
CALCULATORS, SCALING = GOLDEN["calculators"], GOLDEN["scaling"]
ROUNDED = 1e-8  # the reference writes floats, one of them with ten digits

shares = st.fractions(0, 1, max_denominator=1000)
positive = st.fractions("1/1000", 1000, max_denominator=1000)
times = st.fractions(0, 1000, max_denominator=1000)


def exact(number: str | float) -> Fraction:
    """A number of the reference as it is written there."""
    return Fraction(str(number))


def part(f: Fraction | str, s: Fraction | int | None) -> Part:
    return Part("", Fraction(f), None if s is None else Fraction(s))


def line(numbers: dict[str, float]) -> Line:
    return Line(exact(numbers["startup"]), exact(numbers["per_step"]))


@pytest.mark.parametrize(
    ("f", "s", "left", "speedup"),
    [
        ("0.4", 2, Fraction(80), Fraction(5, 4)),
        ("0.4", None, Fraction(60), Fraction(5, 3)),
        ("0.7", 2, Fraction(65), Fraction(20, 13)),
    ],
)
def test_seeds_of_amdahl_are_exact(f: str, s: int | None, left: Fraction, speedup: Fraction) -> None:
    found = amdahl([part(f, s)])
    assert (found.left * 100, found.speedup, found.sign) == (left, speedup, "<=")


@pytest.mark.parametrize("case", CALCULATORS["amdahl"])
def test_golden_amdahl(case: dict[str, Any]) -> None:
    found = amdahl([part(exact(case["f"]), None if case["s"] == "inf" else Fraction(case["s"]))])
    assert float(found.left * case["T"]) == pytest.approx(case["new"], rel=ROUNDED)
    assert found.speedup is not None
    assert float(found.speedup) == pytest.approx(case["speedup"], rel=ROUNDED)


def test_amdahl_inverse_is_two_elevenths() -> None:
    assert on_path(Fraction("1.10"), Fraction(2)) == Fraction(2, 11)
    assert float(Fraction(2, 11)) == pytest.approx(CALCULATORS["inverse_amdahl"]["f"])
    assert on_path(Fraction(5, 3), None) == Fraction("0.4")


@given(shares, positive, positive)
def test_amdahl_is_monotone_and_below_its_ceiling(f: Fraction, s: Fraction, more: Fraction) -> None:
    one, other = amdahl([part(f, s)]), amdahl([part(f, s + more)])
    assert one.left >= other.left >= one.least == amdahl([part(f, None)]).left
    assert one.speedup is not None
    assert one.ceiling is None or one.speedup <= one.ceiling


@given(shares.filter(bool), positive.filter(lambda s: s != 1))
def test_the_inverse_finds_the_fraction_again(f: Fraction, s: Fraction) -> None:
    speedup = amdahl([part(f, s)]).speedup
    assert speedup is not None
    assert on_path(speedup, s) == f


@given(shares, shares, positive)
def test_parts_are_worth_their_sum(f: Fraction, g: Fraction, s: Fraction) -> None:
    two = [part(f / 2, s), part(g / 2, s)]
    assert amdahl(two).left == amdahl([part((f + g) / 2, s)]).left


def test_nothing_left_has_no_speed_up_and_a_mix_no_sign() -> None:
    assert (amdahl([part("1", None)]).speedup, amdahl([part("1", 2)]).ceiling) == (None, None)
    signs = [
        amdahl([part("0.1", a), part("0.1", Fraction(b))]).sign
        for a, b in ((2, "0.5"), (1, "0.5"), (None, "1"))
    ]
    assert signs == ["", ">=", "<="]


def test_golden_crossover_and_the_seeds_are_exact() -> None:
    case = CALCULATORS["crossover"]
    a, b = line(case["A"]), line(case["B"])
    found = crossover(a, b)
    assert (found.steps, found.later) == (Fraction(150), "A") == (Fraction(case["n_star"]), "A")
    assert [a.at(Fraction(50)), b.at(Fraction(50))] == [80, 60]
    assert [a.at(Fraction(1000)), b.at(Fraction(1000))] == [1030, 1200]
    for n, both in case["at"].items():
        assert (a.at(Fraction(n)), b.at(Fraction(n))) == (exact(both["A"]), exact(both["B"]))


def test_golden_crossover_that_is_none_says_why() -> None:
    case = CALCULATORS["crossover_none"]
    found = crossover(line(case["A"]), line(case["B"]))
    assert (found.steps, found.later, found.why) == (None, "B", case["why"])


@given(times, times, times, times)
def test_both_lines_are_equal_at_the_crossover_and_parted_beside_it(
    a0: Fraction, a1: Fraction, b0: Fraction, b1: Fraction
) -> None:
    a, b = Line(a0, a1), Line(b0, b1)
    found = crossover(a, b)
    assert crossover(b, a).steps == found.steps
    if found.steps is None:
        behind = {
            "A": lambda n: a.at(n) <= b.at(n),
            "B": lambda n: b.at(n) <= a.at(n),
            "": lambda n: a.at(n) == b.at(n),
        }
        assert all(behind[found.later](Fraction(n)) for n in (0, 1, 10**6))
        assert found.why
        return
    assert found.steps > 0
    assert a.at(found.steps) == b.at(found.steps)
    ahead, other = (a, b) if found.later == "A" else (b, a)
    assert ahead.at(found.steps + 1) < other.at(found.steps + 1)
    assert ahead.at(found.steps / 2) > other.at(found.steps / 2)


@pytest.mark.parametrize("case", CALCULATORS["roofline"])
def test_golden_roofline(case: dict[str, Any]) -> None:
    found = roofline(Fraction(case["I"]), Fraction(case["B"]), Fraction(case["roof"]))
    assert (found.attainable, found.side) == (case["attainable"], case["bound"])
    assert found.ridge == exact(CALCULATORS["ridge"])


def test_golden_gemm_is_on_the_compute_side_of_an_h100() -> None:
    case, product = CALCULATORS["roofline_gemm_bf16_4096"], gemm(4096, 4096, 4096, "bf16")
    assert (product.flops, product.minimal_bytes) == (case["flops"], case["bytes"])
    intensity = product.flops / product.minimal_bytes
    assert float(intensity) == pytest.approx(case["intensity"], rel=1e-15)
    found = roofline(intensity, Fraction(3350 * 10**9), Fraction(989 * 10**12))
    assert float(found.ridge) == pytest.approx(case["h100_ridge"], rel=1e-15)
    assert found.side == "compute"


@given(times, positive, positive)
def test_a_roof_is_never_passed(intensity: Fraction, bandwidth: Fraction, roof: Fraction) -> None:
    found = roofline(intensity, bandwidth, roof)
    assert found.attainable <= roof
    assert found.attainable <= intensity * bandwidth
    assert (found.side == "memory") == (found.attainable < roof)


def test_four_bit_elements_take_half_a_byte() -> None:
    assert gemm(1, 1, 1, "fp4").minimal_bytes == Fraction(3, 2)


def runs(case: dict[str, float]) -> list[Run]:
    return [Run(int(devices), exact(period)) for devices, period in case.items()]


def test_golden_strong_scaling() -> None:
    case = SCALING["strong"]
    base, *others = strong(runs(case["T"]))
    assert (base.run.devices, base.speedup, base.efficiency, base.serial) == (
        case["base_devices"],
        1,
        1,
        None,
    )
    for one in others:
        at = str(one.run.devices)
        assert one.serial == Fraction(1, 5)
        shown = (float(one.speedup), float(one.efficiency), float(one.serial))
        assert shown == pytest.approx((case["speedup"][at], case["efficiency"][at], case["karp_flatt"][at]))


def test_golden_weak_scaling() -> None:
    case = SCALING["weak"]
    _, one = weak(runs(case["T"]))
    assert (one.efficiency, one.speedup, one.serial) == (Fraction(10, 11), Fraction(40, 11), Fraction(4, 33))
    shown = (float(one.efficiency), float(one.speedup), float(one.serial or 0))
    assert shown == pytest.approx((case["efficiency"], case["scaled_speedup"], case["gustafson_serial"]))


def test_golden_amdahl_in_k() -> None:
    case = SCALING["amdahl_k"]
    f = exact(case["f"])
    found = {k: float(amdahl_at(f, Fraction(k))) for k in case["speedup"]}
    assert found == pytest.approx(case["speedup"])
    assert (amdahl_limit(f), amdahl_limit(Fraction(0))) == (case["limit"], None)


@given(shares, st.integers(2, 4096))
def test_karp_flatt_finds_the_serial_fraction_of_amdahl(f: Fraction, k: int) -> None:
    _, one = strong([Run(1, Fraction(1)), Run(k, 1 / amdahl_at(f, Fraction(k)))])
    assert one.serial == f


@given(shares, st.integers(2, 4096))
def test_gustafson_finds_the_serial_fraction_of_its_scaled_speed_up(s: Fraction, k: int) -> None:
    scaled = k - s * (k - 1)
    _, one = weak([Run(1, Fraction(1)), Run(k, k / scaled)])
    assert one.serial == s


def test_golden_time_to_quality() -> None:
    case = SCALING["time_to_quality"]
    batches = tuple((Fraction(b), exact(t)) for b, t in case["step_time_s"].items())
    found = time_to_quality(Quality(Fraction(case["S_min"]), Fraction(case["B_crit"]), batches))
    for one in found:
        at = str(one.batch)
        assert one.steps == exact(case["steps"][at])
        assert one.steps * one.batch == exact(case["examples"][at])
        assert one.steps * (one.per_step or 0) == exact(case["total_s"][at])
    assert gains(found[1], found[2]) == (Fraction("3.2"), Fraction("1.28"))


@given(st.fractions(max_denominator=10**6))
def test_the_exact_text_is_the_number(value: Fraction) -> None:
    assert Fraction(exact_text(value)) == value


ONE = Fraction(1)
WORSE = Line(Fraction(-1), ONE)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: amdahl([]), "no part"),
        (lambda: amdahl([part("1.01", 2)]), r"1\.01 is outside 0\.\.1"),
        (lambda: amdahl([part("-0.1", 2)]), r"-0\.1 is outside 0\.\.1"),
        (lambda: amdahl([part("0.6", 2), part("0.6", 2)]), "all parts together"),
        (lambda: amdahl([part("0.4", 0)]), "above 0"),
        (lambda: amdahl([part("0.4", -2)]), "above 0"),
        (lambda: on_path(Fraction(3), Fraction(2)), r"outside 0\.\.1"),
        (lambda: on_path(Fraction("0.9"), Fraction(2)), r"outside 0\.\.1"),
        (lambda: on_path(Fraction(2), ONE), "explains nothing"),
        (lambda: on_path(Fraction(0), None), "observed"),
        (lambda: on_path(ONE, Fraction(0)), "speed-up of the part"),
        (lambda: crossover(WORSE, Line(ONE, ONE)), "start-up cannot be negative"),
        (lambda: crossover(Line(ONE, ONE), Line(ONE, -ONE)), "per step cannot be negative"),
        (lambda: roofline(-ONE, ONE, ONE), "intensity"),
        (lambda: roofline(ONE, Fraction(0), ONE), "bandwidth"),
        (lambda: roofline(ONE, ONE, Fraction(0)), "roof"),
        (lambda: gemm(0, 1, 1, "bf16"), "empty"),
        (lambda: gemm(1, 1, 1, "bf17"), "bf17"),
        (lambda: strong([Run(8, ONE)]), "two runs"),
        (lambda: strong([Run(8, ONE), Run(8, ONE)]), "same number of devices"),
        (lambda: strong([Run(0, ONE), Run(8, ONE)]), "devices"),
        (lambda: weak([Run(8, ONE), Run(16, -ONE)]), "period"),
        (lambda: strong([Run(8, ONE, Fraction(256)), Run(16, ONE, Fraction(512))]), "16 devices 512"),
        (lambda: weak([Run(8, ONE, Fraction(256)), Run(16, ONE, Fraction(256))]), "8 devices 256"),
        (lambda: weak([Run(8, ONE, Fraction(0)), Run(16, ONE)]), "batch"),
        (lambda: amdahl_at(Fraction(2), ONE), "serial fraction"),
        (lambda: amdahl_at(ONE, Fraction(0)), "k must be above 0"),
        (lambda: time_to_quality(Quality(ONE, ONE, ())), "no batch"),
        (lambda: time_to_quality(Quality(ONE, ONE, ((ONE, -ONE),))), "time of a step"),
        (lambda: time_to_quality(Quality(ONE, ONE, ((Fraction(0), None),))), "the batch"),
        (lambda: time_to_quality(Quality(ONE, Fraction(0), ((ONE, None),))), "critical batch"),
    ],
)
def test_what_cannot_be_is_refused(call: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        call()
