"""What CI runs, here and in the repositories of others: the files are well-formed, and what they run is run."""

from __future__ import annotations

import gzip
import json
import math
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import pytest
import typer.main
import yaml

from stepcrit.cli.main import program
from tests.e2e.changed import slower, trace
from tests.e2e.repository import TRACE, Repository
from tests.report.runner import commands

ROOT = Path(__file__).parents[2]
ACTION = ROOT / ".github" / "actions" / "check" / "action.yml"
HOOKS = ROOT / ".pre-commit-hooks.yaml"
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
UNTRUSTED = re.compile(r"github\.(event|head_ref|actor|ref_name)|\binputs\.")
"""What somebody else may have written: titles, names of branches, and what a caller hands on of these."""

CONFIG = """[check]
traces = ["traces/*.json.gz"]
preset = "none"
[budget."*"]
step_time = { max = "780 us" }
"""


def loaded(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def steps_of(path: Path) -> Iterator[Any]:
    """Every step of a workflow or of an action."""
    told = loaded(path)
    if "runs" in told:
        yield from told["runs"]["steps"]
    for job in told.get("jobs", {}).values():
        yield from job["steps"]


@pytest.mark.parametrize("path", [*WORKFLOWS, ACTION], ids=lambda path: path.name)
def test_no_script_holds_an_expression(path: Path) -> None:
    """A value that stands in a script is code there; by the environment it is a value."""
    scripts = [step["run"] for step in steps_of(path) if "run" in step]
    assert scripts
    assert [script for script in scripts if EXPRESSION.search(script)] == []


@pytest.mark.parametrize("path", [*WORKFLOWS, ACTION], ids=lambda path: path.name)
def test_what_others_wrote_reaches_a_step_by_its_environment_alone(path: Path) -> None:
    for step in steps_of(path):
        rest = {key: value for key, value in step.items() if key != "env"}
        found = [one for one in EXPRESSION.findall(str(rest)) if UNTRUSTED.search(one)]
        assert found == [], step


@pytest.mark.parametrize("path", [*WORKFLOWS, ACTION], ids=lambda path: path.name)
def test_every_step_does_one_thing_with_a_shell_that_is_named(path: Path) -> None:
    for step in steps_of(path):
        assert ("run" in step) != ("uses" in step)
        if path == ACTION and "run" in step:
            assert step["shell"] == "bash"  # a composite action has no default
        if "run" in step:
            checked = subprocess.run(
                ["bash", "-n"], input=step["run"], text=True, capture_output=True, check=False
            )
            assert checked.stderr == ""
        if "uses" in step:
            assert step["uses"].startswith("./") or re.search(r"@(v\d+|[0-9a-f]{40})$", step["uses"])
            assert not step["uses"].startswith("./") or (ROOT / step["uses"] / "action.yml").is_file()


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_may_read_and_no_more(path: Path) -> None:
    told = loaded(path)
    assert told["permissions"] == {"contents": "read"}
    assert "pull_request_target" not in told[True]  # "on" is true to YAML 1.1
    assert all("permissions" not in job for job in told["jobs"].values())


def test_every_input_of_the_action_is_used_and_described() -> None:
    told = loaded(ACTION)
    used = set(re.findall(r"inputs\.(\w+)", ACTION.read_text(encoding="utf-8")))
    assert used == set(told["inputs"])
    assert all(one["description"] and "default" in one for one in told["inputs"].values())


# --- the action's scripts, run ---------------------------------------------------------------


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository.new(tmp_path / "repository")
    made.commit({"stepcrit.toml": CONFIG, TRACE: trace(), "other.toml": CONFIG.replace("780", "1")})
    bin_folder = tmp_path / "runner" / "stepcrit" / "bin"
    bin_folder.mkdir(parents=True)
    program = bin_folder / "stepcrit"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m stepcrit "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    return made


def check_step(repository: Repository, **inputs: str) -> subprocess.CompletedProcess[str]:
    """The step that checks, as the runner runs it."""
    told = loaded(ACTION)
    step = next(step for step in told["runs"]["steps"] if step["name"] == "Check traces")
    values = {name: inputs.get(name, one["default"]) for name, one in told["inputs"].items()}
    env = {
        key: EXPRESSION.sub(lambda found: values[found[1].strip().removeprefix("inputs.")], value)
        for key, value in step["env"].items()
    }
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=repository.folder,
        env={**repository.env, **env, "GITHUB_ACTIONS": "true", "RUNNER_TEMP": str(repository.folder.parent / "runner")},
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip


def test_the_action_checks_what_the_configuration_names(repository: Repository) -> None:
    done = check_step(repository)
    assert (done.returncode, commands(done.stderr)) == (0, [])
    assert "<testsuites" in (repository.folder / "stepcrit.xml").read_text(encoding="utf-8")
    repository.commit({TRACE: trace(slower(8))})
    done = check_step(repository)
    assert done.returncode == 1
    assert [one.name for one in commands(done.stderr)] == ["error"]


def test_the_action_hands_on_what_it_is_given(repository: Repository) -> None:
    repository.commit({"a b/one.json.gz": trace(), "a b/two.json.gz": trace()})
    done = check_step(repository, traces="a b/one.json.gz\n\na b/two*\n", junit="", base="HEAD~1")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("a b/") == 2
    assert not (repository.folder / "stepcrit.xml").exists()
    assert check_step(repository, config="other.toml").returncode == 1


@pytest.mark.parametrize(
    "text",
    ["$(touch pwned)", "`touch pwned`", "; touch pwned", "--output=pwned", "a\nb; touch pwned", "'\"$PATH"],
)
@pytest.mark.parametrize("name", ["traces", "config", "base"])
def test_what_the_action_is_given_is_never_code(repository: Repository, name: str, text: str) -> None:
    done = check_step(repository, **{name: text})
    assert done.returncode in (2, 3), done.stdout
    assert not (repository.folder / "pwned").exists()


@pytest.mark.parametrize(
    ("version", "package"),
    [("", "/x/../../.."), ("0.1.0", "stepcrit==0.1.0"), ("0.2.0rc1", "stepcrit==0.2.0rc1"), ("1; touch pwned", ""), ("--index-url=http://e", ""), ("1 2", "")],
)  # fmt: skip
def test_the_action_installs_the_version_that_it_is_told(tmp_path: Path, version: str, package: str) -> None:
    """The installer is a stand-in: nothing is fetched."""
    step = next(step for step in steps_of(ACTION) if step["name"] == "Install stepcrit")
    (tmp_path / "bin").mkdir()
    fake = tmp_path / "bin" / "python3"
    fake.write_text(
        '#!/bin/sh\nmkdir -p "$3/bin"\ncp "$0" "$3/bin/python"\nprintf "%s\\n" "$@" >> "$RUNNER_TEMP/asked"\n',
        encoding="utf-8",
    )
    fake.chmod(0o755)
    env = {
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
        "RUNNER_TEMP": str(tmp_path),
        "VERSION": version,
        "SOURCE": "/x",
    }
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", step["run"]],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode == 0) == bool(package)
    if package:
        asked = (tmp_path / "asked").read_text(encoding="utf-8").splitlines()
        assert asked[:3] == ["-m", "venv", f"{tmp_path}/stepcrit"]
        assert asked[-2:] == ["--", package]
    assert not (tmp_path / "pwned").exists()


# --- hooks -----------------------------------------------------------------------------------


def test_every_hook_runs_a_command_of_ours() -> None:
    known = set(typer.main.get_command(program()).commands)  # type: ignore[attr-defined]
    for hook in loaded(HOOKS):
        tool, verb, *_ = hook["entry"].split()
        assert (tool, hook["language"]) == ("stepcrit", "python")
        assert verb in known
        assert hook["id"].startswith(f"stepcrit-{verb}")
        assert hook["description"]
        assert re.compile(hook["files"])


@pytest.mark.parametrize(
    ("path", "hooks"),
    [
        ("traces/rank0.json.gz", {"stepcrit-check", "stepcrit-slim"}), ("a/traces/b/c.json", {"stepcrit-check", "stepcrit-slim"}),
        ("stepcrit.toml", {"stepcrit-check"}), ("package.json", set()), ("train.py", set()), ("mystepcrit.toml", set()),
    ],
)  # fmt: skip
def test_a_hook_runs_for_the_files_that_it_is_about(path: str, hooks: set[str]) -> None:
    assert {hook["id"] for hook in loaded(HOOKS) if re.search(hook["files"], path)} == hooks


def test_the_hook_that_checks_ends_as_check_does(repository: Repository) -> None:
    hook = next(one for one in loaded(HOOKS) if one["id"] == "stepcrit-check")
    _, *words = hook["entry"].split()
    assert hook["pass_filenames"] is False
    assert repository.run(*words).returncode == 0
    repository.commit({TRACE: trace(slower(8))})
    assert repository.run(*words).returncode == 1


# --- this project's own check ----------------------------------------------------------------


def test_ci_runs_the_check_of_this_project() -> None:
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert "make fixtures" in lines
    made = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(r"^fixtures:.*\n\t\$\(BIN\)/stepcrit check$", made, re.MULTILINE)
    assert [
        step
        for step in steps_of(ROOT / ".github/workflows/ci.yml")
        if step.get("uses") == "./.github/actions/check"
    ]
    assert [step for step in steps_of(ROOT / ".github/workflows/ci.yml") if step.get("run") == "bash .ci/run"]


OWN = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["stepcrit"]
TRUTHS = sorted((ROOT / "fixtures" / "simulated").glob("*.truth.json"))


@pytest.mark.parametrize("path", TRUTHS, ids=lambda path: path.name.partition(".truth")[0])
def test_the_budgets_of_this_project_are_what_was_simulated(path: Path) -> None:
    """Not what an earlier version printed: periods from the simulator's truth, launches counted in the file."""
    told = json.loads(path.read_text(encoding="utf-8"))
    source = path.with_name(path.name.replace(".truth.json", ".json.gz"))
    budget = OWN["budget"][f"fixtures/simulated/{source.name}"]
    is_accumulation = "accumulation" in path.name
    period = median(told["update_period_ns" if is_accumulation else "period_ns"])
    low, high = (int(budget["step_time"][key].removesuffix(" ns")) for key in ("min", "max"))
    assert (low, high) == (math.floor(period), math.ceil(period))
    if is_accumulation:
        return
    metric = "graph_launches" if "graph" in path.name else "kernel_launches"
    assert launches_by_step(source, LAUNCHES[metric]) == {budget[metric]["min"]} == {budget[metric]["max"]}


LAUNCHES = {
    "graph_launches": ("cudaGraphLaunch",),
    "kernel_launches": ("cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernelEx"),
}


def launches_by_step(source: Path, names: tuple[str, ...]) -> set[int]:
    """How many calls each step makes, by time alone."""
    events = json.loads(gzip.decompress(source.read_bytes()))["traceEvents"]
    marks = [
        one
        for one in events
        if one.get("cat") == "user_annotation" and one["name"].startswith("ProfilerStep#")
    ]
    calls = [one["ts"] for one in events if one.get("name") in names]
    return {sum(mark["ts"] <= at < mark["ts"] + mark["dur"] for at in calls) for mark in marks}


def test_every_simulated_fixture_has_its_budget() -> None:
    assert OWN["check"]["traces"] == ["fixtures/simulated/*.json.gz"]
    assert len(TRUTHS) == len(OWN["budget"]) - 1 > 10


def test_the_yaml_of_readme_is_well_formed_and_gives_the_action_what_it_takes() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    told = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)]
    assert len(told) == 2
    github, gitlab = told
    *_, step = github["jobs"]["stepcrit"]["steps"]
    assert step["uses"].partition("@")[0].removeprefix("OWNER/stepcrit/") == ".github/actions/check"
    assert set(step["with"]) <= set(loaded(ACTION)["inputs"])
    assert github["permissions"] == {"contents": "read"}
    *_, install, fetch, check = gitlab["stepcrit"]["script"]
    assert install.startswith("pip install ")
    _, verb, *words = shlex.split(check)
    # a clone of GitLab's has one branch, cut off: the one that is compared with has to be fetched under that name
    assert gitlab["stepcrit"]["variables"] == {"GIT_DEPTH": 0}
    assert shlex.split(fetch)[-1].endswith(f":refs/remotes/{words[words.index('--base') + 1]}")
    command = typer.main.get_command(program()).commands[verb]  # type: ignore[attr-defined]
    options = {name for one in command.params for name in one.opts}
    assert {word for word in words if word.startswith("-")} <= options
    assert gitlab["stepcrit"]["artifacts"]["reports"]["junit"] in words
