"""`stepcrit init`: budgets are what is measured, with the room that the trace's own noise asks for, and are kept."""

from __future__ import annotations

import json
import math
import tomllib
from decimal import Decimal
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepcrit.cli.main import run
from stepcrit.ingest.amounts import read_amount
from stepcrit.model.section import Unit
from stepcrit.report.safe import is_unsafe
from stepcrit.report.tomltext import amount, comment, toml_list, toml_string
from tests.e2e.changed import Document, cut, one_more_launch, slower, trace

SIMULATED = Path(__file__).parents[2] / "fixtures" / "simulated"
RECORDED = Path(__file__).parents[2] / "fixtures" / "recorded"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a trace."""
    monkeypatch.chdir(tmp_path)
    Path("traces").mkdir()
    Path("traces/rank0.json.gz").write_bytes(trace())
    return tmp_path


def written(name: str = "stepcrit.toml") -> dict[str, Any]:
    return tomllib.loads(Path(name).read_text(encoding="utf-8"))


def budgets(path: str = "traces/rank0.json.gz") -> dict[str, Any]:
    return written()["budget"][path]


def test_budgets_are_what_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    """The fixture: 23 kernels and a copy of 60 000 bytes in each step, 742 418 ns in the median, and little noise."""
    assert run(["init"]) == 0
    assert capsys.readouterr().out == (
        "wrote stepcrit.toml: budgets of 1 trace, which keep them\nnext: stepcrit check\n"
    )
    assert budgets() == {
        "kernel_launches": {"max": 23},
        "host_syncs": {"max": 0},
        "h2d_bytes": {"max": "60000 B"},
        "d2h_bytes": {"max": "0 B"},
        "cuda_mallocs": {"max": 0},
        "streams": {"max": 1},
        "step_time": {"max": "780 us"},  # 742 418 x 1.05 = 779 538.9
        "gpu_idle_share": {"max": "86.0 %", "level": "warn"},  # (1 - 134 330 / 742 005) x 1.05 = 0.8599
    }
    assert written()["check"] == {
        "traces": ["traces/**/*.json.gz"], "base": "", "preset": "recommended", "steps": "median",
        "incomparable": "error", "max_trace_size": "2 MiB",
    }  # fmt: skip
    text = Path("stepcrit.toml").read_text(encoding="utf-8")
    assert "kernel_launches = { max = 23 }  # 23 now, the same in 4 steady steps\n" in text
    assert (
        'step_time = { max = "780 us" }  # 742 us now; noise <0.1 % of 4 steps, so 5.0 % more is room\n'
        in text
    )
    assert text.isascii()


def test_what_is_written_passes_for_every_fixture(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (*SIMULATED.glob("*.json.gz"), *list(RECORDED.glob("*.json.gz"))[::5]):
        (here / "traces" / path.name).write_bytes(path.read_bytes())
    assert run(["init"]) == 0
    assert run(["check", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out.partition("check\n")[2])
    assert {row["outcome"] for one in answer["data"]["traces"] for row in one["rows"]} == {"pass"}
    assert all(one["rows"] for one in answer["data"]["traces"])
    assert len(answer["data"]["traces"]) > 15


@pytest.mark.parametrize(
    ("change", "code"), [(slower(3), 0), (slower(8), 1), (one_more_launch, 1), (slower(-30), 0)]
)
def test_budgets_notice_what_they_are_for(change: Any, code: int) -> None:
    assert run(["init"]) == 0
    Path("traces/rank0.json.gz").write_bytes(trace(change))
    assert run(["check"]) == code


def uneven(document: Document) -> None:
    """Steps in turn 0, 4 and 8 % longer than they were: what is later moves on."""
    events = sorted((one for one in document["traceEvents"] if "ts" in one), key=lambda one: one["ts"])
    marks = [
        one["ts"]
        for one in events
        if one["name"].startswith("ProfilerStep#") and one.get("cat") == "user_annotation"
    ]
    ends = [*marks[1:], max(one["ts"] + one.get("dur", 0) for one in events) + 1]

    def moved(at: int) -> int:
        shift = 0
        for i, (start, end) in enumerate(zip(marks, ends, strict=True)):
            if at >= start:
                shift += (min(at, end) - start) * (i % 3) * 4 // 100
        return at + shift

    for one in events:
        if "dur" in one:
            one["dur"] = moved(one["ts"] + one["dur"]) - moved(one["ts"])
        one["ts"] = moved(one["ts"])


def test_a_time_has_the_room_that_its_noise_asks_for(capsys: pytest.CaptureFixture[str]) -> None:
    """Three times the robust deviation of the steady periods, where that is more than a twentieth."""
    Path("traces/rank0.json.gz").write_bytes(trace(uneven))
    assert run(["analyze", "traces/rank0.json.gz", "--json"]) == 0
    steps = json.loads(capsys.readouterr().out)["data"]["steps"]
    periods = [step["elapsed_ns"] for step in steps if step["used"] and step["is_period"]]
    middle = median(periods)
    sigma = 1.4826 * median(abs(one - median(periods)) for one in periods)
    assert sigma * 3 > middle * 0.05
    assert run(["init"]) == 0
    found = read_amount(budgets()["step_time"]["max"]).number
    exact = middle + 3 * sigma
    assert exact <= found < exact * 1.01
    assert run(["check"]) == 0


def test_a_count_that_varies_may_be_as_high_as_it_was() -> None:
    def once(document: Document) -> None:
        """The fourth step alone launches one more kernel."""
        before = len(document["traceEvents"])
        one_more_launch(document)
        added = document["traceEvents"][before:]
        document["traceEvents"] = document["traceEvents"][:before] + added[6:8]

    Path("traces/rank0.json.gz").write_bytes(trace(once))
    assert run(["init"]) == 0
    assert budgets()["kernel_launches"] == {"max": 24}
    assert "23 now; from 23 to 24 in 4 steady steps" in Path("stepcrit.toml").read_text(encoding="utf-8")
    assert run(["check"]) == 0


def test_of_too_few_steps_a_time_has_much_room_and_says_why() -> None:
    Path("traces/rank0.json.gz").write_bytes((RECORDED / "accumulation_microbatch.json.gz").read_bytes())
    assert run(["init"]) == 0
    assert "of too few steps to know its noise, so 30.0 % more is room" in Path("stepcrit.toml").read_text(
        encoding="utf-8"
    )
    assert set(budgets()) == {"step_time"}  # no device: counts of 0 say nothing


@pytest.mark.parametrize("there", ["file", "link", "folder"])
def test_what_is_there_is_not_overwritten(there: str, capsys: pytest.CaptureFixture[str]) -> None:
    target = Path("stepcrit.toml")
    if there == "file":
        target.write_text("mine", encoding="utf-8")
    elif there == "link":
        target.symlink_to("nowhere")
    else:
        target.mkdir()
    assert run(["init"]) == 2
    assert "it is there already" in capsys.readouterr().err
    assert run(["init", "--force"]) == (5 if there == "folder" else 0)
    assert not Path("nowhere").exists()


def test_an_older_configuration_that_cannot_be_read_can_be_replaced() -> None:
    Path("stepcrit.toml").write_text("[check", encoding="utf-8")
    assert run(["init", "--force"]) == 0
    assert run(["check"]) == 0


def test_rules_of_pyproject_are_not_put_aside_unasked(capsys: pytest.CaptureFixture[str]) -> None:
    Path("pyproject.toml").write_text("[tool.stepcrit.check]\ntraces = []\n", encoding="utf-8")
    assert run(["init"]) == 2
    assert "pyproject.toml has [tool.stepcrit]" in capsys.readouterr().err
    assert not Path("stepcrit.toml").exists()
    assert run(["init", "-o", "other.toml"]) == 0
    assert run(["check", "--config", "other.toml"]) == 0


def test_no_budget_rests_on_a_damaged_trace(capsys: pytest.CaptureFixture[str]) -> None:
    Path("traces/rank1.json.gz").write_bytes(cut(trace(), 0.99))
    assert run(["init"]) == 4
    err = capsys.readouterr().err
    assert "no budget can rest on this trace: the trace is partial" in err
    assert "traces/rank1.json.gz" in err
    assert not Path("stepcrit.toml").exists()


@pytest.mark.parametrize(
    ("words", "code"), [(["none.gz"], 2), (["*.gz"], 2), (["traces"], 2), (["-"], 2), (["pyproject.toml"], 3)]
)
def test_what_is_no_trace_is_refused(words: list[str], code: int) -> None:
    Path("pyproject.toml").write_text("a = 1\n", encoding="utf-8")
    assert run(["init", *words]) == code
    assert not Path("stepcrit.toml").exists()


def test_without_any_trace_it_says_where_it_looked(capsys: pytest.CaptureFixture[str]) -> None:
    Path("traces/rank0.json.gz").unlink()
    assert run(["init"]) == 2
    assert "there is no trace below traces/" in capsys.readouterr().err


def test_a_trace_is_never_written_over() -> None:
    before = Path("traces/rank0.json.gz").read_bytes()
    assert run(["init", "--force", "-o", "traces/rank0.json.gz"]) == 2
    assert Path("traces/rank0.json.gz").read_bytes() == before


HOSTILE = (
    'a"b\\c',
    "a\nb",
    "[x]*?{y}",
    "##[error]",
    "::error::z",
    "\u202e\u3164",
    "日本",
    "# c",
    "%0A",
    "'''",
)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_stays_a_name(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path("traces") / f"{name}.json.gz"
    Path("traces/rank0.json.gz").rename(path)
    assert run(["init", str(path)]) == 0
    text = Path("stepcrit.toml").read_text(encoding="utf-8")
    assert "##[" not in text
    assert [line for line in text.splitlines() if line.lstrip().startswith("::")] == []
    assert len(written()["budget"]) == 1
    capsys.readouterr()
    assert run(["check", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [one["file"] for one in answer["data"]["traces"]] == [str(path)]
    assert {row["written_at"] is None for row in answer["data"]["traces"][0]["rows"]} == {False}


def test_a_name_that_is_no_text_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    Path("traces/rank0.json.gz").rename("traces/\udcff.json.gz")
    assert run(["init"]) == 2
    assert "not UTF-8" in capsys.readouterr().err


def test_a_base_is_written_down_and_what_that_means_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["init", "--base", "origin/main"]) == 0
    assert written()["check"]["base"] == "origin/main"
    assert "--trust-config" in capsys.readouterr().out


# --- text of TOML ----------------------------------------------------------------------------


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_string_comes_back_and_only_prints(text: str) -> None:
    made = toml_string(text)
    assert tomllib.loads(f"a = {made}") == {"a": text}
    assert tomllib.loads(f"[{made}]") == {text: {}}
    assert not any(is_unsafe(char) for char in made)
    assert "##[" not in made


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]))))
def test_a_list_comes_back(texts: list[str]) -> None:
    assert tomllib.loads(f"a = {toml_list(texts)}")["a"] == texts


@given(st.text())
def test_a_comment_is_one_harmless_line(text: str) -> None:
    assert tomllib.loads(f"{comment(text)}\na = 1") == {"a": 1}
    assert comment(text).isascii()


@given(st.integers(0, 10**16) | st.integers(0, 10**4))
def test_a_limit_is_never_below_what_it_stands_for_and_little_above(value: int) -> None:
    time = read_amount(json.loads(amount(value, Unit.NS))).number
    assert value <= time <= value * 1.0101 + 1
    assert read_amount(json.loads(amount(value, Unit.BYTES))).number == value
    assert read_amount(json.loads(amount(value, Unit.COUNT))).number == value


@given(st.floats(0, 1))
def test_a_share_is_never_below_what_it_stands_for(value: float) -> None:
    found = Decimal(json.loads(amount(value, Unit.SHARE)).removesuffix(" %")) / 100
    assert Decimal(repr(value)) <= found
    assert math.isclose(found, value, rel_tol=0.0101, abs_tol=1e-300) or found <= Decimal(
        repr(value)
    ) * Decimal("1.0101")
