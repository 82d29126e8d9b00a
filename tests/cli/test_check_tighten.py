"""--tighten brings budgets down to what was found and leaves the rest of the file as it is; it never loosens one."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepcrit.cli import tighten
from tests.cli.checking import CONFIG, TRACE, Project, made
from tests.cli.jobs import job

HEAD = "# ours\n" + CONFIG.replace("\n", "   # kept\n", 1) + "preset = 'none'\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Project:
    return made(tmp_path, monkeypatch, capsys)


def after(project: Project, budgets: str, *argv: str, code: int = 0, trace: bytes | None = None) -> str:
    """The [budget] table after tightening."""
    project.start({TRACE: trace or job(syncs=1, copied=2048)}, f'{HEAD}[budget."*"]\n{budgets}\n')
    project.check("--tighten", *argv, code=code)
    text = (project.folder / "stepcrit.toml").read_text(encoding="utf-8")
    assert text.startswith(f'{HEAD}[budget."*"]\n')
    return text.removeprefix(f'{HEAD}[budget."*"]\n').rstrip("\n")


@pytest.mark.parametrize(
    ("before", "then"),
    [
        ("host_syncs = { max = 9 }  # few", "host_syncs = { max = 1 }  # few"),
        ("host_syncs = { max = '9' }", "host_syncs = { max = '1' }"),
        ("host_syncs.max = 9", "host_syncs.max = 1"),
        ('h2d_bytes = { max = "64 MiB" }', 'h2d_bytes = { max = "0.00196 MiB" }'),
        ("h2d_bytes = { max = '4KiB' }", "h2d_bytes = { max = '2.00KiB' }"),
        ('step_time={max="420 ms", grow="5 %"}', 'step_time={max="1.05 ms", grow="5 %"}'),
        ('step_time = { max = "420000 us" }', 'step_time = { max = "1050 us" }'),
        ('gpu_idle_share = { max = "50 %" }', 'gpu_idle_share = { max = "11.3 %" }'),
        ("gpu_idle_share = { max = 0.5 }", "gpu_idle_share = { max = 0.113 }"),
        ('gpu_busy = { min = "1 us" }', 'gpu_busy = { min = "848 us" }'),
        ("kernel_launches = { min = 1, max = 7 }", "kernel_launches = { min = 2, max = 2 }"),
    ],
)
def test_a_budget_comes_down_in_its_own_words(project: Project, before: str, then: str) -> None:
    assert after(project, before) == then
    project.check(code=0)


@pytest.mark.parametrize(
    "budget",
    [
        "host_syncs = { max = 1 }",  # as it is
        'step_time = { max = "1.04 ms" }',  # room would loosen it
        'gpu_busy = { min = "880 us" }',
        "graph_launches = { max = 0 }",
    ],
)
def test_what_would_be_no_tighter_is_left(project: Project, budget: str) -> None:
    assert after(project, budget) == budget


@pytest.mark.parametrize(
    "budget", ["host_syncs = { max = 9, level = 'off' }", "step_time = { grow = '5 %' }"]
)
def test_what_judges_nothing_is_left(project: Project, budget: str) -> None:
    assert after(project, budget, code=4) == budget


def test_a_broken_budget_is_not_loosened(project: Project) -> None:
    assert after(project, "host_syncs = { max = 0 }", code=1) == "host_syncs = { max = 0 }"


def test_nothing_is_tightened_by_a_trace_that_is_not_whole(project: Project) -> None:
    cut = job(syncs=1)[:-40]
    assert after(project, "streams = { max = 9 }", code=4, trace=cut) == "streams = { max = 9 }"


def test_nor_where_one_trace_lacks_the_metric(project: Project) -> None:
    assert after(project, "overlap = { max = 0.9 }", code=4) == "overlap = { max = 0.9 }"


def test_of_several_traces_the_worst_counts(project: Project) -> None:
    project.write({"traces/b.json.gz": job(syncs=3)})
    assert after(project, "host_syncs = { max = 9 }") == "host_syncs = { max = 3 }"


def test_each_change_is_told(project: Project) -> None:
    project.start(config=HEAD + '[budget."*"]\nhost_syncs = { max = 9 }\nstreams = { max = 1 }\n')
    assert "tightened stepcrit.toml:6 host_syncs max: 9 -> 0" in project.check("--tighten", code=0)
    assert "no budget could be tightened" in project.check("--tighten", code=0)
    assert project.data("--tighten")["tightened"] == []


def test_pyproject_is_tightened_in_its_place(project: Project) -> None:
    text = "[project]\nname = 'x'\n[tool.stepcrit.check]\ntraces = 'traces/*'\n[tool.stepcrit.budget.'*']\nstreams = { max = 9 }\n"
    project.start({"pyproject.toml": text}, config="")
    project.check("--tighten", code=0)
    assert (project.folder / "pyproject.toml").read_text(encoding="utf-8") == text.replace("9", "1")


def test_budgets_of_another_tree_cannot_be_rewritten(project: Project) -> None:
    project.start(config=HEAD + '[budget."*"]\nstreams = { max = 9 }\n')
    assert "the budgets of main:stepcrit.toml judge" in project.check("--tighten", "--base", "main", code=2)
    project.check("--tighten", "--base", "main", "--trust-config", code=0)
    (project.folder / "stepcrit.toml").unlink()
    assert "there are no budgets to tighten" in project.check(TRACE, "--tighten", code=2)


def test_a_file_that_was_changed_meanwhile_is_left(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.start(config=HEAD + '[budget."*"]\nstreams = { max = 9 }\n')
    monkeypatch.setattr(tighten, "read_small", lambda *_: b"[check]\n")
    assert "were changed while they were judged" in project.check("--tighten", code=2)
