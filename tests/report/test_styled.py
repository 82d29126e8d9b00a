"""Text in styles: what is put on what, and which escape sequences come of it."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepcrit.report.styled import Text, joined
from stepcrit.report.terminal import is_terminal, takes_color

STYLES = ("", "bold", "dim", "cyan", "bold yellow", "not bold dim")
pieces = st.lists(st.tuples(st.text("ab ", max_size=4), st.sampled_from(STYLES)), max_size=5)


def text_of(some: list[tuple[str, str]], style: str = "") -> Text:
    made = Text(style=style)
    for plain, own in some:
        made.append(plain, own)
    return made


def test_a_piece_has_the_style_of_the_whole_and_its_own_on_top() -> None:
    title = Text("Time", "bold").append(" · observed", "not bold dim")
    assert title.printed(color=True) == "\x1b[1mTime\x1b[0m\x1b[2m · observed\x1b[0m"
    row = Text(style="dim").append_text(Text("name", "cyan")).append("  12 ms")
    assert row.printed(color=True) == "\x1b[2;36mname\x1b[0m\x1b[2m  12 ms\x1b[0m"


def test_what_is_added_to_a_text_has_its_style_as_well() -> None:
    assert (Text("x", "cyan") + Text(" ")).printed(color=True) == "\x1b[36mx \x1b[0m"
    assert (Text(" ") + Text("x", "cyan")).printed(color=True) == " \x1b[36mx\x1b[0m"
    assert joined([Text("a", "bold"), Text("b", "dim")], ", ").printed(color=True) == (
        "\x1b[1ma\x1b[0m, \x1b[2mb\x1b[0m"
    )


def test_without_colour_there_are_no_escape_sequences() -> None:
    assert text_of([("a", "bold"), ("b", "cyan")], "dim").printed(color=False) == "ab"


@given(pieces, st.sampled_from(STYLES), st.lists(st.integers(0, 20)))
def test_a_text_that_is_cut_is_the_same_in_parts(
    some: list[tuple[str, str]], style: str, cuts: list[int]
) -> None:
    whole = text_of(some, style)
    parts = whole.divide(sorted(cuts))
    assert len(parts) == len(cuts) + 1
    assert "".join(part.plain for part in parts) == whole.plain
    assert joined(parts, "").printed(color=True) == (Text() + whole).printed(color=True)


@given(pieces, st.sampled_from(STYLES))
def test_blanks_at_the_end_go_and_another_spelling_keeps_the_styles(
    some: list[tuple[str, str]], style: str
) -> None:
    whole = text_of(some, style)
    spelled = whole.respelled(whole.plain.replace("a", "c"))
    assert spelled.printed(color=True) == whole.printed(color=True).replace("a", "c")
    whole.rstrip()
    assert whole.plain == "".join(plain for plain, _ in some).rstrip()


@pytest.mark.parametrize(
    ("settings", "terminal", "color"),
    [
        ({}, False, False),
        ({"FORCE_COLOR": "1"}, True, True),
        ({"FORCE_COLOR": ""}, False, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": ""}, True, True),
        ({"FORCE_COLOR": "1", "TERM": "dumb"}, True, False),
        ({"FORCE_COLOR": "1", "TTY_COMPATIBLE": "0"}, False, False),
        ({"TTY_COMPATIBLE": "1"}, True, True),
    ],
)
def test_settings_say_whether_colour_may_be_written(
    settings: dict[str, str], *, terminal: bool, color: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    assert (is_terminal(io.StringIO()), takes_color(io.StringIO())) == (terminal, color)
