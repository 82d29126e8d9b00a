"""The terminal's face: sentences, bars and tables, dense, at any width from 20 cells.

Names are only ever `Text`, never markup: a kernel called `[red]x[/red]` prints as it is called. Colour
repeats what words and signs already say.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from rich.text import Text

from stepcrit.model.section import Bar, Block, Document, Finding, Section, Sentence, Unit, Value
from stepcrit.report.bars import ASCII_BLOCKS, BLOCKS, apportion, parts_of
from stepcrit.report.layout import STYLES, table
from stepcrit.report.names import labels_in, short_name
from stepcrit.report.safe import safe_text
from stepcrit.report.screen import Screen, wrap
from stepcrit.report.values import pieces, value_text
from stepcrit.units import ns_text, share_text

INDENT = 2
BAR_COLORS = ("green", "magenta", "yellow", "blue", "bright_black")
NAME_IN_SENTENCE = 60
LABEL = 40
_NO_BREAK = "\u00a0"


def render(document: Document, screen: Screen | None = None) -> bytes:
    """The document for a stream."""
    screen = screen or Screen()
    lines: list[Text] = []
    for block in document.blocks:
        made = _block(block, screen)
        lines += ([Text()] if lines and made else []) + made
    found = [line for finding in document.findings for line in _finding(finding, screen)]
    return screen.printed([*lines, *([Text()] if lines and found else []), *found])


def _block(block: Block, screen: Screen) -> list[Text]:
    return _bar(block, screen) if isinstance(block, Bar) else _section(block, screen)


def _section(section: Section, screen: Screen) -> list[Text]:
    """Title, table, notes; a paragraph without a title is not indented."""
    lines = _title(section.title, section.claim, screen)
    if section.columns:
        lines += table(section, screen) if section.rows else [Text(screen.sign("  nothing to show"), "dim")]
    indent = INDENT if lines else 0
    for note in section.notes:
        lines += _sentence(note, screen, indent, "dim" if section.columns else "")
    return lines


def _title(title: str, claim: str, screen: Screen) -> list[Text]:
    """A heading, and how its numbers are known."""
    if not title:
        return []
    text = Text(screen.sign(safe_text(title)), "bold")
    if claim:
        text.append(screen.sign(f" · {safe_text(claim)}"), "not bold dim")
    return wrap(text, screen.cells, INDENT)


def _sentence(sentence: Sentence, screen: Screen, indent: int, style: str = "") -> list[Text]:
    """A sentence, wrapped; its own leading blanks and number hang out."""
    text, labels = Text(" " * indent, style), labels_in(sentence, NAME_IN_SENTENCE)
    for piece in pieces(sentence):
        text.append_text(_piece(piece, labels, screen))
    lead = re.match(r" *(?:(?:\d+|[!*•-]) +)?", text.plain)
    return wrap(text, screen.prose, len(lead[0]) if lead else indent)


def _piece(piece: str | Value, labels: Mapping[str, str], screen: Screen) -> Text:
    """Words as they are; values in their unit, names short."""
    if isinstance(piece, str):
        return Text(screen.sign(safe_text(piece)))
    if piece.unit == Unit.NAME and piece.raw is not None:
        return Text(screen.sign(labels[str(piece.raw)]), STYLES[Unit.NAME])
    return Text(screen.sign(value_text(piece.raw, piece.unit, plain=screen.plain)))


def _bar(bar: Bar, screen: Screen) -> list[Text]:
    """A line of cells and what each sign stands for, every part that is not zero."""
    title = f"{bar.title} {ns_text(bar.whole_ns, plain=screen.plain)}".strip()
    lines = _title(title, bar.claim, screen)
    parts = parts_of(bar)
    if not parts:
        return lines
    signs = ASCII_BLOCKS if screen.plain else BLOCKS
    drawn, legend = Text(" " * INDENT), Text(" " * INDENT)
    for i, n in enumerate(apportion([ns for _, ns in parts], screen.prose - INDENT)):
        sign, color = signs[i % len(signs)], BAR_COLORS[i % len(BAR_COLORS)]
        drawn.append(sign * n, color)
        legend.append("   " if i else "").append(sign, color).append(
            _NO_BREAK + _legend(bar, parts[i], screen)
        )
    return [*lines, drawn, *_kept(legend, screen)]


def _legend(bar: Bar, part: tuple[str, int], screen: Screen) -> str:
    """One part's words, which stay on one line."""
    words = (
        screen.sign(short_name(part[0], LABEL)) + " " + share_text(part[1], bar.whole_ns, plain=screen.plain)
    )
    return words.replace(" ", _NO_BREAK)


def _kept(legend: Text, screen: Screen) -> list[Text]:
    """The legend, wrapped between its entries only."""
    lines = wrap(legend, screen.prose, INDENT)
    for line in lines:
        line.plain = line.plain.replace(_NO_BREAK, " ")
    return lines


def _finding(finding: Finding, screen: Screen) -> list[Text]:
    """What the reader should know: `! sentence (code)`."""
    text, labels = Text("").append("! ", "bold yellow"), labels_in(finding.what, NAME_IN_SENTENCE)
    for piece in pieces(finding.what):
        text.append_text(_piece(piece, labels, screen))
    text.append(screen.sign(f" ({safe_text(finding.code)})"), "dim")
    return wrap(text, screen.prose, INDENT)
