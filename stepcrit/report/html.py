"""A small HTML fragment for notebooks: tables, bars and sentences; no script, nothing fetched.

Colours come from the page around it (currentColor), so that it reads in light and in dark themes.
"""

from __future__ import annotations

from stepcrit.model.section import Bar, Block, Cell, Document, Section, Sentence, Unit, Value
from stepcrit.report.bars import parts_of
from stepcrit.report.names import short_name
from stepcrit.report.safe import html_text
from stepcrit.report.values import WORDS, pieces, value_text
from stepcrit.units import ns_text, share_text

NAME_WIDTH = 60
_FAINT = (0.85, 0.55, 0.35, 0.2, 0.1)  # how strongly the parts of a bar are drawn, in turn


def fragment(document: Document) -> str:
    """The document as one `<div>`: every string in it escaped."""
    body = "".join(_block(block) for block in document.blocks)
    found = "".join(f"<li>{_sentence(f.what)} ({html_text(f.code)})</li>" for f in document.findings)
    return f'<div class="stepcrit">{body}{f"<ul>{found}</ul>" if found else ""}</div>'


def _block(block: Block) -> str:
    if isinstance(block, Bar):
        return _bar(block)
    title = _title(block.title, block.claim)
    notes = "".join(f"<div>{_sentence(note)}</div>" for note in block.notes)
    return f'<div style="margin:.6em 0">{title}{_table(block) if block.columns else ""}{notes}</div>'


def _title(title: str, claim: str) -> str:
    suffix = f' <small style="opacity:.6">{html_text(claim)}</small>' if claim else ""
    return f"<div><b>{html_text(title)}</b>{suffix}</div>" if title else ""


def _table(section: Section) -> str:
    """The rows a terminal shows, then how many there are more."""
    head = "".join(f"<th{_side(c.unit)}>{html_text(c.title)}</th>" for c in section.columns)
    shown = section.rows if section.limit is None else section.rows[: section.limit]
    body = "".join(_row(section, row, "td") for row in shown)
    cut = len(section.rows) - len(shown)
    if cut:
        body += f'<tr><td colspan="{len(section.columns)}">… and {cut} more rows</td></tr>'
    if section.total is not None:
        body += _row(section, section.total, "th")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _row(section: Section, row: tuple[Cell, ...], tag: str) -> str:
    cells = zip(row, section.columns, strict=True)
    return (
        "<tr>"
        + "".join(f"<{tag}{_side(c.unit)}>{_cell(raw, c.unit, tag)}</{tag}>" for raw, c in cells)
        + "</tr>"
    )


def _cell(raw: Cell, unit: Unit, tag: str = "td") -> str:
    """A value; a name that was shortened has the whole one as its tooltip."""
    if raw is None:
        return html_text(value_text(raw, unit)) if tag == "td" else ""
    if unit != Unit.NAME:
        return html_text(value_text(raw, unit))
    whole, short = html_text(str(raw)), html_text(short_name(str(raw), NAME_WIDTH))
    return short if short == whole else f'<span title="{whole}">{short}</span>'


def _side(unit: Unit) -> str:
    return f' style="text-align:{"left" if unit in WORDS else "right"}"'


def _sentence(sentence: Sentence) -> str:
    return "".join(_piece(piece) for piece in pieces(sentence))


def _piece(piece: str | Value) -> str:
    return html_text(piece) if isinstance(piece, str) else _cell(piece.raw, piece.unit)


def _bar(bar: Bar) -> str:
    """Parts side by side, each named with its share below."""
    parts, cells, legend = parts_of(bar), "", ""
    for i, (label, ns) in enumerate(parts):
        shade = f"background:currentColor;opacity:{_FAINT[i % len(_FAINT)]}"
        words = f"{html_text(label)} {html_text(share_text(ns, bar.whole_ns))}"
        cells += (
            f'<div title="{words}" style="{shade};width:{100 * ns / bar.whole_ns:.3f}%;height:1em"></div>'
        )
        legend += f'<span style="{shade};display:inline-block;width:.8em;height:.8em"></span> {words} &nbsp; '
    title = _title(f"{bar.title} {ns_text(bar.whole_ns)}".strip(), bar.claim)
    return f'<div style="margin:.6em 0">{title}<div style="display:flex;max-width:50em">{cells}</div><div>{legend}</div></div>'
