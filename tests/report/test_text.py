"""The terminal's face, as it looks."""

from __future__ import annotations

import io

import pytest

from stepcrit.model.section import Bar, Column, Document, Finding, Section, Sentence, Unit, Value
from stepcrit.report import as_csv, markdown
from stepcrit.report.screen import Screen
from stepcrit.report.text import render

COLUMNS = (
    Column("name", "op", Unit.NAME),
    Column("calls", "calls", Unit.COUNT),
    Column("critical_ns", "on path", Unit.NS),
    Column("saving_ns", "if half", Unit.SAVED_NS),
)
ROWS = (
    ("aten::mm", 96, 118_300_000, 52_450_000),
    ("[red]x[/red]", 4, 61_200_000, None),
    ("aten::add_", 1_204, 41_000_000, 0),
    ("aten::copy_", None, 250_000, 7),
)
TOTAL = ("total", None, 220_750_000, None)
NOTE = Sentence("savings of {} do not add up", (Value("rows", Unit.TEXT),))
TABLE = Section("Ranked operators", COLUMNS, ROWS, TOTAL, (NOTE,), "modelled", 2)
BAR = Bar(
    "Critical path",
    (("kernels", 574), ("communication", 191), ("host", 132), ("copies", 0), ("gaps", 103)),
    1000,
    "schedule",
)
STEP = Sentence(
    "{} takes {}, {} of it exposed",
    (Value("ProfilerStep#12", Unit.NAME), Value(412_600_000, Unit.NS), Value(0.191, Unit.SHARE)),
)
FOUND = Finding("G204", Sentence("{} times: a successor starts early", (Value(3, Unit.COUNT),)), 3)
DEMO = Document("analyze", (), (Section("", notes=(STEP,)), BAR, TABLE), {}, (FOUND,))


def _shown(document: Document = DEMO, screen: Screen | None = None) -> str:
    return render(document, screen).decode().replace("\u202f", " ")


def test_a_whole_screen() -> None:
    assert (
        _shown(screen=Screen(60))
        == """\
ProfilerStep#12 takes 413 ms, 19.1 % of it exposed

Critical path 1.00 µs · schedule
  █████████████████████████████████▓▓▓▓▓▓▓▓▓▓▓▒▒▒▒▒▒▒▒░░░░░░
  █ kernels 57.4 %   ▓ communication 19.1 %   ▒ host 13.2 %
  ░ gaps 10.3 %

Ranked operators · modelled
op                 calls  on path   if half
aten::mm              96   118 ms  +52.5 ms
[red]x[/red]           4  61.2 ms         –
… and 2 more rows         41.2 ms
───────────────────────────────────────────
total                      221 ms
  savings of rows do not add up

! 3 times: a successor starts early (G204)
"""
    )


def test_the_same_screen_in_ascii_and_too_narrow_for_a_table() -> None:
    assert (
        _shown(screen=Screen(32, "ascii"))
        == """\
ProfilerStep#12 takes 413 ms,
19.1 % of it exposed

Critical path 1.00 us - schedule
  #################======++++---
  # kernels 57.4 %
  = communication 19.1 %
  + host 13.2 %   - gaps 10.3 %

Ranked operators - modelled
aten::mm
  calls 96, on path 118 ms, if
  half +52.5 ms
[red]x[/red]
  calls 4, on path 61.2 ms
... and 2 more rows
  on path 41.2 ms
total
  on path 221 ms
  savings of rows do not add up

! 3 times: a successor starts
  early (G204)
"""
    )


def test_rows_left_out_are_counted_where_nothing_adds_up() -> None:
    table = Section("t", COLUMNS, ROWS, limit=3)
    assert _shown(Document("v", (), (table,), {})).splitlines()[-1] == "… and 1 more row"


def test_rows_shown_and_left_out_add_up_to_the_total() -> None:
    parts = [118_300_000 + 61_200_000, 41_250_000]
    assert sum(parts) == TOTAL[2]
    assert "41.2 ms" in _shown()


