"""Names and documents that no terminal, table or page should be trusted with, through every renderer."""

from __future__ import annotations

import csv
import io
import json
import re
import unicodedata
from collections.abc import Callable
from html.parser import HTMLParser
from random import Random
from typing import Any

from rich.cells import cell_len

from fuzzing import odd
from fuzzing.judge import Target, fault, sampled, strict_json
from stepcrit.model.section import (
    Bar,
    Block,
    Cell,
    Column,
    Document,
    Finding,
    Input,
    Section,
    Sentence,
    Unit,
    Value,
)
from stepcrit.report.html import fragment
from stepcrit.report.screen import Screen
from stepcrit.report.write import RENDERERS, render

ENCODINGS = (
    "utf-8",
    "utf-8",
    "ascii",
    "latin-1",
    "cp1252",
    "cp437",
    "shift_jis",
    "utf-16",
    "no-such-encoding",
    "",
)
UNITS = ("text", "name", "ns", "saved_ns", "count", "share", "bytes")
TAGS = {"div", "b", "small", "table", "thead", "tbody", "tr", "th", "td", "span", "ul", "li"}
ATTRIBUTES = {"class", "style", "title", "colspan"}
RANGES = ("\x00\x9f", "\u0080\u024f", "\u0300\u036f", "\u0590\u06ff", "\u2000\u206f", "\u2100\u27ff", "\u3000\u9fff", "\ud800\udfff", "\ue000\uffff",
          "\U0001f000\U0001faff", "\U000e0000\U000e01ef")  # fmt: skip
_CONTROLS = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def written(dice: Random) -> bytes:
    """A document a line a block, after one line with the screens to show it on."""
    screens = [[dice.choice((0, 1, 2, 19, 20, 21, 79, 80, 81, 100, 101, 300, dice.randint(1, 300))), dice.choice(ENCODINGS), dice.random() < 0.3]
               for _ in range(2)]  # fmt: skip
    blocks = [dice.choice((_table, _table, _paragraph, _bar))(dice) for _ in range(dice.randint(0, 4))]
    head = {
        "screens": screens,
        "data": odd_data(dice),
        "findings": [_sentence(dice) for _ in range(dice.randint(0, 2))],
    }
    return b"".join(json.dumps(line).encode() + b"\n" for line in (head, *blocks))


def hostile(dice: Random) -> str:
    """A name: one of the odd ones, some glued together, or characters from anywhere."""
    kind = dice.random()
    if kind < 0.5:
        return dice.choice(odd.NAMES)
    if kind < 0.7:
        return "".join(dice.choice(odd.NAMES)[:40] for _ in range(3))
    ends = dice.choice(RANGES)
    return "".join(chr(dice.randint(ord(ends[0]), ord(ends[1]))) for _ in range(dice.choice((1, 3, 30))))


def odd_data(dice: Random) -> Any:
    """Data as an answer may hold it: names anywhere, also as keys."""
    return {
        hostile(dice): hostile(dice),
        "rows": [{"name": hostile(dice), "x_ns": dice.randint(-(2**62), 2**62), "share": dice.random()}],
    }


def _number(dice: Random, unit: str) -> Any:
    if unit in ("text", "name"):
        return hostile(dice)
    if unit == "share":
        return dice.choice((0, 1, 0.0, 1.0, 0.005, 1e-12, 0.99999, dice.random(), 7.5, 1e12))
    return dice.choice(
        (
            0,
            1,
            -1 if unit == "saved_ns" else 1,
            999,
            1000,
            999_999,
            10**9,
            3599 * 10**9,
            2**62,
            dice.randint(0, 10**7),
        )
    )


def _cell(dice: Random, unit: str) -> Any:
    return None if dice.random() < 0.15 else _number(dice, unit)


def _sentence(dice: Random) -> Any:
    values = [[_cell(dice, unit), unit] for unit in dice.choices(UNITS, k=dice.randint(0, 3))]
    words = [dice.choice(("and", "of", hostile(dice).replace("{}", ""))) for _ in range(len(values) + 1)]
    return [" {} ".join(words), values]


def _table(dice: Random) -> Any:
    units = dice.choices(UNITS, k=dice.randint(1, 9))
    columns = [
        [
            f"k{i}_{unit}",
            dice.choice(("na|me", "on path", "calls", "size", "wait for")),
            unit,
            i > 0 and dice.random() < 0.3,  # the first column never gives way
        ]
        for i, unit in enumerate(units)
    ]
    rows = [[_cell(dice, unit) for unit in units] for _ in range(dice.choice((0, 1, 3, 25)))]
    total = dice.choice((None, [_cell(dice, unit) for unit in units]))
    return {"title": hostile(dice), "columns": columns, "rows": rows, "total": total, "notes": [_sentence(dice)], "limit": dice.choice((None, 0, 1, 5)),
            "claim": dice.choice(("", "observed"))}  # fmt: skip


def _paragraph(dice: Random) -> Any:
    return {"title": dice.choice(("", hostile(dice))), "columns": [], "rows": [], "total": None,
            "notes": [_sentence(dice) for _ in range(dice.randint(0, 3))], "limit": None, "claim": ""}  # fmt: skip


