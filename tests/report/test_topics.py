"""`stepcrit explain`: every word on the screen leads to a text, and every text fits the screen."""

from __future__ import annotations

import ast
import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import get_args

import pytest

import stepcrit
from stepcrit import errors
from stepcrit.analyses import idle
from stepcrit.answers.findings import CODES
from stepcrit.answers.metrics import SHORT_NAMES, WITH_SUBJECT
from stepcrit.answers.words import EDGE_WORDS
from stepcrit.cli.demo import DEMO_TRACE
from stepcrit.cli.main import run
from stepcrit.errors import InternalError, StepcritError, UsageError
from stepcrit.graph import groups
from stepcrit.model.checked import Effect, Outcome
from stepcrit.model.classes import WorkClass
from stepcrit.model.graph import Evidence
from stepcrit.model.steps import Boundary
from stepcrit.report.topics import GROUPS, Topic, all_topics, key_of, parse_topic, show, topic_list

PACKAGE = Path(stepcrit.__file__).parent
ANSWERS = sorted((PACKAGE / "answers").glob("*.py"))
TOPIC_PLACE = {"Section": 7, "Bar": 4}
ENTRIES = [(one.id, entry) for one in all_topics() for entry in one.entries]


def calls_of(*names: str) -> Iterator[ast.Call]:
    for path in ANSWERS:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
                yield node


