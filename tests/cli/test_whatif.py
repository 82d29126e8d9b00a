"""`stepcrit whatif` as a user types it: exit codes, JSON, words, formats, combinations, hostile names."""

from __future__ import annotations

import csv
import gzip
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stepcrit.cli.main import run
from tests.report.hostile import NAMES

ROOT = Path(__file__).parents[2]
SIMULATED = ROOT / "fixtures" / "simulated"
TRACE = str(SIMULATED / "device_bound.json.gz")
HOST_BOUND = str(SIMULATED / "host_bound.json.gz")
ELEMENTWISE = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)"


def out_of(capsys: pytest.CaptureFixture[str], *argv: str, code: int = 0) -> str:
    assert run(["whatif", *argv]) == code
    captured = capsys.readouterr()
    if code:
        assert captured.out == ""
        assert "Traceback" not in captured.err
    return captured.err if code else captured.out


def data_of(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, Any]:
    return dict(json.loads(out_of(capsys, *argv, "--json"))["data"])


def flat(text: str) -> str:
    """Without the line breaks that the screen's width makes."""
    return " ".join(text.split())


# --- JSON ----------------------------------------------------------------------------------------


def test_json_has_what_the_issue_names(capsys: pytest.CaptureFixture[str]) -> None:
    data = data_of(capsys, TRACE, "--shrink", "aten::mm=0.5")
    assert set(data["predicted_ns"]) == set(data["saving_ns"]) == {"low", "high"}
    assert set(data["matched"]) == {"activities", "total_ns", "on_path_ns"}
    assert {"period_ns", "ceiling_ns", "takes_over", "model", "assumptions", "trust"} <= set(data)
    assert (data["claim"], data["model"], data["curve"]) == ("modelled", "order", [])
    assert data["assumptions"]
    assert {"evidence_share", "timing_share", "starts_explained_share"} <= set(data["trust"])
    numbers = [
        data["period_ns"],
        data["ceiling_ns"],
        *data["predicted_ns"].values(),
        *data["saving_ns"].values(),
    ]
    assert all(isinstance(n, int) for n in [*numbers, *data["matched"].values()])


@pytest.mark.parametrize(
    "change", ["--shrink=class:compute=0.5", "--remove=class:gap", "--add=class:gemm=10us"]
)
def test_prediction_is_the_period_less_the_saving(capsys: pytest.CaptureFixture[str], change: str) -> None:
    for trace in (TRACE, str(SIMULATED / "two_streams.json.gz")):
        data = data_of(capsys, trace, change)
        assert data["predicted_ns"]["low"] == data["period_ns"] - data["saving_ns"]["high"]
        assert data["predicted_ns"]["high"] == data["period_ns"] - data["saving_ns"]["low"]
        assert data["saving_ns"]["low"] <= data["saving_ns"]["high"]


def test_what_takes_over_sums_to_the_step_after(capsys: pytest.CaptureFixture[str]) -> None:
    """One step alone: the conservative prediction is the new path, class by class."""
    data = data_of(capsys, TRACE, "--shrink", "class:gemm=0.5", "--step", "-1")
    assert data["mean_of_periods"] == 0
    parts = [row["on_path_ns"] for row in data["takes_over"]]
    assert sum(parts) == data["predicted_ns"]["high"]
    assert parts == sorted(parts, reverse=True)
    assert all(part > 0 for part in parts)


