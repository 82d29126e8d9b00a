"""JUnit XML of `check`, as GitLab and Jenkins read it: a trace is a suite, a budget a case.

A case with `failure` broke its budget, one with `error` could not be judged and keeps the run from passing,
one with `skipped` could not be judged and may be. No time and no date is written: the same verdicts are the
same bytes. Jenkins refuses what its schema does not know (a case's file, a skipped count over all suites).
"""

from __future__ import annotations

from collections import Counter
from xml.etree import ElementTree as ET

from stepcrit.model.checked import Checked, CheckedTrace, Effect
from stepcrit.report.safe import safe_text
from stepcrit.report.values import sentence_text
from stepcrit.report.verdicts import UNDECIDED, Verdict, place_text, subjects, verdicts

SUITES = "stepcrit check"
COUNTED = {"failure": "failures", "error": "errors", "skipped": "skipped"}
"""Element of a case -> attribute of its suite that counts it."""
OVERALL = ("tests", "failures", "errors")
"""What the root may count."""


def junit(checked: Checked) -> str:
    """The file's text, with its XML declaration.

    Every character that XML 1.0 forbids is one that `safe_text` makes visible.
    """
    suites = [_suite(one) for one in subjects(checked)]
    if checked.notes:
        suites.append(_notes_suite(checked))
    totals = {key: str(sum(int(suite.attrib[key]) for suite in suites)) for key in OVERALL}
    root = ET.Element("testsuites", {"name": SUITES, **totals})
    root.extend(suites)
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _suite(trace: CheckedTrace) -> ET.Element:
    """One trace."""
    path = safe_text(trace.path)
    found = verdicts(trace)
    cases = [_case(path, name, verdict) for name, verdict in zip(_told_apart(found), found, strict=True)]
    suite = ET.Element("testsuite", {"name": path, **_counts(cases)})
    suite.extend(cases)
    told = (("baseline", trace.baseline), ("explain", trace.explain))
    _say(suite, [f"{what} {safe_text(words)}" for what, words in told if words])
    return suite


def _notes_suite(checked: Checked) -> ET.Element:
    """What was said of the run as a whole: no case, for nothing was judged."""
    suite = ET.Element("testsuite", {"name": f"{safe_text(checked.config)}: notes", **_counts([])})
    _say(suite, [sentence_text(note) for note in checked.notes])
    return suite


def _counts(cases: list[ET.Element]) -> dict[str, str]:
    """How many cases, and how many of each kind."""
    kinds = Counter(child.tag for case in cases for child in case)
    return {"tests": str(len(cases))} | {key: str(kinds[tag]) for tag, key in COUNTED.items()}


def _case(path: str, name: str, verdict: Verdict) -> ET.Element:
    """One budget or remark; GitLab shows the text of an element, Jenkins its message, too."""
    case = ET.Element("testcase", {"classname": path, "name": name})
    lines = [f"{verdict.outcome}: {verdict.words}"]
    lines += [f"budget {place_text(verdict.place)}"] if verdict.place else []
    tag = _tag(verdict)
    if tag:
        how = {"type": str(verdict.outcome), "message": verdict.words}
        ET.SubElement(case, tag, how).text = "\n".join(lines)
    else:
        _say(case, lines)
    return case


def _tag(verdict: Verdict) -> str:
    """The element that says how a case ended; "" where it passed, be it with a warning."""
    if verdict.effect == Effect.FAILS:
        return "failure"
    if verdict.effect == Effect.OPEN:
        return "error"
    return "skipped" if verdict.outcome in UNDECIDED else ""


def _told_apart(found: list[Verdict]) -> list[str]:
    """Names of cases, each another one: of two with one name in a suite, GitLab keeps the first alone."""
    names: list[str] = []
    for verdict in found:
        name, n = verdict.name, 1
        while name in names:
            n += 1
            name = f"{verdict.name} ({n})"
        names.append(name)
    return names


def _say(element: ET.Element, lines: list[str]) -> None:
    """Lines that readers show beside a result."""
    if lines:
        ET.SubElement(element, "system-out").text = "\n".join(lines)
