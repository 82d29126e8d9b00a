"""The commands as a user types them: exit codes, streams, formats, options, refusals."""

from __future__ import annotations

import gzip
import json
import re
import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import stepcrit
from stepcrit.cli import main
from stepcrit.cli.demo import DEMO_TRACE
from stepcrit.cli.main import COMMANDS, OF_A_PATH, program, run
from stepcrit.cli.options import parse_floors
from stepcrit.model.graph import EdgeKind

ROOT = Path(__file__).parents[2]
SIMULATED, RECORDED = ROOT / "fixtures" / "simulated", ROOT / "fixtures" / "recorded"
TRACE = str(SIMULATED / "item_sync.json.gz")


def out_of(capsys: pytest.CaptureFixture[str], *argv: str, code: int = 0) -> str:
    assert run(list(argv)) == code
    return capsys.readouterr().out


def data_of(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, Any]:
    return dict(json.loads(out_of(capsys, *argv, "--json"))["data"])


def test_a_path_alone_means_analyze(capsys: pytest.CaptureFixture[str]) -> None:
    assert out_of(capsys, TRACE) == out_of(capsys, "analyze", TRACE)


@pytest.mark.parametrize("path", [TRACE, str(SIMULATED), "absent.json", "", "/dev/null"])
@pytest.mark.parametrize("verb", OF_A_PATH)
def test_a_path_without_options_is_what_typer_would_read(
    verb: str, path: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    alone = run([verb, path]), capsys.readouterr()
    read: list[object] = []
    monkeypatch.setattr(main, "program", lambda verbs: read.append(verbs) or program(verbs))
    assert (run([verb, "--", path]), capsys.readouterr()) == alone
    assert len(read) == 1


@pytest.mark.parametrize(
    "argv", [[verb, *rest] for verb in OF_A_PATH for rest in ([], ["--no"], ["a", "b"], ["-h"])]
)
def test_everything_else_typer_reads(argv: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def unread(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(main, "_of_path", unread)
    assert run(argv) == (0 if argv[-1] == "-h" else 2)


def test_a_wrong_choice_of_kernels_is_told_of_a_path_alone_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPCRIT_KERNELS", "fast")
    assert run(["doctor", "absent.json"]) == 2
    assert "STEPCRIT_KERNELS" in capsys.readouterr().err


def test_stdin_is_read_by_its_bytes_gzip_or_not(tmp_path: Path) -> None:
    plain = gzip.decompress(Path(TRACE).read_bytes())
    answers = []
    for given in (Path(TRACE).read_bytes(), plain):
        command = [sys.executable, "-m", "stepcrit", "analyze", "-", "--json"]
        done = subprocess.run(command, input=given, capture_output=True, check=True, cwd=tmp_path)
        answers.append(json.loads(done.stdout)["data"])
    assert answers[0] == answers[1]


def test_a_folder_with_one_trace_is_that_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.json.gz").write_bytes(Path(TRACE).read_bytes())
    assert data_of(capsys, "analyze", str(tmp_path)) == data_of(capsys, "analyze", TRACE)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "empty"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "LFS"),
        (b'{"traceEvents": [{"ph": "X", "na', "byte"),
        (b"hello", "JSON"),
        (b'{"schema": "1.0.1", "nodes": []}', "xecution"),
        (b"\x1f\x8b\x08\x00garbage", "gzip"),
    ],
)
def test_unusable_input_is_refused_in_one_line_with_exit_code_3(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, says: str
) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(content)
    assert run(["analyze", str(path)]) == 3
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error SC3")
    assert says in captured.err.splitlines()[0] + captured.err
    assert "Traceback" not in captured.err


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["analyze"], "path"),
        (["analyse", TRACE], "Did you mean 'analyze'"),
        (["analyze", TRACE, "--step", "99"], "no step '99'"),
        (["analyze", TRACE, "--boundary", "lunch"], "boundary"),
        (["analyze", TRACE, "--by", "line"], "with_stack"),
        (["analyze", TRACE, "--floors", "launch=5"], "duration"),
        (["analyze", TRACE, "--floors", "moon=5us"], "moon"),
        (["analyze", TRACE, "--step-regex", "("], "regular expression"),
        (["analyze", TRACE, "--step-regex", "nothing like it"], "nothing like it"),
        (["analyze", TRACE, "--optimizer-regex", "nothing like it"], "nothing like it"),
        (["analyze", TRACE, "--json", "--format", "md"], "contradict"),
        (["analyze", TRACE, "-o", TRACE], "overwrite"),
        (["critical", TRACE, "--around", "aten::mmm"], "aten::mm"),
        (["explain", "slakc"], "slack"),
    ],
)
def test_wrong_use_is_exit_code_2_and_says_what_would_be_right(
    capsys: pytest.CaptureFixture[str], argv: list[str], says: str
) -> None:
    assert run(argv) == 2
    captured = capsys.readouterr()
    assert says in captured.err
    assert captured.out == ""


