"""`stepcrit calc` as a user types it: the seeds on the screen, exact JSON, every format, refusals."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stepcrit.cli.calc import parse_part, parse_speedup, parse_time
from stepcrit.cli.main import run
from stepcrit.errors import UsageError
from stepcrit.units import THIN

AMDAHL = ("amdahl", "--part", "40ms", "--of", "100ms", "--speedup", "2")
CROSSOVER = ("crossover", "--a", "30s+1.0s", "--b", "0s+1.2s", "--at", "50", "--at", "150", "--at", "1000")
ROOFLINE = ("roofline", "--bandwidth", "100GB/s", "--roof", "1000GFLOP/s")
STRONG = ("scaling", "--strong", "--run", "8,100ms", "--run", "16,60ms", "--run", "32,40ms")
QUALITY = (
    "scaling",
    "--steps-min",
    "10000",
    "--critical-batch",
    "1024",
    "--batch",
    "1024,1s",
    "--batch",
    "4096,1.25s",
)
EVERY = (AMDAHL, CROSSOVER, (*ROOFLINE, "--intensity", "2"), STRONG, QUALITY)


def out_of(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert run(["calc", *argv]) == 0
    return capsys.readouterr().out


def data_of(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, Any]:
    return dict(json.loads(out_of(capsys, *argv, "--json"))["data"])


def rows(capsys: pytest.CaptureFixture[str], *argv: str) -> list[tuple[str, str, str]]:
    """Result, value and claim, as they are shown."""
    table = csv.DictReader(io.StringIO(out_of(capsys, *argv, "--format", "csv").split("\n\n", maxsplit=1)[0]))
    return [(row["result"], row["value"].replace(THIN, " "), row["claim"]) for row in table]


@pytest.mark.parametrize(
    ("argv", "shown"),
    [
        (AMDAHL, [("new time", "≥ 80 ms", "bound"), ("speed-up", "≤ 1.25×", "bound")]),
        ((*AMDAHL[:-1], "inf"), [("new time", "≥ 60 ms", "bound"), ("speed-up", "≤ 1.667×", "bound")]),
        (
            ("amdahl", "--part", "fwd=70ms:2x", "--of", "100ms"),
            [("new time", "≥ 65 ms", "bound"), ("speed-up", "≤ 1.538×", "bound")],
        ),
        (("amdahl", "--part", "40%", "--speedup", "2"), [("new share", "≥ 0.8", "bound")]),
        (("amdahl", "--part", "1", "--speedup", "inf"), [("speed-up", "none", "bound")]),
        (
            ("amdahl", "--part", "a=10ms:2", "--part", "b=10ms:1/2", "--of", "100ms"),
            [("fraction", "0.2", "declared"), ("new time", "105 ms", "modelled")],
        ),
        (
            ("amdahl", "--part", "10ms", "--of", "100ms", "--speedup", "0.5"),
            [("new time", "≤ 110 ms", "bound"), ("speed-up", "≥ 0.9091×", "bound")],
        ),
        (
            ("amdahl", "--observed", "1.10x", "--op-speedup", "2x"),
            [("fraction on the path", "0.1818", "declared")],
        ),
        (
            CROSSOVER,
            [
                ("A, 50 steps", "80 s", "declared"),
                ("B, 50 steps", "60 s", "declared"),
                ("ahead, 50 steps", "B", "declared"),
                ("ahead, 150 steps", "equal", "declared"),
                ("A, 1000 steps", "1030 s", "declared"),
                ("B, 1000 steps", "1200 s", "declared"),
                ("ahead, 1000 steps", "A", "declared"),
                ("break-even", "150 steps", "declared"),
                ("A ahead from", "151 steps", "declared"),
            ],
        ),
        (
            (*ROOFLINE, "--intensity", "2"),
            [("attainable", "≤ 200 GFLOP/s", "bound"), ("side", "memory", "declared")],
        ),
        (
            (*ROOFLINE, "--intensity", "4"),
            [("attainable", "≤ 400 GFLOP/s", "bound"), ("ridge", "10 FLOP/B", "declared")],
        ),
        (
            (*ROOFLINE, "--intensity", "10"),
            [("attainable", "≤ 1000 GFLOP/s", "bound"), ("side", "ridge", "declared")],
        ),
        (
            (*ROOFLINE, "--intensity", "25"),
            [("attainable", "≤ 1000 GFLOP/s", "bound"), ("side", "compute", "declared")],
        ),
        (
            ("roofline", "--gemm", "4096,4096,4096", "--bandwidth", "3.35TB/s", "--roof", "989tflops"),
            [
                ("intensity", "≤ 1365.3 FLOP/B", "bound"),
                ("ridge", "295.2 FLOP/B", "declared"),
                ("side", "compute", "declared"),
                ("time", "≥ 139.0 µs", "bound"),
            ],
        ),
        (
            (*ROOFLINE, "--gemm", "8,8,8", "--bytes", "512"),
            [("intensity", "2 FLOP/B", "declared"), ("attainable", "≤ 200 GFLOP/s", "bound")],
        ),
        (
            STRONG,
            [
                ("speed-up, 16 devices", "1.667×", "observed"),
                ("efficiency, 16 devices", "0.8333", "observed"),
                ("Karp-Flatt serial, 16 devices", "0.2", "observed"),
                ("efficiency, 32 devices", "0.625", "observed"),
            ],
        ),
        (
            ("scaling", "--weak", "--run", "32,110ms,1024", "--run", "8,100ms,256"),
            [
                ("scaled speed-up, 32 devices", "3.636×", "observed"),
                ("efficiency, 32 devices", "0.9091", "observed"),
                ("Gustafson serial, 32 devices", "0.1212", "observed"),
            ],
        ),
        (
            ("scaling", "--serial", "0.05", "--at", "64"),
            [("speed-up, k 64", "≤ 15.42×", "bound"), ("limit", "≤ 20×", "bound")],
        ),
        (
            QUALITY,
            [
                ("steps, batch 4096", "12 500", "declared"),
                ("time, batch 4096", "15 625 s", "declared"),
                ("throughput, batch 4096 against 1024", "3.2×", "declared"),
                ("speed-up, batch 4096 against 1024", "1.28×", "declared"),
            ],
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_the_seeds_are_shown_with_their_claim(
    argv: tuple[str, ...], shown: list[tuple[str, str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert set(shown) <= set(rows(capsys, *argv))


def test_a_crossover_that_is_none_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ("crossover", "--a", "30s+1.2s/step", "--b", "0+1s")
    assert "none" in out_of(capsys, *argv)
    answer = json.loads(out_of(capsys, *argv, "--json"))
    assert answer["data"]["results"][0]["value"] is None
    why = "B starts earlier and is not slower per step: B wins for every n"
    assert answer["unknown"] == [{"path": "results[].value", "why": why}]


def test_a_reused_start_up_is_left_out_and_recorded(capsys: pytest.CaptureFixture[str]) -> None:
    data = data_of(capsys, *CROSSOVER, "--reused-startup")
    assert data["results"][0]["value"] == 50 * 10**9
    assert all("30\u202fs reused" in r["given"] for r in data["results"])
    assert any("reused: left out" in note for note in data["notes"])
    assert "A wins for every n" in out_of(capsys, *CROSSOVER, "--reused-startup")


@pytest.mark.parametrize("argv", EVERY, ids=" ".join)
def test_every_line_repeats_its_inputs_and_has_a_claim_and_an_exact_number(
    argv: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    answer = json.loads(out_of(capsys, *argv, "--json"))
    assert (answer["schema"], answer["inputs"]) == ("stepcrit/calc/1", [])
    assert answer["data"]["calculator"] == argv[0]
    for result in answer["data"]["results"]:
        assert result["given"]
        assert result["claim"] in {"bound", "declared", "observed"}
        if result["unit"] != "word":
            assert float(Fraction(result["exact"])) == result["value"]


def test_times_are_whole_ns_in_json_and_fractions_stay_exact(capsys: pytest.CaptureFixture[str]) -> None:
    found = {r["quantity"]: r for r in data_of(capsys, *AMDAHL)["results"]}
    assert (found["new time"]["value"], found["new time"]["unit"], found["new time"]["sign"]) == (
        80_000_000,
        "ns",
        ">=",
    )
    assert (found["ceiling"]["exact"], found["ceiling"]["sign"]) == ("5/3", "<=")


@pytest.mark.parametrize("argv", EVERY, ids=" ".join)
def test_every_format_comes_through_the_same_door(
    argv: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for suffix, fmt in (("txt", "text"), ("md", "md"), ("csv", "csv"), ("json", "json")):
        target = tmp_path / f"answer.{suffix}"
        assert out_of(capsys, *argv, "-o", str(target)) == ""
        assert target.read_text() == out_of(capsys, *argv, "--format", fmt)


def test_ascii_streams_get_ascii() -> None:
    command = [sys.executable, "-m", "stepcrit", "calc", *AMDAHL]
    done = subprocess.run(command, capture_output=True, check=True, env={"PYTHONIOENCODING": "ascii"})
    assert b">= 80 ms" in done.stdout
    assert b"<= 1.25x" in done.stdout


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (("amdahl",), "no part"),
        (("amdahl", "--part", "-5ms", "--of", "100ms", "--speedup", "2"), "negative"),
        (("amdahl", "--part", "5ms", "--of", "-100ms", "--speedup", "2"), "negative"),
        (("amdahl", "--part", "140ms", "--of", "100ms", "--speedup", "2"), "outside 0..1"),
        (("amdahl", "--part", "-0.1", "--speedup", "2"), "outside 0..1"),
        (("amdahl", "--part", "0.6:2", "--part", "0.6:2"), "all parts together"),
        (("amdahl", "--part", "0.4", "--speedup", "0"), "above 0"),
        (("amdahl", "--part", "0.4:-1"), "above 0"),
        (("amdahl", "--part", "0.4"), "no speed-up"),
        (("amdahl", "--part", "40ms", "--speedup", "2"), "of what"),
        (("amdahl", "--part", "40ms", "--of", "0", "--speedup", "2"), "of what"),
        (("amdahl", "--part", "0.4", "--of", "0", "--speedup", "2"), "whole must be above 0"),
        (("amdahl", "--part", "forty", "--of", "100ms", "--speedup", "2"), "not a duration"),
        (("amdahl", "--part", "40 parsec", "--of", "100ms", "--speedup", "2"), "not a duration"),
        (("amdahl", "--part", "1e99ms", "--of", "100ms", "--speedup", "2"), "too large"),
        (("amdahl", "--part", "1e999999999ms", "--of", "100ms", "--speedup", "2"), "too large"),
        (("amdahl", "--part", "1/0", "--speedup", "2"), "not a duration"),
        (("amdahl", "--part", "nan", "--speedup", "2"), "not a duration"),
        (("amdahl", "--part", "0.4", "--speedup", "two"), "not a number"),
        (("amdahl", "--observed", "1.1x"), "go together"),
        (("amdahl", "--observed", "1.1x", "--op-speedup", "2x", "--part", "0.1"), "go together"),
        (("amdahl", "--observed", "3x", "--op-speedup", "2x"), "outside 0..1"),
        (("crossover", "--a", "30s", "--b", "0s+1s"), "start-up and a time per step"),
        (("crossover", "--a=-30s+1s", "--b", "0s+1s"), "negative"),
        (("crossover", "--a", "30s+-1s", "--b", "0s+1s"), "negative"),
        (("crossover", "--a", "30s+1s", "--b", "0s+1s", "--at", "-1"), "negative"),
        (("crossover", "--a", "30+1s", "--b", "0s+1s"), "not a duration"),
        (("roofline", "--bandwidth", "100", "--roof", "1GFLOP/s", "--intensity", "2"), "not a rate"),
        (("roofline", "--bandwidth", "0GB/s", "--roof", "1GFLOP/s", "--intensity", "2"), "above 0"),
        (("roofline", "--bandwidth", "1GB/s", "--roof", "-1GFLOP/s", "--intensity", "2"), "above 0"),
        ((*ROOFLINE, "--intensity", "-2"), "intensity"),
        (ROOFLINE, "either --intensity or --gemm"),
        ((*ROOFLINE, "--intensity", "2", "--gemm", "1,1,1"), "either --intensity or --gemm"),
        ((*ROOFLINE, "--intensity", "2", "--bytes", "1"), "--bytes belongs to --gemm"),
        ((*ROOFLINE, "--gemm", "1,1"), "M,N,K"),
        ((*ROOFLINE, "--gemm", "1,1,1.5"), "whole number"),
        ((*ROOFLINE, "--gemm", "1,1,1", "--dtype", "bf17"), "bf17"),
        ((*ROOFLINE, "--gemm", "1,1,1", "--bytes", "0"), "--bytes"),
        (("scaling",), "nothing to compute"),
        (("scaling", "--run", "8,1s", "--run", "16,1s"), "--strong"),
        ((*STRONG, "--weak"), "either --strong"),
        (("scaling", "--strong"), "two runs"),
        (("scaling", "--strong", "--run", "8,0s", "--run", "16,1s"), "above 0"),
        (("scaling", "--strong", "--run", "8"), "DEVICES,PERIOD"),
        (("scaling", "--strong", "--run", "8,1s,256", "--run", "16,1s,512"), "global batches do not fit"),
        (("scaling", "--serial", "1.5"), "outside 0..1"),
        (("scaling", "--at", "8"), "--serial"),
        (("scaling", "--steps-min", "10", "--batch", "8"), "--critical-batch"),
        (("scaling", "--steps-min", "10", "--critical-batch", "8"), "no batch"),
        (("scaling", "--steps-min", "10", "--critical-batch", "8", "--batch", "8,-1s"), "negative"),
        ((*AMDAHL, "--json", "--format", "md"), "contradict"),
        ((), "command"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_wrong_use_is_refused_in_words_with_exit_code_2(
    argv: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["calc", *argv]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "error SC200" in captured.err
    assert says in captured.err


@pytest.mark.parametrize("verb", ["amdahl", "crossover", "roofline", "scaling"])
def test_help_has_examples_that_work(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = " ".join(out_of(capsys, verb, "--help").split())
    examples = text.partition("Examples: ")[2].partition(" Options:")[0].split("; ")
    assert len(examples) >= 2
    for example in examples:
        program, _, *argv = example.split()
        assert program == "stepcrit"
        assert out_of(capsys, *argv)


def test_help_names_every_calculator(capsys: pytest.CaptureFixture[str]) -> None:
    text = out_of(capsys, "--help")
    assert all(word in text for word in ("amdahl", "crossover", "roofline", "scaling", "Examples"))


def test_pieces_are_read_exactly() -> None:
    assert parse_time("1.2s") == 1_200_000_000
    assert parse_time("0.1ns") == Fraction(1, 10)
    assert (parse_time("2 µs"), parse_time("1.5min"), parse_time("0")) == (2000, 90 * 10**9, 0)
    assert (parse_speedup("1.1×"), parse_speedup("INF")) == (Fraction(11, 10), None)
    part = parse_part("a=b=30ms:4", Fraction(10**8), None)
    assert (part.name, part.fraction, part.speedup) == ("a=b", Fraction(3, 10), 4)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=12))
def test_no_text_breaks_the_reader(words: str) -> None:
    try:
        assert parse_time(words) >= 0
    except UsageError as refused:
        assert refused.exit_code == 2  # noqa: PT017 - one of two good ends
