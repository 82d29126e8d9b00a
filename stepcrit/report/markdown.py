"""GitHub Markdown for pull requests, issues and job summaries.

Names stand in code spans: there they can be no link, no mention, no image and no tag.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from stepcrit.model.section import Bar, Cell, Document, Section, Sentence, Unit, Value
from stepcrit.report.bars import parts_of
from stepcrit.report.names import labels_in, short_names
from stepcrit.report.safe import markdown_name, markdown_words
from stepcrit.report.values import WORDS, pieces, value_text
from stepcrit.units import ns_text, share_text

NAME_WIDTH = 80
LONG = 20
"""A table with more rows is folded into <details>; a terminal would show `limit` of them."""


def render(document: Document) -> bytes:
    """The whole document."""
    blocks = [_bar(b) if isinstance(b, Bar) else _section(b) for b in document.blocks]
    if document.findings:
        lines = [f"- ⚠ {_sentence(f.what)} ({markdown_name(f.code)})" for f in document.findings]
        blocks.append(["### Findings", "", *lines])
    return ("\n\n".join("\n".join(lines) for lines in blocks if lines) + "\n").encode()


def _section(section: Section) -> list[str]:
    """Heading, table, notes."""
    lines = _heading(section.title, section.claim)
    if section.columns:
        table = _table(section)
        lines += _folded(table, len(section.rows)) if len(section.rows) > LONG else table
        lines += [""] if section.notes else []
    return lines + [f"- {_sentence(note)}" for note in section.notes]


def _heading(title: str, claim: str) -> list[str]:
    suffix = f" *({markdown_words(claim)})*" if claim else ""
    return [f"### {markdown_words(title)}{suffix}", ""] if title else []


def _folded(table: list[str], rows: int) -> list[str]:
    """A long table behind a line that says how long."""
    return ["<details>", f"<summary>{rows} rows</summary>", "", *table, "", "</details>"]


def _table(section: Section) -> list[str]:
    """Header, rule, rows, total."""
    marks = ["---" if c.unit in WORDS else "---:" for c in section.columns]
    lines = [_row(markdown_words(c.title) for c in section.columns), _row(marks)]
    columns = [_column([row[i] for row in section.rows], c.unit) for i, c in enumerate(section.columns)]
    lines += [_row(cells) for cells in zip(*columns, strict=True)]
    if section.total is not None:
        cells = (
            "" if c is None else _cell(c, k.unit) for c, k in zip(section.total, section.columns, strict=True)
        )
        lines.append(_row(f"**{c}**" if c else "" for c in cells))
    return lines


def _column(cells: Sequence[Cell], unit: Unit) -> list[str]:
    """One column's cells; names are told apart."""
    if unit != Unit.NAME:
        return [_cell(cell, unit) for cell in cells]
    labels = short_names([str(cell or "") for cell in cells], NAME_WIDTH)
    return [
        _cell(cell, unit) if cell is None else markdown_name(name)
        for cell, name in zip(cells, labels, strict=True)
    ]


def _cell(raw: Cell, unit: Unit) -> str:
    """A value; words that come from anywhere are treated as a name."""
    if raw is None or unit not in WORDS:
        return value_text(raw, unit).replace("<", "&lt;").replace(">", "&gt;")
    return markdown_name(str(raw))


def _sentence(sentence: Sentence) -> str:
    """Words escaped, values formatted."""
    labels = labels_in(sentence, NAME_WIDTH)
    return "".join(_piece(p, labels) for p in pieces(sentence)).strip()


def _piece(piece: str | Value, labels: Mapping[str, str]) -> str:
    if isinstance(piece, str):
        return markdown_words(piece)
    if piece.unit == Unit.NAME and piece.raw is not None:
        return _spaced(labels[str(piece.raw)], str(piece.raw))
    if piece.unit == Unit.TEXT and piece.raw is not None:
        return _spaced(str(piece.raw), str(piece.raw))
    return _cell(piece.raw, piece.unit)


def _spaced(text: str, raw: str) -> str:
    """A name with the blanks around it outside its code span, where they still part words."""
    before, after = raw[: len(raw) - len(raw.lstrip(" "))], raw[len(raw.rstrip(" ")) :]
    return f"{before}{markdown_name(text.strip(' '))}{after}" if text.strip(" ") else text


def _bar(bar: Bar) -> list[str]:
    """The parts as a list: a drawing needs a fixed-width font, which a comment does not promise."""
    lines = _heading(f"{bar.title} {ns_text(bar.whole_ns)}".strip(), bar.claim)
    return [
        *lines,
        *(f"- {markdown_name(k)}: {ns_text(n)}, {_share(n, bar.whole_ns)}" for k, n in parts_of(bar)),
    ]


def _share(part: int, whole: int) -> str:
    return share_text(part, whole).replace("<", "&lt;").replace(">", "&gt;")


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"
