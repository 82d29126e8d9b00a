"""`stepcrit schema`: what is written is what was declared, key for key, over every fixture and command."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator

from stepcrit.answers import check, critical, data, diffdata, doctor, rank, room, sure, target, whatif
from stepcrit.answers.compared import Conclusion
from stepcrit.cli.demo import DEMO_TRACE
from stepcrit.cli.main import COMMANDS, run
from stepcrit.ingest.config import File
from stepcrit.report.schemas import diff
from stepcrit.report.schemas.every import DATA, UNITS, schema
from stepcrit.report.schemas.shape import Shape, also, by_name, described, either, keys, maybe, one_of, rows
from stepcrit.report.topics import show
from tests.security.hostile_trace import hostile_trace

FIXTURES = sorted((Path(__file__).parents[2] / "fixtures").glob("*/*.json.gz"))
ASKED = (
    "analyze TRACE", "analyze TRACE --by kernel", "analyze TRACE --by class", "analyze TRACE --boundary launch --strict",
    "analyze TRACE --floors launch=5us,stream=1us", "critical TRACE", "critical TRACE --full", "critical TRACE --around *",
    "doctor TRACE", "whatif TRACE --shrink *=0.5", "whatif TRACE --add *=1us --curve --target 1ns", "whatif TRACE --remove *",
    "whatif TRACE --set *=1us --model free", "whatif TRACE --model queue:16 --speedup *=2x", "whatif TRACE --rank",
    "whatif TRACE --rank --by class", "whatif TRACE --target 1ns", "whatif TRACE --target 1s --by kernel", "whatif TRACE --inject *",
)  # fmt: skip
DEMO = (
    "demo", f"whatif {DEMO_TRACE} --shrink aten::*=0.5 --model comm:k=2,alpha=fit", f"whatif {DEMO_TRACE} --model contend --remove aten::*",
    f"whatif {DEMO_TRACE} --rank --by collective", f"analyze {DEMO_TRACE} --stream 7", "calc amdahl --part 40ms:2 --of 100ms",
    "calc amdahl --observed 1.1x --op-speedup inf", "calc crossover --a 30s+1s --b 0s+1.2s --at 50", "calc crossover --a 30s+1s --b 0s+1s",
    "calc roofline --intensity 2 --bandwidth 100GB/s --roof 1TFLOP/s", "calc roofline --gemm 64,64,64 --bandwidth 1GB/s --roof 1GFLOP/s",
    "calc scaling --serial 0.05 --at 8", "calc scaling --strong --run 8,100ms --run 16,60ms",
    "calc scaling --steps-min 100 --critical-batch 32 --batch 8,10ms",
)  # fmt: skip


@cache
def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(schema(name))


def faults(answer: Any) -> list[str]:
    """What of an answer nobody declared."""
    found = validator(answer["schema"].split("/")[1]).iter_errors(answer)
    return [f"{'.'.join(map(str, fault.absolute_path))}: {fault.message[:200]}" for fault in found]


PAIRS = (
    ("recorded/op_pair_before", "recorded/op_pair_after"), ("simulated/host_bound", "simulated/device_bound"),
    ("recorded/wait_removed_before", "recorded/wait_removed_after"), ("simulated/ddp_tail.rank0", "simulated/ddp_tail.rank1"),
    ("recorded/accumulation_microbatch", "recorded/accumulation_stacks"), ("simulated/two_streams", "simulated/two_streams"),
)  # fmt: skip


@pytest.mark.parametrize(("base", "new"), PAIRS)
def test_every_comparison_is_as_declared(base: str, new: str, capsys: pytest.CaptureFixture[str]) -> None:
    answer = answered(
        ["diff", *(str(FIXTURES[0].parents[1] / f"{one}.json.gz") for one in (base, new))], capsys
    )
    assert faults(answer) == []


def test_a_judged_prediction_is_as_declared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, after = (
        str(FIXTURES[0].parents[1] / f"recorded/op_pair_{one}.json.gz") for one in ("before", "after")
    )
    saved = str(tmp_path / "p.json")
    assert run(["whatif", before, "--shrink", "aten::mm=0.5", "--save", saved]) == 0
    capsys.readouterr()
    answer = answered(["diff", before, after, "--prediction", saved], capsys)
    assert answer["data"]["prediction"]["asked"]
    assert faults(answer) == []


def test_the_conclusions_are_those_there_are() -> None:
    assert set(diff.CONCLUSIONS) == {str(one) for one in Conclusion}


@pytest.mark.parametrize(
    "words", ["--base .", "--base . --config c.toml --show-passed", "--base . --config c.toml --tighten"]
)
def test_what_check_finds_is_as_declared(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for path in (*FIXTURES[::6], Path(DEMO_TRACE)):
        Path(path.name).write_bytes(path.read_bytes())
    if "--tighten" not in words:  # of what is not whole no budget is tightened
        Path("broken.json.gz").write_bytes(Path(DEMO_TRACE).read_bytes()[:-500])
        Path("pointer.json").write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n")
    lines = ["[check]", "[watch]", '"*" = ["x.py"]', '[budget."*"]', 'step_time = { max = "1 s", min = "1 ns" }', "host_syncs = { max = 0 }",
             '"operators[aten::mm].device_ns" = { max = "1 ns", level = "warn" }']  # fmt: skip
    Path("c.toml").write_text("\n".join(lines), encoding="utf-8")
    assert run(["check", "*.json*", *words.split(), "--json"]) in (0, 1, 4)
    answer = json.loads(capsys.readouterr().out)
    assert faults(answer) == []
    assert len(answer["data"]["traces"]) == len(FIXTURES[::6]) + (1 if "--tighten" in words else 3)
    assert bool(answer["data"]["tightened"]) == ("--tighten" in words)


def answered(argv: list[str], capsys: pytest.CaptureFixture[str]) -> Any:
    """The JSON of a command; what cannot be asked of a trace is not asked."""
    code = run([*argv, "--json"])
    out = capsys.readouterr().out
    assert code in (0, 2, 3, 4)
    return json.loads(out) if code == 0 else None


@pytest.mark.parametrize(("i", "path"), list(enumerate(FIXTURES)), ids=[path.name for path in FIXTURES])
def test_every_answer_about_a_fixture_is_as_declared(
    i: int, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in ASKED[i % 4 :: 4]:
        answer = answered(words.replace("TRACE", str(path)).split(), capsys)
        assert answer is None or faults(answer) == [], words


def test_every_kind_of_answer_is_among_those_that_are_asked(capsys: pytest.CaptureFixture[str]) -> None:
    answers = [answered(words.replace("TRACE", DEMO_TRACE).split(), capsys) for words in ASKED]
    assert [faults(answer) for answer in answers if answer] == [[]] * len(ASKED)
    assert len({answer["schema"] for answer in answers}) == 7


@pytest.mark.parametrize("words", DEMO)
def test_every_other_answer_is_as_declared(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    answer = answered(words.split(), capsys)
    assert answer is not None
    assert faults(answer) == []


@pytest.mark.parametrize("words", ["--shrink *=0.5", "--add *=1us --self --side host --model queue:16"])
def test_a_saved_prediction_is_as_declared(
    words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = tmp_path / "p.json"
    assert run(["whatif", DEMO_TRACE, *words.split(), "--save", str(saved)]) == 0
    capsys.readouterr()
    assert faults(json.loads(saved.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("start", [0, 7, 20])
def test_names_that_want_something_are_no_key_of_ours(
    start: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(hostile_trace(start).content)
    for words in ASKED:
        answer = answered(words.replace("TRACE", str(path)).split(), capsys)
        assert answer is None or faults(answer) == []


def test_what_is_wrong_with_a_file_is_as_declared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A damaged file, whose places in the text are partly not known."""
    sound = json.dumps(hostile_trace().document, indent=1)
    path = tmp_path / "t.json"
    path.write_text(
        sound.replace('"cbid"', '"x": NaN, "cbid"', 1)[: int(len(sound) * 0.97)], encoding="utf-8"
    )
    answer = answered(["doctor", str(path)], capsys)
    assert answer["data"]["damage"]
    assert faults(answer) == []