def test_table_of_what_takes_over_adds_up(capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(out_of(capsys, TRACE, "--shrink", "class:gemm=0.5", "--json"))
    after = sum(row["on_path_ns"] for row in document["data"]["takes_over"])
    text = out_of(capsys, TRACE, "--shrink", "class:gemm=0.5", "--format", "csv")
    rows = list(csv.reader(io.StringIO(text)))
    head = next(i for i, row in enumerate(rows) if "after_ns" in row)
    body = rows[head + 1 : next(i for i in range(head, len(rows)) if i == len(rows) - 1 or not rows[i]) + 1]
    column = rows[head].index("after_ns")
    name = rows[head].index("class")
    numbers = {row[name]: int(row[column]) for row in body if len(row) > column}
    assert numbers.pop("total", after) == after
    assert sum(numbers.values()) == after


def test_matched_says_how_much_and_how_much_of_it_is_on_the_path(capsys: pytest.CaptureFixture[str]) -> None:
    data = data_of(capsys, TRACE, "--shrink", "class:gemm=0.5")
    matched, change = data["matched"], data["changes"][0]
    assert matched["activities"] == change["device_activities"] > 0
    assert change["host_ranges"] == 0
    assert 0 < matched["on_path_ns"] <= data["period_ns"] * 1.05
    assert matched["on_path_ns"] <= matched["total_ns"]


def test_matched_counts_nothing_twice(capsys: pytest.CaptureFixture[str]) -> None:
    once = data_of(capsys, TRACE, "--shrink", "class:gemm=0.5")["matched"]
    both = data_of(capsys, TRACE, "--shrink", "class:gemm=0.5", "--shrink", "class:gemm=0.5")["matched"]
    assert once == both


# --- words ----------------------------------------------------------------------------------------


def test_answer_says_in_words_what_is_changed_and_what_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    text = flat(out_of(capsys, TRACE, "--shrink", "aten::mm=0.5"))
    count = data_of(capsys, TRACE, "--shrink", "aten::mm=0.5")["matched"]["activities"]
    assert f"the {count} device activities of aten::mm take 0.5 × their time; host time unchanged" in text
    assert "in every step; compared is the mean of 3 steady periods" in text
    for word in ("modelled", "ceiling", "Assumed", "no contention", "the path is known by", "saving +"):
        assert word in text


def test_host_time_is_said_to_be_host_time(capsys: pytest.CaptureFixture[str]) -> None:
    text = flat(out_of(capsys, TRACE, "--shrink", "aten::mm=0.5", "--side", "host"))
    assert "host ranges of aten::mm take 0.5 × their time; device time unchanged" in text
    assert "the step does not get shorter without what is selected: it all has slack" in text
    assert "unchanged" not in flat(out_of(capsys, TRACE, "--shrink", "aten::mm=0.5", "--side", "both"))


def test_untracked_time_is_not_said_to_leave_the_host_unchanged(capsys: pytest.CaptureFixture[str]) -> None:
    assert "host time unchanged" not in flat(out_of(capsys, HOST_BOUND, "--shrink", "class:untracked=0.5"))


def test_changed_launch_calls_are_not_said_to_be_unchanged(capsys: pytest.CaptureFixture[str]) -> None:
    text = flat(out_of(capsys, HOST_BOUND, "--shrink", "aten::mm=0.5", "--with-launch"))
    assert "host time unchanged" not in text


def test_one_step_alone_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    text = flat(out_of(capsys, TRACE, "--shrink", "aten::mm=0.5", "--step", "-1"))
    label = json.loads(out_of(capsys, TRACE, "--shrink", "aten::mm=0.5", "--step", "-1", "--json"))["data"][
        "step"
    ]
    assert f"in {label} alone" in text
    assert "every step" not in text


def test_one_step_alone_is_not_said_to_lack_a_steady_state(capsys: pytest.CaptureFixture[str]) -> None:
    text = flat(out_of(capsys, TRACE, "--shrink", "aten::mm=0.5", "--step", "-1"))
    assert "there is no steady state" not in text


def test_what_is_not_in_the_chosen_step_is_not_said_to_have_slack(capsys: pytest.CaptureFixture[str]) -> None:
    text = flat(out_of(capsys, TRACE, "--shrink", "step:ProfilerStep#3=0.5", "--step", "ProfilerStep#6"))
    assert "slack" not in text


# --- options ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("--shrink=aten::mm=0.5", "--speedup=aten::mm=2x"),
        ("--shrink=aten::mm=0.5", "--shrink=aten::mm=1/2"),
        ("--shrink=aten::mm=0", "--set=aten::mm=0ns"),
        ("--add=aten::mm=1ms", "--add=aten::mm=1000us"),
        (f"--shrink={ELEMENTWISE}=0.5", "--shrink=void at::native::vectorized_elementwise_kernel*=0.5"),
        ("--shrink=aten::mm=0.5", "--shrink=re:^aten::mm$=0.5"),
    ],
)
def test_two_ways_to_say_the_same(capsys: pytest.CaptureFixture[str], one: str, other: str) -> None:
    first, second = data_of(capsys, TRACE, one), data_of(capsys, TRACE, other)
    for key in ("predicted_ns", "ceiling_ns", "matched", "takes_over"):
        assert first[key] == second[key]