def test_a_spare_column_goes_first_and_machine_formats_keep_it() -> None:
    columns = (Column("name", "name", Unit.NAME), Column("a_ns", "kept", Unit.NS))
    spare = Column("b_ns", "gone", Unit.NS, spare=True)
    rows = (("a" * 40, 1_000, 2_000),)
    document = Document("v", (), (Section("t", (*columns, spare), rows, ("total", 1_000, None)),), {})
    without = Document("v", (), (Section("t", columns, (rows[0][:2],), ("total", 1_000)),), {})
    assert _shown(document, Screen(62)).splitlines()[1].split() == ["name", "kept", "gone"]
    assert _shown(document, Screen(30)) == _shown(without, Screen(30))
    assert b"b_ns" in as_csv.render(document)
    assert b"gone" in markdown.render(document)


def test_a_table_without_rows_says_so() -> None:
    assert _shown(Document("v", (), (Section("t", COLUMNS),), {})) == "t\n  nothing to show\n"


def test_zero_and_not_recorded_look_different() -> None:
    lines = _shown(Document("v", (), (Section("t", COLUMNS, ROWS),), {})).splitlines()
    assert lines[3].split()[-1] == "–"
    assert lines[4].split()[-1] == "0"


def test_a_number_stays_with_its_unit() -> None:
    sentence = Sentence("a {}" * 12, tuple(Value(123_000_000, Unit.NS) for _ in range(12)))
    lines = render(Document("v", (), (Section("", notes=(sentence,)),), {}), Screen(23)).decode().splitlines()
    assert all(line.count("\u202fms") == line.count("123") for line in lines)


@pytest.mark.parametrize(("length", "lines"), [(100, 1), (101, 2)])
def test_prose_goes_no_wider_than_100_however_wide_the_terminal(length: int, lines: int) -> None:
    """A hundred fit into one line, one more does not; a bar fills the same width."""
    words = Sentence(f"{'nine more ' * 9}{'x' * (length - 90)}")
    shown = _shown(Document("v", (), (Section("", notes=(words,)),), {}), Screen(200)).splitlines()
    assert len(shown) == lines
    assert max(len(line) for line in shown) == (100 if lines == 1 else 89)
    bar = _shown(Document("v", (), (BAR,), {}), Screen(200)).splitlines()[1]
    assert 90 < len(bar) <= 100


def test_different_names_in_a_sentence_look_different() -> None:
    names = ("void f<int>(int)", "void f<int>(long)", "void f<int>(int)")
    said = Sentence("{} became {}, not {}", tuple(Value(name, Unit.NAME) for name in names))
    document = Document("test", (), (Section("", notes=(said,)),), {}, (Finding("X1", said),))
    shown = _shown(document)
    assert shown.count("f<int> became f<int> #2, not f<int>") == 2
    assert "`f<int>` became `f<int> #2`, not `f<int>`" in markdown.render(document).decode()


def test_numbered_sentences_hang() -> None:
    note = Sentence("1  start the copy earlier, with more words than fit into the line")
    assert _shown(Document("v", (), (Section("Next", notes=(note,)),), {}), Screen(40)).splitlines()[1:] == [
        "  1  start the copy earlier, with more",
        "     words than fit into the line",
    ]


class _Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("env", "color"),
    [
        ({"TERM": "xterm-256color"}, True),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, False),
        ({"TERM": "dumb"}, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, False),
    ],
)
def test_a_terminal_has_colour_unless_told_otherwise(
    monkeypatch: pytest.MonkeyPatch, env: dict[str, str], *, color: bool
) -> None:
    for key in ("TERM", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "TTY_COMPATIBLE", "COLORTERM"):
        monkeypatch.delenv(key, raising=False)
    for key, value in env.items():
        monkeypatch.setenv(key, value)
    assert Screen.of(_Terminal()).color == color


def test_a_pipe_is_80_wide_and_colourless_whatever_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for key in ("FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(key, raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    assert Screen.of(io.StringIO()) == Screen(80, "utf-8", color=False)


def test_forced_colour_reaches_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert Screen.of(io.StringIO()).color
