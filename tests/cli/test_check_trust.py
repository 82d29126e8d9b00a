"""A change cannot judge itself: rules and baseline are those of the base; what is partial, gone or forged never passes."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest

from stepcrit.cli.main import run
from tests.cli.checking import CONFIG, TRACE, Project, made
from tests.cli.jobs import job
from tests.ingest.gitmade import commit, run_git

MAIN = ("--base", "main")
STRICT = CONFIG + '[budget."*"]\nhost_syncs = { max = 1 }\n'
LOOSE = CONFIG + '[budget."*"]\nhost_syncs = { max = 9 }\n'
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Project:
    return made(tmp_path, monkeypatch, capsys)


# --- whose rules -------------------------------------------------------------------------------


def test_budgets_that_a_change_loosens_do_not_count(project: Project) -> None:
    project.start(config=STRICT)
    project.write({TRACE: job(syncs=2), "stepcrit.toml": LOOSE})
    project.commit()
    said = project.check(*MAIN, code=1)
    assert "stepcrit.toml differs in this tree: judged by that of main" in said
    assert "(main:stepcrit.toml:4)" in said
    assert "rules: main:stepcrit.toml · baseline: main (" in said
    assert project.row("host_syncs", *MAIN, "--trust-config")["allowed"]["values"][0] == 9


def test_a_base_in_the_configuration_is_trusted_no_more_than_one_typed(project: Project) -> None:
    project.start(config=STRICT.replace("[check]", "[check]\nbase = 'main'"))
    project.write({TRACE: job(syncs=2), "stepcrit.toml": LOOSE.replace("[check]", "[check]\nbase = 'main'")})
    assert "(main:stepcrit.toml:5)" in project.check(code=1)


def test_a_change_cannot_choose_its_own_baseline(project: Project) -> None:
    project.start(config=STRICT.replace("[check]", "[check]\nbase = 'main'"))
    project.write({TRACE: job(syncs=2), "stepcrit.toml": LOOSE.replace("[check]", "[check]\nbase = 'HEAD'")})
    project.commit()
    project.check(*MAIN, code=1)


def test_a_layout_that_says_the_same_is_no_other_configuration(project: Project) -> None:
    project.start(config=STRICT)
    project.write({"stepcrit.toml": "# a comment\n\n" + STRICT})
    assert "differs in this tree" not in project.check(*MAIN, code=0)


@pytest.mark.parametrize("file", ["stepcrit.toml", "pyproject.toml"])
def test_a_change_that_adds_its_rules_does_not_pass_by_them(project: Project, file: str) -> None:
    project.start(config="")
    added = STRICT if file == "stepcrit.toml" else STRICT.replace("[check]", "[tool.stepcrit.check]").replace(
        "[budget", "[tool.stepcrit.budget"
    )  # fmt: skip
    project.write({file: added})
    said = project.check(*MAIN, code=4)
    assert (
        "main has no rules, so these of this tree judge themselves: --trust-config lets them pass (C109)"
        in said
    )
    project.check(*MAIN, "--trust-config", code=0)


def test_without_any_rules_the_preset_judges(project: Project) -> None:
    project.start(config="")
    project.check(TRACE, *MAIN, code=0)
    project.write({TRACE: job(launches=3)})
    assert "rules: the preset alone" in project.check(TRACE, *MAIN, code=1)


def test_rules_that_a_change_takes_away_still_count(project: Project) -> None:
    project.start(config=STRICT)
    (project.folder / "stepcrit.toml").unlink()
    project.write({TRACE: job(syncs=2)})
    assert "stepcrit.toml differs in this tree" in project.check(*MAIN, code=1)


def test_a_change_cannot_choose_among_the_rules_of_the_base(project: Project) -> None:
    lax = LOOSE.replace("[check]", "[tool.stepcrit.check]").replace("[budget", "[tool.stepcrit.budget")
    project.start({"pyproject.toml": lax}, STRICT)
    (project.folder / "stepcrit.toml").unlink()
    project.write({TRACE: job(syncs=2)})
    assert "(main:stepcrit.toml:4)" in project.check(*MAIN, code=1)


def test_rules_of_a_name_are_those_of_that_name_at_the_base(project: Project) -> None:
    project.start({"ci/own.toml": STRICT}, LOOSE)
    project.write({TRACE: job(syncs=2), "ci/own.toml": LOOSE})
    assert "(main:ci/own.toml:4)" in project.check(*MAIN, "--config", "ci/own.toml", code=1)


def test_a_fault_in_either_configuration_is_wrong_use(project: Project) -> None:
    project.start(config=STRICT)
    project.write({"stepcrit.toml": STRICT.replace("max", "mx")})
    assert "where stepcrit.toml:4" in project.check(*MAIN, code=2)
    commit(project.folder)
    run_git(project.folder, "branch", "broken")
    project.write({"stepcrit.toml": STRICT})
    assert "where broken:stepcrit.toml:4 do did you mean max?" in project.check("--base", "broken", code=2)


# --- forged and partial evidence -----------------------------------------------------------------


def edited(trace: bytes, keep: str) -> bytes:
    """The trace without rows of a category."""
    whole = json.loads(gzip.decompress(trace))
    whole["traceEvents"] = [row for row in whole["traceEvents"] if row["cat"] != keep]
    return gzip.compress(json.dumps(whole).encode())


TAKEN_AWAY = {
    "no kernels": edited(job(), "kernel"),
    "no launches": edited(job(), "cuda_runtime"),
    "no operators": edited(job(), "cpu_op"),
    "no steps": edited(job(), "user_annotation"),
    "cut": job()[:-60],
    "empty": b"",
    "no events": gzip.compress(b'{"schemaVersion": 1, "traceEvents": []}'),
    "text": b"pass",
    "a pointer": POINTER,
    "other work": job(extra_op="aten::gelu"),
}


@pytest.mark.parametrize("name", TAKEN_AWAY)
def test_evidence_that_was_taken_away_never_passes(project: Project, name: str) -> None:
    project.start(config=STRICT)
    project.write({TRACE: TAKEN_AWAY[name]})
    project.commit()
    assert project.check(*MAIN, code=4), name


@pytest.mark.parametrize("name", ["cut", "empty", "no events", "text", "a pointer"])
def test_nor_does_it_by_limits_alone(project: Project, name: str) -> None:
    project.start({TRACE: TAKEN_AWAY[name]}, CONFIG + '[budget."*"]\n"critical{class=conv}" = { max = 0 }\n')
    project.check(code=4)


def test_operators_without_their_kernels_are_told(project: Project) -> None:
    project.start({TRACE: job(copied=10)})
    whole = json.loads(gzip.decompress(job(copied=10)))
    whole["traceEvents"] = [
        row for row in whole["traceEvents"] if "gemm" not in row["name"] and "Launch" not in row["name"]
    ]
    project.write({TRACE: gzip.compress(json.dumps(whole).encode())})
    said = project.check(*MAIN, code=4)
    assert "1 operator that launched device work in the baseline launches none here: aten::mm (C103)" in said


def test_a_repaired_trace_does_not_pass_though_its_budgets_are_kept(project: Project) -> None:
    project.start(config=STRICT)
    text = gzip.decompress(job()).replace(b'"gemm_kernel"', b'"gemm\\kernel"')
    project.write({TRACE: text})
    said = project.check("--base", "", code=4)
    assert "the trace is partial or was repaired: 12 × unescaped backslash" in said
    assert "(C101)" in said


def slimmed(project: Project, trace: bytes) -> bytes:
    """The trace made small by the command for it."""
    project.write({"whole.json.gz": trace})
    assert run(["slim", "whole.json.gz", "-o", "small.json.gz"]) == 0
    project.capsys.readouterr()
    small = (project.folder / "small.json.gz").read_bytes()
    for name in ("whole.json.gz", "small.json.gz"):
        (project.folder / name).unlink()
    return small


def test_a_trace_that_was_made_small_is_as_the_one_it_was_made_of(project: Project) -> None:
    whole = job((1000, 1010, 990, 1005, 1000, 995), syncs=1, copied=64, device="NVIDIA H100 80GB HBM3")
    project.start({TRACE: whole})
    project.write({TRACE: slimmed(project, whole)})
    project.check(*MAIN, code=0)
    (trace,) = project.data(*MAIN)["traces"]
    assert trace["rows"]
    assert all(row["value"] == row["base"] for row in trace["rows"])


def test_making_a_damaged_trace_small_does_not_heal_it(project: Project) -> None:
    project.start(config=STRICT)
    text = gzip.decompress(job()).replace(b'"gemm_kernel"', b'"gemm\\kernel"')
    project.write({TRACE: slimmed(project, gzip.compress(text))})
    assert "(C101)" in project.check("--base", "", code=4)


def test_a_damaged_baseline_is_no_baseline(project: Project) -> None:
    project.start({TRACE: gzip.decompress(job()).replace(b'"gemm_kernel"', b'"gemm\\kernel"')})
    project.write({TRACE: job(launches=3)})
    assert "that one is partial or was repaired (C102)" in project.check(*MAIN, code=4)


def test_one_unreadable_trace_leaves_the_others_checked(project: Project) -> None:
    project.start({"traces/b.json.gz": job()}, STRICT)
    project.write({TRACE: b"\x1f\x8bno", "traces/b.json.gz": job(syncs=2)})
    said = project.check(*MAIN, code=1)
    assert "(SC304)" in said
    assert "fail host_syncs 2" in said
    assert project.codes(*MAIN) == ["SC304"]


def test_an_unreadable_baseline_is_told_and_limits_still_count(project: Project) -> None:
    project.start({TRACE: POINTER}, STRICT)
    project.write({TRACE: job(syncs=2)})
    said = project.check(*MAIN, code=1)
    assert "the baseline cannot be read: This is a Git LFS pointer" in said
    assert "(SC303)" in said
    project.write({TRACE: job()})
    project.check(*MAIN, code=4)


# --- new, gone, renamed --------------------------------------------------------------------------


def test_a_new_trace_is_judged_by_limits_alone(project: Project) -> None:
    project.start(config=STRICT)
    project.write({"traces/b.json.gz": job(syncs=1)})
    said = project.check(*MAIN, code=0)
    assert "new main (" in said
    assert "has no such trace: budgets alone apply (C104)" in said
    project.write({"traces/b.json.gz": job(syncs=2)})
    project.check(*MAIN, code=1)


def test_a_trace_that_is_gone_does_not_pass_unseen(project: Project) -> None:
    project.start({"traces/b.json.gz": job()})
    (project.folder / TRACE).unlink()
    said = project.check(*MAIN, code=4)
    assert f"{TRACE} · inconclusive" in said
    assert "and not in this tree: nothing is left to judge (C108)" in said
    (project.folder / "traces" / "b.json.gz").unlink()
    project.check(*MAIN, code=4)
    assert project.codes(TRACE, *MAIN) == ["C108"]


@pytest.mark.parametrize("instead", ["folder", "dangling link", "device"])
def test_what_is_no_file_does_not_stand_in_for_a_trace(project: Project, instead: str) -> None:
    project.start({"traces/b.json.gz": job()})
    path = project.folder / TRACE
    path.unlink()
    if instead == "folder":
        project.write({f"{TRACE}/slower.json.gz": job((2000,) * 6)})
    else:
        path.symlink_to("nowhere" if instead == "dangling link" else "/dev/zero")
    project.check(*MAIN, code=4)
    assert project.codes(*MAIN) == ["C108"]


@pytest.mark.parametrize("folder", ["before", "be[f]ore"])
def test_a_trace_that_only_the_folder_of_the_baseline_has_does_not_pass_unseen(
    project: Project, folder: str
) -> None:
    project.start({f"{folder}/{TRACE}": job(), f"{folder}/traces/b.json.gz": job()})
    base = ("--base", f"./{folder}")
    assert f"it is at ./{folder} and not in this tree" in project.check(*base, code=4)
    assert project.codes(*base) == ["C108"]
    project.check(TRACE, *base, code=0)  # only what was asked for


def test_taking_a_trace_out_of_the_configuration_does_not_hide_it(project: Project) -> None:
    project.start()
    project.write({"stepcrit.toml": "[check]\ntraces = ['other/*']\n", TRACE: job(launches=3)})
    project.check(*MAIN, code=1)


def test_a_renamed_trace_is_both_gone_and_new(project: Project) -> None:
    project.start()
    run_git(project.folder, "mv", TRACE, "traces/c.json.gz")
    said = project.check(*MAIN, code=4)
    assert f"budgets alone apply; it was renamed from {TRACE} (C104)" in said
    assert "(C108)" in said


def test_it_works_from_a_folder_below_the_top(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write(
        {
            f"sub/{TRACE}": job(),
            "sub/traces/b.json.gz": job(),
            "sub/stepcrit.toml": STRICT,
            "traces/a.json.gz": b"other",
        }
    )
    commit(project.folder)
    monkeypatch.chdir(project.folder / "sub")
    (project.folder / "sub" / "traces" / "b.json.gz").unlink()
    project.write({f"sub/{TRACE}": job(launches=3)})
    said = project.check("--base", "HEAD", code=1)
    assert f"explain: stepcrit diff HEAD:sub/{TRACE} {TRACE}" in said
    assert project.codes("--base", "HEAD") == ["C108"]


# --- refs ----------------------------------------------------------------------------------------


def test_each_reason_why_there_is_no_baseline_has_its_own_words(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.start()
    assert "error SC212: this repository has no ref 'mian'" in project.check("--base", "mian", code=2)
    run_git(tmp_path, "clone", "-q", "--depth", "1", "--branch", "work", project.folder.as_uri(), "shallow")
    monkeypatch.chdir(tmp_path / "shallow")
    assert "fetch-depth: 0" in project.check("--base", "origin/main", code=2)
    (tmp_path / "outside").mkdir()
    monkeypatch.chdir(tmp_path / "outside")
    Path("t.json.gz").write_bytes(job())
    assert "error SC211" in project.check("t.json.gz", "--base", "main", code=2)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(project.folder)
    assert "error SC210: git is not installed" in project.check("--base", "main", code=2)


def test_a_folder_cannot_stand_in_for_a_branch(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.start()
    run_git(tmp_path, "clone", "-q", project.folder.as_uri(), "clone")
    monkeypatch.chdir(tmp_path / "clone")
    forged = Path("origin/main") / TRACE
    forged.parent.mkdir(parents=True)
    forged.write_bytes(job(launches=3))
    Path(TRACE).write_bytes(job(launches=3))
    project.check("--base", "origin/main", code=1)
    shallow = ("clone", "-q", "--depth", "1", "--branch", "work", project.folder.as_uri(), "shallow")
    run_git(tmp_path, *shallow)
    monkeypatch.chdir(tmp_path / "shallow")
    forged.parent.mkdir(parents=True)
    forged.write_bytes(job(launches=3))
    assert "error SC213" in project.check("--base", "origin/main", code=2)


@pytest.mark.skipif(os.name == "nt", reason="no symbolic links")
def test_a_baseline_that_is_a_link_is_not_followed(project: Project) -> None:
    (project.folder / "traces").mkdir()
    (project.folder / TRACE).symlink_to("/etc/hostname")
    project.write({"stepcrit.toml": CONFIG})
    commit(project.folder)
    (project.folder / TRACE).unlink()
    project.write({TRACE: job()})
    said = project.check("--base", "HEAD", code=4)
    assert "the baseline cannot be read: This is a symbolic link at that ref" in said