def test_several_changes_are_replayed_together(capsys: pytest.CaptureFixture[str]) -> None:
    one, two = ["--shrink", "class:gemm=0.5"], ["--shrink", "class:elementwise=0.5"]
    single = [data_of(capsys, TRACE, *change) for change in (one, two)]
    both = data_of(capsys, TRACE, *one, *two)
    assert [c["selector"] for c in both["changes"]] == ["class:gemm", "class:elementwise"]
    assert both["matched"]["total_ns"] == sum(s["matched"]["total_ns"] for s in single)
    assert max(s["saving_ns"]["high"] for s in single) < both["saving_ns"]["low"]
    assert both["saving_ns"]["low"] <= sum(s["saving_ns"]["high"] for s in single) + 10


def test_curve_rises_from_nothing_and_flattens_at_the_ceiling(capsys: pytest.CaptureFixture[str]) -> None:
    data = data_of(capsys, TRACE, "--shrink", "class:gemm=0.5", "--curve")
    assert [p["taken_share"] for p in data["curve"]] == [n / 10 for n in range(11)]
    lows = [p["saving_ns"]["low_ns"] for p in data["curve"]]
    assert lows[0] == 0
    assert lows == sorted(lows)
    assert data["curve"][-1]["saving_ns"]["high_ns"] <= data["ceiling_ns"]
    assert "Saving curve" in out_of(capsys, TRACE, "--shrink", "class:gemm=0.5", "--curve")


def test_launch_calls_change_on_demand(capsys: pytest.CaptureFixture[str]) -> None:
    alone = data_of(capsys, HOST_BOUND, "--remove", "aten::mm")
    launched = data_of(capsys, HOST_BOUND, "--remove", "aten::mm", "--with-launch")
    assert launched["saving_ns"]["low"] > alone["saving_ns"]["low"]


def test_self_and_side_narrow_the_selection(capsys: pytest.CaptureFixture[str]) -> None:
    def total(*argv: str) -> int:
        return int(data_of(capsys, HOST_BOUND, "--shrink", "aten::linear=0.5", *argv)["matched"]["total_ns"])

    assert total("--side", "device") + total("--side", "host") == total("--side", "both")
    assert total("--side", "host", "--self") < total("--side", "host")


def test_changes_combine_in_the_order_given(capsys: pytest.CaptureFixture[str]) -> None:
    data = data_of(capsys, TRACE, "--set", "class:gemm=100us", "--shrink", "class:gemm=0.5")
    assert [c["operation"] for c in data["changes"]] == ["set", "scale"]


# --- formats ---------------------------------------------------------------------------------------


def test_markdown_and_csv_hold_the_same_tables(capsys: pytest.CaptureFixture[str]) -> None:
    argv = (TRACE, "--shrink", "class:gemm=0.5", "--curve")
    markdown, table = out_of(capsys, *argv, "--format", "md"), out_of(capsys, *argv, "--format", "csv")
    for title in ("Selected", "Prediction", "What takes over", "Saving curve"):
        assert title in markdown
    for column in (
        "total_ns",
        "on_path_ns",
        "before_ns",
        "after_ns",
        "less_ns",
        "taken_share",
        "saving_low_ns",
    ):
        assert column in table
    assert "class:gemm" in markdown