def test_output_that_cannot_be_written_is_exit_code_5(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["analyze", TRACE, "-o", str(tmp_path / "no" / "such" / "folder.json")]) == 5
    assert "cannot write" in capsys.readouterr().err


def test_a_reader_that_closes_stdout_is_exit_code_141_and_no_noise() -> None:
    command = f"{sys.executable} -m stepcrit critical {TRACE} --full --format csv | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.splitlines()[-1] in ("141", "0")  # 0 where the pipe took everything at once
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("suffix", "first"), [(".json", "{"), (".md", "- item_sync"), (".csv", ""), (".txt", "")]
)
def test_the_suffix_of_the_output_chooses_the_format(tmp_path: Path, suffix: str, first: str) -> None:
    path = tmp_path / f"answer{suffix}"
    assert run(["analyze", TRACE, "-o", str(path)]) == 0
    assert path.read_text(encoding="utf-8").lstrip().startswith(first)


def test_boundaries_end_a_step_at_different_instants(capsys: pytest.CaptureFixture[str]) -> None:
    """On the host-bound loop: launches end before the host window, the update before the last device work."""
    trace = str(SIMULATED / "host_bound.json.gz")
    found = {
        b: data_of(capsys, "analyze", trace, "--boundary", b, "--step", "-1")
        for b in ("host", "launch", "device", "update")
    }
    assert {b: d["boundary"] for b, d in found.items()} == {b: b for b in found}
    ends = {b: d["steps"][-1]["end_ns"] for b, d in found.items()}
    assert ends["launch"] <= ends["host"]
    assert ends["update"] <= ends["device"]
    for data in found.values():
        assert sum(data["critical_path"]["by_class_ns"].values()) == data["elapsed_ns"]


def test_step_can_be_named_by_number_label_or_from_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    labels = [s["label"] for s in data_of(capsys, "analyze", TRACE)["steps"]]
    number = labels[-1].partition("#")[2]
    chosen = {
        data_of(capsys, "analyze", TRACE, "--step", s)["chosen_step"] for s in (labels[-1], number, "-1")
    }
    assert chosen == {labels[-1]}


def test_strict_uses_no_timing_and_device_only_no_host(capsys: pytest.CaptureFixture[str]) -> None:
    trace = str(SIMULATED / "two_streams.json.gz")
    assert data_of(capsys, "analyze", trace)["trust"]["timing_share"] > 0
    assert data_of(capsys, "analyze", trace, "--strict")["trust"]["timing_share"] == 0
    device = data_of(capsys, "analyze", trace, "--device-only")
    assert device["critical_path"]["by_group_ns"]["host"] == 0


def test_strict_refuses_an_input_of_which_events_were_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = json.loads(gzip.decompress(Path(TRACE).read_bytes()))
    next(e for e in trace["traceEvents"] if e.get("cat") == "kernel")["dur"] = -3
    path = tmp_path / "t.json"
    path.write_text(json.dumps(trace), encoding="utf-8")
    assert run(["analyze", str(path)]) == 0
    assert run(["analyze", str(path), "--strict"]) == 4
    assert "error SC400" in capsys.readouterr().err


def test_idle_time_of_one_stream_is_at_least_that_of_the_device(capsys: pytest.CaptureFixture[str]) -> None:
    trace = str(SIMULATED / "two_streams.json.gz")
    device = data_of(capsys, "analyze", trace)["idle_by_cause_ns"]
    stream = data_of(capsys, "analyze", trace, "--stream", "7")["idle_by_cause_ns"]
    assert sum(stream.values()) >= sum(device.values())