def test_what_was_done_to_a_slimmed_trace_is_as_declared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slimmed = str(tmp_path / "s.json.gz")
    assert run(["slim", DEMO_TRACE, "-o", slimmed]) == 0
    capsys.readouterr()
    answer = answered(["doctor", slimmed], capsys)
    assert answer["data"]["slim"]["steps_before"] > 0
    assert faults(answer) == []


@pytest.mark.parametrize("name", DATA)
def test_a_schema_is_one_and_refuses_a_key_that_nobody_declared(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["schema", name]) == 0
    told = json.loads(capsys.readouterr().out)
    Draft202012Validator.check_schema(told)
    assert told == schema(name)
    for one in objects(told):
        assert one["additionalProperties"] is False or isinstance(one["additionalProperties"], dict)
    assert run(["demo", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    if name == "analyze":
        answer["data"]["steps"][0]["new_key"] = 1
        assert faults(answer) == [
            "data.steps.0: Additional properties are not allowed ('new_key' was unexpected)"
        ]
        del answer["data"]["steps"][0]["new_key"], answer["data"]["steps"][0]["used"]
        assert faults(answer) == ["data.steps.0: 'used' is a required property"]


def objects(told: Any) -> Iterator[Any]:
    """Every object that a schema describes."""
    if isinstance(told, dict):
        if "object" in str(told.get("type")):
            yield told
        for inner in told.values():
            yield from objects(inner)
    elif isinstance(told, list):
        for inner in told:
            yield from objects(inner)


def fields(told: Any) -> Iterator[tuple[str, Any]]:
    """Every key with its schema."""
    for one in objects(told):
        yield from one.get("properties", {}).items()


@pytest.mark.parametrize("name", DATA)
def test_every_key_says_what_it_is_and_in_what_unit(name: str) -> None:
    for key, told in fields(schema(name)):
        words = told.get("description", "")
        assert words, key
        for end, unit in UNITS:
            assert not key.endswith(end) or unit in words, key
        for topic in re.findall(r"stepcrit explain ([\w-]+)", words):
            assert show(topic)


def test_every_verb_that_writes_json_has_a_schema() -> None:
    of_verbs = {name.split("-")[0] for name in DATA} - {"prediction"}
    assert of_verbs | {"demo", "explain", "init", "schema", "slim"} == set(COMMANDS)


NULLABLE = [
    ("analyze", {**data.NULLS, **dict.fromkeys((*data.DEVICE_PATHS, *data.HOST_PATHS), "")}),
    ("whatif", whatif.NULLS), ("whatif-rank", rank.NULLS), ("whatif-target", target.NULLS), ("whatif-inject", room.NULLS),
    ("critical", critical.NULLS), ("doctor", doctor.NULLS),
    ("check", check.NULLS), ("diff", diffdata.NULLS),
    ("prediction", {**sure.NULLS, **data.NOT_GIVEN}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "reasons"), NULLABLE)
def test_what_can_be_null_is_what_has_a_reason(name: str, reasons: dict[str, str]) -> None:
    """Else a null would fail its schema, or a schema allow what no answer has."""
    declared = set(nullable(schema(name)["properties"]["data"], ""))
    if name == "analyze":
        reasons = {**reasons, "ranking.rows[].calls": "the side that is ranked was not recorded"}
    else:  # parts that are shared: trust where the device was not recorded, and an option of analyze
        declared -= {"trust.starts"}
        reasons = {path: why for path, why in reasons.items() if path != "options.stream"}
    assert declared == set(reasons)


def nullable(told: Shape, path: str) -> Iterator[str]:
    """Paths of what may be null, written as `unknown` writes them."""
    if "null" in told.get("type", []) or {"type": "null"} in told.get("anyOf", []):
        yield path
    for key, inner in told.get("properties", {}).items():
        yield from nullable(inner, f"{path}.{key}".lstrip("."))
    if "items" in told:
        yield from nullable(told["items"], f"{path}[]")
    for inner in told.get("anyOf", []):
        yield from (found for found in nullable(inner, path) if found != path)


# --- the configuration -----------------------------------------------------------------------

CONFIGS: tuple[tuple[dict[str, Any], bool], ...] = (
    ({}, True),
    ({"schema": 1, "check": {"traces": ["traces/**"], "base": "origin/main", "preset": "structure"}}, True),
    ({"budget": {"*": {"step_time": {"max": "420 ms", "grow": "5 %", "level": "warn"}}}}, True),
    ({"watch": {"traces/*": ["train.py"]}}, True),
    ({"check": {"trace": ["x"]}}, False),
    ({"check": {"preset": "strict"}}, False),
    ({"budget": {"*": {"step_time": {"most": 1}}}}, False),
    ({"budget": {"*": {"step_time": 5}}}, False),
    ({"schema": 2}, False),
    ({"chekc": {}}, False),
)


@pytest.mark.parametrize(("config", "is_right"), CONFIGS)
def test_the_schema_of_the_configuration_takes_what_the_reader_takes(
    config: dict[str, Any], capsys: pytest.CaptureFixture[str], *, is_right: bool
) -> None:
    assert run(["schema", "config"]) == 0
    told = json.loads(capsys.readouterr().out)
    Draft202012Validator.check_schema(told)
    assert Draft202012Validator(told).is_valid(config) == is_right
    try:
        msgspec.convert(config, File)
        is_taken = True
    except msgspec.ValidationError:
        is_taken = False
    assert is_taken == is_right


# --- the command -----------------------------------------------------------------------------


def test_the_list_names_every_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema"]) == 0
    out = capsys.readouterr().out
    assert [line.split()[0] for line in out.splitlines()[2:]] == ["config", *DATA]
    assert max(map(len, out.splitlines())) <= 80


def test_an_unknown_schema_is_wrong_use_and_names_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema", "analyse"]) == 2
    err = capsys.readouterr().err
    assert "no schema 'analyse'" in err
    assert "one of config, analyze, critical" in err


def test_a_schema_goes_to_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "s.json"
    assert run(["schema", "doctor", "-o", str(path)]) == 0
    assert json.loads(path.read_text(encoding="utf-8")) == schema("doctor")
    assert capsys.readouterr().out == ""
    assert run(["schema", "doctor", "-o", str(tmp_path)]) == 5


# --- the words that schemas are written in ---------------------------------------------------


def test_shapes_say_what_they_are_called_after() -> None:
    shape = also(
        keys(a=maybe({"type": "string"}), b=rows(one_of(("x", "y"))), c=either({"type": "integer"}, {"type": "null"})),
        d=by_name({"type": "number"}, ("p", "q")),
    )  # fmt: skip
    check = Draft202012Validator(shape).is_valid
    assert check({"a": None, "b": ["x"], "c": 1})
    assert check({"a": "", "b": [], "c": None, "d": {"p": 1.5}})
    assert not check({"a": "", "b": []})
    assert not check({"a": "", "b": ["z"], "c": 1})
    assert not check({"a": "", "b": [], "c": 1, "d": {"r": 1}})
    assert not check({"a": "", "b": [], "c": 1, "e": 1})
    told = described(shape, {"a": "first", "zz": "none"})
    assert told["properties"]["a"]["description"] == "first"
    assert "description" not in told["properties"]["b"]