def test_output_is_the_same_every_time_and_goes_where_it_is_sent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = (TRACE, "--shrink", "class:gemm=0.5", "--json")
    path = tmp_path / "answer.json"
    assert out_of(capsys, *argv, "-o", str(path)) == ""
    assert json.loads(path.read_text(encoding="utf-8"))["data"] == json.loads(out_of(capsys, *argv))["data"]


# --- wrong use -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        ((TRACE,), "nothing to change"),
        ((), "nothing to change"),
        ((TRACE, "--rank", "--inject", "aten::mm"), "--rank and --inject are different questions"),
        ((TRACE, "--rank", "--shrink", "aten::mm=0.5"), "different questions"),
        ((TRACE, "--target", "1ms", "--rank"), "different questions"),
        ((TRACE, "--target", "1"), "not a duration"),
        ((TRACE, "--rank", "--by", "module"), "with_stack"),
        ((TRACE, "--rank", "--by", "collective"), "no collectives"),
        ((TRACE, "--rank", "--top", "0"), "top"),
        ((TRACE, "--rank", "--save", "p.json"), "--save keeps the prediction of a change"),
        ((TRACE, "--model", "comm:k=2", "--curve"), "--curve is about a selection"),
        ((TRACE, "--inject", "class:gap"), "gaps cannot be set or lengthened"),
        ((TRACE, "--inject", "nowhere"), "nothing matches"),
        ((TRACE, "--shrink", "aten::mm=0.5", "--model", "fast"), "is no model"),
        ((TRACE, "--shrink", "aten::mm=0.5", "--model", "queue:0"), "no depth of a queue"),
        ((TRACE, "--shrink", "aten::mm=0.5", "--model", "free", "--model", "queue:9"), "free is a bound"),
        ((TRACE, "--shrink", "aten::mm"), "SELECTOR=AMOUNT"),
        ((TRACE, "--shrink", "aten::mm=fast"), "no factor"),
        ((TRACE, "--shrink", "aten::mm=-0.5"), "no factor"),
        ((TRACE, "--speedup", "aten::mm=0x"), "no factor"),
        ((TRACE, "--set", "aten::mm=5"), "not a duration"),
        ((TRACE, "--shrink", "aten::mmm=0.5"), "aten::mm"),
        ((TRACE, "--shrink", "aten::mm=0.5", "--shrink", "nowhere=0.5"), "nothing matches 'nowhere'"),
        ((TRACE, "--remove", "aten::mm=0.5"), "nothing matches 'aten::mm=0.5'"),
        ((TRACE, "--shrink", "class:gem=0.5"), "gemm"),
        ((TRACE, "--shrink", "re:(=0.5"), "regular expression"),
        ((TRACE, "--shrink", "step:99=0.5"), "no step '99'"),
        ((TRACE, "--shrink", "module:x=0.5"), "with_stack"),
        ((TRACE, "--shrink", "aten::mm=0.5", "--side", "left"), "side"),
        ((TRACE, "--shrink", "aten::mm=0.5", "--step", "99"), "no step '99'"),
        ((TRACE, "--shrink", "aten::mm=0.5", "--device-only", "--side", "host"), "nothing matches"),
    ],
)
def test_wrong_use_is_exit_code_2_and_says_what_would_be_right(
    capsys: pytest.CaptureFixture[str], argv: tuple[str, ...], says: str
) -> None:
    assert says in out_of(capsys, *argv, code=2)


def test_unusable_input_is_exit_code_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.json"
    path.write_text("hello", encoding="utf-8")
    assert "SC3" in out_of(capsys, str(path), "--shrink", "a=0.5", code=3)


def test_pattern_without_end_is_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stepcrit.link.patterns.PATTERN_SECONDS", 0.1)
    path = renamed(tmp_path, "a" * 60 + "!")
    assert "takes too long" in out_of(capsys, path, "--shrink", "re:^(a|a|aa)+$=0.5", code=2)


