"""What GitHub's runner acts on is ours alone, shown where it belongs, and no more of it than it shows."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stepcrit.model.checked import Checked, CheckedBudget, CheckedTrace, Effect, Outcome, Place, Remark
from stepcrit.model.section import Sentence, Unit, Value
from stepcrit.report.github import MOST, Lines, annotated, command, is_runner, summary
from tests.report.checks import checked, every_kind, failing, hostile, row, trace
from tests.report.hostile import NAMES
from tests.report.runner import WANTING, Command, command_of, commands, unescaped


@pytest.mark.parametrize("line", WANTING)
def test_the_parser_sees_what_a_runner_would_do(line: str) -> None:
    assert len(commands(f"a\n{line.replace('%0A', chr(10))}\nb")) == 1


# --- notes -----------------------------------------------------------------------------------


def test_a_broken_budget_is_noted_at_its_line() -> None:
    assert annotated(checked(failing("traces/a.json.gz"))) == [
        "::error file=stepcrit.toml,line=17,title=stepcrit fail%3A host_syncs::traces/a.json.gz: host_syncs: 2, at most 1"
    ]


@pytest.mark.parametrize("place", [None, Place("origin/main:stepcrit.toml", 4)])
def test_what_is_not_written_in_this_tree_is_noted_at_the_trace(place: Place | None) -> None:
    budget = CheckedBudget("m", Outcome.FAIL, Effect.FAILS, 2, Unit.COUNT, 1, Sentence("+0"), None, place)
    (note,) = commands(annotated(checked(trace("traces/a.json.gz", budget)))[0])
    assert note.properties == {"file": "traces/a.json.gz", "title": "stepcrit fail: m"}
    assert note.data == "traces/a.json.gz: m: 2, baseline 1, allowed +0"


@pytest.mark.parametrize(
    ("outcome", "effect", "kind"),
    [
        (Outcome.FAIL, Effect.FAILS, "error"), (Outcome.STALE, Effect.FAILS, "error"), (Outcome.INCONCLUSIVE, Effect.OPEN, "error"),
        (Outcome.UNKNOWN, Effect.OPEN, "error"), (Outcome.WARN, Effect.NONE, "warning"), (Outcome.STALE, Effect.NONE, "warning"),
        (Outcome.UNKNOWN, Effect.NONE, "warning"), (Outcome.IMPROVED, Effect.NONE, "notice"), (Outcome.NEW, Effect.NONE, "notice"),
    ],
)  # fmt: skip
def test_what_ends_a_job_is_an_error_and_what_does_not_is_less(
    outcome: Outcome, effect: Effect, kind: str
) -> None:
    assert [one.name for one in commands(annotated(checked(trace("a", row("m", outcome, effect))))[0])] == [
        kind
    ]


@pytest.mark.parametrize(
    ("config", "where"), [("stepcrit.toml", {"file": "stepcrit.toml"}), ("origin/main:stepcrit.toml", {})]
)
def test_what_holds_of_the_run_is_noted_at_its_rules(config: str, where: dict[str, str]) -> None:
    gone = Remark("SC904", Outcome.FAIL, Effect.FAILS, Sentence("a trace was deleted"))
    found = Checked(config, "origin/main (3f2c1aa)", (trace("t", row()),), (), (gone,))
    (note,) = commands(annotated(found)[0])
    assert note == Command(
        "error", {**where, "title": "stepcrit fail: SC904"}, f"{config}: SC904: a trace was deleted"
    )
    assert f"| fail | {config} | SC904 | a trace was deleted | – |" in summary(found)


def test_what_passed_is_not_noted() -> None:
    assert annotated(checked(trace("a", row(), row()), trace("b"))) == []


def test_a_trace_has_one_note_that_names_the_rest() -> None:
    rows = [row(f"m{i}", Outcome.WARN) for i in range(8)]
    told = trace("a", *rows, row("worst", Outcome.FAIL, Effect.FAILS), explain="stepcrit diff x:a a")
    (line,) = annotated(checked(told))
    first, also, explain = unescaped(line).split("\n")
    assert first.endswith("a: worst: 2, at most 1")
    assert also == "also " + ", ".join(f"m{i} (warn)" for i in range(5)) + " and 3 more"
    assert explain == "explain: stepcrit diff x:a a"


def test_a_verdict_that_comes_often_is_named_once() -> None:
    said = [Remark("C102", Outcome.INCONCLUSIVE, Effect.OPEN, Sentence("so")) for _ in range(4)]
    (line,) = annotated(checked(trace("a", row("m", Outcome.WARN), remarks=tuple(said))))
    assert unescaped(line).split("\n")[1:] == ["also C102 (inconclusive), m (warn)"]


@pytest.mark.parametrize("count", [9, 10, 11, 200])
def test_no_more_notes_than_github_shows_and_the_last_one_says_how_many_are_left(count: int) -> None:
    warned = [trace(f"w{i}", row("m", Outcome.WARN)) for i in range(count)]
    failed = [failing(f"f{i}") for i in range(count)]
    notes = commands("\n".join(annotated(checked(*warned, *failed))))
    kept = min(count, MOST)
    assert [note.name for note in notes] == ["error"] * kept + ["warning"] * kept
    assert [note.data.partition(":")[0] for note in notes[:kept]] == [f"f{i}" for i in range(kept)]
    left = f"{count - MOST} more traces have such a verdict: see the log"
    assert [note.data.endswith(left) for note in notes] == ([False] * (kept - 1) + [count > MOST]) * 2


def test_every_hostile_name_is_data() -> None:
    lines = annotated(hostile())
    assert [found.name for found in commands("\n".join(lines))] == ["error"] * MOST + ["warning"]
    for line in lines:
        assert "\n" not in line
        assert "\r" not in line
        (found,) = commands(line)
        assert {"file", "title"} <= set(found.properties) <= {"file", "line", "title"}
        assert found.properties.get("line", "1") == "1"


@example("%0A::set-output name=a::b", "%3A%2C")
@example("a\r\n%25", "x,y:z%0D")
@given(st.text(), st.text())
def test_what_is_escaped_comes_back_and_nothing_else_does(text: str, value: str) -> None:
    line = command("error", text, {"file": value, "title": "t"})
    assert [one for one in commands(line) if one.name != "error"] == []
    assert command_of(line) == Command("error", {"file": value, "title": "t"}, text)


# --- everything else -------------------------------------------------------------------------


def through(pieces: list[bytes]) -> bytes:
    lines = Lines()
    return b"".join(lines.harmless(piece) for piece in pieces)


@pytest.mark.parametrize("wanting", WANTING)
@pytest.mark.parametrize("before", ["", "\n", "a\n", " ", "\r", "x\n \t", "\u3000\n"])
@pytest.mark.parametrize("after", ["", "\n::warning::q\n", "::"])
def test_no_line_is_a_command_wherever_its_pieces_are_cut(wanting: str, before: str, after: str) -> None:
    log = f"{before}{wanting.replace('%0A', chr(10))}{after}"
    assert commands(log)
    data = log.encode()
    for i in range(len(data) + 1):
        for pieces in ([data[:i], data[i:]], [data[:i], data[i : i + 1], data[i + 1 :]], [data]):
            made = through(pieces)
            assert commands(made.decode()) == []
            assert len(made) == len(data)


@given(st.lists(st.text(st.sampled_from(":#[\n\r \u3000avso]%"), max_size=6).map(str.encode)))
def test_no_pieces_make_a_command(pieces: list[bytes]) -> None:
    made = through(pieces)
    assert commands(made.decode()) == []
    assert re.sub(rb"[:#\[a-z.]", b"", made) == re.sub(rb"[:#\[a-z.]", b"", b"".join(pieces))


@pytest.mark.parametrize(
    "text", ["aten::mm 12\n  a::b\n# ##\n", '{"name": "aten::mm"}\n', "a\n\n ü 日本\n", "x :: y\n#[z]\n"]
)
def test_what_is_no_command_stays_as_it_is(text: str) -> None:
    assert through([text.encode()]) == text.encode()
    assert through([bytes([one]) for one in text.encode()]) == text.encode()


def test_bytes_in_no_encoding_come_through() -> None:
    data = bytes(range(256)) * 2
    assert through([data[:100], data[100:]]) == data


@pytest.mark.parametrize(
    ("environ", "is_one"), [({}, False), ({"GITHUB_ACTIONS": "true"}, True), ({"GITHUB_ACTIONS": "false"}, False), ({"GITHUB_ACTIONS": ""}, False)]
)  # fmt: skip
def test_a_runner_says_that_it_is_one(environ: dict[str, str], *, is_one: bool) -> None:
    assert is_runner(environ) == is_one


# --- the summary -----------------------------------------------------------------------------


def test_the_summary_says_how_many_failed_and_why() -> None:
    unsure = trace("u", row("m", Outcome.UNKNOWN, Effect.OPEN, value=None))
    text = summary(checked(failing("traces/a.json.gz"), unsure, trace("c", row("fine"))))
    assert (
        "failed: 1, could not be judged: 1, of 3 traces; rules: stepcrit.toml; baseline: origin/main (3f2c1aa)"
        in text
    )
    assert "| fail | traces/a.json.gz | host_syncs | 2, at most 1 | stepcrit.toml:17 |" in text
    assert "| unknown | u | m | not known, at most 1, no synchronization records | – |" in text
    assert text.index("### Not passed") < text.index("### Passed") < text.index("| pass | c | fine |")


def outside_code(text: str) -> str:
    """What Markdown acts on: code spans are left out."""
    return re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", text)


def test_no_name_in_the_summary_is_a_link_a_mention_an_image_or_a_tag() -> None:
    wanting = ("@team", "#1", "GH-2", "![pixel](http://e/p.png)", "[t](javascript:u)", "<img src=x>", "www.evil.com", "https://e.com",
               "a|b", "</details>", "`tick`", "- item", "# head", "me@e.com", *NAMES)  # fmt: skip
    rows = [row(name, Outcome.FAIL, Effect.FAILS) for name in wanting]
    said = [
        Remark("SC900", Outcome.STALE, Effect.NONE, Sentence("{} is newer", (Value(n, Unit.NAME),)))
        for n in wanting
    ]
    traces = [
        CheckedTrace(name, Outcome.FAIL, Effect.FAILS, name, (one,), (what,), name)
        for name, one, what in zip(wanting, rows, said, strict=True)
    ]
    text = summary(checked(*traces, notes=(Sentence("see www.e.com GH-3 @me"),)))
    rest = re.sub(r"\\.", "", re.sub(r"</?(details|summary)>", "", outside_code(text)))
    assert not re.search(r"[@<]|!\[|\]\(|://|www\.|\bGH-\d|(?<!#)#\d", rest)
    cells = [
        len(re.findall(r"(?<!\\)\|", re.sub(r"\\\\", "", line)))
        for line in text.splitlines()
        if line.startswith("|")
    ]
    assert set(cells) == {5, 6}


@pytest.mark.parametrize("limit", [2_000, 3_333, 10_000, 100_000])
def test_a_long_summary_is_cut_between_two_rows_and_says_so(limit: int) -> None:
    many = checked(*(failing(f"traces/{i:04}.json.gz") for i in range(3000)))
    whole, text = summary(many, 10**9), summary(many, limit)
    assert len(text.encode()) <= limit < len(whole.encode())
    assert len(text.encode()) > limit - 400
    lines = text.splitlines()
    shown = [line for line in lines if line.startswith("| ")]
    left = sum(line.startswith("| ") for line in whole.splitlines()) - len(shown)
    assert lines[-1] == f"*Cut here: {left} more rows. `stepcrit check --format md` has them all.*"
    assert text.count("<details>") == text.count("</details>")
    assert all(line.endswith("|") for line in shown)


def test_the_summary_of_megabytes_of_names_fits_what_github_takes() -> None:
    many = checked(*(trace(f"t{i}", row("a|" * 1000, Outcome.FAIL, Effect.FAILS)) for i in range(1000)))
    assert len(summary(many, 10**9).encode()) > 1 << 20
    assert 890_000 < len(summary(many).encode()) <= 900_000


def test_a_summary_without_traces_says_so() -> None:
    assert "of 0 traces" in summary(checked())
    assert summary(every_kind()) == summary(every_kind())
