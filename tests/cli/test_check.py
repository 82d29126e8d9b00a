"""`stepcrit check` on one trace against its baseline: each outcome, with its exit code and its words."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import shlex
from pathlib import Path

import pytest

from stepcrit.answers.rules import check_metrics
from stepcrit.cli.main import run
from stepcrit.ingest.config import parse_config
from tests.cli.checking import CONFIG, TRACE, Project, made
from tests.cli.jobs import cpu_job, job
from tests.ingest.gitmade import run_git

MAIN = ("--base", "main")
SCATTERED = (1000, 1000, 1040, 960, 1020, 980)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Project:
    return made(tmp_path, monkeypatch, capsys)


# --- what passes -----------------------------------------------------------------------------


def test_the_same_bytes_pass_without_any_rule_of_noise(project: Project) -> None:
    project.start()
    assert f"pass {TRACE}: 11 budgets, the baseline's bytes" in project.check(*MAIN, code=0)
    shown = project.check(*MAIN, "--show-passed", code=0)
    assert "the same bytes as the baseline: nothing can have changed" in shown


def test_the_same_events_in_other_bytes_differ_by_nothing(project: Project) -> None:
    project.start({TRACE: job(SCATTERED, syncs=1, copied=64)})
    project.write({TRACE: gzip.compress(gzip.decompress(job(SCATTERED, syncs=1, copied=64)), 1)})
    assert "the baseline's bytes" not in project.check(*MAIN, code=0)
    (trace,) = project.data(*MAIN)["traces"]
    assert {row["outcome"] for row in trace["rows"]} == {"pass"}
    assert all(row["value"] == row["base"] for row in trace["rows"])


def test_what_grew_one_way_shrank_the_other_way(project: Project) -> None:
    one, other = job(SCATTERED, syncs=1), job((1300,) * 6, launches=3)
    found = []
    for before, after in ((one, other), (other, one)):
        project.write({TRACE: after, f"before/{TRACE}": before})
        rows = {r["metric"]: r for r in project.data(TRACE, "--base", "./before")["traces"][0]["rows"]}
        found.append({name: row["value"] - row["base"] for name, row in rows.items()})
        grew, shrank = ("fail", "improved") if before == one else ("improved", "fail")
        assert [rows[name]["outcome"] for name in ("step_time", "kernel_launches", "host_syncs")] == [
            grew,
            grew,
            shrank,
        ]
    assert found[0] == {name: -change for name, change in found[1].items()}


def test_the_same_job_recorded_again_passes(project: Project) -> None:
    project.start()
    project.write({TRACE: job((1000, 1001, 999, 1000, 1001, 999))})
    assert f"{TRACE}: 11 budgets (--show-passed)" in project.check(*MAIN, code=0)
    assert project.row("step_time", *MAIN)["outcome"] == "pass"


def test_what_is_better_by_more_than_the_limit_is_improved(project: Project) -> None:
    project.start({TRACE: job(syncs=2)})
    project.write({TRACE: job((900,) * 6, syncs=1)})
    rows = {name: project.row(name, *MAIN) for name in ("step_time", "host_syncs", "kernel_launches")}
    assert {name: row["outcome"] for name, row in rows.items()} == {
        "step_time": "improved", "host_syncs": "improved", "kernel_launches": "pass",
    }  # fmt: skip
    assert "improved host_syncs: -1, the same in every steady step" in project.check(*MAIN, code=0)


# --- counts ----------------------------------------------------------------------------------


def test_one_more_launch_fails(project: Project) -> None:
    project.start()
    project.write({TRACE: job(launches=3)})
    said = project.check(*MAIN, code=1)
    assert "fail kernel_launches 3 2 no growth" in said
    assert "fail kernel_launches: +1, the same in every steady step" in said
    assert f"explain: stepcrit diff main:{TRACE} {TRACE}" in said
    assert "1 trace: 1 fail · a budget is broken" in said


def test_bytes_are_compared_exactly(project: Project) -> None:
    project.start({TRACE: job(copied=4096)})
    project.write({TRACE: job(copied=4097)})
    row = project.row("h2d_bytes", *MAIN)
    assert (row["value"], row["base"], row["outcome"], row["unit"]) == (4097, 4096, "fail", "bytes")


def test_a_count_that_varies_inside_the_trace_is_judged_as_a_time_is(project: Project) -> None:
    project.start({TRACE: job(launches=(2, 2, 3, 2, 4, 2))})
    project.write({TRACE: job(launches=(2, 2, 3, 3, 4, 3))})
    row = project.row("kernel_launches", *MAIN)
    assert row["outcome"] in ("pass", "inconclusive")
    assert "varies between steps" in row["why"]["template"]


def test_growth_that_the_budget_allows_passes(project: Project) -> None:
    project.start(config=CONFIG + '[budget."*"]\nkernel_launches = { grow_abs = 1 }\n')
    project.write({TRACE: job(launches=3)})
    assert project.row("kernel_launches", *MAIN)["outcome"] == "pass"
    project.write({TRACE: job(launches=4)})
    assert project.row("kernel_launches", *MAIN)["outcome"] == "fail"


# --- times -----------------------------------------------------------------------------------


def test_a_step_that_is_8_percent_longer_fails(project: Project) -> None:
    project.start()
    project.write({TRACE: job((1080, 1081, 1079, 1080, 1081, 1079))})
    said = project.check(*MAIN, code=1)
    assert "fail step_time 1.08 ms 1.00 ms +5.0 %, +10.0 µs" in said.replace("\u202f", " ")
    assert "fail step_time: +80.0 µs (8.0 %); noise ±0.1 % (n=5)" in said.replace("\u202f", " ")
    row = project.row("step_time", *MAIN)
    assert (row["value"], row["base"]) == (1_080_000, 1_000_000)


def test_a_step_that_is_4_percent_longer_passes(project: Project) -> None:
    project.start()
    project.write({TRACE: job((1040,) * 6)})
    assert project.row("step_time", *MAIN)["outcome"] == "pass"


def test_growth_within_three_times_the_noise_is_inconclusive(project: Project) -> None:
    project.start({TRACE: job(SCATTERED)})
    project.write({TRACE: job([1.08 * length for length in SCATTERED])})
    said = project.check(*MAIN, code=4)
    assert "inconclusive step_time: +80.0 µs (8.0 %); noise ±3." in said.replace("\u202f", " ")
    project.write({TRACE: job([1.2 * length for length in SCATTERED])})
    assert project.row("step_time", *MAIN)["outcome"] == "fail"


@pytest.mark.parametrize(
    ("factor", "outcome"), [(1.04, "pass"), (1.08, "inconclusive"), (1.29, "inconclusive"), (1.35, "fail")]
)
def test_of_two_steps_noise_is_not_known_and_taken_as_a_tenth(
    project: Project, factor: float, outcome: str
) -> None:
    project.start({TRACE: job((1000, 1000))})
    project.write({TRACE: job((1000 * factor, 1000 * factor))})
    row = project.row("step_time", *MAIN)
    assert row["outcome"] == outcome
    assert "too few steps to tell noise (n={})" in row["why"]["template"]


def test_growth_has_to_pass_the_relative_and_the_absolute_limit(project: Project) -> None:
    project.start(config=CONFIG + '[budget."*"]\nstep_time = { grow = "5 %", grow_abs = "100 us" }\n')
    project.write({TRACE: job((1080,) * 6)})
    assert project.row("step_time", *MAIN)["outcome"] == "pass"
    project.write({TRACE: job((1110,) * 6)})
    assert project.row("step_time", *MAIN)["outcome"] == "fail"


@pytest.mark.parametrize(("grow", "outcome"), [("8 %", "pass"), ("7.99 %", "fail")])
def test_a_limit_that_is_just_reached_is_kept(project: Project, grow: str, outcome: str) -> None:
    project.start(config=CONFIG + f'[budget."*"]\nstep_time = {{ grow = "{grow}" }}\n')
    project.write({TRACE: job((1080,) * 6)})
    assert project.row("step_time", *MAIN)["outcome"] == outcome


# --- limits of the trace alone -----------------------------------------------------------------


def test_a_limit_is_exact_and_its_line_is_told(project: Project) -> None:
    project.start(
        {TRACE: job(syncs=2)},
        CONFIG + '[budget."*"]\nhost_syncs = { max = 1 }\nstep_time = { max = "1 ms" }\n',
    )
    said = project.check(code=1)
    assert "fail host_syncs 2 – at most 1" in said
    assert "fail host_syncs: 1 more than is allowed (stepcrit.toml:4)" in said
    assert "pass 1 other (--show-passed)" in said


@pytest.mark.parametrize(
    ("metric", "budget", "said"),
    [
        ("step_time", 'max = "999999 ns"', "1 ns more than is allowed"),
        ("step_time", 'min = "1100 us"', "100 us less than has to be"),
        ("gpu_idle_share", 'max = "10 %"', "1.0 points more than is allowed"),  # 110 of 1000 us
        ("gpu_idle_share", 'max = "10.999 %"', "<0.1 points more than is allowed"),
        ("streams", "min = 3", "2 less than has to be"),
    ],
)
def test_by_how_much_a_limit_is_missed_is_told(project: Project, metric: str, budget: str, said: str) -> None:
    project.start(config=f"{CONFIG}preset = 'none'\n[budget.'*']\n'{metric}' = {{ {budget} }}\n")
    assert f"fail {metric}: {said}" in project.check(code=1).replace("µ", "u").replace("\u2009", " ")


@pytest.mark.parametrize(
    ("metric", "budget", "outcome"),
    [
        ("step_time", 'max = "1 ms"', "pass"),
        ("step_time", 'max = "0.999 ms"', "fail"),
        ("step_time", 'max = "0.999 ms", level = "warn"', "warn"),
        ("gpu_busy", 'min = "890 us"', "pass"),
        ("gpu_busy", 'min = "891 us"', "fail"),
        ("gpu_idle_share", 'max = "11 %"', "pass"),
        ("gpu_idle_share", "max = 0.1", "fail"),
        ("gpu_idle", 'max = "110 us"', "pass"),
        ("streams", "max = 1", "pass"),
        ("critical{class=gemm}", 'max = "890 us"', "pass"),
        ("critical{class=gemm}", 'max = "889 us"', "fail"),
        ("critical{class=conv}", "max = 0", "pass"),
        ("critical{op=aten::mm}", 'min = "890 us"', "pass"),
        ("critical_path.by_class_ns.gemm", 'max = "890 us"', "pass"),
        ("critical_path.by_class_ns.conv", "max = 0", "pass"),
        ("operators[aten::mm].device_ns", 'max = "889 us"', "fail"),
        ("operators[aten::mm].calls", "max = 1", "pass"),
        ("step_time{whatif=class:gemm*0}", 'max = "1 ms"', "pass"),
        ("step_time{whatif=class:gemm*1}", 'max = "0.99 ms"', "fail"),
        ("step_time{shrink=class:gemm=1}", 'max = "1 ms"', "pass"),
        ("step_time{add=class:gemm=5us}", 'max = "1 ms"', "pass"),  # the device is idle for longer
        ("step_time{add=class:gemm=1ms}", 'max = "2.88 ms"', "fail"),  # two kernels: 2.89 ms at least
        ("saving{speedup=class:gemm=1x}", "max = 0", "pass"),
        ("saving{remove=class:gemm}", "max = 0", "pass"),  # the host makes the step so long
        ("saving{add=class:gemm=1ms}", "min = 0", "fail"),
        ("saving{set=class:gemm=445us}", "max = 0", "pass"),  # as it is
        ("device_busy_ns.0", 'max = "890 us"', "pass"),
        ("elapsed.median_ns", 'max = "1 ms"', "pass"),
        ("overlap.0.window_ns", 'max = "1 ms"', "pass"),
    ],
)
def test_each_kind_of_metric_has_a_limit(project: Project, metric: str, budget: str, outcome: str) -> None:
    project.start(config=f"{CONFIG}preset = 'none'\n[budget.'*']\n'{metric}' = {{ {budget} }}\n")
    row = project.row(metric)
    assert row["outcome"] == outcome, row
    assert row["effect"] == ("fails" if outcome == "fail" else "none")


@pytest.mark.parametrize(
    "metric",
    [
        "overlap",
        "critical{op=aten::nosuch}",
        "step_time{whatif=aten::nosuch*0}",
        "operators[x].calls",
        "queue.floor_ns",
        "device_busy_ns.5",
        "gpu_idle{cause=tail}",
    ],
)
def test_what_the_trace_lacks_is_unknown_and_does_not_pass(project: Project, metric: str) -> None:
    trace = cpu_job() if metric.startswith("gpu") else job()
    limit = "0.5" if metric == "overlap" else '"1 s"' if "calls" not in metric else "1"
    config = f"{CONFIG}preset = 'none'\n[budget.'*']\n'{metric}' = {{ max = {limit} }}\n"
    project.start({TRACE: trace}, config)
    row = project.row(metric)
    assert (row["outcome"], row["effect"], row["value"]) == ("unknown", "open", None)
    assert row["why"]["values"] != [""]
    project.check(code=4)
    project.write({"stepcrit.toml": config.replace(" }", ', level = "warn" }')})
    assert project.row(metric)["outcome"] == "unknown"
    project.check(code=0)
    project.write({"stepcrit.toml": config.replace(" }", ', level = "off" }')})
    assert "C110" in project.codes()


@pytest.mark.parametrize(
    ("held", "peak"), [([(1, 500), (1, 900), (1, 100)], 900), ([(0, 500)], None), ([], None)]
)
def test_peak_memory_is_the_device_s(project: Project, held: list[tuple[int, int]], peak: int | None) -> None:
    project.start({TRACE: job(held=held)}, CONFIG + '[budget."*"]\npeak_memory = { max = "1 KiB" }\n')
    row = project.row("peak_memory", "--steps", "5")
    assert (row["value"], row["outcome"]) == (peak, "pass" if peak else "unknown")


def test_what_only_the_baseline_knows_does_not_pass(project: Project) -> None:
    """Evidence that was lost is no improvement."""
    project.start({TRACE: job(copied=10)})
    project.write({TRACE: cpu_job()})
    row = project.row("gpu_busy", *MAIN)
    assert (row["outcome"], row["effect"]) == ("unknown", "open")
    project.check(*MAIN, code=4)


@pytest.mark.parametrize(
    ("metric", "budget", "what", "do"),
    [
        ("host_sync", "max = 1", "'host_sync' is no metric", "did you mean host_syncs"),
        ("nothing_like_it", "max = 1", "is no metric", "kernel_launches, graph_launches"),
        ("critical", "max = 1", "needs a subject", "critical{class=…}, critical{op=…}"),
        ("critical{klass=launch}", "max = 0", "is no metric", "critical{class=…}"),
        ("critical{class=lunch}", "max = 0", "'lunch' is no class of work", "did you mean launch"),
        ("gpu_idle{cause=dependancy}", "max = 0", "is no cause of idle time", "did you mean dependency"),
        ("step_time{whatif=aten::mm}", "max = 0", "is no what-if", "SELECTOR*FACTOR"),
        ("saving{set=aten::mm}", "max = 0", "--set needs SELECTOR=AMOUNT", "for example"),
        ("saving{shrunk=aten::mm}", "max = 0", "is no metric", "saving{shrink=…}"),
        (
            "critical_path.by_clas_ns.gemm",
            "max = 0",
            "there is no 'by_clas_ns' in critical_path",
            "did you mean by_class_ns",
        ),
        ("critical_path.by_class_ns.gem", "max = 0", "'gem' is no class of work", "did you mean gemm"),
        ("critical_path.by_class_ns", "max = 0", "is no number", "leave out|there are"),
        ("operators", "max = 0", "is no number", "name a row"),
        ("trust.median", "max = 0", "there is no 'median' in trust", "there are"),
        (
            "host_syncs",
            'max = "1 ms"',
            "host_syncs is a count, and 1 ms is a time",
            "counts are bare numbers",
        ),
        ("step_time", "max = 3", "step_time is a time, and 3 is a bare number", "420 ms"),
        ("h2d_bytes", 'max = "3 %"', "h2d_bytes is a size, and 3 % is a share", "64 MiB"),
        ("overlap", 'min = "3 MiB"', "overlap is a share, and 3 MiB is a size", "5 %"),
        ("overlap", "min = 80", "overlap is a share, and 80 is over 1", 'write "80 %", or 0.8'),
        ("step_time", 'grow_abs = "3 MiB"', "step_time is a time, and 3 MiB is a size", "420 ms"),
    ],
)
def test_a_budget_of_no_metric_or_with_the_wrong_unit_is_wrong_use(
    project: Project, metric: str, budget: str, what: str, do: str
) -> None:
    project.start(config=f"{CONFIG}\n[budget.'*']\n'{metric}' = {{ {budget} }}\n")
    said = project.check(code=2)
    assert "error SC201: " in said
    assert what in said
    assert any(each in said for each in do.split("|"))
    assert "where stepcrit.toml:5" in said


def test_of_several_budgets_the_last_that_fits_counts(project: Project) -> None:
    project.start({"traces/b.json.gz": job(syncs=1)}, CONFIG + (
        '[budget."*"]\nhost_syncs = { max = 0 }\n[budget."traces/b*"]\nhost_syncs = { max = 1 }\n'
        '[budget."other/*"]\nhost_syncs = { max = 9 }\n'
    ))  # fmt: skip
    rows = {t["file"]: t["rows"][0] for t in project.data()["traces"]}
    assert {path: row["written_at"] for path, row in rows.items()} == {
        TRACE: "stepcrit.toml:4", "traces/b.json.gz": "stepcrit.toml:6",
    }  # fmt: skip
    project.check(code=0)


@pytest.mark.parametrize("named", [TRACE, f"./{TRACE}", f".//{TRACE}", "ABSOLUTE"])
@pytest.mark.parametrize("glob", [TRACE, f"./{TRACE}", "./traces/*"])
def test_a_trace_has_the_same_budgets_however_it_is_named(project: Project, named: str, glob: str) -> None:
    project.start(
        config=f'[budget."*"]\nhost_syncs = {{ max = 0 }}\n[budget."{glob}"]\nhost_syncs = {{ max = 1 }}\n'
    )
    project.write({TRACE: job(SCATTERED, syncs=1)})
    path = str(Path(TRACE).resolve()) if named == "ABSOLUTE" else named
    assert f"pass {TRACE}: " in project.check(path, "--base", "", code=0)


@pytest.mark.parametrize(
    ("steps", "launches"), [("median", 2), ("worst", 4), ("all", 5), ("2", 3), ("2-3", 5), ("3", 5)]
)
def test_steps_says_which_steps_are_judged(project: Project, steps: str, launches: int) -> None:
    lengths = (1000, 1000, 1010, 990, 1020, 1000)
    project.start(
        {TRACE: job(lengths, launches=(2, 2, 3, 5, 4, 2))},
        CONFIG + "[budget.'*']\nkernel_launches = { max = 1 }",
    )
    assert project.row("kernel_launches", "--steps", steps)["value"] == launches


def test_a_step_that_is_not_there_does_not_pass(project: Project) -> None:
    project.start(config=CONFIG + "[budget.'*']\nstreams = { max = 1 }\n")
    assert "no step '12-15' in this trace" in project.check("--steps", "12-15", code=4)
    assert "cannot read '15-12'" in project.check("--steps", "15-12", code=2)
    assert "--steps cannot read 'first'" in project.check("--steps", "first", code=2)


# --- what cannot be compared -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("manner", "code", "outcome"), [("error", 4, "inconclusive"), ("warn", 1, "fail"), ("skip", 0, "pass")]
)
def test_another_device_cannot_be_compared(project: Project, manner: str, code: int, outcome: str) -> None:
    project.start(config=CONFIG + f"incomparable = '{manner}'\n")
    project.write({TRACE: job((2000,) * 6, device="GPU B")})
    said = project.check(*MAIN, code=code)
    assert "not comparable with the baseline: devices with work: GPU A in base, GPU B in new (C102)" in said
    assert project.row("step_time", *MAIN)["outcome"] == outcome


def test_a_device_that_is_no_longer_told_may_be_another(project: Project) -> None:
    project.start()
    events = json.loads(gzip.decompress(job()))
    del events["deviceProperties"]
    project.write({TRACE: gzip.compress(json.dumps(events).encode())})
    said = project.check(*MAIN, code=4)
    assert (
        "not comparable with the baseline: devices with work: GPU A in base, not told in new (C102)" in said
    )


@pytest.mark.parametrize(
    "typed", ["./traces/a.json.gz", "{here}/traces/a.json.gz", "traces/../traces/a.json.gz"]
)
def test_budgets_fit_a_path_however_it_was_typed(project: Project, typed: str) -> None:
    strict = "[check]\npreset = 'none'\n[budget.'traces/*']\nstep_time = { max = '1 ns' }\n"
    project.start(config=strict)
    path = typed.format(here=project.folder)
    assert "traces/a.json.gz · fail" in project.check(path, TRACE, code=1)
    assert len(project.data(path, TRACE)["traces"]) == 1


@pytest.mark.parametrize(
    ("level", "closing"), [("warn", "passes, with warnings"), ("off", "nothing is wrong")]
)
def test_what_a_level_lets_pass_is_not_called_right(project: Project, level: str, closing: str) -> None:
    budgets = (
        f"[budget.'*']\nstep_time = {{ max = '1 ns', level = '{level}' }}\nhost_syncs = {{ max = 99 }}\n"
    )
    project.start(config=CONFIG + budgets)
    assert f" · {closing} " in project.check(code=0)


def test_other_profiler_options_cannot_be_compared(project: Project) -> None:
    project.start()
    project.write({TRACE: job(options=("with_stack",))})
    assert "with_stack: not recorded in base, recorded in new (C102)" in project.check(*MAIN, code=4)


def test_other_work_cannot_be_compared_but_counts_that_grew_fail(project: Project) -> None:
    project.start()
    project.write({TRACE: job(extra_op="aten::gelu")})
    assert "1 kind of work is not done equally often" in project.check(*MAIN, code=4)
    assert project.row("step_time", *MAIN)["outcome"] == "inconclusive"
    assert project.row("kernel_launches", *MAIN)["outcome"] == "pass"
    project.write({TRACE: job(extra_op="aten::gelu", launches=3)})
    assert project.row("kernel_launches", *MAIN)["outcome"] == "fail"
    project.check(*MAIN, code=1)


# --- the answer --------------------------------------------------------------------------------


def test_the_worst_trace_comes_first_and_passing_ones_are_one_line(project: Project) -> None:
    project.start({"traces/b.json.gz": job(), "traces/c.json.gz": job()})
    project.write({"traces/b.json.gz": job(launches=3), "traces/c.json.gz": job(device="GPU B")})
    said = project.check(*MAIN, code=1)
    places = [said.index(f"traces/{name}.json.gz") for name in "bca"]
    assert places == sorted(places)
    assert "3 traces: 1 fail, 1 inconclusive, 1 pass · a budget is broken" in said


def test_machine_formats_tell_the_same(project: Project) -> None:
    project.start({TRACE: job(syncs=1)}, CONFIG + "[budget.'*']\nhost_syncs = { max = 0 }\n")
    data = project.data()
    assert (data["exit_code"], data["config"], data["base"]) == (1, "stepcrit.toml", "")
    assert data["traces"][0]["effect"] == "fails"
    titles, first = list(csv.reader(io.StringIO(raw_csv(project))))[:2]
    assert titles[1:4] == ["outcome", "metric", "value"]
    assert first[1:4] == ["fail", "host_syncs", "1"]
    assert "| fail | host" in project.check("--format", "md", code=1).replace("host\\_syncs", "host_syncs")


def raw_csv(project: Project) -> str:
    run(["check", "--format", "csv"])
    return project.capsys.readouterr().out


def test_without_traces_or_rules_it_says_what_to_write(project: Project) -> None:
    assert '[check] traces = ["traces/*.json.gz"]' in project.check(code=2)
    project.write({TRACE: job()})
    assert "nothing was judged (C110)" in project.check(TRACE, code=4)
    assert "no trace is called 'nosuch*'" in project.check("nosuch*", code=2)
    assert "no trace is called 'nosuch.gz'" in project.check(TRACE, "nosuch.gz", code=2)
    assert "there is no such configuration" in project.check(TRACE, "--config", "no.toml", code=2)


def test_a_folder_can_be_the_baseline(project: Project) -> None:
    project.write({TRACE: job(launches=3), f"before/{TRACE}": job()})
    assert "vs ./before" in project.check(TRACE, "--base", "./before", code=1)
    assert "there is no folder './nosuch'" in project.check(TRACE, "--base", "./nosuch", code=2)
    assert "write ./before" in project.check(TRACE, "--base", "before", code=2)


def test_every_row_is_in_a_table_for_machines(project: Project) -> None:
    project.start()
    run(["check", *MAIN, "-o", "all.csv"])
    assert len(Path("all.csv").read_text(encoding="utf-8").splitlines()) == 12


def test_examples_of_the_help_work(project: Project) -> None:
    project.start({f"before/{TRACE}": job()}, CONFIG + '[budget."*"]\nhost_syncs = { max = 1 }\n')
    run_git(project.folder, "update-ref", "refs/remotes/origin/main", "main")
    run(["check", "--help"])
    text = " ".join(project.capsys.readouterr().out.split())
    found = re.search(r"Examples: (.*?) Arguments:", text)
    assert found is not None
    for example in found[1].split("; "):
        program, verb, *argv = shlex.split(example)
        assert (program, verb) == ("stepcrit", "check")
        project.check(*argv, code=0)


def test_the_example_of_readme_can_be_meant() -> None:
    text = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```toml\n(# stepcrit\.toml.*?)```", text, re.DOTALL)
    config = parse_config(example.encode(), "stepcrit.toml")
    check_metrics(config)
    assert len(config.budgets) == 4


def test_budgets_of_growth_without_a_baseline_are_told_to_judge_nothing(project: Project) -> None:
    project.start(config=CONFIG + "[budget.'*']\nstep_time = { grow = '5 %' }\nstreams = { max = 1 }\n")
    assert "1 budget is of growth, and there is no baseline: give --base" in project.check(code=0)
    assert "of growth" not in project.check(*MAIN, code=0)


def test_the_command_that_explains_can_be_typed_as_it_stands(project: Project) -> None:
    project.start({"traces/b c.json.gz": job()})
    project.write({"traces/b c.json.gz": job(launches=3)})
    assert "explain: stepcrit diff 'main:traces/b c.json.gz' 'traces/b c.json.gz'" in project.check(
        *MAIN, code=1
    )


def test_it_tells_where_its_time_went(project: Project) -> None:
    project.start()
    run(["check", *MAIN, "--timings"])
    err = project.capsys.readouterr().err
    assert [line.split()[0] for line in err.splitlines()][-1] == "all"


def test_a_trace_that_is_too_large_fails(project: Project) -> None:
    project.start(config=CONFIG + "max_trace_size = '100 B'\n")
    assert "at most 100 B are allowed: make it smaller with stepcrit slim (C107)" in project.check(
        code=1
    ).replace("\u202f", " ")