@pytest.mark.parametrize(
    "change",
    [
        "--set=class:gap=1us",
        "--add=class:stream gap=1us",
        "--shrink=aten::mm=1e-30",
        "--shrink=aten::mm=1e30",
        "--set=aten::mm=1e30s",
        f"--shrink=re:{'(' * 5000}a{')' * 5000}=0.5",
    ],
)
def test_odd_amounts_and_patterns_are_no_bug_of_ours(capsys: pytest.CaptureFixture[str], change: str) -> None:
    code = run(["whatif", TRACE, change])
    capsys.readouterr()
    assert code in (0, 2)


# --- names ---------------------------------------------------------------------------------------------


def renamed(folder: Path, name: str) -> str:
    """The host-bound loop with one operator called something else."""
    trace = json.loads(gzip.decompress(Path(HOST_BOUND).read_bytes()))
    for event in trace["traceEvents"]:
        if event.get("name") == "aten::mm":
            event["name"] = name
    path = folder / "renamed.json"
    path.write_text(json.dumps(trace), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    "name", [n for n in NAMES if n and len(n) < 1000 and "\ud800" not in n], ids=lambda n: ascii(n)[:20]
)
def test_hostile_names_are_selected_exactly_and_shown_harmlessly(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    path = renamed(tmp_path, name)
    text = out_of(capsys, path, "--shrink", f"{name}=0.5", "--side", "host")
    shown = {c for c in text if ord(c) < 32 or 0x7F <= ord(c) < 0xA0} - {"\n"}
    assert not shown
    data = data_of(capsys, path, "--shrink", f"{name}=0.5", "--side", "host")
    assert data["changes"][0]["selector"] == name
    plain = data_of(capsys, HOST_BOUND, "--shrink", "aten::mm=0.5", "--side", "host")
    assert data["saving_ns"] == plain["saving_ns"]


def test_near_names_that_are_hostile_are_shown_harmlessly(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    err = out_of(capsys, renamed(tmp_path, "aten::evil\x1b[31m\x07"), "--shrink", "aten::evi=0.5", code=2)
    assert "aten::evil" in err
    assert "\x1b" not in err


def test_whatif_loads_neither_pandas_nor_networkx() -> None:
    code = f"import sys; from stepcrit.cli.main import run; run(['whatif', {TRACE!r}, '--shrink', 'aten::mm=0.5']); print([m for m in ('pandas', 'networkx') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.splitlines()[-1] == "[]"


# --- other questions, other machines -------------------------------------------------------------


def test_rank_tells_what_whatif_tells_of_each(capsys: pytest.CaptureFixture[str]) -> None:
    """The same numbers by the other way to ask, on the side that the row names."""
    data = data_of(capsys, HOST_BOUND, "--rank", "--top", "4")
    assert len(data["interventions"]) == 4
    for row in data["interventions"]:
        if row["name"].startswith("("):
            continue
        one = data_of(capsys, HOST_BOUND, "--shrink", f"{row['name']}=0.5", "--self", "--side", row["side"])
        if one["matched"]["activities"] == row["calls"] * one["mean_of_periods"]:
            assert row["saving_half_ns"]["low_ns"] == pytest.approx(one["saving_ns"]["low"], abs=200)
    savings = [row["saving_free_ns"]["low_ns"] for row in data["interventions"]]
    assert savings == sorted(savings, reverse=True)


@pytest.mark.parametrize("by", ["kernel", "class", "op"])
def test_rank_screen_says_how_sure_the_order_is(capsys: pytest.CaptureFixture[str], by: str) -> None:
    words = flat(out_of(capsys, TRACE, "--rank", "--by", by, "--top", "3"))
    assert "replayed to find them: no other saves more than" in words
    assert "savings do not add up" in words


def test_target_without_a_change_names_the_smallest(capsys: pytest.CaptureFixture[str]) -> None:
    data = data_of(capsys, TRACE, "--target", "2ms", "--by", "kernel")
    name, taken = (data["alone"][0]["parts"][0][key] for key in ("name", "taken_share"))
    kept = data_of(capsys, TRACE, "--shrink", f"{name}={1 - taken:.3f}")
    assert kept["predicted_ns"]["high"] <= 2_000_000
    less = data_of(capsys, TRACE, "--shrink", f"{name}={1 - taken + 0.001:.3f}")
    assert less["predicted_ns"]["high"] > 2_000_000
    assert [way["parts"][0]["taken_share"] for way in data["alone"]] == sorted(
        way["parts"][0]["taken_share"] for way in data["alone"]
    )


def test_target_with_a_change_says_how_much_of_it_is_needed_or_that_it_is_not_enough(
    capsys: pytest.CaptureFixture[str],
) -> None:
    data = data_of(capsys, TRACE, "--shrink", "aten::mm=0.9", "--target", "2ms")
    taken = data["target"]["taken_share"]
    assert (
        data_of(capsys, TRACE, "--shrink", f"aten::mm={1 - taken:.3f}")["predicted_ns"]["high"] <= 2_000_000
    )
    never = out_of(capsys, TRACE, "--shrink", "aten::mm=0.9", "--target", "10us")
    assert "not reachable by this change alone" in flat(never)
    assert "the step is there already" in flat(
        out_of(capsys, TRACE, "--shrink", "aten::mm=0.9", "--target", "9s")
    )


def test_target_out_of_reach_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    words = flat(out_of(capsys, TRACE, "--target", "1us"))
    assert "out of reach: with every op gone the step still takes" in words
    assert "then its path is" in words


def test_inject_tells_the_room_of_a_selection(capsys: pytest.CaptureFixture[str]) -> None:
    """The host runs ahead of the device: its calls may take longer, and a little more costs nothing."""
    data = data_of(capsys, TRACE, "--inject", "class:launch")
    free = data["free_ns"]["low"]
    assert 0 < free <= data["free_ns"]["high"]
    assert data_of(capsys, TRACE, "--add", f"class:launch={free}ns")["saving_ns"]["low"] == 0
    assert data_of(capsys, TRACE, "--add", f"class:launch={4 * free}ns")["saving_ns"]["low"] < 0
    assert "may take" in flat(out_of(capsys, TRACE, "--inject", "class:launch"))


def test_models_are_named_with_what_may_be_claimed_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    argv = (TRACE, "--shrink", "aten::mm=0.5", "--model", "free", "--model", "lanes", "--model", "queue:1000")
    assert "free is a bound by itself" in out_of(capsys, *argv, code=2)
    words = flat(out_of(capsys, *argv[:-2]))
    assert "free (bound):" in words
    assert "lanes (bound):" in words
    data = data_of(capsys, *argv[:-2])
    assert data["bounds"]["free_ns"] <= data["bounds"]["elapsed_ns"]
    assert [(m["name"], m["claim"]) for m in data["models"]] == [("free", "bound"), ("lanes", "bound")]


def test_queue_of_its_own_depth_changes_nothing_and_a_shallower_one_is_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    trace = str(SIMULATED / "full_queue_16.json.gz")
    plain = data_of(capsys, trace, "--shrink", "class:elementwise=0.5")
    same = data_of(capsys, trace, "--shrink", "class:elementwise=0.5", "--model", "queue:16")
    assert same["saving_ns"]["low"] == pytest.approx(plain["saving_ns"]["low"], rel=0.01)
    assert same["baseline_saving_ns"] == {"high": 0, "low": 0}
    one = ("--shrink", "class:elementwise=0.5", "--model", "queue:1")
    assert data_of(capsys, trace, *one)["baseline_saving_ns"]["low"] < 0
    assert "with nothing changed this machine takes" in flat(out_of(capsys, trace, *one))


def test_faster_links_alone_are_a_question(capsys: pytest.CaptureFixture[str]) -> None:
    trace = str(SIMULATED / "ddp_tail.rank1.json.gz")
    data = data_of(capsys, trace, "--model", "comm:k=2")
    assert data["changes"] == []
    assert data["matched"] is None
    assert 0 == data["saving_ns"]["low"] < data["saving_ns"]["high"] <= data["ceiling_ns"]
    known = data_of(capsys, trace, "--model", "comm:k=2,alpha=0us")
    assert known["saving_ns"]["low"] == pytest.approx(data["saving_ns"]["high"], rel=0.02)
    assert "faster links change nothing here" in out_of(capsys, TRACE, "--model", "comm:k=2", code=3)


def test_slowdown_that_the_trace_does_not_show_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    argv = (TRACE, "--shrink", "aten::mm=0.5", "--model", "contend")
    assert "slowdown by communication" in out_of(capsys, *argv, code=3)
    told = str(SIMULATED / "ddp_tail.rank1.json.gz")
    data = data_of(capsys, told, "--shrink", "class:comm=0.5", "--model", "contend:1.5")
    plain = data_of(capsys, told, "--shrink", "class:comm=0.5")
    assert (
        data["saving_ns"]["low"] > plain["saving_ns"]["low"]
    )  # compute runs free of the communication that is gone


def test_loader_is_what_a_change_of_the_input_changes(capsys: pytest.CaptureFixture[str]) -> None:
    trace = str(ROOT / "fixtures" / "recorded" / "loader_halved_before.json.gz")
    words = flat(out_of(capsys, trace, "--shrink", "class:input=0.5"))
    assert "loader workers take 0.5 × their time over a batch" in words
    data = data_of(capsys, trace, "--shrink", "class:input=0.5")
    assert data["predicted_ns"]["high"] == pytest.approx(data["period_ns"] / 2, rel=0.02)
    host = data_of(capsys, trace, "--shrink", "class:host op=0")  # the loader's pace is kept
    assert host["saving_ns"]["low"] < 0.01 * host["period_ns"]


# --- a prediction kept -----------------------------------------------------------------------------


def test_saved_prediction_holds_what_can_refute_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "prediction.json"
    data = data_of(capsys, TRACE, "--shrink", "aten::mm=0.5", "--remove", "class:gap", "--save", str(file))
    kept = json.loads(file.read_text(encoding="utf-8"))
    assert kept["schema"] == "stepcrit/prediction/1"
    assert kept["inputs"][0]["sha256"]
    for key in ("predicted_ns", "saving_ns", "ceiling_ns", "assumptions", "trust", "step"):
        assert kept["data"][key] == data[key]
    assert kept["data"]["asked"]["changes"] == [
        {"option": "--shrink", "value": "aten::mm=0.5"},
        {"option": "--remove", "value": "class:gap"},
    ]
    assert kept["data"]["boundary"] == "device"
    refuted = kept["data"]["refuted_by"]
    assert "outside" in refuted[0]
    assert all(len(words) > 40 for words in refuted)


def test_saved_prediction_never_overwrites_the_trace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "t.json.gz"
    trace.write_bytes(Path(TRACE).read_bytes())
    argv = (str(trace), "--shrink", "aten::mm=0.5", "--save", str(trace))
    assert "would overwrite the trace" in out_of(capsys, *argv, code=2)
    assert trace.read_bytes() == Path(TRACE).read_bytes()
    assert "SC" in out_of(capsys, *argv[:-1], str(tmp_path / "no" / "folder.json"), code=5)


def test_prediction_and_answer_do_not_share_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "p.json")
    argv = (TRACE, "--shrink", "aten::mm=0.5", "--save", file, "-o", file)
    assert "--save and -o name the same file" in out_of(capsys, *argv, code=2)
    assert not Path(file).exists()


def test_faster_links_and_shorter_collectives_multiply(capsys: pytest.CaptureFixture[str]) -> None:
    """Half the time over links twice as fast is a quarter: the same as --shrink 0.25, where nothing waits."""
    trace = str(SIMULATED / "ddp_tail.rank1.json.gz")
    both = data_of(capsys, trace, "--shrink", "class:comm=0.5", "--model", "comm:k=2,alpha=0us")
    half = data_of(capsys, trace, "--shrink", "class:comm=0.5")
    quarter = data_of(capsys, trace, "--shrink", "class:comm=0.25")
    assert half["saving_ns"]["low"] < both["saving_ns"]["low"] <= quarter["saving_ns"]["high"]
    assert both["saving_ns"]["low"] == pytest.approx(quarter["saving_ns"]["low"], rel=0.05)


@pytest.mark.parametrize(
    "change",
    ["--remove=class:gap", "--remove=class:launch", "--remove=class:sync", "--shrink=class:gemm=0.5"],
)
def test_no_bound_lies_above_the_prediction(capsys: pytest.CaptureFixture[str], change: str) -> None:
    checked = 0
    for name in ("host_bound", "two_streams", "ddp_tail.rank0", "dataloader_bound", "item_sync"):
        if "sync" in change and name != "item_sync":
            continue
        argv = (change, "--model", "free", "--step", "-1", "--boundary", "host")
        data = data_of(capsys, str(SIMULATED / f"{name}.json.gz"), *argv)
        if data["mean_of_periods"]:
            continue  # a bound is of the step alone
        checked += 1
        assert data["bounds"]["free_ns"] <= data["predicted_ns"]["high"]
        assert data["bounds"]["busy_ns"] <= data["predicted_ns"]["high"]
    assert checked


def test_production_is_not_followed_on_another_machine(capsys: pytest.CaptureFixture[str]) -> None:
    trace = str(ROOT / "fixtures" / "recorded" / "loader_halved_before.json.gz")
    argv = (trace, "--shrink", "class:input=0.5", "--model", "queue:8")
    assert "does not go with --model queue" in out_of(capsys, *argv, code=2)


@pytest.mark.parametrize("question", [("--rank",), ("--target", "1ms")])
def test_options_of_a_selection_are_refused_where_nothing_is_selected(
    capsys: pytest.CaptureFixture[str], question: tuple[str, ...]
) -> None:
    for option in (("--side", "host"), ("--self",), ("--with-launch",)):
        assert "are about a selection" in out_of(capsys, TRACE, *question, *option, code=2)


def test_class_of_waits_is_the_same_on_its_only_side(capsys: pytest.CaptureFixture[str]) -> None:
    trace = str(SIMULATED / "item_sync.json.gz")
    both = [data_of(capsys, trace, "--shrink", "class:sync=0", *side) for side in ((), ("--side", "host"))]
    assert both[0]["saving_ns"] == both[1]["saving_ns"]
    assert both[0]["matched"] == both[1]["matched"]


def test_amounts_are_told_per_activity_and_nested_ranges_are_part_of_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`aten::linear` runs once for each of four layers in each of five steps, with aten::addmm nested in it."""
    words = flat(out_of(capsys, HOST_BOUND, "--set", "aten::linear=1us", "--side", "host"))
    assert "the 20 host ranges of aten::linear take 1.00 µs each" in words
    data = data_of(capsys, HOST_BOUND, "--set", "aten::linear=1us", "--side", "host")
    assert (data["matched"]["activities"], data["changes"][0]["host_ranges"]) == (20, 20)


def test_work_that_was_not_recorded_is_said_to_be_missing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A job that launches on a device, recorded without device activities: host time is all there is."""
    with gzip.open(HOST_BOUND) as stream:
        raw = json.loads(stream.read())
    raw["traceEvents"] = [
        e for e in raw["traceEvents"] if not str(e.get("cat", "")).startswith(("kernel", "gpu_"))
    ]
    file = tmp_path / "host_only.json"
    file.write_text(json.dumps(raw), encoding="utf-8")
    for question in (
        ("--shrink", "aten::mm=0.5"),
        ("--rank",),
        ("--target", "1us"),
        ("--inject", "aten::mm"),
    ):
        assert "device work was not recorded" in flat(out_of(capsys, str(file), *question))
    assert "not recorded" not in flat(out_of(capsys, HOST_BOUND, "--rank"))
