"""`check` as GitHub shows it: notes beside lines of a change, and the summary of a job.

A runner takes any line of a log that begins with "::" for a command. Ours carry names as data that is escaped as
its manual says; `Lines` breaks up every other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise

from stepcrit.model.checked import Checked, CheckedTrace, Effect, Outcome
from stepcrit.model.section import Column, Document, Section, Sentence, Unit, Value
from stepcrit.report import markdown
from stepcrit.report.safe import safe_text
from stepcrit.report.verdicts import UNDECIDED, Verdict, place_text, subjects, verdicts

KINDS = ("error", "warning", "notice")
"""Kinds of notes, the gravest first."""

MOST = 10
"""GitHub shows no more notes of a kind for one step of a job."""

NAMED = 5
"""So many further verdicts of a trace are named in its note."""

SUMMARY_BYTES = 900_000
"""GitHub refuses a summary of more than 1 MiB."""

_CUT_BYTES = 200  # what the sentence about a cut takes
_BLANK = (
    r"[\s\udc80-\udcff]"  # half a character counts as blank: what the other half makes of it is not known yet
)
_ACTING = re.compile(
    rf"(?:\A|(?<=[\r\n]))(?:(?![\r\n]){_BLANK})*(?P<colons>::)|(?P<hashes>##)(?=[A-Za-z]*\[)"
)
_BEGUN = re.compile(rf"{_BLANK}*(:?)")
_UNFINISHED = re.compile(r"#{1,2}[A-Za-z]{0,40}\Z")


def is_runner(environ: Mapping[str, str]) -> bool:
    """Whether GitHub, or what works like it, runs us and reads what we print."""
    return environ.get("GITHUB_ACTIONS") == "true"


# --- notes -----------------------------------------------------------------------------------


def annotated(checked: Checked) -> list[str]:
    """Lines for the runner, without line ends: one for a trace, at most ten of a kind, the gravest first.

    A last one says how many traces are not noted for want of room.
    """
    lines = []
    for kind in KINDS:
        noted = [(trace, found) for trace, found in _noted(checked) if _kind(found[0]) == kind]
        left = len(noted) - MOST
        for i, (trace, found) in enumerate(noted[:MOST]):
            more = (
                [f"{left} more traces have such a verdict: see the log"] if i == MOST - 1 and left > 0 else []
            )
            text = "\n".join([*_note(trace, found), *more])
            lines.append(command(kind, text, _properties(checked, trace, found[0])))
    return lines


def command(kind: str, text: str, properties: Mapping[str, str]) -> str:
    r"""A command for the runner: what it shows is escaped, so that it ends where it should.

    >>> command("error", "50 %\n::x", {"file": "a,b:c"})
    '::error file=a%2Cb%3Ac::50 %25%0A::x'
    """
    said = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{kind} {said}::{_data(text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _noted(checked: Checked) -> Iterator[tuple[CheckedTrace, list[Verdict]]]:
    """Traces of which there is something to note, with the verdicts that call for it."""
    for trace in subjects(checked):
        found = [one for one in verdicts(trace) if _kind(one)]
        if found:
            yield trace, found


def _kind(verdict: Verdict) -> str:
    """The kind of its note; "" for what passed as it should."""
    if verdict.effect != Effect.NONE:
        return "error"
    if verdict.outcome in UNDECIDED or verdict.outcome in (Outcome.WARN, Outcome.FAIL):
        return "warning"
    return "" if verdict.outcome == Outcome.PASS else "notice"


def _note(trace: CheckedTrace, found: list[Verdict]) -> Iterator[str]:
    """The gravest verdict of a trace in full, the others by name."""
    yield f"{safe_text(trace.path)}: {found[0].name}: {found[0].words}"
    others = list(dict.fromkeys(f"{one.name} ({one.outcome})" for one in found[1:]))
    if others:
        more = f" and {len(others) - NAMED} more" if len(others) > NAMED else ""
        yield f"also {', '.join(others[:NAMED])}{more}"
    if trace.explain:
        yield f"explain: {safe_text(trace.explain)}"


def _properties(checked: Checked, trace: CheckedTrace, verdict: Verdict) -> dict[str, str]:
    """Where GitHub shows a note: at the budget, where it stands in this tree, else at the trace."""
    title = {"title": safe_text(f"stepcrit {verdict.outcome}: {verdict.name}", 200)}
    place = verdict.place
    if place is not None and _is_here(checked, place.path):
        return {"file": safe_text(place.path), "line": str(place.line), **title}
    return {"file": safe_text(trace.path), **title} if _is_here(checked, trace.path) else title


def _is_here(checked: Checked, path: str) -> bool:
    """Whether a path is one of this tree, not of the baseline: "main:stepcrit.toml" under "main (3f2c1aa)"."""
    ref = checked.base.partition(" ")[0]
    return not (ref and path.startswith(f"{ref}:"))


# --- the summary -----------------------------------------------------------------------------


def summary(checked: Checked, limit: int = SUMMARY_BYTES) -> str:
    """The summary of a job in Markdown, no longer than `limit` bytes: it is cut between two rows, and says so."""
    found = [(trace.path, verdict) for trace in subjects(checked) for verdict in verdicts(trace)]
    rest = [one for one in found if one[1].outcome != Outcome.PASS]
    passed = [one for one in found if one[1].outcome == Outcome.PASS]
    blocks = [
        Section("stepcrit check", notes=(_headline(checked), *checked.notes)),
        *([_traces(checked)] if checked.traces else []),
        *([_table("Not passed", rest)] if rest else []),
        *([_table("Passed", passed)] if passed else []),
    ]
    return _cut(markdown.render(Document("check", (), tuple(blocks), {})).decode(), limit)


def _headline(checked: Checked) -> Sentence:
    """How many traces failed and how many were not judged."""
    effects = [trace.effect for trace in checked.traces]
    numbers = (effects.count(Effect.FAILS), effects.count(Effect.OPEN), len(effects))
    return Sentence(
        "failed: {}, could not be judged: {}, of {} traces; rules: {}; baseline: {}",
        (
            *(Value(n, Unit.COUNT) for n in numbers),
            Value(checked.config or "none", Unit.NAME),
            Value(checked.base or "none", Unit.NAME),
        ),
    )


def _traces(checked: Checked) -> Section:
    """One row a trace."""
    columns = (
        Column("outcome", "verdict", Unit.TEXT),
        Column("trace", "trace", Unit.TEXT),
        Column("baseline", "compared with", Unit.TEXT),
        Column("explain", "what explains a difference", Unit.TEXT),
    )
    rows = tuple((str(t.outcome), t.path, t.baseline or None, t.explain or None) for t in checked.traces)
    return Section("Traces", columns, rows)


def _table(title: str, found: list[tuple[str, Verdict]]) -> Section:
    """Verdicts as a table."""
    columns = (
        Column("outcome", "verdict", Unit.TEXT),
        Column("trace", "trace", Unit.TEXT),
        Column("metric", "metric", Unit.TEXT),
        Column("words", "found and allowed", Unit.TEXT),
        Column("place", "budget", Unit.TEXT),
    )
    rows = tuple(
        (str(one.outcome), path, one.name, one.words, place_text(one.place) if one.place else None)
        for path, one in found
    )
    return Section(title, columns, rows)


def _cut(text: str, limit: int) -> str:
    """As many whole lines as there is room for; a row is a line."""
    if len(text.encode()) <= limit:
        return text
    lines = text.splitlines(keepends=True)
    kept, size = 0, _CUT_BYTES
    while size + len(lines[kept].encode()) <= limit:
        size += len(lines[kept].encode())
        kept += 1
    shown = lines[:kept]
    is_folded = shown.count("<details>\n") > shown.count("</details>\n")
    rows = sum(line.startswith("| ") for line in lines[kept:])
    left = f"*Cut here: {rows} more rows. `stepcrit check --format md` has them all.*\n"
    return "".join([*shown, "\n</details>\n" if is_folded else "", "\n", left])


# --- everything else that we print -----------------------------------------------------------


class Lines:
    """Output as a runner reads it, made of lines that are no commands, wherever the pieces are cut that we write.

    Attributes:
        _begun: what matters of the line that the next piece goes on with.
    """

    def __init__(self) -> None:
        self._begun = ""

    def harmless(self, data: bytes) -> bytes:
        r"""The next piece, as wide as it was, with a dot in every sign of a command.

        >>> lines = Lines()
        >>> lines.harmless(b"a::b\n ::error::x ##[y]\n:"), lines.harmless(b":z")
        (b'a::b\n .:error::x #.[y]\n:', b'.z')
        """
        start = len(self._begun)
        text = self._begun + data.decode("utf-8", "surrogateescape")
        self._begun = _begun(text[max(text.rfind("\n"), text.rfind("\r")) + 1 :])
        dots = [max(_sign(found), start) for found in _ACTING.finditer(text)]
        if not dots:
            return data
        kept = [text[i + 1 : j] for i, j in pairwise([start - 1, *dots, len(text)])]
        return ".".join(kept).encode("utf-8", "surrogateescape")


def _sign(found: re.Match[str]) -> int:
    """Where the sign stands that makes a command of a line."""
    return found.start("colons") if found["colons"] else found.start("hashes") + 1


def _begun(line: str) -> str:
    """What is left to know of an unfinished line: whether only blanks stand in it, and how it ends."""
    opening = _BEGUN.fullmatch(line)
    if opening:
        return opening[1]
    ending = _UNFINISHED.search(line)
    return f".{ending[0]}" if ending else "."
