"""JUnit XML says what `check` found, in the shape that Jenkins demands and GitLab reads."""

from __future__ import annotations

import unicodedata
from collections import Counter
from xml.etree import ElementTree as ET

import pytest

from stepcrit.model.checked import Checked, Effect, Outcome, Remark
from stepcrit.model.section import Sentence
from stepcrit.report.junit import junit
from tests.report.checks import checked, every_kind, hostile, row, trace

SHAPE: dict[str, tuple[set[str], set[str], set[str]]] = {
    "testsuites": (set(), {"name", "time", "tests", "failures", "errors"}, {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors"},
        {"group", "time", "skipped", "timestamp", "hostname", "id", "package", "file", "log", "url"},
        {"testsuite", "properties", "testcase", "system-out", "system-err"},
    ),
    "testcase": (
        {"name"},
        {"time", "classname", "group"},
        {"skipped", "error", "failure", "system-out", "system-err"},
    ),
    "failure": (set(), {"type", "message"}, set()),
    "error": (set(), {"type", "message"}, set()),
    "skipped": (set(), {"type", "message"}, set()),
    "system-out": (set(), set(), set()),
}
"""Element -> attributes it must have, attributes it may have, elements it may hold: the schema of Jenkins' xunit plugin."""

UNSAFE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
TAGS = {"failure", "error", "skipped"}


def parsed(found: Checked) -> ET.Element:
    return ET.fromstring(junit(found).encode())  # noqa: S314 - our own text


def check_shape(element: ET.Element) -> None:
    """Everything that the schema demands and nothing that it does not know."""
    must, may, inside = SHAPE[element.tag]
    assert must <= set(element.attrib) <= must | may
    assert {child.tag for child in element} <= inside
    for child in element:
        check_shape(child)


def ends(suite: ET.Element) -> list[str]:
    """How each case ended."""
    return [
        next((child.tag for child in case if child.tag in TAGS), "passed") for case in suite.iter("testcase")
    ]


@pytest.mark.parametrize("found", [every_kind(), hostile(), checked(), checked(notes=(Sentence("none"),))])
def test_it_has_the_shape_that_readers_know(found: Checked) -> None:
    check_shape(parsed(found))


@pytest.mark.parametrize("found", [every_kind(), hostile()])
def test_every_count_is_what_is_there(found: Checked) -> None:
    root = parsed(found)
    for element in (root, *root):
        counted = Counter(ends(element))
        wanted = {"failures": "failure", "errors": "error", "skipped": "skipped"}
        told = {key: int(element.attrib[key]) for key in wanted if key in element.attrib}
        assert told == {key: counted[wanted[key]] for key in told}
        assert int(element.attrib["tests"]) == sum(counted.values())
    of_traces = sum(len(t.rows) + len(t.remarks) for t in found.traces)
    assert int(root.attrib["tests"]) == of_traces + len(found.remarks)


@pytest.mark.parametrize(
    ("outcome", "effect", "end"),
    [
        (Outcome.PASS, Effect.NONE, "passed"), (Outcome.IMPROVED, Effect.NONE, "passed"), (Outcome.NEW, Effect.NONE, "passed"),
        (Outcome.WARN, Effect.NONE, "passed"), (Outcome.FAIL, Effect.FAILS, "failure"), (Outcome.STALE, Effect.FAILS, "failure"),
        (Outcome.INCONCLUSIVE, Effect.OPEN, "error"), (Outcome.UNKNOWN, Effect.OPEN, "error"), (Outcome.STALE, Effect.OPEN, "error"),
        (Outcome.UNKNOWN, Effect.NONE, "skipped"), (Outcome.INCONCLUSIVE, Effect.NONE, "skipped"), (Outcome.STALE, Effect.NONE, "skipped"),
    ],
)  # fmt: skip
def test_a_case_ends_as_it_was_judged(outcome: Outcome, effect: Effect, end: str) -> None:
    assert ends(parsed(checked(trace("a", row("m", outcome, effect))))) == [end]
    said = Remark("SC900", outcome, effect, Sentence("so"))
    assert ends(parsed(checked(trace("a", remarks=(said,))))) == [end]


def test_a_broken_budget_says_what_was_found_what_is_allowed_and_where_it_is_written() -> None:
    case = next(
        parsed(
            checked(trace("traces/a.json.gz", row("host_syncs", Outcome.FAIL, Effect.FAILS, line=17)))
        ).iter("testcase")
    )
    assert case.attrib == {"classname": "traces/a.json.gz", "name": "host_syncs"}
    assert case[0].attrib == {"type": "fail", "message": "2, at most 1"}
    assert case[0].text == "fail: 2, at most 1\nbudget stepcrit.toml:17"


def test_what_is_not_known_is_no_number() -> None:
    case = next(parsed(checked(trace("a", row("m", Outcome.UNKNOWN, value=None)))).iter("testcase"))
    assert case[0].attrib["message"] == "not known, at most 1, no synchronization records"


def test_cases_of_one_name_are_told_apart_for_readers_that_keep_the_first() -> None:
    found = parsed(checked(trace("a", row("m"), row("m"), row("m (2)"), row("m"))))
    names = [case.attrib["name"] for case in found.iter("testcase")]
    assert len(set(names)) == 4
    assert {"m", "m (2)"} < set(names)


def test_no_character_that_xml_forbids_or_hides_is_in_it() -> None:
    text = junit(hostile())
    assert len(parsed(hostile())) == len(hostile().traces) + 2  # the run as a whole, and its notes
    assert {c for c in text if c != "\n" and unicodedata.category(c) in UNSAFE} == set()
    assert "\\x1b[31mred" in text
    # a line that a runner would take for a command, were the file printed
    assert [line for line in text.splitlines() if line.lstrip().startswith("::")] == []
    assert "##[" not in text


def test_the_same_verdicts_are_the_same_bytes() -> None:
    assert junit(every_kind()) == junit(every_kind())
    assert junit(checked()) == (
        '<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="stepcrit check" tests="0" failures="0" errors="0" />\n'
    )


def test_the_gravest_case_comes_first() -> None:
    rows = (
        row("a"),
        row("b", Outcome.WARN),
        row("c", Outcome.INCONCLUSIVE, Effect.OPEN),
        row("d", Outcome.FAIL, Effect.FAILS),
    )
    names = [case.attrib["name"] for case in parsed(checked(trace("t", *rows))).iter("testcase")]
    assert names == ["d", "c", "b", "a"]
    # what ends the run comes before what does not, whatever it is called
    odd = (row("a", Outcome.FAIL, Effect.NONE), row("b", Outcome.UNKNOWN, Effect.OPEN))
    assert [case.attrib["name"] for case in parsed(checked(trace("t", *odd))).iter("testcase")] == ["b", "a"]


def test_what_holds_of_the_run_is_a_suite_called_after_its_rules() -> None:
    gone = Remark("SC904", Outcome.FAIL, Effect.FAILS, Sentence("a trace was deleted"))
    suites = parsed(checked(trace("t", row()), remarks=(gone,)))
    assert [(suite.attrib["name"], suite.attrib["failures"]) for suite in suites] == [
        ("stepcrit.toml", "1"),
        ("t", "0"),
    ]
    assert [(case.attrib["name"], case[0].attrib["message"]) for case in suites[0]] == [
        ("SC904", "a trace was deleted")
    ]
