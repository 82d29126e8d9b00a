"""`--classes FILE`: a user's rules decide before the table of names and after metadata, and are told."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import stepcrit as sc
from stepcrit.cli.main import run
from stepcrit.errors import UsageError
from stepcrit.link.linker import link
from stepcrit.link.rules import MOST, ClassRules
from stepcrit.model.classes import WorkClass
from tests.builders import event, trace

ROOT = Path(__file__).parents[2]
TRACE = str(ROOT / "fixtures" / "simulated" / "device_bound.json.gz")
DEVICE = (0, 7)


def told(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, Any]:
    assert run([*argv, "--json"]) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def write(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


def classes(toml: dict[str, Any]) -> dict[str, WorkClass]:
    """The class of each row of a small trace under rules, by name."""
    raw = trace(
        [
            event("user_annotation", "Optimizer.step#SGD.step", (0, 20)),
            event("cuda_runtime", "submit1", (1, 2), correlation=1),
            event("cpu_op", "mine::exchange", (21, 29)),
            event("cuda_runtime", "cudaLaunchKernel", (22, 23), correlation=2),
            event("cuda_runtime", "myWait", (24, 25)),
            event("kernel", "mine_update", (30, 31), DEVICE, correlation=1),
            event("kernel", "ampere_sgemm_128x64_tn", (31, 32), DEVICE, correlation=2),
            event("kernel", "mine_reduce", (32, 33), DEVICE, **{"Collective name": "allreduce"}),
            event("gpu_memcpy", "Memcpy DtoD (Device -> Device)", (33, 34), DEVICE),
            event("kernel", "mine_unknown", (34, 35), DEVICE),
        ]
    )
    work = link(raw, ClassRules.parse(toml)).work
    return {raw.events.name_of(row): WorkClass(int(work[row])) for row in range(len(raw.events))}


def test_rules_come_before_the_table_of_names() -> None:
    plain, ruled = classes({}), classes({"kernels": {"conv": ["ampere_sgemm*"], "norm": ["mine_unknown"]}})
    assert (plain["ampere_sgemm_128x64_tn"], plain["mine_unknown"]) == (WorkClass.GEMM, WorkClass.KERNEL)
    changed = {name: work for name, work in ruled.items() if work != plain[name]}
    assert changed == {"ampere_sgemm_128x64_tn": WorkClass.CONV, "mine_unknown": WorkClass.NORM}


def test_metadata_comes_before_rules() -> None:
    assert classes({"kernels": {"gemm": ["mine_update", "mine_reduce", "Memcpy*"]}}) == classes({})


def test_communication_in_an_update_may_be_told() -> None:
    assert classes({"kernels": {"comm": ["mine_update"]}})["mine_update"] == WorkClass.COMM


def test_name_is_decided_by_a_rule_only_where_metadata_does_not_say_the_same() -> None:
    chrome = [
        event("user_annotation", "Optimizer.step#SGD.step", (0, 20)),
        event("cuda_runtime", "submit", (1, 2), correlation=1),
        event("kernel", "inside", (30, 31), DEVICE, correlation=1),
        event("kernel", "outside", (31, 32), DEVICE),
        event("kernel", "ncclDevKernel", (32, 33), DEVICE, **{"Collective name": "allreduce"}),
    ]
    rules = ClassRules.parse({"kernels": {"optimizer": ["*side", "inside"], "comm": ["nccl*", "outside"]}})
    used = link(trace(chrome), rules).rules_used
    assert used.matched_counts == (2, 0, 1, 0)
    assert used.decided_counts == (1, 0, 0, 0)


def test_first_rule_that_means_a_name_decides_it() -> None:
    rules = {"kernels": {"norm": ["re:_unk"], "conv": ["mine_*"]}}
    assert classes(rules)["mine_unknown"] == WorkClass.NORM
    turned = {"kernels": dict(reversed(rules["kernels"].items()))}
    assert classes(turned)["mine_unknown"] == WorkClass.CONV


def test_host_rules_are_of_operators_or_of_calls_and_launches_stay_launches() -> None:
    found = classes({"host": {"comm": ["mine::*"], "sync": ["myWait", "mine::*"], "runtime call": ["cuda*"]}})
    plain = classes({})
    changed = {name: work for name, work in found.items() if work != plain[name]}
    assert changed == {"mine::exchange": WorkClass.COMM_HOST, "myWait": WorkClass.SYNC}


@pytest.mark.parametrize("argv", [["analyze"], ["critical"], ["whatif", "--rank"], ["doctor"]], ids=" ".join)
def test_every_command_tells_what_the_rules_decided_and_which_decided_nothing(
    argv: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = (
        '[kernels]\nconv = ["*gemm*"]\nnorm = ["nothing_like_it*"]\n[host]\ninput = ["cudaLaunchKernel"]\n'
    )
    answer = told(capsys, argv[0], TRACE, *argv[1:], "--classes", write(tmp_path / "c.toml", rules))
    found = [one for one in answer["findings"] if one["code"] in ("G220", "G221")]
    assert [one["code"] for one in found] == ["G220", "G221", "G221"]
    assert found[0]["count"] >= 1
    assert "nothing_like_it*" in json.dumps(found[1])
    assert "cudaLaunchKernel" in json.dumps(found[2])  # a call has no class of operators
    assert str(tmp_path) not in json.dumps(answer)


def test_answer_has_the_digest_of_the_rules_whatever_the_file_is_called(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = write(tmp_path / "one.toml", '[kernels]\nconv = ["*gemm*"]\n')
    same = write(tmp_path / "two.toml", '# words\n[kernels]\nconv = [ "*gemm*", ]\n')
    other = write(tmp_path / "three.toml", '[kernels]\nconv = ["*gem*"]\n')
    digests = [
        told(capsys, "analyze", TRACE, "--classes", path)["data"]["options"]["classes"]
        for path in (one, same, other)
    ]
    assert digests[0] == digests[1] != digests[2]
    assert all(re.fullmatch("sha256:[0-9a-f]{16}", digest) for digest in digests)
    assert told(capsys, "analyze", TRACE)["data"]["options"]["classes"] is None


def test_time_of_the_path_moves_to_the_class_of_the_rule_and_sums_stay(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "c.toml", '[kernels]\nembedding = ["re:gemm"]\n')
    plain = told(capsys, "analyze", TRACE)["data"]["critical_path"]
    ruled = told(capsys, "analyze", TRACE, "--classes", path)["data"]["critical_path"]
    assert sum(ruled["by_class_ns"].values()) == sum(plain["by_class_ns"].values()) == plain["elapsed_ns"]
    assert ruled["by_class_ns"]["embedding"] == plain["by_class_ns"]["gemm"] > 0
    assert set(ruled["by_class_ns"]) - {"embedding"} == set(plain["by_class_ns"]) - {"gemm"}


@pytest.mark.parametrize(
    ("toml", "says"),
    [
        ("[kernel]\n", ["no table 'kernel'", "near names: kernels"]),
        ('kernels = "gemm"\n', ["kernels is no table of classes"]),
        ('[kernels]\ngem = ["a"]\n', ["no class 'gem'", "near names: gemm"]),
        ('[kernels]\nmemcpy = ["a"]\n', ["no class 'memcpy'"]),  # the category decides
        ('[host]\ngemm = ["a"]\n', ["no class 'gemm'", "[host]"]),
        ('[kernels]\ngemm = "a"\n', ["[kernels] gemm", "no list of patterns"]),
        ("[kernels]\ngemm = [1]\n", ["no list of patterns"]),
        ('[kernels]\ngemm = [""]\n', ["no list of patterns"]),
        ('[kernels]\ngemm = ["re:("]\n', ["'(' is not a regular expression"]),
        ("[kernels\n", ["no TOML"]),
        ("x = " + "[" * 5000, ["file of classes"]),
        ("[kernels]\ngemm = [" + '"a",' * (MOST + 1) + "]", [f"{MOST + 1} patterns", f"at most {MOST}"]),
        ("#" * (2**20 + 1), ["larger than 1 MiB"]),
    ],
)
def test_file_that_says_nothing_of_use_is_wrong_use_and_says_where(
    toml: str, says: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "c.toml", toml)
    assert run(["analyze", TRACE, "--classes", path]) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert "Traceback" not in error
    assert all(words in error for words in [*says, "c.toml"]), error


def test_file_that_is_none_is_wrong_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    for path in (tmp_path / "nosuch.toml", tmp_path, tmp_path / "bytes.toml", "a\0b"):
        assert run(["analyze", TRACE, "--classes", str(path)]) == 2
        assert "file of classes" in capsys.readouterr().err


def test_largest_file_is_read(tmp_path: Path) -> None:
    rules = '[kernels]\nconv = ["*gemm*"]\n'
    path = write(tmp_path / "c.toml", rules + "#" * (2**20 - len(rules)))
    assert run(["analyze", TRACE, "--classes", path]) == 0


def test_regular_expressions_share_one_limit_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stepcrit.link.rules.deadline", lambda: 0.0)  # long past
    with pytest.raises(UsageError, match="takes too long"):
        classes({"kernels": {"gemm": ["re:(m+)+$"]}})
    assert classes({"kernels": {"gemm": ["mine_unknown"]}})["mine_unknown"] == WorkClass.GEMM


def test_library_takes_parsed_rules() -> None:
    rules = sc.ClassRules.parse({"kernels": {"embedding": ["*gemm*"]}})
    path = sc.load(TRACE, sc.Options(classes=rules)).graph().critical_path()
    assert path.by_class()["embedding"] > 0


def test_readme_example_is_read_as_it_stands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = re.findall(
        r"```toml\n(\[kernels\].*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL
    )
    answer = told(capsys, "analyze", TRACE, "--classes", write(tmp_path / "classes.toml", example))
    assert sum(one["code"] == "G221" for one in answer["findings"]) == 3  # nothing of it is in this trace
