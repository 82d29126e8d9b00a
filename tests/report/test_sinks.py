"""What no sink may let through, and what each must keep."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
import unicodedata

import numpy as np
import pytest
from rich.cells import cell_len

from stepcrit.errors import InternalError, UsageError
from stepcrit.model.section import Bar, Column, Document, Section, Sentence, Unit, Value
from stepcrit.report import as_json
from stepcrit.report.html import fragment
from stepcrit.report.screen import Screen
from stepcrit.report.write import RENDERERS, render
from tests.report import hostile

WIDTHS = (20, 40, 80, 200)
SINKS = [*RENDERERS, "html"]


def _text(fmt: str, screen: Screen | None = None) -> str:
    document = hostile.document()
    return fragment(document) if fmt == "html" else render(document, fmt, screen).decode()


@pytest.mark.parametrize("fmt", SINKS)
def test_no_sink_lets_a_controlling_character_through(fmt: str) -> None:
    raw = {
        c
        for c in _text(fmt)
        if c != "\n" and unicodedata.category(c) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    }
    assert raw == set()


@pytest.mark.parametrize("fmt", SINKS)
def test_no_line_is_a_command_to_a_ci_runner(fmt: str) -> None:
    text = _text(fmt, Screen(20))
    assert "##[" not in text
    assert not [line for line in text.splitlines() if re.match(r"\s*::\w", line)]


@pytest.mark.parametrize("fmt", RENDERERS)
def test_the_same_document_gives_the_same_bytes(fmt: str) -> None:
    assert render(hostile.document(), fmt) == render(hostile.document(), fmt)


@pytest.mark.parametrize("width", [0, 1, *WIDTHS])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1", "cp1252", "no-such-encoding"])
def test_text_never_passes_the_width(width: int, encoding: str) -> None:
    lines = render(hostile.document(), "text", Screen(width, encoding)).decode().splitlines()
    assert max(map(cell_len, lines)) <= max(width, 20)


def test_text_for_an_ascii_stream_is_ascii() -> None:
    assert render(hostile.document(), "text", Screen(80, "ascii")).isascii()


def test_text_prints_markup_as_it_is_called() -> None:
    assert "[red]x[/red] [/] [link=http://e]y[/link] :bomb:" in _text("text", Screen(200))


def test_colour_adds_escape_sequences_and_nothing_else() -> None:
    colored = render(hostile.document(), "text", Screen(80, color=True)).decode()
    stripped = re.sub(r"\x1b\[[\d;]*m", "", colored)
    assert stripped != colored
    assert [line.rstrip() for line in stripped.splitlines()] == _text("text", Screen(80)).splitlines()


def test_csv_has_no_formula_in_words_and_bare_numbers() -> None:
    for block in _text("csv").split("\n\n"):
        for row in csv.reader(io.StringIO(block)):
            formulas = [
                c for c in row if re.match(r"\s*[=+\-@\uff1d]", c) and not re.fullmatch(r"-?[\d.]+", c)
            ]
            assert formulas == []


def test_csv_keeps_every_row_and_name_whole() -> None:
    blocks = [list(csv.DictReader(io.StringIO(b))) for b in _text("csv").split("\n\n")]
    table = next(b for b in blocks if b and b[0]["table"] == "all_of_them")
    assert len(table) == len(hostile.NAMES)
    assert table[15]["name"] == "x" * 10_000
    assert [row["on_path_ns"] for row in table] == [str(i * 1000) for i in range(len(table))]


def test_csv_leaves_what_is_not_recorded_empty() -> None:
    blocks = [list(csv.DictReader(io.StringIO(b))) for b in _text("csv").split("\n\n")]
    table = next(b for b in blocks if b and b[0]["table"] == "nothing_known")
    assert {v for row in table for k, v in row.items() if k != "table"} == {""}


def test_every_markdown_row_has_the_cells_of_its_header() -> None:
    cell = re.compile(r"(?<!\\)\|")
    rows = [line for line in _text("md").splitlines() if line.startswith("|")]
    assert {len(cell.findall(re.sub(r"\\\\", "", row))) for row in rows} == {len(hostile.COLUMNS) + 1}


def test_markdown_holds_no_tag_or_mention_outside_code() -> None:
    outside = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", _text("md"))
    outside = re.sub(r"</?(details|summary)>", "", outside)
    assert not re.search(r"(?<!\\)<|(?<!\\)@|!\[|(?<!\\)\]\(|://", outside)


@pytest.mark.parametrize(("rows", "folded"), [(20, False), (21, True)])
def test_a_markdown_table_of_more_than_20_rows_is_folded(rows: int, *, folded: bool) -> None:
    table = Section("t", (Column("a", "a", Unit.COUNT),), tuple((i,) for i in range(rows)))
    lines = render(Document("v", (), (table,), {}), "md").decode().splitlines()
    assert ("<details>" in lines, f"<summary>{rows} rows</summary>" in lines) == (folded, folded)
    assert sum(line.startswith("| ") for line in lines) == rows + 2  # a header and its rule


def test_html_holds_only_our_tags() -> None:
    tags = hostile.Tags()
    tags.feed(_text("html"))
    assert tags.seen <= {"div", "b", "small", "table", "thead", "tbody", "tr", "th", "td", "span", "ul", "li"}
    assert tags.keys <= {"class", "style", "title", "colspan"}


def test_json_keeps_names_whole_and_is_the_envelope() -> None:
    answer = json.loads(_text("json"))
    assert answer["schema"] == "stepcrit/analyze/1"
    assert sorted(answer) == [
        "data",
        "explain",
        "findings",
        "inputs",
        "schema",
        "stepcrit",
        "unknown",
        "untrusted",
    ]
    kept = [n for n in hostile.NAMES if not re.search("[\ud800-\udfff]", n)]
    assert [n for n in answer["data"]["names"] if n in kept] == kept
    assert answer["data"]["nothing"] is None
    assert answer["inputs"] == [{"name": hostile.NAMES[0], "sha256": "00", "size_bytes": 1}]


def _with_data(**data: object) -> Document:
    return Document("analyze", (), (), data)


def test_json_takes_numpy_numbers_and_arrays() -> None:
    made = as_json.render(
        _with_data(a=np.int64(3), b=np.float64(0.5), c=np.arange(2), d=Unit.NS, e=(np.bool_(0), True))
    )
    assert json.loads(made)["data"] == {"a": 3, "b": 0.5, "c": [0, 1], "d": "ns", "e": [False, True]}


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), np.float64("nan"), {1}, 2**70, object()])
def test_json_refuses_what_it_cannot_say(bad: object) -> None:
    with pytest.raises(InternalError) as caught:
        as_json.render(_with_data(steps=[{"elapsed_ns": bad}]))
    assert bad == 2**70 or caught.value.where == "data.steps[0].elapsed_ns"


def test_json_is_sorted_and_ends_with_a_line_end() -> None:
    made = as_json.render(_with_data(b=1, a=2)).decode()
    assert made.endswith("}\n")
    assert made.index('"a"') < made.index('"b"')


def test_what_is_unknown_is_named() -> None:
    made = Document("analyze", (), (), {"x": None}, unknown={"z": "why z", "x": "why x"})
    assert json.loads(as_json.render(made))["unknown"] == [
        {"path": "x", "why": "why x"},
        {"path": "z", "why": "why z"},
    ]


def test_an_unknown_format_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError) as caught:
        render(hostile.document(), "pdf")
    assert caught.value.do == "choose one of text, json, md, csv"


@pytest.mark.parametrize("fmt", ["text", "md"])
@pytest.mark.parametrize(
    "block",
    [
        Bar("b", (("a", 1),), 2),
        Bar("b", (("a", -1), ("c", 1)), 0),
        Section("s", notes=(Sentence("{} {}", (Value(1, Unit.NS),)),)),
        Section("s", (Column("a", "a", Unit.NS),), ((float("nan"),),)),
        Section("s", (Column("a", "a", Unit.NS),), (("12",),)),
    ],
)
def test_a_broken_promise_is_an_internal_error(fmt: str, block: Section | Bar) -> None:
    with pytest.raises(InternalError):
        render(Document("analyze", (), (block,), {}), fmt)


def test_an_empty_document_is_no_error() -> None:
    empty = Document("analyze", (), (), {})
    assert [render(empty, fmt).strip() for fmt in ("text", "md", "csv")] == [b"", b"", b""]
    assert "numpy" in sys.modules  # imported by this test, not by report