def test_module_and_line_groupings_name_the_users_own_code(capsys: pytest.CaptureFixture[str]) -> None:
    trace = str(RECORDED / "accumulation_stacks.json.gz")
    modules = data_of(capsys, "analyze", trace, "--by", "module")["ranking"]["rows"]
    assert any("Linear" in r["name"] for r in modules)
    lines = data_of(capsys, "analyze", trace, "--by", "line")["ranking"]["rows"]
    assert any("record_accumulation.py(" in r["name"] for r in lines)


@pytest.mark.parametrize(
    "command", sorted({*COMMANDS} - {"demo", "check"})
)  # demo takes nothing to give an example of, and check has a repository to be in (test_check)
def test_help_of_every_command_has_examples_that_work(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each as it stands, in a folder of its own: a trace that it names is a copy of the demo's, and so is nothing else."""
    text = " ".join(out_of(capsys, command, "--help").split())
    shown = re.search(r"Examples?: (.*?)(?: (?:Arguments|Options):|$)", text)
    assert shown is not None
    made = 0
    for i, example in enumerate(re.split(r" *; | +\| +", shown[1])):
        program, verb, *argv = shlex.split(example)
        assert (program, verb) == ("stepcrit", command)
        (tmp_path / str(i)).mkdir()
        monkeypatch.chdir(tmp_path / str(i))
        for before, arg in pairwise(["", *argv]):
            if arg.endswith((".json", ".json.gz")) and before != "-o":
                path = Path(arg.replace("*", "a"))
                path.parent.mkdir(parents=True, exist_ok=True)
                made += 1  # blanks behind it: no two recordings are one
                path.write_bytes(Path(DEMO_TRACE).read_bytes() + gzip.compress(b" " * made))
        assert out_of(capsys, verb, *argv) or Path(argv[-1]).is_file()


@pytest.mark.parametrize(
    ("words", "floors"),
    [
        ("launch=5us", {EdgeKind.LAUNCH: 5_000}),
        ("stream=750ns", {EdgeKind.STREAM: 750}),
        ("event=1ms", {EdgeKind.EVENT: 1_000_000}),
        ("handover=2us", {EdgeKind.HANDOVER: 2_000}),
        ("handover=2us, launch=5us", {EdgeKind.HANDOVER: 2_000, EdgeKind.LAUNCH: 5_000}),
    ],
)
def test_floors_are_named_by_what_they_delay(words: str, floors: dict[EdgeKind, int]) -> None:
    assert parse_floors(words) == floors


def test_version_is_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    assert out_of(capsys, "--version").startswith(f"stepcrit {stepcrit.__version__} ")


@pytest.mark.parametrize("argv", [["--help"], ["--version"], ["explain"], ["analyze", "--help"]])
def test_help_and_explain_load_neither_numpy_pandas_nor_networkx(argv: list[str]) -> None:
    code = f"import sys; from stepcrit.cli.main import run; run({argv!r}); print([m for m in ('numpy', 'pandas', 'networkx') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.splitlines()[-1] == "[]"


def test_analyze_of_a_path_loads_neither_pandas_nor_networkx_nor_what_reads_options() -> None:
    code = f"import sys; from stepcrit.cli.main import run; run(['analyze', {TRACE!r}]); print([m for m in ('pandas', 'networkx', 'pydantic') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_demo_is_a_fixture_that_ships_with_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    shipped = Path(stepcrit.__file__).parent / "data" / "demo.json.gz"
    assert shipped.read_bytes() == (SIMULATED / "ddp_tail.rank0.json.gz").read_bytes()
    assert "critical path" in out_of(capsys, "demo").lower()


def test_an_unforeseen_fault_is_told_as_a_bug_with_exit_code_70(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import stepcrit.session  # noqa: PLC0415

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("the sky fell")

    monkeypatch.setattr(stepcrit.session, "read_trace", broken)
    assert run(["analyze", TRACE]) == 70
    err = capsys.readouterr().err
    assert "the sky fell" in err
    assert "Traceback" not in err