def literal(node: ast.expr | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def argument(call: ast.Call, place: int, keyword: str) -> str:
    by_name = [k.value for k in call.keywords if k.arg == keyword]
    return literal(by_name[0] if by_name else call.args[place] if len(call.args) > place else None)


def columns() -> set[str]:
    """Titles and keys of every column."""
    calls = list(calls_of("Column"))
    return ({argument(c, 1, "title") for c in calls} | {argument(c, 0, "key") for c in calls}) - {""}


def topics_named() -> set[str]:
    return {argument(c, TOPIC_PLACE[c.func.id], "topic") for c in calls_of("Section", "Bar")} - {""}  # type: ignore[attr-defined]


def headings() -> set[str]:
    return {argument(c, 0, "title") for c in calls_of("Section", "Bar")} - {""}


def error_codes() -> set[str]:
    kinds = [k for k in vars(errors).values() if isinstance(k, type) and issubclass(k, StepcritError)]
    return {k.code for k in kinds if k is not StepcritError}


def codes_in(folder: str, pattern: str) -> set[str]:
    return {c for path in (PACKAGE / folder).glob("*.py") for c in re.findall(pattern, path.read_text())}


def check_codes() -> set[str]:
    return codes_in("answers", r'"(C\d{3})"') | codes_in("cli", r'"(C\d{3})"')


def test_what_the_tests_collect_is_not_empty() -> None:
    assert {"on path", "margin", "room", "if half", "margin_ns"} <= columns()
    assert {"critical-path", "verdict", "recording", "around"} <= topics_named()
    assert {"Trust", "Verdict", "How to record", "Critical path"} <= headings()
    assert {"SC200", "SC304", "SC700"} <= error_codes()
    assert {"C101", "C102", "C105", "C110"} <= check_codes()


@pytest.mark.parametrize("name", sorted(columns()))
def test_every_column_leads_to_a_topic(name: str) -> None:
    assert show(name)


@pytest.mark.parametrize("name", sorted(headings()))
def test_every_heading_leads_to_a_topic(name: str) -> None:
    assert show(name)


@pytest.mark.parametrize("name", sorted(topics_named()))
def test_every_topic_that_an_answer_names_is_a_topic(name: str) -> None:
    assert name in {one.id for one in all_topics()}


@pytest.mark.parametrize("work", WorkClass)
def test_every_class_leads_to_a_text_that_says_what_is_in_it(work: WorkClass) -> None:
    text = show(work.label)
    assert re.search(rf"(^|, |; |: ){re.escape(work.label)}\W", text, re.MULTILINE | re.IGNORECASE)
    assert show(f"({work.label})")


def keys_of(data: object) -> set[str]:
    """Every key of an answer's data, down to the names that come from the trace."""
    if isinstance(data, dict):
        inner = {k: v for k, v in data.items() if k not in FROM_THE_TRACE}
        return set(data).union(*(keys_of(v) for v in inner.values()))
    return set().union(*(keys_of(v) for v in data[:1])) if isinstance(data, list) else set()


FROM_THE_TRACE = {
    "dropped", "graph_notes", "phases", "unknown_categories", "device_busy_ns", "idle_by_owner_ns",
    "idle_by_cause_ns", "overlap", "recorded", "versions",
}  # fmt: skip


@pytest.mark.parametrize(
    "argv",
    [
        ["analyze"],
        ["critical"],
        ["critical", "--around", "aten::mm"],
        ["doctor"],
        ["whatif", "--shrink", "aten::mm=0.5", "--curve", "--target", "1ms", "--model", "comm:k=2,alpha=fit"],
        ["whatif", "--rank"],
        ["whatif", "--target", "1ms"],
        ["whatif", "--inject", "aten::mm"],
    ],
    ids=" ".join,
)
def test_every_json_key_leads_to_a_topic(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([argv[0], DEMO_TRACE, *argv[1:], "--json"]) == 0
    for key in sorted(keys_of(json.loads(capsys.readouterr().out))):
        assert show(key), key


BUDGETS = """
[check]
traces = "t.json.gz"
[budget."*"]
host_syncs = { max = 0 }
overlap = { min = 0.5, level = "warn" }
step_time = { max = "60 min" }
"""


def test_every_json_key_of_check_leads_to_a_topic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("base").mkdir()
    for path in ("t.json.gz", "base/t.json.gz"):
        shutil.copy(DEMO_TRACE, path)
    Path("stepcrit.toml").write_text(BUDGETS.replace("60 min", "60 min"), encoding="utf-8")
    run(["check", "--base", "./base", "--tighten", "--json"])
    data = json.loads(capsys.readouterr().out)["data"]
    assert data["tightened"]
    assert len(data["traces"][0]["rows"]) > 5
    for key in sorted(keys_of(data)):
        assert show(key), key


@pytest.mark.parametrize("name", [*SHORT_NAMES, *WITH_SUBJECT])
def test_every_metric_is_defined(name: str) -> None:
    analyses = ("collectives", "overlap", "exposed_comm")  # have topics of their own
    assert show(name) == show("metrics") or name in analyses
    assert name.partition("{")[0] in show("metrics")


@pytest.mark.parametrize("word", [*Outcome, *Effect])
def test_every_outcome_and_effect_leads_to_a_text_that_has_it(word: str) -> None:
    assert word in show(word)
    assert word in show("check")


def test_every_json_key_of_a_comparison_leads_to_a_topic(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded = Path(__file__).parents[2] / "fixtures" / "recorded"
    before, after = (str(recorded / f"small_ops_halved_{word}.json.gz") for word in ("before", "after"))
    saved = str(tmp_path / "p.json")
    assert run(["whatif", before, "--shrink", "aten::neg_=0.5", "--save", saved]) == 0
    python = [str(recorded / f"python_halved_{word}.json.gz") for word in ("before", "after")]
    for argv in ([before, after, "--prediction", saved], python):
        capsys.readouterr()
        assert run(["diff", *argv, "--json"]) == 0
        for key in sorted(keys_of(json.loads(capsys.readouterr().out))):
            assert show(key), key


WORDS = (
    {work.group for work in WorkClass}
    | set(EDGE_WORDS.values())
    | {e.name.lower() for e in Evidence}
    | {"opening", "--boundary", *(f"{b} boundary" for b in Boundary)}
    | {idle.DEPENDENCY, idle.DEVICE_SIDE, idle.LATENCY, idle.ORPHAN, idle.TAIL}
    | {
        groups.ORPHAN,
        groups.UNATTRIBUTED,
        groups.UNTRACKED,
        groups.HOST,
        groups.OTHER_WORK,
        *get_args(groups.By),
    }
    | {f"Ranked {what}" for what in ("operators", "kernels", "classes of work", "modules", "lines")}
    | {"explained", "replay is exact", "undivided", "clamped", "not steady", "inferred waits", "host only"}
    | {"observed", "schedule", "modelled", "ok", "warn", "missing", "n/a", "latency", "warm-up", "set aside"}
)


@pytest.mark.parametrize("word", sorted(WORDS))
def test_every_other_word_on_the_screen_leads_to_a_topic(word: str) -> None:
    assert show(word)


@pytest.mark.parametrize(
    "code",
    sorted(
        error_codes()
        | set(CODES.values())
        | codes_in("analyses", r'"(E\d{3})"')
        | codes_in("answers", r'"([GLP]\d{3})"')
        | check_codes()
    ),
)
def test_every_code_has_an_entry_of_its_own(code: str) -> None:
    text = show(code.lower())
    assert text.startswith(f"{code}  ")
    assert Counter(re.findall(r"^[A-Z]{1,2}\d{3}\b", text, re.MULTILINE)) == {code: 1}


def test_no_entry_is_left_over_from_a_code_that_is_gone() -> None:
    known = error_codes() | codes_in("analyses", r'"(E\d{3})"') | codes_in("answers", r'"([GLP]\d{3})"')
    known |= check_codes()
    assert {entry.code for _, entry in ENTRIES} == known


def test_a_topic_of_codes_lists_them() -> None:
    text = show("doctor-codes")
    assert "  E101  device activities" in text
    assert "  E114  the profiler's own cost" in text


def test_ids_aliases_and_codes_are_unique() -> None:
    names = Counter(
        name.casefold()
        for one in all_topics()
        for name in (one.id, *one.aliases, *(entry.code for entry in one.entries))
    )
    assert {name: n for name, n in names.items() if n > 1} == {}


@pytest.mark.parametrize("one", all_topics(), ids=lambda one: one.id)
def test_every_name_leads_to_its_own_topic(one: Topic) -> None:
    assert all(show(name) == show(one.id) for name in (*one.aliases, one.title, one.id.upper()))


@pytest.mark.parametrize("one", all_topics(), ids=lambda one: one.id)
def test_a_text_fits_the_screen_and_is_plain(one: Topic) -> None:
    for text in (one.text, *(entry.text for entry in one.entries)):
        assert 0 < len(text.splitlines()) <= 25
        assert max(map(len, text.splitlines())) <= 78
        assert text.isascii()
        assert not re.search(r"</?[a-z]+>|\*\*|\t", text)
        assert not re.search(r" $", text, re.MULTILINE)
    shown = [show(one.id), *(show(entry.code) for entry in one.entries)]
    assert max(len(line) for text in shown for line in text.splitlines()) <= 80


@pytest.mark.parametrize("one", all_topics(), ids=lambda one: one.id)
def test_what_a_text_refers_to_is_there(one: Topic) -> None:
    for line in re.findall(r"^See: (.+)$", one.text, re.MULTILINE):
        assert {name.strip() for name in line.split(",")} <= {other.id for other in all_topics()}
    for code in re.findall(r"\b(?:SC|[CEGL])\d{3}\b", one.text):
        golden = re.search(rf"golden case {code}", one.text)
        assert golden or show(code)


def test_the_list_holds_every_file_in_80_columns() -> None:
    files = {
        path.name.removesuffix(".md")
        for path in (resources.files("stepcrit.report") / "topic_texts").iterdir()
    }
    assert sorted(files) == sorted(one for _, ids in GROUPS for one in ids)
    lines = topic_list().splitlines()
    assert max(map(len, lines)) <= 80
    for one in all_topics():
        assert any(line.split()[:1] == [one.id] and line.endswith(one.title) for line in lines)


@pytest.mark.parametrize(
    ("written", "topic"),
    [
        ("Critical_Path", "critical-path"),
        ("  SLACK ", "slack"),
        ("IF HALF", "saving"),
        ("--Floors", "floors"),
        ("(stream gap)", "gaps"),
        ("stream", "graph"),
        ("--stream", "idle"),
        ("host-op", "host-classes"),
    ],
)
def test_spelling_is_forgiving(written: str, topic: str) -> None:
    assert show(written) == show(topic)


@pytest.mark.parametrize(
    ("written", "near"),
    [
        ("slakc", "slack"),
        ("critcal path", "critical-path"),
        ("G2101", "G210"),
        ("comms", "comm"),
        ("runnr-up", "runner-up"),
    ],
)
def test_an_unknown_topic_is_wrong_use_and_names_near_ones(written: str, near: str) -> None:
    with pytest.raises(UsageError, match=re.escape(repr(written))) as caught:
        show(written)
    assert near in caught.value.do


@pytest.mark.parametrize("written", ["", "-", "qqqqqqqqqq", "\x1b[31m"])
def test_what_is_near_nothing_leads_to_the_list(written: str) -> None:
    with pytest.raises(UsageError) as caught:
        show(written)
    assert caught.value.do == "stepcrit explain lists the topics"


def test_a_text_without_its_front_lines_is_a_bug() -> None:
    with pytest.raises(InternalError):
        parse_topic("odd", "Title\n\nwords")


def test_a_text_with_entries_is_taken_apart() -> None:
    one = parse_topic(
        "odd",
        "# Odd codes\naliases: oddity, odd thing\nAll of them.\n\n## X1 first\nOne.\n\n## X2 second\nTwo.\n",
    )
    assert (one.title, one.aliases, one.text) == ("Odd codes", ("oddity", "odd thing"), "All of them.")
    assert [(e.code, e.title, e.text) for e in one.entries] == [
        ("X1", "first", "One."),
        ("X2", "second", "Two."),
    ]


def test_a_key_is_what_people_do_not_write_differently() -> None:
    assert key_of("Self CPU") == key_of("self_cpu") == key_of("self-CPU")