def _bar(dice: Random) -> Any:
    return {
        "bar": hostile(dice),
        "parts": [
            [hostile(dice), dice.choice((0, 0, 1, 999, 10**9, 2**61 // 8))] for _ in range(dice.randint(0, 8))
        ],
    }


# --- from lines to a document, and what is asked of it ---------------------------------------------


def document_of(data: bytes) -> tuple[Any, Document]:
    """The first line, and the document."""
    head, *blocks = (json.loads(line) for line in data.splitlines())
    findings = tuple(Finding(f"G{i}", _said(one)) for i, one in enumerate(head["findings"]))
    return head, Document(
        "analyze", (Input("a.json", "00", 1),), tuple(map(_block, blocks)), head["data"], findings
    )


def _said(sentence: Any) -> Sentence:
    return Sentence(sentence[0], tuple(Value(raw, Unit(unit)) for raw, unit in sentence[1]))


def _block(made: Any) -> Block:
    if "bar" in made:
        parts = tuple((label, ns) for label, ns in made["parts"])
        return Bar(made["bar"], parts, sum(ns for _, ns in parts))
    rows: tuple[tuple[Cell, ...], ...] = tuple(map(tuple, made["rows"]))
    columns = tuple(Column(key, title, Unit(unit), spare) for key, title, unit, spare in made["columns"])
    total = None if made["total"] is None else tuple(made["total"])
    return Section(
        made["title"], columns, rows, total, tuple(map(_said, made["notes"])), made["claim"], made["limit"]
    )


def check_sinks(data: bytes) -> None:
    """Render in every format and hold each to what it promises; a sample is rendered twice."""
    try:
        head, document = document_of(data)
    except (ValueError, KeyError, TypeError, IndexError):
        return
    for fmt, check in CHECKS.items():
        check(render(document, fmt).decode(), document)
    _check_html(fragment(document))
    for width, encoding, color in head["screens"]:
        _check_screen(document, Screen(width, encoding, color))
    if sampled(data, 8) and any(render(document, fmt) != render(document, fmt) for fmt in RENDERERS):
        fault("the same document, other bytes")


def _check_screen(document: Document, screen: Screen) -> None:
    """No line is wider than the screen, nothing controls it, and it can be read there."""
    for fmt in RENDERERS:
        made = render(document, fmt, screen)
        if fmt == "text":
            encoding = "ascii" if screen.plain else screen.encoding
            _check_lines(made.decode(encoding), screen)
        elif screen.encoding == "ascii" and not made.isascii():
            fault(f"{fmt} for an ASCII stream is not ASCII")


def _check_lines(text: str, screen: Screen) -> None:
    plain = re.sub(r"\x1b\[[\d;]*m", "", text) if screen.color else text
    _check_harmless(plain)
    for line in plain.split("\n"):
        if cell_len(line) > max(screen.width, 20):
            fault(f"{cell_len(line)} cells on a screen of {screen.width}: {line!r}")


def _check_harmless(text: str) -> None:
    """Nothing acts on a terminal, and no line is a command to a CI runner."""
    for char in set(text) - {"\n", "\ufeff"} if text.startswith("\ufeff") else set(text) - {"\n"}:
        if unicodedata.category(char) in _CONTROLS:
            fault(f"{char!r} reached the output")
    if "##[" in text or re.search(r"^\s*::\w", text, re.MULTILINE):
        fault("a command to a CI runner reached the output")


def _check_text(text: str, _: Document) -> None:
    _check_lines(text, Screen())


def _check_json(text: str, document: Document) -> None:
    _check_harmless(text)
    answer = strict_json(text)
    if len(answer["data"]) != len(document.data):
        fault("keys of the data became one")


def _check_md(text: str, document: Document) -> None:
    _check_harmless(text)
    cell = re.compile(r"(?<!\\)\|")
    widths = {
        len(block.columns) + 1 for block in document.blocks if isinstance(block, Section) and block.columns
    }
    for line in text.splitlines():
        if line.startswith("|") and len(cell.findall(line.replace("\\\\", ""))) not in widths:
            fault(f"a row of Markdown with other cells than any header: {line[:200]}")


def _check_csv(text: str, document: Document) -> None:
    """Every row of every table is there, whole, and no cell of words is a formula."""
    _check_harmless(text)
    tables = [block for block in document.blocks if isinstance(block, Section) and block.columns]
    rows = [row for row in csv.reader(io.StringIO(text)) if row]
    for row in rows:
        for cell in row:
            if re.match(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20\t\r]", cell) and not re.fullmatch(
                r"-?[\d.]+(e[+-]\d+)?", cell
            ):
                fault(f"a formula in a cell: {cell[:80]!r}")
    if len(rows) < sum(len(table.rows) for table in tables):
        fault(f"{len(rows)} rows in CSV")


class _Page(HTMLParser):
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in TAGS or not {key for key, _ in attrs} <= ATTRIBUTES:
            fault(f"<{tag} {attrs}> in HTML")


def _check_html(text: str) -> None:
    _check_harmless(text)
    _Page().feed(text)


CHECKS: dict[str, Callable[[str, Document], None]] = {
    "text": _check_text,
    "json": _check_json,
    "md": _check_md,
    "csv": _check_csv,
}

SINKS = Target("sinks", written, check_sinks, is_lines=True, bounded=600, chunk=300)
