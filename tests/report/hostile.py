"""A document in which every string wants something."""

from __future__ import annotations

from html.parser import HTMLParser

from stepcrit.model.section import Bar, Column, Document, Finding, Input, Section, Sentence, Unit, Value

NAMES = (
    "\x1b[31mred\x1b[0m \x1b]52;c;cm0gLXJm\x07",
    "\x9b2J\x9d8;;http://evil\x9c",
    "[red]x[/red] [/] [link=http://e]y[/link] :bomb:",
    "a|b||c \\| d",
    "=cmd|' /C calc'!A0",
    "  +1+1",
    "\uff1dfullwidth",
    "@mention #1 ![i](http://pixel) `tick` ``two``",
    "</script><img src=x onerror=alert(1)>&amp;'\"",
    "\u202egnp.exe\u2066\u200b\u200d\ufeff\u00ad",
    "line\nbreak\rreturn\ttab\x0b\x0c\x85\u2028\u2029",
    "::error file=a::gotcha",
    "%0A::add-mask::x ##[error]y",
    "\ud800 lone \udfff",
    "👩‍💻 日本語カーネル ﷽",
    "x" * 10_000,
    "void " + "a<" * 3000 + "b" + ">" * 3000 + "(int)",
    "<" * 5000,
    "",
    "\x00\x01\x7f",
    "- list",
    "# heading",
    "\u3000::add-mask::x",
    "void k<#(anonymous namespace)::#[error]x>(int)",
    "a.py(1): # at 0xf#[group]x",
)

COLUMNS = (
    Column("name", "na|me", Unit.NAME),
    Column("words", "words", Unit.TEXT),
    Column("on_path_ns", "on path", Unit.NS),
    Column("saved_ns", "if half", Unit.SAVED_NS),
    Column("calls", "calls", Unit.COUNT),
    Column("share", "share", Unit.SHARE),
    Column("size_bytes", "size", Unit.BYTES),
)


def document() -> Document:
    """Every name in a table, in sentences, in a bar, in findings and in data."""
    rows = tuple((n, n, i * 1000, -i, i, i / 100, i * 999) for i, n in enumerate(NAMES))
    nothing = (None,) * len(COLUMNS)
    blocks = (
        Section(
            "", notes=tuple(Sentence("{} and {}", (Value(n, Unit.NAME), Value(n, Unit.TEXT))) for n in NAMES)
        ),
        Section(
            NAMES[0],
            COLUMNS,
            rows,
            claim=NAMES[2],
            limit=5,
            total=("total", None, sum(r[2] for r in rows), None, None, None, None),
        ),
        Section("all of them", COLUMNS, rows, notes=(Sentence(NAMES[3]),)),
        Section("nothing known", COLUMNS, (nothing, nothing), total=nothing, limit=1),
        Section("no rows", COLUMNS, total=("total", None, 0, 0, 0, 0.0, 0)),
        Bar(NAMES[0], tuple((n, i) for i, n in enumerate(NAMES)), sum(range(len(NAMES))), claim=NAMES[9]),
        Bar("zero", (("a", 0), ("b", 0)), 0),
    )
    data = {"names": list(NAMES), "by_name": {n: i for i, n in enumerate(NAMES)}, "nothing": None}
    findings = tuple(Finding(f"X{i}", Sentence("{}", (Value(n, Unit.NAME),)), i) for i, n in enumerate(NAMES))
    return Document("analyze", (Input(NAMES[0], "00", 1),), blocks, data, findings, {NAMES[1]: NAMES[2]})


class Tags(HTMLParser):
    """What tags a page has, and what attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.keys: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.keys |= {key for key, _ in attrs}
